// SPDX-License-Identifier: BSD-2-Clause
// The seam between the verbs layer and the delivery layers below it. A delivery layer carries messages between queue
// pairs: it cuts them into packets and knows what arrived. What a message means is the verbs layer's (engine/inbound.h,
// engine/outbound.h, engine/qp.h), which it calls; the verbs layer calls it only through this table.
#pragma once

#include "engine/qp.h"
#include "wire/roce.h"

// One packet, decoded. It lives during the call only.
struct alb_packet {
    const struct alb_datagram *datagram;
    const struct alb_opcode_info *info;
    struct alb_roce roce;
    const uint8_t *payload;
    uint32_t payload_bytes;
};

struct alb_delivery_ops {
    const char *name;
    // Memory for delivery_state; ENOMEM. The queue pair is in RESET.
    int (*create)(struct alb_qp *qp);
    void (*destroy)(struct alb_qp *qp);
    // An attribute that the layer must follow has changed, before the state does: into RTR it learns its peer, into RTS
    // its timers. ENOMEM if the peer table is full.
    int (*modify)(struct alb_qp *qp, uint32_t mask, enum alb_qp_state next);
    // The state has just changed from old.
    void (*on_state)(struct alb_qp *qp, enum alb_qp_state old, alb_time now);
    // There may be new work in the send queue.
    void (*work)(struct alb_qp *qp, alb_time now);
    // A packet whose destination is this queue pair, in RTR or later. Returns why it was dropped, or ALB_DROP_NONE.
    enum alb_drop (*rx)(struct alb_qp *qp, const struct alb_packet *packet, alb_time now);
    // Such a packet before it is decoded, at least a BTH, if it is of the kind that comes most often. False: nothing
    // has been done, and rx is to decide. NULL: there is no such kind.
    bool (*rx_usual)(struct alb_qp *qp, const struct alb_datagram *datagram, alb_time now);
    // alb_qp_farewell; NULL where nothing is acknowledged.
    void (*farewell)(struct alb_qp *qp);
    // Nothing unacknowledged and nothing unanswered.
    bool (*is_quiet)(const struct alb_qp *qp);
    // The PSN to report as sq_psn and rq_psn when queried.
    void (*query)(const struct alb_qp *qp, struct alb_qp_attr *attr);
};

extern const struct alb_delivery_ops alb_rc_ops; // RC with the InfiniBand specification's PSN rules
extern const struct alb_delivery_ops alb_uc_ops;
extern const struct alb_delivery_ops alb_ud_ops;
