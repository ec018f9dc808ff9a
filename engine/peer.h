// SPDX-License-Identifier: BSD-2-Clause
// Limits what may be in flight. All reliable queue pairs toward a peer endpoint share one window; unreliable traffic,
// which is not acknowledged, has a rate limit.
#pragma once

#include "base/addr.h"
#include "base/list.h"
#include "base/siphash.h"
#include "engine/deadline.h"
#include "engine/policy.h"

struct alb_engine;
struct alb_source;

struct alb_peer {
    struct alb_endpoint endpoint;
    uint32_t refs; // queue pairs connected to it
    uint64_t inflight_bytes;
    uint64_t unasked_bytes; // of them: nobody has asked for their acknowledgement yet
    uint32_t unasked_qps;   // queue pairs that sent them
    alb_time heard;         // when something last came from it
    struct alb_congestion congestion;
    struct alb_list waiting; // sources that the window holds back
    struct alb_list link;    // in its bucket
};

struct alb_peers {
    struct alb_peer *pool;
    struct alb_list *buckets;
    struct alb_list free;
    uint32_t bucket_count;
    struct alb_siphash_key hash_key; // peers choose their addresses
};

// 0 or ENOMEM.
int alb_peers_init(struct alb_engine *engine);
void alb_peers_fini(struct alb_engine *engine);
// The peer at that endpoint, made if need be, with one reference more; NULL: the table is full.
struct alb_peer *alb_peer_get(struct alb_engine *engine, const struct alb_endpoint *endpoint);
// Gives a reference back. The last one ends the peer: nothing of it may be in flight.
void alb_peer_put(struct alb_engine *engine, struct alb_peer *peer);

// True if bytes more may be put in flight; the first packet always may.
bool alb_peer_permits(const struct alb_peer *peer, uint32_t bytes);
// Nothing that is in flight will be acknowledged unless somebody asks: who can may send one packet more.
bool alb_peer_is_unasked(const struct alb_peer *peer);
// So many bytes are in flight.
void alb_peer_charge(struct alb_peer *peer, uint32_t bytes);
// Puts the source to sleep until the window may let it send. Only while something is in flight.
void alb_peer_wait(struct alb_peer *peer, struct alb_source *source);
// No longer in flight: acknowledged, given up, or to be sent again. Wakes sources that waited, so the congestion policy
// must be updated before.
void alb_peer_release(struct alb_engine *engine, struct alb_peer *peer, uint64_t bytes);

// A rate limit: a bucket of bytes that fills with time.
struct alb_pacer {
    uint64_t bytes_per_s; // 0: no limit
    int64_t credit_bytes;
    alb_time last;
    struct alb_deadline deadline;
    struct alb_list waiting;
};

void alb_pacer_init(struct alb_engine *engine);
// True if something may leave now, however large; alb_pacer_charge says how large it was.
bool alb_pacer_permits(struct alb_engine *engine, alb_time now);
void alb_pacer_charge(struct alb_engine *engine, uint32_t bytes);
// Puts the source to sleep until the bucket has filled again.
void alb_pacer_wait(struct alb_engine *engine, struct alb_source *source, alb_time now);
