// SPDX-License-Identifier: BSD-2-Clause
// Service id resolution (12.11): which queue pair answers datagrams for a service.
#include "engine/cm_impl.h"

#include <errno.h>

int alb_cm_resolve(struct alb_cm_id *id, const struct alb_cm_target *target, uint64_t service_id,
                   const struct alb_cm_private *data, alb_time timeout_ns, uint8_t retries, alb_time now)
{
    if (id->state != ALB_CM_IDLE || timeout_ns == 0 || (data && data->length > alb_cm_private_bytes(ALB_CM_SIDR_REQ)))
        return EINVAL;
    alb_cm_aim(id, target);
    int error = alb_cm_compose(id, ALB_CM_SIDR_REQ, data);
    alb_assert(!error);
    id->sent.sidr_req = (struct alb_cm_sidr_req){.pkey = ALB_PKEY_DEFAULT, .service_id = service_id};
    id->timeout_ns = ALB_MIN(ALB_MAX(timeout_ns, ALB_CM_TIME_MIN), ALB_CM_TIME_MAX);
    id->retries = retries;
    alb_cm_set_state(id, ALB_CM_SIDR_SENT);
    alb_cm_send_until_answered(id, now);
    return 0;
}

int alb_cm_answer(struct alb_cm_id *id, enum alb_cm_sidr_status status, alb_qpn qpn, uint32_t qkey,
                  const struct alb_cm_private *data, alb_time now)
{
    if (id->state != ALB_CM_SIDR_RECEIVED || alb_cm_compose(id, ALB_CM_SIDR_REP, data))
        return EINVAL;
    id->sent.local_id = id->remote_id; // the request id is the asker's
    id->sent.sidr_rep = (struct alb_cm_sidr_rep){
        .status = (uint8_t)status,
        .qpn = qpn,
        .service_id = id->received.sidr_req.service_id,
        .qkey = qkey,
    };
    alb_cm_send(id);
    alb_cm_linger(id, ALB_CM_SIDR_ANSWERED, now);
    return 0;
}

enum alb_drop alb_cm_rx_sidr_req(struct alb_engine *engine, const struct alb_cm_arrival *arrival)
{
    const struct alb_cm_message *message = arrival->message;
    struct alb_cm_id *id = alb_cm_find_question(engine, message->local_id, &arrival->av.peer);
    bool is_answered = id && id->state == ALB_CM_SIDR_ANSWERED;
    if (is_answered && !alb_cm_is_repeated(id, arrival)) {
        alb_cm_forget_remote(id);
    } else if (id) {
        if (is_answered)
            alb_cm_send(id);
        return ALB_DROP_DUPLICATE;
    }
    struct alb_cm_id *listener = alb_cm_find_listener(engine, message->sidr_req.service_id, &arrival->av.local);
    if (!listener) {
        alb_cm_answer_sidr(engine, arrival, ALB_CM_SIDR_UNSUPPORTED);
        return ALB_DROP_NONE;
    }
    id = alb_cm_admit(listener, arrival);
    if (!id)
        return ALB_DROP_NO_RESOURCES;
    id->is_question = true;
    alb_cm_set_state(id, ALB_CM_SIDR_RECEIVED);
    bool is_new = alb_cm_learn_remote(id, message->local_id);
    alb_assert(is_new);
    alb_cm_raise(id, ALB_CM_EVENT_SIDR_REQUEST);
    return ALB_DROP_NONE;
}

enum alb_drop alb_cm_rx_sidr_rep(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now)
{
    const struct alb_cm_message *message = arrival->message;
    struct alb_cm_id *id = alb_cm_find_local(engine, message->local_id, &arrival->av.peer);
    if (!id || id->state != ALB_CM_SIDR_SENT || id->transaction != message->transaction)
        return ALB_DROP_STALE_RESPONSE;
    if (message->sidr_rep.status == ALB_CM_SIDR_UNSUPPORTED && alb_cm_retries_after_refusal(id, now))
        return ALB_DROP_NONE;
    id->received = *message;
    alb_cm_raise(id, ALB_CM_EVENT_SIDR_RESPONSE);
    alb_cm_set_state(id, ALB_CM_IDLE);
    return ALB_DROP_NONE;
}
