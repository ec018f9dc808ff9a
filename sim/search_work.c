// SPDX-License-Identifier: BSD-2-Clause
// Random work: requests and receives, told to the model and posted, and what completes.
#include "sim/search_world.h"

#include <errno.h>
#include <string.h>

// ---- memory ---------------------------------------------------------------------------------------------------------

static bool is_open(const struct alb_search_slot *slot)
{
    if (slot->is_recv)
        return slot->number < slot->recvs->count && slot->recvs->all[slot->number].state == ALB_MODEL_OPEN;
    return slot->number < slot->qp->count && slot->qp->ops[slot->number].state == ALB_MODEL_OPEN;
}

void alb_search_free_slots(struct alb_search_side *side)
{
    for (uint32_t i = 0; i < SEARCH_SLOTS; i++)
        if (side->slots[i].is_taken && !is_open(&side->slots[i]))
            side->slots[i].is_taken = false;
}

static struct alb_search_slot *free_slot(const struct alb_search *search, struct alb_search_side *side)
{
    for (uint32_t tries = 0; tries < 2; tries++) {
        for (uint32_t i = 0; i < search->slot_count; i++)
            if (!side->slots[i].is_taken)
                return &side->slots[i];
        alb_search_free_slots(side);
    }
    return NULL;
}

// Cuts length bytes into pieces with gaps between them, from at on.
static uint32_t cut(struct alb_search *search, uint32_t at, uint32_t length, struct alb_model_span *spans)
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
    uint32_t count = cut(search, 0, length, spans);
    for (uint32_t i = 0; i < count; i++)
        spans[i].at = alb_search_below(search, search->source_bytes - spans[i].length + 1);
    return count;
}

static uint32_t draw_length(struct alb_search *search)
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

static void to_sges(const struct alb_search_side *side, const struct alb_model_span *spans, uint32_t count,
                    uint32_t key, struct alb_sge *sges)
{
    for (uint32_t i = 0; i < count; i++)
        sges[i] = (struct alb_sge){side->iova + spans[i].at, spans[i].length, key};
}

// ---- requests -------------------------------------------------------------------------------------------------------

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

// What is wrong with a request that must fail.
enum wrong {
    NOTHING,
    LOCAL_KEY,
    REMOTE_KEY,
    BOUNDS,
    RIGHTS,
    LOCAL_FLEETING, // not wrong yet
    REMOTE_FLEETING,
    QUEUE, // XRC: no such shared receive queue
};

struct draft {
    struct alb_model_op op;
    enum wrong wrong;
    bool is_inline;
    struct alb_search_slot *slot;
    struct alb_search_window *through_window; // the peer's, whose key it uses or invalidates
};

static bool is_remote(enum alb_wr_opcode opcode)
{
    return alb_model_is_write(opcode) || alb_model_is_atomic(opcode) || opcode == ALB_WR_RDMA_READ;
}

static void draw_wrong(struct alb_search *search, enum alb_qp_type type, struct draft *draft)
{
    struct alb_model_op *op = &draft->op;
    if (!search->has_errors || op->length == 0)
        return;
    if (alb_search_percent(search, 15)) {
        draft->wrong = is_remote(op->opcode) && alb_search_percent(search, 60) ? REMOTE_FLEETING : LOCAL_FLEETING;
        if (draft->wrong == LOCAL_FLEETING && !draft->is_inline)
            op->may_end = ALB_WC_LOC_PROT_ERR;
        if (draft->wrong == REMOTE_FLEETING && alb_model_is_reliable(type))
            op->may_end = ALB_WC_REM_ACCESS_ERR;
        return;
    }
    if (!alb_search_percent(search, 4))
        return;
    draft->wrong = is_remote(op->opcode) ? (enum wrong)(LOCAL_KEY + alb_search_below(search, 4)) : LOCAL_KEY;
    if (draft->wrong == LOCAL_KEY)
        op->fate = draft->is_inline ? ALB_WC_SUCCESS : ALB_WC_LOC_PROT_ERR;
    else if (alb_model_is_reliable(type))
        op->fate = ALB_WC_REM_ACCESS_ERR;
    else
        op->is_undeliverable = true;
}

// Lets an XRC request name a queue that is not there.
static void draw_queue(struct alb_search *search, enum alb_qp_type type, struct draft *draft)
{
    if (!alb_model_is_xrc(type) || !search->has_errors || draft->wrong != NOTHING || !alb_search_percent(search, 3))
        return;
    draft->wrong = QUEUE;
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
static void draw_window(struct alb_search *search, const struct alb_search_qp *qp, struct draft *draft)
{
    struct alb_search_window *window = &search->sides[1 - qp->model->side].qps[qp->model->index].window;
    struct alb_model_op *op = &draft->op;
    bool is_inside = op->remote_at - qp->model->slice.at < qp->model->slice.length;
    if (qp->model->type != ALB_QPT_RC || window->state != SEARCH_WINDOW_OPEN || draft->wrong != NOTHING ||
        !alb_search_percent(search, 50))
        return;
    if (op->opcode == ALB_WR_SEND) {
        op->opcode = ALB_WR_SEND_WITH_INV;
        op->invalidate = window->key;
        op->is_fenced = true; // a READ through the window may be executed again until it has completed
        draft->through_window = window;
    } else if (is_remote(op->opcode) && !alb_model_is_atomic(op->opcode) && is_inside) {
        draft->through_window = window;
    }
}

static bool draw_op(struct alb_search *search, struct alb_search_side *side, const struct alb_search_qp *qp,
                    struct draft *draft)
{
    struct alb_model_op *op = &draft->op;
    enum alb_qp_type type = qp->model->type;
    op->opcode = draw_opcode(search, type);
    bool has_answer = op->opcode == ALB_WR_RDMA_READ || alb_model_is_atomic(op->opcode);
    bool is_word = alb_model_is_atomic(op->opcode) || op->opcode == ALB_WR_ATOMIC_WRITE;
    op->length = is_word ? 8 : draw_length(search);
    if (type == ALB_QPT_UD)
        op->length = ALB_MIN(op->length, 4096u);
    op->is_signaled = alb_search_percent(search, 70);
    op->is_fenced = alb_search_percent(search, 10);
    op->imm = (uint32_t)alb_prng_u64(&search->prng);
    op->target = type == ALB_QPT_UD ? alb_search_below(search, search->qp_count) : 0;
    if (is_remote(op->opcode))
        draw_remote(search, qp->model, op);
    if (alb_model_is_atomic(op->opcode))
        draw_atomic(search, qp->model, op);
    if (!has_answer) {
        op->local_count = cut_source(search, op->length, op->local);
        draft->is_inline = op->length <= qp->cap.inline_max_bytes && alb_search_percent(search, 40);
    } else {
        draft->slot = free_slot(search, side);
        if (!draft->slot)
            return false;
        uint32_t at = search->slots_at + (uint32_t)(draft->slot - side->slots) * search->slot_bytes;
        op->local_count = cut(search, at, op->length, op->local);
    }
    draw_wrong(search, type, draft);
    draw_queue(search, type, draft);
    draw_window(search, qp, draft);
    return true;
}

static void make_inline(const struct alb_search_side *side, const struct alb_model_op *op, struct alb_sge *sges)
{
    for (uint32_t i = 0; i < op->local_count; i++)
        sges[i] = (struct alb_sge){(uintptr_t)side->arena + op->local[i].at, op->local[i].length, 0};
}

static void aim(const struct alb_search *search, const struct alb_search_side *peer, const struct draft *draft,
                struct alb_send_wr *wr)
{
    wr->remote_addr = peer->iova + draft->op.remote_at;
    wr->rkey = alb_region_key(peer->mr);
    switch (draft->wrong) {
    case REMOTE_KEY:
        wr->rkey ^= 0x40;
        break;
    case BOUNDS:
        wr->remote_addr = peer->iova + search->arena_bytes - (draft->op.length / 2 & ~7u);
        break;
    case REMOTE_FLEETING:
        wr->rkey = alb_region_key(peer->fleeting_mr);
        break;
    case RIGHTS:
        wr->rkey = alb_region_key(peer->closed_mr);
        break;
    default:
        break;
    }
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
                const struct draft *draft, uint32_t number)
{
    const struct alb_search_side *peer = &search->sides[1 - qp->model->side];
    const struct alb_model_op *op = &draft->op;
    struct alb_sge sges[ALB_MODEL_SGE_MAX];
    uint32_t key = alb_region_key(side->mr) ^ (draft->wrong == LOCAL_KEY ? 0x80 : 0);
    if (draft->wrong == LOCAL_FLEETING)
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
    if (draft->wrong == QUEUE)
        wr.remote_srqn ^= alb_search_percent(search, 50) ? 0x10000 : wr.remote_srqn;
    if (draft->is_inline)
        make_inline(side, op, sges);
    else
        to_sges(side, op->local, op->local_count, key, sges);
    if (is_remote(op->opcode))
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
    struct draft draft = {0};
    if (alb_qp_current_state(qp->qp) < ALB_QPS_RTS || qp->model->type == ALB_QPT_XRC_RECV)
        return;
    if (qp->model->type == ALB_QPT_RC && alb_search_percent(search, 8)) {
        post_window(search, qp);
        return;
    }
    if (!draw_op(search, s, qp, &draft))
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
    struct alb_search_slot *slot = free_slot(search, s);
    struct alb_model_recvs *recvs = qp->model->used;
    struct alb_model_recv recv = {0};
    struct alb_sge sges[ALB_MODEL_SGE_MAX];
    bool bell = false;
    if (!slot || alb_qp_current_state(qp->qp) == ALB_QPS_RESET || qp->model->type == ALB_QPT_XRC_SEND)
        return false;
    struct alb_srq *srq = qp->model->type == ALB_QPT_XRC_RECV ? s->named[index % ALB_MODEL_NAMED] : s->srq;
    recv.length = search->message_max + ALB_GRH_BYTES;
    if (!is_whole && search->has_short_recvs && alb_search_percent(search, 10))
        recv.length = draw_length(search);
    uint32_t at = search->slots_at + (uint32_t)(slot - s->slots) * search->slot_bytes;
    recv.local_count = cut(search, at, recv.length, recv.local);
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
        if (is_receive(wc))
            alb_model_on_recv(&search->model, qp->model, (uint32_t)wc->wr_id, wc, is_in_error(qp->qp));
        else
            alb_model_on_send(&search->model, qp->model, (uint32_t)wc->wr_id, wc, is_in_error(qp->qp));
    }
    return count;
}
