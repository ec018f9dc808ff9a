// SPDX-License-Identifier: BSD-2-Clause
// Send edge: from the engine's bursts to sockets. Bursts are sealed and leave in order, a GSO burst as one message.
// What a socket does not take is lost and counted: the engine's reliability is the same for that as for any other loss.
#pragma once

#include "device/capture.h"
#include "device/faults.h"
#include "device/outbox.h"
#include "device/port.h"

#define ALB_TX_BURSTS         32
#define ALB_TX_SEGMENTS       256
#define ALB_TX_IOVS           2048
#define ALB_TX_BYTES          (256 << 10) // headers and trailers, and small operations that are gathered
#define ALB_TX_BURST_SEGMENTS 64          // UDP_MAX_SEGMENTS before Linux 6.9
#define ALB_TX_BURST_BYTES    ALB_UDP_PAYLOAD_MAX

struct alb_sender {
    struct alb_tx tx; // for alb_engine_tx to fill
    struct alb_port *port;
    struct alb_edge_stats *stats;
    struct alb_capture *capture; // NULL: none
    bool has_faults;
    struct alb_fault_line faults;
    struct alb_outbox outbox;
    struct alb_burst burst_room[ALB_TX_BURSTS];
    struct alb_segment segment_room[ALB_TX_SEGMENTS];
    struct iovec iov_room[ALB_TX_IOVS];
    _Alignas(64) uint8_t byte_room[ALB_TX_BYTES];
};

// sender is zeroed. icrc_ones: ICRCs take the IPv4 identification as ones. faults may be all zero: none. ENOMEM.
int alb_sender_init(struct alb_sender *sender, struct alb_port *port, struct alb_edge_stats *stats, bool icrc_ones,
                    const struct alb_faults_spec *faults, uint64_t fault_seed);
void alb_sender_fini(struct alb_sender *sender);

// Sends what alb_engine_tx left in sender->tx. When it returns, nothing refers to the engine's memory any more.
void alb_sender_send(struct alb_sender *sender, alb_time now);

// Sends what faults have held back until now; returns the number of datagrams.
uint32_t alb_sender_send_due(struct alb_sender *sender, alb_time now);
// When alb_sender_send_due is due next, or ALB_TIME_NEVER.
alb_time alb_sender_deadline(const struct alb_sender *sender);
