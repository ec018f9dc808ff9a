// SPDX-License-Identifier: BSD-2-Clause
// What is reported of what sim/search_txn_work.c has posted, passed to the model: by completions, by questions, and by
// the state of a queue pair that ends.
#include "sim/search_txn.h"

static void report_committed(struct alb_search_txn *search, struct alb_search_txn_work *work)
{
    if (work->life == search->model.memory[1 - work->side].life)
        alb_model_txn_observe(&search->model, 1 - work->side);
    alb_model_txn_committed(&search->model, work->op);
    work->is_in_doubt = false;
    search->result->committed++;
}

static void report_aborted(struct alb_search_txn *search, struct alb_search_txn_work *work)
{
    alb_model_txn_aborted(&search->model, work->op);
    work->is_in_doubt = false;
    search->result->aborted++;
}

static void report_corrupt(struct alb_search_txn *search, struct alb_search_txn_work *work)
{
    if (!search->has_corruption)
        alb_model_txn_fail(&search->model, "operation %u is corrupt, and nothing was corrupted", work->op);
    alb_model_txn_spoilt(&search->model, work->op);
    if (work->life == search->model.memory[1 - work->side].life)
        search->model.memory[1 - work->side].is_spoilt = true;
    work->is_in_doubt = false;
    search->result->corrupt++;
}

static void follow(struct alb_search_txn *search, struct alb_search_txn_work *work, bool is_over)
{
    struct alb_txn_status status;
    if (alb_qp_txn_query(alb_search_txn_qp(search, work->side, work->index), work->number, &status) != 0)
        return;
    if (is_over || alb_search_percent(&search->base, 50))
        work->token = status.token;
    enum alb_model_txn_fate fate = search->model.ops[work->op].fate;
    switch (status.state) {
    case ALB_TXN_COMMITTED:
        if (fate == ALB_MODEL_TXN_OPEN)
            report_committed(search, work);
        break;
    case ALB_TXN_ABORTED:
        alb_model_txn_refused(&search->model, work->op, status.reason);
        if (fate == ALB_MODEL_TXN_OPEN)
            report_aborted(search, work);
        break;
    case ALB_TXN_REFLECTING: // COMMIT may have been sent
        if (is_over && work->has_decided)
            work->is_in_doubt = true;
        else if (is_over)
            report_aborted(search, work);
        break;
    case ALB_TXN_IN_DOUBT:
    case ALB_TXN_UNKNOWN:
        work->is_in_doubt = true;
        break;
    case ALB_TXN_CORRUPT:
        break;
    case ALB_TXN_IDLE: // flushed before it began
        if ((!work->is_open || is_over) && fate == ALB_MODEL_TXN_OPEN)
            report_aborted(search, work);
        break;
    default: // never decided, and none is left to do so
        if (is_over)
            report_aborted(search, work);
    }
}

// Its region went while it was being committed: it is there since the next opening, and was not reported.
static bool was_unplaced(const struct alb_search_txn *search, const struct alb_search_txn_work *work)
{
    return search->is_durable && alb_search_store_was_unplaced(&search->sides[1 - work->side].store, &work->token.id);
}

static void on_transaction(struct alb_search_txn *search, struct alb_search_txn_work *work, const struct alb_wc *wc)
{
    switch ((enum alb_wc_status)wc->status) {
    case ALB_WC_SUCCESS:
        if (work->level == ALB_LEVEL_COMMITTED)
            report_committed(search, work);
        return; // REFLECTED says nothing of the end
    case ALB_WC_REM_ABORT_ERR:
        alb_model_txn_refused(&search->model, work->op, (enum alb_txn_reason)wc->vendor_err);
        report_aborted(search, work);
        return;
    case ALB_WC_REM_OP_ERR:
        report_corrupt(search, work);
        return;
    case ALB_WC_RESP_TIMEOUT_ERR:
        if (work->life == search->model.memory[1 - work->side].life && !was_unplaced(search, work))
            alb_model_txn_fail(&search->model,
                               "no side knows of operation %u, and its target has been there all the while", work->op);
        work->is_in_doubt = true;
        search->result->unknown++;
        return;
    default: // the queue pair has ended
        if (wc->vendor_err == ALB_TXN_LOST) {
            work->is_in_doubt = true;
            search->result->doubts++;
        } else if (wc->vendor_err == ALB_TXN_COPY) {
            report_corrupt(search, work);
        } else if (wc->vendor_err != ALB_TXN_OK) {
            report_aborted(search, work);
        } else { // it waited for its turn to be reported, or to begin
            follow(search, work, false);
        }
    }
}

// The keeper of the journal's name has an answer, unless another had learned the outcome.
static void report_unknown(struct alb_search_txn *search, const struct alb_search_txn_work *about,
                           const struct alb_txn_token *asked)
{
    search->result->unknown++;
    if (search->is_durable && asked->keeper != 0 && about->is_in_doubt && !about->was_lost &&
        !was_unplaced(search, about))
        alb_model_txn_fail(&search->model, "no side knows of operation %u, and its target is durable", about->op);
}

static void on_question(struct alb_search_txn *search, struct alb_search_txn_work *work, const struct alb_wc *wc)
{
    struct alb_search_txn_work *about = &search->works[work->about];
    if (wc->status == ALB_WC_SUCCESS)
        report_committed(search, about);
    else if (wc->status == ALB_WC_REM_ABORT_ERR) {
        alb_model_txn_refused(&search->model, about->op, (enum alb_txn_reason)wc->vendor_err);
        report_aborted(search, about);
    } else if (wc->status == ALB_WC_REM_OP_ERR && !search->model.memory[1 - about->side].is_spoilt)
        report_corrupt(search, about);
    else if (wc->status == ALB_WC_RESP_TIMEOUT_ERR)
        report_unknown(search, about, &work->token);
}

static void on_read(struct alb_search_txn *search, const struct alb_search_txn_work *work)
{
    uint32_t target = 1 - work->side;
    if (work->life != search->model.memory[target].life)
        return;
    alb_model_txn_observe(&search->model, target);
    alb_model_txn_read(&search->model, target, work->version, work->span, work->read);
}

static void on_completion(struct alb_search_txn *search, uint32_t side, const struct alb_wc *wc)
{
    if (wc->opcode & ALB_WC_RECV) {
        if (wc->status == ALB_WC_SUCCESS)
            alb_model_txn_notified(&search->model, side, wc->imm_data);
        return;
    }
    struct alb_search_txn_work *work = wc->wr_id < search->work_count ? &search->works[wc->wr_id] : NULL;
    if (!work || !work->is_open || work->side != side) {
        alb_model_txn_fail(&search->model, "side %u: a completion of what is not open (%llu)", side,
                           (unsigned long long)wc->wr_id);
        return;
    }
    work->is_open = false;
    if (work->kind == SEARCH_TXN_TRANSACTION)
        on_transaction(search, work, wc);
    else if (work->kind == SEARCH_TXN_QUESTION)
        on_question(search, work, wc);
    else if (wc->status == ALB_WC_SUCCESS && work->kind == SEARCH_TXN_WRITE)
        report_committed(search, work);
    else if (wc->status == ALB_WC_SUCCESS)
        on_read(search, work);
}

uint32_t alb_search_txn_poll(struct alb_search_txn *search, uint32_t side)
{
    struct alb_cq *cq = search->base.sides[side].cq;
    uint32_t count = 0;
    for (const struct alb_wc *wc; (wc = alb_cq_peek(cq)); alb_cq_pop(cq), count++)
        on_completion(search, side, wc);
    return count;
}

// ---- when a queue pair, or a program, ends --------------------------------------------------------------------------

void alb_search_txn_follow(struct alb_search_txn *search, uint32_t side, uint32_t index, bool is_over)
{
    for (uint32_t i = 0; i < search->work_count; i++) {
        struct alb_search_txn_work *work = &search->works[i];
        if (work->side != side || work->index != index)
            continue;
        if (work->kind == SEARCH_TXN_TRANSACTION && work->is_followed)
            follow(search, work, is_over);
        if (is_over)
            work->is_open = work->is_followed = false;
    }
}

void alb_search_txn_lose(struct alb_search_txn *search, uint32_t side)
{
    for (uint32_t i = 0; i < search->work_count; i++) {
        struct alb_search_txn_work *work = &search->works[i];
        if (work->side != side)
            continue;
        if (work->kind == SEARCH_TXN_TRANSACTION && (work->is_open || work->is_followed))
            work->is_in_doubt = work->was_lost = true; // an outcome that was reported to it is not recorded
        work->is_open = work->is_followed = false;
    }
}
