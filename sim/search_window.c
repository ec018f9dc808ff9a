// SPDX-License-Identifier: BSD-2-Clause
// Memory windows in a search: a side opens one over the memory where the peer's queue pair writes, the peer uses its
// key, and one of the two closes it. A key is used between the bind's completion and the request that closes it, and
// then every use must succeed, or when the window is known to be closed (sim/search_draft.h), and then none may.
#include "sim/search_world.h"

bool alb_search_draw_window(struct alb_search *search, uint32_t side, uint32_t index, struct alb_send_wr *wr)
{
    struct alb_search_side *s = &search->sides[side];
    struct alb_search_window *window = &s->qps[index].window;
    const struct alb_model_span *slice = &search->model.qps[1 - side][index].slice;
    if (window->state == SEARCH_WINDOW_OPEN && !window->is_used) {
        *wr = (struct alb_send_wr){.opcode = ALB_WR_LOCAL_INV, .invalidate_rkey = window->key};
        return true;
    }
    if (window->state != SEARCH_WINDOW_CLOSED)
        return false;
    if (!window->mw && alb_mw_create(s->pd, ALB_MW_TYPE_2, &window->mw) != 0)
        return false;
    // Not soon one that it had: requests with that key may be under way, which must fail.
    uint32_t before = window->key ? window->key : alb_region_key(window->mw);
    window->key = (before & ~0xffu) | ((before + 1 + alb_search_below(search, 256) % 16) & 0xff);
    *wr = (struct alb_send_wr){
        .opcode = ALB_WR_BIND_MW,
        .bind = {window->mw, s->mr, s->iova + slice->at, slice->length,
                 ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ, window->key},
    };
    return true;
}

void alb_search_window_posted(struct alb_search_window *window, enum alb_wr_opcode opcode)
{
    window->state = opcode == ALB_WR_BIND_MW ? SEARCH_WINDOW_OPENING : SEARCH_WINDOW_CLOSING;
}

void alb_search_window_done(struct alb_search_qp *qp, const struct alb_model_op *op, enum alb_wc_status status)
{
    struct alb_search_window *window = &qp->window;
    if (status != ALB_WC_SUCCESS) // the queue pair has failed, and begins anew before the window does
        return;
    window->state = op->opcode == ALB_WR_BIND_MW ? SEARCH_WINDOW_OPEN : SEARCH_WINDOW_CLOSED;
    window->is_used = false;
}

void alb_search_window_end(struct alb_search_window *window)
{
    if (window->mw)
        alb_assert(alb_mw_destroy(window->mw) == 0);
    *window = (struct alb_search_window){0};
}
