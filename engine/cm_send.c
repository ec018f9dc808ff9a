// SPDX-License-Identifier: BSD-2-Clause
// The messages that the connection manager sends: those of an id, which are kept to be sent again, and answers that
// nothing is kept of.
#include "engine/cm_impl.h"

#include <errno.h>

static void put_private(struct alb_cm_message *message, const struct alb_cm_private *data)
{
    if (data && data->length)
        memcpy(message->private_data, data->bytes, data->length);
}

static bool is_too_long(enum alb_cm_type type, const struct alb_cm_private *data)
{
    return data && data->length > alb_cm_private_bytes(type);
}

static struct alb_cm_message message_of(const struct alb_cm_id *id, enum alb_cm_type type)
{
    return (struct alb_cm_message){
        .type = type,
        .transaction = id->transaction,
        .local_id = id->local_id,
        .remote_id = id->remote_id,
    };
}

// Random, so that an attacker that does not see the messages cannot answer them.
static void draw_transaction(struct alb_cm_id *id)
{
    id->transaction = (uint64_t)alb_rng_u32(&id->engine->rng) << 32 | id->local_id;
}

void alb_cm_aim(struct alb_cm_id *id, const struct alb_cm_target *target)
{
    id->av = target->av;
    id->gsi_qpn = target->gsi_qpn;
    id->refusals_left = target->refusals;
    id->is_refused = false;
    id->find = target->find;
    draw_transaction(id);
}

int alb_cm_compose(struct alb_cm_id *id, enum alb_cm_type type, const struct alb_cm_private *data)
{
    if (is_too_long(type, data))
        return EINVAL;
    id->sent = message_of(id, type);
    id->sent.ece = id->ece;
    put_private(&id->sent, data);
    return 0;
}

void alb_cm_send(struct alb_cm_id *id)
{
    alb_gsi_send(id->engine, &id->av, id->gsi_qpn, &id->sent);
}

void alb_cm_send_until_answered(struct alb_cm_id *id, alb_time now)
{
    id->retries_left = id->retries;
    id->is_delayed = false;
    alb_cm_send(id);
    alb_cm_arm(id, id->timeout_ns, now);
}

bool alb_cm_retries_after_refusal(struct alb_cm_id *id, alb_time now)
{
    if (id->refusals_left == 0)
        return false;
    id->refusals_left--;
    id->retries_left++; // what the deadline takes
    id->is_refused = true;
    alb_cm_arm(id, ALB_CM_REFUSED_NS, now);
    return true;
}

// By its transaction it is another request: what still comes for the first one is not for it.
bool alb_cm_asks_for_less(struct alb_cm_id *id, const struct alb_cm_rej *rej, alb_time now)
{
    uint8_t mtu = alb_cm_rej_mtu(rej);
    if (mtu == 0 || mtu >= id->sent.req.mtu)
        return false;
    draw_transaction(id);
    id->sent.transaction = id->transaction;
    id->sent.req.mtu = id->mtu = mtu;
    alb_cm_send_until_answered(id, now);
    return true;
}

// Of a peer that waits for as long as response_code says.
static uint8_t patience_code(const struct alb_cm_id *id, uint8_t response_code)
{
    int first = ALB_MAX(ALB_CM_PATIENCE_FIRST_CODE, response_code + ALB_CM_PATIENCE_STEPS);
    return (uint8_t)ALB_MIN(first + id->mras, ALB_CM_PATIENCE_CODE);
}

void alb_cm_send_mra(struct alb_cm_id *id)
{
    struct alb_cm_message message = message_of(id, ALB_CM_MRA);
    bool is_for_req = id->state == ALB_CM_REQ_RECEIVED;
    message.mra.answers = is_for_req ? ALB_CM_ANSWERS_REQ : ALB_CM_ANSWERS_REP;
    message.mra.service_timeout =
        patience_code(id, is_for_req ? id->received.req.remote_response_timeout : id->sent.req.local_response_timeout);
    if (message.mra.service_timeout < ALB_CM_PATIENCE_CODE)
        id->mras++;
    alb_gsi_send(id->engine, &id->av, id->gsi_qpn, &message);
}

void alb_cm_send_drep(struct alb_cm_id *id)
{
    struct alb_cm_message message = message_of(id, ALB_CM_DREP);
    alb_gsi_send(id->engine, &id->av, id->gsi_qpn, &message);
}

void alb_cm_send_doubt(struct alb_cm_id *id)
{
    struct alb_cm_message message = message_of(id, ALB_CM_DREQ);
    message.dreq_qpn = 0;
    alb_gsi_send(id->engine, &id->av, id->gsi_qpn, &message);
}

// The GUID that our REQ or REP has shown: by it, and our id, the peer finds what it holds of us.
static uint64_t own_guid(const struct alb_cm_id *id)
{
    switch (id->sent.type) {
    case ALB_CM_REQ:
        return id->sent.req.ca_guid;
    case ALB_CM_REP:
        return id->sent.rep.ca_guid;
    default:
        return 0;
    }
}

void alb_cm_send_rej(struct alb_cm_id *id, enum alb_cm_rej_reason reason)
{
    struct alb_cm_message message = message_of(id, ALB_CM_REJ);
    message.rej.answers = id->state == ALB_CM_REQ_RECEIVED   ? ALB_CM_ANSWERS_REQ
                          : id->state == ALB_CM_REP_RECEIVED ? ALB_CM_ANSWERS_REP
                                                             : ALB_CM_ANSWERS_OTHER;
    message.rej.reason = (uint16_t)reason;
    if (reason == ALB_CM_REJ_TIMEOUT) {
        uint64_t guid = own_guid(id);
        message.rej.info_bytes = sizeof(guid);
        for (unsigned i = 0; i < sizeof(guid); i++)
            message.rej.info[i] = (uint8_t)(guid >> (56 - 8 * i));
    }
    alb_gsi_send(id->engine, &id->av, id->gsi_qpn, &message);
}

// ---- answers to messages that no id stands for ----------------------------------------------------------------------

uint8_t alb_cm_mtu_max(const struct alb_engine *engine)
{
    return (uint8_t)alb_mtu_code(engine->config.mtu_max_bytes);
}

static void answer(struct alb_engine *engine, const struct alb_cm_arrival *arrival, struct alb_cm_message *message)
{
    message->transaction = arrival->message->transaction;
    alb_gsi_send(engine, &arrival->av, arrival->gsi_qpn, message);
}

// An answer's ids are the message's, crossed.
static struct alb_cm_message answer_to(const struct alb_cm_arrival *arrival, enum alb_cm_type type)
{
    return (struct alb_cm_message){
        .type = type,
        .local_id = arrival->message->remote_id,
        .remote_id = arrival->message->local_id,
    };
}

void alb_cm_answer_rej(struct alb_engine *engine, const struct alb_cm_arrival *arrival, enum alb_cm_answered answers,
                       enum alb_cm_rej_reason reason)
{
    struct alb_cm_message message = answer_to(arrival, ALB_CM_REJ);
    message.rej.answers = (uint8_t)answers;
    message.rej.reason = (uint16_t)reason;
    if (reason == ALB_CM_REJ_INVALID_MTU)
        alb_cm_rej_set_mtu(&message.rej, alb_cm_mtu_max(engine));
    answer(engine, arrival, &message);
}

void alb_cm_answer_drep(struct alb_engine *engine, const struct alb_cm_arrival *arrival)
{
    struct alb_cm_message message = answer_to(arrival, ALB_CM_DREP);
    answer(engine, arrival, &message);
}

void alb_cm_answer_apr(struct alb_engine *engine, const struct alb_cm_arrival *arrival)
{
    struct alb_cm_message message = answer_to(arrival, ALB_CM_APR);
    message.apr.status = ALB_CM_APR_UNSUPPORTED;
    answer(engine, arrival, &message);
}

void alb_cm_answer_sidr(struct alb_engine *engine, const struct alb_cm_arrival *arrival, enum alb_cm_sidr_status status)
{
    struct alb_cm_message message = {
        .type = ALB_CM_SIDR_REP,
        .local_id = arrival->message->local_id,
        .sidr_rep = {.status = (uint8_t)status, .service_id = arrival->message->sidr_req.service_id},
    };
    answer(engine, arrival, &message);
}
