// SPDX-License-Identifier: BSD-2-Clause
// How tasks of a schedule begin and end: a task whose last edge is settled is put in a list, from which it is begun
// within the same moment, so that long chains of them need no stack.
#include "sim/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum task_state {
    WAITING, // for its edges, or its time
    BEGUN,
    SENT, // by UC: whether it arrives is unknown
    DONE,
    FAILED,
};

// A calculation under way, or one that waits for its processor.
struct calculation {
    struct alb_sim_event event;
    struct alb_list link; // among those of the run
    struct alb_run *run;
    uint32_t task;
};

static struct alb_task *task_of(struct alb_run *run, uint32_t index)
{
    return &run->schedule.tasks[index];
}

// ---- edges ----------------------------------------------------------------------------------------------------------

void alb_run_push_ready(struct alb_run *run, uint32_t task)
{
    if (run->ready_first == run->ready_count)
        run->ready_first = run->ready_count = 0;
    if (run->ready_count == run->ready_capacity) {
        run->ready_capacity = run->ready_capacity ? 2 * run->ready_capacity : 256;
        run->ready = realloc(run->ready, run->ready_capacity * sizeof(*run->ready));
        alb_assert(run->ready);
    }
    run->ready[run->ready_count++] = task;
}

static void settle(struct alb_run *run, uint32_t task, bool at_start)
{
    for (uint32_t e = run->schedule.first_edge[task]; e < run->schedule.first_edge[task + 1]; e++) {
        const struct alb_task_edge *edge = &run->schedule.edges[e];
        if (edge->at_start == at_start && --task_of(run, edge->to)->waits == 0)
            alb_run_push_ready(run, edge->to);
    }
}

static void begin(struct alb_run *run, uint32_t task, alb_sim_time now)
{
    run->state[task] = BEGUN;
    run->times[task].begun = now;
    settle(run, task, true);
}

static void close_task(struct alb_run *run, uint32_t task, enum task_state state, alb_sim_time now)
{
    run->state[task] = (uint8_t)state;
    run->times[task].done = now;
    run->ended_at = ALB_MAX(run->ended_at, now);
    run->tasks_done++;
    run->tasks_failed += state == FAILED;
    if (state == DONE)
        settle(run, task, false);
    if (state == DONE && task_of(run, task)->kind == ALB_TASK_SEND)
        run->bytes_done += task_of(run, task)->bytes;
}

// By UC a message is done for its sender when it has left, and in truth when it has arrived.
static void leave(struct alb_run *run, uint32_t task, alb_sim_time now)
{
    if (run->times[task].arrived != ALB_SIM_NEVER) {
        close_task(run, task, DONE, now);
        return;
    }
    run->state[task] = SENT;
    run->times[task].done = now;
    run->ended_at = ALB_MAX(run->ended_at, now); // nothing may arrive after it
    alb_run_partial_left(run, task, now);
    settle(run, task, false);
}

// Nothing happens any more: what has not arrived by UC is lost.
void alb_run_lose(struct alb_run *run)
{
    for (uint32_t i = 0; i < run->schedule.task_count; i++) {
        if (run->state[i] != SENT)
            continue;
        run->state[i] = FAILED;
        run->tasks_done++;
        run->tasks_failed++;
    }
}

bool alb_run_task_failed(const struct alb_run *run, uint32_t task)
{
    return run->state[task] == FAILED;
}

alb_sim_time alb_run_task_end(const struct alb_run *run, uint32_t task)
{
    const struct alb_work *work = &run->schedule.works[run->schedule.tasks[task].work];
    return work->is_unreliable ? run->times[task].arrived : run->times[task].done;
}

bool alb_run_task_has_come(const struct alb_run *run, uint32_t task)
{
    return !alb_run_task_failed(run, task) && run->times[task].done != ALB_SIM_NEVER &&
           alb_run_task_end(run, task) != ALB_SIM_NEVER;
}

uint32_t alb_run_first_open(const struct alb_run *run)
{
    uint32_t waiting = ALB_TASK_NONE;
    for (uint32_t i = 0; i < run->schedule.task_count; i++) {
        if (run->state[i] == BEGUN)
            return i;
        if (run->state[i] == WAITING && waiting == ALB_TASK_NONE)
            waiting = i;
    }
    return waiting;
}

// ---- sends ----------------------------------------------------------------------------------------------------------

static enum alb_message_op op_of(const struct alb_work *work, const struct alb_task *task)
{
    if (work->op == ALB_WORK_READ)
        return ALB_MESSAGE_READ;
    if (work->op == ALB_WORK_SEND)
        return ALB_MESSAGE_SEND;
    return task->tag == ALB_TASK_UNHEARD && !work->is_unreliable ? ALB_MESSAGE_WRITE : ALB_MESSAGE_WRITE_IMM;
}

bool alb_run_is_heard(const struct alb_run *run, uint32_t task)
{
    const struct alb_task *of = &run->schedule.tasks[task];
    enum alb_message_op op = op_of(&run->schedule.works[of->work], of);
    return op == ALB_MESSAGE_SEND || op == ALB_MESSAGE_WRITE_IMM;
}

int alb_run_post(struct alb_run *run, uint32_t task, struct alb_message *message)
{
    uint32_t index = run->channel_of[task];
    struct alb_run_channel *channel = &run->channels[index];
    uint32_t side = task_of(run, task)->rank != channel->low;
    if (run->places)
        alb_run_bytes_place(run, task, message);
    if (run->models)
        alb_run_model_post(run, index, side, message);
    int error = alb_cluster_post(run->cluster, channel->channel, side, message);
    if (run->models)
        alb_run_model_posted(run, index, side, error == 0);
    return error;
}

static bool post(struct alb_run *run, uint32_t index, alb_sim_time now)
{
    struct alb_task *task = task_of(run, index);
    struct alb_message message = {
        .op = op_of(&run->schedule.works[task->work], task), .bytes = task->bytes, .user = index, .imm = index};
    alb_run_partial_describe(run, index, &message);
    if (!alb_run_partial_has_turn(run, index))
        return false;
    int error = alb_run_post(run, index, &message);
    if (error == ENOMEM)
        return false;
    if (error)
        close_task(run, index, FAILED, now);
    return true;
}

static void begin_send(struct alb_run *run, uint32_t index, alb_sim_time now)
{
    struct alb_run_channel *channel = &run->channels[run->channel_of[index]];
    uint32_t side = task_of(run, index)->rank != channel->low;
    begin(run, index, now);
    if (channel->waiting_first[side] == ALB_TASK_NONE && post(run, index, now))
        return;
    run->next[index] = ALB_TASK_NONE;
    if (channel->waiting_first[side] == ALB_TASK_NONE)
        channel->waiting_first[side] = index;
    else
        run->next[channel->waiting_last[side]] = index;
    channel->waiting_last[side] = index;
}

void alb_run_post_waiting(struct alb_run *run, uint32_t task, alb_sim_time now)
{
    struct alb_run_channel *channel = &run->channels[run->channel_of[task]];
    uint32_t side = task_of(run, task)->rank != channel->low;
    if (!alb_run_partial_post_waiting(run, run->channel_of[task], side))
        return;
    while (channel->waiting_first[side] != ALB_TASK_NONE) {
        uint32_t index = channel->waiting_first[side], next = run->next[index];
        if (!post(run, index, now))
            return;
        channel->waiting_first[side] = next;
    }
}

// ---- receipts -------------------------------------------------------------------------------------------------------

// Tells CSA what a step of a collective will bring. Other transports know no such thing.
static void announce(struct alb_run *run, uint32_t index)
{
    const struct alb_task *task = task_of(run, index);
    const struct alb_work *work = &run->schedule.works[task->work];
    if (work->steps == 0 || task->matched == ALB_TASK_NONE || run->scenario->host.transport == 0)
        return;
    struct alb_run_channel *channel = &run->channels[run->channel_of[task->matched]];
    const struct alb_expectation expectation = {
        .bytes = task->bytes, .messages = 1, .group = task->work + 1u, .step = task->step, .steps = work->steps};
    if (alb_cluster_expect(run->cluster, channel->channel, task->rank != channel->low, &expectation) != 0)
        run->expectations_refused++;
}

static bool fits(const struct alb_run *run, uint32_t send, uint32_t receipt)
{
    const struct alb_task *from = &run->schedule.tasks[send], *to = &run->schedule.tasks[receipt];
    return from->work == to->work && (to->peer == ALB_TASK_ANY || to->peer == from->rank) &&
           (to->tag == ALB_TASK_ANY || to->tag == from->tag);
}

static void append(struct alb_run *run, struct alb_run_line *line, uint32_t task)
{
    run->next[task] = ALB_TASK_NONE;
    *(line->first == ALB_TASK_NONE ? &line->first : &run->next[line->last]) = task;
    line->last = task;
}

// The oldest receipt that fits a message, or message that fits a receipt; ALB_TASK_NONE: there is none.
static uint32_t take_fitting(struct alb_run *run, struct alb_run_line *line, uint32_t task)
{
    bool is_send = task_of(run, task)->kind == ALB_TASK_SEND;
    uint32_t before = ALB_TASK_NONE;
    for (uint32_t at = line->first; at != ALB_TASK_NONE; before = at, at = run->next[at]) {
        if (!fits(run, is_send ? task : at, is_send ? at : task))
            continue;
        *(before == ALB_TASK_NONE ? &line->first : &run->next[before]) = run->next[at];
        if (line->last == at)
            line->last = before;
        return at;
    }
    return ALB_TASK_NONE;
}

static void arrive(struct alb_run *run, uint32_t receipt, uint32_t send, alb_sim_time now)
{
    run->times[receipt].arrived = run->times[send].arrived = now;
    if (run->state[receipt] == BEGUN)
        close_task(run, receipt, DONE, now);
}

static void arrive_unheard(struct alb_run *run, uint32_t send, alb_sim_time now)
{
    run->times[send].arrived = now;
    if (run->state[send] != SENT)
        return;
    run->state[send] = DONE;
    run->ended_at = ALB_MAX(run->ended_at, now);
    run->tasks_done++;
    run->bytes_done += task_of(run, send)->bytes;
    alb_run_post_waiting(run, send, now);
}

// A message that no receipt was matched with before the run: the oldest one that waits and fits takes it.
static void claim(struct alb_run *run, uint32_t send, alb_sim_time now)
{
    uint32_t rank = task_of(run, send)->peer;
    run->times[send].arrived = now;
    uint32_t receipt = take_fitting(run, &run->wild[rank], send);
    if (receipt == ALB_TASK_NONE)
        append(run, &run->unclaimed[rank], send);
    else
        arrive(run, receipt, send, now);
}

static void begin_recv(struct alb_run *run, uint32_t receipt, alb_sim_time now)
{
    struct alb_task *task = task_of(run, receipt);
    begin(run, receipt, now);
    if (task->matched != ALB_TASK_NONE) {
        if (run->times[receipt].arrived != ALB_SIM_NEVER)
            close_task(run, receipt, DONE, now);
        else
            announce(run, receipt);
        return;
    }
    uint32_t send = take_fitting(run, &run->unclaimed[task->rank], receipt);
    if (send == ALB_TASK_NONE) {
        append(run, &run->wild[task->rank], receipt);
        return;
    }
    run->times[receipt].arrived = run->times[send].arrived;
    close_task(run, receipt, DONE, now);
}

// ---- calculations ---------------------------------------------------------------------------------------------------

// When a calculation that begins then ends.
static alb_sim_time end_of(const struct alb_task *task, alb_sim_time at)
{
    return alb_sim_until_end((unsigned __int128)at + task->at);
}

static void schedule(struct alb_run *run, struct calculation *calculation, alb_sim_time at)
{
    alb_cluster_schedule(run->cluster, task_of(run, calculation->task)->rank, &calculation->event,
                         alb_sim_before_end(at));
}

static void on_calculated(struct alb_sim_event *event, alb_sim_time now)
{
    struct calculation *calculation = ALB_CONTAINER_OF(event, struct calculation, event);
    struct alb_run *run = calculation->run;
    uint32_t index = calculation->task;
    if (run->state[index] == WAITING) {
        begin(run, index, now);
        schedule(run, calculation, end_of(task_of(run, index), now));
    } else {
        alb_list_remove(&calculation->link);
        free(calculation);
        close_task(run, index, DONE, now);
    }
    alb_run_drain(run, now);
}

static void begin_calc(struct alb_run *run, uint32_t index, alb_sim_time now)
{
    struct alb_task *task = task_of(run, index);
    alb_sim_time *busy = &run->processors[(size_t)task->rank * run->processor_count + task->tag];
    struct calculation *calculation = malloc(sizeof(*calculation));
    alb_assert(calculation);
    *calculation = (struct calculation){.run = run, .task = index};
    alb_sim_event_init(&calculation->event, on_calculated);
    alb_list_push_back(&run->calculations, &calculation->link);
    alb_sim_time at = ALB_MAX(*busy, now);
    *busy = end_of(task, at);
    if (at == now)
        begin(run, index, now);
    schedule(run, calculation, at == now ? *busy : at);
}

// ---- the list of those that can begin -------------------------------------------------------------------------------

void alb_run_drain(struct alb_run *run, alb_sim_time now)
{
    if (run->is_draining)
        return;
    run->is_draining = true;
    while (run->ready_first < run->ready_count) {
        uint32_t task = run->ready[run->ready_first++];
        switch (task_of(run, task)->kind) {
        case ALB_TASK_SEND:
            begin_send(run, task, now);
            break;
        case ALB_TASK_RECV:
            begin_recv(run, task, now);
            break;
        case ALB_TASK_CALC:
            begin_calc(run, task, now);
            break;
        }
    }
    run->is_draining = false;
    if (run->tasks_done == run->schedule.task_count)
        alb_cluster_stop(run->cluster);
}

static void on_received(struct alb_run *run, const struct alb_cluster_completion *completion, alb_sim_time now)
{
    uint32_t send = completion->imm;
    if (completion->status != ALB_WC_SUCCESS)
        return;
    if (send >= run->schedule.task_count) {
        alb_run_violate(run, "a message arrived that nobody sent (immediate %u)", send);
        return;
    }
    const struct alb_task *task = task_of(run, send);
    if (run->times[send].begun == ALB_SIM_NEVER)
        alb_run_violate(run, "message %u arrived before it was sent", send);
    if (run->times[send].arrived != ALB_SIM_NEVER)
        alb_run_violate(run, "message %u arrived twice", send);
    if (run->places)
        alb_run_bytes_check(run, send, completion->offset, "when it has arrived");
    if (task->tag == ALB_TASK_UNHEARD)
        arrive_unheard(run, send, now);
    else if (task->matched != ALB_TASK_NONE)
        arrive(run, task->matched, send, now);
    else
        claim(run, send, now);
}

static void on_posted_done(struct alb_run *run, const struct alb_cluster_completion *completion, alb_sim_time now)
{
    uint32_t task = (uint32_t)completion->user;
    const struct alb_work *work = &run->schedule.works[task_of(run, task)->work];
    bool was_resent = work->partial && (run->state[task] == SENT || run->state[task] == DONE);
    if (run->state[task] != BEGUN && !was_resent)
        alb_run_violate(run, "message %u completed, though it was not under way", task);
    if (was_resent)
        alb_run_partial_left(run, task, now);
    else if (completion->status != ALB_WC_SUCCESS)
        close_task(run, task, FAILED, now);
    else if (work->is_unreliable)
        leave(run, task, now);
    else
        close_task(run, task, DONE, now);
    if (run->places && run->state[task] == DONE && work->op != ALB_WORK_SEND)
        alb_run_bytes_check(run, task, 0, "when it has completed");
    alb_run_post_waiting(run, task, now);
}

void alb_run_on_complete(void *context, const struct alb_cluster_completion *completion, alb_sim_time now)
{
    struct alb_run *run = context;
    if (run->violation[0])
        return;
    if (run->models)
        alb_run_model_complete(run, completion);
    if (completion->is_received)
        on_received(run, completion, now);
    else
        on_posted_done(run, completion, now);
    if (completion->is_received && run->places)
        alb_run_bytes_end_receive(run, completion);
    alb_run_drain(run, now);
}

// ---- the beginning --------------------------------------------------------------------------------------------------

bool alb_run_tasks_init(struct alb_run *run)
{
    uint32_t n = run->schedule.task_count, ranks = run->schedule.rank_count;
    for (uint32_t i = 0; i < n; i++) {
        const struct alb_task *task = task_of(run, i);
        if (task->kind == ALB_TASK_CALC)
            run->processor_count = ALB_MAX(run->processor_count, task->tag + 1);
        if (task->kind == ALB_TASK_SEND)
            run->bytes += task->bytes;
    }
    run->times = malloc((n + 1u) * sizeof(*run->times));
    run->next = malloc((n + 1u) * sizeof(*run->next));
    run->state = calloc(n + 1u, sizeof(*run->state));
    run->processors = calloc((size_t)ranks * run->processor_count + 1, sizeof(*run->processors));
    run->wild = malloc(ranks * sizeof(*run->wild));
    run->unclaimed = malloc(ranks * sizeof(*run->unclaimed));
    if (!run->times || !run->next || !run->state || !run->processors || !run->wild || !run->unclaimed)
        return false;
    memset(run->times, 0xff, (n + 1u) * sizeof(*run->times));
    memset(run->wild, 0xff, ranks * sizeof(*run->wild));
    memset(run->unclaimed, 0xff, ranks * sizeof(*run->unclaimed));
    alb_list_init(&run->calculations);
    return alb_run_partial_init(run) && alb_run_starts_init(run);
}

void alb_run_tasks_fini(struct alb_run *run)
{
    if (run->calculations.next)
        ALB_LIST_FOR_EACH (&run->calculations, node)
            free(ALB_LIST_ENTRY(node, struct calculation, link));
    alb_run_partial_fini(run);
    alb_run_starts_fini(run);
    free(run->times);
    free(run->next);
    free(run->state);
    free(run->processors);
    free(run->wild);
    free(run->unclaimed);
    free(run->ready);
}
