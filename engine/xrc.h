// SPDX-License-Identifier: BSD-2-Clause
// XRC inside the engine: how a request finds the shared receive queue that it names.
#pragma once

#include "engine/inbound.h"

// A request that the queue pair (XRC_RECV) is about to execute names a shared receive queue: its receives and the keys
// of its protection domain are used from now on. INVALID_REQUEST: no such queue in the domain of the queue pair, or not
// the one that the message in progress began with.
enum alb_outcome alb_xrc_name(struct alb_qp *qp, uint32_t number, bool is_in_progress);

// An answer is about to be read from memory that the keys of that queue's protection domain stand for. The same
// refusals; a message in progress keeps its queue.
enum alb_outcome alb_xrc_name_keys(struct alb_qp *qp, uint32_t number);

// The queue is about to be destroyed.
void alb_xrc_forget_srq(struct alb_srq *srq);
