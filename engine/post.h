// SPDX-License-Identifier: BSD-2-Clause
// Between the files that put requests into a send queue, for the thread that posts.
#pragma once

#include "engine/qp.h"

// EINVAL: the state takes no requests; ENOMEM: there is no room for so many.
int alb_post_may_stage(const struct alb_qp *qp, uint32_t count);
// Takes the next place for a request that may be staged, and fills it.
struct alb_send_wqe *alb_post_fill(struct alb_qp *qp, const struct alb_send_wr *wr, uint64_t length);

// reflect_post.c: a message that asks for a level or for its stages; the caller has checked it. Errors as
// alb_qp_txn_stage.
int alb_reflect_stage_message(struct alb_qp *qp, const struct alb_send_wr *wr, uint64_t length);
// What was staged is handed over, or taken back.
void alb_reflect_commit(struct alb_qp *qp);
void alb_reflect_abort(struct alb_qp *qp);
