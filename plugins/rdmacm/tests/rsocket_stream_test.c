// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };

struct ends {
    int listener, client, server;
};

static short wait_for(int fd, short events)
{
    struct pollfd poller = {.fd = fd, .events = events};
    assert_int_equal(rpoll(&poller, 1, WAIT_MS), 1);
    return poller.revents;
}

static int listen_here(struct sockaddr_storage *here)
{
    socklen_t length = sizeof(*here);
    int listener = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_true(listener >= 0);
    *here = fixture_sockaddr(fixture_address, 0);
    assert_int_equal(rbind(listener, (struct sockaddr *)here, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(rlisten(listener, 4), 0);
    assert_int_equal(rgetsockname(listener, (struct sockaddr *)here, &length), 0);
    assert_int_equal(length, sizeof(struct sockaddr_in));
    return listener;
}

static int set_number(int fd, int level, int name, int value)
{
    return rsetsockopt(fd, level, name, &value, sizeof(value));
}

static int get_number(int fd, int level, int name)
{
    int value = -1;
    socklen_t length = sizeof(value);
    assert_int_equal(rgetsockopt(fd, level, name, &value, &length), 0);
    return value;
}

// The caller does not block; both ends do afterwards.
static struct ends open_ends(int iomaps)
{
    struct sockaddr_storage here;
    struct ends ends = {.listener = listen_here(&here), .client = rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP)};
    assert_int_equal(set_number(ends.listener, SOL_RDMA, RDMA_IOMAPSIZE, iomaps), 0);
    assert_int_equal(set_number(ends.client, SOL_RDMA, RDMA_IOMAPSIZE, iomaps), 0);
    assert_int_equal(rfcntl(ends.client, F_SETFL, O_NONBLOCK), 0);
    expect_errno(rconnect(ends.client, (struct sockaddr *)&here, sizeof(struct sockaddr_in)), EINPROGRESS);
    ends.server = raccept(ends.listener, NULL, NULL);
    assert_true(ends.server >= 0);
    assert_int_equal(wait_for(ends.client, POLLOUT), POLLOUT);
    assert_int_equal(get_number(ends.client, SOL_SOCKET, SO_ERROR), 0);
    assert_int_equal(rfcntl(ends.client, F_SETFL, 0), 0);
    return ends;
}

static void close_ends(struct ends *ends)
{
    assert_int_equal(rclose(ends->client), 0);
    assert_int_equal(rclose(ends->server), 0);
    assert_int_equal(rclose(ends->listener), 0);
    expect_errno(rclose(ends->listener), EBADF);
}

static void receive_all(int fd, void *buffer, size_t length)
{
    assert_int_equal(rrecv(fd, buffer, length, MSG_WAITALL), length);
}

static void stream__both_ways(void **state)
{
    char bytes[16] = "";
    struct ends ends = open_ends(0);
    struct iovec iov[] = {{"over", 4}, {" the", 4}, {" ring", 5}};
    assert_int_equal(rwritev(ends.client, iov, 3), 13);
    receive_all(ends.server, bytes, 13);
    assert_string_equal(bytes, "over the ring");
    assert_int_equal(rsend(ends.server, "and back", 8, 0), 8);
    assert_int_equal(wait_for(ends.client, POLLIN), POLLIN);
    assert_int_equal(rrecv(ends.client, bytes, 3, MSG_PEEK), 3);
    receive_all(ends.client, bytes, 8);
    assert_memory_equal(bytes, "and back", 8);
    close_ends(&ends);
}

static void stream__names(void **state)
{
    struct sockaddr_in mine, theirs;
    socklen_t length = sizeof(mine);
    struct ends ends = open_ends(0);
    assert_int_equal(rgetsockname(ends.client, (struct sockaddr *)&mine, &length), 0);
    assert_int_equal(rgetpeername(ends.server, (struct sockaddr *)&theirs, &length), 0);
    assert_memory_equal(&mine, &theirs, sizeof(mine));
    expect_errno(rgetpeername(ends.listener, (struct sockaddr *)&theirs, &length), ENOTCONN);
    close_ends(&ends);
}

static void stream__nothing_there(void **state)
{
    char byte;
    struct ends ends = open_ends(0);
    struct pollfd poller = {.fd = ends.client, .events = POLLIN};
    expect_errno(rrecv(ends.client, &byte, 1, MSG_DONTWAIT), EAGAIN);
    assert_int_equal(rpoll(&poller, 1, 0), 0);
    assert_int_equal(rpoll(&poller, 1, 5), 0);
    assert_int_equal(rfcntl(ends.listener, F_SETFL, O_NONBLOCK), 0);
    assert_true(rfcntl(ends.listener, F_GETFL) & O_NONBLOCK);
    expect_errno(raccept(ends.listener, NULL, NULL), EAGAIN);
    expect_errno(rrecv(ends.client, &byte, 1, MSG_OOB), EOPNOTSUPP);
    expect_errno(rsend(ends.client, &byte, 1, MSG_OOB), EOPNOTSUPP);
    close_ends(&ends);
}

static void ignore(int number)
{
}

static void *send_late(void *argument)
{
    static const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    nanosleep(&pause, NULL);
    rsend(*(int *)argument, "x", 1, 0);
    return NULL;
}

// As with a socket: a signal whose handler lets calls go on ends no call but rpoll(3), any other ends all. A handler
// for crashes is none of these, whatever it says.
static void stream__and_signals(void **state)
{
    const struct itimerval often = {.it_interval = {.tv_usec = 5000}, .it_value = {.tv_usec = 5000}}, never = {0};
    const struct sigaction of_crash = {.sa_handler = ignore};
    struct timeval longest = {.tv_sec = LONG_MAX};
    struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART}, before, before_crash;
    char byte;
    pthread_t thread;
    struct ends ends = open_ends(0);
    struct pollfd poller = {.fd = ends.client, .events = POLLIN};
    assert_int_equal(sigaction(SIGBUS, &of_crash, &before_crash), 0);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(pthread_create(&thread, NULL, send_late, &ends.server), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(rrecv(ends.client, &byte, 1, 0), 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_errno(rpoll(&poller, 1, -1), EINTR);
    expect_errno(rselect(0, NULL, NULL, NULL, &longest), EINTR);
    action.sa_flags = 0;
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    expect_errno(rrecv(ends.client, &byte, 1, 0), EINTR);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(sigaction(SIGBUS, &before_crash, NULL), 0);
    close_ends(&ends);
}

// A sender that does not block fills what the receiver gives, and no more; then it flows on.
static void stream__full_and_flowing_on(void **state)
{
    static uint8_t out[65536], in[65536];
    struct ends ends = open_ends(0);
    size_t sent = 0, received = 0;
    ssize_t done;
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (uint8_t)(i * 7);
    while (sent < 64u << 20 && (wait_for(ends.client, POLLIN | POLLOUT),
                                (done = rsend(ends.client, out, sizeof(out), MSG_DONTWAIT)) == sizeof(out))) {
        sent += (size_t)done;
        struct pollfd poller = {.fd = ends.client, .events = POLLOUT};
        if (rpoll(&poller, 1, 50) == 0)
            break;
    }
    assert_true(sent > 0 && sent < 64u << 20);
    sent = sent / sizeof(out) * sizeof(out);
    while (received < sent) {
        receive_all(ends.server, in, sizeof(in));
        assert_memory_equal(in, out, sizeof(in));
        received += sizeof(in);
    }
    assert_int_equal(wait_for(ends.client, POLLOUT), POLLOUT);
    close_ends(&ends);
}

static void *send_much(void *argument)
{
    static uint8_t out[1 << 20];
    int fd = *(int *)argument;
    for (int i = 0; i < 32; i++) {
        memset(out, i, sizeof(out));
        if (rsend(fd, out, sizeof(out), 0) != sizeof(out))
            return "short";
    }
    return rclose(fd) ? "close" : NULL; // with much on its way
}

static void stream__closed_with_data_on_its_way(void **state)
{
    static uint8_t in[1 << 20];
    struct ends ends = open_ends(0);
    pthread_t thread;
    void *trouble;
    assert_int_equal(pthread_create(&thread, NULL, send_much, &ends.client), 0);
    for (int i = 0; i < 32; i++) {
        receive_all(ends.server, in, sizeof(in));
        assert_int_equal(in[0], i);
        assert_int_equal(in[sizeof(in) - 1], i);
    }
    assert_int_equal(rrecv(ends.server, in, 1, 0), 0);
    assert_int_equal(pthread_join(thread, &trouble), 0);
    assert_null(trouble);
    assert_true(wait_for(ends.server, POLLIN) & POLLHUP);
    expect_errno(rsend(ends.server, in, 1, 0), ECONNRESET);
    assert_int_equal(rclose(ends.server), 0);
    assert_int_equal(rclose(ends.listener), 0);
}

static void *close_socket(void *argument)
{
    return rclose(*(int *)argument) ? argument : NULL;
}

// In some milliseconds; a farewell that the peer has no receive for is given up after five seconds.
static void expect_closed(int fd)
{
    enum { LIMIT_S = 4 };
    struct timespec limit;
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_create(&thread, NULL, close_socket, &fd), 0);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += LIMIT_S;
    assert_int_equal(pthread_timedjoin_np(thread, &failed, &limit), 0);
    assert_null(failed);
}

// A byte a message, as many as the peer takes, which does not read them.
static size_t send_all_that_is_granted(int fd)
{
    size_t sent = 0;
    for (struct pollfd poller = {.fd = fd, .events = POLLOUT}; rpoll(&poller, 1, 50) == 1;)
        sent += rsend(fd, "x", 1, MSG_DONTWAIT) == 1;
    return sent;
}

// What it says of its end needs a receive that the peer has not promised for data.
static void stream__closed_when_all_was_sent_that_is_granted(void **state)
{
    char byte;
    struct ends ends = open_ends(0);
    size_t sent = send_all_that_is_granted(ends.client), received = 0;
    assert_true(sent > 0);
    expect_closed(ends.client);
    while (rrecv(ends.server, &byte, 1, 0) == 1)
        received++;
    assert_int_equal(received, sent);
    assert_int_equal(rclose(ends.server), 0);
    assert_int_equal(rclose(ends.listener), 0);
}

// Both have sent all, and neither has read.
static void stream__closed_by_both_with_data_that_nobody_reads(void **state)
{
    struct ends ends = open_ends(0);
    assert_true(send_all_that_is_granted(ends.client) > 0);
    assert_true(send_all_that_is_granted(ends.server) > 0);
    expect_closed(ends.server);
    expect_closed(ends.client);
    assert_int_equal(rclose(ends.listener), 0);
}

static void stream__half_closed(void **state)
{
    char bytes[8];
    struct ends ends = open_ends(0);
    assert_int_equal(rsend(ends.client, "last", 4, 0), 4);
    assert_int_equal(rshutdown(ends.client, SHUT_WR), 0);
    expect_errno(rsend(ends.client, "more", 4, 0), EPIPE);
    receive_all(ends.server, bytes, 4);
    assert_int_equal(rrecv(ends.server, bytes, 1, 0), 0);
    assert_int_equal(rsend(ends.server, "answer", 6, 0), 6);
    receive_all(ends.client, bytes, 6);
    assert_memory_equal(bytes, "answer", 6);
    assert_int_equal(rshutdown(ends.server, SHUT_WR), 0);
    assert_int_equal(rrecv(ends.client, bytes, 1, 0), 0);
    expect_errno(rshutdown(ends.client, 7), EINVAL);
    close_ends(&ends);
}

static void connect__nobody_listens(void **state)
{
    struct sockaddr_storage here;
    int listener = listen_here(&here), fd = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rclose(listener), 0);
    expect_errno(rsend(fd, "x", 1, 0), ENOTCONN);
    expect_errno(rconnect(fd, (struct sockaddr *)&here, sizeof(struct sockaddr_in)), ECONNREFUSED);
    assert_int_equal(rclose(fd), 0);
    fd = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rfcntl(fd, F_SETFL, O_NONBLOCK), 0);
    expect_errno(rconnect(fd, (struct sockaddr *)&here, sizeof(struct sockaddr_in)), EINPROGRESS);
    assert_true(wait_for(fd, POLLOUT) & POLLERR);
    assert_int_equal(get_number(fd, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
    assert_int_equal(get_number(fd, SOL_SOCKET, SO_ERROR), 0);
    assert_int_equal(rclose(fd), 0);
}

static int call_until_settled(int fd, const struct sockaddr *there)
{
    while (rconnect(fd, there, sizeof(struct sockaddr_in))) {
        if (errno != EINPROGRESS)
            return errno;
        poll(NULL, 0, 1);
    }
    return 0;
}

// A program that does not block may learn how its call went by calling again, as with TCP on Linux.
static void connect__again(void **state)
{
    struct sockaddr_storage here;
    const struct sockaddr *there = (struct sockaddr *)&here;
    int listener = listen_here(&here), client = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rfcntl(client, F_SETFL, O_NONBLOCK), 0);
    expect_errno(rconnect(client, there, sizeof(struct sockaddr_in)), EINPROGRESS);
    assert_int_equal(call_until_settled(client, there), 0);
    expect_errno(rconnect(client, there, sizeof(struct sockaddr_in)), EISCONN);
    close_ends(&(struct ends){listener, client, raccept(listener, NULL, NULL)});
}

static void connect__again_where_nobody_listens(void **state)
{
    struct sockaddr_storage here;
    const struct sockaddr *there = (struct sockaddr *)&here;
    int listener = listen_here(&here), client = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rclose(listener), 0);
    assert_int_equal(rfcntl(client, F_SETFL, O_NONBLOCK), 0);
    expect_errno(rconnect(client, there, sizeof(struct sockaddr_in)), EINPROGRESS);
    assert_int_equal(call_until_settled(client, there), ECONNREFUSED);
    expect_errno(rconnect(client, there, sizeof(struct sockaddr_in)), ENOTCONN);
    assert_int_equal(rclose(client), 0);
}

// The port of the device is held by something that takes requests and keeps quiet: a call ends nevertheless.
static void connect__nobody_answers(void **state)
{
    char address[32]; // not used by the same test on the other device either
    snprintf(address, sizeof(address), "127.%d.%d.%d", 192 + getpid() / 65536 % 62, getpid() / 256 % 256,
             getpid() % 255 + 1);
    struct sockaddr_storage held = fixture_sockaddr(address, 4791), there = fixture_sockaddr(address, 9);
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    int silent = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), client = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(silent, (struct sockaddr *)&held, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(rbind(client, (struct sockaddr *)&here, sizeof(struct sockaddr_in)), 0);
    expect_errno(rconnect(client, (struct sockaddr *)&there, sizeof(struct sockaddr_in)), ETIMEDOUT);
    char byte;
    assert_int_equal(recv(silent, &byte, 1, MSG_DONTWAIT), 1); // it was asked
    assert_int_equal(rclose(client), 0);
    close(silent);
}

static void poll__with_ordinary_descriptors(void **state)
{
    int pipes[2];
    fd_set reads;
    struct timeval none = {0};
    struct ends ends = open_ends(0);
    assert_int_equal(pipe(pipes), 0);
    struct pollfd both[] = {{.fd = pipes[0], .events = POLLIN}, {.fd = ends.server, .events = POLLIN}, {.fd = -1}};
    assert_int_equal(rpoll(both, 3, 0), 0);
    assert_int_equal(write(pipes[1], "x", 1), 1);
    assert_int_equal(rpoll(both, 3, -1), 1);
    assert_int_equal(both[0].revents, POLLIN);
    assert_int_equal(rsend(ends.client, "y", 1, 0), 1);
    wait_for(ends.server, POLLIN);
    assert_int_equal(rpoll(both, 3, 0), 2);
    FD_ZERO(&reads);
    FD_SET(pipes[0], &reads);
    FD_SET(ends.server, &reads);
    FD_SET(ends.client, &reads);
    assert_int_equal(rselect(FD_SETSIZE, &reads, NULL, NULL, &none), 2);
    assert_true(FD_ISSET(ends.server, &reads) && !FD_ISSET(ends.client, &reads));
    close(pipes[0]);
    close(pipes[1]);
    close_ends(&ends);
}

// librspreload takes a number just before it asks for an rsocket, and its select finds only rsockets that lie above it.
// What another thread lets go in between must not come in its way.
static void numbers__above_what_was_taken_before(void **state)
{
    struct sockaddr_storage here;
    int listener = listen_here(&here), client = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rfcntl(client, F_SETFL, O_NONBLOCK), 0);
    expect_errno(rconnect(client, (struct sockaddr *)&here, sizeof(struct sockaddr_in)), EINPROGRESS);
    assert_int_equal(wait_for(listener, POLLIN), POLLIN);
    int others = eventfd(0, EFD_CLOEXEC), before = eventfd(0, EFD_CLOEXEC);
    close(others);
    int server = raccept(listener, NULL, NULL);
    assert_true(server > before);
    others = eventfd(0, EFD_CLOEXEC);
    assert_true(others < before);
    close(others);
    int another = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_true(another > before);
    close(before);
    assert_int_equal(rclose(another), 0);
    close_ends(&(struct ends){listener, client, server});
}

// The stream has its number already: all that accepting could do without one is to lose it.
static void accept__no_descriptor_is_free(void **state)
{
    enum { LIMIT = 64 };
    struct rlimit usual, low;
    struct sockaddr_storage here;
    int taken[LIMIT], count = 0;
    int listener = listen_here(&here), client = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(rconnect(client, (struct sockaddr *)&here, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(wait_for(listener, POLLIN), POLLIN);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    low = (struct rlimit){LIMIT, usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    while (count < LIMIT && (taken[count] = dup(STDERR_FILENO)) >= 0)
        count++;
    int server = raccept(listener, NULL, NULL);
    while (count > 0)
        close(taken[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_true(server >= 0);
    assert_int_equal(rsend(client, "x", 1, 0), 1);
    receive_all(server, &(char){0}, 1);
    close_ends(&(struct ends){.listener = listener, .client = client, .server = server});
}

static void options__kept_and_refused(void **state)
{
    struct ends ends = open_ends(0);
    assert_int_equal(set_number(ends.client, IPPROTO_TCP, TCP_NODELAY, 1), 0);
    assert_int_equal(get_number(ends.client, IPPROTO_TCP, TCP_NODELAY), 1);
    assert_int_equal(get_number(ends.listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
    assert_true(get_number(ends.client, IPPROTO_TCP, TCP_MAXSEG) >= 1024);
    expect_errno(set_number(ends.client, SOL_RDMA, RDMA_SQSIZE, 64), EINVAL); // it is connected
    expect_errno(set_number(ends.client, SOL_SOCKET, SO_REUSEPORT, 1), ENOPROTOOPT);
    expect_errno(set_number(ends.client, IPPROTO_TCP, TCP_CORK, 1), ENOPROTOOPT);
    expect_errno(set_number(ends.client, SOL_RDMA, RDMA_ROUTE, 1), EOPNOTSUPP);
    expect_errno(rsocket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ESOCKTNOSUPPORT);
    expect_errno(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
    close_ends(&ends);
}

static void iomap__written_by_offset(void **state)
{
    static char buffer[4096];
    char byte;
    struct ends ends = open_ends(2);
    assert_int_equal(riomap(ends.server, buffer, sizeof(buffer), PROT_WRITE, 0, 1000), 1000);
    expect_errno((int)(ssize_t)riowrite(ends.client, "early", 5, 1000, 0), EFAULT);
    assert_int_equal(rsend(ends.server, "!", 1, 0), 1); // after which the peer knows
    receive_all(ends.client, &byte, 1);
    assert_int_equal(riowrite(ends.client, "placed", 6, 1000 + 4090, 0), 6);
    expect_errno((int)(ssize_t)riowrite(ends.client, "beyond", 6, 1000 + 4096, 0), EFAULT);
    assert_int_equal(rsend(ends.client, "!", 1, 0), 1);
    receive_all(ends.server, &byte, 1);
    assert_memory_equal(buffer + 4090, "placed", 6);
    assert_int_equal(riounmap(ends.server, buffer, sizeof(buffer)), 0);
    expect_errno(riounmap(ends.server, buffer, sizeof(buffer)), EINVAL);
    assert_int_equal(rsend(ends.server, "!", 1, 0), 1);
    receive_all(ends.client, &byte, 1);
    expect_errno((int)(ssize_t)riowrite(ends.client, "late", 4, 1000, 0), EFAULT);
    close_ends(&ends);
}

// What is announced is announced as long as there is a peer; then calls say that there is none, and wait for nothing.
static void iomap__whose_peer_has_gone(void **state)
{
    static char buffer[4096];
    char byte;
    struct ends ends = open_ends(2);
    assert_int_equal(riomap(ends.client, buffer, sizeof(buffer), PROT_WRITE, 0, 0), 0);
    assert_int_equal(rsend(ends.client, "!", 1, 0), 1);
    receive_all(ends.server, &byte, 1);
    assert_int_equal(rshutdown(ends.server, SHUT_WR), 0);
    expect_errno((int)(ssize_t)riowrite(ends.server, "late", 4, 0, MSG_DONTWAIT), EPIPE);
    assert_int_equal(rclose(ends.server), 0);
    while (!(wait_for(ends.client, POLLIN) & POLLHUP))
        ;
    assert_int_equal(riounmap(ends.client, buffer, sizeof(buffer)), 0);
    expect_errno((int)rsend(ends.client, "!", 1, MSG_DONTWAIT), ECONNRESET);
    expect_errno((int)(ssize_t)riowrite(ends.client, "late", 4, 0, MSG_DONTWAIT), ENOTCONN);
    assert_int_equal(rclose(ends.client), 0);
    assert_int_equal(rclose(ends.listener), 0);
}

static void *send_one(void *argument)
{
    rsend(*(int *)argument, "x", 1, 0);
    return NULL;
}

// A thread that sends as much as its peer bears, and then waits until it may tell the peer of a mapping.
static pthread_t begin_to_announce(struct ends *ends, void *buffer, size_t length)
{
    static const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    struct pollfd poller = {.fd = ends->client, .events = POLLOUT};
    pthread_t thread;
    while (rpoll(&poller, 1, 50) == 1)
        assert_int_equal(rsend(ends->client, "x", 1, MSG_DONTWAIT), 1);
    assert_int_equal(riounmap(ends->client, buffer, length), 0);
    assert_int_equal(pthread_create(&thread, NULL, send_one, &ends->client), 0);
    nanosleep(&pause, NULL);
    return thread;
}

static void join(pthread_t thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
}

static void iomap__whose_peer_goes_while_it_is_announced(void **state)
{
    static char buffer[4096];
    struct ends ends = open_ends(2);
    assert_int_equal(riomap(ends.client, buffer, sizeof(buffer), PROT_WRITE, 0, 0), 0);
    pthread_t thread = begin_to_announce(&ends, buffer, sizeof(buffer));
    assert_int_equal(rclose(ends.server), 0);
    join(thread);
    assert_int_equal(rclose(ends.client), 0);
    assert_int_equal(rclose(ends.listener), 0);
}

static void receive_what_is_there(int fd)
{
    char bytes[64];
    while (rrecv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
}

static void iomap__changed_while_another_is_announced(void **state)
{
    static char first[4096], second[4096];
    struct ends ends = open_ends(2);
    assert_int_equal(riomap(ends.client, first, sizeof(first), PROT_WRITE, 0, 0), 0);
    assert_int_equal(riomap(ends.client, second, sizeof(second), PROT_WRITE, 0, 8192), 8192);
    pthread_t thread = begin_to_announce(&ends, second, sizeof(second));
    assert_int_equal(riounmap(ends.client, first, sizeof(first)), 0);
    receive_what_is_there(ends.server);
    join(thread);
    receive_what_is_there(ends.server);
    assert_int_equal(rsend(ends.client, "!", 1, 0), 1);
    char last = 0;
    while (last != '!')
        receive_all(ends.server, &last, 1);
    expect_errno((int)(ssize_t)riowrite(ends.server, "late", 4, 8192, 0), EFAULT);
    expect_errno((int)(ssize_t)riowrite(ends.server, "late", 4, 0, 0), EFAULT);
    close_ends(&ends);
}

static void options__buffers_are_bounded(void **state)
{
    static const int names[] = {SO_RCVBUF, SO_SNDBUF};
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(set_number(fd, SOL_SOCKET, names[i], INT_MAX), 0);
        assert_int_equal(get_number(fd, SOL_SOCKET, names[i]), 1 << 30);
        assert_int_equal(set_number(fd, SOL_SOCKET, names[i], -1), 0);
        assert_int_equal(get_number(fd, SOL_SOCKET, names[i]), 4096);
    }
    assert_int_equal(rclose(fd), 0);
}

// A child has none of these rsockets, and may have its own.
static bool child_speaks(const struct ends *ends, const struct sockaddr_storage *here)
{
    char byte = 7;
    if (rwrite(ends->client, &byte, 1) != -1 || errno != EBADF || rclose(ends->listener) != -1 || errno != EBADF)
        return false;
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && rconnect(fd, (const struct sockaddr *)here, sizeof(struct sockaddr_in)) == 0 &&
           rwrite(fd, &byte, 1) == 1 && rread(fd, &byte, 1) == 1 && byte == 8 && rclose(fd) == 0;
}

static void fork__child_has_its_own(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow such a child
#endif
    enum { HUNG_S = 30 };
    struct sockaddr_storage here;
    socklen_t length = sizeof(here);
    struct ends ends = open_ends(0);
    assert_int_equal(rgetsockname(ends.listener, (struct sockaddr *)&here, &length), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(HUNG_S);
        _exit(child_speaks(&ends, &here) ? 0 : 1);
    }
    char byte;
    int fd = raccept(ends.listener, NULL, NULL), status;
    assert_int_equal(rread(fd, &byte, 1), 1);
    byte = 8;
    assert_int_equal(rwrite(fd, &byte, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rwrite(ends.client, &byte, 1), 1); // the parent's go on
    assert_int_equal(rread(ends.server, &byte, 1), 1);
    close_ends(&ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options__buffers_are_bounded),
        cmocka_unit_test(stream__both_ways),
        cmocka_unit_test(stream__names),
        cmocka_unit_test(stream__nothing_there),
        cmocka_unit_test(stream__and_signals),
        cmocka_unit_test(stream__full_and_flowing_on),
        cmocka_unit_test(stream__closed_with_data_on_its_way),
        cmocka_unit_test(stream__closed_when_all_was_sent_that_is_granted),
        cmocka_unit_test(stream__closed_by_both_with_data_that_nobody_reads),
        cmocka_unit_test(stream__half_closed),
        cmocka_unit_test(connect__nobody_listens),
        cmocka_unit_test(connect__again),
        cmocka_unit_test(connect__again_where_nobody_listens),
        cmocka_unit_test(connect__nobody_answers),
        cmocka_unit_test(poll__with_ordinary_descriptors),
        cmocka_unit_test(numbers__above_what_was_taken_before),
        cmocka_unit_test(accept__no_descriptor_is_free),
        cmocka_unit_test(options__kept_and_refused),
        cmocka_unit_test(iomap__written_by_offset),
        cmocka_unit_test(iomap__whose_peer_has_gone),
        cmocka_unit_test(iomap__whose_peer_goes_while_it_is_announced),
        cmocka_unit_test(iomap__changed_while_another_is_announced),
        cmocka_unit_test(fork__child_has_its_own),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
