// SPDX-License-Identifier: BSD-2-Clause
// What UC and UD share: a send queue whose requests are done once their packets have been handed to the driver. They
// are not acknowledged, so a rate limits them (struct alb_pacer).
#pragma once

#include "engine/assembly.h"
#include "engine/deadline.h"
#include "engine/delivery.h"

typedef void alb_unreliable_fill(struct alb_qp *qp, const struct alb_send_wqe *wqe, uint32_t k, struct alb_roce *roce,
                                 struct alb_flow *flow);

struct alb_unreliable {
    struct alb_qp *qp;
    uint32_t cursor; // send queue index of the request being sent
    uint32_t sent;   // packets of it that have been sent
    bool is_open;    // its length and keys have been checked
    bool is_blocked; // it failed; what was sent before it completes first
    alb_psn next;
    size_t bytes;           // of the delivery layer's state, which begins with this
    struct alb_list unsent; // in the engine's list while packets may still be with the driver
    // The packet at sent of a request: headers but for psn, and where it goes.
    alb_unreliable_fill *fill;
    // Payload of each packet of a request but the last; NULL: mtu_bytes.
    uint32_t (*cut)(const struct alb_qp *qp, const struct alb_send_wqe *wqe);
    // The next packet of a request that goes, from sent on; NULL: sent.
    uint32_t (*skip)(const struct alb_unreliable *u, const struct alb_send_wqe *wqe);
    uint32_t mtu_bytes;             // payload of a full packet
    uint32_t uncounted;             // csa: packets that left where the peer reports nothing
    struct alb_deadline pace_timer; // csa: the association's rate holds it back until then

    // UC's receiving side.
    alb_psn expected;
    bool is_lost; // the rest of the message in progress is dropped
    struct alb_assembly assembly;
};

static inline struct alb_unreliable *alb_unreliable_of(const struct alb_qp *qp)
{
    return qp->delivery_state;
}

// bytes: of the delivery layer's state, which begins with a struct alb_unreliable. 0 or ENOMEM.
int alb_unreliable_create(struct alb_qp *qp, size_t bytes, alb_unreliable_fill *fill);
// The functions of struct alb_delivery_ops that all of them share.
void alb_unreliable_destroy(struct alb_qp *qp);
void alb_unreliable_on_state(struct alb_qp *qp, enum alb_qp_state old, alb_time now);
void alb_unreliable_work(struct alb_qp *qp, alb_time now);
bool alb_unreliable_is_quiet(const struct alb_qp *qp);
void alb_unreliable_query(const struct alb_qp *qp, struct alb_qp_attr *attr);

// The drop that a message counts as whose execution had that outcome.
enum alb_drop alb_unreliable_drop_of(enum alb_outcome outcome);
// The message coming in met a receive whose own key is bad: the receive completes in error, and the queue pair is in
// error (10.3.1.5).
enum alb_drop alb_unreliable_break_receive(struct alb_qp *qp, alb_time now);

// The driver has let go of everything handed to it: completes the requests that were waiting for that.
void alb_unreliable_retire_all(struct alb_engine *engine, alb_time now);

// ---- for builders ---------------------------------------------------------------------------------------------------

// The request that the next packet, or frame, is of; NULL: nothing may be sent now, and the source has been put where
// it is woken again.
struct alb_send_wqe *alb_unreliable_next(struct alb_unreliable *u, alb_time now);
// True if there is more to send, after such a NULL too.
bool alb_unreliable_has_more(const struct alb_unreliable *u);
// Gathers the payload of the next one behind its headers. False: a key is gone, the request has failed, and the packet
// is to be given up.
bool alb_unreliable_gather(struct alb_unreliable *u, struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                           uint32_t bytes);
// That packet, with so many bytes of payload, leaves.
void alb_unreliable_sent(struct alb_unreliable *u, struct alb_send_wqe *wqe, uint32_t bytes, alb_time now);
// All of it as a RoCE packet. False: the batch has no room.
bool alb_unreliable_send_packet(struct alb_unreliable *u, struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                                alb_time now);

// ---- ud.c -----------------------------------------------------------------------------------------------------------

// A datagram for a UD queue pair, whatever it came in.
struct alb_ud_message {
    const struct alb_datagram *datagram; // whose addresses the receive begins with
    const uint8_t *payload;
    uint32_t payload_bytes;
    uint32_t qkey;
    alb_qpn src_qpn;
    uint32_t imm_be;
    bool has_imm;
    bool solicited;
};
// Places it in a receive, which completes. Returns why it was dropped.
enum alb_drop alb_ud_take(struct alb_qp *qp, const struct alb_ud_message *message, alb_time now);
// The Q_Key that a request names.
uint32_t alb_ud_qkey(const struct alb_qp *qp, const struct alb_send_wqe *wqe);
