// SPDX-License-Identifier: BSD-2-Clause
// Which number a new queue pair gets. It does not reveal the next one, and none is reused soon: a peer remembers the
// numbers of destroyed queue pairs for a while (TIMEWAIT), and refuses a connection that comes with one of them.
#pragma once

#include "engine/verbs.h"

struct alb_engine;

#define ALB_QPN_REST_MAX 1024

// The indexes that were given back last, and rest: a ring of at most a quarter of all.
struct alb_qpn_rest {
    uint16_t *indexes;
    uint32_t capacity, count;
    uint32_t oldest;
};

// ENOMEM.
int alb_qpn_init(struct alb_engine *engine);
void alb_qpn_fini(struct alb_engine *engine);

// A free index: that of the number wanted, if it is not 0; otherwise a random one that does not rest, or, where all
// free ones do, the one that has rested longest. 0: none is free, or not the wanted one.
uint32_t alb_qpn_pick(struct alb_engine *engine, alb_qpn wanted);
// The queue pair with that index has gone.
void alb_qpn_retire(struct alb_engine *engine, uint32_t index);
