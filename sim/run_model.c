// SPDX-License-Identifier: BSD-2-Clause
// The independent model (sim/model.h) as the judge of a run with real bytes: each channel is a world of two sides to
// it, with a stretch of each host's memory that only this channel's messages may touch. It hears what is posted and is
// shown each completion as the engine gave it; in the end, when nothing is under way, it looks at memory.
#include "sim/run.h"

#include "sim/model.h"

#include <stdlib.h>
#include <string.h>

struct alb_run_model {
    struct alb_model model;
    struct alb_model_span landing[2]; // by side: where a SEND is shown to the model, having come to a shared receive
};

static struct alb_model_span span(const struct alb_run_stretch *stretch)
{
    return (struct alb_model_span){(uint32_t)stretch->at, (uint32_t)stretch->bytes};
}

// A sentence of the model is one of the run, with the hosts that it is about.
static void tell(struct alb_run *run, uint32_t index)
{
    const struct alb_model *model = &run->models[index].model;
    if (!model->failure[0] || run->violation[0])
        return;
    alb_run_violate(run, "hosts %u and %u: %s", run->channels[index].low, run->channels[index].high, model->failure);
    run->promise = model->promise;
}

// ---- life -----------------------------------------------------------------------------------------------------------

// UC of RoCEv2 takes what has been overtaken for new: a message may come late, but whole. A message of partial
// completion that is sent again is whole when it is. Neither keeps an order; that each comes once, the run sees.
static bool keeps_no_order(const struct alb_run *run, const struct alb_work *work)
{
    const struct alb_scenario *scenario = run->scenario;
    bool may_overtake = scenario->switches.spread == ALB_SPREAD_SPRAY || scenario->fault_count > 0;
    return work->partial > 0 || (work->is_unreliable && scenario->host.transport == 0 && may_overtake);
}

static void begin(struct alb_run *run, uint32_t index)
{
    const struct alb_run_channel *channel = &run->channels[index];
    const struct alb_run_arena *arena = &run->arenas[index];
    const struct alb_work *work = &run->schedule.works[channel->work];
    struct alb_run_model *own = &run->models[index];
    uint8_t *const arenas[2] = {alb_cluster_memory(run->cluster, channel->low) + arena->at[0],
                                alb_cluster_memory(run->cluster, channel->high) + arena->at[1]};
    alb_model_init(&own->model, arenas, (uint32_t)arena->bytes);
    own->model.may_lose_much = true; // whether messages may fail at all, the caller judges
    own->model.may_duplicate = keeps_no_order(run, work);
    for (uint32_t side = 0; side < 2; side++) {
        alb_model_add_qp(&own->model, side, 0, work->is_unreliable ? ALB_QPT_UC : ALB_QPT_RC, true,
                         span(&arena->targets[1 - side]));
        own->model.qps[side][0].rnr_retry = 7;
        own->landing[side] = span(&arena->landing[side]);
    }
}

void alb_run_model_begin(struct alb_run *run)
{
    run->models = calloc(run->channel_count + 1u, sizeof(*run->models));
    alb_assert(run->models);
    for (uint32_t i = 0; i < run->channel_count; i++)
        begin(run, i);
}

void alb_run_model_fini(struct alb_run *run)
{
    for (uint32_t i = 0; run->models && i < run->channel_count; i++)
        alb_model_fini(&run->models[i].model);
    free(run->models);
}

// ---- what happens ---------------------------------------------------------------------------------------------------

void alb_run_model_post(struct alb_run *run, uint32_t index, uint32_t side, const struct alb_message *message)
{
    const struct alb_run_arena *arena = &run->arenas[index];
    struct alb_model *model = &run->models[index].model;
    struct alb_model_op op = {
        .opcode = alb_message_opcode(message->op),
        .is_signaled = true,
        .length = (uint32_t)message->bytes,
        .imm = message->imm,
        .local = {{(uint32_t)(message->local_offset - arena->at[side]), (uint32_t)message->bytes}},
        .local_count = message->bytes > 0,
        .remote_at = message->op == ALB_MESSAGE_SEND ? 0 : (uint32_t)(message->remote_offset - arena->at[1 - side]),
    };
    alb_model_post(model, &model->qps[side][0], &op);
}

void alb_run_model_posted(struct alb_run *run, uint32_t index, uint32_t side, bool is_posted)
{
    struct alb_model *model = &run->models[index].model;
    if (is_posted)
        alb_model_posted(&model->qps[side][0]);
    else
        alb_model_unpost(model, &model->qps[side][0]);
}

static bool is_in_error(const struct alb_channel *channel, uint32_t side)
{
    return alb_qp_current_state(alb_channel_qp(channel, side)) == ALB_QPS_ERR;
}

// A host's receives are for all of its channels, so the model is given one at the moment in which it is taken.
static void on_received(struct alb_run *run, uint32_t index, const struct alb_cluster_completion *completion)
{
    const struct alb_run_channel *channel = &run->channels[index];
    struct alb_model *model = &run->models[index].model;
    struct alb_model_qp *qp = &model->qps[completion->side][0];
    const struct alb_model_span *landing = &run->models[index].landing[completion->side];
    const struct alb_model_recv recv = {.local = {*landing}, .local_count = 1, .length = landing->length};
    uint32_t number = alb_model_post_recv(model, qp->used, qp->side, &recv);
    if (completion->wc->opcode == ALB_WC_RECV && completion->wc->byte_len <= landing->length) {
        uint32_t host = completion->side ? channel->high : channel->low;
        memcpy(model->memory[qp->side].actual + landing->at,
               alb_cluster_memory(run->cluster, host) + completion->offset, completion->wc->byte_len);
    }
    alb_model_on_recv(model, qp, number, completion->wc, is_in_error(completion->channel, completion->side));
}

void alb_run_model_complete(struct alb_run *run, const struct alb_cluster_completion *completion)
{
    uint32_t index = (uint32_t)alb_channel_connection(completion->channel)->user[completion->side];
    struct alb_model *model = &run->models[index].model;
    struct alb_model_qp *qp = &model->qps[completion->side][0];
    qp->may_fail |= is_in_error(completion->channel, 1 - completion->side);
    if (completion->is_received)
        on_received(run, index, completion);
    else
        alb_model_on_send(model, qp, (uint32_t)completion->wc->wr_id, completion->wc,
                          is_in_error(completion->channel, completion->side));
    tell(run, index);
}

// ---- the end --------------------------------------------------------------------------------------------------------

// What is under way may have changed what it is meant to change, and nothing else.
static void look_at(struct alb_model *model)
{
    for (uint32_t side = 0; side < 2; side++)
        alb_model_check_slice(model, &model->qps[side][0]);
    for (uint32_t side = 0; side < 2; side++)
        alb_model_check_arena(model, side);
}

void alb_run_model_end(struct alb_run *run, bool is_at_rest)
{
    for (uint32_t i = 0; i < run->channel_count; i++) {
        struct alb_model *model = &run->models[i].model;
        if (is_at_rest)
            alb_model_end_phase(model);
        else
            look_at(model);
        tell(run, i);
    }
}
