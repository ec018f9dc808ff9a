// SPDX-License-Identifier: BSD-2-Clause
// The table of associations, and what one has while packets come and go: taken from the pool when it wakes, given back
// by the sweep once nothing has moved for a moment. Then it rests (csa_rest.c), and after a while it is idle.
#include "engine/impl.h"

#include <errno.h>

_Static_assert(sizeof(struct alb_assoc) == 64, "an idle association is one cache line");

enum {
    SWEEP_NS = 50000000,      // an association that was not used between two sweeps rests
    SWEEP_MAX = 512,          // that one sweep looks at: it takes no longer however many there are
    AGE_NS = 1000000000,      // what rests is looked at
    RTT_UNKNOWN_NS = 1000000, // before any was measured
};

// ---- the table ------------------------------------------------------------------------------------------------------

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
    *bucket = (uint32_t)(assoc - csa->assocs) + 1;
    csa->local_refs[index]++;
    return assoc;
}

static void fall_asleep(struct alb_assoc_live *live);

void alb_assoc_put(struct alb_engine *engine, struct alb_assoc *assoc)
{
    struct alb_csa_engine *csa = engine->csa;
    alb_assert(assoc->refs > 0);
    if (--assoc->refs > 0)
        return;
    if (assoc->live)
        fall_asleep(assoc->live);
    alb_rest_forget(csa, assoc);
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

// ---- awake and asleep -----------------------------------------------------------------------------------------------

// Soon, since something is awake or wants to be.
static void arm_sweep(struct alb_engine *engine, alb_time now)
{
    struct alb_timer *timer = &engine->csa->sweep_timer.timer;
    if (!alb_timer_is_armed(timer) || timer->at > now + SWEEP_NS)
        alb_wheel_arm(&engine->wheel, timer, now + SWEEP_NS);
}

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
    live->engine = engine;
    live->is_used = true;
    live->credit_bytes = ALB_CSA_CREDIT_NONE;
    alb_credit_in_init(&live->credit_in);
    live->rtt_ns = assoc->rtt_ns;
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

static void fall_asleep(struct alb_assoc_live *live)
{
    struct alb_engine *engine = live->engine;
    struct alb_csa_engine *csa = engine->csa;
    alb_assert(live->inflight_bytes == 0 && alb_list_is_empty(&live->ready) && alb_list_is_empty(&live->waiting));
    alb_assert(alb_list_is_empty(&live->reports) && alb_list_is_empty(&live->open));
    live->assoc->sequence = alb_paths_out_last(live->paths);
    live->assoc->rtt_ns = live->rtt_ns ? live->rtt_ns : live->peer_rtt_ns;
    live->assoc->live = NULL;
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

static void sweep_live(struct alb_csa_engine *csa, alb_time now)
{
    struct alb_list looked_at, *node;
    alb_list_init(&looked_at);
    for (uint32_t i = 0; i < SWEEP_MAX && (node = alb_list_pop(&csa->live)); i++) {
        struct alb_assoc_live *live = ALB_LIST_ENTRY(node, struct alb_assoc_live, link);
        bool rests = !live->is_used && is_idle(live) && alb_rest_can_begin(live);
        alb_list_push_back(&looked_at, node);
        live->is_used = false;
        if (!rests)
            continue;
        alb_rest_begin(live, now);
        fall_asleep(live);
    }
    while ((node = alb_list_pop(&looked_at)))
        alb_list_push_back(&csa->live, node);
}

static void on_sweep(struct alb_deadline *deadline, alb_time now)
{
    struct alb_csa_engine *csa = ALB_CONTAINER_OF(deadline, struct alb_csa_engine, sweep_timer);
    struct alb_wheel *wheel = &csa->engine->wheel;
    if (now >= csa->aged_at + AGE_NS) {
        csa->aged_at = now;
        alb_rests_age(csa);
    }
    sweep_live(csa, now);
    feed_starved(csa, now);
    if (!alb_list_is_empty(&csa->live))
        arm_sweep(csa->engine, now);
    else if (csa->rests.count > 0 && !alb_timer_is_armed(&deadline->timer))
        alb_wheel_arm(wheel, &deadline->timer, now + AGE_NS);
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

void alb_assoc_note_path_in(struct alb_assoc_live *live, uint32_t path)
{
    const struct alb_path_in *in = &live->paths_in[path];
    alb_path_set_put(&live->paths_in_gaps, path, in->ahead > 0);
    alb_path_set_put(&live->paths_in_news, path, alb_path_in_has_news(in));
}

struct alb_path_in *alb_assoc_path_in(struct alb_assoc_live *live, uint8_t path)
{
    if (alb_likely(path < live->paths_in_count))
        return &live->paths_in[path];
    if (path >= ALB_PATHS_MAX)
        return NULL;
    struct alb_buddy *pool = &live->engine->csa->pool;
    uint32_t count = ALB_MAX(live->paths_in_count, 1u);
    while (count <= path)
        count *= 2;
    struct alb_path_in *paths = alb_buddy_get(pool, count * sizeof(*paths));
    if (!paths)
        return NULL;
    memset(paths, 0, count * sizeof(*paths));
    if (live->paths_in) {
        memcpy(paths, live->paths_in, live->paths_in_count * sizeof(*paths));
        alb_buddy_put(pool, live->paths_in, live->paths_in_count * sizeof(*paths));
    }
    live->paths_in = paths;
    live->paths_in_count = count;
    return &paths[path];
}

// ---- silence of a path ----------------------------------------------------------------------------------------------

// Nobody knows which streams used it.
static void lose_path(struct alb_assoc_live *live, uint16_t path, alb_psn from, alb_time now)
{
    struct alb_engine *engine = live->engine;
    uint32_t left = engine->qp_count;
    for (uint32_t i = 0; left > 0 && i < engine->config.qp_max; i++) {
        const struct alb_qp *qp = engine->qps[i];
        left -= qp != NULL;
        if (!qp || qp->delivery != &alb_csa_ops || alb_csa_of(qp)->assoc != live->assoc)
            continue;
        alb_stream_out_lose_path(&alb_csa_of(qp)->requests, path, from, now);
        alb_stream_out_lose_path(&alb_csa_of(qp)->responses, path, from, now);
    }
}

void alb_assoc_judge_paths(struct alb_assoc_live *live, const struct alb_path_scope *scope, alb_time now)
{
    struct alb_paths_out *paths = live->paths;
    struct alb_path_set silent;
    alb_psn settled[ALB_PATHS_MAX];
    if (alb_likely(!alb_paths_find_silent(paths, scope, &silent)))
        return;
    for (uint32_t i = alb_path_set_next(&silent, 0); i < ALB_PATHS_MAX; i = alb_path_set_next(&silent, i + 1)) {
        settled[i] = paths->path[i].settled;
        alb_path_silent(paths, live->engine->path, (uint16_t)i, now);
    }
    if (!live->engine->csa->loss.ops->reports_settled)
        return;
    for (uint32_t i = alb_path_set_next(&silent, 0); i < ALB_PATHS_MAX; i = alb_path_set_next(&silent, i + 1))
        lose_path(live, (uint16_t)i, settled[i], now);
}

// ---- round-trip time ------------------------------------------------------------------------------------------------

// RFC 6298, with the constants of RFC 9002.
void alb_assoc_on_rtt(struct alb_assoc_live *live, uint32_t rtt_ns)
{
    bool is_same_frame = live->rtt_newest_at == live->engine->now;
    live->rtt_newest_ns = is_same_frame ? ALB_MAX(live->rtt_newest_ns, rtt_ns) : rtt_ns;
    live->rtt_newest_at = live->engine->now;
    if (live->rtt_min_ns == 0) {
        live->rtt_ns = live->rtt_min_ns = rtt_ns;
        live->rtt_var_ns = rtt_ns / 8;
        return;
    }
    live->rtt_min_ns = ALB_MIN(live->rtt_min_ns, rtt_ns);
    uint32_t deviation = rtt_ns > live->rtt_ns ? rtt_ns - live->rtt_ns : live->rtt_ns - rtt_ns;
    live->rtt_var_ns = (uint32_t)((3ull * live->rtt_var_ns + deviation) / 4);
    live->rtt_ns = (uint32_t)((7ull * live->rtt_ns + rtt_ns) / 8);
}

uint32_t alb_assoc_rtt_ns(const struct alb_assoc *assoc)
{
    uint32_t rtt_ns = assoc->live ? assoc->live->rtt_ns : assoc->rtt_ns;
    if (rtt_ns == 0 && assoc->live)
        rtt_ns = assoc->live->peer_rtt_ns;
    return rtt_ns ? rtt_ns : RTT_UNKNOWN_NS;
}

uint32_t alb_assoc_margin_ns(const struct alb_engine *engine, const struct alb_assoc *assoc)
{
    uint32_t rtt_ns = alb_assoc_rtt_ns(assoc), margin_ns = rtt_ns / 8;
    // A few samples from a host that was busy say little of the next one; asking too early costs a packet, and waiting
    // for a hundred milliseconds costs that.
    if (assoc->live && assoc->live->rtt_min_ns)
        margin_ns = ALB_MAX(margin_ns, (uint32_t)ALB_MIN(4ull * assoc->live->rtt_var_ns, (uint64_t)rtt_ns));
    return ALB_MAX(margin_ns, engine->config.csa_margin_min_ns);
}

// ---- the window -----------------------------------------------------------------------------------------------------

bool alb_assoc_permits(const struct alb_assoc_live *live, uint32_t bytes)
{
    uint32_t limit = ALB_MIN(live->congestion.window_bytes, live->credit_bytes);
    return live->inflight_bytes == 0 || live->inflight_bytes + bytes <= limit;
}

void alb_assoc_charge(struct alb_assoc_live *live, uint32_t bytes)
{
    live->inflight_bytes += bytes;
}

void alb_assoc_release(struct alb_assoc_live *live, uint32_t bytes)
{
    alb_assert(bytes <= live->inflight_bytes);
    live->inflight_bytes -= bytes;
    struct alb_list *node;
    if (alb_list_is_empty(&live->waiting) || (live->inflight_bytes > 0 && !alb_assoc_permits(live, 1)))
        return;
    while ((node = alb_list_pop(&live->waiting)))
        alb_list_push_back(&live->ready, node);
    alb_scheduler_wake(&live->engine->scheduler, &live->source);
}

void alb_csa_note_landed(struct alb_assoc_live *live, uint32_t bytes, alb_time now)
{
    const struct alb_ack ack = {
        .bytes = bytes,
        .limited = live->window_limited,
        .rtt_ns = live->rtt_sample_ns,
        .packets = live->news_received,
        .marked = live->news_marked,
        .lost = live->news_lost,
        .share = live->share,
    };
    alb_congestion_on_ack(live->engine->congestion, &live->congestion, &ack, now);
    live->window_limited = false;
    live->rtt_sample_ns = live->news_received = live->news_marked = live->news_lost = 0;
    alb_mtu_consider(live, now);
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
            alb_mtu_told(engine, assoc, udp_payload_max);
    }
}

uint32_t alb_assoc_credit(struct alb_assoc_live *live, alb_time now)
{
    return alb_credit_grant(&live->engine->csa->credit, &live->credit_in, now);
}

// The peer's is that of the route its data takes.
static uint32_t data_rtt_ns(const struct alb_assoc_live *live)
{
    return ALB_MAX(live->rtt_ns, live->peer_rtt_ns);
}

void alb_assoc_note_received(struct alb_assoc_live *live, uint32_t bytes, alb_time now)
{
    alb_credit_on_packet(&live->engine->csa->credit, &live->credit_in, bytes, data_rtt_ns(live), now);
}

void alb_assoc_note_rest(struct alb_assoc_live *live, uint64_t bytes, alb_time now)
{
    alb_credit_on_rest(&live->engine->csa->credit, &live->credit_in, bytes, data_rtt_ns(live), now);
}

// ---- life of the engine's part --------------------------------------------------------------------------------------

int alb_csa_engine_create(struct alb_engine *engine)
{
    const struct alb_engine_config *config = &engine->config;
    const struct alb_credit_ops *credit = alb_credit_find(config->credit);
    struct alb_csa_loss loss;
    if (!credit || !alb_csa_loss_parse(config->loss, &loss))
        return EINVAL;
    struct alb_csa_engine *csa = alb_engine_get_memory(engine, sizeof(*csa));
    if (!csa)
        return ENOMEM;
    engine->csa = csa;
    csa->engine = engine;
    csa->loss = loss;
    alb_credit_pool_init(&csa->credit, credit, config);
    alb_list_init(&csa->live);
    alb_list_init(&csa->starved);
    alb_deadline_init(&csa->sweep_timer, on_sweep);
    alb_list_init(&csa->expect_groups);
    alb_csa_cookies_init(&csa->cookies, &engine->rng, engine->now);
    alb_csa_replies_init(&csa->replies);
    do
        csa->epoch = (uint32_t)alb_rng_u64(&engine->rng);
    while (csa->epoch == 0);
    alb_rng_fill(&engine->rng, &csa->hash_key, sizeof(csa->hash_key));
    csa->bucket_count = 1;
    while (csa->bucket_count < config->peer_max)
        csa->bucket_count *= 2;
    csa->assocs = alb_engine_get_memory(engine, config->peer_max * sizeof(*csa->assocs));
    csa->buckets = alb_engine_get_memory(engine, csa->bucket_count * sizeof(*csa->buckets));
    csa->arena = alb_engine_get_memory(engine, config->csa_pool_bytes);
    csa->bookkeeping = alb_engine_get_memory(engine, alb_buddy_bookkeeping_bytes(config->csa_pool_bytes));
    if (!csa->assocs || !csa->buckets || !csa->arena || !csa->bookkeeping) {
        alb_csa_engine_destroy(engine);
        return ENOMEM;
    }
    alb_buddy_init(&csa->pool, csa->arena, config->csa_pool_bytes, csa->bookkeeping);
    alb_rests_init(csa, config);
    return 0;
}

void alb_csa_engine_destroy(struct alb_engine *engine)
{
    const struct alb_engine_config *config = &engine->config;
    struct alb_csa_engine *csa = engine->csa;
    if (!csa)
        return;
    alb_engine_put_memory(engine, csa->bookkeeping, alb_buddy_bookkeeping_bytes(config->csa_pool_bytes));
    alb_engine_put_memory(engine, csa->arena, config->csa_pool_bytes);
    alb_engine_put_memory(engine, csa->buckets, csa->bucket_count * sizeof(*csa->buckets));
    alb_engine_put_memory(engine, csa->assocs, config->peer_max * sizeof(*csa->assocs));
    alb_engine_put_memory(engine, csa, sizeof(*csa));
    engine->csa = NULL;
}
