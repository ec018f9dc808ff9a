// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };

static int open_bound(struct sockaddr_storage *here)
{
    socklen_t length = sizeof(*here);
    int fd = rsocket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    *here = fixture_sockaddr(fixture_address, 0);
    assert_int_equal(rbind(fd, (struct sockaddr *)here, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)here, &length), 0);
    return fd;
}

static void wait_for_input(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    assert_int_equal(rpoll(&poller, 1, WAIT_MS), 1);
    assert_int_equal(poller.revents, POLLIN);
}

// The first pass goes through UDP, the later ones from queue pair to queue pair; the program cannot tell.
static void datagrams__there_and_back(void **state)
{
    struct sockaddr_storage server_name, client_name, from;
    int server = open_bound(&server_name), client = open_bound(&client_name);
    char bytes[64];
    assert_int_equal(rconnect(client, (struct sockaddr *)&server_name, sizeof(struct sockaddr_in)), 0);
    for (int i = 0; i < 20; i++) {
        socklen_t length = sizeof(from);
        assert_int_equal(rsend(client, "question", 8, 0), 8);
        wait_for_input(server);
        assert_int_equal(rrecvfrom(server, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &length), 8);
        assert_memory_equal(&from, &client_name, sizeof(struct sockaddr_in));
        assert_int_equal(rsendto(server, "answer", 6, 0, (struct sockaddr *)&from, length), 6);
        wait_for_input(client);
        assert_int_equal(rrecv(client, bytes, 3, MSG_PEEK), 3);
        assert_int_equal(rrecv(client, bytes, 3, MSG_TRUNC), 6); // the rest is lost
        assert_memory_equal(bytes, "ans", 3);
    }
    assert_int_equal(rclose(client), 0);
    assert_int_equal(rclose(server), 0);
}

// rrecvmsg says whether the datagram was longer than the room for it.
static void datagrams__cut(void **state)
{
    struct sockaddr_storage name;
    int fd = open_bound(&name);
    char bytes[8];
    struct iovec vectors[2] = {{bytes, 2}, {bytes + 2, 1}};
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = 2};
    static const struct {
        int flags;
        size_t second; // bytes of the second vector
        ssize_t got;
        int says;
    } cases[] = {
        {0, 4, 6, 0}, {0, 5, 6, 0}, {0, 3, 5, MSG_TRUNC}, {MSG_PEEK, 3, 5, MSG_TRUNC}, {MSG_TRUNC, 3, 6, MSG_TRUNC}};
    assert_int_equal(rconnect(fd, (struct sockaddr *)&name, sizeof(struct sockaddr_in)), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        vectors[1].iov_len = cases[i].second;
        message.msg_flags = -1;
        assert_int_equal(rsend(fd, "answer", 6, 0), 6);
        wait_for_input(fd);
        assert_int_equal(rrecvmsg(fd, &message, cases[i].flags), cases[i].got);
        assert_int_equal(message.msg_flags, cases[i].says);
        if (cases[i].flags & MSG_PEEK)
            assert_int_equal(rrecv(fd, bytes, sizeof(bytes), 0), 6);
    }
    assert_int_equal(rclose(fd), 0);
}

static void datagrams__refused(void **state)
{
    static char large[4096];
    struct sockaddr_storage name;
    int fd = open_bound(&name);
    expect_errno(rsend(fd, large, 1, 0), EDESTADDRREQ);
    expect_errno(rrecv(fd, large, 1, MSG_DONTWAIT), EAGAIN);
    expect_errno(rlisten(fd, 1), EOPNOTSUPP);
    expect_errno(raccept(fd, NULL, NULL), EOPNOTSUPP);
    expect_errno((int)riomap(fd, large, sizeof(large), PROT_WRITE, 0, 0), EOPNOTSUPP);
    expect_errno(rshutdown(fd, SHUT_RD), ENOTCONN);
    assert_int_equal(rconnect(fd, (struct sockaddr *)&name, sizeof(struct sockaddr_in)), 0);
    expect_errno(rsend(fd, large, sizeof(large), 0), EMSGSIZE);
    assert_int_equal(rclose(fd), 0);
}

// What no rsocket has sent is dropped, whatever it is.
static void datagrams__from_strangers(void **state)
{
    static const uint8_t nearly[][17] = {
        {0}, {0x55, 0x55, 0x55, 0x55, 4, 0, 200, 0}, {0x55, 0x55, 0x55, 0x55, 9, 9, 16, 0, 0xff, 0xff, 0xff, 0xff}};
    struct sockaddr_storage name;
    char byte;
    int fd = open_bound(&name), stranger = socket(AF_INET, SOCK_DGRAM, 0);
    for (size_t i = 0; i < 3; i++)
        for (size_t length = 0; length <= sizeof(nearly[i]); length++)
            assert_int_equal(
                sendto(stranger, nearly[i], length, 0, (struct sockaddr *)&name, sizeof(struct sockaddr_in)), length);
    // In order behind them: one that is right.
    assert_int_equal(rsendto(fd, "x", 1, 0, (struct sockaddr *)&name, sizeof(struct sockaddr_in)), 1);
    wait_for_input(fd);
    assert_int_equal(rrecv(fd, &byte, 1, 0), 1);
    assert_int_equal(byte, 'x');
    expect_errno(rrecv(fd, &byte, 1, MSG_DONTWAIT), EAGAIN);
    close(stranger);
    assert_int_equal(rclose(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams__there_and_back),
        cmocka_unit_test(datagrams__cut),
        cmocka_unit_test(datagrams__refused),
        cmocka_unit_test(datagrams__from_strangers),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
