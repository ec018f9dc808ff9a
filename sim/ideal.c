// SPDX-License-Identifier: BSD-2-Clause
#include "sim/ideal.h"

#include <stdlib.h>
#include <string.h>

// Tasks of one work, numbered from its first.
struct chains {
    const struct alb_run *run;
    const struct alb_work *work;
    uint32_t *waits, *ready;
    uint32_t ready_count;
    alb_sim_time *begins; // at the earliest
    alb_sim_time longest;
};

static alb_sim_time later(alb_sim_time at, alb_sim_time span)
{
    return alb_sim_until_end((unsigned __int128)at + span);
}

static alb_sim_time one_way(const struct chains *chains, const struct alb_task *task)
{
    uint32_t payload_bytes, overhead_bytes;
    alb_run_packet(chains->run, chains->work, &payload_bytes, &overhead_bytes);
    return alb_cluster_ideal_time(chains->run->cluster, task->rank, task->peer, task->bytes, payload_bytes,
                                  overhead_bytes);
}

static void settle(struct chains *chains, uint32_t task, alb_sim_time at)
{
    uint32_t i = task - chains->work->first_task;
    if (i >= chains->work->task_count)
        return;
    chains->begins[i] = ALB_MAX(chains->begins[i], at);
    if (--chains->waits[i] == 0)
        chains->ready[chains->ready_count++] = i;
}

static void follow(struct chains *chains, uint32_t i)
{
    const struct alb_schedule *schedule = &chains->run->schedule;
    uint32_t index = chains->work->first_task + i;
    const struct alb_task *task = &schedule->tasks[index];
    alb_sim_time begins = chains->begins[i], ends = begins;
    if (task->kind == ALB_TASK_CALC)
        ends = later(ends, task->at);
    if (task->kind == ALB_TASK_SEND) {
        if (task->matched != ALB_TASK_NONE)
            settle(chains, task->matched, later(begins, one_way(chains, task)));
        ends = later(ends, alb_run_ideal(chains->run, index));
    }
    if (task->kind != ALB_TASK_SEND || task->matched == ALB_TASK_NONE)
        chains->longest = ALB_MAX(chains->longest, ends);
    for (uint32_t e = schedule->first_edge[index]; e < schedule->first_edge[index + 1]; e++)
        settle(chains, schedule->edges[e].to, schedule->edges[e].at_start ? begins : ends);
}

static alb_sim_time longest_chain(const struct alb_run *run, const struct alb_work *work)
{
    uint32_t n = work->task_count;
    struct chains chains = {.run = run,
                            .work = work,
                            .waits = calloc(n + 1u, sizeof(uint32_t)),
                            .ready = malloc((n + 1u) * sizeof(uint32_t)),
                            .begins = calloc(n + 1u, sizeof(alb_sim_time))};
    alb_assert(chains.waits && chains.ready && chains.begins);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t index = work->first_task + i;
        const struct alb_task *task = &run->schedule.tasks[index];
        chains.waits[i] += task->kind == ALB_TASK_RECV && task->matched != ALB_TASK_NONE;
        for (uint32_t e = run->schedule.first_edge[index]; e < run->schedule.first_edge[index + 1]; e++)
            if (run->schedule.edges[e].to - work->first_task < n)
                chains.waits[run->schedule.edges[e].to - work->first_task]++;
    }
    for (uint32_t i = 0; i < n; i++)
        if (chains.waits[i] == 0)
            chains.ready[chains.ready_count++] = i;
    for (uint32_t done = 0; done < chains.ready_count; done++)
        follow(&chains, chains.ready[done]);
    free(chains.waits);
    free(chains.ready);
    free(chains.begins);
    return chains.longest;
}

// The bytes that a message takes of a host's link.
static uint64_t wire_bytes(const struct alb_run *run, const struct alb_work *work, uint64_t bytes)
{
    uint32_t payload_bytes, overhead_bytes;
    alb_run_packet(run, work, &payload_bytes, &overhead_bytes);
    uint64_t packets = ALB_MAX((bytes + payload_bytes - 1) / payload_bytes, (uint64_t)1);
    return bytes + packets * overhead_bytes;
}

static alb_sim_time busiest_host(const struct alb_run *run, const struct alb_work *work)
{
    uint32_t hosts = run->topology.host_count;
    uint64_t *sent = calloc(2 * (size_t)hosts, sizeof(*sent)), *received = sent + hosts;
    alb_sim_time longest = 0;
    alb_assert(sent);
    for (uint32_t i = work->first_task; i < work->first_task + work->task_count; i++) {
        const struct alb_task *task = &run->schedule.tasks[i];
        if (task->kind != ALB_TASK_SEND)
            continue;
        sent[task->rank] += wire_bytes(run, work, task->bytes);
        received[task->peer] += wire_bytes(run, work, task->bytes);
    }
    for (uint32_t host = 0; host < hosts; host++) {
        unsigned __int128 bits = (unsigned __int128)ALB_MAX(sent[host], received[host]) * 8;
        longest = ALB_MAX(longest, alb_sim_until_end(bits * ALB_SIM_S(1) / run->needs[host].bits_per_s));
    }
    free(sent);
    return longest;
}

alb_sim_time alb_ideal_work(const struct alb_run *run, uint32_t work)
{
    alb_sim_time chain = longest_chain(run, &run->schedule.works[work]);
    alb_sim_time host = busiest_host(run, &run->schedule.works[work]);
    return ALB_MAX(chain, host);
}
