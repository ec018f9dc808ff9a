// SPDX-License-Identifier: BSD-2-Clause
// The model's order of events: what is posted, which requests may complete when and with what, and what begins anew.
#include "sim/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void alb_model_fail(struct alb_model *model, const char *format, ...)
{
    va_list args;
    if (model->failure[0])
        return;
    model->promise = format;
    va_start(args, format);
    vsnprintf(model->failure, sizeof(model->failure), format, args);
    va_end(args);
}

// ---- life -----------------------------------------------------------------------------------------------------------

void alb_model_init(struct alb_model *model, uint8_t *const arena[ALB_MODEL_SIDES], uint32_t arena_bytes)
{
    *model = (struct alb_model){0};
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        struct alb_model_memory *memory = &model->memory[side];
        *memory = (struct alb_model_memory){arena[side], alb_model_get(arena_bytes), alb_model_get(arena_bytes),
                                            arena_bytes, 0};
        memcpy(memory->expected, memory->actual, arena_bytes);
        model->shared[side].length_min = UINT32_MAX;
        for (uint32_t i = 0; i < ALB_MODEL_NAMED; i++)
            model->named[side][i].length_min = UINT32_MAX;
    }
}

static void forget_ops(struct alb_model_qp *qp)
{
    for (uint32_t i = 0; i < qp->count; i++)
        free(qp->ops[i].content);
    qp->count = qp->first_open = qp->next_delivery = 0;
}

void alb_model_fini(struct alb_model *model)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        for (uint32_t i = 0; i < model->qp_count; i++) {
            struct alb_model_qp *qp = &model->qps[side][i];
            forget_ops(qp);
            free(qp->ops);
            free(qp->recvs.all);
            free(qp->base);
            free(qp->view);
        }
        free(model->shared[side].all);
        for (uint32_t i = 0; i < ALB_MODEL_NAMED; i++)
            free(model->named[side][i].all);
        free(model->memory[side].expected);
        free(model->memory[side].loose);
    }
}

void alb_model_set_words(struct alb_model *model, uint32_t side, uint32_t at)
{
    model->memory[side].words_at = at;
}

void alb_model_add_qp(struct alb_model *model, uint32_t side, uint32_t index, enum alb_qp_type type, bool is_shared,
                      struct alb_model_span slice)
{
    struct alb_model_qp *qp = &model->qps[side][index];
    *qp = (struct alb_model_qp){.side = side, .index = index, .type = type, .slice = slice, .held_from = UINT32_MAX};
    qp->recvs.length_min = UINT32_MAX;
    qp->used = is_shared ? &model->shared[side] : &qp->recvs;
    if (alb_model_is_xrc(type))
        qp->used = &model->named[side][index % ALB_MODEL_NAMED];
    qp->base = alb_model_get(slice.length);
    qp->view = alb_model_get(slice.length);
    memcpy(qp->base, model->memory[1 - side].expected + slice.at, slice.length);
    memcpy(qp->view, qp->base, slice.length);
    if (index >= model->qp_count)
        model->qp_count = index + 1;
}

// ---- posting --------------------------------------------------------------------------------------------------------

// What the request carries, or must bring: taken now, since the program may not change it before it completes.
static uint8_t *content_of(struct alb_model *model, const struct alb_model_qp *qp, const struct alb_model_op *op)
{
    uint8_t *content = alb_model_get(op->length);
    if (alb_model_is_atomic(op->opcode))
        return content;
    if (op->opcode != ALB_WR_RDMA_READ) {
        alb_model_gather(model->memory[qp->side].actual, op->local, op->local_count, content, op->length);
        return content;
    }
    uint32_t at = op->remote_at - qp->slice.at; // in the slice, or elsewhere in memory that never changes
    if (op->fate == ALB_WC_SUCCESS && at < qp->slice.length)
        memcpy(content, qp->view + at, op->length);
    else if (op->fate == ALB_WC_SUCCESS)
        memcpy(content, model->memory[1 - qp->side].expected + op->remote_at, op->length);
    return content;
}

static bool changes_own_memory(enum alb_wr_opcode opcode)
{
    return opcode == ALB_WR_RDMA_READ || alb_model_is_atomic(opcode);
}

uint32_t alb_model_post(struct alb_model *model, struct alb_model_qp *qp, const struct alb_model_op *given)
{
    if (qp->count == qp->capacity) {
        qp->capacity = qp->capacity ? qp->capacity * 2 : 64;
        qp->ops = realloc(qp->ops, qp->capacity * sizeof(*qp->ops));
        alb_assert(qp->ops);
    }
    struct alb_model_op *op = &qp->ops[qp->count];
    *op = *given;
    op->life = qp->life;
    op->content = content_of(model, qp, op);
    if (changes_own_memory(op->opcode))
        alb_model_loosen(&model->memory[qp->side], op->local, op->local_count, 1);
    return qp->count++;
}

void alb_model_unpost(struct alb_model *model, struct alb_model_qp *qp)
{
    struct alb_model_op *op = &qp->ops[--qp->count];
    if (changes_own_memory(op->opcode))
        alb_model_loosen(&model->memory[qp->side], op->local, op->local_count, -1);
    free(op->content);
}

// The slice as it is once all that was posted so far has executed. Kept up behind the posts, which can be taken back.
static void bring_view_up_to(struct alb_model_qp *qp, uint32_t number)
{
    const struct alb_model_op *op = &qp->ops[number];
    if (alb_model_is_write(op->opcode) && op->fate == ALB_WC_SUCCESS && !op->is_undeliverable && op->length)
        memcpy(qp->view + (op->remote_at - qp->slice.at), op->content, op->length);
}

void alb_model_posted(struct alb_model_qp *qp)
{
    bring_view_up_to(qp, qp->count - 1);
}

uint32_t alb_model_post_recv(struct alb_model *model, struct alb_model_recvs *recvs, uint32_t side,
                             const struct alb_model_recv *recv)
{
    if (recvs->count == recvs->capacity) {
        recvs->capacity = recvs->capacity ? recvs->capacity * 2 : 64;
        recvs->all = realloc(recvs->all, recvs->capacity * sizeof(*recvs->all));
        alb_assert(recvs->all);
    }
    recvs->all[recvs->count] = *recv;
    recvs->open++;
    recvs->length_min = ALB_MIN(recvs->length_min, recv->length);
    alb_model_loosen(&model->memory[side], recv->local, recv->local_count, 1);
    return recvs->count++;
}

void alb_model_unpost_recv(struct alb_model *model, struct alb_model_recvs *recvs, uint32_t side)
{
    const struct alb_model_recv *recv = &recvs->all[--recvs->count];
    recvs->open--;
    alb_model_loosen(&model->memory[side], recv->local, recv->local_count, -1);
}

uint32_t alb_model_open(const struct alb_model_qp *qp)
{
    return qp->count - qp->first_open;
}

bool alb_model_wants_receive(const struct alb_model_qp *qp)
{
    for (uint32_t i = qp->first_open; i < qp->count; i++)
        if (alb_model_takes_receive(qp->ops[i].opcode) && qp->ops[i].deliveries == 0)
            return true;
    return false;
}

// ---- requests complete ----------------------------------------------------------------------------------------------

// A byte that a READ brought may also be younger: what a later WRITE of the same queue pair put there, since a READ
// that is asked for again is executed again; unless a fence held that WRITE back.
static bool may_be_younger(const struct alb_model_qp *qp, uint32_t number, uint32_t remote_at, uint8_t byte)
{
    for (uint32_t i = number + 1; i < qp->count; i++) {
        const struct alb_model_op *op = &qp->ops[i];
        if (op->is_fenced)
            return false;
        if (alb_model_is_write(op->opcode) && remote_at - op->remote_at < op->length &&
            op->content[remote_at - op->remote_at] == byte)
            return true;
    }
    return false;
}

// Or older, where WRITEs before it keep no order.
static bool may_be_older(const struct alb_model *model, const struct alb_model_qp *qp, uint32_t number,
                         uint32_t remote_at, uint8_t byte)
{
    for (uint32_t i = 0; model->is_relaxed && i < number; i++) {
        const struct alb_model_op *op = &qp->ops[i];
        if (alb_model_is_write(op->opcode) && remote_at - op->remote_at < op->length &&
            op->content[remote_at - op->remote_at] == byte)
            return true;
    }
    return false;
}

static void check_read(struct alb_model *model, struct alb_model_qp *qp, uint32_t number)
{
    const struct alb_model_op *op = &qp->ops[number];
    uint8_t *got = alb_model_get(op->length);
    alb_model_gather(model->memory[qp->side].actual, op->local, op->local_count, got, op->length);
    for (uint32_t i = 0; i < op->length; i++)
        if (got[i] != op->content[i] && !may_be_younger(qp, number, op->remote_at + i, got[i]) &&
            !may_be_older(model, qp, number, op->remote_at + i, got[i])) {
            alb_model_fail(model, "READ %u of queue pair %u/%u: byte %u is %02x, must be %02x", number, qp->side,
                           qp->index, i, got[i], op->content[i]);
            break;
        }
    free(got);
}

static void finish(struct alb_model *model, struct alb_model_qp *qp, uint32_t number, enum alb_model_state state)
{
    struct alb_model_op *op = &qp->ops[number];
    struct alb_model_memory *memory = &model->memory[qp->side];
    op->state = state;
    if (!changes_own_memory(op->opcode))
        return;
    alb_model_loosen(memory, op->local, op->local_count, -1);
    alb_model_adopt(memory, op->local, op->local_count);
}

static void succeed(struct alb_model *model, struct alb_model_qp *qp, uint32_t number)
{
    struct alb_model_op *op = &qp->ops[number];
    if (alb_model_is_reliable(qp->type) && op->fate != ALB_WC_SUCCESS)
        alb_model_fail(model, "request %u of queue pair %u/%u succeeded, must fail with %u", number, qp->side,
                       qp->index, op->fate);
    if (op->fate == ALB_WC_LOC_PROT_ERR)
        alb_model_fail(model, "request %u of queue pair %u/%u succeeded with a bad local key", number, qp->side,
                       qp->index);
    if (number >= qp->held_from)
        alb_model_fail(model, "request %u of queue pair %u/%u was done while the send queue was drained", number,
                       qp->side, qp->index);
    if (op->opcode == ALB_WR_RDMA_READ)
        check_read(model, qp, number);
    if (alb_model_is_atomic(op->opcode))
        alb_model_gather(model->memory[qp->side].actual, op->local, op->local_count, (uint8_t *)&op->original, 8);
    op->is_executed = alb_model_is_reliable(qp->type);
    if (op->is_executed)
        alb_model_check_stored(model, qp, number);
    finish(model, qp, number, ALB_MODEL_DONE);
}

static uint32_t wc_opcode(enum alb_wr_opcode opcode)
{
    switch (opcode) {
    case ALB_WR_RDMA_WRITE:
    case ALB_WR_RDMA_WRITE_WITH_IMM:
        return ALB_WC_RDMA_WRITE;
    case ALB_WR_RDMA_READ:
        return ALB_WC_RDMA_READ;
    case ALB_WR_ATOMIC_CMP_AND_SWP:
        return ALB_WC_COMP_SWAP;
    case ALB_WR_ATOMIC_FETCH_AND_ADD:
        return ALB_WC_FETCH_ADD;
    case ALB_WR_ATOMIC_WRITE:
        return ALB_WC_ATOMIC_WRITE;
    case ALB_WR_BIND_MW:
        return ALB_WC_BIND_MW;
    case ALB_WR_LOCAL_INV:
        return ALB_WC_LOCAL_INV;
    default:
        return ALB_WC_SEND;
    }
}

static bool may_fail_with(const struct alb_model *model, const struct alb_model_qp *qp, const struct alb_model_op *op,
                          enum alb_wc_status status)
{
    const struct alb_model_qp *peer = &model->qps[1 - qp->side][qp->index];
    bool takes_receive = alb_model_takes_receive(op->opcode);
    if (status == op->fate || status == op->may_end)
        return true;
    if (!alb_model_is_reliable(qp->type))
        return false;
    switch (status) {
    case ALB_WC_RETRY_EXC_ERR:
        return model->may_lose_much || qp->may_fail || op->fate != ALB_WC_SUCCESS || op->may_end != ALB_WC_SUCCESS;
    case ALB_WC_RNR_RETRY_EXC_ERR:
        return takes_receive && qp->rnr_retry != 7;
    case ALB_WC_REM_INV_REQ_ERR: // longer than a receive; the receive's own completion says which one
        return takes_receive && op->opcode != ALB_WR_RDMA_WRITE_WITH_IMM && op->length > peer->used->length_min;
    default:
        return false;
    }
}

static bool may_be_refused(const struct alb_model_qp *qp, const struct alb_model_op *op)
{
    bool is_long = alb_model_takes_receive(op->opcode) && op->length > qp->used->length_min;
    bool is_wrong = op->fate != ALB_WC_SUCCESS && op->fate != ALB_WC_LOC_PROT_ERR;
    return is_wrong || is_long || (op->may_end != ALB_WC_SUCCESS && op->may_end != ALB_WC_LOC_PROT_ERR);
}

// A request that is refused puts the queue pair that refuses it into error, too, and it need have nothing to show for
// it.
bool alb_model_has_cause(const struct alb_model *model, const struct alb_model_qp *qp)
{
    const struct alb_model_qp *peer = &model->qps[1 - qp->side][qp->index];
    if (qp->has_failed || qp->may_break || qp->may_fail || model->may_lose_much)
        return true;
    for (uint32_t i = 0; i < peer->count; i++)
        if (peer->ops[i].life == peer->life && may_be_refused(qp, &peer->ops[i]))
            return true;
    return false;
}

void alb_model_check_broken(struct alb_model *model, const struct alb_model_qp *qp)
{
    if (!alb_model_has_cause(model, qp))
        alb_model_fail(model, "queue pair %u/%u is in error for nothing", qp->side, qp->index);
}

void alb_model_on_drain(struct alb_model_qp *qp, bool is_drained)
{
    qp->held_from = is_drained ? qp->count : UINT32_MAX;
}

void alb_model_on_break(struct alb_model_qp *qp)
{
    qp->may_break = true;
}

void alb_model_on_send(struct alb_model *model, struct alb_model_qp *qp, uint32_t number, const struct alb_wc *wc,
                       bool is_error)
{
    if (number < qp->first_open || number >= qp->count) {
        alb_model_fail(model, "request %u of queue pair %u/%u completed twice, or was never posted", number, qp->side,
                       qp->index);
        return;
    }
    struct alb_model_op *op = &qp->ops[number];
    bool is_flush = wc->status == ALB_WC_WR_FLUSH_ERR;
    for (uint32_t i = qp->first_open; i < number; i++) { // those skipped were unsignalled and succeeded
        if (qp->ops[i].is_signaled || qp->has_failed)
            alb_model_fail(model, "request %u of queue pair %u/%u completed before request %u", number, qp->side,
                           qp->index, i);
        succeed(model, qp, i);
    }
    qp->first_open = number + 1;
    if (wc->status == ALB_WC_SUCCESS) {
        if (!op->is_signaled || qp->has_failed || wc->opcode != wc_opcode(op->opcode))
            alb_model_fail(model, "request %u of queue pair %u/%u: success out of place (opcode %u)", number, qp->side,
                           qp->index, wc->opcode);
        if (changes_own_memory(op->opcode) && wc->byte_len != op->length)
            alb_model_fail(model, "request %u of queue pair %u/%u: byte_len %u, must be %u", number, qp->side,
                           qp->index, wc->byte_len, op->length);
        succeed(model, qp, number);
        return;
    }
    if (is_flush ? !is_error || !alb_model_has_cause(model, qp)
                 : qp->has_failed || !may_fail_with(model, qp, op, wc->status))
        alb_model_fail(model, "request %u of queue pair %u/%u (opcode %u) ended with %u, fate %u", number, qp->side,
                       qp->index, op->opcode, wc->status, op->fate);
    qp->has_failed = true;
    alb_model_peer(model, qp)->may_fail = true;
    finish(model, qp, number, ALB_MODEL_FAILED);
}

// ---- reset, and the end of a phase ----------------------------------------------------------------------------------

static void abandon_recvs(struct alb_model *model, struct alb_model_recvs *recvs, uint32_t side)
{
    for (uint32_t i = 0; i < recvs->count; i++) {
        struct alb_model_recv *recv = &recvs->all[i];
        if (recv->state != ALB_MODEL_OPEN)
            continue;
        recv->state = ALB_MODEL_ABANDONED;
        alb_model_loosen(&model->memory[side], recv->local, recv->local_count, -1);
        alb_model_adopt(&model->memory[side], recv->local, recv->local_count);
    }
    recvs->open = 0;
}

void alb_model_on_reset(struct alb_model *model, struct alb_model_qp *qp)
{
    for (; qp->first_open < qp->count; qp->first_open++)
        finish(model, qp, qp->first_open, ALB_MODEL_ABANDONED);
    qp->held_from = UINT32_MAX;
    abandon_recvs(model, &qp->recvs, qp->side);
    alb_model_peer(model, qp)->may_fail = true;
    qp->may_fail = true;
}

static void note_number(struct alb_model_qp *qp)
{
    qp->former_numbers[qp->former_count++ % ALB_MODEL_FORMER] = qp->number;
}

void alb_model_on_restart(struct alb_model *model, uint32_t side)
{
    model->has_restarted = true;
    for (uint32_t i = 0; i < model->qp_count; i++)
        note_number(&model->qps[side][i]);
    abandon_recvs(model, &model->shared[side], side);
    for (uint32_t i = 0; i < ALB_MODEL_NAMED; i++)
        abandon_recvs(model, &model->named[side][i], side);
}

void alb_model_on_new_life(struct alb_model *model, uint32_t index)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        struct alb_model_qp *qp = &model->qps[side][index];
        alb_model_check_slice(model, qp);
        qp->life++;
        qp->next_delivery = qp->count;
    }
}

// What completes without a word has succeeded, also on a queue pair that went into error behind it: after an error
// every request is reported.
static void end_ops(struct alb_model *model, struct alb_model_qp *qp)
{
    for (; qp->first_open < qp->count; qp->first_open++) {
        const struct alb_model_op *op = &qp->ops[qp->first_open];
        if (op->is_signaled || qp->has_failed)
            alb_model_fail(model, "request %u of queue pair %u/%u (opcode %u) never completed", qp->first_open,
                           qp->side, qp->index, op->opcode);
        succeed(model, qp, qp->first_open);
    }
    for (uint32_t i = 0; alb_model_is_reliable(qp->type) && i < qp->count; i++)
        if (alb_model_takes_receive(qp->ops[i].opcode) && qp->ops[i].state == ALB_MODEL_DONE &&
            qp->ops[i].deliveries != 1)
            alb_model_fail(model, "message %u of queue pair %u/%u succeeded but was delivered %u times", i, qp->side,
                           qp->index, qp->ops[i].deliveries);
}

// The caller knows what is still posted by its number.
static void end_recvs(struct alb_model_recvs *recvs)
{
    if (recvs->open == 0)
        recvs->count = 0;
}

void alb_model_end_phase(struct alb_model *model)
{
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++)
        for (uint32_t i = 0; i < model->qp_count; i++)
            end_ops(model, &model->qps[side][i]);
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        for (uint32_t i = 0; i < model->qp_count; i++)
            alb_model_check_slice(model, &model->qps[side][i]);
        alb_model_check_words(model, side);
    }
    for (uint32_t side = 0; side < ALB_MODEL_SIDES; side++) {
        alb_model_check_arena(model, side);
        for (uint32_t i = 0; i < model->qp_count; i++) {
            forget_ops(&model->qps[side][i]);
            end_recvs(&model->qps[side][i].recvs);
        }
        end_recvs(&model->shared[side]);
        for (uint32_t i = 0; i < ALB_MODEL_NAMED; i++)
            end_recvs(&model->named[side][i]);
    }
}
