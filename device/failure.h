// SPDX-License-Identifier: BSD-2-Clause
// Why a queue pair went into error, for people: "transport retry counter exceeded" alone does not help.
#pragma once

#include "device/edge_stats.h"
#include "engine/engine.h"

#define ALB_FAILURE_TEXT_MAX 512

// One line: the queue pair, the operation, the peer, the last PSN, what was awaited, how often it was retried.
char *alb_failure_format(const struct alb_qp *qp, const struct alb_qp_failure *failure,
                         char text[ALB_FAILURE_TEXT_MAX]);

#define ALB_UNSENT_TEXT_MAX 320

// What of the device's datagrams has not left this host so far, and why: to stand behind that line. "": all have.
char *alb_failure_format_unsent(const struct alb_edge_stats *stats, char text[ALB_UNSENT_TEXT_MAX]);

// Logs it at level warning; if a peer did not answer, with what it may never have been sent.
void alb_failure_log(const struct alb_qp *qp, const struct alb_qp_failure *failure, const struct alb_edge_stats *stats);
