// SPDX-License-Identifier: BSD-2-Clause
// The table of associations: which one a packet or a queue pair belongs to. What one has besides while packets come and
// go is csa_live.c's.
#include "engine/impl.h"

_Static_assert(sizeof(struct alb_assoc) == 64, "an idle association is one cache line");

static uint32_t *bucket_of(struct alb_csa_engine *csa, const struct alb_addr *peer, uint8_t slot, uint8_t local)
{
    uint8_t key[sizeof(*peer) + 2];
    memcpy(key, peer->bytes, sizeof(*peer));
    key[sizeof(*peer)] = slot;
    key[sizeof(*peer) + 1] = local;
    return &csa->buckets[alb_siphash13(&csa->hash_key, key, sizeof(key)) & (csa->bucket_count - 1)];
}

// The index of a local address; -1: no association has it.
static int local_index(const struct alb_csa_engine *csa, const struct alb_addr *local)
{
    for (uint32_t i = 0; i < csa->local_count; i++)
        if (csa->local_refs[i] > 0 && alb_addr_equals(&csa->locals[i], local))
            return (int)i;
    return -1;
}

// Likewise, in a free entry if need be; -1: there are too many. It is taken with the first association.
static int learn_local(struct alb_csa_engine *csa, const struct alb_addr *local)
{
    int index = local_index(csa, local);
    for (uint32_t i = 0; index < 0 && i < ALB_COUNT(csa->locals); i++)
        if (csa->local_refs[i] == 0)
            index = (int)i;
    if (index < 0)
        return -1;
    csa->locals[index] = *local;
    csa->local_count = ALB_MAX(csa->local_count, (uint32_t)index + 1);
    return index;
}

static struct alb_assoc *find(struct alb_csa_engine *csa, const struct alb_addr *peer, uint8_t slot, uint8_t local)
{
    for (uint32_t next = *bucket_of(csa, peer, slot, local); next;) {
        struct alb_assoc *assoc = &csa->assocs[next - 1];
        if (assoc->slot == slot && assoc->local == local && alb_addr_equals(&assoc->peer, peer))
            return assoc;
        next = assoc->next;
    }
    return NULL;
}

uint32_t alb_assoc_epoch(const struct alb_csa_engine *csa, const struct alb_assoc *assoc)
{
    return assoc->live ? assoc->live->epoch
                       : alb_csa_epoch_for(csa, &csa->locals[assoc->local], &assoc->peer, assoc->slot);
}

// Packets mostly come in runs from one peer.
struct alb_assoc *alb_assoc_find(struct alb_engine *engine, const struct alb_addr *local, const struct alb_addr *peer,
                                 uint8_t slot)
{
    struct alb_csa_engine *csa = engine->csa;
    struct alb_assoc *last = csa->found_last;
    if (last && last->slot == slot && alb_addr_equals(&last->peer, peer) &&
        alb_addr_equals(&csa->locals[last->local], local))
        return last;
    int index = local_index(csa, local);
    struct alb_assoc *assoc = index < 0 ? NULL : find(csa, peer, slot, (uint8_t)index);
    if (assoc)
        csa->found_last = assoc;
    return assoc;
}

// Places that were never used are taken in order, so that memory is touched as far as there are associations.
static struct alb_assoc *take_place(struct alb_engine *engine)
{
    struct alb_csa_engine *csa = engine->csa;
    if (csa->free_first) {
        struct alb_assoc *assoc = &csa->assocs[csa->free_first - 1];
        csa->free_first = assoc->next;
        csa->assoc_count++;
        return assoc;
    }
    if (csa->assoc_used == engine->config.peer_max)
        return NULL;
    csa->assoc_count++;
    return &csa->assocs[csa->assoc_used++];
}

struct alb_assoc *alb_assoc_get(struct alb_engine *engine, const struct alb_addr *local, const struct alb_addr *peer,
                                uint8_t slot)
{
    struct alb_csa_engine *csa = engine->csa;
    int index = learn_local(csa, local);
    if (index < 0)
        return NULL;
    struct alb_assoc *assoc = find(csa, peer, slot, (uint8_t)index);
    if (assoc) {
        assoc->refs++;
        return assoc;
    }
    assoc = take_place(engine);
    if (!assoc)
        return NULL;
    uint32_t *bucket = bucket_of(csa, peer, slot, (uint8_t)index);
    *assoc = (struct alb_assoc){
        .peer = *peer,
        .next = *bucket,
        .refs = 1,
        .sequence = alb_rng_u64(&engine->rng) & ALB_PSN_MASK,
        .slot = slot,
        .local = (uint8_t)index,
    };
    alb_mtu_begin(engine, assoc);
    alb_assoc_show(engine, assoc);
    *bucket = (uint32_t)(assoc - csa->assocs) + 1;
    csa->local_refs[index]++;
    return assoc;
}

void alb_assoc_put(struct alb_engine *engine, struct alb_assoc *assoc)
{
    struct alb_csa_engine *csa = engine->csa;
    alb_assert(assoc->refs > 0);
    if (--assoc->refs > 0)
        return;
    if (assoc->live)
        alb_assoc_sleep(assoc->live);
    alb_rest_forget(csa, assoc);
    alb_assoc_hide(engine, assoc);
    if (csa->found_last == assoc)
        csa->found_last = NULL;
    uint32_t self = (uint32_t)(assoc - csa->assocs) + 1;
    uint32_t *link = bucket_of(csa, &assoc->peer, assoc->slot, assoc->local);
    while (*link != self)
        link = &csa->assocs[*link - 1].next;
    *link = assoc->next;
    csa->local_refs[assoc->local]--;
    assoc->next = csa->free_first;
    csa->free_first = self;
    csa->assoc_count--;
}

void alb_assoc_restart(struct alb_engine *engine, struct alb_assoc *assoc, uint32_t epoch)
{
    assoc->dead_epoch = assoc->peer_epoch;
    assoc->peer_epoch = epoch;
    alb_rest_forget(engine->csa, assoc);
    if (!assoc->live)
        return;
    struct alb_assoc_live *live = assoc->live;
    live->credit_bytes = ALB_CSA_CREDIT_NONE;
    live->share = 0;
    live->peer_rtt_ns = 0;
    for (uint32_t i = 0; i < live->paths_in_count; i++)
        live->paths_in[i] = (struct alb_path_in){0};
    live->paths_in_gaps = live->paths_in_news = (struct alb_path_set){0};
}

void alb_engine_path_mtu(struct alb_engine *engine, const struct alb_endpoint *peer, uint32_t udp_payload_max,
                         alb_time now)
{
    struct alb_csa_engine *csa = engine->csa;
    if (!csa) // that of "rc" is each queue pair's own attribute
        return;
    uint32_t slot = peer->port - ALB_ROCE_PORT;
    for (uint32_t i = 0; slot <= UINT8_MAX && i < csa->local_count; i++) {
        struct alb_assoc *assoc = find(csa, &peer->addr, (uint8_t)slot, (uint8_t)i);
        if (assoc)
            alb_mtu_set_route(engine, assoc, udp_payload_max);
    }
}
