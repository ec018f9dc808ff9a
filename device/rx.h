// SPDX-License-Identifier: BSD-2-Clause
// Receive edge: from a socket to datagrams that have proven their ICRC. Bursts that the kernel coalesced are cut up
// again, envelopes of the relay are opened, and what is for another slot is handed to the relay.
#pragma once

#include "device/capture.h"
#include "device/edge_stats.h"
#include "device/gsi_slot.h"
#include "device/idents.h"
#include "device/port.h"
#include "device/relay.h"
#include "device/slot_mark.h"

// Messages of one recvmmsg. Each has a buffer for the largest UDP datagram.
#define ALB_RX_MESSAGES     8
#define ALB_RX_BUFFER_BYTES 65536
// About so many bytes are received before we check whether there is something to send: a peer whose window is full
// waits for it.
#define ALB_RX_BYTES (128 << 10)
// Of a peer the paths that its packets come by.
#define ALB_RX_FLOWS 8
// Datagrams handed on in one call.
#define ALB_RX_DATAGRAMS 128

// The consumer of what was received.
struct alb_rx_taker {
    void *context;
    void (*datagrams)(void *context, const struct alb_datagram *datagrams, uint32_t count, alb_time now);
    void (*drop)(void *context, enum alb_drop reason);
};

struct alb_rx_control {
    _Alignas(8) uint8_t bytes[128]; // GRO size, traffic class, hop limit, overflow count
};

// Of what was received, for who drives.
struct alb_rx_counts {
    uint64_t bytes;
    uint64_t writes;      // WRITE requests
    uint64_t fetches;     // READ and atomic requests
    uint64_t receives;    // packets that end a message for a receive request: a SEND, or a WRITE with immediate data
    bool is_amid_write;   // the last packet of a WRITE that came was not its message's last one
    uint64_t write_since; // bytes as they were when the last such message began, with what was received beside it
};

struct alb_rx {
    struct alb_rx_taker taker;
    struct alb_edge_stats *stats;
    struct alb_idents *idents;                // NULL: ICRCs take the IPv4 identification as ones
    struct alb_icrc_flow flows[ALB_RX_FLOWS]; // that were checked last, by the peer's port, without idents
    struct alb_icrc_flow others_flow;         // of what came to port 4791 and may be another slot's
    struct alb_capture *capture;              // NULL: none
    uint8_t own_slot;
    struct alb_relay relay;
    struct alb_gsi_finder finder;
    struct alb_slot_marks marks;
    struct alb_rx_counts counts;
    uint32_t bad_in_a_row; // datagrams whose ICRC was wrong, since one that was right or a word about them
    bool has_said;         // that word
    uint32_t unread_ns;    // for which what is looked at may have lain in its socket
    uint32_t count;
    struct alb_datagram datagrams[ALB_RX_DATAGRAMS];
    struct mmsghdr messages[ALB_RX_MESSAGES];
    struct iovec iov[ALB_RX_MESSAGES];
    union alb_sockaddr names[ALB_RX_MESSAGES];
    struct alb_rx_control controls[ALB_RX_MESSAGES];
    uint8_t *buffers; // ALB_RX_MESSAGES * ALB_RX_BUFFER_BYTES
};

// idents NULL: ICRCs take the IPv4 identification as ones. buffers are page-aligned, touched only as far as messages
// fill them.
void alb_rx_init(struct alb_rx *rx, const struct alb_rx_taker *taker, struct alb_edge_stats *stats,
                 struct alb_idents *idents, uint8_t own_slot, uint8_t *buffers);

// Receives what waits at one socket, at most ALB_RX_MESSAGES messages, and hands it on. Returns the number of messages;
// 0 means that nothing was there. Otherwise *now becomes when they had come: what comes after the caller has read the
// clock would have been under way for too short a time, and round trips of less than a microsecond were measured.
uint32_t alb_rx_receive(struct alb_rx *rx, struct alb_socket *socket, alb_time *now);
