// SPDX-License-Identifier: BSD-2-Clause
// The table of peers and the window toward each.
//
// No source waits for ever: whatever is in flight is released some day, every release lets as many sources try as what
// it freed may serve, and the one after which nothing is in flight that was asked for lets all of them try.
#include "engine/impl.h"
#include "wire/roce.h"

#include <errno.h>

_Static_assert(sizeof(struct alb_endpoint) == 18, "an endpoint is hashed as bytes: it has no padding");

static struct alb_list *bucket_of(struct alb_peers *peers, const struct alb_endpoint *endpoint)
{
    uint64_t hash = alb_siphash13(&peers->hash_key, endpoint, sizeof(*endpoint));
    return &peers->buckets[hash & (peers->bucket_count - 1)];
}

int alb_peers_init(struct alb_engine *engine)
{
    struct alb_peers *peers = &engine->peers;
    uint32_t peer_max = engine->config.peer_max;
    alb_list_init(&peers->free);
    peers->bucket_count = 1;
    while (peers->bucket_count < peer_max)
        peers->bucket_count *= 2;
    alb_rng_fill(&engine->rng, &peers->hash_key, sizeof(peers->hash_key));
    peers->pool = alb_engine_get_memory(engine, peer_max * sizeof(*peers->pool));
    peers->buckets = alb_engine_get_memory(engine, peers->bucket_count * sizeof(*peers->buckets));
    if (!peers->pool || !peers->buckets) {
        alb_peers_fini(engine);
        return ENOMEM;
    }
    for (uint32_t i = 0; i < peers->bucket_count; i++)
        alb_list_init(&peers->buckets[i]);
    for (uint32_t i = 0; i < peer_max; i++)
        alb_list_push_back(&peers->free, &peers->pool[i].link);
    return 0;
}

void alb_peers_fini(struct alb_engine *engine)
{
    struct alb_peers *peers = &engine->peers;
    alb_engine_put_memory(engine, peers->pool, engine->config.peer_max * sizeof(*peers->pool));
    alb_engine_put_memory(engine, peers->buckets, peers->bucket_count * sizeof(*peers->buckets));
    peers->pool = NULL;
    peers->buckets = NULL;
}

struct alb_peer *alb_peer_get(struct alb_engine *engine, const struct alb_endpoint *endpoint)
{
    struct alb_list *bucket = bucket_of(&engine->peers, endpoint);
    ALB_LIST_FOR_EACH (bucket, node) {
        struct alb_peer *peer = ALB_LIST_ENTRY(node, struct alb_peer, link);
        if (alb_endpoint_equals(&peer->endpoint, endpoint)) {
            peer->refs++;
            return peer;
        }
    }
    struct alb_list *node = alb_list_pop(&engine->peers.free);
    if (!node)
        return NULL;
    struct alb_peer *peer = ALB_LIST_ENTRY(node, struct alb_peer, link);
    peer->endpoint = *endpoint;
    peer->refs = 1;
    peer->inflight_bytes = 0;
    peer->heard = 0;
    alb_list_init(&peer->waiting);
    engine->congestion->init(&peer->congestion, &engine->config);
    alb_list_push_back(bucket, &peer->link);
    return peer;
}

static void wake_first(struct alb_engine *engine, struct alb_peer *peer)
{
    struct alb_source *source = ALB_LIST_ENTRY(peer->waiting.next, struct alb_source, link);
    alb_scheduler_wake(&engine->scheduler, source);
}

void alb_peer_put(struct alb_engine *engine, struct alb_peer *peer)
{
    alb_assert(peer->refs > 0);
    if (--peer->refs > 0)
        return;
    alb_assert(peer->inflight_bytes == 0);
    while (!alb_list_is_empty(&peer->waiting))
        wake_first(engine, peer);
    alb_list_remove(&peer->link);
    alb_list_push_back(&engine->peers.free, &peer->link);
}

bool alb_peer_permits(const struct alb_peer *peer, uint32_t bytes)
{
    return peer->inflight_bytes == 0 || peer->inflight_bytes + bytes <= peer->congestion.window_bytes;
}

bool alb_peer_is_unasked(const struct alb_peer *peer)
{
    return peer->inflight_bytes <= peer->unasked_bytes;
}

void alb_peer_charge(struct alb_peer *peer, uint32_t bytes)
{
    peer->inflight_bytes += bytes;
}

void alb_peer_wait(struct alb_peer *peer, struct alb_source *source)
{
    alb_scheduler_remove(source);
    alb_list_push_back(&peer->waiting, &source->link);
}

void alb_peer_release(struct alb_engine *engine, struct alb_peer *peer, uint64_t bytes)
{
    alb_assert(bytes <= peer->inflight_bytes);
    peer->inflight_bytes -= bytes;
    bool is_last = alb_peer_is_unasked(peer);
    int64_t room = (int64_t)peer->congestion.window_bytes - (int64_t)peer->inflight_bytes;
    for (; !alb_list_is_empty(&peer->waiting) && (is_last || room > 0); room -= ALB_ROCE_PAYLOAD_MAX)
        wake_first(engine, peer);
}
