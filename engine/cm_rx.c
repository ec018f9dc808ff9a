// SPDX-License-Identifier: BSD-2-Clause
// Messages that come in for connections. Every one may be a repetition, late, or forged: it acts only where it names an
// id of ours by number, comes from that id's peer, and fits the state. The random half of the transaction id guards the
// one state in which the peer's own number is not known yet.
#include "engine/cm_impl.h"

// ---- requests -------------------------------------------------------------------------------------------------------

struct alb_cm_id *alb_cm_admit(struct alb_cm_id *listener, const struct alb_cm_arrival *arrival)
{
    struct alb_engine *engine = listener->engine;
    if (listener->untaken_count >= listener->listen.backlog || !alb_cm_has_room_for_strangers(engine->cm))
        return NULL;
    struct alb_cm_id *id = alb_cm_take(engine);
    if (!id)
        return NULL;
    id->av = arrival->av;
    id->gsi_qpn = arrival->gsi_qpn;
    id->transaction = arrival->message->transaction;
    id->received = *arrival->message;
    id->listener = listener;
    alb_list_push_back(&listener->untaken, &id->sibling);
    listener->untaken_count++;
    return id;
}

// A number comes back now and then, a transaction does not.
bool alb_cm_is_repeated(const struct alb_cm_id *id, const struct alb_cm_arrival *arrival)
{
    return id->transaction == arrival->message->transaction;
}

// A request that came before.
static enum alb_drop on_repeated_req(struct alb_cm_id *id, const struct alb_cm_arrival *arrival)
{
    switch (id->state) {
    case ALB_CM_REQ_RECEIVED:
        alb_cm_send_mra(id);
        break;
    case ALB_CM_REP_SENT:
    case ALB_CM_REJECTED:
        alb_cm_send(id);
        break;
    case ALB_CM_TIMEWAIT:
        alb_cm_answer_rej(id->engine, arrival, ALB_CM_ANSWERS_REQ, ALB_CM_REJ_STALE_CONNECTION);
        break;
    default:
        break;
    }
    return ALB_DROP_DUPLICATE;
}

// The peer has taken the number of an id that we hold for another: what only lingers gives it up. False: nothing does.
static bool gives_number_up(struct alb_cm_id *id)
{
    if (id->state != ALB_CM_REJECTED && id->state != ALB_CM_TIMEWAIT)
        return false;
    alb_cm_forget_remote(id);
    return true;
}

// Its sender will send packets that our side can't take, and no answer but a rejection can tell it another MTU. The
// packets of csa are as long as their path carries, whatever its queue pairs were told.
static bool is_too_long(const struct alb_engine *engine, const struct alb_cm_req *req)
{
    return !engine->csa && req->mtu > alb_cm_mtu_max(engine);
}

// Why a request cannot go to any listener; 0: it can.
static enum alb_cm_rej_reason flaw_of(const struct alb_cm_req *req, const struct alb_cm_id *listener)
{
    if (!listener)
        return ALB_CM_REJ_INVALID_SERVICE_ID;
    if (!alb_cm_is_connected_service(req))
        return ALB_CM_REJ_INVALID_TRANSPORT_TYPE;
    return is_too_long(listener->engine, req) ? ALB_CM_REJ_INVALID_MTU : 0;
}

// The peer's, within what a stranger may ask of us: anybody can send a request in anybody's name. An answer is repeated
// a few times only, since the request is, too.
static void take_terms(struct alb_cm_id *id, const struct alb_cm_req *req)
{
    id->timewait_ns = alb_cm_code_ns(req->primary.ack_timeout);
    id->retries = ALB_MIN(req->max_cm_retries, (uint8_t)ALB_CM_STRANGER_RETRIES);
    id->timeout_ns =
        ALB_MIN(alb_cm_code_ns(req->local_response_timeout) + id->timewait_ns, ALB_CM_STRANGER_NS / (id->retries + 1u));
}

// The peer asks with a queue pair that we think is connected: it may have lost that connection (12.9.8.3.1). Or
// somebody has guessed the number, who can neither read nor give the peer's answer.
static void on_stale(struct alb_cm_id *stale, const struct alb_cm_arrival *arrival, alb_time now)
{
    alb_cm_answer_rej(stale->engine, arrival, ALB_CM_ANSWERS_REQ, ALB_CM_REJ_STALE_CONNECTION);
    bool is_asked = stale->is_doubted && now - stale->doubted_at < ALB_CM_DOUBT_NS;
    if (stale->state != ALB_CM_ESTABLISHED || is_asked)
        return;
    stale->is_doubted = true;
    stale->doubted_at = now;
    alb_cm_send_doubt(stale);
}

static enum alb_drop on_req(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now)
{
    const struct alb_cm_message *message = arrival->message;
    struct alb_cm_id *id = alb_cm_find_remote(engine, message->local_id, &arrival->av.peer);
    if (id && alb_cm_is_repeated(id, arrival))
        return on_repeated_req(id, arrival);
    if (id && !gives_number_up(id)) {
        alb_cm_answer_rej(engine, arrival, ALB_CM_ANSWERS_REQ, ALB_CM_REJ_STALE_CONNECTION);
        return ALB_DROP_NONE;
    }
    struct alb_cm_id *stale = alb_cm_find_qpn(engine, message->req.qpn, &arrival->av.peer);
    if (stale) {
        on_stale(stale, arrival, now);
        return ALB_DROP_NONE;
    }
    struct alb_cm_id *listener = alb_cm_find_listener(engine, message->req.service_id, &arrival->av.local);
    enum alb_cm_rej_reason flaw = flaw_of(&message->req, listener);
    if (flaw) {
        alb_cm_answer_rej(engine, arrival, ALB_CM_ANSWERS_REQ, flaw);
        return ALB_DROP_NONE;
    }
    id = alb_cm_admit(listener, arrival);
    if (!id)
        return ALB_DROP_NO_RESOURCES; // the peer tries again
    alb_cm_set_state(id, ALB_CM_REQ_RECEIVED);
    take_terms(id, &message->req);
    bool is_new = alb_cm_learn_remote(id, message->local_id) && alb_cm_learn_qpn(id, message->req.qpn);
    alb_assert(is_new);
    alb_cm_raise(id, ALB_CM_EVENT_REQUEST);
    return ALB_DROP_NONE;
}

// ---- what follows on a request --------------------------------------------------------------------------------------

// The id that a message is for, if it comes from the peer that the id knows by that number.
static struct alb_cm_id *find(struct alb_engine *engine, const struct alb_cm_arrival *arrival)
{
    struct alb_cm_id *id = alb_cm_find_local(engine, arrival->message->remote_id, &arrival->av.peer);
    return id && id->is_remote_known && !id->is_question && id->remote_id == arrival->message->local_id ? id : NULL;
}

// The id that has sent a request which the message answers: the first one to come from that peer.
static struct alb_cm_id *find_asking(struct alb_engine *engine, const struct alb_cm_arrival *arrival)
{
    struct alb_cm_id *id = alb_cm_find_local(engine, arrival->message->remote_id, &arrival->av.peer);
    return id && id->state == ALB_CM_REQ_SENT && id->transaction == arrival->message->transaction ? id : NULL;
}

static enum alb_drop on_first_rep(struct alb_cm_id *id, const struct alb_cm_arrival *arrival)
{
    const struct alb_cm_message *message = arrival->message;
    if (!alb_cm_learn_remote(id, message->local_id) || !alb_cm_learn_qpn(id, alb_cm_rep_qpn(&message->rep))) {
        alb_cm_forget_peer(id);
        alb_cm_answer_rej(id->engine, arrival, ALB_CM_ANSWERS_REP, ALB_CM_REJ_STALE_CONNECTION);
        return ALB_DROP_STALE_RESPONSE; // asked again until the peer knows better
    }
    alb_cm_disarm(id);
    id->gsi_qpn = arrival->gsi_qpn;
    id->received = *message;
    alb_cm_set_state(id, ALB_CM_REP_RECEIVED);
    alb_cm_raise(id, ALB_CM_EVENT_RESPONSE);
    return ALB_DROP_NONE;
}

static enum alb_drop on_rep(struct alb_engine *engine, const struct alb_cm_arrival *arrival)
{
    struct alb_cm_id *id = find_asking(engine, arrival);
    if (id)
        return on_first_rep(id, arrival);
    id = find(engine, arrival);
    if (!id) {
        alb_cm_answer_rej(engine, arrival, ALB_CM_ANSWERS_REP, ALB_CM_REJ_INVALID_COMM_ID);
        return ALB_DROP_STALE_RESPONSE;
    }
    if (id->state == ALB_CM_REP_RECEIVED)
        alb_cm_send_mra(id);
    else if ((id->state == ALB_CM_ESTABLISHED && id->sent.type == ALB_CM_RTU) || id->state == ALB_CM_REJECTED)
        alb_cm_send(id);
    return ALB_DROP_DUPLICATE;
}

static enum alb_drop on_rtu(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now)
{
    struct alb_cm_id *id = find(engine, arrival);
    if (!id)
        return ALB_DROP_STALE_RESPONSE;
    if (id->state == ALB_CM_REJECTED)
        alb_cm_send(id); // the peer has not heard of it
    return alb_cm_notice_traffic(id, now) == 0 ? ALB_DROP_NONE : ALB_DROP_DUPLICATE;
}

// The id that waits for what the peer asks patience for. One that waits for nothing has no deadline to be moved.
static struct alb_cm_id *find_delayed(struct alb_engine *engine, const struct alb_cm_arrival *arrival)
{
    uint8_t answers = arrival->message->mra.answers;
    if (answers == ALB_CM_ANSWERS_REQ)
        return find_asking(engine, arrival);
    struct alb_cm_id *id = answers == ALB_CM_ANSWERS_REP ? find(engine, arrival) : NULL;
    return id && id->state == ALB_CM_REP_SENT ? id : NULL;
}

static enum alb_drop on_mra(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now)
{
    const struct alb_cm_mra *mra = &arrival->message->mra;
    struct alb_cm_id *id = find_delayed(engine, arrival);
    if (!id)
        return ALB_DROP_STALE_RESPONSE;
    if (id->is_delayed)
        return ALB_DROP_DUPLICATE;
    id->is_delayed = true;
    alb_cm_arm(id, alb_cm_code_ns(mra->service_timeout) + id->timewait_ns, now);
    return ALB_DROP_NONE;
}

// ---- rejection ------------------------------------------------------------------------------------------------------

// A peer that gives up may never have learnt our number: then it is not connected.
static struct alb_cm_id *find_rejected(struct alb_engine *engine, const struct alb_cm_arrival *arrival)
{
    struct alb_cm_id *id = find_asking(engine, arrival);
    if (!id)
        id = find(engine, arrival);
    if (id || arrival->message->rej.reason != ALB_CM_REJ_TIMEOUT)
        return id;
    id = alb_cm_find_remote(engine, arrival->message->local_id, &arrival->av.peer);
    return id && (id->state == ALB_CM_REQ_RECEIVED || id->state == ALB_CM_REP_SENT) ? id : NULL;
}

static void on_rejected(struct alb_cm_id *id, const struct alb_cm_message *message)
{
    id->received = *message;
    if (id->listener) // not reported yet
        id->is_orphan = true;
    alb_cm_raise(id, ALB_CM_EVENT_REJECTED);
    alb_cm_set_state(id, ALB_CM_IDLE);
}

// True if the request has been, or will be, sent again instead.
static bool is_overcome(struct alb_cm_id *id, const struct alb_cm_rej *rej, alb_time now)
{
    switch (rej->reason) {
    case ALB_CM_REJ_INVALID_SERVICE_ID:
        return alb_cm_retries_after_refusal(id, now);
    case ALB_CM_REJ_INVALID_MTU:
        return alb_cm_asks_for_less(id, rej, now);
    default:
        return false;
    }
}

static enum alb_drop on_rej(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now)
{
    struct alb_cm_id *id = find_rejected(engine, arrival);
    if (!id)
        return ALB_DROP_STALE_RESPONSE;
    switch (id->state) {
    case ALB_CM_REQ_SENT:
        if (!is_overcome(id, &arrival->message->rej, now))
            on_rejected(id, arrival->message);
        return ALB_DROP_NONE;
    case ALB_CM_REQ_RECEIVED:
    case ALB_CM_REP_SENT:
    case ALB_CM_REP_RECEIVED:
        on_rejected(id, arrival->message);
        return ALB_DROP_NONE;
    case ALB_CM_ESTABLISHED:
    case ALB_CM_DREQ_SENT:
        alb_cm_raise(id, ALB_CM_EVENT_DISCONNECTED);
        alb_cm_enter_timewait(id, now);
        return ALB_DROP_NONE;
    default:
        return ALB_DROP_DUPLICATE;
    }
}

// ---- disconnection --------------------------------------------------------------------------------------------------

static enum alb_drop on_dreq(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now)
{
    struct alb_cm_id *id = find(engine, arrival);
    if (!id) {
        alb_cm_answer_drep(engine, arrival); // it has ended here already
        return ALB_DROP_NONE;
    }
    if (id->state == ALB_CM_TIMEWAIT) { // whichever queue pair it names
        alb_cm_send_drep(id);
        return ALB_DROP_DUPLICATE;
    }
    if (arrival->message->dreq_qpn != id->local_qpn)
        return ALB_DROP_BAD_REQUEST;
    switch (id->state) {
    case ALB_CM_REP_SENT: // the RTU was lost, but there must have been one
        alb_cm_notice_traffic(id, now);
        break;
    case ALB_CM_ESTABLISHED:
    case ALB_CM_DREQ_SENT: // both want to end it
        break;
    default:
        return ALB_DROP_BAD_REQUEST;
    }
    alb_cm_send_drep(id);
    alb_cm_raise(id, ALB_CM_EVENT_DISCONNECTED);
    alb_cm_enter_timewait(id, now);
    return ALB_DROP_NONE;
}

static enum alb_drop on_drep(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now)
{
    struct alb_cm_id *id = find(engine, arrival);
    bool is_awaited = id && (id->state == ALB_CM_DREQ_SENT || (id->state == ALB_CM_ESTABLISHED && id->is_doubted));
    if (!is_awaited)
        return ALB_DROP_STALE_RESPONSE;
    alb_cm_raise(id, ALB_CM_EVENT_DISCONNECTED);
    alb_cm_enter_timewait(id, now);
    return ALB_DROP_NONE;
}

static enum alb_drop on_lap(struct alb_engine *engine, const struct alb_cm_arrival *arrival)
{
    if (!find(engine, arrival))
        return ALB_DROP_STALE_RESPONSE;
    alb_cm_answer_apr(engine, arrival);
    return ALB_DROP_NONE;
}

enum alb_drop alb_cm_rx(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now)
{
    switch (arrival->message->type) {
    case ALB_CM_REQ:
        return on_req(engine, arrival, now);
    case ALB_CM_MRA:
        return on_mra(engine, arrival, now);
    case ALB_CM_REJ:
        return on_rej(engine, arrival, now);
    case ALB_CM_REP:
        return on_rep(engine, arrival);
    case ALB_CM_RTU:
        return on_rtu(engine, arrival, now);
    case ALB_CM_DREQ:
        return on_dreq(engine, arrival, now);
    case ALB_CM_DREP:
        return on_drep(engine, arrival, now);
    case ALB_CM_SIDR_REQ:
        return alb_cm_rx_sidr_req(engine, arrival);
    case ALB_CM_SIDR_REP:
        return alb_cm_rx_sidr_rep(engine, arrival, now);
    case ALB_CM_LAP:
        return on_lap(engine, arrival);
    case ALB_CM_APR: // nothing here asks for one
        break;
    }
    return ALB_DROP_BAD_REQUEST;
}
