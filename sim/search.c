// SPDX-License-Identifier: BSD-2-Clause
// One search: phases of random work over a bad network, each followed by a good one in which everything must end.
#include "sim/search.h"

#include "sim/file.h"
#include "sim/search_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS_MAX = 400,        // in which a phase must come to rest
    ROUNDS_SHORT_MAX = 8000, // of short runs: short rounds, since a sender without a receive asks all the time
};

static void set_faults(struct alb_search *search, bool is_bad)
{
    if (!is_bad)
        alb_sim_pair_set_partition(&search->pair, false);
    struct alb_faults_spec none = {0};
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        alb_sim_link_set_faults(&search->pair.out[side], is_bad ? &search->faults : &none, alb_prng_u64(&search->prng));
}

static bool has_failed(const struct alb_search *search)
{
    return search->model.failure[0] != 0;
}

// ---- trouble from above ---------------------------------------------------------------------------------------------

static void modify(struct alb_search *search, uint32_t side, uint32_t index, enum alb_qp_state state)
{
    struct alb_search_side *s = &search->sides[side];
    struct alb_qp_attr attr = {.state = state};
    int error = alb_qp_modify(s->qps[index].qp, &attr, ALB_QP_STATE, alb_sim_host_now(s->host));
    if (state == ALB_QPS_SQD || state == ALB_QPS_RTS)
        alb_model_on_drain(s->qps[index].model, state == ALB_QPS_SQD);
    if (error)
        alb_model_fail(&search->model, "queue pair %u/%u: state %d refused with %d", side, index, state, error);
    alb_sim_host_poke(s->host);
}

// Begins anew at once, with packets of the former life still under way.
static void reconnect(struct alb_search *search, uint32_t index)
{
    alb_search_poll(search, 0);
    alb_search_poll(search, 1);
    alb_search_connect(search, index, false);
}

static void change_life(struct alb_search *search, uint32_t side, uint32_t index)
{
    struct alb_search_qp *qp = &search->sides[side].qps[index];
    enum alb_qp_state state = alb_qp_current_state(qp->qp);
    switch (alb_search_below(search, 7)) {
    case 6:
        if (alb_model_is_reliable(qp->model->type))
            reconnect(search, index);
        break;
    case 0:
        if (state == ALB_QPS_RESET)
            break;
        alb_model_on_break(qp->model);
        modify(search, side, index, ALB_QPS_ERR);
        break;
    case 1:
        alb_search_poll(search, side);
        alb_search_life_reset(search, side, index);
        modify(search, side, index, ALB_QPS_RESET);
        alb_model_on_reset(&search->model, qp->model);
        qp->is_connected = false;
        break;
    default:
        if (state == ALB_QPS_RTS)
            modify(search, side, index, ALB_QPS_SQD);
        else if (state == ALB_QPS_SQD)
            modify(search, side, index, ALB_QPS_RTS);
    }
}

// ---- trouble from below ---------------------------------------------------------------------------------------------

// Cuts the network for a while.
static void cut(struct alb_search *search)
{
    alb_sim_pair_set_partition(&search->pair, true);
    alb_sim_network_run_for(&search->pair.network, ALB_SIM_NS(1) << alb_search_below(search, 26));
    alb_sim_pair_set_partition(&search->pair, false);
    search->result->partitions++;
}

// ---- a phase --------------------------------------------------------------------------------------------------------

static void step(struct alb_search *search)
{
    uint32_t side = alb_search_below(search, ALB_MODEL_SIDES);
    uint32_t index = alb_search_below(search, search->qp_count);
    uint32_t choice = alb_search_below(search, 100);
    alb_search_life_come_back(search);
    if (choice < 50) {
        for (uint32_t n = 1 + alb_search_below(search, 4); n > 0; n--)
            alb_search_post(search, side, index);
        alb_sim_host_poke(search->sides[side].host);
    } else if (choice < 75) {
        for (uint32_t n = 1 + alb_search_below(search, 3); n > 0; n--)
            alb_search_post_recv(search, side, index, false);
    } else if (choice < 85) {
        alb_search_poll(search, side);
    } else if (choice < 87 && search->has_lifecycle) {
        change_life(search, side, index);
    } else if (choice < 89 && search->has_errors) {
        alb_search_renew_fleeting(search, side);
    } else if (choice < 90 && search->has_partitions) {
        cut(search);
    } else if (choice < 91 && search->has_restarts && !search->has_repeated) {
        alb_search_restart(search, side);
        alb_search_life_end(search, side);
    } else {
        alb_sim_network_run_for(&search->pair.network, ALB_SIM_NS(1) << alb_search_below(search, 19));
    }
}

static uint32_t steps(struct alb_search *search)
{
    return search->is_short ? 5 + alb_search_below(search, 30) : 10 + alb_search_below(search, 90);
}

static bool replenish(struct alb_search *search)
{
    bool did = false;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        for (uint32_t i = 0; i < search->qp_count; i++) {
            const struct alb_search_qp *qp = &search->sides[side].qps[i];
            const struct alb_search_qp *from = &search->sides[1 - side].qps[i];
            bool is_wanted = alb_model_is_reliable(qp->model->type) && qp->is_connected && from->is_connected &&
                             alb_model_wants_receive(from->model) && qp->model->used->open < search->slot_count / 8;
            if (is_wanted)
                did |= alb_search_post_recv(search, side, i, true);
        }
    return did;
}

// The network is good now. True once nothing is under way.
static bool come_to_rest(struct alb_search *search)
{
    struct alb_sim_network *network = &search->pair.network;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        for (uint32_t i = 0; i < search->qp_count; i++)
            if (alb_qp_current_state(search->sides[side].qps[i].qp) == ALB_QPS_SQD)
                modify(search, side, i, ALB_QPS_RTS);
    uint32_t rounds = search->is_short ? ROUNDS_SHORT_MAX : ROUNDS_MAX;
    alb_sim_time span = search->is_short ? ALB_SIM_US(500) : ALB_SIM_MS(10);
    for (uint32_t round = 0; round < rounds && !has_failed(search); round++) {
        alb_sim_time limit = alb_sim_network_now(network) + span;
        if (alb_sim_queue_count(&network->queue) > 0)
            limit = ALB_MAX(limit, alb_sim_queue_next_at(&network->queue));
        bool is_idle = alb_sim_network_run_idle(network, limit);
        uint32_t polled = alb_search_poll(search, 0) + alb_search_poll(search, 1);
        bool did = replenish(search);
        if (is_idle && polled == 0 && !did)
            return true;
    }
    return false;
}

// What keeps a phase from ending.
static void say_why(struct alb_search *search)
{
    struct alb_sim_queue *queue = &search->pair.network.queue;
    uint64_t count = alb_sim_queue_count(queue);
    uint64_t due_us = count > 0 ? (alb_sim_queue_next_at(queue) - queue->now) / ALB_SIM_US(1) : 0;
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        for (uint32_t i = 0; i < search->qp_count; i++)
            if (!alb_qp_is_quiet(search->sides[side].qps[i].qp))
                alb_model_fail(&search->model, "the network is good, and queue pair %u/%u is still not quiet", side, i);
    alb_model_fail(&search->model, "the network is good, and still not everything has ended: %llu events, in %llu us",
                   (unsigned long long)count, (unsigned long long)due_us);
}

static void check_rest(struct alb_search *search)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        for (uint32_t i = 0; i < search->qp_count; i++)
            if (!alb_qp_is_quiet(search->sides[side].qps[i].qp))
                alb_model_fail(&search->model, "queue pair %u/%u is not quiet at rest", side, i);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        if (!alb_engine_is_quiet(search->sides[side].host->engine))
            alb_model_fail(&search->model, "engine %u is not quiet at rest", side);
    if (search->pair.network.packets.outstanding != 0)
        alb_model_fail(&search->model, "packets are left on the way");
}

// Whatever the network does to packets, what passes the ICRC is well-formed, and answers fit their requests as long as
// no side restarts.
static void check_drops(struct alb_search *search)
{
    static const enum alb_drop never[] = {
        ALB_DROP_TRUNCATED, ALB_DROP_BAD_VERSION, ALB_DROP_UNKNOWN_OPCODE, ALB_DROP_BAD_LENGTH, ALB_DROP_OVERSIZE,
        ALB_DROP_NOT_ROCE,  ALB_DROP_WRONG_PEER,  ALB_DROP_WRONG_LOCAL,    ALB_DROP_BAD_PKEY,   ALB_DROP_BAD_QKEY};
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        const uint64_t *dropped = search->sides[side].host->stats.dropped;
        for (uint32_t i = 0; i < ALB_COUNT(never); i++)
            if (dropped[never[i]])
                alb_model_fail(&search->model, "engine %u dropped a packet: %s", side, alb_drop_name(never[i]));
        if (dropped[ALB_DROP_BAD_ICRC] && !search->faults.corrupt)
            alb_model_fail(&search->model, "engine %u found a bad ICRC on a good network", side);
        if (dropped[ALB_DROP_NO_RESOURCES] && !search->is_csa)
            alb_model_fail(&search->model, "engine %u had no room for a packet", side);
        if (dropped[ALB_DROP_BAD_EPOCH] && !search->has_restarts)
            alb_model_fail(&search->model, "engine %u took a packet for one of another life", side);
        if (dropped[ALB_DROP_BAD_RESPONSE] && !search->has_lifecycle && !search->has_errors)
            alb_model_fail(&search->model, "engine %u got an answer that does not fit its request", side);
    }
}

static void end_phase(struct alb_search *search)
{
    bool is_live[ALB_MODEL_SIDES][ALB_MODEL_QPS_MAX] = {0};
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        for (uint32_t i = 0; i < search->qp_count; i++) {
            is_live[side][i] = alb_qp_current_state(search->sides[side].qps[i].qp) == ALB_QPS_RTS;
            search->result->failed_qps += !is_live[side][i];
        }
        alb_search_reclaim_slots(&search->sides[side]);
    }
    alb_model_end_phase(&search->model);
    for (uint32_t i = 0; i < search->qp_count; i++)
        for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
            if (!is_live[side][i])
                search->sides[side].qps[i].is_connected = search->sides[1 - side].qps[i].is_connected = false;
}

static void run_phase(struct alb_search *search)
{
    for (uint32_t i = 0; i < search->qp_count; i++)
        if (!search->sides[0].qps[i].is_connected || !search->sides[1].qps[i].is_connected ||
            alb_search_percent(search, 20))
            alb_search_connect(search, i, true);
    alb_search_life_begin_phase(search);
    set_faults(search, true);
    for (uint32_t n = steps(search); n > 0 && !has_failed(search); n--)
        step(search);
    set_faults(search, false);
    if (!come_to_rest(search))
        say_why(search);
    if (has_failed(search))
        return;
    check_rest(search);
    check_drops(search);
    end_phase(search);
    search->result->phases++;
}

// ---- the whole ------------------------------------------------------------------------------------------------------

static void sum_up(const struct alb_search *search, struct alb_search_result *result)
{
    result->trace_hash = alb_sim_network_trace_hash(&search->pair.network);
    result->virtual_ns = alb_sim_to_ns(alb_sim_network_now(&search->pair.network));
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        const struct alb_sim_link_stats *link = &search->pair.out[side].stats;
        result->packets += link->packets;
        result->lost += link->lost + link->overflowed;
        result->retransmitted += search->pair.host[side].stats.sum.counter[ALB_STAT_retransmitted_pkts];
    }
}

bool alb_search_run(uint64_t seed, const struct alb_search_options *options, struct alb_search_result *result)
{
    struct alb_search *search = calloc(1, sizeof(*search));
    struct alb_sim_capture pcap;
    FILE *lines = options->trace ? alb_sim_file_open(options->trace) : NULL;
    int unwritten = 0;
    alb_assert(search);
    *result = (struct alb_search_result){0};
    search->result = result;
    search->is_csa = options->transport && strcmp(options->transport, "csa") == 0;
    search->is_short = options->is_short;
    alb_search_open(search, seed);
    if (options->capture && alb_sim_capture_open(&pcap, options->capture) == 0)
        search->pair.host[0].capture = &pcap;
    search->pair.host[0].trace = search->pair.host[1].trace = lines;
    uint32_t phases = 1 + alb_search_below(search, search->is_short ? 2 : 3);
    for (phases += phases == 1 && search->comes_back; phases > 0 && !has_failed(search); phases--)
        run_phase(search);
    sum_up(search, result);
    search->pair.host[0].trace = search->pair.host[1].trace = NULL;
    alb_search_close(search);
    memcpy(result->failure, search->model.failure, sizeof(search->model.failure));
    if (search->pair.host[0].capture)
        unwritten = alb_sim_capture_close(&pcap);
    if (lines && fclose(lines) != 0)
        unwritten = errno;
    if (unwritten && !result->failure[0])
        snprintf(result->failure, sizeof(result->failure), "what it did cannot be written: %s", strerror(unwritten));
    free(search);
    return result->failure[0] == 0;
}
