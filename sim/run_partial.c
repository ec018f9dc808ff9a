// SPDX-License-Identifier: BSD-2-Clause
// Messages of partial completion in a run: the program at the sender waits a while after a message has left, looks at
// what the receiver has said to hold, and has the rest sent again, or asks when nothing was said. It gives up after as
// many rounds without progress as its queue pair has retries.
#include "sim/run.h"

#include "engine/partial.h"

#include <stdlib.h>

struct alb_run_partial {
    struct alb_sim_event event; // when it looks
    struct alb_run *run;
    uint32_t task, number;
    uint32_t held;   // when it looked last
    uint32_t rounds; // since then without more
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

static bool resend(const struct alb_run_partial *partial)
{
    struct alb_message message = {.op = ALB_MESSAGE_WRITE_IMM,
                                  .bytes = task_of(partial)->bytes,
                                  .user = partial->task,
                                  .imm = partial->task,
                                  .partial = partial->number,
                                  .is_resend = true};
    return alb_run_post(partial->run, partial->task, &message) == 0;
}

static void on_look(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_run_partial *partial = ALB_CONTAINER_OF(event, struct alb_run_partial, event);
    struct alb_run *run = partial->run;
    const struct alb_run_channel *channel = &run->channels[run->channel_of[partial->task]];
    uint32_t side = task_of(partial)->rank != channel->low;
    struct alb_partial known = {0};
    if (run->times[partial->task].arrived != ALB_SIM_NEVER ||
        alb_qp_partial(alb_channel_qp(channel->channel, side), false, partial->number, &known, NULL, 0) != 0)
        return; // whole, or forgotten: too many newer ones
    partial->rounds = known.held > partial->held ? 0 : partial->rounds + 1;
    partial->held = known.held;
    if (partial->rounds > work_of(partial)->retries)
        return;
    bool is_silent = known.held == 0 && partial->rounds % 2 == 1; // perhaps only the answer was lost
    if (is_silent)
        alb_cluster_partial_ask(run->cluster, channel->channel, side, partial->number);
    if (!is_silent && resend(partial))
        run->resent += known.chunks - known.held; // it looks again once that has left
    else
        look_later(partial, now);
}

void alb_run_partial_describe(struct alb_run *run, uint32_t task, struct alb_message *message)
{
    const struct alb_work *work = &run->schedule.works[run->schedule.tasks[task].work];
    if (work->partial == 0)
        return;
    struct alb_run_partial *partial = run->partials[task];
    if (!partial) {
        struct alb_run_channel *channel = &run->channels[run->channel_of[task]];
        uint32_t side = run->schedule.tasks[task].rank != channel->low;
        partial = run->partials[task] = calloc(1, sizeof(*partial));
        alb_assert(partial);
        *partial = (struct alb_run_partial){.run = run, .task = task, .number = ++channel->partial_newest[side]};
        alb_sim_event_init(&partial->event, on_look);
    }
    message->partial = partial->number;
}

void alb_run_partial_left(struct alb_run *run, uint32_t task, alb_sim_time now)
{
    if (run->partials && run->partials[task] && run->times[task].arrived == ALB_SIM_NEVER)
        look_later(run->partials[task], now);
}

bool alb_run_partial_init(struct alb_run *run)
{
    bool is_wanted = false;
    for (uint32_t i = 0; i < run->schedule.work_count; i++)
        is_wanted |= run->schedule.works[i].partial != 0;
    if (is_wanted)
        run->partials = calloc(run->schedule.task_count + 1u, sizeof(*run->partials));
    return !is_wanted || run->partials;
}

void alb_run_partial_fini(struct alb_run *run)
{
    for (uint32_t i = 0; run->partials && i < run->schedule.task_count; i++)
        free(run->partials[i]);
    free(run->partials);
}
