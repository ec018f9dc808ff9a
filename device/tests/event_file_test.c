// SPDX-License-Identifier: BSD-2-Clause
// What a program sees of the descriptors by which it waits.
#include "device/event_file.h"

#include "base/tests/test.h"
#include "base/types.h"
#include "device/tests/cancelled.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct alb_event_file file;

static int setup(void **state)
{
    return alb_event_file_open(&file);
}

static int teardown(void **state)
{
    alb_event_file_close(&file);
    return 0;
}

static void open_and_close(void *unused)
{
    struct alb_event_file other;
    assert_int_equal(alb_event_file_open(&other), 0);
    alb_event_file_close(&other);
}

static void open__in_a_cancelled_thread(void **state)
{
    int before = dup(file.fd);
    close(before);
    cancelled_call(open_and_close, NULL);
    int after = dup(file.fd);
    close(after);
    assert_int_equal(before, after);
}

static int polled(void)
{
    struct pollfd each = {.fd = file.fd, .events = POLLIN | POLLOUT | POLLPRI};
    return poll(&each, 1, 0) == 1 ? each.revents : 0;
}

static void set_nonblocking(void)
{
    assert_int_equal(fcntl(file.fd, F_SETFL, O_NONBLOCK), 0);
}

// Event loops that ask for both would be told all the time (libuv's uv_poll_start does, for InfiniStore).
static void poll__is_readable_while_something_is_there_and_never_writable(void **state)
{
    set_nonblocking();
    assert_int_equal(polled(), 0);
    alb_event_file_add(&file);
    alb_event_file_add(&file);
    assert_int_equal(polled(), POLLIN);
    assert_int_equal(alb_event_file_take(&file), 0);
    assert_int_equal(polled(), POLLIN);
    assert_int_equal(alb_event_file_take(&file), 0);
    assert_int_equal(polled(), 0);
    assert_int_equal(alb_event_file_take(&file), EAGAIN);
}

// As from a kernel's channel: each event is an edge, though the one before it has not been taken.
static void epoll__each_one_is_an_edge(void **state)
{
    struct epoll_event edges = {.events = EPOLLIN | EPOLLOUT | EPOLLET}, told;
    int instance = epoll_create1(0);
    assert_int_equal(epoll_ctl(instance, EPOLL_CTL_ADD, file.fd, &edges), 0);
    assert_int_equal(epoll_wait(instance, &told, 1, 0), 0);
    for (int i = 0; i < 3; i++) {
        alb_event_file_add(&file);
        assert_int_equal(epoll_wait(instance, &told, 1, 0), 1);
        assert_int_equal(told.events, EPOLLIN);
        assert_int_equal(epoll_wait(instance, &told, 1, 0), 0);
    }
    close(instance);
}

static void drop__takes_one_and_waits_for_none(void **state)
{
    alb_event_file_add(&file);
    assert_true(alb_event_file_drop(&file));
    assert_int_equal(polled(), 0);
    assert_false(alb_event_file_drop(&file));
}

static void *take(void *argument)
{
    return (void *)(intptr_t)alb_event_file_take(argument);
}

static void take__waits(void **state)
{
    pthread_t thread;
    void *error;
    assert_int_equal(pthread_create(&thread, NULL, take, &file), 0);
    usleep(20000); // it waits, as a rule
    alb_event_file_add(&file);
    assert_int_equal(pthread_join(thread, &error), 0);
    assert_null(error);
}

static void mode__blocks_until_the_program_says_otherwise(void **state)
{
    struct alb_event_file other;
    assert_int_equal(alb_event_file_open(&other), 0);
    assert_int_equal(alb_event_file_mode(&other), ALB_EVENT_FILE_BLOCKS);
    assert_int_equal(fcntl(other.fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(alb_event_file_mode(&other), ALB_EVENT_FILE_DOES_NOT_BLOCK);
    assert_int_equal(fcntl(other.fd, F_SETFL, 0), 0);
    assert_int_equal(alb_event_file_mode(&other), ALB_EVENT_FILE_BLOCKS);
    close(other.fd);
    assert_int_equal(alb_event_file_mode(&other), ALB_EVENT_FILE_IS_CLOSED);
    close(other.count_fd);
}

static void take__of_a_descriptor_that_the_program_has_closed(void **state)
{
    struct alb_event_file other;
    assert_int_equal(alb_event_file_open(&other), 0);
    close(other.fd);
    assert_int_equal(alb_event_file_take(&other), EBADF);
    close(other.count_fd);
}

// Neither of the two descriptors is left behind.
static void open__without_descriptors(void **state)
{
    struct rlimit before, few;
    struct alb_event_file other;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int free_fd = dup(0);
    close(free_fd);
    for (int more = 0; more < 2; more++) {
        few = before;
        few.rlim_cur = (rlim_t)(free_fd + more);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int error = alb_event_file_open(&other);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(error, EMFILE);
        int same = dup(0);
        assert_int_equal(same, free_fd);
        close(same);
    }
}

// Of this thread: preadv2(2) as kernels before 5.9 answer it for an eventfd. False: there are no filters (under qemu).
static bool refuse_to_try(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_preadv2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = ALB_COUNT(program), .filter = program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void *use_an_old_kernel(void *argument)
{
    pthread_t thread;
    void *error;
    if (!refuse_to_try())
        return argument;
    assert_false(alb_event_file_drop(&file));
    alb_event_file_add(&file);
    assert_true(alb_event_file_drop(&file));
    assert_int_equal(polled(), 0);
    assert_int_equal(pthread_create(&thread, NULL, take, &file), 0);
    for (int i = 0; i < 2000; i++) // beside one that waits, or begins to
        assert_false(alb_event_file_drop(&file));
    alb_event_file_add(&file);
    assert_int_equal(pthread_join(thread, &error), 0);
    assert_null(error);
    set_nonblocking();
    assert_int_equal(alb_event_file_take(&file), EAGAIN);
    alb_event_file_add(&file);
    assert_int_equal(alb_event_file_take(&file), 0);
    return NULL;
}

static void take__where_the_kernel_cannot_try(void **state)
{
    pthread_t thread;
    void *refused;
    assert_int_equal(pthread_create(&thread, NULL, use_an_old_kernel, state), 0);
    assert_int_equal(pthread_join(thread, &refused), 0);
    if (refused)
        skip();
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(poll__is_readable_while_something_is_there_and_never_writable),
        TEST(epoll__each_one_is_an_edge),
        TEST(drop__takes_one_and_waits_for_none),
        TEST(take__waits),
        TEST(take__where_the_kernel_cannot_try),
        TEST(mode__blocks_until_the_program_says_otherwise),
        TEST(take__of_a_descriptor_that_the_program_has_closed),
        TEST(open__without_descriptors),
        TEST(open__in_a_cancelled_thread),
    };
    return cmocka_run_group_tests_name("event_file", tests, NULL, NULL);
}
