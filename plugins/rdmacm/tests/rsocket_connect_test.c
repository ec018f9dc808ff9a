// SPDX-License-Identifier: BSD-2-Clause
// How streams come into being, where that is not the usual way, or cannot.
#include "fixture.h"

#include "base/log.h"
#include "device/tests/said.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HUNG_S = 30 };

static int listen_here(struct sockaddr_storage *here)
{
    socklen_t length = sizeof(*here);
    int listener = rsocket(AF_INET, SOCK_STREAM, 0);
    *here = fixture_sockaddr(fixture_address, 0);
    assert_int_equal(rbind(listener, (struct sockaddr *)here, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(rlisten(listener, 4), 0);
    assert_int_equal(rgetsockname(listener, (struct sockaddr *)here, &length), 0);
    return listener;
}

// Calls twice when it is told to. Its exit status: how often it was refused.
static pid_t begin_caller(const struct sockaddr_storage *here, int go)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child != 0)
        return child;
    char byte;
    int refused = 0;
    alarm(HUNG_S);
    if (read(go, &byte, 1) != 1)
        _exit(100);
    for (int i = 0; i < 2; i++) {
        int fd = rsocket(AF_INET, SOCK_STREAM, 0);
        refused +=
            rconnect(fd, (const struct sockaddr *)here, sizeof(struct sockaddr_in)) != 0 && errno == ECONNREFUSED;
        rclose(fd);
    }
    _exit(refused);
}

static void listener__says_once_that_there_are_no_descriptors(void **state)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); // their allocators cannot follow such a child: another thread may have a lock of theirs when it is born
#endif
    struct sockaddr_storage here;
    struct rlimit usual, none;
    struct said said;
    char text[ALB_LOG_LINE_MAX];
    int go[2], status, listener = listen_here(&here);
    assert_int_equal(pipe(go), 0);
    pid_t child = begin_caller(&here, go[0]);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    said_begin(&said);
    int lowest = dup(go[0]); // all below it are taken
    close(lowest);
    none = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(write(go[1], "", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    said_end(&said, text, sizeof(text));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    char *told = strstr(text, "listens, and must refuse a connection: Too many open files; `ulimit -n` bounds");
    assert_non_null(told);
    assert_null(strstr(strchr(told, '\n'), "must refuse"));
    close(go[0]);
    close(go[1]);
    assert_int_equal(rclose(listener), 0);
}

// Addresses are those of the rsocket's family, and whole, as with sockets.
static void connect__an_address_of_another_family(void **state)
{
    struct sockaddr_storage ipv4 = fixture_sockaddr(fixture_address, 7471), ipv6 = fixture_sockaddr("::1", 7471);
    int of_ipv4 = rsocket(AF_INET, SOCK_STREAM, 0), of_ipv6 = rsocket(AF_INET6, SOCK_STREAM, 0);
    expect_errno(rconnect(of_ipv4, (struct sockaddr *)&ipv6, sizeof(struct sockaddr_in6)), EAFNOSUPPORT);
    expect_errno(rconnect(of_ipv6, (struct sockaddr *)&ipv4, sizeof(struct sockaddr_in)), EAFNOSUPPORT);
    assert_int_equal(rclose(of_ipv4), 0);
    assert_int_equal(rclose(of_ipv6), 0);
}

static void connect__half_an_address(void **state)
{
    struct sockaddr_storage ipv6 = fixture_sockaddr("::1", 7471);
    for (int i = 0; i < 2; i++) {
        int fd = rsocket(AF_INET6, i == 0 ? SOCK_STREAM : SOCK_DGRAM, 0);
        assert_true(fd >= 0);
        expect_errno(rconnect(fd, (struct sockaddr *)&ipv6, sizeof(struct sockaddr_in)), EINVAL);
        expect_errno(rbind(fd, (struct sockaddr *)&ipv6, sizeof(struct sockaddr_in)), EINVAL);
        assert_int_equal(rclose(fd), 0);
    }
}

static void listen__unbound_at_addresses_of_its_family(void **state)
{
    static const int families[] = {AF_INET, AF_INET6};
    for (int i = 0; i < 2; i++) {
        struct sockaddr_storage name, there;
        socklen_t length = sizeof(name);
        if (families[i] == AF_INET6 && !fixture_has_ipv6)
            continue;
        int listener = rsocket(families[i], SOCK_STREAM, 0), client = rsocket(families[i], SOCK_STREAM, 0);
        assert_int_equal(rlisten(listener, 1), 0);
        assert_int_equal(rgetsockname(listener, (struct sockaddr *)&name, &length), 0);
        assert_int_equal(name.ss_family, families[i]);
        there = fixture_sockaddr(i == 0 ? fixture_address : "::1", ntohs(((struct sockaddr_in *)&name)->sin_port));
        assert_int_equal(rconnect(client, (struct sockaddr *)&there, length), 0);
        assert_int_equal(rclose(client), 0);
        assert_int_equal(rclose(listener), 0);
    }
}

// One thread serves all rsockets of a process: it must not wait for a listener that may come. It did for 50 ms each.
static void connect__where_nobody_listens_holds_up_no_other(void **state)
{
    enum { DEAD = 100, WAITED_MS = DEAD * 50 };
    struct sockaddr_storage dead = fixture_sockaddr(fixture_address, 9), there = fixture_sockaddr(fixture_address, 0);
    socklen_t length = sizeof(struct sockaddr_in);
    struct timespec begin, end;
    int fds[DEAD], listener = rsocket(AF_INET, SOCK_STREAM, 0), client = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rbind(listener, (struct sockaddr *)&there, length), 0);
    assert_int_equal(rlisten(listener, 1), 0);
    assert_int_equal(rgetsockname(listener, (struct sockaddr *)&there, &length), 0);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < DEAD; i++) {
        fds[i] = rsocket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(rfcntl(fds[i], F_SETFL, O_NONBLOCK), 0);
        expect_errno(rconnect(fds[i], (struct sockaddr *)&dead, length), EINPROGRESS);
    }
    assert_int_equal(rconnect(client, (struct sockaddr *)&there, length), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 < WAITED_MS);
    for (int i = 0; i < DEAD; i++)
        assert_int_equal(rclose(fds[i]), 0);
    assert_int_equal(rclose(client), 0);
    assert_int_equal(rclose(listener), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listener__says_once_that_there_are_no_descriptors),
        cmocka_unit_test(connect__an_address_of_another_family),
        cmocka_unit_test(connect__half_an_address),
        cmocka_unit_test(listen__unbound_at_addresses_of_its_family),
        cmocka_unit_test(connect__where_nobody_listens_holds_up_no_other),
    };
    return cmocka_run_group_tests_name("rsocket_connect", tests, fixture_setup, NULL);
}
