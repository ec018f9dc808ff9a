// SPDX-License-Identifier: BSD-2-Clause
// The bell: how a thread that does not hold the engine tells it that a queue pair has new work. A stack that any thread
// pushes and the holder takes whole, so that neither waits for the other.
#include "engine/impl.h"

void alb_engine_bell_ring(struct alb_qp *qp)
{
    if (atomic_exchange_explicit(&qp->bell_is_rung, true, memory_order_seq_cst))
        return; // still on the stack: the holder has not looked at the queue yet
    struct alb_engine *engine = qp->engine;
    struct alb_qp *top = atomic_load_explicit(&engine->bells, memory_order_relaxed);
    do {
        atomic_store_explicit(&qp->bell_next, top, memory_order_relaxed);
    } while (
        !atomic_compare_exchange_weak_explicit(&engine->bells, &top, qp, memory_order_seq_cst, memory_order_relaxed));
}

bool alb_engine_bell_is_rung(const struct alb_engine *engine)
{
    return atomic_load_explicit(&engine->bells, memory_order_seq_cst) != NULL;
}

static void answer(struct alb_qp *qp, alb_time now)
{
    switch (alb_qp_state_of(qp)) {
    case ALB_QPS_RESET:
        break;
    case ALB_QPS_ERR:
        alb_qp_flush_receive(qp, now);
        alb_qp_flush_send(qp, now);
        break;
    case ALB_QPS_SQE:
        alb_qp_flush_send(qp, now);
        break;
    default:
        qp->delivery->work(qp, now);
    }
}

void alb_engine_bells(struct alb_engine *engine, alb_time now)
{
    engine->now = now;
    struct alb_qp *qp = atomic_exchange_explicit(&engine->bells, NULL, memory_order_seq_cst);
    struct alb_qp *oldest = NULL;
    // The stack holds the latest first; turn it round, so that queue pairs are served in the order they rang.
    while (qp) {
        struct alb_qp *next = atomic_load_explicit(&qp->bell_next, memory_order_relaxed);
        atomic_store_explicit(&qp->bell_next, oldest, memory_order_relaxed);
        oldest = qp;
        qp = next;
    }
    while (oldest) {
        struct alb_qp *next = atomic_load_explicit(&oldest->bell_next, memory_order_relaxed);
        atomic_exchange_explicit(&oldest->bell_is_rung, false, memory_order_seq_cst);
        answer(oldest, now);
        oldest = next;
    }
}
