// SPDX-License-Identifier: BSD-2-Clause
// Envelopes, and passing runs of datagrams on.
#include "device/relay.h"

#include "device/syscalls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

// An envelope: mark (4), version (1), traffic class (1), hop limit (1), zero (1), source address (16), source port (2),
// segment bytes (2), zero (4); numbers in network byte order.
static const uint8_t mark[4] = {0xff, 'A', 'L', 'B'};
#define VERSION 1

// Of a UDP datagram over IPv4.
#define DATAGRAM_BYTES_MAX 65507

static void put16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
}

static uint16_t get16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

void alb_envelope_encode(const struct alb_envelope *envelope, uint8_t out[ALB_ENVELOPE_BYTES])
{
    memset(out, 0, ALB_ENVELOPE_BYTES);
    memcpy(out, mark, sizeof(mark));
    out[4] = VERSION;
    out[5] = envelope->traffic_class;
    out[6] = envelope->hop_limit;
    memcpy(out + 8, envelope->peer.addr.bytes, 16);
    put16(out + 24, envelope->peer.port);
    put16(out + 26, envelope->segment_bytes);
}

bool alb_envelope_decode(const uint8_t *bytes, uint32_t length, struct alb_envelope *envelope)
{
    if (length < ALB_ENVELOPE_BYTES || memcmp(bytes, mark, sizeof(mark)) != 0 || bytes[4] != VERSION)
        return false;
    envelope->traffic_class = bytes[5];
    envelope->hop_limit = bytes[6];
    memcpy(envelope->peer.addr.bytes, bytes + 8, 16);
    envelope->peer.port = get16(bytes + 24);
    envelope->segment_bytes = get16(bytes + 26);
    return envelope->segment_bytes != 0;
}

void alb_relay_init(struct alb_relay *relay, struct alb_edge_stats *stats)
{
    relay->stats = stats;
    relay->front = NULL;
    relay->count = 0;
}

static bool is_same_source(const struct alb_envelope *a, const struct alb_envelope *b)
{
    return a->traffic_class == b->traffic_class && a->hop_limit == b->hop_limit &&
           alb_endpoint_equals(&a->peer, &b->peer);
}

// True if the datagram was appended to the last run.
static bool join(struct alb_relay *relay, uint8_t slot, const struct alb_envelope *envelope, const uint8_t *bytes,
                 uint32_t length)
{
    if (relay->count == 0)
        return false;
    struct iovec *payload = &relay->runs[relay->count - 1].iov[1];
    const struct alb_envelope *before = &relay->runs[relay->count - 1].envelope;
    if (relay->runs[relay->count - 1].slot != slot || !is_same_source(before, envelope) ||
        (const uint8_t *)payload->iov_base + payload->iov_len != bytes)
        return false;
    if (payload->iov_len % before->segment_bytes != 0 || length > before->segment_bytes ||
        ALB_ENVELOPE_BYTES + payload->iov_len + length > DATAGRAM_BYTES_MAX)
        return false;
    payload->iov_len += length;
    relay->runs[relay->count - 1].datagrams++;
    return true;
}

void alb_relay_add(struct alb_relay *relay, const struct alb_socket *front, uint8_t slot,
                   const struct alb_envelope *envelope, const uint8_t *bytes, uint32_t length)
{
    if (length == 0 || length > DATAGRAM_BYTES_MAX - ALB_ENVELOPE_BYTES) {
        alb_edge_count(relay->stats, ALB_EDGE_relay_lost, 1);
        return;
    }
    if (relay->front == front && join(relay, slot, envelope, bytes, length))
        return;
    if (relay->count == ALB_RELAY_RUNS_MAX || relay->front != front)
        alb_relay_flush(relay);
    relay->front = front;
    __typeof__(relay->runs[0]) *run = &relay->runs[relay->count++];
    run->envelope = *envelope;
    run->envelope.segment_bytes = (uint16_t)length;
    run->datagrams = 1;
    run->slot = slot;
    run->iov[0] = (struct iovec){.iov_base = run->header, .iov_len = ALB_ENVELOPE_BYTES};
    run->iov[1] = (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    const struct alb_endpoint target = {.addr = front->local.addr, .port = alb_slot_port(slot)};
    alb_sockaddr_encode(&target, &run->target);
    alb_envelope_encode(&run->envelope, run->header);
}

// The port's holder sends its own messages by the same socket, which may have taken over a size of segments from those
// (device/lone.h). Of an envelope that is cut only the first piece says what it is.
static void forbid_cutting(struct msghdr *message, uint8_t *room)
{
    const uint16_t uncut = 0;
    message->msg_control = room;
    message->msg_controllen = CMSG_SPACE(sizeof(uncut));
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    *control =
        (struct cmsghdr){.cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof(uncut))};
    memcpy(CMSG_DATA(control), &uncut, sizeof(uncut));
}

static uint32_t fill_messages(struct alb_relay *relay, struct mmsghdr *messages)
{
    for (uint32_t i = 0; i < relay->count; i++) {
        bool is_ipv4 = relay->runs[i].target.any.sa_family == AF_INET;
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = &relay->runs[i].target,
            .msg_namelen = is_ipv4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6),
            .msg_iov = relay->runs[i].iov,
            .msg_iovlen = 2,
        };
        if (relay->front->segment_bytes > 0)
            forbid_cutting(&messages[i].msg_hdr, relay->runs[i].control);
    }
    return relay->count;
}

void alb_relay_flush(struct alb_relay *relay)
{
    if (relay->count == 0)
        return;
    struct mmsghdr messages[ALB_RELAY_RUNS_MAX];
    uint32_t count = fill_messages(relay, messages), done = 0;
    while (done < count) {
        int sent = alb_sys_sendmmsg(relay->front->fd, messages + done, count - done);
        for (int i = 0; i < sent; i++)
            alb_edge_count(relay->stats, ALB_EDGE_relay_out, relay->runs[done + (uint32_t)i].datagrams);
        if (sent > 0) {
            done += (uint32_t)sent;
        } else if (errno != EINTR) {
            alb_edge_count(relay->stats, ALB_EDGE_relay_lost, relay->runs[done].datagrams);
            done++;
        }
    }
    relay->count = 0;
}
