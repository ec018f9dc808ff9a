// SPDX-License-Identifier: BSD-2-Clause
// Threads that are cancelled within a call, or leave it by a handler's jump, leave rsockets that others go on with.
#include "fixture.h"

#include "device/tests/cancelled.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTENER, CLIENT, SERVER };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

static int error_of(int fd)
{
    int error = -1;
    socklen_t length = sizeof(error);
    assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length), 0);
    return error;
}

static void open_ends(int fds[3])
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    socklen_t length = sizeof(here);
    fds[LISTENER] = rsocket(AF_INET, SOCK_STREAM, 0);
    fds[CLIENT] = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rbind(fds[LISTENER], (struct sockaddr *)&here, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(rlisten(fds[LISTENER], 1), 0);
    assert_int_equal(rgetsockname(fds[LISTENER], (struct sockaddr *)&here, &length), 0);
    assert_int_equal(rfcntl(fds[CLIENT], F_SETFL, O_NONBLOCK), 0);
    expect_errno(rconnect(fds[CLIENT], (struct sockaddr *)&here, sizeof(struct sockaddr_in)), EINPROGRESS);
    struct pollfd poller = {.fd = fds[CLIENT], .events = POLLOUT};
    fds[SERVER] = raccept(fds[LISTENER], NULL, NULL);
    assert_int_equal(rpoll(&poller, 1, -1), 1);
    assert_int_equal(error_of(fds[CLIENT]), 0);
    assert_int_equal(rfcntl(fds[CLIENT], F_SETFL, 0), 0);
}

static void close_ends(const int fds[3])
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(rclose(fds[i]), 0);
}

static void *receive_one(void *fd)
{
    char byte;
    return (void *)rrecv(*(int *)fd, &byte, 1, 0);
}

static void *poll_one(void *fd)
{
    struct pollfd poller = {.fd = *(int *)fd, .events = POLLIN};
    return (void *)(intptr_t)rpoll(&poller, 1, -1);
}

static void *accept_one(void *fd)
{
    return (void *)(intptr_t)raccept(*(int *)fd, NULL, NULL);
}

static void expect_cancelled(void *(*run)(void *), int fd)
{
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, run, &fd), 0);
    usleep(20000); // it sleeps, as a rule
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

static void cancel__of_threads_that_wait(void **state)
{
    char byte;
    int fds[3];
    open_ends(fds);
    expect_cancelled(receive_one, fds[SERVER]);
    expect_cancelled(poll_one, fds[SERVER]);
    expect_cancelled(accept_one, fds[LISTENER]);
    assert_int_equal(rsend(fds[CLIENT], "x", 1, 0), 1);
    assert_int_equal(rrecv(fds[SERVER], &byte, 1, 0), 1);
    close_ends(fds);
}

static void open_and_close(void *unused)
{
    struct rdma_cm_id *id;
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static void cancel__does_not_come_while_things_are_made(void **state)
{
    int before = dup(STDERR_FILENO);
    close(before);
    cancelled_call(open_and_close, NULL);
    int after = dup(STDERR_FILENO);
    close(after);
    assert_int_equal(before, after);
}

static void *send_for_ever(void *fd)
{
    static const char bytes[3000];
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        rsend(*(int *)fd, bytes, sizeof(bytes), 0);
    return NULL;
}

static void *receive_for_ever(void *fd)
{
    char bytes[2000];
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        rrecv(*(int *)fd, bytes, sizeof(bytes), 0);
    return NULL;
}

// As iperf3 ends its threads: wherever they are.
static void cancel__at_any_moment(void **state)
{
    if (IS_SANITIZED) // the sanitizers' own end of a thread does not stand it
        skip();
    int fds[3];
    open_ends(fds);
    for (int round = 0; round < 50; round++) {
        pthread_t sender, receiver;
        assert_int_equal(pthread_create(&sender, NULL, send_for_ever, &fds[CLIENT]), 0);
        assert_int_equal(pthread_create(&receiver, NULL, receive_for_ever, &fds[SERVER]), 0);
        usleep((useconds_t)(100 + 37 * round));
        assert_int_equal(pthread_cancel(sender), 0);
        assert_int_equal(pthread_cancel(receiver), 0);
        assert_int_equal(pthread_join(sender, NULL), 0);
        assert_int_equal(pthread_join(receiver, NULL), 0);
        assert_int_equal(error_of(fds[CLIENT]), 0);
        assert_int_equal(error_of(fds[SERVER]), 0);
    }
    close_ends(fds);
}

// ---- handlers of signals

static sigjmp_buf away;

static void jump(int number)
{
    siglongjmp(away, number);
}

static void end(int number)
{
    exit(number);
}

// The handler runs in the calling thread.
static void raise_after(useconds_t us, void (*handler)(int))
{
    const struct itimerval once = {.it_value.tv_usec = us};
    signal(SIGALRM, handler);
    usleep(30000); // handlers are looked for now and then
    assert_int_equal(setitimer(ITIMER_REAL, &once, NULL), 0);
}

static void *receive_all(void *fd)
{
    static char bytes[65536];
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (rrecv(*(int *)fd, bytes, sizeof(bytes), 0) > 0)
        ;
    return NULL;
}

static void leave_by_jump(int fd, useconds_t us)
{
    static const char bytes[65536];
    if (sigsetjmp(away, true))
        return;
    raise_after(us, jump);
    for (;;)
        assert_true(rsend(fd, bytes, sizeof(bytes), 0) > 0);
}

static void leave_poll_by_jump(int fd, useconds_t us)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    if (sigsetjmp(away, true))
        return;
    raise_after(us, jump);
    for (;;)
        rpoll(&poller, 1, 0);
}

// As iperf3 does, which then asks about what it has sent, and closes.
static void jump__out_of_a_call(void **state)
{
    if (IS_SANITIZED) // they call handlers when they like, or do not stand it
        skip();
    int fds[3];
    pthread_t receiver;
    open_ends(fds);
    assert_int_equal(pthread_create(&receiver, NULL, receive_all, &fds[SERVER]), 0);
    for (useconds_t round = 0; round < 20; round++) {
        leave_by_jump(fds[CLIENT], 500 + 37 * round);
        leave_poll_by_jump(fds[CLIENT], 500 + 37 * round);
        assert_int_equal(error_of(fds[CLIENT]), 0);
    }
    assert_int_equal(rclose(fds[CLIENT]), 0);
    assert_int_equal(pthread_join(receiver, NULL), 0);
    assert_int_equal(rclose(fds[SERVER]), 0);
    assert_int_equal(rclose(fds[LISTENER]), 0);
    signal(SIGALRM, SIG_DFL);
}

static void send_until_the_end(useconds_t us)
{
    static const char bytes[3000];
    int fds[3];
    pthread_t receiver;
    open_ends(fds);
    assert_int_equal(pthread_create(&receiver, NULL, receive_all, &fds[SERVER]), 0);
    raise_after(us, end);
    for (;;)
        rsend(fds[CLIENT], bytes, sizeof(bytes), 0);
}

// A program that is this test once more, for exit(3) in a fork's child would end the parent's files, too.
static void exit__within_a_call(void **state)
{
    if (IS_SANITIZED)
        skip();
    char us[16], *const arguments[] = {(char *)*state, us, NULL};
    for (int round = 0; round < 8; round++) {
        int status;
        snprintf(us, sizeof(us), "%d", 1000 + 137 * round);
        pid_t child = fork();
        if (child == 0) {
            execv("/proc/self/exe", arguments);
            _exit(1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), SIGALRM);
    }
}

int main(int count, char **arguments)
{
    if (count == 2) {
        fixture_setup(NULL);
        send_until_the_end((useconds_t)atoi(arguments[1]));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jump__out_of_a_call),          cmocka_unit_test_prestate(exit__within_a_call, arguments[0]),
        cmocka_unit_test(cancel__of_threads_that_wait), cmocka_unit_test(cancel__does_not_come_while_things_are_made),
        cmocka_unit_test(cancel__at_any_moment),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
