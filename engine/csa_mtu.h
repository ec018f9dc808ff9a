// SPDX-License-Identifier: BSD-2-Clause
// Path MTU: how long packets to a peer may be. What the host's routes say is the most (alb_engine_path_mtu), and
// believed within the host; of other peers only what nearly every network carries, and longer packets are tried first:
// a padded PING of that size, in one piece, and its PONG. The approach is that of RFC 8899 (datagram packetization
// layer path MTU discovery), with frames of our own.
//
// A size that worked may cease to, without a word from the network: then long packets vanish and short ones arrive.
// When a segment has been lost again and again, a PING of the size in use is tried beside a short one, until it or a
// segment in a packet of that size is answered. For a tenth of a second: where a policer drops nine of ten packets, and
// long ones sooner than short ones, that is how long it may take for one to arrive.
//
// A message is cut once. Its segments that have become too long leave in packets that IP may cut (alb_burst's
// may_be_cut). Where no router does, as over IPv6, and the host does not know the path, they never arrive: the queue
// pair fails, and what was found is remembered for the next one.
#pragma once

#include "base/addr.h"
#include "engine/deadline.h"

struct alb_assoc;
struct alb_assoc_live;
struct alb_csa_packet;
struct alb_engine;

#define ALB_MTU_SUSPICIOUS_TIMES 3                     // that a segment has left, and was lost each time
#define ALB_MTU_HOPELESS_TIMES   16                    // likewise, though IP might cut its packet
#define ALB_MTU_HOPELESS_NS      (250 * ALB_NS_PER_MS) // and for so long: else it may be chance, and the size, too
#define ALB_MTU_FOUND_MAX        16
#define ALB_MTU_GRAIN            32 // bytes: closer need not be known
#define ALB_MTU_TOO_NARROW       "the path is too narrow for a message under way"

// Sizes are being tried; there is none at other times.
struct alb_mtu_search {
    struct alb_assoc_live *live;
    struct alb_deadline timer;
    uint16_t candidate; // the size that is tried: bytes of UDP payload
    uint16_t too_long;  // known not to work
    uint8_t tries;      // of the candidate
    bool is_check;      // the candidate is the size in use, which is suspected
    bool short_works;   // of a check: the short PING was answered
    bool ping_is_due;
    uint32_t began_64ns; // a check
};

// Another size than one begins with was found to be what gets through to a peer: kept beyond its association.
struct alb_mtu_found {
    struct alb_addr peer;
    alb_time at;                         // 0: a free place
    uint16_t payload_limit, payload_max; // of the association
};

// Of a new association: what was found before, else what is safe.
void alb_mtu_begin(struct alb_engine *engine, struct alb_assoc *assoc);
// The routes carry so many bytes of UDP payload.
void alb_mtu_set_route(struct alb_engine *engine, struct alb_assoc *assoc, uint32_t payload_max);
// Traffic flows: tries longer packets if it is time to, and the peer has been heard.
void alb_mtu_consider(struct alb_assoc_live *live, alb_time now);
// A segment was lost that had left ALB_MTU_SUSPICIOUS_TIMES or more times.
void alb_mtu_suspect(struct alb_assoc_live *live, alb_time now);
// A packet as long as is believed has arrived; it left then, in units of 64 ns.
void alb_mtu_on_full(struct alb_assoc_live *live, uint32_t sent_at_64ns);
// So many bytes have got through in one packet.
void alb_mtu_on_pong(struct alb_assoc_live *live, uint32_t bytes, alb_time now);
// Sends what is to be tried, in packets of its own. False: the batch is full.
bool alb_mtu_send(struct alb_csa_packet *packet);
void alb_mtu_stop(struct alb_assoc_live *live);
