// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_rest.h"

#include "engine/impl.h"

#include <stddef.h>

enum {
    PAGE_BYTES_MAX = 16384,
    PAGES_MIN = 16, // of the pool: records must not crowd out what is in flight
    AGE_MAX = 2,
    UNIT = 8,                                                    // of a record's place in the pool
    POLICY_BYTES = offsetof(struct alb_delay_window, before_ns), // the largest of the policies
};

// An incoming path without a gap. The count of marked packets begins anew, for which senders are prepared.
struct path_at_rest {
    uint32_t settled : 24;
    uint32_t unreported : 2;
    uint32_t is_known : 1;
    uint32_t received;
    uint32_t newest_timestamp;
    alb_path_tick newest_at;
    uint32_t lateness_ns;
};

struct alb_rest {
    uint32_t assoc; // its index
    uint8_t age, paths_in_count;
    uint32_t credit_bytes;
    uint32_t rtt_ns, rtt_var_ns, rtt_min_ns, peer_rtt_ns;
    uint32_t window_bytes;
    uint32_t policy[POLICY_BYTES / sizeof(uint32_t)];
    uint32_t paths[]; // the table of outgoing paths, then the incoming ones
};

_Static_assert(POLICY_BYTES % sizeof(uint32_t) == 0, "kept in whole words");
_Static_assert(POLICY_BYTES >= sizeof(struct alb_dcqcn) && POLICY_BYTES >= sizeof(struct alb_aimd), "kept whole");
_Static_assert(sizeof(struct alb_path_out) % sizeof(uint32_t) == 0, "the incoming paths stand behind");

// ---- records --------------------------------------------------------------------------------------------------------

static size_t record_bytes(const struct alb_engine_config *config)
{
    return sizeof(struct alb_rest) + alb_paths_out_bytes(config->path_max) +
           config->path_max * sizeof(struct path_at_rest);
}

static size_t page_bytes(const struct alb_engine_config *config)
{
    size_t bytes = PAGE_BYTES_MAX;
    while (bytes > ALB_BUDDY_BLOCK_BYTES_MIN && bytes > config->csa_pool_bytes / PAGES_MIN)
        bytes /= 2;
    return bytes;
}

void alb_rests_init(struct alb_csa_engine *csa, const struct alb_engine_config *config)
{
    alb_slab_init(&csa->rests, &csa->pool, record_bytes(config), page_bytes(config));
}

uint32_t alb_rest_cost_bytes(const struct alb_engine_config *config)
{
    struct alb_slab slab;
    struct alb_buddy none = {0};
    alb_slab_init(&slab, &none, record_bytes(config), page_bytes(config));
    return alb_slab_cost_bytes(&slab);
}

static struct alb_rest *rest_of(const struct alb_csa_engine *csa, const struct alb_assoc *assoc)
{
    return assoc->rest ? (struct alb_rest *)(void *)(csa->pool.arena + (size_t)(assoc->rest - 1) * UNIT) : NULL;
}

void alb_rest_forget(struct alb_csa_engine *csa, struct alb_assoc *assoc)
{
    struct alb_rest *rest = rest_of(csa, assoc);
    if (rest)
        alb_slab_put(&csa->rests, rest);
    assoc->rest = 0;
}

static bool forget(void *object, void *context)
{
    struct alb_csa_engine *csa = context;
    struct alb_rest *rest = object;
    csa->assocs[rest->assoc].rest = 0;
    return true;
}

bool alb_rests_forget_all(struct alb_csa_engine *csa)
{
    bool was_there = csa->rests.count > 0;
    alb_slab_sift(&csa->rests, forget, csa);
    return was_there;
}

static bool age(void *object, void *context)
{
    struct alb_rest *rest = object;
    return rest->age++ < AGE_MAX - 1 ? false : forget(object, context);
}

void alb_rests_age(struct alb_csa_engine *csa)
{
    alb_slab_sift(&csa->rests, age, csa);
}

// ---- what is kept ---------------------------------------------------------------------------------------------------

bool alb_rest_can_begin(const struct alb_assoc_live *live)
{
    return !live->mtu_search && !alb_timer_is_armed(&live->settle_timer.timer) &&
           !alb_timer_is_armed(&live->pace_timer.timer);
}

static struct path_at_rest *paths_in_of(struct alb_rest *rest, uint32_t path_count)
{
    return (struct path_at_rest *)(void *)((char *)rest->paths + alb_paths_out_bytes(path_count));
}

// Of a peer that has more paths than this engine the first ones are kept.
static void keep_paths_in(struct alb_rest *rest, const struct alb_assoc_live *live)
{
    struct path_at_rest *kept = paths_in_of(rest, live->paths->count);
    rest->paths_in_count = (uint8_t)ALB_MIN(live->paths_in_count, (uint32_t)live->paths->count);
    for (uint32_t i = 0; i < rest->paths_in_count; i++) {
        const struct alb_path_in *in = &live->paths_in[i];
        kept[i] = (struct path_at_rest){
            .settled = in->settled,
            .unreported = in->unreported,
            .is_known = in->is_known,
            .received = in->received,
            .newest_timestamp = in->newest_timestamp,
            .newest_at = alb_path_tick_of(in->newest_at),
            .lateness_ns = in->lateness_ns,
        };
    }
}

static void give_paths_in(struct alb_rest *rest, struct alb_assoc_live *live, alb_time now)
{
    const struct path_at_rest *kept = paths_in_of(rest, live->paths->count);
    for (uint32_t i = rest->paths_in_count; i-- > 0;) { // the table is as large as the last one needs
        struct alb_path_in *in = kept[i].is_known ? alb_assoc_path_in(live, (uint8_t)i) : NULL;
        alb_time passed_ns = (alb_time)(alb_path_tick)(alb_path_tick_of(now) - kept[i].newest_at) << 10;
        if (!in)
            continue;
        *in = (struct alb_path_in){
            .newest_at = now - ALB_MIN(now, passed_ns),
            .settled = kept[i].settled,
            .unreported = kept[i].unreported,
            .is_known = true,
            .newest_timestamp = kept[i].newest_timestamp,
            .lateness_ns = kept[i].lateness_ns,
            .received = kept[i].received,
        };
        alb_assoc_note_path_in(live, i);
    }
}

void alb_rest_begin(struct alb_assoc_live *live)
{
    struct alb_csa_engine *csa = live->engine->csa;
    struct alb_rest *rest = alb_slab_get(&csa->rests);
    if (!rest)
        return;
    *rest = (struct alb_rest){
        .assoc = (uint32_t)(live->assoc - csa->assocs),
        .credit_bytes = live->credit_bytes,
        .rtt_ns = live->rtt_ns,
        .rtt_var_ns = live->rtt_var_ns,
        .rtt_min_ns = live->rtt_min_ns,
        .peer_rtt_ns = live->peer_rtt_ns,
        .window_bytes = live->congestion.window_bytes,
    };
    memcpy(rest->policy, &live->congestion.window, POLICY_BYTES);
    memcpy(rest->paths, live->paths, alb_paths_out_bytes(live->paths->count));
    keep_paths_in(rest, live);
    live->assoc->rest = (uint32_t)((size_t)((char *)rest - csa->pool.arena) / UNIT) + 1;
}

void alb_rest_end(struct alb_assoc_live *live, alb_time now)
{
    struct alb_csa_engine *csa = live->engine->csa;
    struct alb_rest *rest = rest_of(csa, live->assoc);
    if (!rest)
        return;
    live->credit_bytes = rest->credit_bytes;
    live->rtt_ns = rest->rtt_ns;
    live->rtt_var_ns = rest->rtt_var_ns;
    live->rtt_min_ns = rest->rtt_min_ns;
    live->peer_rtt_ns = rest->peer_rtt_ns;
    live->congestion.window_bytes = rest->window_bytes;
    memcpy(&live->congestion.window, rest->policy, POLICY_BYTES);
    memcpy(live->paths, rest->paths, alb_paths_out_bytes(live->paths->count));
    give_paths_in(rest, live, now);
    alb_rest_forget(csa, live->assoc);
}
