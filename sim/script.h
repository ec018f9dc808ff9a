// SPDX-License-Identifier: BSD-2-Clause
// Scripts: what a link does to which packet. Rules select by header and count, so that a test reads like a sentence:
// "drop the third packet", "delay the first acknowledgement by 30 us". One link is one direction. What CSA's packets
// carry is looked at frame by frame: a rule matches a packet if one of its frames has all that the rule names.
#pragma once

#include "sim/time.h"
#include "wire/csa.h"

enum alb_sim_action {
    ALB_SIM_DROP,
    ALB_SIM_DUPLICATE, // it arrives twice
    ALB_SIM_SWAP,      // the packet sent after it arrives before it (amount: so many of them; 0: one)
    ALB_SIM_DELAY,     // it comes late by amount picoseconds
    ALB_SIM_CORRUPT,   // bit number amount of the UDP payload is flipped
    ALB_SIM_MARK,      // it has met congestion (ECN CE)
};

// What a rule looks at, besides the count.
enum alb_sim_by {
    ALB_SIM_BY_OPCODE = 1 << 0,
    ALB_SIM_BY_FLAGS = 1 << 1, // all of these enum alb_opcode_flag
    ALB_SIM_BY_PSN = 1 << 2,
    ALB_SIM_BY_QPN = 1 << 3, // destination
    ALB_SIM_BY_NAK = 1 << 4, // an acknowledgement that refuses (NAK, RNR NAK)
    // Of CSA's frames; with any of them psn and qpn are the frame's, not the packet's.
    ALB_SIM_BY_FRAME = 1 << 5,   // type
    ALB_SIM_BY_OP = 1 << 6,      // of a segment
    ALB_SIM_BY_INDEX = 1 << 7,   // of a segment in its message
    ALB_SIM_BY_MESSAGE = 1 << 8, // PSN of the first segment of the segment's message
    ALB_SIM_BY_NEW = 1 << 9,     // a segment that this link has not seen before
    ALB_SIM_BY_AGAIN = 1 << 10,  // one that it has: it is sent again
    ALB_SIM_BY_PATH = 1 << 11,   // path of the packet
    ALB_SIM_BY_ANY_FRAME = ALB_SIM_BY_FRAME | ALB_SIM_BY_OP | ALB_SIM_BY_INDEX | ALB_SIM_BY_MESSAGE | ALB_SIM_BY_NEW |
                           ALB_SIM_BY_AGAIN | ALB_SIM_BY_PATH,
};

struct alb_sim_rule {
    uint32_t by; // enum alb_sim_by; 0: every packet
    uint8_t opcode;
    uint32_t flags;
    alb_psn psn;
    alb_qpn qpn;
    enum alb_csa_type frame;
    enum alb_csa_op op;
    uint32_t index;
    alb_psn message;
    uint8_t path;
    uint32_t from;  // the first packet it acts on, among those that match: 1 is the first; 0 stands for 1
    uint32_t times; // how many packets from there; 0 stands for 1; UINT32_MAX: all
    enum alb_sim_action action;
    uint64_t amount;
    uint32_t matched; // packets that matched so far
    uint32_t acted;   // packets acted on so far
};

#define ALB_SIM_RULES_MAX   16
#define ALB_SIM_STREAMS_MAX 16

// How far a stream of segments has come that a link sees.
struct alb_sim_stream {
    enum alb_csa_type type; // REQUEST or RESPONSE
    alb_qpn qpn;
    alb_psn next; // one past the newest
};

struct alb_sim_script {
    struct alb_sim_rule rules[ALB_SIM_RULES_MAX];
    uint32_t count;
    struct alb_sim_stream streams[ALB_SIM_STREAMS_MAX]; // seen since there are rules; of more, the oldest is forgotten
    uint32_t stream_count;
};

// What becomes of one packet.
struct alb_sim_verdict {
    bool is_lost;
    bool is_marked;
    bool is_corrupt;
    uint32_t corrupt_bit;
    bool copies;   // it arrives twice
    uint32_t pass; // later packets that go on before it
    alb_sim_time delay;
};

// Adds a rule. Every rule looks at every packet, so effects add up.
void alb_sim_script_add(struct alb_sim_script *script, const struct alb_sim_rule *rule);
// Forgets all rules.
void alb_sim_script_clear(struct alb_sim_script *script);
// True once every rule has acted as often as it was to (those for all packets: at least once).
bool alb_sim_script_is_done(const struct alb_sim_script *script);
// Adds to the verdict what the rules say about the next packet: its headers, and its length bytes without the ICRC.
void alb_sim_script_decide(struct alb_sim_script *script, const struct alb_roce *roce, const uint8_t *bytes,
                           uint32_t length, struct alb_sim_verdict *verdict);
