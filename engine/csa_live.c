// SPDX-License-Identifier: BSD-2-Clause
// What an association has while packets come and go: taken from the pool when it wakes, given back by the sweep once
// nothing has moved for a moment. Then it rests (csa_rest.c), and after a while it is idle.
#include "engine/impl.h"

enum {
    SWEEP_NS = 50000000, // an association that was not used between two sweeps rests
    SWEEP_MAX = 512,     // that one sweep looks at: it takes no longer however many there are
    AGE_NS = 1000000000, // what rests is looked at
};

// Soon, since something is awake or wants to be.
static void arm_sweep(struct alb_engine *engine, alb_time now)
{
    struct alb_timer *timer = &engine->csa->sweep_timer.timer;
    if (!alb_timer_is_armed(timer) || timer->at > now + SWEEP_NS)
        alb_wheel_arm(&engine->wheel, timer, now + SWEEP_NS);
}

_Static_assert(sizeof(struct alb_assoc_live) <= 1024, "the next larger block of the pool is twice as large");

static struct alb_assoc_live *get_live_from(struct alb_csa_engine *csa, uint32_t path_count)
{
    struct alb_assoc_live *live = alb_buddy_get(&csa->pool, sizeof(*live));
    struct alb_paths_out *paths = alb_buddy_get(&csa->pool, alb_paths_out_bytes(path_count));
    if (!live || !paths) {
        if (live)
            alb_buddy_put(&csa->pool, live, sizeof(*live));
        if (paths)
            alb_buddy_put(&csa->pool, paths, alb_paths_out_bytes(path_count));
        return NULL;
    }
    *live = (struct alb_assoc_live){.paths = paths};
    return live;
}

// What only remembers makes room for what is in use.
static struct alb_assoc_live *get_live(struct alb_csa_engine *csa, uint32_t path_count)
{
    struct alb_assoc_live *live = get_live_from(csa, path_count);
    return live || !alb_rests_forget_all(csa) ? live : get_live_from(csa, path_count);
}

struct alb_assoc_live *alb_assoc_wake(struct alb_engine *engine, struct alb_assoc *assoc)
{
    if (alb_likely(assoc->live != NULL)) {
        assoc->live->is_used = true;
        return assoc->live;
    }
    uint32_t path_count = engine->config.path_max;
    struct alb_assoc_live *live = get_live(engine->csa, path_count);
    if (!live)
        return NULL;
    live->assoc = assoc;
    live->epoch = alb_assoc_epoch(engine->csa, assoc);
    live->engine = engine;
    live->is_used = true;
    live->credit_bytes = ALB_CSA_CREDIT_NONE;
    alb_credit_in_init(&live->credit_in);
    live->rtt_ns = assoc->rtt_ns;
    live->heard_at = live->ask_from = alb_path_tick_of(engine->now);
    live->paths_sent_at = engine->now;
    alb_source_init(&live->source, alb_assoc_build);
    alb_list_init(&live->ready);
    alb_list_init(&live->waiting);
    alb_list_init(&live->reports);
    alb_list_init(&live->open);
    alb_list_init(&live->reflections);
    alb_list_init(&live->link);
    alb_list_push_back(&engine->csa->live, &live->link);
    alb_deadline_init(&live->settle_timer, alb_assoc_on_settle);
    alb_deadline_init(&live->pace_timer, alb_assoc_pace);
    engine->congestion->init(&live->congestion, &engine->config);
    alb_paths_out_init(live->paths, path_count, assoc->sequence);
    assoc->live = live;
    alb_rest_end(live, engine->now);
    arm_sweep(engine, engine->now);
    return live;
}

void alb_assoc_sleep(struct alb_assoc_live *live)
{
    struct alb_engine *engine = live->engine;
    struct alb_csa_engine *csa = engine->csa;
    alb_assert(live->inflight_bytes == 0 && alb_list_is_empty(&live->ready) && alb_list_is_empty(&live->waiting));
    alb_assert(alb_list_is_empty(&live->reports) && alb_list_is_empty(&live->open));
    alb_assert(alb_list_is_empty(&live->reflections));
    live->assoc->sequence = alb_paths_out_last(live->paths);
    live->assoc->rtt_ns = live->rtt_ns ? live->rtt_ns : live->peer_rtt_ns;
    live->assoc->live = NULL;
    alb_assoc_show(engine, live->assoc);
    alb_mtu_stop(live);
    alb_scheduler_remove(&live->source);
    alb_wheel_disarm(&engine->wheel, &live->settle_timer.timer);
    alb_wheel_disarm(&engine->wheel, &live->pace_timer.timer);
    alb_list_remove(&live->link);
    alb_credit_in_fini(&csa->credit, &live->credit_in);
    if (live->paths_in)
        alb_buddy_put(&csa->pool, live->paths_in, live->paths_in_count * sizeof(*live->paths_in));
    alb_buddy_put(&csa->pool, live->paths, alb_paths_out_bytes(live->paths->count));
    alb_buddy_put(&csa->pool, live, sizeof(*live));
}

static bool is_idle(const struct alb_assoc_live *live)
{
    return live->inflight_bytes == 0 && alb_list_is_empty(&live->ready) && alb_list_is_empty(&live->waiting) &&
           alb_list_is_empty(&live->reports) && alb_list_is_empty(&live->open) &&
           alb_list_is_empty(&live->reflections) && !live->paths_are_due && !live->trimmed_is_due &&
           !live->source.is_ready;
}

void alb_assoc_starve(struct alb_engine *engine, struct alb_stream_out *out)
{
    alb_list_push_back(&engine->csa->starved, &out->link);
    arm_sweep(engine, engine->now);
}

// Once each: one that finds no memory again waits for the next sweep.
static void feed_starved(struct alb_csa_engine *csa, alb_time now)
{
    struct alb_list hungry, *node;
    alb_list_init(&hungry);
    while ((node = alb_list_pop(&csa->starved)))
        alb_list_push_back(&hungry, node);
    while ((node = alb_list_pop(&hungry))) {
        struct alb_stream_out *out = ALB_LIST_ENTRY(node, struct alb_stream_out, link);
        alb_stream_out_wake(out);
        alb_stream_out_watch(out, now);
    }
}

static void sweep_live(struct alb_csa_engine *csa)
{
    struct alb_list looked_at, *node;
    alb_list_init(&looked_at);
    for (uint32_t i = 0; i < SWEEP_MAX && (node = alb_list_pop(&csa->live)); i++) {
        struct alb_assoc_live *live = ALB_LIST_ENTRY(node, struct alb_assoc_live, link);
        bool rests = !live->is_used && is_idle(live) && alb_rest_can_begin(live);
        alb_list_push_back(&looked_at, node);
        live->is_used = false;
        alb_assoc_show(live->engine, live->assoc);
        if (!rests)
            continue;
        alb_rest_begin(live);
        alb_assoc_sleep(live);
    }
    while ((node = alb_list_pop(&looked_at)))
        alb_list_push_back(&csa->live, node);
}

void alb_assoc_on_sweep(struct alb_deadline *deadline, alb_time now)
{
    struct alb_csa_engine *csa = ALB_CONTAINER_OF(deadline, struct alb_csa_engine, sweep_timer);
    struct alb_wheel *wheel = &csa->engine->wheel;
    if (now >= csa->aged_at + AGE_NS) {
        csa->aged_at = now;
        alb_rests_age(csa);
    }
    sweep_live(csa);
    feed_starved(csa, now);
    if (!alb_list_is_empty(&csa->live))
        arm_sweep(csa->engine, now);
    else if (csa->rests.count > 0 && !alb_timer_is_armed(&deadline->timer))
        alb_wheel_arm(wheel, &deadline->timer, now + AGE_NS);
}
