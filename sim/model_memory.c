// SPDX-License-Identifier: BSD-2-Clause
// The model's memory: which bytes may have changed, and to what.
#include "sim/model.h"

#include <stdlib.h>
#include <string.h>

void *alb_model_get(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);
    alb_assert(memory);
    return memory;
}

void alb_model_loosen(struct alb_model_memory *memory, const struct alb_model_span *spans, uint32_t count, int by)
{
    const uint64_t each = 0x0101010101010101ull * (uint64_t)by; // counts stay below 256: no byte carries into the next
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *loose = memory->loose + spans[i].at;
        uint32_t k = 0;
        for (; k + 8 <= spans[i].length; k += 8) {
            uint64_t word;
            memcpy(&word, loose + k, 8);
            word += each;
            memcpy(loose + k, &word, 8);
        }
        for (; k < spans[i].length; k++)
            loose[k] = (uint8_t)(loose[k] + by);
    }
}

void alb_model_adopt(struct alb_model_memory *memory, const struct alb_model_span *spans, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        memcpy(memory->expected + spans[i].at, memory->actual + spans[i].at, spans[i].length);
}

void alb_model_gather(const uint8_t *arena, const struct alb_model_span *spans, uint32_t count, uint8_t *to,
                      uint32_t length)
{
    for (uint32_t i = 0; i < count && length > 0; i++) {
        uint32_t part = ALB_MIN(spans[i].length, length);
        memcpy(to, arena + spans[i].at, part);
        to += part;
        length -= part;
    }
}

// ---- where WRITEs go ------------------------------------------------------------------------------------------------

static bool has_effect(const struct alb_model_qp *qp, const struct alb_model_op *op)
{
    return op->life == qp->life && alb_model_is_write(op->opcode) && op->fate == ALB_WC_SUCCESS &&
           !op->is_undeliverable && op->length > 0;
}

// RC: what is known to be executed, in order.
static uint32_t apply_executed(struct alb_model_qp *qp)
{
    uint32_t executed = 0;
    for (uint32_t i = 0; i < qp->count; i++)
        if (qp->ops[i].is_executed)
            executed = i + 1;
    for (uint32_t i = 0; i < executed; i++)
        if (has_effect(qp, &qp->ops[i]))
            memcpy(qp->base + (qp->ops[i].remote_at - qp->slice.at), qp->ops[i].content, qp->ops[i].length);
    return executed;
}

static bool may_hold(const struct alb_model_qp *qp, uint32_t from, uint32_t at, uint8_t byte)
{
    if (qp->base[at] == byte)
        return true;
    for (uint32_t i = from; i < qp->count; i++) {
        const struct alb_model_op *op = &qp->ops[i];
        uint32_t offset = qp->slice.at + at - op->remote_at;
        if (has_effect(qp, op) && offset < op->length && op->content[offset] == byte)
            return true;
    }
    return false;
}

// UC: a WRITE whose immediate was delivered is whole where no other WRITE of the phase went.
static void check_delivered(struct alb_model *model, const struct alb_model_qp *qp, const uint8_t *actual)
{
    for (uint32_t i = 0; i < qp->count; i++) {
        const struct alb_model_op *op = &qp->ops[i];
        if (!has_effect(qp, op) || op->deliveries == 0)
            continue;
        for (uint32_t k = 0; k < op->length; k++) {
            bool is_alone = true;
            for (uint32_t j = 0; j < qp->count && is_alone; j++)
                is_alone = j == i || !has_effect(qp, &qp->ops[j]) ||
                           op->remote_at + k - qp->ops[j].remote_at >= qp->ops[j].length;
            if (is_alone && actual[op->remote_at - qp->slice.at + k] != op->content[k]) {
                alb_model_fail(model, "WRITE %u of queue pair %u/%u reported but not whole", i, qp->side, qp->index);
                return;
            }
        }
    }
}

// May a byte of a WRITE that is stored be another one's by now: of one posted after it; of any, where nothing orders
// them.
static bool is_overwritten(const struct alb_model *model, const struct alb_model_qp *qp, uint32_t number,
                           uint32_t remote_at, uint8_t byte)
{
    bool is_reliable = alb_model_is_reliable(qp->type);
    for (uint32_t i = model->is_relaxed || !is_reliable ? 0 : number + 1; i < qp->count; i++) {
        const struct alb_model_op *op = &qp->ops[i];
        bool is_under_way = has_effect(qp, op) || (!is_reliable && alb_model_is_write(op->opcode));
        if (is_under_way && remote_at - op->remote_at < op->length && op->content[remote_at - op->remote_at] == byte)
            return true;
    }
    return false;
}

void alb_model_check_stored(struct alb_model *model, const struct alb_model_qp *qp, uint32_t number)
{
    const struct alb_model_op *op = &qp->ops[number];
    const uint8_t *actual = model->memory[1 - qp->side].actual + op->remote_at;
    if (!has_effect(qp, op) || memcmp(actual, op->content, op->length) == 0)
        return;
    for (uint32_t k = 0; k < op->length; k++)
        if (actual[k] != op->content[k] && !is_overwritten(model, qp, number, op->remote_at + k, actual[k])) {
            alb_model_fail(model, "WRITE %u of queue pair %u/%u has been reported: byte %u is %02x, must be %02x",
                           number, qp->side, qp->index, k, actual[k], op->content[k]);
            return;
        }
}

void alb_model_check_slice(struct alb_model *model, struct alb_model_qp *qp)
{
    struct alb_model_memory *memory = &model->memory[1 - qp->side];
    const uint8_t *actual = memory->actual + qp->slice.at;
    uint32_t from = alb_model_is_reliable(qp->type) ? apply_executed(qp) : 0;
    if (model->is_relaxed)
        from = 0; // also one that was executed before others
    for (uint32_t at = 0; at < qp->slice.length; at++) {
        if (at + 8 <= qp->slice.length && memcmp(actual + at, qp->base + at, 8) == 0)
            at += 7; // as most of it
        else if (!may_hold(qp, from, at, actual[at])) {
            alb_model_fail(model, "where queue pair %u/%u writes: byte %u is %02x, must be %02x", qp->side, qp->index,
                           at, actual[at], qp->base[at]);
            break;
        }
    }
    if (qp->type == ALB_QPT_UC)
        check_delivered(model, qp, actual);
    alb_model_adopt(memory, &qp->slice, 1);
    memcpy(qp->base, actual, qp->slice.length);
    memcpy(qp->view, actual, qp->slice.length);
}

// ---- where atomics work ---------------------------------------------------------------------------------------------

// An atomic of the phase on one word, and whether it has been given its place in the order yet.
struct step {
    const struct alb_model_op *op;
    uint32_t qp, number;
    bool is_placed;
};

enum {
    STEPS_MAX = 1024,
};

struct order {
    struct step steps[STEPS_MAX];
    uint32_t count;
    uint32_t budget; // of tries: the search ends even if memory is nonsense
};

static uint64_t result_of(const struct alb_model_op *op, uint64_t value)
{
    if (op->opcode == ALB_WR_ATOMIC_FETCH_AND_ADD)
        return value + op->compare_add;
    return value == op->compare_add ? op->swap : value;
}

// May this one be next: all that its queue pair did before is placed, or never happened (of a former life).
static bool is_turn(const struct order *order, const struct step *step)
{
    for (uint32_t i = 0; i < order->count; i++) {
        const struct step *other = &order->steps[i];
        bool may_be_lost = other->op->life < step->op->life && !other->op->is_executed;
        if (other->qp == step->qp && other->number < step->number && !other->is_placed && !may_be_lost)
            return false;
        if (other->qp == step->qp && other->number > step->number && other->is_placed)
            return false;
    }
    return true;
}

static bool all_known_placed(const struct order *order)
{
    for (uint32_t i = 0; i < order->count; i++)
        if (!order->steps[i].is_placed && order->steps[i].op->is_executed)
            return false;
    return true;
}

// Is there an order of all that is known to have happened, and some of the rest, that leads from value to final?
static bool search(struct order *order, uint64_t value, uint64_t final)
{
    if (value == final && all_known_placed(order))
        return true;
    if (order->budget == 0)
        return true; // undecided
    order->budget--;
    for (uint32_t i = 0; i < order->count; i++) {
        struct step *step = &order->steps[i];
        bool is_known = step->op->state == ALB_MODEL_DONE;
        if (step->is_placed || (is_known && step->op->original != value) || !is_turn(order, step))
            continue;
        step->is_placed = true;
        if (search(order, result_of(step->op, value), final))
            return true;
        step->is_placed = false;
        if (is_known && result_of(step->op, value) == value)
            return false; // changes nothing: if it may be here, it may be here first
    }
    return false;
}

static void add_steps(struct order *order, const struct alb_model_qp *qp, uint32_t at)
{
    for (uint32_t i = 0; i < qp->count && order->count < STEPS_MAX; i++)
        if (alb_model_is_atomic(qp->ops[i].opcode) && qp->ops[i].remote_at == at && qp->ops[i].fate == ALB_WC_SUCCESS)
            order->steps[order->count++] = (struct step){&qp->ops[i], qp->index, i, false};
}

void alb_model_check_words(struct alb_model *model, uint32_t side)
{
    struct alb_model_memory *memory = &model->memory[side];
    struct order *order = malloc(sizeof(*order));
    alb_assert(order);
    for (uint32_t word = 0; word < ALB_MODEL_WORDS; word++) {
        uint32_t at = memory->words_at + word * 8;
        uint64_t before, after;
        memcpy(&before, memory->expected + at, 8);
        memcpy(&after, memory->actual + at, 8);
        order->count = 0;
        order->budget = 100000;
        for (uint32_t i = 0; i < model->qp_count; i++)
            add_steps(order, &model->qps[1 - side][i], at);
        if (!search(order, before, after))
            alb_model_fail(model, "atomics on word %u of side %u: no order of %u gives what they fetched and %llx",
                           word, side, order->count, (unsigned long long)after);
        alb_model_adopt(memory, &(struct alb_model_span){at, 8}, 1);
    }
    free(order);
}

// ---- everything else ------------------------------------------------------------------------------------------------

void alb_model_check_arena(struct alb_model *model, uint32_t side)
{
    const struct alb_model_memory *memory = &model->memory[side];
    if (memcmp(memory->actual, memory->expected, memory->bytes) == 0)
        return;
    for (uint32_t i = 0; i < memory->bytes; i++)
        if (memory->actual[i] != memory->expected[i] && !memory->loose[i]) {
            alb_model_fail(model, "side %u: byte %u is %02x, must be %02x, and nothing may have changed it", side, i,
                           memory->actual[i], memory->expected[i]);
            return;
        }
}
