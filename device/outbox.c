// SPDX-License-Identifier: BSD-2-Clause
// sendmmsg, and what to do when it refuses.
#include "device/outbox.h"

#include "device/lone.h"
#include "device/syscalls.h"
#include "wire/icrc.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>

// How long a full send buffer is waited for before the rest of a batch is given up.
#define FULL_WAIT_MS   2
#define FULL_WAITS_MAX 5

void alb_outbox_init(struct alb_outbox *outbox, struct alb_tx *tx, struct alb_line *line, struct alb_edge_stats *stats,
                     bool icrc_ones)
{
    outbox->icrc_ones = icrc_ones;
    outbox->has_too_big = false;
    outbox->tx = tx;
    outbox->line = line;
    outbox->stats = stats;
    outbox->socket = NULL;
    outbox->count = outbox->joined_count = 0;
    outbox->bytes = outbox->copies_bytes = 0;
}

// Where a burst of short datagrams is copied to, or NULL. The kernel takes one piece faster than two references for
// each datagram, and a copy that is made while the ICRC is computed costs little more than that alone (LESSONS 90).
static uint8_t *room_for_copy(struct alb_outbox *outbox, const struct alb_burst *burst)
{
    uint32_t bytes_max = burst->segment_count * burst->segment_bytes;
    if (burst->segment_bytes > ALB_OUTBOX_COPIED_DATAGRAM || bytes_max <= ALB_OUTBOX_FLAT_BYTES ||
        bytes_max > sizeof(outbox->burst_copies) - outbox->copies_bytes)
        return NULL;
    return outbox->burst_copies + outbox->copies_bytes;
}

static enum alb_icrc_ident ident_of(const struct alb_outbox *outbox, bool is_cut)
{
    if (outbox->icrc_ones)
        return ALB_ICRC_IDENT_ONES;
    return is_cut ? ALB_ICRC_IDENT_PLACE : ALB_ICRC_IDENT_ZERO;
}

// Lets the segments refer to copies of theirs, one behind the other. Returns where, or NULL: there is no room.
static uint8_t *take_copies(struct alb_outbox *outbox, const struct alb_burst *burst)
{
    uint32_t bytes_max = burst->segment_count * burst->segment_bytes;
    if (bytes_max > sizeof(outbox->burst_copies) - outbox->copies_bytes)
        return NULL;
    uint8_t *first = outbox->burst_copies + outbox->copies_bytes;
    for (uint32_t s = 0; s < burst->segment_count; s++) {
        struct alb_segment *segment = &outbox->tx->segments[burst->segment_first + s];
        struct iovec *iov = &outbox->tx->iov[segment->iov_first];
        uint8_t *to = first + s * burst->segment_bytes, *end = to;
        for (uint32_t k = 0; k < segment->iov_count; k++) {
            memcpy(end, iov[k].iov_base, iov[k].iov_len);
            end += iov[k].iov_len;
        }
        iov[0] = (struct iovec){.iov_base = to, .iov_len = segment->length};
        segment->iov_count = 1;
    }
    outbox->copies_bytes += bytes_max;
    return first;
}

static bool is_copied(const struct alb_outbox *outbox, const struct alb_burst *burst)
{
    return outbox->tx->segments[burst->segment_first].iov_count == 1;
}

static uint8_t *seal(struct alb_outbox *outbox, const struct alb_burst *burst, struct alb_socket *socket, bool is_cut)
{
    enum alb_icrc_ident ident = ident_of(outbox, is_cut);
    uint8_t *copy = is_cut ? room_for_copy(outbox, burst) : NULL;
    if (copy) {
        alb_icrc_seal_copy(&socket->flow, outbox->tx, burst, &socket->local, ident, copy);
        return copy;
    }
    if (burst->may_change && !is_copied(outbox, burst))
        copy = take_copies(outbox, burst);
    alb_icrc_seal(&socket->flow, outbox->tx, burst, &socket->local, ident);
    return is_cut ? copy : NULL;
}

uint8_t *alb_outbox_seal(struct alb_outbox *outbox, const struct alb_burst *burst, struct alb_socket *socket,
                         bool is_cut)
{
    if (outbox->count == 0)
        outbox->copies_bytes = 0;
    if (burst->may_change &&
        burst->segment_count * burst->segment_bytes > sizeof(outbox->burst_copies) - outbox->copies_bytes) {
        alb_outbox_flush(outbox);
        outbox->copies_bytes = 0;
    }
    return seal(outbox, burst, socket, is_cut);
}

static void add_control(struct msghdr *header, int level, int type, const void *value, size_t bytes)
{
    struct cmsghdr *control = (struct cmsghdr *)((uint8_t *)header->msg_control + header->msg_controllen);
    control->cmsg_level = level;
    control->cmsg_type = type;
    control->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(control), value, bytes);
    header->msg_controllen += CMSG_SPACE(bytes);
}

#define UNSAID (-1) // a traffic class, or a size of segments, that the socket gives by itself

static void add_controls(struct msghdr *header, bool is_ipv4, int traffic_class, uint8_t hop_limit, int segment_bytes)
{
    int level = is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
    int number = traffic_class;
    if (traffic_class != UNSAID)
        add_control(header, level, is_ipv4 ? IP_TOS : IPV6_TCLASS, &number, sizeof(number));
    number = hop_limit;
    if (hop_limit != 0)
        add_control(header, level, is_ipv4 ? IP_TTL : IPV6_HOPLIMIT, &number, sizeof(number));
    uint16_t gso = (uint16_t)segment_bytes;
    if (segment_bytes != UNSAID)
        add_control(header, IPPROTO_UDP, UDP_SEGMENT, &gso, sizeof(gso));
    if (header->msg_controllen == 0)
        header->msg_control = NULL;
}

// Whether it is to be cut is said of every message but one that the socket would not cut anyway.
static int segment_bytes_to_say(const struct alb_socket *socket, uint32_t segment_bytes, size_t length)
{
    bool is_uncut = socket->segment_bytes == 0 || length <= socket->segment_bytes;
    return segment_bytes == 0 && is_uncut ? UNSAID : (int)segment_bytes;
}

// The path to message i's peer is narrower than it was thought to be.
static void note_too_big(struct alb_outbox *outbox, uint32_t i)
{
    outbox->has_too_big = alb_sockaddr_decode(&outbox->names[i], &outbox->too_big_peer);
    outbox->too_big_local = outbox->socket->local;
}

// What became of a message.
static void settle(struct alb_outbox *outbox, uint32_t i, enum alb_edge_stat stat)
{
    alb_edge_count(outbox->stats, stat, outbox->datagrams[i]);
    alb_edge_count(outbox->stats, ALB_EDGE_tx_messages, stat == ALB_EDGE_tx_datagrams);
    if (outbox->copies[i])
        alb_line_free(outbox->line, outbox->copies[i]);
}

enum alb_edge_stat alb_outbox_reason(int error)
{
    switch (error) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
        return ALB_EDGE_tx_no_buffer;
    case EMSGSIZE:
        return ALB_EDGE_tx_too_big;
    default: // EPERM (packet filter), ENETUNREACH, EHOSTUNREACH, EINVAL (such as a loopback source to elsewhere), ...
        return ALB_EDGE_tx_refused;
    }
}

// The engine cut the datagram before the path's MTU became smaller, and its message cannot be cut anew. As long as such
// messages last it goes in fragments, where the ICRC leaves the identification out. Errors: those of sendmsg(2).
static int send_in_fragments(struct alb_outbox *outbox, const struct msghdr *header)
{
    alb_socket_set_fragmenting(outbox->socket, true);
    int error = alb_sys_sendmsg(outbox->socket->fd, header) >= 0 ? 0 : errno;
    alb_socket_set_fragmenting(outbox->socket, false);
    alb_edge_count(outbox->stats, ALB_EDGE_tx_fragmented, !error);
    return error;
}

// Sends one datagram; what it is counted as.
static enum alb_edge_stat send_one(struct alb_outbox *outbox, uint32_t i, const struct msghdr *header)
{
    int error = alb_sys_sendmsg(outbox->socket->fd, header) >= 0 ? 0 : errno;
    if (error == EMSGSIZE) {
        note_too_big(outbox, i);
        if (outbox->icrc_ones && !outbox->is_whole[i])
            error = send_in_fragments(outbox, header);
    }
    return error ? alb_outbox_reason(error) : ALB_EDGE_tx_datagrams;
}

// Sends a burst that the kernel would not cut: datagram by datagram, each sealed as such.
static void send_singly(struct alb_outbox *outbox, uint32_t i)
{
    const struct alb_burst *burst = outbox->bursts[i];
    struct msghdr header = outbox->headers[i].msg_hdr;
    seal(outbox, burst, outbox->socket, false);
    header.msg_control = &outbox->controls[i];
    header.msg_controllen = 0;
    add_controls(&header, alb_addr_is_ipv4(&burst->peer.addr), burst->traffic_class, burst->hop_limit,
                 outbox->socket->segment_bytes ? 0 : UNSAID);
    for (uint32_t s = 0; s < burst->segment_count; s++) {
        const struct alb_segment *segment = &outbox->tx->segments[burst->segment_first + s];
        header.msg_iov = &outbox->tx->iov[segment->iov_first];
        header.msg_iovlen = segment->iov_count;
        enum alb_edge_stat stat = send_one(outbox, i, &header);
        alb_edge_count(outbox->stats, stat, 1);
        alb_edge_count(outbox->stats, ALB_EDGE_tx_messages, stat == ALB_EDGE_tx_datagrams);
    }
}

// The kernel refused a message: waits, does without GSO, or gives the message up. True if it is settled.
static bool handle_refusal(struct alb_outbox *outbox, uint32_t i, int error, uint32_t *waits)
{
    if (error == EINTR || error == ECONNREFUSED) // ECONNREFUSED: of an earlier message of a connected socket
        return false;
    if (error == EAGAIN && *waits < FULL_WAITS_MAX) {
        struct pollfd file = {.fd = outbox->socket->fd, .events = POLLOUT};
        ++*waits;
        alb_edge_count(outbox->stats, ALB_EDGE_tx_waits, 1);
        alb_sys_poll(&file, FULL_WAIT_MS);
        return false;
    }
    if ((error == EIO || error == EINVAL || error == EMSGSIZE) && outbox->bursts[i]) {
        // EIO: the interface cannot checksum segments. EINVAL, EMSGSIZE: this burst only, say of segments larger than
        // the path's MTU.
        if (error == EIO)
            outbox->socket->gso_works = false;
        send_singly(outbox, i);
        return true;
    }
    // EIO again: from a socket that cuts what is longer, also for a message that need not be cut.
    if (error == EIO && outbox->socket->segment_bytes != 0 && alb_socket_set_segment_bytes(outbox->socket, 0))
        return false;
    // EMSGSIZE: once more, in fragments, and the sender learns that its datagrams have become too long.
    settle(outbox, i, error == EMSGSIZE ? send_one(outbox, i, &outbox->headers[i].msg_hdr) : alb_outbox_reason(error));
    return true;
}

// A connected socket numbers its datagrams, which an ICRC that covers the identification could not foresee.
static ssize_t send_alone(struct alb_outbox *outbox, uint32_t i)
{
    return alb_lone_send(outbox->socket, outbox->icrc_ones ? outbox->peers[i] : NULL, outbox->segment_bytes[i],
                         &outbox->headers[i].msg_hdr);
}

static int send_from(struct alb_outbox *outbox, uint32_t first)
{
    if (outbox->count - first == 1)
        return send_alone(outbox, first) >= 0 ? 1 : -1;
    return alb_sys_sendmmsg(outbox->socket->fd, outbox->headers + first, outbox->count - first);
}

void alb_outbox_flush(struct alb_outbox *outbox)
{
    uint32_t done = 0, waits = 0;
    while (done < outbox->count) {
        int sent = send_from(outbox, done);
        for (int i = 0; i < sent; i++)
            settle(outbox, done++, ALB_EDGE_tx_datagrams);
        if (sent <= 0 && handle_refusal(outbox, done, errno, &waits))
            done++;
    }
    outbox->count = outbox->joined_count = 0;
    outbox->bytes = 0;
}

bool alb_outbox_send_lone(struct alb_outbox *outbox, const struct alb_burst *burst, struct alb_socket *socket)
{
    if (!alb_lone_is_usual(socket, burst, ALB_OUTBOX_FLAT_BYTES))
        return false;
    alb_assert(outbox->count == 0);
    const struct alb_segment *last = &outbox->tx->segments[burst->segment_first + burst->segment_count - 1];
    const struct iovec piece = {
        .iov_base = outbox->flat[0],
        .iov_len = (burst->segment_count - 1) * burst->segment_bytes + last->length,
    };
    alb_icrc_seal_copy(&socket->flow, outbox->tx, burst, &socket->local, ident_of(outbox, burst->segment_count > 1),
                       outbox->flat[0]);
    if (alb_lone_send_usual(socket, &burst->peer, &outbox->names[0], &piece) < 0)
        return false;
    alb_edge_count(outbox->stats, ALB_EDGE_tx_datagrams, burst->segment_count);
    alb_edge_count(outbox->stats, ALB_EDGE_tx_messages, 1);
    return true;
}

static void refer_to(struct alb_outbox *outbox, uint32_t i, void *bytes, size_t length)
{
    outbox->flat_iov[i] = (struct iovec){.iov_base = bytes, .iov_len = length};
    outbox->headers[i].msg_hdr.msg_iov = &outbox->flat_iov[i];
    outbox->headers[i].msg_hdr.msg_iovlen = 1;
}

static void refer_to_burst_copy(struct alb_outbox *outbox, uint32_t i, const struct alb_outbox_message *message)
{
    refer_to(outbox, i, message->burst_copy, message->length);
    outbox->copies_bytes = (uint32_t)(message->burst_copy + message->length - outbox->burst_copies);
}

// The kernel takes longer to look at a reference than we to copy some dozen bytes.
static void flatten(struct alb_outbox *outbox, uint32_t i, const struct alb_outbox_message *message)
{
    uint8_t *out = outbox->flat[i];
    for (uint32_t k = 0; k < message->iov_count; k++) {
        memcpy(out, message->iov[k].iov_base, message->iov[k].iov_len);
        out += message->iov[k].iov_len;
    }
    alb_assert(out == outbox->flat[i] + message->length);
    refer_to(outbox, i, outbox->flat[i], message->length);
}

// Likewise: the trailer of a datagram ends where the header of the next one begins (engine/tx.c), and both are one
// piece.
static void join(struct alb_outbox *outbox, struct msghdr *header)
{
    struct iovec *out = outbox->joined + outbox->joined_count;
    uint32_t count = 0;
    if (header->msg_iovlen > ALB_OUTBOX_JOINED - outbox->joined_count)
        return;
    for (size_t k = 0; k < header->msg_iovlen; k++) {
        const struct iovec *piece = &header->msg_iov[k];
        if (count > 0 && (uint8_t *)out[count - 1].iov_base + out[count - 1].iov_len == piece->iov_base)
            out[count - 1].iov_len += piece->iov_len;
        else
            out[count++] = *piece;
    }
    header->msg_iov = out;
    header->msg_iovlen = count;
    outbox->joined_count += count;
}

// A socket takes over a traffic class and a hop limit that two messages in a row ask for, since to say them with each
// makes sending dearer. What waits is sent before, since it may count on the old one.
static int traffic_class_to_say(struct alb_outbox *outbox, const struct alb_outbox_message *message)
{
    struct alb_socket *socket = message->socket;
    uint8_t traffic_class = message->traffic_class;
    if (traffic_class != socket->traffic_class && traffic_class == socket->traffic_class_last) {
        alb_outbox_flush(outbox);
        alb_socket_set_traffic_class(socket, traffic_class);
    }
    socket->traffic_class_last = traffic_class;
    return traffic_class == socket->traffic_class ? UNSAID : traffic_class;
}

// 0: nothing. What a socket takes over is for unicast.
static uint8_t hop_limit_to_say(struct alb_outbox *outbox, const struct alb_outbox_message *message)
{
    struct alb_socket *socket = message->socket;
    uint8_t hop_limit = message->hop_limit;
    if (alb_addr_is_multicast(&message->peer->addr))
        return hop_limit;
    if (hop_limit == 0)
        hop_limit = IPDEFTTL;
    if (hop_limit != socket->hop_limit && hop_limit == socket->hop_limit_last) {
        alb_outbox_flush(outbox);
        alb_socket_set_hop_limit(socket, hop_limit);
    }
    socket->hop_limit_last = hop_limit;
    return hop_limit == socket->hop_limit ? 0 : hop_limit;
}

// A message that alone waits, and is longer than its path carries, of which only the engine knows.
static void flush_to_be_cut(struct alb_outbox *outbox)
{
    uint32_t datagrams = outbox->datagrams[0];
    alb_socket_set_fragmenting(outbox->socket, true);
    alb_outbox_flush(outbox);
    alb_socket_set_fragmenting(outbox->socket, false);
    alb_edge_count(outbox->stats, ALB_EDGE_tx_fragmented, datagrams);
}

void alb_outbox_add(struct alb_outbox *outbox, const struct alb_outbox_message *message)
{
    if (outbox->count == ALB_OUTBOX_MESSAGES ||
        (outbox->count > 0 && (outbox->socket != message->socket || message->may_be_cut)))
        alb_outbox_flush(outbox);
    uint8_t hop_limit = hop_limit_to_say(outbox, message);
    int traffic_class = traffic_class_to_say(outbox, message);
    uint32_t i = outbox->count++;
    struct msghdr *header = &outbox->headers[i].msg_hdr;
    outbox->socket = message->socket;
    outbox->bursts[i] = message->burst;
    outbox->peers[i] = message->peer;
    outbox->segment_bytes[i] = message->segment_bytes;
    outbox->datagrams[i] = message->datagrams;
    outbox->copies[i] = message->copy;
    outbox->is_whole[i] = message->is_whole;
    *header = (struct msghdr){
        .msg_name = &outbox->names[i],
        .msg_namelen = alb_sockaddr_encode(message->peer, &outbox->names[i]),
        .msg_iov = message->iov,
        .msg_iovlen = message->iov_count,
        .msg_control = &outbox->controls[i],
    };
    if (message->copy)
        refer_to(outbox, i, message->copy->bytes, message->copy->length);
    else if (message->burst_copy)
        refer_to_burst_copy(outbox, i, message);
    else if (message->length <= ALB_OUTBOX_FLAT_BYTES && message->iov_count > 1)
        flatten(outbox, i, message);
    else if (message->burst)
        join(outbox, header);
    size_t length = message->copy ? message->copy->length : message->length;
    add_controls(header, alb_addr_is_ipv4(&message->peer->addr), traffic_class, hop_limit,
                 segment_bytes_to_say(message->socket, message->segment_bytes, length));
    outbox->bytes += message->length;
    if (message->may_be_cut)
        flush_to_be_cut(outbox);
    else if (outbox->bytes >= ALB_OUTBOX_BYTES)
        alb_outbox_flush(outbox);
}
