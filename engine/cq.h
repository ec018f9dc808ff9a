// SPDX-License-Identifier: BSD-2-Clause
// Completion queue: a single-producer ring. The engine pushes; the program pops under a lock of its own.
#pragma once

#include "engine/event.h"
#include "engine/verbs.h"

#include <stdatomic.h>

struct alb_cq {
    struct alb_engine *engine;
    void *user;
    uint32_t refs; // queue pairs that use it, each use counted
    _Atomic bool overrun;
    bool is_silent; // never notifies
    bool has_told;  // that it has overrun, and has taken nothing since
    struct alb_event_node event;
    struct alb_wc *entries;
    uint32_t capacity;                  // a power of two
    uint32_t limit;                     // how many it takes: the capacity, or the configured limit
    _Alignas(64) _Atomic uint32_t tail; // written by the engine
    _Atomic uint32_t solicited;         // behind the last solicited one, or error
    _Atomic uint32_t arm;               // enum alb_cq_arm
    _Alignas(64) _Atomic uint32_t head; // written by the program
};

// Appends a completion (its timestamp is set to now) and raises the notification it is armed for. solicited: an
// unsolicited one leaves a queue that is armed for solicited completions only asleep (errors count as solicited).
// False: the queue was full; it is then overrun, ALB_EVENT_CQ_ERR is raised (once until it takes a completion again),
// and the caller puts its queue pair into error.
bool alb_cq_push(struct alb_cq *cq, const struct alb_wc *wc, bool solicited, alb_time now);
// Forgets the queued completions of a queue pair.
void alb_cq_forget_qp(struct alb_cq *cq, const struct alb_qp *qp);
