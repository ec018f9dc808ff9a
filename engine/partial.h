// SPDX-License-Identifier: BSD-2-Clause
// Partial completion: what has come of a message that is not whole, as both of its ends know it. On UC a WRITE may be
// one of partial completion: its segments are placed whatever is missing, the receiver says what it holds, and what is
// missing is sent again when the program asks for it (M. Khalilov and others, "SDR-RDMA", 2025). Threads and errors are
// as in engine/verbs.h.
#pragma once

#include "engine/verbs.h"

#define ALB_PARTIAL_MESSAGES_MAX 1024

struct alb_partial {
    uint64_t remote_addr; // where it goes; 0: a SEND
    uint32_t number;      // RC: 0
    uint32_t total_bytes;
    uint32_t chunk_bytes; // per bit
    uint32_t chunks;
    uint32_t held; // chunks
    bool is_complete;
};

// Lets a queue pair have messages of partial completion, each way the newest so many (rounded up to a power of two).
// Any state. EOPNOTSUPP: not UC of csa; EINVAL: 0, beyond the limit, or enabled already; ENOMEM.
int alb_qp_partial_enable(struct alb_qp *qp, uint32_t messages_max);

// What has come of a message: of UC that with the number (0: the newest one), of RC the oldest that is not whole
// (number 0). partial->chunk_bytes is what a bit shall stand for; 0: a segment. bitmap may be NULL. ENOENT: there is
// none; ENOSPC: the bitmap has too few words, *partial is filled in; EINVAL: number; EOPNOTSUPP: neither RC nor UC of
// csa.
int alb_qp_partial(const struct alb_qp *qp, bool is_receiving, uint32_t number, struct alb_partial *partial,
                   uint64_t *bitmap, uint32_t words);

// Asks the peer what it holds of a message that was sent. ENOENT: forgotten, or not sent yet; EINVAL: not enabled.
int alb_qp_partial_ask(struct alb_qp *qp, uint32_t number, alb_time now);
