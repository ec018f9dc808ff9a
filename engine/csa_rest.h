// SPDX-License-Identifier: BSD-2-Clause
// Associations at rest. One with nothing in flight for a moment gives up its lists, timers and tables, and keeps in a
// small record what it has learned: how much may be in flight, and what each path is like. It is only a memory: where
// there is no room for it, or nothing happens for some seconds, the association goes idle and learns anew.
#pragma once

#include "base/slab.h"
#include "base/types.h"

struct alb_assoc;
struct alb_assoc_live;
struct alb_csa_engine;
struct alb_engine_config;

// The records of an engine.
void alb_rests_init(struct alb_csa_engine *csa, const struct alb_engine_config *config);
// What one costs, in bytes of the pool; 0: the pool is too small for any.
uint32_t alb_rest_cost_bytes(const struct alb_engine_config *config);
// Nothing of it is under way that a record could not keep: no gap of a path, no timer, no search.
bool alb_rest_can_begin(const struct alb_assoc_live *live);
// Keeps what has been learned; the caller ends what is live. Without memory nothing is kept.
void alb_rest_begin(struct alb_assoc_live *live);
// Gives it back to what has just come alive, if there is a record, which ends.
void alb_rest_end(struct alb_assoc_live *live, alb_time now);
// Ends the record, if there is one.
void alb_rest_forget(struct alb_csa_engine *csa, struct alb_assoc *assoc);
// Makes room: ends all of them. False: there was none.
bool alb_rests_forget_all(struct alb_csa_engine *csa);
// Called each second: ends those that have been there for two.
void alb_rests_age(struct alb_csa_engine *csa);
