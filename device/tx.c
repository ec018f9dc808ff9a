// SPDX-License-Identifier: BSD-2-Clause
// Sealing bursts and making messages of them.
#include "device/tx.h"

#include "device/carrier.h"
#include "wire/icrc.h"

#include <limits.h>

int alb_sender_init(struct alb_sender *sender, struct alb_port *port, struct alb_edge_stats *stats, bool icrc_ones,
                    const struct alb_faults_spec *faults, uint64_t fault_seed)
{
    sender->port = port;
    sender->stats = stats;
    sender->has_faults = !alb_faults_spec_spares_datagrams(faults);
    sender->tx = (struct alb_tx){
        .bursts = sender->burst_room,
        .segments = sender->segment_room,
        .iov = sender->iov_room,
        .bytes = sender->byte_room,
        .burst_capacity = ALB_TX_BURSTS,
        .segment_capacity = ALB_TX_SEGMENTS,
        .iov_capacity = ALB_TX_IOVS,
        .bytes_capacity = ALB_TX_BYTES,
        .burst_segments_max = sender->has_faults ? 1 : ALB_TX_BURST_SEGMENTS, // faults are for single datagrams
        .burst_bytes_max = ALB_TX_BURST_BYTES,
    };
    alb_outbox_init(&sender->outbox, &sender->tx, &sender->faults.line, stats, icrc_ones);
    return sender->has_faults ? alb_fault_line_init(&sender->faults, faults, fault_seed, stats) : 0;
}

void alb_sender_fini(struct alb_sender *sender)
{
    if (sender->has_faults)
        alb_fault_line_fini(&sender->faults);
}

static void capture(struct alb_sender *sender, const struct alb_endpoint *source,
                    const struct alb_outbox_message *message, const struct iovec *iov, uint32_t length,
                    uint16_t identification, alb_time now)
{
    const struct alb_pcap_packet packet = {
        .time = now,
        .source = *source,
        .destination = *message->peer,
        .traffic_class = message->traffic_class,
        .hop_limit = message->hop_limit,
        .identification = identification,
    };
    alb_capture_datagram(sender->capture, &packet, iov, length);
}

static uint32_t burst_iov_count(const struct alb_sender *sender, const struct alb_burst *burst)
{
    const struct alb_segment *first = &sender->tx.segments[burst->segment_first];
    const struct alb_segment *last = first + burst->segment_count - 1;
    return last->iov_first + last->iov_count - first->iov_first;
}

// What all messages of a burst have in common.
static struct alb_outbox_message message_of(struct alb_socket *socket, const struct alb_burst *burst)
{
    return (struct alb_outbox_message){
        .socket = socket,
        .peer = &burst->peer,
        .traffic_class = burst->traffic_class,
        .hop_limit = burst->hop_limit,
        .is_whole = burst->is_whole,
        .may_be_cut = burst->may_be_cut,
    };
}

// One datagram to a group that the loopback interface has no way to.
static void carry(struct alb_sender *sender, const struct alb_outbox_message *message)
{
    struct alb_line_datagram *copy = message->copy;
    struct iovec whole = {.iov_base = copy ? copy->bytes : NULL, .iov_len = copy ? copy->length : 0};
    const struct alb_carried carried = {
        .group = message->peer->addr,
        .source_port = message->socket->local.port,
        .traffic_class = message->traffic_class,
        .hop_limit = message->hop_limit ? message->hop_limit : 1,
    };
    int error =
        alb_carrier_send(&sender->port->carrier, &carried, copy ? &whole : message->iov, copy ? 1 : message->iov_count);
    alb_edge_count(sender->stats, error ? alb_outbox_reason(error) : ALB_EDGE_tx_datagrams, 1);
    alb_edge_count(sender->stats, ALB_EDGE_tx_messages, !error);
    if (copy)
        alb_line_free(&sender->faults.line, copy);
}

static void add(struct alb_sender *sender, const struct alb_outbox_message *message)
{
    if (alb_carrier_is_needed(&message->socket->local.addr, &message->peer->addr))
        carry(sender, message);
    else
        alb_outbox_add(&sender->outbox, message);
}

static void add_segments(struct alb_sender *sender, struct alb_outbox_message message, const struct alb_burst *burst)
{
    message.datagrams = 1;
    for (uint32_t s = 0; s < burst->segment_count; s++) {
        const struct alb_segment *segment = &sender->tx.segments[burst->segment_first + s];
        message.iov = &sender->tx.iov[segment->iov_first];
        message.iov_count = segment->iov_count;
        message.length = segment->length;
        add(sender, &message);
    }
}

static void add_burst(struct alb_sender *sender, struct alb_outbox_message message, const struct alb_burst *burst,
                      uint32_t iov_count)
{
    message.segment_bytes = burst->segment_bytes;
    message.datagrams = burst->segment_count;
    message.iov = &sender->tx.iov[sender->tx.segments[burst->segment_first].iov_first];
    message.iov_count = iov_count;
    message.length = (burst->segment_count - 1) * burst->segment_bytes +
                     sender->tx.segments[burst->segment_first + burst->segment_count - 1].length;
    message.burst = burst;
    alb_outbox_add(&sender->outbox, &message);
}

static void send_burst(struct alb_sender *sender, struct alb_socket *socket, const struct alb_burst *burst,
                       alb_time now)
{
    uint32_t iov_count = burst_iov_count(sender, burst);
    bool is_cut = burst->segment_count > 1 && socket->gso_works && iov_count <= IOV_MAX &&
                  !alb_carrier_is_needed(&socket->local.addr, &burst->peer.addr);
    struct alb_outbox_message message = message_of(socket, burst);
    message.burst_copy = alb_outbox_seal(&sender->outbox, burst, socket, is_cut);
    for (uint32_t s = 0; sender->capture && s < burst->segment_count; s++) {
        const struct alb_segment *segment = &sender->tx.segments[burst->segment_first + s];
        capture(sender, &socket->local, &message, &sender->tx.iov[segment->iov_first], segment->length,
                is_cut ? (uint16_t)s : 0, now);
    }
    if (is_cut)
        add_burst(sender, message, burst, iov_count);
    else
        add_segments(sender, message, burst);
}

static void send_copy(struct alb_sender *sender, struct alb_line_datagram *copy, alb_time now)
{
    const struct alb_outbox_message message = {
        .socket = copy->socket,
        .peer = &copy->peer,
        .traffic_class = copy->traffic_class,
        .hop_limit = copy->hop_limit,
        .is_whole = copy->is_whole,
        .may_be_cut = copy->may_be_cut,
        .datagrams = 1,
        .copy = copy,
    };
    if (sender->capture) {
        const struct iovec iov = {.iov_base = copy->bytes, .iov_len = copy->length};
        capture(sender, &copy->socket->local, &message, &iov, copy->length, 0, now);
    }
    add(sender, &message);
}

static void send_copies_due(struct alb_sender *sender, alb_time now)
{
    struct alb_line_datagram *copy;
    while ((copy = alb_line_pop_due(&sender->faults.line, now)))
        send_copy(sender, copy, now);
}

static void send_faulty(struct alb_sender *sender, struct alb_socket *socket, const struct alb_burst *burst,
                        alb_time now)
{
    const struct alb_segment *segment = &sender->tx.segments[burst->segment_first];
    alb_assert(burst->segment_count == 1);
    struct alb_fault_verdict verdict = alb_fault_line_decide(&sender->faults, segment->length);
    if (verdict.is_lost)
        return;
    if (alb_fault_verdict_is_none(&verdict)) {
        send_burst(sender, socket, burst, now);
    } else {
        alb_outbox_seal(&sender->outbox, burst, socket, false);
        alb_fault_line_take(&sender->faults, &verdict, &sender->tx, burst, socket, now);
        send_copies_due(sender, now);
    }
    if (verdict.pass == 0) {
        alb_line_passed(&sender->faults.line, now);
        send_copies_due(sender, now);
    }
}

uint32_t alb_sender_send_due(struct alb_sender *sender, alb_time now)
{
    uint64_t before = sender->stats->counter[ALB_EDGE_tx_datagrams];
    if (sender->has_faults) {
        send_copies_due(sender, now);
        alb_outbox_flush(&sender->outbox);
    }
    return (uint32_t)(sender->stats->counter[ALB_EDGE_tx_datagrams] - before);
}

alb_time alb_sender_deadline(const struct alb_sender *sender)
{
    return sender->has_faults ? alb_line_next_due(&sender->faults.line) : ALB_TIME_NEVER;
}

// The socket that a burst leaves by, or NULL: its local address is not ours.
static struct alb_socket *socket_of(struct alb_sender *sender, const struct alb_burst *burst, alb_time now)
{
    bool is_own_path;
    struct alb_socket *socket = alb_port_path_socket(sender->port, &burst->local.addr, burst->path, &is_own_path, now);
    if (!is_own_path)
        alb_edge_count(sender->stats, ALB_EDGE_tx_path_fallback, burst->segment_count);
    return socket;
}

void alb_sender_send(struct alb_sender *sender, alb_time now)
{
    for (uint32_t i = 0; i < sender->tx.burst_count; i++) {
        const struct alb_burst *burst = &sender->tx.bursts[i];
        struct alb_socket *socket = socket_of(sender, burst, now);
        if (!socket)
            alb_edge_count(sender->stats, ALB_EDGE_tx_no_socket, burst->segment_count);
        else if (sender->has_faults)
            send_faulty(sender, socket, burst, now);
        else if (sender->capture || sender->tx.burst_count > 1 || !alb_outbox_send_lone(&sender->outbox, burst, socket))
            send_burst(sender, socket, burst, now);
    }
    alb_outbox_flush(&sender->outbox);
}
