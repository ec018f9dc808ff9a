// SPDX-License-Identifier: BSD-2-Clause
// One search for a broken promise of reflection: phases of random transactions, each over a bad network and then over
// a good one, in which everything must end.
#include "sim/search_txn.h"

#include "engine/region_version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS_MAX = 400, // in which a phase must come to rest
};

static void must(int error)
{
    alb_assert(error == 0);
}

// ---- the world ------------------------------------------------------------------------------------------------------

static bool is_held(void *context, uint32_t side, uint32_t at)
{
    struct alb_search_txn *search = context;
    struct alb_versions_read read;
    return !alb_versions_read_begin(search->sides[side].versions, SEARCH_TXN_STRIDE, at * 8, 8, &read);
}

static void after(struct alb_sim_host *host, alb_sim_time now)
{
    struct alb_search_txn *search = host->user;
    if (search->is_durable)
        alb_search_store_look(&search->sides[host == search->base.sides[1].host].store);
    alb_model_txn_observe(&search->model, host == search->base.sides[1].host);
}

static void create_region(struct alb_search_txn *search, uint32_t side)
{
    struct alb_search_txn_side *own = &search->sides[side];
    const uint32_t rights = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ;
    must(alb_mr_create(search->base.sides[side].pd, own->words, SEARCH_TXN_WORDS * 8, own->iova, rights, &own->mr));
    must(alb_mr_set_versions(own->mr, own->versions, SEARCH_TXN_STRIDE));
    must(alb_mr_set_checked(own->mr, search->is_checked, own));
    if (search->is_durable)
        alb_search_store_open(&own->store);
}

static void create_memory(struct alb_search_txn *search, uint32_t side)
{
    struct alb_search_txn_side *own = &search->sides[side];
    memset((void *)own->versions, 0, sizeof(own->versions));
    own->answer_count = 0;
    create_region(search, side);
    must(alb_mr_create(search->base.sides[side].pd, own->scratch, SEARCH_TXN_SCRATCH_WORDS * 8, (uintptr_t)own->scratch,
                       ALB_ACCESS_LOCAL_WRITE, &own->scratch_mr));
}

static void destroy_memory(struct alb_search_txn *search, uint32_t side)
{
    must(alb_mr_destroy(search->sides[side].mr));
    must(alb_mr_destroy(search->sides[side].scratch_mr));
}

static void connect(struct alb_search_txn *search, uint32_t index, bool is_quiet)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        alb_search_txn_poll(search, side);
        alb_search_txn_follow(search, side, index, true);
    }
    alb_search_connect(&search->base, index, is_quiet);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        int error = alb_qp_txn_enable(search->base.sides[side].qps[index].qp, SEARCH_TXN_IN_FLIGHT);
        alb_assert(error == 0 || error == EINVAL); // it is enabled already
    }
}

static void draw_reflection(struct alb_search_txn *search, struct alb_engine_config *config)
{
    struct alb_search *base = &search->base;
    config->qp_max = ALB_MAX(config->qp_max, 16 + base->qp_count);
    config->txn_out_max = SEARCH_TXN_IN_FLIGHT;
    config->txn_record_max = 64 + alb_search_below(base, 1024);
    config->txn_staging_bytes = 65536u << alb_search_below(base, 5);
    config->txn_lease_ns = ALB_NS_PER_MS << alb_search_below(base, 7);
    config->txn_lease_ns_max = 8 * config->txn_lease_ns;
    config->txn_copies_max = alb_search_below(base, 6);
    if (search->is_durable) { // what is in the journal has its place in the next life, too
        config->txn_record_max = 4096;
        config->txn_staging_bytes = 4 << 20;
    }
    config->csa_pool_bytes = ALB_MAX(config->csa_pool_bytes, 65536u);
    config->reflect_snapshot_bytes_max = config->csa_pool_bytes / 2;
}

static void draw_corruption(struct alb_search_txn *search)
{
    const uint32_t percent = 10000000; // parts per billion
    struct alb_search *base = &search->base;
    search->has_corruption = alb_search_percent(base, 25);
    if (!search->has_corruption)
        return;
    for (uint32_t place = 0; place < ALB_CORRUPT_PLACES; place++)
        if (alb_search_percent(base, 50))
            search->corruption.chance[place] = alb_search_below(base, 20 * percent);
}

// What would be said of it is not what reflection promises: a plain WRITE or READ may be wrong then, and what is placed
// at once may go anywhere.
static void draw_work(struct alb_search_txn *search)
{
    search->is_checked = alb_search_percent(&search->base, 30);
    search->has_plain = alb_search_percent(&search->base, 70) && !search->has_corruption;
    search->has_in_place = alb_search_percent(&search->base, 50) && !search->has_corruption;
    search->has_renewals = alb_search_percent(&search->base, 20) && !search->has_corruption;
}

static void draw(struct alb_search_txn *search, uint64_t seed, struct alb_sim_pair_config *config)
{
    struct alb_search *base = &search->base;
    alb_search_draw(base, seed, config);
    base->qp_count = 1 + alb_search_below(base, 3);
    for (uint32_t i = 0; i < base->qp_count; i++)
        base->types[i] = ALB_QPT_RC;
    base->is_shared = false;
    base->has_restarts |= search->is_durable;
    base->send_wr_max = 8 + alb_search_below(base, 32);
    base->recv_wr_max = 8;
    draw_corruption(search);
    draw_work(search);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        draw_reflection(search, &config->host[side].engine);
        if (search->has_corruption)
            config->host[side].engine.corruption = &search->sides[side].corruption;
        alb_corruption_init(&search->sides[side].corruption, &search->corruption, seed + side,
                            search->sides[side].corrupted);
    }
}

static void open(struct alb_search_txn *search, uint64_t seed)
{
    struct alb_sim_pair_config config;
    uint64_t *words[ALB_MODEL_SIDES];
    draw(search, seed, &config);
    alb_search_build(&search->base, seed, &config);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        struct alb_search_txn_side *own = &search->sides[side];
        own->iova = 0x500000000ull + side * 0x100000000ull;
        own->words = words[side] = aligned_alloc(64, SEARCH_TXN_WORDS * 8);
        own->scratch = malloc(SEARCH_TXN_SCRATCH_WORDS * 8);
        alb_assert(own->words && own->scratch);
    }
    alb_model_txn_init(&search->model, words, SEARCH_TXN_WORDS, is_held, search);
    search->model.has_corruption = search->has_corruption;
    search->model.is_durable = search->is_durable;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        if (search->is_durable)
            alb_search_store_init(&search->sides[side].store, search, side);
        create_memory(search, side);
        search->base.sides[side].host->user = search;
        search->base.sides[side].host->after = after;
    }
}

static void close(struct alb_search_txn *search)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        destroy_memory(search, side);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES && search->is_durable; side++)
        alb_search_store_fini(&search->sides[side].store);
    alb_search_close(&search->base);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        free(search->sides[side].words);
        free(search->sides[side].scratch);
    }
    alb_model_txn_fini(&search->model);
    free(search->works);
}

// ---- trouble --------------------------------------------------------------------------------------------------------

static void set_faults(struct alb_search_txn *search, bool is_bad)
{
    struct alb_search *base = &search->base;
    struct alb_faults_spec none = {0};
    alb_sim_pair_set_partition(&base->pair, false);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        alb_sim_link_set_faults(&base->pair.out[side], is_bad ? &base->faults : &none, alb_prng_u64(&base->prng));
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        search->sides[side].store.is_bad = is_bad;
}

static void restart(struct alb_search_txn *search, uint32_t side)
{
    for (uint32_t i = 0; i < ALB_MODEL_SIDES; i++)
        alb_search_txn_poll(search, i);
    alb_search_txn_lose(search, side);
    if (search->is_durable)
        alb_search_store_crash(&search->sides[side].store);
    destroy_memory(search, side);
    alb_search_restart(&search->base, side);
    alb_model_txn_begin_life(&search->model, side);
    create_memory(search, side);
    alb_model_txn_observe(&search->model, side);
    search->result->restarts++;
}

// What is durable is asked about soon: most programs come back at once.
static void restart_in_work(struct alb_search_txn *search, uint32_t side)
{
    restart(search, side);
    for (uint32_t i = 0; search->is_durable && i < search->base.qp_count; i++)
        if (alb_search_percent(&search->base, 80))
            connect(search, i, false);
}

static void modify(struct alb_search_txn *search, uint32_t side, uint32_t index, enum alb_qp_state state)
{
    struct alb_search_side *s = &search->base.sides[side];
    struct alb_qp_attr attr = {.state = state};
    must(alb_qp_modify(s->qps[index].qp, &attr, ALB_QP_STATE, alb_sim_host_now(s->host)));
    alb_sim_host_poke(s->host);
}

static void change_life(struct alb_search_txn *search, uint32_t side, uint32_t index)
{
    enum alb_qp_state state = alb_qp_current_state(search->base.sides[side].qps[index].qp);
    switch (alb_search_below(&search->base, 4)) {
    case 0:
        if (state != ALB_QPS_RESET)
            modify(search, side, index, ALB_QPS_ERR);
        search->result->breaks++;
        break;
    case 1:
        if (state == ALB_QPS_RTS)
            modify(search, side, index, ALB_QPS_SQD);
        else if (state == ALB_QPS_SQD)
            modify(search, side, index, ALB_QPS_RTS);
        break;
    default:
        connect(search, index, false);
        search->result->breaks++;
    }
}

// The region goes under what is claimed in it; its memory stays, and is registered again.
static void renew_region(struct alb_search_txn *search, uint32_t side)
{
    if (search->model.memory[side].is_spoilt)
        return;
    must(alb_mr_destroy(search->sides[side].mr));
    alb_model_txn_observe(&search->model, side);
    if (search->is_durable)
        alb_search_store_close(&search->sides[side].store);
    create_region(search, side);
    search->result->renewals++;
    alb_sim_host_poke(search->base.sides[side].host);
}

static void cut(struct alb_search_txn *search)
{
    struct alb_search *base = &search->base;
    alb_sim_pair_set_partition(&base->pair, true);
    alb_sim_network_run_for(&base->pair.network, ALB_SIM_NS(1) << alb_search_below(base, 26));
    alb_sim_pair_set_partition(&base->pair, false);
}

// ---- a phase --------------------------------------------------------------------------------------------------------

static void step(struct alb_search_txn *search)
{
    struct alb_search *base = &search->base;
    uint32_t side = alb_search_below(base, ALB_MODEL_SIDES);
    uint32_t index = alb_search_below(base, base->qp_count);
    uint32_t choice = alb_search_below(base, 100);
    if (choice < 45)
        alb_search_txn_post(search, side, index);
    else if (choice < 53)
        alb_search_txn_poll(search, side);
    else if (choice < 58)
        alb_search_txn_ask(search, side, index, alb_search_percent(base, 70));
    else if (choice < 65)
        alb_search_txn_decide(search, false);
    else if (choice < 72)
        alb_search_txn_answer(search, side, false);
    else if (choice < 74)
        alb_search_txn_receive(search, side, index);
    else if (choice < 76)
        alb_search_txn_follow(search, side, index, false);
    else if (choice < 78 && base->has_lifecycle)
        change_life(search, side, index);
    else if (choice < 79 && search->has_renewals)
        renew_region(search, side);
    else if (choice < 80 && base->has_partitions)
        cut(search);
    else if (choice < (search->is_durable ? 84 : 81) && base->has_restarts)
        restart_in_work(search, side);
    else
        alb_sim_network_run_for(&base->pair.network, ALB_SIM_NS(1) << alb_search_below(base, 21));
}

static uint32_t look_after(struct alb_search_txn *search)
{
    uint32_t polled = 0;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        for (uint32_t i = 0; i < search->base.qp_count; i++)
            alb_search_txn_receive(search, side, i);
        alb_search_txn_answer(search, side, true);
        polled += alb_search_txn_poll(search, side);
    }
    alb_search_txn_decide(search, true);
    return polled;
}

// The network is good. Whether nothing is under way any more, and nobody is bound.
static bool come_to_rest(struct alb_search_txn *search)
{
    struct alb_search *base = &search->base;
    struct alb_sim_network *network = &base->pair.network;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        for (uint32_t i = 0; i < base->qp_count; i++)
            if (alb_qp_current_state(base->sides[side].qps[i].qp) == ALB_QPS_SQD)
                modify(search, side, i, ALB_QPS_RTS);
    for (uint32_t round = 0; round < ROUNDS_MAX && !alb_search_txn_has_failed(search); round++) {
        alb_sim_time limit = alb_sim_network_now(network) + ALB_SIM_MS(10);
        if (alb_sim_queue_count(&network->queue) > 0)
            limit = ALB_MAX(limit, alb_sim_queue_next_at(&network->queue));
        uint32_t did = look_after(search);
        bool is_idle = alb_sim_network_run_idle(network, limit);
        if (is_idle && did == 0 && look_after(search) == 0)
            return true;
    }
    return false;
}

// Every transaction that a living queue pair has begun has ended, and said so.
static void check_ended(struct alb_search_txn *search)
{
    for (uint32_t i = 0; i < search->work_count; i++) {
        const struct alb_search_txn_work *work = &search->works[i];
        const struct alb_qp *qp = search->base.sides[work->side].qps[work->index].qp;
        struct alb_txn_status status;
        if (work->is_open)
            alb_model_txn_fail(
                &search->model,
                "request %u (kind %u, number %llu, peer %u) of queue pair %u/%u (state %d) never completed", i,
                work->kind, (unsigned long long)work->number,
                alb_qp_current_state(search->base.sides[1 - work->side].qps[work->index].qp), work->side, work->index,
                alb_qp_current_state(qp));
        if (work->kind != SEARCH_TXN_TRANSACTION || !work->is_followed ||
            alb_qp_txn_query(qp, work->number, &status) != 0)
            continue;
        // IDLE: it was flushed before it began.
        if ((status.state > ALB_TXN_IDLE && status.state <= ALB_TXN_REFLECTING) || status.state == ALB_TXN_ABORTING)
            alb_model_txn_fail(&search->model, "operation %u has not ended: %s", work->op,
                               alb_txn_state_name(status.state));
    }
}

static void rest(struct alb_search_txn *search, const char *when)
{
    if (!come_to_rest(search))
        alb_model_txn_fail(&search->model, "%s: the network is good, and not everything has ended", when);
    check_ended(search);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        alb_model_txn_observe(&search->model, side);
        for (uint32_t i = 0; i < search->base.qp_count; i++)
            alb_search_txn_follow(search, side, i, false);
        if (!alb_search_txn_has_failed(search) && !alb_engine_is_quiet(search->base.sides[side].host->engine))
            alb_model_txn_fail(&search->model, "%s: engine %u is not quiet at rest", when, side);
    }
}

// Connections that have failed, and memory that is spoilt, begin anew.
static void repair(struct alb_search_txn *search)
{
    struct alb_search *base = &search->base;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        if (search->model.memory[side].is_spoilt)
            restart(search, side);
    for (uint32_t i = 0; i < base->qp_count; i++)
        if (alb_qp_current_state(base->sides[0].qps[i].qp) != ALB_QPS_RTS ||
            alb_qp_current_state(base->sides[1].qps[i].qp) != ALB_QPS_RTS)
            connect(search, i, true);
}

// What is in doubt is asked about, and has an answer.
static void settle(struct alb_search_txn *search)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        for (uint32_t n = 0; n < SEARCH_TXN_IN_FLIGHT; n++)
            alb_search_txn_ask(search, side, alb_search_below(&search->base, search->base.qp_count), true);
    rest(search, "questions");
}

// Nobody claims a word any more: each can be written.
static void check_free(struct alb_search_txn *search)
{
    const uint32_t word_step = 8, at_a_time = 4;
    if (search->has_corruption)
        return;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES && !alb_search_txn_has_failed(search); side++)
        for (uint32_t at = 0; at < SEARCH_TXN_WORDS && !alb_search_txn_has_failed(search); at += word_step) {
            uint32_t work = search->work_count;
            if (!(search->is_durable ? alb_search_txn_write_agreed : alb_search_txn_write)(search, side, 0, at))
                continue;
            if (at / word_step % at_a_time == 0)
                rest(search, "free");
            bool may_be_refused = search->is_durable && search->is_checked;
            if (at / word_step % at_a_time == 0 && !may_be_refused &&
                !search->model.ops[search->works[work].op].is_visible)
                alb_model_txn_fail(&search->model, "side %u, word %u: cannot be written at the end", 1 - side, at);
        }
    rest(search, "free");
}

static void run_phase(struct alb_search_txn *search)
{
    struct alb_search *base = &search->base;
    repair(search);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        search->sides[side].scratch_used = 0;
    set_faults(search, true);
    for (uint32_t n = 20 + alb_search_below(base, 150); n > 0 && !alb_search_txn_has_failed(search); n--)
        step(search);
    set_faults(search, false);
    rest(search, "work");
    if (alb_search_txn_has_failed(search))
        return;
    repair(search);
    settle(search);
    repair(search);
    check_free(search);
}

// ---- the whole ------------------------------------------------------------------------------------------------------

static void sum_up(const struct alb_search_txn *search, struct alb_search_txn_result *result)
{
    const struct alb_search *base = &search->base;
    result->trace_hash = alb_sim_network_trace_hash(&base->pair.network);
    result->virtual_ns = alb_sim_to_ns(alb_sim_network_now(&base->pair.network));
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        result->packets += base->pair.out[side].stats.packets;
        result->lost += base->pair.out[side].stats.lost;
        result->gone_back += search->model.memory[side].gone_back;
    }
    const char *failure = search->model.failure[0] ? search->model.failure : base->model.failure;
    snprintf(result->failure, sizeof(result->failure), "%s", failure);
}

bool alb_search_txn_run(uint64_t seed, const struct alb_search_options *options, struct alb_search_txn_result *result)
{
    struct alb_search_txn *search = calloc(1, sizeof(*search));
    struct alb_search_result base_result = {0};
    struct alb_sim_capture pcap;
    FILE *lines = options->trace ? fopen(options->trace, "w") : NULL;
    alb_assert(search);
    *result = (struct alb_search_txn_result){0};
    search->result = result;
    search->is_durable = options->is_durable;
    search->base.result = &base_result;
    search->base.is_csa = true;
    open(search, seed);
    struct alb_sim_host *hosts = search->base.pair.host;
    if (options->capture && alb_sim_capture_open(&pcap, options->capture) == 0)
        hosts[0].capture = &pcap;
    hosts[0].trace = hosts[1].trace = lines;
    for (uint32_t phases = 1 + alb_search_below(&search->base, 3); phases > 0 && !alb_search_txn_has_failed(search);
         phases--)
        run_phase(search);
    sum_up(search, result);
    hosts[0].trace = hosts[1].trace = NULL;
    hosts[0].after = hosts[1].after = NULL;
    bool has_capture = hosts[0].capture;
    close(search);
    if (has_capture)
        alb_sim_capture_close(&pcap);
    if (lines)
        fclose(lines);
    free(search);
    return result->failure[0] == 0;
}
