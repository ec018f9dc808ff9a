// SPDX-License-Identifier: BSD-2-Clause
#include "sim/search_draft.h"

#include <string.h>

uint32_t alb_search_cut(struct alb_search *search, uint32_t at, uint32_t length, struct alb_model_span *spans)
{
    uint32_t count = length ? 1 + alb_search_below(search, search->sge_max) : alb_search_below(search, 2);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = i + 1 == count ? length : alb_search_below(search, length + 1);
        at += alb_search_below(search, SEARCH_GAP);
        spans[i] = (struct alb_model_span){at, part};
        at += part;
        length -= part;
    }
    return count;
}

// Pieces of the source anywhere, overlapping or not.
static uint32_t cut_source(struct alb_search *search, uint32_t length, struct alb_model_span *spans)
{
    uint32_t count = alb_search_cut(search, 0, length, spans);
    for (uint32_t i = 0; i < count; i++)
        spans[i].at = alb_search_below(search, search->source_bytes - spans[i].length + 1);
    return count;
}

uint32_t alb_search_draw_length(struct alb_search *search)
{
    uint32_t mtu = search->mtu_bytes;
    uint32_t length;
    switch (alb_search_below(search, 8)) {
    case 0:
        return 0;
    case 1:
        return 1 + alb_search_below(search, 16);
    case 2:
    case 3:
        length = mtu * (1 + alb_search_below(search, 3)) - 1 + alb_search_below(search, 3);
        return ALB_MIN(length, search->message_max);
    case 4:
        return alb_search_below(search, mtu);
    default:
        return alb_search_below(search, search->message_max + 1);
    }
}

static enum alb_wr_opcode draw_opcode(struct alb_search *search, enum alb_qp_type type)
{
    static const enum alb_wr_opcode rc[] = {
        ALB_WR_RDMA_WRITE,
        ALB_WR_RDMA_WRITE,
        ALB_WR_RDMA_WRITE,
        ALB_WR_RDMA_WRITE_WITH_IMM,
        ALB_WR_SEND,
        ALB_WR_SEND,
        ALB_WR_SEND_WITH_IMM,
        ALB_WR_RDMA_READ,
        ALB_WR_RDMA_READ,
        ALB_WR_RDMA_READ,
        ALB_WR_ATOMIC_CMP_AND_SWP,
        ALB_WR_ATOMIC_FETCH_AND_ADD,
        ALB_WR_ATOMIC_FETCH_AND_ADD,
        ALB_WR_ATOMIC_WRITE,
    };
    static const enum alb_wr_opcode uc[] = {ALB_WR_RDMA_WRITE, ALB_WR_RDMA_WRITE_WITH_IMM, ALB_WR_SEND,
                                            ALB_WR_SEND_WITH_IMM};
    static const enum alb_wr_opcode ud[] = {ALB_WR_SEND, ALB_WR_SEND_WITH_IMM};
    switch (type) {
    case ALB_QPT_RC:
        return rc[alb_search_below(search, ALB_COUNT(rc))];
    case ALB_QPT_XRC_SEND:
        return rc[alb_search_below(search, ALB_COUNT(rc) - 1)]; // no ATOMIC WRITE
    case ALB_QPT_UC:
        return uc[alb_search_below(search, ALB_COUNT(uc))];
    default:
        return ud[alb_search_below(search, ALB_COUNT(ud))];
    }
}

// Wrong in another way than it was drawn, if there is what it takes.
static void draw_other_wrong(struct alb_search *search, const struct alb_model_qp *qp, enum alb_search_wrong wrong,
                             struct alb_search_draft *draft)
{
    const struct alb_search_side *peer = &search->sides[1 - qp->side];
    const struct alb_model_op *op = &draft->op;
    uint32_t index = wrong == SEARCH_WRONG_WINDOW_OTHER ? (qp->index + 1) % search->qp_count : qp->index;
    const struct alb_search_window *window = &peer->qps[index].window;
    const struct alb_model_span *slice = &search->model.qps[qp->side][index].slice;
    bool is_possible = wrong <= SEARCH_WRONG_REGION_RIGHTS || (qp->type == ALB_QPT_RC && window->mw);
    draft->key = window->key;
    draft->at = op->remote_at;
    switch (wrong) {
    case SEARCH_WRONG_PD:
        draft->key = alb_region_key(peer->foreign_mr);
        break;
    case SEARCH_WRONG_REGION_RIGHTS:
        draft->key = alb_region_key(op->opcode == ALB_WR_RDMA_READ ? peer->written_mr : peer->read_mr);
        break;
    case SEARCH_WRONG_WINDOW_CLOSED:
        is_possible &= window->state == SEARCH_WINDOW_CLOSED;
        draft->at = slice->at;
        break;
    case SEARCH_WRONG_WINDOW_OTHER:
        is_possible &= index != qp->index;
        draft->at = slice->at;
        break;
    case SEARCH_WRONG_WINDOW_BOUNDS:
        draft->at = slice->at + slice->length - (op->length / 2 & ~7u);
        break;
    default:
        is_possible &= alb_model_is_atomic(op->opcode);
        draft->at = slice->at;
    }
    if (is_possible)
        draft->wrong = wrong;
}

// Most windows have not been opened yet when there is something to post, so that where there is one it is tried often.
static void draw_wrong_window(struct alb_search *search, const struct alb_model_qp *qp, struct alb_search_draft *draft)
{
    struct alb_model_op *op = &draft->op;
    if (!search->has_errors || op->length == 0 || qp->type != ALB_QPT_RC || !alb_search_is_remote(op->opcode) ||
        draft->wrong != SEARCH_WRONG_NOTHING || alb_prng_below(&search->more, 100) >= 10)
        return;
    enum alb_search_wrong wrong = SEARCH_WRONG_WINDOW_CLOSED + (enum alb_search_wrong)alb_prng_below(&search->more, 4);
    draw_other_wrong(search, qp, wrong, draft);
    if (draft->wrong != SEARCH_WRONG_NOTHING)
        op->fate = ALB_WC_REM_ACCESS_ERR;
}

static uint32_t right_for(enum alb_wr_opcode opcode)
{
    return alb_model_is_write(opcode)    ? ALB_ACCESS_REMOTE_WRITE
           : opcode == ALB_WR_RDMA_READ  ? ALB_ACCESS_REMOTE_READ
           : alb_model_is_atomic(opcode) ? ALB_ACCESS_REMOTE_ATOMIC
                                         : 0;
}

// Whatever its key is, the peer's queue pair may allow no such request.
static void draw_rights(struct alb_search *search, const struct alb_search_qp *qp, struct alb_search_draft *draft)
{
    const struct alb_search_side *peer = &search->sides[1 - qp->model->side];
    struct alb_model_op *op = &draft->op;
    uint32_t right = right_for(op->opcode);
    if ((peer->qps[qp->model->index].access & right) == right) {
        bool is_narrow =
            draft->wrong == SEARCH_WRONG_NOTHING && search->has_errors && alb_prng_below(&search->more, 100) < 30;
        if (is_narrow && op->opcode == ALB_WR_RDMA_READ)
            draft->narrow = alb_region_key(peer->read_mr);
        if (is_narrow && alb_model_is_write(op->opcode))
            draft->narrow = alb_region_key(peer->written_mr);
        return;
    }
    draft->wrong = SEARCH_WRONG_NOTHING;
    op->may_end = ALB_WC_SUCCESS;
    op->fate = alb_model_is_reliable(qp->model->type) ? ALB_WC_REM_INV_REQ_ERR : ALB_WC_SUCCESS;
    op->is_undeliverable = !alb_model_is_reliable(qp->model->type);
}

static void draw_wrong(struct alb_search *search, const struct alb_model_qp *qp, struct alb_search_draft *draft)
{
    enum alb_qp_type type = qp->type;
    struct alb_model_op *op = &draft->op;
    if (!search->has_errors || op->length == 0)
        return;
    if (alb_search_percent(search, 15)) {
        draft->wrong = alb_search_is_remote(op->opcode) && alb_search_percent(search, 60) ? SEARCH_WRONG_REMOTE_FLEETING
                                                                                          : SEARCH_WRONG_LOCAL_FLEETING;
        if (draft->wrong == SEARCH_WRONG_LOCAL_FLEETING && !draft->is_inline)
            op->may_end = ALB_WC_LOC_PROT_ERR;
        if (draft->wrong == SEARCH_WRONG_REMOTE_FLEETING && alb_model_is_reliable(type))
            op->may_end = ALB_WC_REM_ACCESS_ERR;
        return;
    }
    if (!alb_search_percent(search, 4))
        return;
    draft->wrong = alb_search_is_remote(op->opcode)
                       ? (enum alb_search_wrong)(SEARCH_WRONG_LOCAL_KEY + alb_search_below(search, 4))
                       : SEARCH_WRONG_LOCAL_KEY;
    if (draft->wrong == SEARCH_WRONG_LOCAL_KEY)
        op->fate = draft->is_inline ? ALB_WC_SUCCESS : ALB_WC_LOC_PROT_ERR;
    else if (alb_model_is_reliable(type))
        op->fate = ALB_WC_REM_ACCESS_ERR;
    else
        op->is_undeliverable = true;
    if (draft->wrong != SEARCH_WRONG_LOCAL_KEY && alb_prng_below(&search->more, 100) < 60)
        draw_other_wrong(search, qp, SEARCH_WRONG_PD + (enum alb_search_wrong)alb_prng_below(&search->more, 2), draft);
}

// Lets an XRC request name a queue that is not there.
static void draw_queue(struct alb_search *search, enum alb_qp_type type, struct alb_search_draft *draft)
{
    if (!alb_model_is_xrc(type) || !search->has_errors || draft->wrong != SEARCH_WRONG_NOTHING ||
        !alb_search_percent(search, 3))
        return;
    draft->wrong = SEARCH_WRONG_QUEUE;
    draft->op.fate = ALB_WC_REM_INV_REQ_ERR;
}

// Where the request works at the peer.
static void draw_remote(struct alb_search *search, const struct alb_model_qp *qp, struct alb_model_op *op)
{
    if (alb_model_is_atomic(op->opcode))
        op->remote_at = search->words_at + 8 * alb_search_below(search, ALB_MODEL_WORDS);
    else if (op->opcode == ALB_WR_ATOMIC_WRITE)
        op->remote_at = qp->slice.at + 8 * alb_search_below(search, qp->slice.length / 8);
    else if (op->opcode == ALB_WR_RDMA_READ && alb_search_percent(search, 40))
        op->remote_at = alb_search_below(search, search->source_bytes - op->length + 1);
    else
        op->remote_at = qp->slice.at + alb_search_below(search, qp->slice.length - op->length + 1);
}

static void draw_atomic(struct alb_search *search, const struct alb_model_qp *qp, struct alb_model_op *op)
{
    op->compare_add = alb_prng_u64(&search->prng);
    op->swap = alb_prng_u64(&search->prng);
    if (op->opcode == ALB_WR_ATOMIC_CMP_AND_SWP && alb_search_percent(search, 60)) // a value that may be there
        memcpy(&op->compare_add, search->sides[1 - qp->side].arena + op->remote_at, 8);
}

// Lets the request use the peer's window, if it works there; or lets a SEND close it.
static void draw_window(struct alb_search *search, const struct alb_search_qp *qp, struct alb_search_draft *draft)
{
    struct alb_search_window *window = &search->sides[1 - qp->model->side].qps[qp->model->index].window;
    struct alb_model_op *op = &draft->op;
    bool is_inside = op->remote_at - qp->model->slice.at < qp->model->slice.length;
    if (qp->model->type != ALB_QPT_RC || window->state != SEARCH_WINDOW_OPEN || draft->wrong != SEARCH_WRONG_NOTHING ||
        !alb_search_percent(search, 50))
        return;
    if (op->opcode == ALB_WR_SEND) {
        op->opcode = ALB_WR_SEND_WITH_INV;
        op->invalidate = window->key;
        op->is_fenced = true; // a READ through the window may be executed again until it has completed
        draft->through_window = window;
    } else if (alb_search_is_remote(op->opcode) && !alb_model_is_atomic(op->opcode) && is_inside) {
        draft->through_window = window;
    }
}

bool alb_search_draw_request(struct alb_search *search, struct alb_search_side *side, const struct alb_search_qp *qp,
                             struct alb_search_draft *draft)
{
    struct alb_model_op *op = &draft->op;
    enum alb_qp_type type = qp->model->type;
    op->opcode = draw_opcode(search, type);
    bool has_answer = op->opcode == ALB_WR_RDMA_READ || alb_model_is_atomic(op->opcode);
    bool is_word = alb_model_is_atomic(op->opcode) || op->opcode == ALB_WR_ATOMIC_WRITE;
    op->length = is_word ? 8 : alb_search_draw_length(search);
    if (type == ALB_QPT_UD)
        op->length = ALB_MIN(op->length, 4096u);
    op->is_signaled = alb_search_percent(search, 70);
    op->is_fenced = alb_search_percent(search, 10);
    op->imm = (uint32_t)alb_prng_u64(&search->prng);
    op->target = type == ALB_QPT_UD ? alb_search_below(search, search->qp_count) : 0;
    if (alb_search_is_remote(op->opcode))
        draw_remote(search, qp->model, op);
    if (alb_model_is_atomic(op->opcode))
        draw_atomic(search, qp->model, op);
    if (!has_answer) {
        op->local_count = cut_source(search, op->length, op->local);
        draft->is_inline = op->length <= qp->cap.inline_max_bytes && alb_search_percent(search, 40);
    } else {
        draft->slot = alb_search_find_slot(search, side);
        if (!draft->slot)
            return false;
        uint32_t at = search->slots_at + (uint32_t)(draft->slot - side->slots) * search->slot_bytes;
        op->local_count = alb_search_cut(search, at, op->length, op->local);
    }
    draw_wrong(search, qp->model, draft);
    draw_wrong_window(search, qp->model, draft);
    draw_queue(search, type, draft);
    draw_window(search, qp, draft);
    draw_rights(search, qp, draft);
    return true;
}
