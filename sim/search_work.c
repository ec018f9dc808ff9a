// SPDX-License-Identifier: BSD-2-Clause
// Random work: requests and receives, passed to the model and posted, and what completes.
#include "sim/search_draft.h"

#include <errno.h>

// ---- slots ----------------------------------------------------------------------------------------------------------

static bool is_open(const struct alb_search_slot *slot)
{
    if (slot->is_recv)
        return slot->number < slot->recvs->count && slot->recvs->all[slot->number].state == ALB_MODEL_OPEN;
    return slot->number < slot->qp->count && slot->qp->ops[slot->number].state == ALB_MODEL_OPEN;
}

void alb_search_reclaim_slots(struct alb_search_side *side)
{
    for (uint32_t i = 0; i < SEARCH_SLOTS; i++)
        if (side->slots[i].is_taken && !is_open(&side->slots[i]))
            side->slots[i].is_taken = false;
}

struct alb_search_slot *alb_search_find_slot(const struct alb_search *search, struct alb_search_side *side)
{
    for (uint32_t tries = 0; tries < 2; tries++) {
        for (uint32_t i = 0; i < search->slot_count; i++)
            if (!side->slots[i].is_taken)
                return &side->slots[i];
        alb_search_reclaim_slots(side);
    }
    return NULL;
}

static void to_sges(const struct alb_search_side *side, const struct alb_model_span *spans, uint32_t count,
                    uint32_t key, struct alb_sge *sges)
{
    for (uint32_t i = 0; i < count; i++)
        sges[i] = (struct alb_sge){side->iova + spans[i].at, spans[i].length, key};
}

// ---- requests -------------------------------------------------------------------------------------------------------

static void make_inline(const struct alb_search_side *side, const struct alb_model_op *op, struct alb_sge *sges)
{
    for (uint32_t i = 0; i < op->local_count; i++)
        sges[i] = (struct alb_sge){(uintptr_t)side->arena + op->local[i].at, op->local[i].length, 0};
}

static void aim(const struct alb_search *search, const struct alb_search_side *peer,
                const struct alb_search_draft *draft, struct alb_send_wr *wr)
{
    wr->remote_addr = peer->iova + draft->op.remote_at;
    wr->rkey = alb_region_key(peer->mr);
    switch (draft->wrong) {
    case SEARCH_WRONG_REMOTE_KEY:
        wr->rkey ^= 0x40;
        break;
    case SEARCH_WRONG_BOUNDS:
        wr->remote_addr = peer->iova + search->arena_bytes - (draft->op.length / 2 & ~7u);
        break;
    case SEARCH_WRONG_REMOTE_FLEETING:
        wr->rkey = alb_region_key(peer->fleeting_mr);
        break;
    case SEARCH_WRONG_RIGHTS:
        wr->rkey = alb_region_key(peer->closed_mr);
        break;
    default:
        break;
    }
    if (draft->wrong >= SEARCH_WRONG_PD) {
        wr->rkey = draft->key;
        wr->remote_addr = peer->iova + draft->at;
    }
    if (draft->narrow)
        wr->rkey = draft->narrow;
    if (draft->through_window)
        wr->rkey = draft->through_window->key;
}

static int hand_over(struct alb_search_qp *qp, const struct alb_send_wr *wr)
{
    int error = alb_qp_send_stage(qp->qp, wr);
    if (error)
        return error;
    alb_qp_send_commit(qp->qp);
    alb_engine_bell_ring(qp->qp);
    return 0;
}

static int send(struct alb_search *search, struct alb_search_side *side, struct alb_search_qp *qp,
                const struct alb_search_draft *draft, uint32_t number)
{
    const struct alb_search_side *peer = &search->sides[1 - qp->model->side];
    const struct alb_model_op *op = &draft->op;
    struct alb_sge sges[ALB_MODEL_SGE_MAX];
    uint32_t key = alb_region_key(side->mr) ^ (draft->wrong == SEARCH_WRONG_LOCAL_KEY ? 0x80 : 0);
    if (draft->wrong == SEARCH_WRONG_LOCAL_FLEETING)
        key = alb_region_key(side->fleeting_mr);
    struct alb_send_wr wr = {
        .wr_id = number,
        .opcode = op->opcode,
        .flags = (op->is_signaled ? ALB_SEND_SIGNALED : 0) | (op->is_fenced ? ALB_SEND_FENCE : 0) |
                 (draft->is_inline ? ALB_SEND_INLINE : 0),
        .sge = sges,
        .sge_count = op->local_count,
        .imm_data = op->imm,
        .invalidate_rkey = op->invalidate,
        .compare_add = op->compare_add,
        .swap = op->swap,
        .ah = side->ah,
        .remote_qpn = alb_qp_number(peer->qps[op->target].qp),
        .remote_qkey = 0x11,
    };
    if (alb_model_is_xrc(qp->model->type))
        wr.remote_srqn = alb_srq_number(peer->named[qp->model->index % ALB_MODEL_NAMED]);
    if (draft->wrong == SEARCH_WRONG_QUEUE)
        wr.remote_srqn ^= alb_search_percent(search, 50) ? 0x10000 : wr.remote_srqn;
    if (draft->is_inline)
        make_inline(side, op, sges);
    else
        to_sges(side, op->local, op->local_count, key, sges);
    if (alb_search_is_remote(op->opcode))
        aim(search, peer, draft, &wr);
    return hand_over(qp, &wr);
}

// True if error is none; else it must be that of a full queue.
static bool check_posted(struct alb_search *search, const struct alb_search_qp *qp, uint32_t open, int error)
{
    if (error == 0) {
        alb_model_posted(qp->model);
        search->result->requests++;
        return true;
    }
    alb_model_unpost(&search->model, qp->model);
    if (error != ENOMEM || open < qp->cap.send_wr_max)
        alb_model_fail(&search->model, "queue pair %u/%u: post refused with %d while %u of %u are open",
                       qp->model->side, qp->model->index, error, open, qp->cap.send_wr_max);
    return false;
}

static void post_window(struct alb_search *search, struct alb_search_qp *qp)
{
    struct alb_send_wr wr;
    if (!alb_search_draw_window(search, qp->model->side, qp->model->index, &wr))
        return;
    struct alb_model_op op = {.opcode = wr.opcode, .is_signaled = true};
    uint32_t open = alb_model_open(qp->model);
    wr.flags = ALB_SEND_SIGNALED;
    wr.wr_id = alb_model_post(&search->model, qp->model, &op);
    if (check_posted(search, qp, open, hand_over(qp, &wr)))
        alb_search_window_posted(&qp->window, wr.opcode);
}

void alb_search_post(struct alb_search *search, uint32_t side, uint32_t index)
{
    struct alb_search_side *s = &search->sides[side];
    struct alb_search_qp *qp = &s->qps[index];
    struct alb_search_draft draft = {0};
    if (alb_qp_current_state(qp->qp) < ALB_QPS_RTS || qp->model->type == ALB_QPT_XRC_RECV)
        return;
    if (qp->model->type == ALB_QPT_RC && alb_search_percent(search, 8)) {
        post_window(search, qp);
        return;
    }
    if (!alb_search_draw_request(search, s, qp, &draft))
        return;
    uint32_t open = alb_model_open(qp->model);
    uint32_t number = alb_model_post(&search->model, qp->model, &draft.op);
    if (!check_posted(search, qp, open, send(search, s, qp, &draft, number)))
        return;
    if (draft.slot)
        *draft.slot = (struct alb_search_slot){.is_taken = true, .qp = qp->model, .number = number};
    if (!draft.through_window)
        return;
    draft.through_window->is_used = true;
    if (draft.op.opcode == ALB_WR_SEND_WITH_INV)
        alb_search_window_posted(draft.through_window, draft.op.opcode);
}

// ---- receives -------------------------------------------------------------------------------------------------------

bool alb_search_post_recv(struct alb_search *search, uint32_t side, uint32_t index, bool is_whole)
{
    struct alb_search_side *s = &search->sides[side];
    struct alb_search_qp *qp = &s->qps[index];
    struct alb_search_slot *slot = alb_search_find_slot(search, s);
    struct alb_model_recvs *recvs = qp->model->used;
    struct alb_model_recv recv = {0};
    struct alb_sge sges[ALB_MODEL_SGE_MAX];
    bool bell = false;
    if (!slot || alb_qp_current_state(qp->qp) == ALB_QPS_RESET || qp->model->type == ALB_QPT_XRC_SEND)
        return false;
    struct alb_srq *srq = qp->model->type == ALB_QPT_XRC_RECV ? s->named[index % ALB_MODEL_NAMED] : s->srq;
    recv.length = search->message_max + ALB_GRH_BYTES;
    if (!is_whole && search->has_short_recvs && alb_search_percent(search, 10))
        recv.length = alb_search_draw_length(search);
    uint32_t at = search->slots_at + (uint32_t)(slot - s->slots) * search->slot_bytes;
    recv.local_count = alb_search_cut(search, at, recv.length, recv.local);
    to_sges(s, recv.local, recv.local_count, alb_region_key(s->mr), sges);
    uint32_t open = recvs->open;
    uint32_t number = alb_model_post_recv(&search->model, recvs, side, &recv);
    int error = srq ? alb_srq_post(srq, number, sges, recv.local_count)
                    : alb_qp_recv_post(qp->qp, number, sges, recv.local_count, &bell);
    if (error) {
        alb_model_unpost_recv(&search->model, recvs, side);
        if (error != ENOMEM || (!srq && open < qp->cap.recv_wr_max))
            alb_model_fail(&search->model, "queue pair %u/%u: receive refused with %d while %u are open", side, index,
                           error, open);
        return false;
    }
    *slot = (struct alb_search_slot){.is_taken = true, .is_recv = true, .recvs = recvs, .number = number};
    search->result->receives++;
    if (bell) {
        alb_engine_bell_ring(qp->qp);
        alb_sim_host_poke(s->host);
    }
    return true;
}

// ---- completions ----------------------------------------------------------------------------------------------------

static struct alb_search_qp *qp_of(struct alb_search *search, struct alb_search_side *side, const struct alb_wc *wc)
{
    for (uint32_t i = 0; i < search->qp_count; i++)
        if (alb_qp_number(side->qps[i].qp) == wc->qpn &&
            wc->qp == (side->qps[i].model->type == ALB_QPT_XRC_RECV ? NULL : side->qps[i].qp))
            return &side->qps[i];
    return NULL;
}

static bool is_in_error(const struct alb_qp *qp)
{
    enum alb_qp_state state = alb_qp_current_state(qp);
    return state == ALB_QPS_ERR || state == ALB_QPS_SQE;
}

// The engine says whose completion it is even of an error, which verbs leave open.
static bool is_receive(const struct alb_wc *wc)
{
    return wc->opcode & ALB_WC_RECV;
}

static void follow_window(struct alb_search_qp *qp, const struct alb_wc *wc)
{
    static const struct alb_model_op closed_by_peer = {.opcode = ALB_WR_SEND_WITH_INV};
    if (is_receive(wc)) {
        if (wc->status == ALB_WC_SUCCESS && wc->flags & ALB_WC_WITH_INV)
            alb_search_window_done(qp, &closed_by_peer, ALB_WC_SUCCESS);
        return;
    }
    if (wc->wr_id >= qp->model->count)
        return;
    const struct alb_model_op *op = &qp->model->ops[wc->wr_id];
    if (op->opcode == ALB_WR_BIND_MW || op->opcode == ALB_WR_LOCAL_INV)
        alb_search_window_done(qp, op, (enum alb_wc_status)wc->status);
}

static bool is_answered(const struct alb_search_qp *qp, const struct alb_wc *wc)
{
    return !is_receive(wc) && wc->status == ALB_WC_SUCCESS && wc->opcode != ALB_WC_BIND_MW &&
           wc->opcode != ALB_WC_LOCAL_INV && wc->wr_id < qp->model->count;
}

uint32_t alb_search_poll(struct alb_search *search, uint32_t side)
{
    struct alb_search_side *s = &search->sides[side];
    uint32_t count = 0;
    for (const struct alb_wc *wc; (wc = alb_cq_peek(s->cq)); alb_cq_pop(s->cq), count++) {
        struct alb_search_qp *qp = qp_of(search, s, wc);
        if (!qp) {
            alb_model_fail(&search->model, "side %u: a completion of no queue pair (%u)", side, wc->qpn);
            continue;
        }
        const struct alb_qp *peer = search->sides[1 - side].qps[qp->model->index].qp;
        if (is_in_error(peer) || alb_qp_current_state(peer) == ALB_QPS_RESET)
            qp->model->may_fail = true;
        follow_window(qp, wc);
        if (is_answered(qp, wc))
            alb_search_life_answered(search, qp);
        if (is_receive(wc))
            alb_model_on_recv(&search->model, qp->model, (uint32_t)wc->wr_id, wc, is_in_error(qp->qp));
        else
            alb_model_on_send(&search->model, qp->model, (uint32_t)wc->wr_id, wc, is_in_error(qp->qp));
    }
    for (uint32_t i = 0; i < search->qp_count && !search->is_elsewhere; i++)
        if (is_in_error(s->qps[i].qp))
            alb_model_check_broken(&search->model, s->qps[i].model);
    return count;
}
