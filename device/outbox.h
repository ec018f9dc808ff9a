// SPDX-License-Identifier: BSD-2-Clause
// Messages for a socket: collected so that one system call takes many, sent in order, and what the socket does not take
// is waited for, done without GSO, or lost and counted by reason.
#pragma once

#include "device/edge_stats.h"
#include "device/line.h"
#include "device/socket.h"
#include "wire/icrc.h"

#include <sys/socket.h>

#define ALB_OUTBOX_MESSAGES   32    // of one sendmmsg
#define ALB_OUTBOX_BYTES      32768 // enough for a system call: what follows is sealed while this is on its way
#define ALB_OUTBOX_JOINED     1024  // references of bursts, of which pieces that lie behind each other have been joined
#define ALB_OUTBOX_FLAT_BYTES 512   // messages up to this are copied into one piece
// Bursts of datagrams up to this are copied into one piece while they are sealed: what waits and one burst more.
#define ALB_OUTBOX_COPIED_DATAGRAM 2048
#define ALB_OUTBOX_COPIES_BYTES    (ALB_OUTBOX_BYTES + 65536)

struct alb_outbox_message {
    struct alb_socket *socket;
    const struct alb_endpoint *peer; // as iov
    uint8_t traffic_class;
    uint8_t hop_limit;
    bool is_whole, may_be_cut; // as the burst's
    uint32_t segment_bytes;    // 0: one datagram; else the kernel cuts it into datagrams of this size
    uint32_t datagrams;
    struct iovec *iov; // stays valid until the outbox is flushed
    uint32_t iov_count;
    uint32_t length;                // of all that iov refers to
    const struct alb_burst *burst;  // if the kernel is to cut it: what it is made of, sealed by place
    uint8_t *burst_copy;            // all of it in one piece, or NULL
    struct alb_line_datagram *copy; // to be given back to the delay line when it is sent, or NULL
};

struct alb_outbox_control {
    _Alignas(8) uint8_t bytes[96]; // segment size, traffic class, hop limit
};

struct alb_outbox {
    struct alb_tx *tx; // that the bursts belong to
    struct alb_line *line;
    struct alb_edge_stats *stats;
    bool icrc_ones;
    struct alb_socket *socket; // all waiting messages are for this one
    bool has_too_big;          // a datagram has been refused as too large for the path since that was last looked at:
    struct alb_endpoint too_big_local, too_big_peer;
    uint32_t count;
    uint32_t bytes; // of all that wait
    struct mmsghdr headers[ALB_OUTBOX_MESSAGES];
    union alb_sockaddr names[ALB_OUTBOX_MESSAGES];
    struct alb_outbox_control controls[ALB_OUTBOX_MESSAGES];
    struct iovec flat_iov[ALB_OUTBOX_MESSAGES]; // of the messages that lie in one piece
    uint8_t flat[ALB_OUTBOX_MESSAGES][ALB_OUTBOX_FLAT_BYTES];
    struct iovec joined[ALB_OUTBOX_JOINED]; // of bursts, and how many there are
    uint32_t joined_count;
    uint32_t copies_bytes; // of copies that wait
    const struct alb_burst *bursts[ALB_OUTBOX_MESSAGES];
    const struct alb_endpoint *peers[ALB_OUTBOX_MESSAGES];
    uint32_t segment_bytes[ALB_OUTBOX_MESSAGES];
    bool is_whole[ALB_OUTBOX_MESSAGES];
    struct alb_line_datagram *copies[ALB_OUTBOX_MESSAGES];
    uint32_t datagrams[ALB_OUTBOX_MESSAGES];
    uint8_t burst_copies[ALB_OUTBOX_COPIES_BYTES];
};

void alb_outbox_init(struct alb_outbox *outbox, struct alb_tx *tx, struct alb_line *line, struct alb_edge_stats *stats,
                     bool icrc_ones);

// Writes the ICRCs of a burst, of what may change those of a copy that its segments refer to from then on. is_cut: the
// kernel is to cut it, else each segment leaves alone. May send what waits. Returns a copy of the burst in one piece,
// good for the message that is added next, or NULL.
uint8_t *alb_outbox_seal(struct alb_outbox *outbox, const struct alb_burst *burst, struct alb_socket *socket,
                         bool is_cut);

// Adds a message (iov and length are ignored for a copy); sends those before it first if they are for another socket or
// too many, and all of them if they are many bytes.
void alb_outbox_add(struct alb_outbox *outbox, const struct alb_outbox_message *message);

// Seals and sends a short burst that is the only one of its batch by the shortest way. False: it is not such a burst,
// or the socket refused it, and it has to be added like any other.
bool alb_outbox_send_lone(struct alb_outbox *outbox, const struct alb_burst *burst, struct alb_socket *socket);

// What a message is counted as that a socket did not take, by the errno that said so.
enum alb_edge_stat alb_outbox_reason(int error);

// Sends what waits. Nothing refers to the messages any more when it returns.
void alb_outbox_flush(struct alb_outbox *outbox);
