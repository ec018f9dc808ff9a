// SPDX-License-Identifier: BSD-2-Clause
// What libalbedodv.so.1 calls (plugins/verbs/dv.h): the calls that ask the engine one thing, and the table of them all.
#include "plugins/verbs/dv.h"

#include "plugins/verbs/door.h"

static const char *txn_state_str(enum albdv_txn_state state)
{
    return (unsigned)state < ALB_TXN_STATES ? alb_txn_state_name((enum alb_txn_state)state) : "unknown";
}

static const char *reason_str(enum albdv_reason reason)
{
    return (unsigned)reason < ALB_TXN_REASONS ? alb_txn_reason_text((enum alb_txn_reason)reason) : "unknown";
}

static int expect(struct ibv_qp *qp, const struct albdv_expectation *expectation)
{
    const struct alb_expectation announced = {
        .bytes = expectation->bytes,
        .messages = expectation->messages,
        .group = expectation->group,
        .step = expectation->step,
        .steps = expectation->steps,
    };
    struct alb_door_context *context = alb_door_context(qp->context);
    int error = alb_door_lock(context);
    if (error)
        return error;
    error = alb_qp_expect(alb_door_qp(qp)->engine_qp, &announced, alb_device_now());
    alb_door_unlock(context);
    return error;
}

// ---- transactions ---------------------------------------------------------------------------------------------------

static struct alb_door_context *context_of(struct alb_door_qp *qp)
{
    return alb_door_context(qp->ex.qp_base.context);
}

static int decide_txn(struct albdv_qp_ex *dv, uint64_t number, enum albdv_decision decision)
{
    struct alb_door_qp *qp = alb_door_qp_of_dv(dv);
    if (decision != ALBDV_COMMIT && decision != ALBDV_ABORT)
        return EINVAL;
    if (dv->qp->qp_base.qp_type == IBV_QPT_UC)
        return EOPNOTSUPP;
    int error = alb_door_lock(context_of(qp));
    if (error)
        return error;
    error = alb_qp_txn_decide(qp->engine_qp, number, decision == ALBDV_COMMIT, alb_device_now());
    alb_door_unlock(context_of(qp));
    return error;
}

static struct albdv_stages stages_from(const struct alb_stages *stages)
{
    return (struct albdv_stages){
        .submitted = stages->submitted,
        .placed = stages->placed,
        .transmitted = stages->transmitted,
        .remote_placed = stages->remote_placed,
        .delivered = stages->delivered,
        .visible = stages->visible,
        .agreed = stages->agreed,
        .clock_error_ns = stages->clock_error_ns,
    };
}

static int query(struct albdv_qp_ex *dv, uint64_t number, struct albdv_txn_status *status)
{
    struct alb_door_qp *qp = alb_door_qp_of_dv(dv);
    struct alb_txn_status engine = {0};
    if (dv->qp->qp_base.qp_type == IBV_QPT_UC)
        return EOPNOTSUPP;
    int error = alb_door_lock(context_of(qp));
    if (error)
        return error;
    error = alb_qp_txn_query(qp->engine_qp, number, &engine);
    alb_door_unlock(context_of(qp));
    *status = (struct albdv_txn_status){
        .state = (enum albdv_txn_state)engine.state,
        .reason = (enum albdv_reason)engine.reason,
        .token = {.initiator = engine.token.id.initiator,
                  .number = engine.token.id.number,
                  .keeper = engine.token.keeper},
        .stages = stages_from(&engine.stages),
    };
    return error;
}

// A program that is older than this library gets what it knows of; of what a newer one knows, the rest is zero.
static int give(void *to, size_t size, const void *from, size_t from_size)
{
    memset(to, 0, size);
    memcpy(to, from, ALB_MIN(size, from_size));
    return 0;
}

static int query_txn(struct albdv_qp_ex *dv, uint64_t number, struct albdv_txn_status *status, size_t size)
{
    struct albdv_txn_status known;
    int error = query(dv, number, &known);
    return error ? error : give(status, size, &known, sizeof(known));
}

static int wc_stages(struct albdv_qp_ex *dv, const struct ibv_wc *wc, struct albdv_stages *stages, size_t size)
{
    struct albdv_txn_status known;
    uint64_t number = albdv_wc_number(wc);
    if (number == 0 || wc->qp_num != dv->qp->qp_base.qp_num)
        return EINVAL;
    int error = query(dv, number, &known);
    return error ? error : give(stages, size, &known.stages, sizeof(known.stages));
}

static uint64_t wc_read_number(struct ibv_cq_ex *cq)
{
    const struct alb_wc *wc = &ALB_CONTAINER_OF(cq, struct alb_door_cq, ex)->shown;
    return wc->opcode & ALB_WC_RECV ? 0 : (uint64_t)wc->src_qpn << 32 | wc->imm_data;
}

// ---- partial completion ---------------------------------------------------------------------------------------------

static int query_partial(struct ibv_qp *qp, enum albdv_side side, uint32_t number, struct albdv_partial *partial,
                         size_t size, uint64_t *bitmap, uint32_t words)
{
    struct alb_door_context *context = alb_door_context(qp->context);
    struct alb_partial known = {.chunk_bytes = partial->chunk_bytes};
    if (side != ALBDV_SENDING && side != ALBDV_RECEIVING)
        return EINVAL;
    int error = alb_door_lock(context);
    if (error)
        return error;
    error = alb_qp_partial(alb_door_qp(qp)->engine_qp, side == ALBDV_RECEIVING, number, &known, bitmap, words);
    alb_door_unlock(context);
    if (error && error != ENOSPC)
        return error;
    const struct albdv_partial found = {
        .remote_addr = known.remote_addr,
        .number = known.number,
        .total_bytes = known.total_bytes,
        .chunk_bytes = known.chunk_bytes,
        .chunks = known.chunks,
        .held = known.held,
        .is_complete = known.is_complete,
    };
    give(partial, size, &found, sizeof(found));
    return error;
}

static int ask_partial(struct albdv_qp_ex *dv, uint32_t number)
{
    struct alb_door_qp *qp = alb_door_qp_of_dv(dv);
    int error = alb_door_lock(context_of(qp));
    if (error)
        return error;
    error = alb_qp_partial_ask(qp->engine_qp, number, alb_device_now());
    alb_door_unlock(context_of(qp));
    return error;
}

// ---------------------------------------------------------------------------------------------------------------------

const struct alb_dv_table *albedo_bridge_dv(void)
{
    static const struct alb_dv_table table = {
        .txn_state_str = txn_state_str,
        .reason_str = reason_str,
        .expect = expect,
        .extend_qp = alb_door_extend_qp,
        .qp_ex_from = alb_door_qp_ex_from,
        .decide_txn = decide_txn,
        .query_txn = query_txn,
        .wc_stages = wc_stages,
        .wc_read_number = wc_read_number,
        .create_region = alb_door_create_region,
        .destroy_region = alb_door_destroy_region,
        .region_is_poisoned = alb_door_region_is_poisoned,
        .reg_durable = alb_door_reg_durable,
        .set_validator = alb_door_set_validator,
        .create_proposal_channel = alb_door_create_proposal_channel,
        .destroy_proposal_channel = alb_door_destroy_proposal_channel,
        .set_proposal_channel = alb_door_set_proposal_channel,
        .get_proposal = alb_door_get_proposal,
        .answer_proposal = alb_door_answer_proposal,
        .query_partial = query_partial,
        .ask_partial = ask_partial,
    };
    return &table;
}
