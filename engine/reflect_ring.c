// SPDX-License-Identifier: BSD-2-Clause
// What an initiator keeps of its operations: a ring by number, and the low-water mark.
#include "engine/impl.h"

#include <errno.h>

// What has ended is read while a post may be writing it, and thrown away then (alb_txn_out_still_has), of which the
// thread sanitizer cannot know.
#define NOT_SANITIZED __attribute__((no_sanitize_thread))

static size_t ring_bytes(uint32_t capacity)
{
    return sizeof(struct alb_reflect_out) + capacity * sizeof(struct alb_txn_out);
}

static uint64_t draw_initiator(struct alb_engine *engine)
{
    uint64_t id;
    do
        id = alb_rng_u64(&engine->rng);
    while (id == 0);
    return id;
}

int alb_qp_txn_enable(struct alb_qp *qp, uint32_t in_flight_max)
{
    struct alb_engine *engine = qp->engine;
    if (qp->delivery != &alb_csa_ops || qp->type != ALB_QPT_RC)
        return EOPNOTSUPP;
    struct alb_csa *csa = alb_csa_of(qp);
    if (in_flight_max == 0 || in_flight_max > engine->config.txn_out_max || csa->reflect_out)
        return EINVAL;
    uint32_t capacity = 1;
    while (capacity < in_flight_max)
        capacity *= 2;
    struct alb_reflect_out *out = alb_engine_get_memory(engine, ring_bytes(capacity));
    if (!out)
        return ENOMEM;
    out->csa = csa;
    out->capacity = capacity;
    out->source.add = alb_reflect_out_add;
    alb_list_init(&out->source.link);
    alb_list_init(&out->due);
    alb_deadline_init(&out->timer, alb_reflect_out_on_timer);
    alb_reflect_out_reset(out);
    csa->reflect_out = out;
    return 0;
}

// The queue pair begins anew, as another initiator: what was asked of the old one is over.
void alb_reflect_out_reset(struct alb_reflect_out *out)
{
    struct alb_engine *engine = out->csa->qp->engine;
    alb_list_remove(&out->source.link);
    alb_list_init(&out->due);
    alb_wheel_disarm(&engine->wheel, &out->timer.timer);
    for (uint32_t i = 0; i < out->capacity; i++) {
        out->ring[i] = (struct alb_txn_out){.out = out};
        alb_list_init(&out->ring[i].due);
    }
    out->initiator = draw_initiator(engine);
    out->staged = out->begun = 1;
    atomic_store_explicit(&out->posted, 1, memory_order_relaxed);
    atomic_store_explicit(&out->ended, 1, memory_order_relaxed);
    out->clock.span_ns = UINT64_MAX;
}

void alb_reflect_out_destroy(struct alb_reflect_out *out)
{
    struct alb_engine *engine = out->csa->qp->engine;
    alb_list_remove(&out->source.link);
    alb_wheel_disarm(&engine->wheel, &out->timer.timer);
    out->csa->reflect_out = NULL;
    alb_engine_put_memory(engine, out, ring_bytes(out->capacity));
}

void alb_reflect_out_advance(struct alb_reflect_out *out)
{
    uint64_t ended = atomic_load_explicit(&out->ended, memory_order_relaxed);
    for (; ended != out->begun; ended++) {
        const struct alb_txn_out *txn = alb_txn_out_at(out, ended);
        if (!txn->is_completed || !alb_txn_state_is_end(txn->state))
            break;
    }
    atomic_store_explicit(&out->ended, ended, memory_order_release);
}

struct alb_txn_out *alb_txn_out_find(struct alb_reflect_out *out, uint64_t number)
{
    uint64_t ended = atomic_load_explicit(&out->ended, memory_order_relaxed); // places before it are the posts'
    return number >= ended && number < out->begun ? alb_txn_out_at(out, number) : NULL;
}

static NOT_SANITIZED bool is_txn(const struct alb_txn_out *txn)
{
    return !txn->is_message && !txn->is_question;
}

struct alb_txn_out *alb_txn_out_find_posted(struct alb_reflect_out *out, uint64_t number)
{
    struct alb_txn_out *txn = alb_txn_out_at(out, number);
    if (number >= atomic_load_explicit(&out->posted, memory_order_acquire) || !alb_txn_out_has(txn, number))
        return NULL;
    return is_txn(txn) && alb_txn_out_still_has(txn, number) ? txn : NULL;
}

bool alb_reflect_out_is_quiet(const struct alb_reflect_out *out)
{
    return atomic_load_explicit(&out->ended, memory_order_relaxed) == out->begun;
}

// To its program an operation begins when it is posted, though it may have to wait for its turn in the send queue.
static NOT_SANITIZED void tell_state(const struct alb_qp *qp, const struct alb_txn_out *txn, uint64_t number,
                                     struct alb_txn_status *status)
{
    status->state = txn->state;
    status->reason = txn->reason;
    if (status->state != ALB_TXN_IDLE ||
        number >= atomic_load_explicit(&alb_csa_of(qp)->reflect_out->posted, memory_order_acquire))
        return;
    if (alb_qp_state_of(qp) == ALB_QPS_ERR) { // it was flushed, or is about to be
        status->state = ALB_TXN_ABORTED;
        status->reason = ALB_TXN_PEER_GONE;
    } else if (txn->is_question) {
        status->state = ALB_TXN_IN_DOUBT;
    } else {
        status->state = txn->is_unwanted ? ALB_TXN_ABORTING : ALB_TXN_TENTATIVE;
    }
}

static NOT_SANITIZED void tell(const struct alb_txn_out *txn, struct alb_txn_status *status)
{
    *status = (struct alb_txn_status){
        .token = {.id = txn->asked, .keeper = txn->keeper},
        .stages = txn->stages,
    };
}

int alb_qp_txn_query(const struct alb_qp *qp, uint64_t number, struct alb_txn_status *status)
{
    struct alb_reflect_out *out = qp->delivery == &alb_csa_ops ? alb_csa_of(qp)->reflect_out : NULL;
    if (!out)
        return EINVAL;
    struct alb_txn_out *txn = alb_txn_out_at(out, number);
    if (!alb_txn_out_has(txn, number))
        return ENOENT;
    tell(txn, status);
    tell_state(qp, txn, number, status);
    return alb_txn_out_still_has(txn, number) ? 0 : ENOENT;
}
