// SPDX-License-Identifier: BSD-2-Clause
// The parameters of DCQCN, and the part of it at the receiver: the notification point, which answers marked packets
// with congestion notification packets (CNP). The sender's part, the reaction point, is the congestion policy "dcqcn".
#pragma once

#include "base/types.h"

struct alb_dcqcn_config {
    uint64_t rate_max_bytes_per_s; // of the link; what a sender begins with, unpaced until the first CNP
    uint64_t rate_min_bytes_per_s;
    uint64_t additive_bytes_per_s; // R_AI: how much the target rate grows at a time
    uint64_t hyper_bytes_per_s;    // R_HAI: the same once it has grown undisturbed for long
    uint32_t gain_log2;            // g = 2^-gain_log2: how fast alpha follows
    uint32_t recovery_steps;       // F: steps toward the rate before the cut, before the target rate grows
    uint32_t counter_bytes;        // B: after so many bytes the rate makes a step up
    uint64_t increase_ns;          // T: and each time after so long
    uint64_t alpha_ns;             // K: each time after so long without a CNP alpha shrinks
    uint64_t cnp_ns;               // N: the notification point sends no more than one CNP in so long
    uint64_t burst_ns;             // a sender that came late may catch up with so much of its time
};

#define ALB_DCQCN_RATE_MAX_BYTES_PER_S 125000000000ull      // 1 Tb/s
#define ALB_DCQCN_BURST_MAX_NS         (50 * ALB_NS_PER_MS) // keeps time times rate within 64 bits

// What Zhu et al. publish ("Congestion control for large-scale RDMA deployments", SIGCOMM 2015), for links of 40 Gb/s.
void alb_dcqcn_config_default(struct alb_dcqcn_config *config);
// True if the parameters are within what the arithmetic can represent.
bool alb_dcqcn_config_is_valid(const struct alb_dcqcn_config *config);

// The notification point of one association.
struct alb_dcqcn_np {
    alb_time silent_until;
};

// A packet with an ECN mark has come: true if a CNP is to be sent.
bool alb_dcqcn_np_on_mark(struct alb_dcqcn_np *np, const struct alb_dcqcn_config *config, alb_time now);
