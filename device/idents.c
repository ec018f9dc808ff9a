// SPDX-License-Identifier: BSD-2-Clause
// The table of peers' identification habits. Forged source addresses can fill it; a good ICRC is needed for that, and
// what is lost is only the narrowing of the check for the peers that were pushed out.
#include "device/idents.h"

#include <string.h>

#define EVICTION_DRAWS 8

size_t alb_idents_bytes(void)
{
    return sizeof(struct alb_idents) + alb_map_bytes(ALB_IDENTS_MAX, sizeof(struct alb_addr));
}

struct alb_idents *alb_idents_init(void *memory, const struct alb_siphash_key *hash_key)
{
    struct alb_idents *idents = memory;
    alb_map_init(&idents->map, ALB_IDENTS_MAX, sizeof(struct alb_addr), idents->map_memory, hash_key);
    alb_prng_init(&idents->prng, hash_key->words[0]);
    idents->last_index = ALB_IDENTS_MAX;
    return idents;
}

// Removes the longest silent of a few peers and returns its index.
static uint32_t evict(struct alb_idents *idents, alb_time now)
{
    uint32_t now_ms = (uint32_t)(now / ALB_NS_PER_MS);
    const void *oldest_key = NULL;
    uint32_t oldest_age = 0;
    for (int i = 0; i < EVICTION_DRAWS; i++) {
        const void *key;
        uint32_t place = (uint32_t)alb_prng_below(&idents->prng, alb_map_count(&idents->map));
        uint32_t index = (uint32_t)alb_map_at(&idents->map, place, &key);
        uint32_t age = now_ms - idents->peers[index].heard_ms;
        if (!oldest_key || age > oldest_age) {
            oldest_key = key;
            oldest_age = age;
        }
    }
    struct alb_addr key;
    uint64_t index;
    memcpy(&key, oldest_key, sizeof(key));
    bool removed = alb_map_remove(&idents->map, &key, &index);
    alb_assert(removed);
    return (uint32_t)index;
}

static void remember(struct alb_idents *idents, const struct alb_addr *addr, uint32_t index)
{
    idents->last_addr = *addr;
    idents->last_index = index;
}

static void enter(struct alb_idents *idents, const struct alb_addr *addr, const struct alb_icrc_peer *peer,
                  alb_time now)
{
    uint32_t count = alb_map_count(&idents->map);
    uint32_t index =
        count < ALB_IDENTS_MAX ? count : evict(idents, now); // indexes are never given back but by eviction
    enum alb_map_insert result = alb_map_insert(&idents->map, addr, index);
    alb_assert(result == ALB_MAP_INSERTED);
    idents->peers[index] = *peer;
    remember(idents, addr, index);
}

bool alb_idents_check(struct alb_idents *idents, const struct alb_datagram *datagram, uint16_t *identification,
                      alb_time now)
{
    const struct alb_addr *addr = &datagram->peer.addr;
    uint64_t index;
    if (idents->last_index < ALB_IDENTS_MAX && alb_addr_equals(&idents->last_addr, addr))
        return alb_icrc_check(&idents->flow, datagram, &idents->peers[idents->last_index], identification, now);
    if (alb_map_find(&idents->map, addr, &index)) {
        remember(idents, addr, (uint32_t)index);
        return alb_icrc_check(&idents->flow, datagram, &idents->peers[index], identification, now);
    }
    struct alb_icrc_peer stranger = {0};
    if (!alb_icrc_check(&idents->flow, datagram, &stranger, identification, now))
        return false;
    enter(idents, addr, &stranger, now);
    return true;
}
