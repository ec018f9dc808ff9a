// SPDX-License-Identifier: BSD-2-Clause
// Chooses which source of packets is next. Sources (queue pairs, associations, the queues of management datagrams and
// of replies to strangers) take turns, one burst each. For a policy that prefers some of them, the one that is due
// first goes first, of so many at the head of the line: to look at all of them would cost more the more there are.
#pragma once

#include "base/list.h"
#include "engine/tx.h"

struct alb_source;

enum alb_build_result {
    ALB_BUILD_IDLE, // nothing to send now; something will make it ready again
    ALB_BUILD_MORE, // has more to send: at the end of the line again
    ALB_BUILD_FULL, // the tx batch is full: it keeps its place at the front
};

struct alb_source {
    struct alb_list link; // in the line of those that are ready, or where it waits for leave to send (peer, pacer)
    bool is_ready;
    alb_time due; // 0: before all that have one
    // Adds packets to tx, a burst's worth at the most.
    enum alb_build_result (*build)(struct alb_source *source, struct alb_tx_builder *builder, alb_time now);
};

#define ALB_SCHEDULER_COMPARED 8

struct alb_scheduler {
    struct alb_list ready;
    uint32_t compared; // sources at the head of the line; 1: they take turns
};

void alb_scheduler_init(struct alb_scheduler *scheduler, uint32_t compared);
void alb_source_init(struct alb_source *source,
                     enum alb_build_result (*build)(struct alb_source *, struct alb_tx_builder *, alb_time));
// The source has something to send, or may try again. One that waits for leave to send comes back into the line: what
// it has now may not need any.
void alb_scheduler_wake(struct alb_scheduler *scheduler, struct alb_source *source);
// At the head of the line, also one that stands in it already.
void alb_scheduler_wake_first(struct alb_scheduler *scheduler, struct alb_source *source);
// Removes the source from whatever list it is in.
void alb_scheduler_remove(struct alb_source *source);
bool alb_scheduler_is_idle(const struct alb_scheduler *scheduler);
// Lets sources build until the batch is full or none is ready.
void alb_scheduler_run(struct alb_scheduler *scheduler, struct alb_tx_builder *builder, alb_time now);
