// SPDX-License-Identifier: BSD-2-Clause
// Why a queue pair went into error, for people: "transport retry counter exceeded" alone does not help.
#pragma once

#include "engine/engine.h"

#define ALB_FAILURE_TEXT_MAX 512

// One line: the queue pair, the operation, the peer, the last PSN, what was awaited, how often it was retried.
char *alb_failure_format(const struct alb_qp *qp, const struct alb_qp_failure *failure,
                         char text[ALB_FAILURE_TEXT_MAX]);

// Logs it at level warning.
void alb_failure_log(const struct alb_qp *qp, const struct alb_qp_failure *failure);
