// SPDX-License-Identifier: BSD-2-Clause
// From recvmmsg to checked datagrams. Every byte here is hostile.
#include "device/rx.h"

#include "base/log.h"
#include "device/carrier.h"
#include "device/clock.h"
#include "device/crash.h"
#include "device/syscalls.h"
#include "wire/csa.h"
#include "wire/mad.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

enum {
    BAD_MAX = 16, // datagrams that a link has corrupted do not come one behind the other
};

void alb_rx_init(struct alb_rx *rx, const struct alb_rx_taker *taker, struct alb_edge_stats *stats,
                 struct alb_idents *idents, uint8_t own_slot, uint8_t *buffers)
{
    memset(rx, 0, sizeof(*rx));
    rx->taker = *taker;
    rx->stats = stats;
    rx->idents = idents;
    rx->own_slot = own_slot;
    rx->buffers = buffers;
    alb_relay_init(&rx->relay, stats);
    for (uint32_t i = 0; i < ALB_RX_MESSAGES; i++) {
        rx->iov[i] =
            (struct iovec){.iov_base = buffers + (size_t)i * ALB_RX_BUFFER_BYTES, .iov_len = ALB_RX_BUFFER_BYTES};
        rx->messages[i].msg_hdr = (struct msghdr){
            .msg_name = &rx->names[i],
            .msg_iov = &rx->iov[i],
            .msg_iovlen = 1,
            .msg_control = &rx->controls[i],
        };
    }
}

// One message of a socket, or the inside of an envelope: datagrams from one source, laid end to end.
struct arrival {
    struct alb_socket *socket;
    struct alb_endpoint peer;
    struct alb_endpoint local;
    uint8_t traffic_class;
    uint8_t hop_limit;
    bool is_relayed;
    uint32_t segment_bytes; // 0: one datagram
    const uint8_t *bytes;
    uint32_t length;
    uint16_t place; // of the datagram that is looked at
};

static void hand_on(struct alb_rx *rx, alb_time now)
{
    if (rx->count > 0)
        rx->taker.datagrams(rx->taker.context, rx->datagrams, rx->count, now);
    rx->count = 0;
}

static void capture(struct alb_rx *rx, const struct alb_datagram *datagram, uint16_t identification, alb_time now)
{
    const struct iovec iov = {.iov_base = (void *)(uintptr_t)datagram->bytes, .iov_len = datagram->length};
    const struct alb_pcap_packet packet = {
        .time = now,
        .source = datagram->peer,
        .destination = datagram->local,
        .traffic_class = datagram->traffic_class,
        .hop_limit = datagram->hop_limit,
        .identification = identification,
    };
    alb_capture_datagram(rx->capture, &packet, &iov, datagram->length);
}

// Bytes of a frame that may stand before the first segment of a CSA packet; 0: it is none of those.
static uint32_t csa_control_bytes(const uint8_t *frame)
{
    switch (frame[0]) {
    case ALB_CSA_REPORT:
        return alb_csa_report_bytes(frame[2]);
    case ALB_CSA_PATHS:
        return alb_csa_paths_bytes(alb_csa_paths_count(frame[1]));
    default:
        return 0;
    }
}

// What a request packet does.
struct asked {
    bool writes, goes_on; // with more packets of the same WRITE
    bool fetches;
    bool ends_receive;
};

#define CSA_FLAGS 7 // of a segment, from the beginning of its frame

// The first segment of a CSA packet stands for all of them.
static struct asked asked_by_csa(const uint8_t *bytes, uint32_t length)
{
    uint32_t at = ALB_CSA_OUTER_BYTES, step;
    if (!alb_csa_is_packet(bytes, length))
        return (struct asked){0};
    while (at + 4 <= length && (step = csa_control_bytes(bytes + at)) != 0)
        at += step;
    if (at + CSA_FLAGS >= length || bytes[at] != ALB_CSA_REQUEST)
        return (struct asked){0};
    bool is_last = bytes[at + CSA_FLAGS] & ALB_CSA_LAST;
    switch (bytes[at + 1]) {
    case ALB_CSA_SEND:
    case ALB_CSA_SEND_IMM:
    case ALB_CSA_SEND_INV:
        return (struct asked){.ends_receive = is_last};
    case ALB_CSA_WRITE:
    case ALB_CSA_ATOMIC_WRITE:
        return (struct asked){.writes = true, .goes_on = !is_last};
    case ALB_CSA_WRITE_IMM:
        return (struct asked){.writes = true, .goes_on = !is_last, .ends_receive = is_last};
    case ALB_CSA_READ:
    case ALB_CSA_CMP_SWAP:
    case ALB_CSA_FETCH_ADD:
        return (struct asked){.fetches = true};
    default:
        return (struct asked){0};
    }
}

static struct asked asked_by_roce(uint8_t opcode)
{
    const struct alb_opcode_info *info = alb_opcode_info(opcode);
    if (!info || !(info->flags & ALB_OPCODE_REQUEST))
        return (struct asked){0};
    bool writes = info->flags & (ALB_OPCODE_WRITE | ALB_OPCODE_ATOMIC_WRITE);
    return (struct asked){
        .writes = writes,
        .goes_on = writes && !(info->flags & ALB_OPCODE_LAST),
        .fetches = !writes && info->flags & (ALB_OPCODE_READ | ALB_OPCODE_ATOMIC),
        .ends_receive = info->flags & ALB_OPCODE_ENDS_RECEIVE,
    };
}

static void count_asked(struct alb_rx *rx, const uint8_t *bytes, uint32_t length)
{
    struct asked asked = rx->idents ? asked_by_roce(bytes[0]) : asked_by_csa(bytes, length);
    if (asked.writes) {
        rx->counts.writes++;
        if (asked.goes_on && !rx->counts.is_amid_write)
            rx->counts.write_since = rx->counts.bytes;
        rx->counts.is_amid_write = asked.goes_on;
    }
    rx->counts.fetches += asked.fetches;
    rx->counts.receives += asked.ends_receive;
}

// None gets through an address translator, and neither end would say more than that nothing came.
static void say_translated(struct alb_rx *rx, const struct alb_endpoint *peer)
{
    char text[ALB_ADDR_TEXT_MAX];
    if (rx->has_said || ++rx->bad_in_a_row < BAD_MAX)
        return;
    rx->has_said = true;
    alb_log(ALB_LOG_WARNING,
            "%u datagrams in a row had a wrong checksum (ICRC), the last one from %s port %u: a device of the other "
            "kind (roce0, albedo0), or an address translator (NAT), which nothing passes, since the checksum covers "
            "addresses and ports",
            BAD_MAX, alb_addr_format(&peer->addr, text), peer->port);
}

static void drop_bad(struct alb_rx *rx, const struct alb_endpoint *peer, uint32_t length)
{
    bool is_short = length < ALB_BTH_BYTES + ALB_ICRC_BYTES;
    rx->taker.drop(rx->taker.context, is_short ? ALB_DROP_TRUNCATED : ALB_DROP_BAD_ICRC);
    say_translated(rx, peer);
}

static void take(struct alb_rx *rx, const struct arrival *arrival, const uint8_t *bytes, uint32_t length, alb_time now)
{
    struct alb_datagram *datagram = &rx->datagrams[rx->count];
    uint16_t identification = rx->idents ? arrival->place : 0;
    *datagram = (struct alb_datagram){
        .peer = arrival->peer,
        .local = arrival->local,
        .traffic_class = arrival->traffic_class,
        .hop_limit = arrival->hop_limit,
        .unread_ns = arrival->is_relayed ? UINT32_MAX : rx->unread_ns, // in two sockets
        .bytes = bytes,
        .length = length,
    };
    bool is_good = rx->idents ? alb_idents_check(rx->idents, datagram, &identification, now)
                              : alb_icrc_check_ones(&rx->flows[datagram->peer.port % ALB_RX_FLOWS], datagram);
    if (rx->capture)
        capture(rx, datagram, is_good ? identification : 0, now);
    if (!is_good) {
        drop_bad(rx, &datagram->peer, length);
        return;
    }
    alb_crash_at_packet(ALB_CRASH_RX, bytes, length);
    rx->bad_in_a_row = 0;
    count_asked(rx, bytes, length);
    datagram->length = length - ALB_ICRC_BYTES;
    if (++rx->count == ALB_RX_DATAGRAMS)
        hand_on(rx, now);
}

static alb_qpn qpn_of(const uint8_t *bytes)
{
    return (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
}

static bool is_gsi(alb_qpn qpn)
{
    return qpn <= ALB_GSI_QPN || qpn == ALB_GSI_ALBEDO_QPN;
}

// True if the number in what has come to port 4791 is ours, or says nothing. Datagrams to the multicast number go to
// groups' addresses only, and they have sockets of their own.
static bool is_plainly_ours(const struct alb_rx *rx, const uint8_t *bytes, uint32_t length)
{
    if (length < ALB_BTH_BYTES)
        return true;
    alb_qpn qpn = qpn_of(bytes);
    return qpn == ALB_MULTICAST_QPN || (!is_gsi(qpn) && alb_slot_of_qpn(qpn) == rx->own_slot);
}

// By the rule of either kind of device: whose it is may not be known yet. The slot's own process looks again, and holds
// the peer to its identifications.
static bool is_good_for_any(struct alb_rx *rx, const struct arrival *arrival, const uint8_t *bytes, uint32_t length,
                            alb_time now)
{
    const struct alb_datagram datagram = {
        .peer = arrival->peer, .local = arrival->local, .bytes = bytes, .length = length};
    struct alb_icrc_peer stranger = {0};
    uint16_t identification = arrival->place;
    return alb_icrc_check(&rx->others_flow, &datagram, &stranger, &identification, now) ||
           alb_icrc_check_ones(&rx->others_flow, &datagram);
}

// The slot that a datagram on port 4791 belongs to. Foreign peers manage connections by QPN 1 (of albedo0: 3) whatever
// process they mean; where the message does not say, it is for the holder of the port. False: it is dropped.
static bool find_slot(struct alb_rx *rx, const struct arrival *arrival, const uint8_t *bytes, uint32_t length,
                      alb_time now, uint8_t *slot)
{
    alb_qpn qpn = qpn_of(bytes);
    if (!is_good_for_any(rx, arrival, bytes, length, now)) {
        alb_edge_count(rx->stats, ALB_EDGE_rx_datagrams, 1);
        drop_bad(rx, &arrival->peer, length);
        return false;
    }
    if (!is_gsi(qpn)) {
        *slot = alb_slot_of_qpn(qpn);
        return true;
    }
    if (alb_gsi_slot(&rx->finder, bytes, length, &arrival->local.addr, now, slot) != ALB_GSI_UNKNOWN)
        return true;
    rx->taker.drop(rx->taker.context, ALB_DROP_NO_RESOURCES);
    return false;
}

static void pass_on(struct alb_rx *rx, const struct arrival *arrival, uint8_t slot, const uint8_t *bytes,
                    uint32_t length, alb_time now)
{
    const struct alb_envelope envelope = {
        .peer = arrival->peer,
        .traffic_class = arrival->traffic_class,
        .hop_limit = arrival->hop_limit,
    };
    // Port 4791 is ours and slot 0 is not: slot 0 is unused. Other ports may be any program's.
    if (slot == 0 || !alb_slot_marks_has(&rx->marks, &arrival->local.addr, slot, now))
        rx->taker.drop(rx->taker.context, ALB_DROP_UNKNOWN_QP);
    else
        alb_relay_add(&rx->relay, arrival->socket, slot, &envelope, bytes, length);
}

// Cuts an arrival into datagrams and gives each to what it is for.
static void split(struct alb_rx *rx, struct arrival *arrival, alb_time now);

static bool is_envelope(const struct arrival *arrival, const uint8_t *bytes, uint32_t length,
                        struct alb_envelope *envelope)
{
    return bytes[0] == 0xff && !arrival->is_relayed && alb_envelope_decode(bytes, length, envelope);
}

static void open_envelope(struct alb_rx *rx, const struct arrival *outer, const struct alb_envelope *envelope,
                          const uint8_t *bytes, uint32_t length, alb_time now)
{
    bool is_from_front = outer->peer.port == ALB_ROCE_PORT && outer->local.port != ALB_ROCE_PORT &&
                         alb_addr_equals(&outer->peer.addr, &outer->local.addr) &&
                         alb_addr_is_ipv4(&envelope->peer.addr) == alb_addr_is_ipv4(&outer->local.addr);
    if (!is_from_front) {
        rx->taker.drop(rx->taker.context, ALB_DROP_NOT_ROCE);
        return;
    }
    struct arrival inner = *outer;
    inner.peer = envelope->peer;
    inner.local.port = ALB_ROCE_PORT; // where the peer sent it, which the ICRC covers
    inner.traffic_class = envelope->traffic_class;
    inner.hop_limit = envelope->hop_limit;
    inner.is_relayed = true;
    inner.segment_bytes = envelope->segment_bytes;
    inner.bytes = bytes + ALB_ENVELOPE_BYTES;
    inner.length = length - ALB_ENVELOPE_BYTES;
    split(rx, &inner, now);
}

static void open_carried(struct alb_rx *rx, const struct arrival *outer, const uint8_t *bytes, uint32_t length,
                         alb_time now)
{
    struct alb_carried carried;
    if (!alb_carrier_decode(&outer->peer, &outer->local.addr, bytes, length, &carried)) {
        rx->taker.drop(rx->taker.context, ALB_DROP_NOT_ROCE);
        return;
    }
    struct arrival inner = *outer;
    inner.peer = (struct alb_endpoint){.addr.bytes[15] = 1, .port = carried.source_port};
    inner.traffic_class = carried.traffic_class;
    inner.hop_limit = carried.hop_limit;
    alb_edge_count(rx->stats, ALB_EDGE_rx_datagrams, 1);
    take(rx, &inner, bytes + ALB_CARRIER_HEADER_BYTES, length - ALB_CARRIER_HEADER_BYTES, now);
}

static void sort_out(struct alb_rx *rx, const struct arrival *arrival, const uint8_t *bytes, uint32_t length,
                     alb_time now)
{
    struct alb_envelope envelope;
    if (arrival->socket->is_carrier) {
        open_carried(rx, arrival, bytes, length, now);
        return;
    }
    if (is_envelope(arrival, bytes, length, &envelope)) {
        open_envelope(rx, arrival, &envelope, bytes, length, now);
        return;
    }
    uint8_t slot = rx->own_slot;
    bool is_at_front = arrival->local.port == ALB_ROCE_PORT && !arrival->is_relayed && !arrival->socket->is_group;
    if (is_at_front && !is_plainly_ours(rx, bytes, length) && !find_slot(rx, arrival, bytes, length, now, &slot))
        return;
    if (slot != rx->own_slot) {
        pass_on(rx, arrival, slot, bytes, length, now);
        return;
    }
    alb_edge_count(rx->stats, arrival->is_relayed ? ALB_EDGE_relay_in : ALB_EDGE_rx_datagrams, 1);
    take(rx, arrival, bytes, length, now);
}

// A bare acknowledgement ends a burst, since it is the shortest packet, but counts first: a program should know that
// what it sent has arrived before it gets the answer (engine/rc.c). Before answers to READs it would mean that these
// are lost, so it overtakes requests only.
static void hurry_ack(struct alb_rx *rx, uint32_t first)
{
    const struct alb_datagram *last = &rx->datagrams[rx->count - 1];
    if (alb_likely(last->bytes[0] != ALB_RC_ACK && last->bytes[0] != ALB_XRC_ACK))
        return;
    for (uint32_t i = first; i < rx->count - 1; i++)
        if (!(alb_opcode_table[rx->datagrams[i].bytes[0]].flags & ALB_OPCODE_REQUEST))
            return;
    struct alb_datagram ack = *last;
    memmove(&rx->datagrams[first + 1], &rx->datagrams[first], (rx->count - 1 - first) * sizeof(ack));
    rx->datagrams[first] = ack;
}

static void split(struct alb_rx *rx, struct arrival *arrival, alb_time now)
{
    uint32_t step = arrival->segment_bytes > 0 ? arrival->segment_bytes : arrival->length;
    uint32_t first = rx->count;
    arrival->place = 0;
    for (uint32_t offset = 0; offset < arrival->length; offset += step, arrival->place++)
        sort_out(rx, arrival, arrival->bytes + offset, ALB_MIN(step, arrival->length - offset), now);
    if (rx->count > first + 1)
        hurry_ack(rx, first);
}

static int control_int(const struct cmsghdr *control)
{
    int value = 0;
    memcpy(&value, CMSG_DATA(control), sizeof(value));
    return value;
}

static void note_overflow(struct alb_rx *rx, struct alb_socket *socket, uint32_t total)
{
    alb_edge_count(rx->stats, ALB_EDGE_rx_overflow, total - socket->overflow_seen);
    socket->overflow_seen = total;
}

static void read_control(struct alb_rx *rx, struct arrival *arrival, const struct cmsghdr *control)
{
    if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_RXQ_OVFL)
        note_overflow(rx, arrival->socket, (uint32_t)control_int(control));
    else if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO)
        arrival->segment_bytes = (uint32_t)ALB_MAX(control_int(control), 0);
    else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS)
        arrival->traffic_class = *CMSG_DATA(control); // one byte, unlike the others
    else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TTL)
        arrival->hop_limit = (uint8_t)control_int(control);
    else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_TCLASS)
        arrival->traffic_class = (uint8_t)control_int(control);
    else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_HOPLIMIT)
        arrival->hop_limit = (uint8_t)control_int(control);
}

static void take_message(struct alb_rx *rx, struct alb_socket *socket, uint32_t i, alb_time now)
{
    struct msghdr *header = &rx->messages[i].msg_hdr;
    struct arrival arrival = {
        .socket = socket,
        .local = socket->local,
        .bytes = rx->iov[i].iov_base,
        .length = rx->messages[i].msg_len,
    };
    for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control; control = CMSG_NXTHDR(header, control))
        read_control(rx, &arrival, control);
    if (!alb_sockaddr_decode(&rx->names[i], &arrival.peer) || (header->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
        arrival.length == 0) {
        rx->taker.drop(rx->taker.context, ALB_DROP_TRUNCATED);
        return;
    }
    split(rx, &arrival, now);
}

static void adapt_batch(struct alb_rx *rx, struct alb_socket *socket, uint32_t wanted, int count)
{
    uint32_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += rx->messages[i].msg_len;
    rx->counts.bytes += bytes;
    bool is_full = count == (int)wanted;
    if (!is_full)
        socket->rx_batch = (uint32_t)ALB_MAX(count, 1);
    else if (2 * bytes <= ALB_RX_BYTES && (wanted > 1 || socket->rx_was_full))
        socket->rx_batch = ALB_MIN(2 * wanted, (uint32_t)ALB_RX_MESSAGES);
    else if (bytes > ALB_RX_BYTES)
        socket->rx_batch = ALB_MAX(wanted / 2, 1u);
    socket->rx_was_full = is_full;
}

// Fills rx->messages. How many are asked for follows what was there before: a single message, as in an exchange of
// small ones, is to be had for less than many at once.
static int receive(struct alb_rx *rx, struct alb_socket *socket)
{
    uint32_t wanted = ALB_MAX(socket->rx_batch, 1u);
    for (uint32_t i = 0; i < wanted; i++) {
        rx->messages[i].msg_hdr.msg_namelen = sizeof(rx->names[i]);
        rx->messages[i].msg_hdr.msg_controllen = sizeof(rx->controls[i]);
    }
    int count;
    if (wanted == 1) {
        ssize_t bytes = alb_sys_recvmsg(socket->fd, &rx->messages[0].msg_hdr);
        rx->messages[0].msg_len = (unsigned)ALB_MAX(bytes, 0);
        count = bytes >= 0 ? 1 : -1;
    } else {
        count = alb_sys_recvmmsg(socket->fd, rx->messages, wanted);
    }
    adapt_batch(rx, socket, wanted, count);
    return count;
}

uint32_t alb_rx_receive(struct alb_rx *rx, struct alb_socket *socket, alb_time *now)
{
    alb_time asked_at = *now, empty_at = socket->empty_at;
    int count = receive(rx, socket);
    if (count < 0 && errno != EAGAIN) { // a pending ICMP error, which says nothing about the datagrams behind it
        socket->rx_was_full = true;
        return 0;
    }
    if (!socket->rx_was_full)
        socket->empty_at = asked_at;
    if (count <= 0)
        return 0;
    *now = alb_clock_now();
    rx->unread_ns = (uint32_t)ALB_MIN(*now - empty_at, (alb_time)UINT32_MAX);
    for (int i = 0; i < count; i++)
        take_message(rx, socket, (uint32_t)i, *now);
    alb_edge_count(rx->stats, ALB_EDGE_rx_messages, (uint64_t)count);
    hand_on(rx, *now);
    alb_relay_flush(&rx->relay);
    return (uint32_t)count;
}
