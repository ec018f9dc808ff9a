// SPDX-License-Identifier: BSD-2-Clause
// What the user of the connection manager asks for.
#include "engine/cm_impl.h"

#include <errno.h>

int alb_cm_id_create(struct alb_engine *engine, void *user, struct alb_cm_id **out)
{
    if (!engine->cm)
        return ENODEV;
    struct alb_cm_id *id = alb_cm_take(engine);
    if (!id)
        return ENOMEM;
    id->user = user;
    *out = id;
    return 0;
}

enum alb_cm_state alb_cm_id_state(const struct alb_cm_id *id)
{
    return id->state;
}

void alb_cm_id_set_user(struct alb_cm_id *id, void *user)
{
    id->user = user;
}

void alb_cm_id_set_ece(struct alb_cm_id *id, const struct alb_cm_ece *ece)
{
    id->ece = *ece;
}

uint32_t alb_cm_id_number(const struct alb_cm_id *id)
{
    return id->local_id;
}

uint8_t alb_cm_id_mtu(const struct alb_cm_id *id)
{
    return id->mtu;
}

const struct alb_av *alb_cm_id_av(const struct alb_cm_id *id)
{
    return &id->av;
}

int alb_cm_connect(struct alb_cm_id *id, const struct alb_cm_target *target, const struct alb_cm_req *req,
                   const struct alb_cm_private *data, alb_time now)
{
    if (id->state != ALB_CM_IDLE || !alb_cm_is_connected_service(req) ||
        (data && data->length > alb_cm_private_bytes(ALB_CM_REQ)))
        return EINVAL;
    alb_cm_aim(id, target);
    id->remote_id = ALB_CM_NEVER_REMOTE;
    int error = alb_cm_compose(id, ALB_CM_REQ, data);
    alb_assert(!error);
    id->sent.req = *req;
    id->local_qpn = req->qpn;
    id->mtu = req->mtu;
    id->timewait_ns = alb_cm_code_ns(req->primary.ack_timeout);
    id->timeout_ns = alb_cm_code_ns(req->remote_response_timeout) + id->timewait_ns;
    id->retries = req->max_cm_retries;
    alb_cm_set_state(id, ALB_CM_REQ_SENT);
    alb_cm_send_until_answered(id, now);
    return 0;
}

int alb_cm_accept(struct alb_cm_id *id, const struct alb_cm_rep *rep, const struct alb_cm_private *data, alb_time now)
{
    if (id->state != ALB_CM_REQ_RECEIVED || alb_cm_compose(id, ALB_CM_REP, data))
        return EINVAL;
    id->sent.rep = *rep;
    id->local_qpn = alb_cm_rep_qpn(rep);
    alb_cm_set_state(id, ALB_CM_REP_SENT);
    alb_cm_send_until_answered(id, now);
    return 0;
}

int alb_cm_establish(struct alb_cm_id *id, const struct alb_cm_private *data, alb_time now)
{
    if (id->state != ALB_CM_REP_RECEIVED || alb_cm_compose(id, ALB_CM_RTU, data))
        return EINVAL;
    alb_cm_set_state(id, ALB_CM_ESTABLISHED);
    alb_cm_send(id);
    return 0;
}

int alb_cm_notice_traffic(struct alb_cm_id *id, alb_time now)
{
    if (id->state != ALB_CM_REP_SENT)
        return EINVAL;
    alb_cm_disarm(id);
    alb_cm_set_state(id, ALB_CM_ESTABLISHED);
    alb_cm_raise(id, ALB_CM_EVENT_ESTABLISHED);
    return 0;
}

// Rejects, and keeps the answer to repeat it.
static int reject(struct alb_cm_id *id, enum alb_cm_answered answers, enum alb_cm_rej_reason reason,
                  const struct alb_cm_private *data, alb_time now)
{
    if (alb_cm_compose(id, ALB_CM_REJ, data))
        return EINVAL;
    id->sent.rej = (struct alb_cm_rej){.answers = (uint8_t)answers, .reason = (uint16_t)reason};
    alb_cm_send(id);
    alb_cm_forget_qpn(id);
    alb_cm_linger(id, ALB_CM_REJECTED, now);
    return 0;
}

int alb_cm_reject(struct alb_cm_id *id, enum alb_cm_rej_reason reason, const struct alb_cm_private *data, alb_time now)
{
    if (id->state == ALB_CM_REQ_RECEIVED)
        return reject(id, ALB_CM_ANSWERS_REQ, reason, data, now);
    if (id->state == ALB_CM_REP_RECEIVED)
        return reject(id, ALB_CM_ANSWERS_REP, reason, data, now);
    return EINVAL;
}

int alb_cm_disconnect(struct alb_cm_id *id, const struct alb_cm_private *data, alb_time now)
{
    if (id->state != ALB_CM_ESTABLISHED || alb_cm_compose(id, ALB_CM_DREQ, data))
        return EINVAL;
    id->sent.dreq_qpn = id->remote_qpn;
    alb_cm_set_state(id, ALB_CM_DREQ_SENT);
    alb_cm_send_until_answered(id, now);
    return 0;
}

void alb_cm_disconnect_all(struct alb_engine *engine, alb_time now)
{
    struct alb_cm *cm = engine->cm;
    for (uint32_t i = 0; cm && i < cm->ids_touched; i++) {
        struct alb_cm_id *id = &cm->ids[i];
        if (id->is_used && !id->is_orphan && id->state == ALB_CM_ESTABLISHED)
            alb_cm_disconnect(id, NULL, now);
    }
}

// ---- the end of an id -----------------------------------------------------------------------------------------------

static void destroy_untaken(struct alb_cm_id *listener, alb_time now)
{
    struct alb_list *node;
    while ((node = listener->untaken.next) != &listener->untaken) {
        struct alb_cm_id *id = ALB_LIST_ENTRY(node, struct alb_cm_id, sibling);
        alb_cm_leave_listener(id);
        alb_cm_id_destroy(id, now);
    }
}

void alb_cm_id_destroy(struct alb_cm_id *id, alb_time now)
{
    alb_assert(id->is_used && !id->is_orphan);
    alb_cm_forget_events(id);
    id->is_orphan = true;
    switch (id->state) {
    case ALB_CM_IDLE:
        alb_cm_release(id);
        break;
    case ALB_CM_LISTENING:
        destroy_untaken(id, now);
        alb_cm_unlisten(id);
        break;
    case ALB_CM_REQ_SENT:
        alb_cm_send_rej(id, ALB_CM_REJ_TIMEOUT);
        alb_cm_set_state(id, ALB_CM_IDLE);
        break;
    case ALB_CM_SIDR_SENT:
        alb_cm_set_state(id, ALB_CM_IDLE);
        break;
    case ALB_CM_REQ_RECEIVED:
        reject(id, ALB_CM_ANSWERS_REQ, ALB_CM_REJ_CONSUMER_DEFINED, NULL, now);
        break;
    case ALB_CM_REP_SENT:
        reject(id, ALB_CM_ANSWERS_OTHER, ALB_CM_REJ_CONSUMER_DEFINED, NULL, now);
        break;
    case ALB_CM_REP_RECEIVED:
        reject(id, ALB_CM_ANSWERS_REP, ALB_CM_REJ_CONSUMER_DEFINED, NULL, now);
        break;
    case ALB_CM_ESTABLISHED:
        alb_cm_disconnect(id, NULL, now);
        alb_cm_note_lingering(id);
        break;
    case ALB_CM_SIDR_RECEIVED:
        alb_cm_answer(id, ALB_CM_SIDR_REJECTED, 0, 0, NULL, now);
        break;
    case ALB_CM_DREQ_SENT:
    case ALB_CM_TIMEWAIT:
    case ALB_CM_REJECTED:
    case ALB_CM_SIDR_ANSWERED:
        alb_cm_note_lingering(id);
        break;
    case ALB_CM_STATES:
        alb_assert(!"no state");
    }
}
