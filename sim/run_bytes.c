// SPDX-License-Identifier: BSD-2-Clause
// What messages must bring, when hosts have real memory: each has a place of its own at both ends, filled with bytes
// that no other one has. Checked are the moment of each completion and, in the end, every byte of every host: what is
// not the place of a message is as it was.
#include "sim/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP_BYTES = 16, // between two places, never to be written
};

// Where a message's bytes come from and where they go; a SEND goes to whatever was posted to receive.
struct alb_run_place {
    uint32_t source, target; // hosts
    uint64_t from, to;
};

void alb_run_violate(struct alb_run *run, const char *format, ...)
{
    va_list arguments;
    if (run->violation[0])
        return;
    va_start(arguments, format);
    vsnprintf(run->violation, sizeof(run->violation), format, arguments);
    va_end(arguments);
    alb_cluster_stop(run->cluster);
}

static uint8_t byte_of(uint32_t task, uint64_t at)
{
    uint64_t mixed = ((uint64_t)task << 32 ^ at) * 0x9e3779b97f4a7c15ull;
    return (uint8_t)(mixed >> 56) | 1; // never 0, which is what untouched memory has
}

static uint64_t take(uint64_t *used, uint64_t bytes)
{
    uint64_t at = *used;
    *used += (bytes + 2 * GAP_BYTES - 1) / GAP_BYTES * GAP_BYTES;
    return at;
}

uint64_t alb_run_bytes_layout(struct alb_run *run)
{
    uint64_t *used = calloc(run->topology.host_count, sizeof(*used)), most = 0;
    run->places = calloc(run->schedule.task_count + 1u, sizeof(*run->places));
    alb_assert(used && run->places);
    for (uint32_t i = 0; i < run->schedule.task_count; i++) {
        const struct alb_task *task = &run->schedule.tasks[i];
        if (task->kind != ALB_TASK_SEND)
            continue;
        enum alb_work_op op = run->schedule.works[task->work].op;
        struct alb_run_place *place = &run->places[i];
        place->source = op == ALB_WORK_READ ? task->peer : task->rank;
        place->target = op == ALB_WORK_READ ? task->rank : task->peer;
        place->from = take(&used[place->source], task->bytes);
        if (op != ALB_WORK_SEND)
            place->to = take(&used[place->target], task->bytes);
    }
    for (uint32_t host = 0; host < run->topology.host_count; host++)
        most = ALB_MAX(most, used[host]);
    free(used);
    return most;
}

void alb_run_bytes_fill(struct alb_run *run)
{
    for (uint32_t i = 0; i < run->schedule.task_count; i++) {
        const struct alb_task *task = &run->schedule.tasks[i];
        uint8_t *memory = alb_cluster_memory(run->cluster, run->places[i].source);
        for (uint64_t at = 0; at < task->bytes && task->kind == ALB_TASK_SEND; at++)
            memory[run->places[i].from + at] = byte_of(i, at);
    }
}

void alb_run_bytes_place(const struct alb_run *run, uint32_t task, struct alb_message *message)
{
    const struct alb_run_place *place = &run->places[task];
    bool reads = message->op == ALB_MESSAGE_READ;
    message->local_offset = reads ? place->to : place->from;
    message->remote_offset = reads ? place->from : place->to;
}

// offset: where a SEND has come to.
void alb_run_bytes_check(struct alb_run *run, uint32_t task, uint64_t offset, const char *when)
{
    const struct alb_run_place *place = &run->places[task];
    bool sends = run->schedule.works[run->schedule.tasks[task].work].op == ALB_WORK_SEND;
    const uint8_t *memory = alb_cluster_memory(run->cluster, place->target) + (sends ? offset : place->to);
    for (uint64_t at = 0; at < run->schedule.tasks[task].bytes; at++) {
        if (memory[at] == byte_of(task, at))
            continue;
        alb_run_violate(run,
                        "message %" PRIu32 " from host %" PRIu32 " to host %" PRIu32 ": byte %" PRIu64 " of %" PRIu64
                        " is 0x%02x and not 0x%02x %s",
                        task, place->source, place->target, at, run->schedule.tasks[task].bytes, memory[at],
                        byte_of(task, at), when);
        return;
    }
}

// ---- in the end -----------------------------------------------------------------------------------------------------

// The task whose place each byte is, and whether it comes from there: 2 * task + is_source + 1; 0: of none.
static void mark(const struct alb_run *run, uint32_t host, uint64_t bytes, uint32_t *owner)
{
    for (uint32_t i = 0; i < run->schedule.task_count; i++) {
        const struct alb_task *task = &run->schedule.tasks[i];
        const struct alb_run_place *place = &run->places[i];
        if (task->kind != ALB_TASK_SEND)
            continue;
        bool sends = run->schedule.works[task->work].op == ALB_WORK_SEND;
        for (uint64_t at = 0; at < task->bytes; at++) {
            if (place->source == host && place->from + at < bytes)
                owner[place->from + at] = 2 * i + 2;
            if (place->target == host && !sends && place->to + at < bytes)
                owner[place->to + at] = 2 * i + 1;
        }
    }
}

static void check_host(struct alb_run *run, uint32_t host, uint64_t bytes)
{
    const uint8_t *memory = alb_cluster_memory(run->cluster, host);
    uint32_t *owner = calloc(bytes + 1, sizeof(*owner));
    alb_assert(owner);
    mark(run, host, bytes, owner);
    for (uint64_t at = 0; at < bytes; at++) {
        if (owner[at] == 0) {
            if (memory[at] != 0)
                alb_run_violate(run, "host %" PRIu32 ": byte %" PRIu64 " was written to, and belongs to no flow", host,
                                at);
            continue;
        }
        uint32_t task = (owner[at] - 1) / 2;
        bool is_source = owner[at] % 2 == 0;
        const struct alb_run_place *place = &run->places[task];
        uint8_t expected = byte_of(task, at - (is_source ? place->from : place->to));
        bool may_lack = !is_source && (run->times[task].done == ALB_SIM_NEVER || alb_run_task_failed(run, task));
        if (memory[at] != expected && !(may_lack && memory[at] == 0))
            alb_run_violate(run, "host %" PRIu32 ": byte %" PRIu64 " of message %" PRIu32 " is wrong in the end", host,
                            at, task);
    }
    free(owner);
}

void alb_run_bytes_end(struct alb_run *run, uint64_t bytes)
{
    for (uint32_t host = 0; host < run->topology.host_count && !run->violation[0]; host++)
        check_host(run, host, bytes);
}

void alb_run_bytes_fini(struct alb_run *run)
{
    free(run->places);
}
