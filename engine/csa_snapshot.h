// SPDX-License-Identifier: BSD-2-Clause
// A READ of a transactional region is answered with what stood there when it was executed, however many segments the
// answer takes, and however often one of them goes again: so it is copied, into memory of the pool. Of that there is a
// limit for all peers together (reflect_snapshot_bytes_max): a READ that finds it reached waits, unless its peer may
// have some of a reserve; one that is longer than the limit is refused. What is kept for a requester that is gone makes
// room for others: if it is heard once more, it is refused.
#pragma once

#include "engine/csa.h"

// Checks the memory that the answer to a READ is to come from, and copies it if it must not change. RNR: not now.
// TOO_LARGE: never.
enum alb_outcome alb_csa_snapshot_take(struct alb_csa *csa, struct alb_csa_answer *answer);
// The answer is not needed any more. Nothing happens to one without a copy.
void alb_csa_snapshot_put(struct alb_csa *csa, struct alb_csa_answer *answer);
