// SPDX-License-Identifier: BSD-2-Clause
// What all transports of flow share: the TCP connections where the sides meet, clock, sleep, percentiles.
#include "bench/flow.h"
#include "bench/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DIAL_TRIES 500

void alb_flow_die(const char *what)
{
    alb_flow_fail(what, strerror(errno));
}

void alb_flow_fail(const char *what, const char *why)
{
    fprintf(stderr, "flow: %s: %s\n", what, why);
    exit(1);
}

alb_time alb_flow_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (alb_time)now.tv_sec * ALB_NS_PER_S + (alb_time)now.tv_nsec;
}

static socklen_t parse_address(const char *text, uint16_t port, struct sockaddr_storage *address)
{
    socklen_t length = alb_bench_parse_address(text, port, address);
    if (!length)
        alb_flow_fail(text, "not an address");
    return length;
}

int alb_flow_listen(const struct alb_flow_options *options, uint16_t port)
{
    struct sockaddr_storage address;
    socklen_t length = parse_address(options->local, port, &address);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, ALB_FLOW_SENDERS_MAX) != 0)
        alb_flow_die("listen");
    return fd;
}

uint16_t alb_flow_port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } address = {.in6 = {.sin6_family = AF_UNSPEC}};
    socklen_t length = sizeof(address);
    if (getsockname(fd, &address.any, &length) != 0)
        alb_flow_die("getsockname");
    return ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port : address.in.sin_port);
}

static void be_prompt(int fd)
{
    int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
        alb_flow_die("TCP_NODELAY");
}

int alb_flow_dial(const struct alb_flow_options *options, uint16_t port)
{
    struct sockaddr_storage here, there;
    socklen_t here_length = parse_address(options->local, 0, &here);
    socklen_t there_length = parse_address(options->peer, port, &there);
    for (int i = 0; i < DIAL_TRIES; i++) {
        int fd = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&here, here_length) != 0)
            alb_flow_die("bind");
        if (connect(fd, (struct sockaddr *)&there, there_length) == 0) {
            be_prompt(fd);
            return fd;
        }
        close(fd);
        nanosleep(&(struct timespec){.tv_nsec = 20 * ALB_NS_PER_MS}, NULL);
    }
    alb_flow_die("connect");
}

int alb_flow_accept(int listener)
{
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        alb_flow_die("accept");
    be_prompt(fd);
    return fd;
}

void alb_flow_exchange(int fd, const struct alb_flow_blob *mine, struct alb_flow_blob *theirs)
{
    if (send(fd, mine, sizeof(*mine), MSG_NOSIGNAL) != (ssize_t)sizeof(*mine))
        alb_flow_die("exchange");
    if (recv(fd, theirs, sizeof(*theirs), MSG_WAITALL) != (ssize_t)sizeof(*theirs))
        alb_flow_fail("exchange", "the other side went away");
}

void alb_flow_rest(const struct alb_flow_options *options, int timeout_ms)
{
    int fd = options->is_event ? options->ops->arm() : -1;
    if (fd < 0)
        return;
    struct pollfd readable = {fd, POLLIN, 0};
    if (poll(&readable, 1, timeout_ms) < 0 && errno != EINTR)
        alb_flow_die("poll");
}

static uint64_t content(uint32_t word, uint32_t offset)
{
    return (word + 1) * 0x9e3779b97f4a7c15u + offset;
}

void alb_flow_fill(uint8_t *message, uint32_t bytes, uint32_t word)
{
    for (uint32_t offset = sizeof(uint64_t); offset + sizeof(uint64_t) <= bytes; offset += sizeof(uint64_t)) {
        uint64_t value = content(word, offset);
        memcpy(message + offset, &value, sizeof(value));
    }
}

bool alb_flow_is_right(const uint8_t *message, uint32_t bytes, uint32_t word)
{
    for (uint32_t offset = sizeof(uint64_t); offset + sizeof(uint64_t) <= bytes; offset += sizeof(uint64_t)) {
        uint64_t value;
        memcpy(&value, message + offset, sizeof(value));
        if (value != content(word, offset))
            return false;
    }
    return true;
}

void alb_flow_times_add(struct alb_flow_times *times, uint64_t ns)
{
    if (times->count == times->room) {
        times->room = times->room ? 2 * times->room : 4096;
        times->ns = realloc(times->ns, times->room * sizeof(*times->ns));
        if (!times->ns)
            alb_flow_die("realloc");
    }
    times->ns[times->count++] = ns;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void alb_flow_times_print(struct alb_flow_times *times, const char *name)
{
    if (!times->count)
        return;
    qsort(times->ns, times->count, sizeof(*times->ns), compare);
    static const struct {
        const char *name;
        uint32_t per_mille;
    } marks[] = {{"least", 0}, {"p50", 500}, {"p90", 900}, {"p99", 990}, {"p999", 999}};
    printf(",\"%s\":{\"count\":%u", name, times->count);
    for (size_t i = 0; i < ALB_COUNT(marks); i++)
        printf(",\"%s_us\":%.2f", marks[i].name,
               (double)times->ns[(uint64_t)times->count * marks[i].per_mille / 1000] / 1e3);
    printf(",\"most_us\":%.2f}", (double)times->ns[times->count - 1] / 1e3);
}
