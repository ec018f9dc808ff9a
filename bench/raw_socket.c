// SPDX-License-Identifier: BSD-2-Clause
// The socket of the raw limit: gathered bursts out (GSO or sendmmsg), whole bursts in (GRO or recvmmsg).
#define _GNU_SOURCE // sendmmsg, recvmmsg
#include "bench/raw.h"

#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define RECEIVE_BATCH 32 // buffers of one recvmmsg where bursts come apart

static const uint8_t trailer[ALB_RAW_TRAILER_BYTES];

void alb_raw_die(const char *what)
{
    fprintf(stderr, "raw_udp: %s: %s\n", what, strerror(errno));
    exit(1);
}

alb_time alb_raw_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (alb_time)now.tv_sec * ALB_NS_PER_S + (alb_time)now.tv_nsec;
}

uint64_t alb_raw_cpu_ns(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    uint64_t us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u;
    return (us + (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)) * ALB_NS_PER_US;
}

static socklen_t address_length(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static void set_option(int fd, int level, int name, int value, const char *what)
{
    if (setsockopt(fd, level, name, &value, sizeof(value)) != 0)
        alb_raw_die(what);
}

static int get_option(int fd, int name)
{
    int value = 0;
    socklen_t length = sizeof(value);
    getsockopt(fd, SOL_SOCKET, name, &value, &length);
    return value;
}

void alb_raw_socket_open(struct alb_raw_socket *s, const struct alb_raw_options *options)
{
    *s = (struct alb_raw_socket){.gso = options->gso, .wait = options->wait};
    s->fd = socket(options->local.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        alb_raw_die("socket");
    if (options->buffer_bytes) {
        set_option(s->fd, SOL_SOCKET, SO_RCVBUF, (int)options->buffer_bytes, "SO_RCVBUF");
        set_option(s->fd, SOL_SOCKET, SO_SNDBUF, (int)options->buffer_bytes, "SO_SNDBUF");
    }
    // What the device asks of its sockets: no fragments, and the ECN mark and hop limit of what comes.
    if (options->local.ss_family == AF_INET6) {
        set_option(s->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, "IPV6_MTU_DISCOVER");
        set_option(s->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "IPV6_RECVTCLASS");
        set_option(s->fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1, "IPV6_RECVHOPLIMIT");
    } else {
        set_option(s->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, "IP_MTU_DISCOVER");
        set_option(s->fd, IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS");
        set_option(s->fd, IPPROTO_IP, IP_RECVTTL, 1, "IP_RECVTTL");
    }
    set_option(s->fd, SOL_SOCKET, SO_RXQ_OVFL, 1, "SO_RXQ_OVFL");
    if (s->gso)
        set_option(s->fd, IPPROTO_UDP, UDP_GRO, 1, "UDP_GRO");
    if (bind(s->fd, (const struct sockaddr *)&options->local, address_length(&options->local)) != 0)
        alb_raw_die("bind");
    s->receive_buffer_bytes = get_option(s->fd, SO_RCVBUF);
    s->send_buffer_bytes = get_option(s->fd, SO_SNDBUF);
    s->peer = options->peer;
    s->peer_length = options->peer.ss_family ? address_length(&options->peer) : 0;
    s->buffer_count = s->gso ? 1 : RECEIVE_BATCH;
    s->buffers = calloc(s->buffer_count, sizeof(*s->buffers));
    if (!s->buffers)
        alb_raw_die("calloc");
    memset(s->buffers, 1, s->buffer_count * sizeof(*s->buffers)); // touched now, not in the measured time
}

bool alb_raw_burst_add(struct alb_raw_burst *burst, const struct alb_raw_socket *s, const uint8_t *payload,
                       uint32_t payload_bytes)
{
    uint32_t bytes = payload_bytes + ALB_RAW_OVERHEAD_BYTES, index = burst->segment_count;
    if (index > 0) {
        // GSO: after a shorter segment nothing may follow, and none may be longer than the first.
        bool is_full = burst->bytes == index * burst->segment_bytes;
        if (index == ALB_RAW_SEGMENTS_MAX || burst->bytes + bytes > ALB_RAW_BURST_BYTES ||
            (s->gso && (!is_full || bytes > burst->segment_bytes)))
            return false;
    } else {
        burst->segment_bytes = bytes;
        burst->bytes = 0;
    }
    burst->headers[index] = (struct alb_raw_header){.kind = ALB_RAW_DATA};
    struct iovec *iov = &burst->iov[3 * index];
    iov[0] = (struct iovec){&burst->headers[index], ALB_RAW_HEADER_BYTES};
    iov[1] = (struct iovec){(void *)payload, payload_bytes};
    iov[2] = (struct iovec){(void *)trailer, ALB_RAW_TRAILER_BYTES};
    burst->bytes += bytes;
    burst->segment_count++;
    return true;
}

static bool must_retry(struct alb_raw_socket *s)
{
    if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED && errno != ENOBUFS)
        return false;
    if (s->wait == ALB_RAW_BLOCK && errno == EAGAIN) {
        struct pollfd writable = {s->fd, POLLOUT, 0};
        poll(&writable, 1, 100);
    } else {
        sched_yield();
    }
    return true;
}

static void send_segmented(struct alb_raw_burst *burst, struct alb_raw_socket *s)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {0};
    struct msghdr message = {.msg_name = &s->peer,
                             .msg_namelen = s->peer_length,
                             .msg_iov = burst->iov,
                             .msg_iovlen = (size_t)3 * burst->segment_count};
    if (burst->segment_count > 1) {
        uint16_t segment_bytes = (uint16_t)burst->segment_bytes;
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        control.header.cmsg_level = IPPROTO_UDP;
        control.header.cmsg_type = UDP_SEGMENT;
        control.header.cmsg_len = CMSG_LEN(sizeof(segment_bytes));
        memcpy(CMSG_DATA(&control.header), &segment_bytes, sizeof(segment_bytes));
    }
    while (sendmsg(s->fd, &message, MSG_DONTWAIT) < 0) {
        if (!must_retry(s))
            alb_raw_die("sendmsg");
    }
}

static void send_apart(struct alb_raw_burst *burst, struct alb_raw_socket *s)
{
    struct mmsghdr messages[ALB_RAW_SEGMENTS_MAX];
    for (uint32_t i = 0; i < burst->segment_count; i++) {
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_name = &s->peer,
                                                   .msg_namelen = s->peer_length,
                                                   .msg_iov = &burst->iov[(size_t)3 * i],
                                                   .msg_iovlen = 3}};
    }
    for (uint32_t sent = 0; sent < burst->segment_count;) {
        int count = sendmmsg(s->fd, messages + sent, burst->segment_count - sent, MSG_DONTWAIT);
        if (count > 0)
            sent += (uint32_t)count;
        else if (!must_retry(s))
            alb_raw_die("sendmmsg");
    }
}

void alb_raw_burst_send(struct alb_raw_burst *burst, struct alb_raw_socket *s)
{
    if (s->gso)
        send_segmented(burst, s);
    else
        send_apart(burst, s);
    burst->segment_count = 0;
}

void alb_raw_send_header(struct alb_raw_socket *s, const struct alb_raw_header *header)
{
    struct iovec iov[2] = {{(void *)header, ALB_RAW_HEADER_BYTES}, {(void *)trailer, ALB_RAW_TRAILER_BYTES}};
    struct msghdr message = {.msg_name = &s->peer, .msg_namelen = s->peer_length, .msg_iov = iov, .msg_iovlen = 2};
    while (sendmsg(s->fd, &message, MSG_DONTWAIT) < 0) {
        if (!must_retry(s))
            alb_raw_die("sendmsg");
    }
}

static uint32_t segment_bytes_of(struct msghdr *message, uint32_t length)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        int bytes;
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            memcpy(&bytes, CMSG_DATA(c), sizeof(bytes));
            return (uint32_t)bytes;
        }
    }
    return length;
}

static uint32_t receive_burst(struct alb_raw_socket *s, struct alb_raw_received *received, int flags)
{
    _Alignas(struct cmsghdr) char control[4 * CMSG_SPACE(sizeof(int))]; // segment size, ECN, hop limit, overflow
    struct iovec iov = {s->buffers[0], ALB_RAW_BUFFER_BYTES};
    struct msghdr message = {.msg_name = &s->peer,
                             .msg_namelen = sizeof(s->peer),
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    ssize_t length = recvmsg(s->fd, &message, flags);
    if (length < (ssize_t)ALB_RAW_OVERHEAD_BYTES)
        return 0;
    s->peer_length = message.msg_namelen;
    received[0] =
        (struct alb_raw_received){s->buffers[0], (uint32_t)length, segment_bytes_of(&message, (uint32_t)length)};
    return 1;
}

static uint32_t receive_apart(struct alb_raw_socket *s, struct alb_raw_received *received, int flags)
{
    struct mmsghdr messages[RECEIVE_BATCH];
    struct iovec iov[RECEIVE_BATCH];
    for (uint32_t i = 0; i < RECEIVE_BATCH; i++) {
        iov[i] = (struct iovec){s->buffers[i], ALB_RAW_BUFFER_BYTES};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &iov[i], .msg_iovlen = 1}};
    }
    messages[0].msg_hdr.msg_name = &s->peer;
    messages[0].msg_hdr.msg_namelen = sizeof(s->peer);
    int count = recvmmsg(s->fd, messages, RECEIVE_BATCH, flags | MSG_WAITFORONE, NULL);
    if (count <= 0)
        return 0;
    s->peer_length = messages[0].msg_hdr.msg_namelen;
    uint32_t filled = 0;
    for (int i = 0; i < count; i++) {
        if (messages[i].msg_len >= ALB_RAW_OVERHEAD_BYTES)
            received[filled++] = (struct alb_raw_received){s->buffers[i], messages[i].msg_len, messages[i].msg_len};
    }
    return filled;
}

uint32_t alb_raw_receive(struct alb_raw_socket *s, struct alb_raw_received *received, bool block, int timeout_ms)
{
    if (block) {
        struct pollfd readable = {s->fd, POLLIN, 0};
        if (poll(&readable, 1, timeout_ms) <= 0)
            return 0;
    }
    return s->gso ? receive_burst(s, received, MSG_DONTWAIT) : receive_apart(s, received, MSG_DONTWAIT);
}
