// SPDX-License-Identifier: BSD-2-Clause
// What an engine has once of the transport csa: the table of associations, the pool that they wake from, its epoch.
#pragma once

#include "base/buddy.h"
#include "base/list.h"
#include "base/siphash.h"
#include "base/slab.h"
#include "engine/credit.h"
#include "engine/csa_hello.h"
#include "engine/csa_loss.h"
#include "engine/csa_reply.h"
#include "engine/deadline.h"

struct alb_csa;

// One per engine of this transport.
struct alb_csa_engine {
    struct alb_engine *engine;
    struct alb_buddy pool;
    void *arena, *bookkeeping;
    uint32_t epoch;
    struct alb_assoc *assocs;
    struct alb_assoc *found_last; // by alb_assoc_find; NULL: it has ended
    struct alb_csa *heard_last;   // by alb_csa_find_qp; NULL: it has ended
    uint32_t *buckets;            // index + 1
    uint32_t bucket_count, free_first;
    uint32_t assoc_count, assoc_used; // now; places that were ever taken
    struct alb_siphash_key hash_key;
    struct alb_addr locals[16];
    uint32_t local_refs[16]; // associations that have it
    uint32_t local_count;    // places that were ever taken
    struct alb_list live;
    struct alb_slab rests;
    alb_time aged_at;        // when what rests was last looked at
    struct alb_list starved; // senders whose association could not wake: the pool was empty
    struct alb_deadline sweep_timer;
    struct alb_csa_loss loss;
    struct alb_credit_pool credit;
    uint64_t waiting_bytes; // of segments that came early
    uint64_t snapshot_bytes;
    struct alb_csa_replies replies;
    struct alb_list expect_groups;
    struct alb_csa_cookies cookies;
};

int alb_csa_engine_create(struct alb_engine *engine);
void alb_csa_engine_destroy(struct alb_engine *engine);
