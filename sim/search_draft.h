// SPDX-License-Identifier: BSD-2-Clause
// Requests as a search draws them: valid ones, and some that must fail.
#pragma once

#include "sim/search_world.h"

// What is wrong with a request that must fail.
enum alb_search_wrong {
    SEARCH_WRONG_NOTHING,
    SEARCH_WRONG_LOCAL_KEY,
    SEARCH_WRONG_REMOTE_KEY,
    SEARCH_WRONG_BOUNDS,
    SEARCH_WRONG_RIGHTS,
    SEARCH_WRONG_LOCAL_FLEETING, // not wrong yet
    SEARCH_WRONG_REMOTE_FLEETING,
    SEARCH_WRONG_QUEUE, // XRC: no such shared receive queue
    SEARCH_WRONG_PD,
    SEARCH_WRONG_REGION_RIGHTS, // of a region that is only read, or only written
    SEARCH_WRONG_WINDOW_CLOSED, // it has been open
    SEARCH_WRONG_WINDOW_OTHER,  // another queue pair's
    SEARCH_WRONG_WINDOW_BOUNDS,
    SEARCH_WRONG_WINDOW_RIGHTS, // no window of a search opens memory to atomics
};

struct alb_search_draft {
    struct alb_model_op op;
    enum alb_search_wrong wrong;
    uint32_t key, at; // from WRONG_PD on: the peer's key that it names, and where in the peer's arena
    uint32_t narrow;  // if not 0: the right key of a region that opens memory to such requests and no others
    bool is_inline;
    struct alb_search_slot *slot;
    struct alb_search_window *through_window; // the peer's, whose key it uses or invalidates
};

static inline bool alb_search_is_remote(enum alb_wr_opcode opcode)
{
    return alb_model_is_write(opcode) || alb_model_is_atomic(opcode) || opcode == ALB_WR_RDMA_READ;
}

// Draws a request for the queue pair. False: it needs a slot, and none is free.
bool alb_search_draw_request(struct alb_search *search, struct alb_search_side *side, const struct alb_search_qp *qp,
                             struct alb_search_draft *draft);
uint32_t alb_search_draw_length(struct alb_search *search);
// Cuts length bytes into pieces with gaps between them, from at on; returns how many.
uint32_t alb_search_cut(struct alb_search *search, uint32_t at, uint32_t length, struct alb_model_span *spans);
