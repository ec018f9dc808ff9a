// SPDX-License-Identifier: BSD-2-Clause
// The relay. A foreign peer sends to UDP port 4791 whatever queue pair it means. The holder of that port passes what is
// for another process slot on to port 4791 + slot of the same address: one envelope and behind it a run of datagrams
// that came from one source in one burst, so that batches stay batches.
//
// Trust. An envelope says where its datagrams came from, so it is trusted only if it came from port 4791 of the very
// address that it was sent to. Only the process that holds that port can send so, and that process receives (and could
// change, drop or invent) everything foreign anyway: trusting its envelopes gives it nothing it did not have. An
// envelope from elsewhere is dropped and counted as not_roce. What is inside is still hostile: the ICRC is checked by
// the holder, so that it passes on nothing but packets, and again by the receiver.
#pragma once

#include "device/edge_stats.h"
#include "device/slot.h"

#include <sys/socket.h>

#define ALB_ENVELOPE_BYTES 32

// Where the datagrams of an envelope came from, and how they are cut.
struct alb_envelope {
    struct alb_endpoint peer;
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint16_t segment_bytes; // all datagrams have this size but the last, which may be shorter
};

void alb_envelope_encode(const struct alb_envelope *envelope, uint8_t out[ALB_ENVELOPE_BYTES]);
// False if the bytes do not begin with an envelope; no RoCE packet does (its first byte is a reserved opcode).
bool alb_envelope_decode(const uint8_t *bytes, uint32_t length, struct alb_envelope *envelope);

#define ALB_RELAY_RUNS_MAX 32

// Runs waiting to be passed on in one system call. Their bytes stay where they were received until alb_relay_flush.
struct alb_relay {
    struct alb_edge_stats *stats;
    const struct alb_socket *front; // the socket of port 4791 that all waiting runs go out by
    uint32_t count;
    struct {
        struct alb_envelope envelope;
        uint32_t datagrams;
        uint8_t header[ALB_ENVELOPE_BYTES];
        struct iovec iov[2];
        _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))];
        union alb_sockaddr target;
        uint8_t slot;
    } runs[ALB_RELAY_RUNS_MAX];
};

void alb_relay_init(struct alb_relay *relay, struct alb_edge_stats *stats);

// Takes a received datagram for another slot. front is the socket of port 4791 that it came in by. A datagram that
// follows the one before it in memory, from the same source and for the same slot, joins its run.
void alb_relay_add(struct alb_relay *relay, const struct alb_socket *front, uint8_t slot,
                   const struct alb_envelope *envelope, const uint8_t *bytes, uint32_t length);

// Sends all runs that wait, each as one datagram, whatever size of segments the socket has taken over; what the kernel
// does not take is lost and counted.
void alb_relay_flush(struct alb_relay *relay);
