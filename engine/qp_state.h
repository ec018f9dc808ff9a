// SPDX-License-Identifier: BSD-2-Clause
// The table of legal moves of a queue pair.
#pragma once

#include "engine/verbs.h"

// True if a queue pair of that type may go from one state to another with exactly the attributes in mask (enum
// alb_qp_attr_mask).
bool alb_qp_state_can_move(enum alb_qp_type type, enum alb_qp_state from, enum alb_qp_state to, uint32_t mask);

const char *alb_qp_state_name(enum alb_qp_state state);
