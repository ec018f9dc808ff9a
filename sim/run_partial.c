// SPDX-License-Identifier: BSD-2-Clause
// Messages of partial completion in a run: the program at the sender waits a while after a message has left, looks at
// what the receiver has said to hold, and has the rest sent again, or asks once when nothing was said. It gives up
// after it has sent in vain as often as its queue pair has retries. What is sent again goes before new messages, and no
// message is begun while the oldest that is not whole would be forgotten for it.
#include "sim/run.h"

#include "engine/partial.h"

#include <errno.h>
#include <stdlib.h>

struct alb_run_partial {
    struct alb_sim_event event; // when it looks
    struct alb_run *run;
    uint32_t task, number;
    uint32_t held;                   // when it looked last
    uint32_t rounds;                 // times that it was sent again since there was more
    bool has_asked;                  // since then, or since it was sent again
    bool is_over;                    // given up
    struct alb_run_partial *newer;   // of its side of the channel
    struct alb_run_partial *waiting; // the next to be sent again when the send queue has room
};

static const struct alb_task *task_of(const struct alb_run_partial *partial)
{
    return &partial->run->schedule.tasks[partial->task];
}

static const struct alb_work *work_of(const struct alb_run_partial *partial)
{
    return &partial->run->schedule.works[task_of(partial)->work];
}

static void look_later(struct alb_run_partial *partial, alb_sim_time now)
{
    alb_sim_queue_schedule(alb_cluster_queue(partial->run->cluster), &partial->event, now + work_of(partial)->partial);
}

static struct alb_run_partial_side *side_of(const struct alb_run_partial *partial)
{
    uint32_t channel = partial->run->channel_of[partial->task];
    return &partial->run->partial_sides[2 * channel + (task_of(partial)->rank != partial->run->channels[channel].low)];
}

static bool has_arrived(const struct alb_run_partial *partial)
{
    return partial->run->times[partial->task].arrived != ALB_SIM_NEVER;
}

// What the sender knows. False: the queue pair has failed.
static bool ask_engine(const struct alb_run_partial *partial, struct alb_partial *known)
{
    const struct alb_run_channel *channel = &partial->run->channels[partial->run->channel_of[partial->task]];
    uint32_t side = task_of(partial)->rank != channel->low;
    *known = (struct alb_partial){0};
    return alb_qp_partial(alb_channel_qp(channel->channel, side), false, partial->number, known, NULL, 0) == 0;
}

// The errno of alb_run_post. It looks again once that has left.
static int resend(struct alb_run_partial *partial)
{
    struct alb_partial known;
    struct alb_message message = {.op = ALB_MESSAGE_WRITE_IMM,
                                  .bytes = task_of(partial)->bytes,
                                  .user = partial->task,
                                  .imm = partial->task,
                                  .partial = partial->number,
                                  .is_resend = true};
    if (has_arrived(partial))
        return 0;
    int error = ask_engine(partial, &known) ? alb_run_post(partial->run, partial->task, &message) : EINVAL;
    partial->is_over = error && error != ENOMEM; // with its queue pair
    if (error)
        return error;
    partial->rounds++;
    partial->has_asked = false;
    partial->run->resent += known.chunks - known.held;
    return 0;
}

bool alb_run_partial_post_waiting(struct alb_run *run, uint32_t channel, uint32_t side)
{
    if (!run->partial_sides)
        return true;
    struct alb_run_partial_side *of = &run->partial_sides[2 * channel + side];
    for (; of->waiting; of->waiting = of->waiting->waiting)
        if (resend(of->waiting) == ENOMEM)
            return false;
    return true;
}

static void wait_for_room(struct alb_run_partial *partial)
{
    struct alb_run_partial **end = &side_of(partial)->waiting;
    while (*end)
        end = &(*end)->waiting;
    partial->waiting = NULL;
    *end = partial;
}

static void give_up(struct alb_run_partial *partial, alb_sim_time now)
{
    partial->is_over = true;
    alb_run_post_waiting(partial->run, partial->task, now);
}

static void on_look(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_run_partial *partial = ALB_CONTAINER_OF(event, struct alb_run_partial, event);
    struct alb_run *run = partial->run;
    const struct alb_run_channel *channel = &run->channels[run->channel_of[partial->task]];
    struct alb_partial known;
    if (has_arrived(partial))
        return;
    if (!ask_engine(partial, &known)) {
        give_up(partial, now);
        return;
    }
    if (known.held > partial->held)
        partial->rounds = 0;
    partial->held = known.held;
    if (known.held == 0 && !partial->has_asked) { // perhaps only the answer was lost
        partial->has_asked = true;
        alb_cluster_partial_ask(run->cluster, channel->channel, task_of(partial)->rank != channel->low,
                                partial->number);
        look_later(partial, now);
    } else if (partial->rounds == work_of(partial)->retries) {
        give_up(partial, now);
    } else if (side_of(partial)->waiting || resend(partial) == ENOMEM) {
        wait_for_room(partial);
    }
}

bool alb_run_partial_has_turn(struct alb_run *run, uint32_t task)
{
    if (!run->partials || !run->partials[task])
        return true;
    struct alb_run_partial_side *side = side_of(run->partials[task]);
    while (side->oldest &&
           (side->oldest->is_over || has_arrived(side->oldest) || alb_run_task_failed(run, side->oldest->task)))
        side->oldest = side->oldest->newer;
    return !side->oldest || run->partials[task]->number - side->oldest->number < ALB_RUN_PARTIAL_MESSAGES;
}

void alb_run_partial_describe(struct alb_run *run, uint32_t task, struct alb_message *message)
{
    const struct alb_work *work = &run->schedule.works[run->schedule.tasks[task].work];
    if (work->partial == 0)
        return;
    struct alb_run_partial *partial = run->partials[task];
    if (!partial) {
        partial = run->partials[task] = calloc(1, sizeof(*partial));
        alb_assert(partial);
        *partial = (struct alb_run_partial){.run = run, .task = task};
        alb_sim_event_init(&partial->event, on_look);
        struct alb_run_partial_side *side = side_of(partial);
        partial->number = side->newest ? side->newest->number + 1 : 1;
        if (side->newest)
            side->newest->newer = partial;
        side->newest = partial;
        if (!side->oldest)
            side->oldest = partial;
    }
    message->partial = partial->number;
}

void alb_run_partial_left(struct alb_run *run, uint32_t task, alb_sim_time now)
{
    if (run->partials && run->partials[task] && !has_arrived(run->partials[task]))
        look_later(run->partials[task], now);
}

bool alb_run_partial_init(struct alb_run *run)
{
    bool is_wanted = false;
    for (uint32_t i = 0; i < run->schedule.work_count; i++)
        is_wanted |= run->schedule.works[i].partial != 0;
    if (!is_wanted)
        return true;
    run->partials = calloc(run->schedule.task_count + 1u, sizeof(*run->partials));
    run->partial_sides = calloc(2 * ((size_t)run->channel_count + 1), sizeof(*run->partial_sides));
    return run->partials && run->partial_sides;
}

void alb_run_partial_fini(struct alb_run *run)
{
    for (uint32_t i = 0; run->partials && i < run->schedule.task_count; i++)
        free(run->partials[i]);
    free(run->partials);
    free(run->partial_sides);
}
