// SPDX-License-Identifier: BSD-2-Clause
// One search for a broken promise of reflection: phases of random transactions, each over a bad network and then over
// a good one, in which everything must end.
#include "sim/search_txn.h"

#include "sim/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS_MAX = 400, // in which a phase must come to rest
};

// ---- trouble --------------------------------------------------------------------------------------------------------

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
    alb_model_txn_end_life(&search->model, side);
    alb_search_txn_lose(search, side);
    if (search->is_durable)
        alb_search_store_crash(&search->sides[side].store);
    alb_search_txn_destroy_memory(search, side);
    alb_search_restart(&search->base, side);
    alb_model_txn_begin_life(&search->model, side);
    alb_search_txn_create_memory(search, side);
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
    alb_search_must(alb_qp_modify(s->qps[index].qp, &attr, ALB_QP_STATE, alb_sim_host_now(s->host)));
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
    alb_search_must(alb_mr_destroy(search->sides[side].mr));
    alb_model_txn_observe(&search->model, side);
    if (search->is_durable)
        alb_search_store_close(&search->sides[side].store);
    alb_search_txn_create_region(search, side);
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

// The network is good. Whether nothing is under way or bound any more.
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
        if (status.state <= ALB_TXN_REFLECTING || status.state == ALB_TXN_ABORTING)
            alb_model_txn_fail(&search->model, "operation %u has not ended: %s", work->op,
                               alb_txn_state_name(status.state));
    }
}

// Of all that both ends of a connection have seen from its beginning: there were receives for what the target is told.
static void check_notified(struct alb_search_txn *search)
{
    for (uint32_t i = 0; i < search->work_count; i++) {
        const struct alb_search_txn_work *work = &search->works[i];
        const struct alb_model_txn_memory *memory = &search->model.memory[1 - work->side];
        const struct alb_model_txn_op *op = &search->model.ops[work->op];
        bool is_live = work->is_followed && memory->life == work->life && !memory->is_spoilt &&
                       alb_qp_current_state(alb_search_txn_qp(search, 0, work->index)) == ALB_QPS_RTS &&
                       alb_qp_current_state(alb_search_txn_qp(search, 1, work->index)) == ALB_QPS_RTS;
        if (work->kind == SEARCH_TXN_TRANSACTION && work->notifies && is_live && op->fate == ALB_MODEL_TXN_COMMITTED &&
            op->notifications != 1)
            alb_model_txn_fail(&search->model, "operation %u is committed, and its target was not told", work->op);
    }
}

static void rest(struct alb_search_txn *search, const char *when)
{
    if (!come_to_rest(search))
        alb_model_txn_fail(&search->model, "%s: the network is good, and not everything has ended", when);
    check_ended(search);
    check_notified(search);
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

static bool write_at_end(struct alb_search_txn *search, uint32_t side, uint32_t at, uint32_t *work)
{
    *work = search->work_count;
    return (search->is_durable ? alb_search_txn_write_agreed : alb_search_txn_write)(search, side, 0, at);
}

static bool is_written(const struct alb_search_txn *search, uint32_t work)
{
    return search->model.ops[search->works[work].op].is_visible;
}

// A short lease may end while the commit waits, as behind PINGs of 64 KB on a slow link: then it is written the next
// time.
static bool is_written_in_time(struct alb_search_txn *search, uint32_t side, uint32_t at, uint32_t work)
{
    const uint32_t tries_max = 3;
    for (uint32_t tries = 1; tries < tries_max && !is_written(search, work); tries++) {
        if (!write_at_end(search, side, at, &work))
            return true; // the search has no more room for works
        rest(search, "free");
    }
    return is_written(search, work);
}

// No word is claimed any more: each can be written.
static void check_free(struct alb_search_txn *search)
{
    const uint32_t word_step = 8, at_a_time = 4;
    if (search->has_corruption)
        return;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES && !alb_search_txn_has_failed(search); side++)
        for (uint32_t at = 0; at < SEARCH_TXN_WORDS && !alb_search_txn_has_failed(search); at += word_step) {
            uint32_t work;
            if (!write_at_end(search, side, at, &work))
                continue;
            if (at / word_step % at_a_time == 0)
                rest(search, "free");
            bool may_be_refused = search->is_durable && search->is_checked;
            if (at / word_step % at_a_time == 0 && !may_be_refused && !is_written_in_time(search, side, at, work))
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
    FILE *lines = options->trace ? alb_sim_file_open(options->trace) : NULL;
    int unwritten = 0;
    alb_assert(search);
    *result = (struct alb_search_txn_result){0};
    search->result = result;
    search->is_durable = options->is_durable;
    search->base.result = &base_result;
    search->base.is_csa = search->base.is_elsewhere = true;
    alb_search_txn_open(search, seed);
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
    alb_search_txn_close(search);
    if (has_capture)
        unwritten = alb_sim_capture_close(&pcap);
    if (lines && fclose(lines) != 0)
        unwritten = errno;
    if (unwritten && !result->failure[0])
        snprintf(result->failure, sizeof(result->failure), "what it did cannot be written: %s", strerror(unwritten));
    free(search);
    return result->failure[0] == 0;
}
