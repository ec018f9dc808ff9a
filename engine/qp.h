// SPDX-License-Identifier: BSD-2-Clause
// A queue pair inside the engine: what the verbs layer knows of it. What a delivery layer knows is behind
// delivery_state.
#pragma once

#include "engine/cq.h"
#include "engine/event.h"
#include "engine/qp_state.h"
#include "engine/recv_queue.h"
#include "engine/region.h"
#include "engine/scheduler.h"
#include "engine/send_queue.h"

struct alb_delivery_ops;
struct alb_peer;

struct alb_qp {
    struct alb_engine *engine;
    struct alb_pd *pd;
    void *user;
    enum alb_qp_type type;
    alb_qpn number;
    _Atomic uint32_t state; // enum alb_qp_state; written by alb_qp_set_state only
    struct alb_qp_attr attr;
    struct alb_qp_cap cap;
    bool sq_sig_all;
    struct alb_cq *send_cq, *recv_cq;
    struct alb_srq *srq;
    struct alb_xrcd *xrcd;        // XRC_RECV
    struct alb_list of_xrcd;      // XRC_RECV: its place among the queue pairs of the domain
    struct alb_srq *named_srq;    // XRC_RECV: the one that the message coming in names
    const struct alb_pd *keys_pd; // whose keys peers may use: pd; XRC_RECV: that of the queue named last
    struct alb_send_queue sq;
    struct alb_recv_queue rq;  // unused with an srq
    struct alb_recv_wqe *recv; // the receive that the message coming in uses
    bool recv_is_taken;
    bool is_established; // the first packet has come, or RTS was set
    bool last_wqe_raised;
    bool drain_raised;
    struct alb_flow flow;  // RC, UC: where its packets go
    struct alb_peer *peer; // RC: what it shares with others to the same endpoint
    const struct alb_delivery_ops *delivery;
    void *delivery_state;
    struct alb_source source; // its place in the scheduler
    struct alb_event_node event;
    struct alb_qp_failure failure;
    struct alb_list windows; // memory windows of type 2 bound on it
    struct alb_list groups;  // UD: its memberships (engine/group.h)
    struct alb_qp_stats *stats;
    struct alb_qp_stats own_stats; // where the driver supplies none
    struct alb_qp *_Atomic bell_next;
    _Atomic bool bell_is_rung;
    _Atomic bool wants_receive; // a message waits for one: posting it rings the bell
};

// alb_qp_current_state without a call.
static inline enum alb_qp_state alb_qp_state_of(const struct alb_qp *qp)
{
    return (enum alb_qp_state)atomic_load_explicit(&qp->state, memory_order_acquire);
}

// Where packets for queue pair qpn behind that address go.
void alb_flow_from_av(struct alb_flow *flow, const struct alb_av *av, alb_qpn qpn);

// The only writer of state. Enters ERR: flushes; leaves the sending states: stops delivery.
void alb_qp_set_state(struct alb_qp *qp, enum alb_qp_state state, alb_time now);

// The queue pair fails by itself: completes the request in trouble, remembers why, raises ALB_EVENT_QP_FAILED and
// enters ERR (SQE for a sending error of UC and UD). wqe may be NULL (trouble at the responder); else it must be the
// oldest one.
void alb_qp_fail(struct alb_qp *qp, struct alb_send_wqe *wqe, const struct alb_qp_failure *failure, alb_time now);

// Completes the oldest request of the send queue with the given status and retires it.
void alb_qp_complete_send(struct alb_qp *qp, enum alb_wc_status status, alb_time now);

// Raises SQ_DRAINED, once, if the queue pair is in SQD and all requests before the index started are retired: those
// from there on have not begun.
void alb_qp_note_drained(struct alb_qp *qp, uint32_t started);

#define ALB_ACK_TIMEOUT_STRETCH_MAX 4u // times T

// The local ACK timeout: ALB_TIME_NEVER, or T = 4.096 us * 2^timeout and up to stretch times that, as far as the
// specification allows (9.7.6.1.3: from T to 4 T). What is short is stretched, up to a quarter of a second: a peer in
// software may be off its processor for as long, and programs know NICs that take no less than that.
alb_time alb_qp_ack_timeout_ns(const struct alb_qp *qp, uint32_t stretch);

// True if the type's packets are acknowledged.
static inline bool alb_qp_is_reliable(const struct alb_qp *qp)
{
    return qp->type != ALB_QPT_UC && qp->type != ALB_QPT_UD;
}

// The shared receive queue that the message coming in uses, or NULL: the queue pair has a receive queue of its own.
static inline struct alb_srq *alb_qp_srq(const struct alb_qp *qp)
{
    return qp->named_srq ? qp->named_srq : qp->srq;
}

// Takes a receive for a message that comes in, unless one is taken; false if none is posted.
bool alb_qp_take_receive(struct alb_qp *qp);
// Completes the receive taken. wc carries opcode, status, byte_len, imm_data, flags, src_qpn; the rest is filled in.
void alb_qp_complete_receive(struct alb_qp *qp, struct alb_wc *wc, bool solicited, alb_time now);

// Completes everything that stands in the queues with WR_FLUSH_ERR.
void alb_qp_flush_send(struct alb_qp *qp, alb_time now);
void alb_qp_flush_receive(struct alb_qp *qp, alb_time now);
