// SPDX-License-Identifier: BSD-2-Clause
// A library that stands in front of the C library's epoll, as librspreload does (from rdma-core 65 on), and takes what
// it is given for the program's: nothing of ours comes to it.
#include "fixture.h"

#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>

static int caught(void)
{
    errno = EOPNOTSUPP;
    return -1;
}

int epoll_create(int size)
{
    return caught();
}

int epoll_create1(int flags)
{
    return caught();
}

int epoll_ctl(int instance, int operation, int fd, struct epoll_event *event)
{
    return caught();
}

int epoll_wait(int instance, struct epoll_event *events, int capacity, int timeout_ms)
{
    return caught();
}

static void epoll__of_ours_is_not_intercepted(void **state)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    struct sockaddr *address = (struct sockaddr *)&here;
    socklen_t length = sizeof(here);
    char byte = 0;
    int listener = rsocket(AF_INET, SOCK_STREAM, 0), client = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_true(listener >= 0 && client >= 0);
    assert_int_equal(rbind(listener, address, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(rlisten(listener, 1), 0);
    assert_int_equal(rgetsockname(listener, address, &length), 0);
    assert_int_equal(rconnect(client, address, sizeof(struct sockaddr_in)), 0);
    int server = raccept(listener, NULL, NULL);
    assert_true(server >= 0);
    assert_int_equal(rsend(client, "x", 1, 0), 1);
    assert_int_equal(rrecv(server, &byte, 1, 0), 1);
    assert_int_equal(byte, 'x');
    assert_int_equal(rclose(client), 0);
    assert_int_equal(rclose(server), 0);
    assert_int_equal(rclose(listener), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(epoll__of_ours_is_not_intercepted)};
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
