// SPDX-License-Identifier: BSD-2-Clause
// Scripts: what a link does to which packet. Rules select by header and count, so that a test reads like a sentence:
// "drop the third packet", "delay the first acknowledgement by 30 us". One link is one direction.
#pragma once

#include "sim/time.h"
#include "wire/roce.h"

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
};

struct alb_sim_rule {
    uint32_t by; // enum alb_sim_by; 0: every packet
    uint8_t opcode;
    uint32_t flags;
    alb_psn psn;
    alb_qpn qpn;
    uint32_t from;  // the first packet it acts on, among those that match: 1 is the first; 0 stands for 1
    uint32_t times; // how many packets from there; 0 stands for 1; UINT32_MAX: all
    enum alb_sim_action action;
    uint64_t amount;
    uint32_t matched; // packets that matched so far
    uint32_t acted;   // packets acted on so far
};

#define ALB_SIM_RULES_MAX 16

struct alb_sim_script {
    struct alb_sim_rule rules[ALB_SIM_RULES_MAX];
    uint32_t count;
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
// Adds to the verdict what the rules say about the next packet, of which these are the headers.
void alb_sim_script_decide(struct alb_sim_script *script, const struct alb_roce *roce, struct alb_sim_verdict *verdict);
