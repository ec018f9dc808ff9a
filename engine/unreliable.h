// SPDX-License-Identifier: BSD-2-Clause
// What UC and UD share: a send queue whose requests are done once their packets have been handed to the driver. Nobody
// acknowledges them, so they are held to a rate (struct alb_pacer).
#pragma once

#include "engine/assembly.h"
#include "engine/delivery.h"

struct alb_unreliable {
    struct alb_qp *qp;
    uint32_t cursor; // send queue index of the request being sent
    uint32_t sent;   // packets of it that have been sent
    bool is_open;    // its length and keys have been checked
    bool is_blocked; // it failed; what was sent before it completes first
    alb_psn next;
    struct alb_list unsent; // in the engine's list while packets may still be with the driver
    // The packet at sent of a request: headers but for psn, and where it goes.
    void (*fill)(struct alb_qp *qp, const struct alb_send_wqe *wqe, uint32_t k, struct alb_roce *roce,
                 struct alb_flow *flow);
    uint32_t mtu_bytes; // payload of a full packet

    // UC's receiving side.
    alb_psn expected;
    bool is_lost; // the rest of the message in progress is dropped
    struct alb_assembly assembly;
};

static inline struct alb_unreliable *alb_unreliable_of(const struct alb_qp *qp)
{
    return qp->delivery_state;
}

int alb_unreliable_create(struct alb_qp *qp, void (*fill)(struct alb_qp *, const struct alb_send_wqe *, uint32_t,
                                                          struct alb_roce *, struct alb_flow *));
void alb_unreliable_destroy(struct alb_qp *qp);
void alb_unreliable_on_state(struct alb_qp *qp, enum alb_qp_state old, alb_time now);
void alb_unreliable_work(struct alb_qp *qp, alb_time now);
bool alb_unreliable_is_quiet(const struct alb_qp *qp);
void alb_unreliable_query(const struct alb_qp *qp, struct alb_qp_attr *attr);

// The message coming in met a receive whose own key is bad: the receive completes in error, and the queue pair is in
// error (10.3.1.5).
enum alb_drop alb_unreliable_break_receive(struct alb_qp *qp, alb_time now);

// The driver has let go of everything handed to it: completes the requests that were waiting for that.
void alb_unreliable_retire_all(struct alb_engine *engine, alb_time now);
