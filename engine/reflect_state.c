// SPDX-License-Identifier: BSD-2-Clause
// The states of a transaction on both sides: names, legal moves, and the only writers.
#include "engine/csa.h"
#include "engine/impl.h"

#define MOVE(state) (1u << ALB_TXN_##state)

static const char *const names[] = {
    [ALB_TXN_IDLE] = "IDLE",           [ALB_TXN_TENTATIVE] = "TENTATIVE",   [ALB_TXN_PROPOSED] = "PROPOSED",
    [ALB_TXN_PREPARING] = "PREPARING", [ALB_TXN_REFLECTING] = "REFLECTING", [ALB_TXN_COMMITTING] = "COMMITTING",
    [ALB_TXN_COMMITTED] = "COMMITTED", [ALB_TXN_ABORTING] = "ABORTING",     [ALB_TXN_ABORTED] = "ABORTED",
    [ALB_TXN_IN_DOUBT] = "IN_DOUBT",   [ALB_TXN_UNKNOWN] = "UNKNOWN",       [ALB_TXN_CORRUPT] = "CORRUPT",
};

static const char *const reasons[] = {
    [ALB_TXN_OK] = "it did what it was asked for",
    [ALB_TXN_DIGEST] = "what arrived is not what was posted",
    [ALB_TXN_BUSY] = "it overlaps another transaction that is bound, or too many notifications wait",
    [ALB_TXN_PRECONDITION] = "a compared word differs",
    [ALB_TXN_REJECTED] = "the target's program refused it",
    [ALB_TXN_ACCESS] = "the target's memory does not allow the access",
    [ALB_TXN_TOO_LARGE] = "it is larger than the target's staging memory",
    [ALB_TXN_NO_MEMORY] = "the target has no room for it now: its staging memory or its table of outcomes is in use",
    [ALB_TXN_MALFORMED] = "its parts and its proposal contradict each other",
    [ALB_TXN_UNSUPPORTED] = "the target cannot do that",
    [ALB_TXN_LEASE] = "the lease ended before it was decided",
    [ALB_TXN_DEADLINE] = "its deadline passed",
    [ALB_TXN_WITHDRAWN] = "the initiator's program withdrew it",
    [ALB_TXN_REGION_GONE] = "a region was deregistered or invalidated",
    [ALB_TXN_JOURNAL] = "the target's journal could not be written",
    [ALB_TXN_PEER_GONE] = "the connection ended before it was decided",
    [ALB_TXN_COPY] = "what is exposed stayed different from what was agreed",
    [ALB_TXN_LOST] = "what became of it is not known",
};

const char *alb_txn_state_name(enum alb_txn_state state)
{
    return (unsigned)state < ALB_COUNT(names) ? names[state] : "?";
}

const char *alb_txn_reason_text(enum alb_txn_reason reason)
{
    return (unsigned)reason < ALB_COUNT(reasons) ? reasons[reason] : "an unknown reason";
}

bool alb_txn_state_is_end(enum alb_txn_state state)
{
    return state == ALB_TXN_COMMITTED || state == ALB_TXN_ABORTED || state == ALB_TXN_CORRUPT ||
           state == ALB_TXN_UNKNOWN;
}

// A question about another's transaction begins in doubt.
static const uint16_t out_moves[ALB_TXN_STATES] = {
    [ALB_TXN_IDLE] = MOVE(TENTATIVE) | MOVE(IN_DOUBT) | MOVE(ABORTED),
    [ALB_TXN_TENTATIVE] =
        MOVE(REFLECTING) | MOVE(COMMITTED) | MOVE(ABORTING) | MOVE(ABORTED) | MOVE(CORRUPT) | MOVE(UNKNOWN),
    [ALB_TXN_REFLECTING] =
        MOVE(COMMITTED) | MOVE(ABORTING) | MOVE(ABORTED) | MOVE(IN_DOUBT) | MOVE(CORRUPT) | MOVE(UNKNOWN),
    [ALB_TXN_ABORTING] = MOVE(ABORTED) | MOVE(COMMITTED) | MOVE(CORRUPT),
    [ALB_TXN_IN_DOUBT] = MOVE(COMMITTED) | MOVE(ABORTED) | MOVE(UNKNOWN) | MOVE(CORRUPT),
};

// UNKNOWN at the target: the region went while the journal was written, and the next opening of that can tell.
static const uint16_t in_moves[ALB_TXN_STATES] = {
    [ALB_TXN_TENTATIVE] =
        MOVE(PROPOSED) | MOVE(PREPARING) | MOVE(REFLECTING) | MOVE(ABORTED) | MOVE(COMMITTED) | MOVE(CORRUPT),
    [ALB_TXN_PROPOSED] = MOVE(PREPARING) | MOVE(REFLECTING) | MOVE(ABORTED),
    [ALB_TXN_PREPARING] = MOVE(REFLECTING) | MOVE(ABORTING) | MOVE(ABORTED) | MOVE(UNKNOWN),
    [ALB_TXN_REFLECTING] = MOVE(COMMITTING) | MOVE(COMMITTED) | MOVE(ABORTING) | MOVE(ABORTED) | MOVE(CORRUPT),
    [ALB_TXN_COMMITTING] = MOVE(COMMITTED) | MOVE(CORRUPT) | MOVE(ABORTING) | MOVE(UNKNOWN),
    [ALB_TXN_UNKNOWN] = MOVE(COMMITTED) | MOVE(ABORTED),
    [ALB_TXN_ABORTING] = MOVE(ABORTED) | MOVE(UNKNOWN),
};

void alb_txn_out_set_state(struct alb_txn_out *txn, enum alb_txn_state state, alb_time now)
{
    const struct alb_qp *qp = txn->out->csa->qp;
    alb_assert(out_moves[txn->state] & 1u << state);
    alb_trace_add(qp->engine, ALB_TRACE_txn_out, qp->number, (uint32_t)txn->number, txn->state, state, now);
    txn->state = state;
}

void alb_txn_in_set_state(struct alb_txn_in *txn, enum alb_txn_state state, alb_time now)
{
    const struct alb_reflect_in *in = txn->initiator ? txn->initiator->in : NULL;
    uint32_t qpn = in ? in->csa->qp->number : 0;
    alb_assert(in_moves[txn->state] & 1u << state);
    alb_trace_add(txn->engine, ALB_TRACE_txn_in, qpn, (uint32_t)txn->id.number, txn->state, state, now);
    txn->state = state;
}
