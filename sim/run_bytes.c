// SPDX-License-Identifier: BSD-2-Clause
// What messages must bring, when hosts have real memory: each has a place of its own at both ends, filled with bytes
// that no other one has, and has brought them in the moment in which it completes. All else is the model's to judge
// (sim/run_model.c).
#include "sim/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP_BYTES = 16,  // between two places, never to be written
    HEAD_BYTES = 64, // of a channel's memory: where the model looks for atomics, of which there are none
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
    run->promise = format;
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

// ---- where they lie -------------------------------------------------------------------------------------------------

static uint64_t room_of(uint64_t bytes)
{
    return (bytes + 2 * GAP_BYTES - 1) / GAP_BYTES * GAP_BYTES;
}

static struct alb_run_arena *arena_of(const struct alb_run *run, uint32_t task)
{
    return &run->arenas[run->channel_of[task]];
}

// The next place in a stretch, which grows by it.
static uint64_t take(struct alb_run_stretch *stretch, uint64_t bytes)
{
    uint64_t at = stretch->at + stretch->bytes;
    stretch->bytes += room_of(bytes);
    return at;
}

// Both ends of a message, relative to where their stretches begin.
static void place(struct alb_run *run, uint32_t index)
{
    const struct alb_task *task = &run->schedule.tasks[index];
    struct alb_run_place *own = &run->places[index];
    struct alb_run_arena *arena = arena_of(run, index);
    enum alb_work_op op = run->schedule.works[task->work].op;
    own->source = op == ALB_WORK_READ ? task->peer : task->rank;
    own->target = op == ALB_WORK_READ ? task->rank : task->peer;
    uint32_t from = own->source > own->target, to = 1 - from; // side 0 is the lower one
    own->from = take(&arena->constant[from], task->bytes);
    if (op == ALB_WORK_WRITE)
        own->to = take(&arena->targets[to], task->bytes);
    else if (op == ALB_WORK_READ)
        own->to = take(&arena->constant[to], task->bytes);
    else
        arena->landing[to].bytes = ALB_MAX(arena->landing[to].bytes, room_of(task->bytes));
}

// The stretches of a channel one behind the other, as long at one host as at the other. False: too long for the model.
static bool join(const struct alb_run *run, uint32_t index, uint64_t *used)
{
    const struct alb_run_channel *channel = &run->channels[index];
    struct alb_run_arena *arena = &run->arenas[index];
    const uint32_t hosts[2] = {channel->low, channel->high};
    for (uint32_t side = 0; side < 2; side++) {
        arena->constant[side].at = HEAD_BYTES;
        arena->targets[side].at = arena->constant[side].at + arena->constant[side].bytes;
        arena->landing[side].at = arena->targets[side].at + arena->targets[side].bytes;
        arena->bytes = ALB_MAX(arena->bytes, arena->landing[side].at + arena->landing[side].bytes);
    }
    for (uint32_t side = 0; side < 2; side++) {
        arena->at[side] = used[hosts[side]];
        used[hosts[side]] += arena->bytes;
    }
    return arena->bytes <= UINT32_MAX;
}

// Where both ends are in their hosts' memory.
static void settle(const struct alb_run *run, uint32_t index)
{
    struct alb_run_place *own = &run->places[index];
    const struct alb_run_arena *arena = arena_of(run, index);
    uint32_t from = own->source > own->target, to = 1 - from;
    enum alb_work_op op = run->schedule.works[run->schedule.tasks[index].work].op;
    own->from += arena->at[from] + arena->constant[from].at;
    own->to += arena->at[to] + (op == ALB_WORK_WRITE ? arena->targets[to].at : arena->constant[to].at);
}

bool alb_run_bytes_layout(struct alb_run *run, uint32_t *too_large)
{
    uint64_t *used = calloc(run->topology.host_count, sizeof(*used));
    bool is_good = true;
    run->places = calloc(run->schedule.task_count + 1u, sizeof(*run->places));
    run->arenas = calloc(run->channel_count + 1u, sizeof(*run->arenas));
    alb_assert(used && run->places && run->arenas);
    for (uint32_t i = 0; i < run->schedule.task_count; i++)
        if (run->schedule.tasks[i].kind == ALB_TASK_SEND)
            place(run, i);
    for (uint32_t i = 0; i < run->channel_count && is_good; i++) {
        is_good = join(run, i, used);
        *too_large = i;
    }
    for (uint32_t i = 0; i < run->schedule.task_count; i++)
        if (run->schedule.tasks[i].kind == ALB_TASK_SEND)
            settle(run, i);
    for (uint32_t host = 0; host < run->topology.host_count; host++)
        run->memory_used = ALB_MAX(run->memory_used, used[host]);
    free(used);
    return is_good;
}

// ---- what they are --------------------------------------------------------------------------------------------------

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

// Of UC a message that was never whole may have been there before. What is not a message's is 0, as it was at first.
void alb_run_bytes_end_receive(struct alb_run *run, const struct alb_cluster_completion *completion)
{
    const struct alb_run_channel *channel =
        &run->channels[alb_channel_connection(completion->channel)->user[completion->side]];
    bool is_unreliable = run->schedule.works[channel->work].is_unreliable;
    uint32_t host = completion->side ? channel->high : channel->low;
    uint8_t *receive = alb_cluster_memory(run->cluster, host) + completion->offset;
    uint32_t from = completion->wc->opcode == ALB_WC_RECV ? ALB_MIN(completion->wc->byte_len, run->receive_bytes) : 0;
    for (uint32_t at = from; at < run->receive_bytes && completion->status == ALB_WC_SUCCESS && !is_unreliable; at++)
        if (receive[at]) {
            alb_run_violate(run,
                            "host %" PRIu32 ": byte %" PRIu32 " of a receive is 0x%02x, behind a message of %" PRIu32,
                            host, at, receive[at], from);
            break;
        }
    memset(receive, 0, completion->status == ALB_WC_SUCCESS && !is_unreliable ? from : run->receive_bytes);
}

void alb_run_bytes_fini(struct alb_run *run)
{
    free(run->places);
    free(run->arenas);
}
