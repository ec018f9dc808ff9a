// SPDX-License-Identifier: BSD-2-Clause
// Instances of epoll with rsockets and ordinary descriptors in them.
#include "fixture.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>
#include <unistd.h>

// Of <rdma/rsocket.h> from rdma-core 65 on.
int repoll_create(int flags);
int repoll_ctl(int instance, int operation, int fd, struct epoll_event *event);
int repoll_wait(int instance, struct epoll_event *events, int capacity, int timeout_ms);

enum { WAIT_MS = 20000, MANY = 40 };

struct scene {
    int instance, listener, client, server;
    int pipe[2];
};

static int setup(void **state)
{
    static struct scene scene;
    struct scene *s = *state = &scene;
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    struct sockaddr *address = (struct sockaddr *)&here;
    socklen_t length = sizeof(here);
    s->instance = repoll_create(EPOLL_CLOEXEC);
    s->listener = rsocket(AF_INET, SOCK_STREAM, 0);
    s->client = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_true(s->instance >= 0 && s->listener >= 0 && s->client >= 0);
    assert_int_equal(rbind(s->listener, address, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(rlisten(s->listener, MANY), 0);
    assert_int_equal(rgetsockname(s->listener, address, &length), 0);
    assert_int_equal(rconnect(s->client, address, sizeof(struct sockaddr_in)), 0);
    s->server = raccept(s->listener, NULL, NULL);
    assert_true(s->server >= 0);
    assert_int_equal(pipe2(s->pipe, O_CLOEXEC), 0);
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;
    const int ours[] = {s->client, s->server, s->listener, s->instance};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (ours[i] >= 0)
            assert_int_equal(rclose(ours[i]), 0);
    close(s->pipe[0]);
    close(s->pipe[1]);
    return 0;
}

static int control(struct scene *s, int operation, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = UINT64_MAX - (uint64_t)fd};
    return repoll_ctl(s->instance, operation, fd, &event);
}

static void watch(struct scene *s, int fd, uint32_t events)
{
    assert_int_equal(control(s, EPOLL_CTL_ADD, fd, events), 0);
}

static void expect_nothing(struct scene *s)
{
    struct epoll_event event;
    assert_int_equal(repoll_wait(s->instance, &event, 1, 0), 0);
    assert_int_equal(repoll_wait(s->instance, &event, 1, 20), 0);
}

// The one event that there is.
static void expect(struct scene *s, int fd, uint32_t events)
{
    struct epoll_event told[4];
    assert_int_equal(repoll_wait(s->instance, told, 4, WAIT_MS), 1);
    assert_int_equal(told[0].data.u64, UINT64_MAX - (uint64_t)fd);
    assert_int_equal(told[0].events, events);
}

static void epoll__of_ordinary_descriptors(void **state)
{
    struct scene *s = *state;
    watch(s, s->pipe[0], EPOLLIN);
    expect_errno(control(s, EPOLL_CTL_ADD, s->pipe[0], EPOLLIN), EEXIST);
    expect_errno(control(s, EPOLL_CTL_DEL, s->pipe[1], 0), ENOENT);
    expect_nothing(s);
    assert_int_equal(write(s->pipe[1], "x", 1), 1);
    expect(s, s->pipe[0], EPOLLIN);
    expect(s, s->pipe[0], EPOLLIN);
    assert_int_equal(control(s, EPOLL_CTL_MOD, s->pipe[0], EPOLLIN | EPOLLET), 0);
    expect(s, s->pipe[0], EPOLLIN);
    expect_nothing(s);
    assert_int_equal(write(s->pipe[1], "x", 1), 1);
    expect(s, s->pipe[0], EPOLLIN);
    close(s->pipe[1]);
    expect(s, s->pipe[0], EPOLLIN | EPOLLHUP);
    close(s->pipe[0]); // which takes it out
    assert_int_equal(pipe2(s->pipe, O_CLOEXEC), 0);
    watch(s, s->pipe[0], EPOLLIN);
    assert_int_equal(repoll_ctl(s->instance, EPOLL_CTL_DEL, s->pipe[0], NULL), 0);
    expect_nothing(s);
}

static void epoll__of_rsockets(void **state)
{
    struct scene *s = *state;
    char byte;
    watch(s, s->listener, EPOLLIN);
    watch(s, s->server, EPOLLIN);
    expect_errno(control(s, EPOLL_CTL_ADD, s->server, EPOLLIN), EEXIST);
    expect_errno(control(s, EPOLL_CTL_MOD, s->client, EPOLLIN), ENOENT);
    expect_errno(control(s, EPOLL_CTL_DEL, s->client, 0), ENOENT);
    expect_nothing(s);
    assert_int_equal(rsend(s->client, "x", 1, 0), 1);
    expect(s, s->server, EPOLLIN);
    expect(s, s->server, EPOLLIN);
    assert_int_equal(control(s, EPOLL_CTL_MOD, s->server, EPOLLIN | EPOLLOUT | EPOLLONESHOT), 0);
    expect(s, s->server, EPOLLIN | EPOLLOUT);
    expect_nothing(s);
    assert_int_equal(control(s, EPOLL_CTL_MOD, s->server, EPOLLIN), 0);
    expect(s, s->server, EPOLLIN);
    assert_int_equal(rrecv(s->server, &byte, 1, 0), 1);
    expect_nothing(s);
    watch(s, s->client, EPOLLOUT);
    expect(s, s->client, EPOLLOUT);
    assert_int_equal(control(s, EPOLL_CTL_DEL, s->client, 0), 0);
    expect_nothing(s);
    assert_int_equal(rclose(s->client), 0);
    s->client = -1;
    expect(s, s->server, EPOLLIN | EPOLLHUP);
}

static void epoll__a_closed_rsocket_is_in_none(void **state)
{
    struct scene *s = *state;
    watch(s, s->client, EPOLLOUT);
    expect(s, s->client, EPOLLOUT);
    int number = s->client;
    assert_int_equal(rclose(s->client), 0);
    assert_int_equal(fcntl(number, F_GETFD), -1); // its number is another's to have
    expect_nothing(s);
    s->client = rsocket(AF_INET, SOCK_STREAM, 0);
    watch(s, s->client, EPOLLOUT);
    expect(s, s->client, EPOLLOUT | EPOLLHUP);
}

// Where there is room for one event only.
static void epoll__all_have_their_turn(void **state)
{
    struct scene *s = *state;
    const int fds[] = {s->client, s->server, s->pipe[1]};
    uint32_t seen = 0;
    for (int i = 0; i < 3; i++)
        watch(s, fds[i], EPOLLOUT);
    for (int round = 0; round < 8; round++) {
        struct epoll_event event;
        assert_int_equal(repoll_wait(s->instance, &event, 1, WAIT_MS), 1);
        for (int i = 0; i < 3; i++)
            seen |= event.data.u64 == UINT64_MAX - (uint64_t)fds[i] ? 1u << i : 0;
    }
    assert_int_equal(seen, 7);
}

static void epoll__of_many(void **state)
{
    struct scene *s = *state;
    int fds[MANY];
    struct epoll_event told[MANY + 2];
    for (int i = 0; i < MANY; i++) {
        fds[i] = rsocket(AF_INET, SOCK_DGRAM, 0);
        assert_true(fds[i] >= 0);
        watch(s, fds[i], EPOLLOUT);
    }
    watch(s, s->pipe[1], EPOLLOUT);
    assert_int_equal(repoll_wait(s->instance, told, MANY + 2, WAIT_MS), MANY + 1);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(rclose(fds[i]), 0);
    expect(s, s->pipe[1], EPOLLOUT);
}

// ---- threads that wait

static void *wait_for_one(void *argument)
{
    struct scene *s = argument;
    struct epoll_event event;
    int count = repoll_wait(s->instance, &event, 1, -1);
    return (void *)(intptr_t)(count == 1 ? (int)(UINT64_MAX - event.data.u64) : -errno);
}

static pthread_t begin(struct scene *s)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_one, s), 0);
    usleep(20000); // it sleeps, most likely
    return thread;
}

static int end(pthread_t thread)
{
    void *result;
    assert_int_equal(pthread_join(thread, &result), 0);
    return (int)(intptr_t)result;
}

static void wait__is_woken_by_whatever_comes(void **state)
{
    struct scene *s = *state;
    char byte;
    watch(s, s->server, EPOLLIN);
    watch(s, s->pipe[0], EPOLLIN);
    pthread_t thread = begin(s);
    assert_int_equal(rsend(s->client, "x", 1, 0), 1);
    assert_int_equal(end(thread), s->server);
    assert_int_equal(rrecv(s->server, &byte, 1, 0), 1);
    thread = begin(s);
    assert_int_equal(write(s->pipe[1], "x", 1), 1);
    assert_int_equal(end(thread), s->pipe[0]);
    assert_int_equal(read(s->pipe[0], &byte, 1), 1);
    thread = begin(s);
    watch(s, s->client, EPOLLOUT);
    assert_int_equal(end(thread), s->client);
    assert_int_equal(control(s, EPOLL_CTL_MOD, s->client, EPOLLIN), 0);
    thread = begin(s);
    assert_int_equal(control(s, EPOLL_CTL_MOD, s->client, EPOLLOUT), 0);
    assert_int_equal(end(thread), s->client);
}

static void wait__ends_with_the_instance(void **state)
{
    struct scene *s = *state;
    watch(s, s->server, EPOLLIN);
    pthread_t a = begin(s), b = begin(s);
    assert_int_equal(rclose(s->instance), 0);
    assert_int_equal(end(a), -EBADF);
    assert_int_equal(end(b), -EBADF);
    s->instance = -1;
}

static void wait__is_cancelled(void **state)
{
    struct scene *s = *state;
    void *result;
    watch(s, s->server, EPOLLIN);
    pthread_t thread = begin(s);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    expect_nothing(s);
    assert_int_equal(rsend(s->client, "x", 1, 0), 1);
    expect(s, s->server, EPOLLIN);
}

// ---- mistakes

static void epoll__refused(void **state)
{
    struct scene *s = *state;
    struct epoll_event event = {.events = EPOLLIN};
    int other = repoll_create(0);
    char byte = 0;
    assert_true(other >= 0);
    expect_errno(repoll_create(~EPOLL_CLOEXEC), EINVAL);
    expect_errno(repoll_ctl(s->client, EPOLL_CTL_ADD, s->server, &event), EINVAL);
    expect_errno(repoll_ctl(-1, EPOLL_CTL_ADD, s->server, &event), EBADF);
    expect_errno(repoll_ctl(s->instance, EPOLL_CTL_ADD, s->server, NULL), EFAULT);
    expect_errno(repoll_ctl(s->instance, 99, s->server, &event), EINVAL);
    expect_errno(repoll_ctl(s->instance, EPOLL_CTL_ADD, -1, &event), EBADF);
    expect_errno(repoll_ctl(s->instance, EPOLL_CTL_ADD, s->instance, &event), EINVAL);
    expect_errno(repoll_ctl(s->instance, EPOLL_CTL_ADD, other, &event), ELOOP);
    expect_errno(repoll_wait(s->client, &event, 1, 0), EINVAL);
    expect_errno(repoll_wait(-1, &event, 1, 0), EBADF);
    expect_errno(repoll_wait(s->instance, &event, 0, 0), EINVAL);
    expect_errno(rrecv(other, &byte, 1, 0), EINVAL);
    expect_errno(rsend(other, &byte, 1, 0), EINVAL);
    expect_errno(rshutdown(other, SHUT_RDWR), ENOTSOCK);
    expect_errno(rgetsockname(other, NULL, NULL), ENOTSOCK);
    expect_errno(rlisten(other, 1), EOPNOTSUPP);
    assert_int_equal(rclose(other), 0);
    expect_errno(rclose(other), EBADF);
}

static void rpoll__of_an_instance(void **state)
{
    struct scene *s = *state;
    struct pollfd poller = {.fd = s->instance, .events = POLLIN};
    watch(s, s->pipe[0], EPOLLIN);
    watch(s, s->server, EPOLLIN);
    assert_int_equal(rpoll(&poller, 1, 0), 0);
    assert_int_equal(write(s->pipe[1], "x", 1), 1);
    assert_int_equal(rpoll(&poller, 1, WAIT_MS), 1);
    assert_int_equal(control(s, EPOLL_CTL_DEL, s->pipe[0], 0), 0);
    assert_int_equal(rpoll(&poller, 1, 0), 0);
    assert_int_equal(rsend(s->client, "x", 1, 0), 1);
    expect(s, s->server, EPOLLIN);
    assert_int_equal(rpoll(&poller, 1, 0), 1);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(epoll__of_ordinary_descriptors), TEST(epoll__of_rsockets), TEST(epoll__a_closed_rsocket_is_in_none),
        TEST(epoll__all_have_their_turn),     TEST(epoll__of_many),     TEST(wait__is_woken_by_whatever_comes),
        TEST(wait__ends_with_the_instance),   TEST(wait__is_cancelled), TEST(epoll__refused),
        TEST(rpoll__of_an_instance),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
