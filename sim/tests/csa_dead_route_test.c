// SPDX-License-Identifier: BSD-2-Clause
// CSA when one of four routes dies, in both directions and permanently, and several paths take it. A side that only
// answers learns nothing of its paths while the peer receives nothing: whatever it knows of them, its answers must come
// by one that works before the peer gives up. Over many seeds: which paths meet on which route, and how both hosts halt
// now and then, as processes do that wait for a processor, so that round-trip times say little.
#include "world.h"

#include "base/prng.h"

enum {
    KB = 1024,
    ROUTES = 4,
    WARM_MS = 150,
    DEAD_MS = 400,
    SILENCE_MAX_MS = 200, // the queue pair gives up after 537
};

struct bench {
    struct world *w;
    struct flow flow;
    struct alb_prng prng;
    alb_sim_time halt_max, halts_every; // 0: they do not
    alb_sim_time turns_at[ALB_SIM_SIDES];
    bool is_halted[ALB_SIM_SIDES];
};

static uint64_t below(struct bench *bench, uint64_t limit)
{
    return alb_prng_below(&bench->prng, limit);
}

// The limits are those of a device.
static void bench_init(struct bench *bench, uint32_t paths, uint64_t seed)
{
    struct options options;
    world_transport = "csa";
    options_default(&options);
    options.path_payload_max = 1472;
    options.pair.seed = seed;
    options.pair.spread = ALB_SIM_SPREAD_HASH;
    options.pair.lane_count = ROUTES;
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        struct alb_engine_config *engine = &options.pair.host[side].engine;
        engine->path_max = paths;
        engine->csa_margin_min_ns = 100 * ALB_NS_PER_US;
        engine->csa_probe_min_ns = 500 * ALB_NS_PER_US;
        engine->ack_timeout_min_ns = 10 * ALB_NS_PER_MS;
        engine->receive_budget_bytes = 212992;
        options.pair.out[side] = (struct alb_sim_link_config){.bits_per_s = 20000000000, .delay = ALB_SIM_US(10)};
        for (uint32_t i = 0; i < ROUTES; i++)
            options.pair.lanes[side][i] = (struct alb_sim_link_config){
                .bits_per_s = 100000000, .delay = ALB_SIM_US(20), .queue_bytes_max = 100 * KB};
    }
    bench->w = world_new(&options);
    bench->w->a.is_log_closed = bench->w->b.is_log_closed = true;
    alb_prng_init(&bench->prng, seed);
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
        bench->w->pair.fabric[side].hash_seed = alb_prng_u64(&bench->prng);
}

static void begin(struct bench *bench)
{
    bench->flow = world_flow(bench->w, 64 * KB, 16, UINT64_MAX);
    flow_start(&bench->flow);
}

static void end(struct bench *bench)
{
    flow_stop(&bench->flow);
    run_idle(bench->w);
    assert_true(flow_is_done(&bench->flow));
    expect_state(&bench->w->a, ALB_QPS_RTS);
    world_free(bench->w);
}

// Nothing leaves a halted host, and what comes to it waits.
static void set_halted(struct bench *bench, enum alb_sim_side side, bool is_halted, alb_sim_time span)
{
    struct alb_sim_host *host = end_of(bench->w, side)->host;
    bench->is_halted[side] = is_halted;
    host->poll_delay = span;
    alb_sim_link_set_paused(host->out, ALB_SIM_PAUSED_BY_FAULT, is_halted, now_of(bench->w));
}

// Short halts are more frequent than long ones.
static void halt_or_go_on(struct bench *bench, enum alb_sim_side side)
{
    alb_sim_time now = now_of(bench->w);
    if (bench->halt_max == 0 || now < bench->turns_at[side])
        return;
    if (bench->is_halted[side]) {
        set_halted(bench, side, false, ALB_SIM_US(1 + below(bench, 100)));
        bench->turns_at[side] = now + below(bench, 2 * bench->halts_every);
        return;
    }
    uint64_t part = below(bench, 1000) * below(bench, 1000);
    alb_sim_time span = ALB_SIM_US(1) + bench->halt_max / 1000000 * part;
    set_halted(bench, side, true, span);
    bench->turns_at[side] = now + span;
}

// The longest time in which nothing came to A; no longer than one that is too long.
static alb_sim_time silence_over(struct bench *bench, alb_sim_time span)
{
    struct world *w = bench->w;
    alb_sim_time until = now_of(w) + span, since = now_of(w), longest = 0;
    for (uint64_t received = w->a.host->received; now_of(w) < until && longest <= ALB_SIM_MS(SILENCE_MAX_MS);
         received = w->a.host->received) {
        for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
            halt_or_go_on(bench, side);
        run_for(w, ALB_SIM_US(100));
        if (w->a.host->received != received)
            since = now_of(w);
        longest = ALB_MAX(longest, now_of(w) - since);
    }
    return longest;
}

static void set_dead(struct bench *bench, uint32_t route, bool is_dead)
{
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
        alb_sim_link_set_dead(&bench->w->pair.fabric[side].lanes[route], is_dead);
}

static void dies(uint32_t paths, alb_sim_time halt_max, uint64_t seed)
{
    struct bench bench = {.halt_max = halt_max, .halts_every = halt_max / 3};
    bench_init(&bench, paths, seed);
    uint32_t route = (uint32_t)below(&bench, ROUTES);
    begin(&bench);
    silence_over(&bench, ALB_SIM_MS(WARM_MS));
    set_dead(&bench, route, true);
    alb_sim_time silence = silence_over(&bench, ALB_SIM_MS(DEAD_MS));
    if (silence > ALB_SIM_MS(SILENCE_MAX_MS))
        fail_msg("%u paths, seed %llu: nothing heard for %llu ms", paths, (unsigned long long)seed,
                 (unsigned long long)(silence / ALB_SIM_MS(1)));
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
        set_halted(&bench, side, false, 0);
    set_dead(&bench, route, false);
    end(&bench);
}

static void few_paths__nobody_halts(void **state)
{
    for (uint64_t seed = 1; seed <= TEST_SOME(40); seed++) {
        dies(4, 0, seed);
        dies(8, 0, seed);
    }
}

static void few_paths__halts(void **state)
{
    for (uint64_t seed = 1; seed <= TEST_SOME(60); seed++)
        dies(8, ALB_SIM_MS(8), seed);
}

static void many_paths__halts(void **state)
{
    for (uint64_t seed = 1; seed <= TEST_SOME(100); seed++)
        dies(16, ALB_SIM_MS(8), seed);
}

static void most_paths__long_halts(void **state)
{
    for (uint64_t seed = 1; seed <= TEST_SOME(40); seed++)
        dies(64, ALB_SIM_MS(15), seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_paths__nobody_halts),
        cmocka_unit_test(few_paths__halts),
        cmocka_unit_test(many_paths__halts),
        cmocka_unit_test(most_paths__long_halts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
