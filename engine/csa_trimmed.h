// SPDX-License-Identifier: BSD-2-Clause
// Packets that a switch has trimmed to their headers, since it had no room for more. Such a loss need not be detected:
// the headers say which packet it was, and by which path, and that is reported to the peer at once. After the packet
// trimming of the Ultra Ethernet specification.
//
// What is left of such a packet has no ICRC that could be checked. So it changes nothing here: neither a queue pair,
// nor a path, nor what is known of the peer. What it names is reported to the peer, which sends again what did leave in
// that packet and is still in flight, and nothing else.
#pragma once

#include "wire/csa.h"

#define ALB_TRIMMED_MAX 16 // that wait to be reported; more are left to be found missing

struct alb_trimmed_in {
    uint8_t first, count;
    struct alb_csa_trimmed waiting[ALB_TRIMMED_MAX]; // ring
};

// The oldest one to be reported to the peer; false: there is none.
static inline bool alb_trimmed_in_next(const struct alb_trimmed_in *in, struct alb_csa_trimmed *trimmed)
{
    *trimmed = in->waiting[in->first];
    return in->count > 0;
}

// That one has been reported.
static inline void alb_trimmed_in_reported(struct alb_trimmed_in *in)
{
    in->first = (uint8_t)((in->first + 1) % ALB_TRIMMED_MAX);
    in->count--;
}
