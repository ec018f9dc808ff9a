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
#include "engine/csa_mtu.h"
#include "engine/csa_reply.h"
#include "engine/deadline.h"

struct alb_csa;

struct alb_csa_engine {
    struct alb_engine *engine;
    struct alb_buddy pool;
    void *arena, *bookkeeping;        // the pool's memory
    uint32_t packet_number;           // of the packet whose frames are being taken
    struct alb_assoc *assocs;         // config.peer_max places
    struct alb_assoc *found_last;     // by alb_assoc_find; NULL: it has ended
    struct alb_csa *heard_last;       // by alb_csa_find_qp; NULL: it has ended
    uint32_t *buckets;                // by hash: index + 1 of the first association in each; 0: empty
    uint32_t bucket_count;            // a power of two
    uint32_t free_first;              // index + 1 of the first free place, which has the next one; 0: none
    uint32_t assoc_count, assoc_used; // now; places that were ever taken
    struct alb_siphash_key hash_key;
    uint32_t life;              // random; our epochs follow from it (alb_csa_epoch_for)
    struct alb_addr locals[16]; // our addresses that associations have
    uint32_t local_refs[16];    // associations that have it
    uint32_t local_count;       // places that were ever taken
    struct alb_list live;       // of struct alb_assoc_live
    struct alb_slab rests;      // records of associations that have slept (csa_rest.c)
    alb_time aged_at;           // when what rests was last looked at
    struct alb_list starved;    // of struct alb_stream_out: the pool was empty when they wanted to send
    struct alb_deadline sweep_timer;
    struct alb_csa_loss loss;
    struct alb_credit_pool credit;
    uint64_t waiting_bytes;  // of segments that came early
    uint64_t snapshot_bytes; // of answers that are kept (csa_snapshot.c)
    alb_time room_made_at;   // for them, the last time
    uint64_t uc_bits_bytes;  // of bits of what comes in by UC (csa_uc_in.c)
    struct alb_csa_replies replies;
    struct alb_list expect_groups;
    struct alb_csa_cookies cookies;
    struct alb_mtu_found mtu_found[ALB_MTU_FOUND_MAX];
};

// Our epoch for the peer engine in that slot; never 0. It is another one for each peer: who has read it, since it is
// one of them, knows nothing that we and another one have in common.
uint32_t alb_csa_epoch_for(const struct alb_csa_engine *csa, const struct alb_addr *local, const struct alb_addr *peer,
                           uint8_t slot);

// Fills engine->csa by the engine's configuration. Returns 0; EINVAL: no such loss or credit policy; ENOMEM.
int alb_csa_engine_create(struct alb_engine *engine);
// Frees it all; nothing is awake any more. Does nothing where there is none.
void alb_csa_engine_destroy(struct alb_engine *engine);
