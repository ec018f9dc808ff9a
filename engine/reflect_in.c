// SPDX-License-Identifier: BSD-2-Clause
// The target: what commands, leases, the journal and its own program do to a transaction that was proposed
// (reflect_propose.c has the way there). It speaks only when it is asked, or when something is decided.
#include "engine/csa_message.h"
#include "engine/impl.h"
#include "engine/inbound.h"

// A receive posted to the queue pair's own queue rings the bell. One posted to a shared queue does not, so a shared
// queue is polled, each time after twice as long.
#define NOTICE_WAIT_NS_MIN ALB_NS_PER_MS
#define NOTICE_WAIT_NS_MAX (128 * ALB_NS_PER_MS)

// ---- verdicts -------------------------------------------------------------------------------------------------------

// In the association's line.
static void queue(struct alb_reflect_in *in)
{
    struct alb_engine *engine = in->csa->qp->engine;
    struct alb_assoc_live *live = alb_assoc_wake(engine, in->csa->assoc);
    if (!live)
        return; // the initiator asks again
    if (!alb_list_is_linked(&in->source.link))
        alb_list_push_back(&live->reflections, &in->source.link);
    alb_csa_turn_tell(live);
}

static struct alb_reflect_in *home(const struct alb_txn_in *txn)
{
    return txn->initiator ? txn->initiator->in : NULL;
}

static void tell(struct alb_txn_in *txn, struct alb_reflect_in *in)
{
    if (!in)
        return; // the initiator asks
    alb_list_remove(&txn->due);
    alb_list_push_back(&in->due, &txn->due);
    queue(in);
}

void alb_txn_in_owe_verdict(struct alb_txn_in *txn)
{
    tell(txn, home(txn));
}

void alb_reflect_in_owe_stray(struct alb_reflect_in *in, const struct alb_csa_verdict *verdict)
{
    if (in->stray_count < ALB_REFLECT_STRAYS)
        in->strays[(in->stray_first + in->stray_count++) % ALB_REFLECT_STRAYS] = *verdict;
    queue(in);
}

// ---- ends -----------------------------------------------------------------------------------------------------------

static void count_end(struct alb_txn_in *txn)
{
    struct alb_stats *sum = &txn->engine->stats->sum;
    if (txn->is_message)
        return; // no transaction
    if (txn->state == ALB_TXN_COMMITTED)
        sum->counter[ALB_STAT_txn_applied]++;
    else if (txn->reason == ALB_TXN_LEASE)
        sum->counter[ALB_STAT_txn_expired]++;
    else if (txn->state == ALB_TXN_ABORTED)
        sum->counter[txn->decided_at ? ALB_STAT_txn_withdrawn : ALB_STAT_txn_refused]++;
}

void alb_txn_in_drop_notice(struct alb_txn_in *txn)
{
    if (txn->has_notice && home(txn))
        home(txn)->notices_promised--;
    txn->has_notice = false;
}

void alb_txn_in_finish(struct alb_txn_in *txn, enum alb_txn_state state, enum alb_txn_reason reason, alb_time now)
{
    alb_txn_in_set_state(txn, state, now);
    txn->reason = reason;
    alb_wheel_disarm(&txn->engine->wheel, &txn->lease.timer);
    if (!txn->is_taken)
        alb_list_remove(&txn->queue);
    if (state != ALB_TXN_COMMITTED)
        alb_txn_in_drop_notice(txn);
    alb_txn_in_release(txn);
    count_end(txn);
    tell(txn, home(txn));
}

void alb_txn_in_abort(struct alb_txn_in *txn, enum alb_txn_reason reason, alb_time now)
{
    switch (txn->state) {
    case ALB_TXN_TENTATIVE:
    case ALB_TXN_PROPOSED:
        break;
    case ALB_TXN_PREPARING:
        if (!txn->is_taken) { // its writing has not begun
            txn->journal_kind = 0;
            break;
        }
        txn->wants_abort = true; // what the journal has by then must be taken back there
        txn->reason = reason;
        return;
    case ALB_TXN_REFLECTING:
        if (!txn->store)
            break;
        txn->reason = reason;
        alb_txn_in_set_state(txn, ALB_TXN_ABORTING, now);
        alb_wheel_disarm(&txn->engine->wheel, &txn->lease.timer);
        alb_txn_in_request_journal(txn, ALB_JOURNAL_ABORT);
        return;
    default:
        return; // decided
    }
    alb_txn_in_undo(txn);
    alb_txn_in_finish(txn, ALB_TXN_ABORTED, reason, now);
}

// ---- the decision ---------------------------------------------------------------------------------------------------

static void notify(struct alb_txn_in *txn, alb_time now)
{
    struct alb_reflect_in *in = home(txn);
    if (!in || !txn->has_notice)
        return;
    in->notices[(in->notice_first + in->notice_count++) % ALB_REFLECT_NOTICES] = (struct alb_reflect_notice){
        .imm_be = txn->imm_be,
        .byte_len = (uint32_t)ALB_MIN(txn->bytes, (uint64_t)UINT32_MAX),
        .is_solicited = txn->is_solicited,
    };
    alb_reflect_in_notify(in->csa, now);
}

bool alb_txn_in_expose(struct alb_txn_in *txn, alb_time now)
{
    if (alb_txn_in_apply(txn)) {
        txn->visible_at = now;
        alb_txn_in_finish(txn, ALB_TXN_COMMITTED, ALB_TXN_OK, now);
        notify(txn, now);
        return true;
    }
    txn->engine->stats->sum.counter[ALB_STAT_digest_mismatches]++;
    if (txn->is_in_place) { // it was not read, and what stood there is known
        alb_txn_in_undo(txn);
        alb_txn_in_finish(txn, ALB_TXN_ABORTED, ALB_TXN_DIGEST, now);
        return false;
    }
    alb_txn_in_finish(txn, ALB_TXN_CORRUPT, ALB_TXN_COPY, now);
    return false;
}

static void commit(struct alb_txn_in *txn, alb_time now)
{
    if (txn->state != ALB_TXN_REFLECTING)
        return;
    alb_wheel_disarm(&txn->engine->wheel, &txn->lease.timer);
    if (!txn->store) {
        alb_txn_in_expose(txn, now);
        return;
    }
    alb_txn_in_set_state(txn, ALB_TXN_COMMITTING, now);
    alb_txn_in_request_journal(txn, ALB_JOURNAL_COMMIT);
}

void alb_txn_in_bind(struct alb_txn_in *txn, alb_time now)
{
    alb_txn_in_set_state(txn, ALB_TXN_REFLECTING, now);
    txn->decided_at = now;
    alb_wheel_arm(&txn->engine->wheel, &txn->lease.timer, now + txn->lease_ns);
    tell(txn, home(txn));
}

// Some more of its parts has come since it was last looked at: its initiator lives, and the way to it is slow.
static bool goes_on(struct alb_txn_in *txn)
{
    uint32_t of_part = txn->in->range ? txn->in->csa->in_requests.placed : 0;
    uint64_t came = (uint64_t)txn->part_count << 32 | of_part;
    bool is_more = came != txn->came;
    txn->came = came;
    return is_more;
}

// No more of its parts comes: what has come goes, and the proposal, if it comes, finds it condemned.
static void give_up(struct alb_txn_in *txn)
{
    alb_txn_in_undo(txn);
    txn->reason = txn->reason ? txn->reason : ALB_TXN_LEASE;
    if (txn->in->range)
        txn->in->csa->target = (struct alb_target){.kind = ALB_TARGET_DISCARD};
    txn->in->range = NULL;
    alb_txn_in_release(txn);
}

void alb_txn_in_on_lease(struct alb_deadline *deadline, alb_time now)
{
    struct alb_txn_in *txn = ALB_CONTAINER_OF(deadline, struct alb_txn_in, lease);
    if (txn->initiator)
        alb_txn_in_abort(txn, ALB_TXN_LEASE, now);
    else if (goes_on(txn))
        alb_wheel_arm(&txn->engine->wheel, &txn->lease.timer, now + txn->engine->config.txn_lease_ns);
    else
        give_up(txn);
}

void alb_txn_in_lost_region(struct alb_txn_in *txn)
{
    struct alb_engine *engine = txn->engine;
    if (!txn->initiator) { // its parts are still coming
        txn->reason = txn->reason ? txn->reason : ALB_TXN_REGION_GONE;
        alb_txn_in_undo(txn);
        if (txn->in && txn->in->range)
            txn->in->csa->target = (struct alb_target){.kind = ALB_TARGET_DISCARD};
        return;
    }
    if (txn->state == ALB_TXN_COMMITTING) // written or not, it is the next opening of the journal that exposes it
        txn->lost_region = true;
    else
        alb_txn_in_abort(txn, ALB_TXN_REGION_GONE, engine->now);
}

// ---- commands -------------------------------------------------------------------------------------------------------

// What is not there was not committed, if it would be here: the record of what was is kept until its initiator has
// passed it. Of an initiator that was forgotten, or not known in this life, only the journals that have brought it back
// can tell.
static bool was_surely_aborted(struct alb_engine *engine, const struct alb_csa_txn *command)
{
    const struct alb_txn_initiator *initiator = alb_txn_initiator_find(engine, command->id.initiator);
    if (!initiator || command->id.number < initiator->low_water)
        return false;
    if (initiator->is_restored && !alb_txn_initiator_is_vouched(initiator, command->keeper))
        return false;
    return command->keeper == engine->reflect->keeper || alb_reflect_has_journal(engine, command->keeper);
}

static void answer_stray(struct alb_csa *csa, const struct alb_csa_txn *command, bool is_aborted)
{
    struct alb_reflect_in *in = csa->reflect_in;
    if (!in)
        return;
    alb_reflect_in_owe_stray(in, &(struct alb_csa_verdict){
                                     .state = is_aborted ? ALB_CSA_VERDICT_ABORTED : ALB_CSA_VERDICT_UNKNOWN,
                                     .reason = is_aborted ? ALB_TXN_PEER_GONE : ALB_TXN_LOST,
                                     .id = command->id,
                                     .keeper = command->keeper,
                                 });
}

// To its own queue pair, where that is connected, a verdict may stand to be sent: it stays there. asker NULL: this
// device has no transactions, or a notification has ended the queue pair.
static void answer(struct alb_txn_in *txn, struct alb_reflect_in *asker)
{
    struct alb_reflect_in *owner = home(txn);
    if (!asker || !owner || asker == owner) {
        tell(txn, asker);
        return;
    }
    const struct alb_csa_verdict verdict = alb_txn_in_verdict(txn);
    alb_reflect_in_owe_stray(asker, &verdict);
}

void alb_reflect_in_command(struct alb_csa *csa, const struct alb_csa_txn *command, alb_time now)
{
    struct alb_engine *engine = csa->qp->engine;
    const struct alb_txn_id id = {.initiator = command->id.initiator, .number = command->id.number};
    alb_reflect_in_get(csa);
    struct alb_txn_in *txn = alb_txn_in_find(engine, &id);
    if (!txn) {
        answer_stray(csa, command, was_surely_aborted(engine, command));
        return;
    }
    if (command->keeper && command->keeper != txn->keeper) { // a token of two transactions: nothing is said of either
        answer_stray(csa, command, false);
        return;
    }
    if (command->command == ALB_CSA_TXN_COMMIT)
        commit(txn, now);
    else if (command->command == ALB_CSA_TXN_ABORT)
        alb_txn_in_abort(txn, ALB_TXN_WITHDRAWN, now);
    answer(txn, csa->reflect_in);
    alb_txn_initiator_heard(engine, txn->initiator);
    if (command->low_water)
        alb_txn_initiator_pass(txn->initiator, command->low_water);
}

// ---- notifications --------------------------------------------------------------------------------------------------

// Some of a message that has not begun lies where its receive is.
static bool is_placed_early(const struct alb_csa *csa)
{
    ALB_LIST_FOR_EACH (&csa->in_requests.early, node) {
        const struct alb_early *early = ALB_LIST_ENTRY(node, struct alb_early, link);
        if (early->is_placed && alb_csa_uses_receive(early->segment.op))
            return true;
    }
    return false;
}

static bool take_receive(struct alb_csa *csa)
{
    struct alb_qp *qp = csa->qp;
    return !qp->recv_is_taken && alb_qp_state_of(qp) != ALB_QPS_ERR && !is_placed_early(csa) && alb_qp_take_receive(qp);
}

static void wait_for_receive(struct alb_reflect_in *in, alb_time now)
{
    struct alb_qp *qp = in->csa->qp;
    alb_csa_want_receive(qp);
    if (alb_timer_is_armed(&in->notice_timer.timer))
        return;
    in->notice_wait_ns = ALB_MIN(ALB_MAX(2 * in->notice_wait_ns, NOTICE_WAIT_NS_MIN), NOTICE_WAIT_NS_MAX);
    alb_wheel_arm(&qp->engine->wheel, &in->notice_timer.timer, now + in->notice_wait_ns);
}

static void stop_waiting(struct alb_reflect_in *in)
{
    if (!in->csa->in_requests.waits_rnr)
        atomic_store_explicit(&in->csa->qp->wants_receive, false, memory_order_relaxed);
}

void alb_reflect_in_notify(struct alb_csa *csa, alb_time now)
{
    struct alb_reflect_in *in = csa->reflect_in;
    struct alb_qp *qp = csa->qp;
    bool has_waited = in->notice_count > 0;
    while (in->notice_count > 0 && take_receive(csa)) {
        const struct alb_reflect_notice *notice = &in->notices[in->notice_first];
        struct alb_wc wc = {
            .status = ALB_WC_SUCCESS,
            .opcode = ALB_WC_RECV_RDMA_WITH_IMM,
            .byte_len = notice->byte_len,
            .imm_data = notice->imm_be,
            .flags = ALB_WC_WITH_IMM,
            .src_qpn = qp->attr.dest_qpn,
            .sl = qp->attr.av.sl,
        };
        bool is_solicited = notice->is_solicited;
        in->notice_first = (in->notice_first + 1) % ALB_REFLECT_NOTICES;
        in->notice_count--;
        in->notices_promised--;
        in->notice_wait_ns = 0;
        alb_wheel_disarm(&qp->engine->wheel, &in->notice_timer.timer);
        alb_qp_complete_receive(qp, &wc, is_solicited, now);
        if (alb_qp_state_of(qp) == ALB_QPS_ERR)
            return; // the completion queue overran, and with the queue pair went what we have of it
    }
    if (in->notice_count > 0)
        wait_for_receive(in, now);
    else if (has_waited)
        stop_waiting(in);
}

void alb_reflect_in_on_notice_timer(struct alb_deadline *deadline, alb_time now)
{
    alb_reflect_in_notify(ALB_CONTAINER_OF(deadline, struct alb_reflect_in, notice_timer)->csa, now);
}

// ---- the end of the queue pair --------------------------------------------------------------------------------------

// What is not bound will not be; what is waits for its lease. But when the initiator has come back in a new life a
// volatile target gives that up at once. A durable one is there for programs that wrote down what they decided.
static void leave(struct alb_engine *engine, struct alb_txn_initiator *initiator, bool has_returned, alb_time now)
{
    ALB_LIST_FOR_EACH (&initiator->records, node) {
        struct alb_txn_in *txn = ALB_LIST_ENTRY(node, struct alb_txn_in, of_initiator);
        if (txn->state == ALB_TXN_PROPOSED || (has_returned && !txn->store && txn->state == ALB_TXN_REFLECTING))
            alb_txn_in_abort(txn, ALB_TXN_PEER_GONE, now);
    }
    alb_txn_initiator_orphan(engine, initiator);
}

void alb_reflect_in_stop(struct alb_csa *csa, alb_time now)
{
    struct alb_reflect_in *in = csa->reflect_in;
    struct alb_engine *engine = csa->qp->engine;
    bool has_returned = csa->assoc && csa->bound_epoch != 0 && csa->bound_epoch == csa->assoc->dead_epoch;
    if (!in)
        return;
    if (in->receiving) {
        alb_txn_in_undo(in->receiving);
        alb_txn_in_destroy(in->receiving);
    }
    csa->target = (struct alb_target){.kind = ALB_TARGET_NONE};
    if (in->initiator)
        leave(engine, in->initiator, has_returned, now);
    while (alb_list_pop(&in->due))
        ;
    alb_list_remove(&in->source.link);
    alb_wheel_disarm(&engine->wheel, &in->notice_timer.timer);
    csa->reflect_in = NULL;
}

bool alb_reflect_in_is_quiet(const struct alb_reflect_in *in)
{
    bool is_receiving = in->receiving && in->receiving->reason == ALB_TXN_OK; // else it is condemned, or given up
    return alb_list_is_empty(&in->due) && in->stray_count == 0 && !is_receiving;
}
