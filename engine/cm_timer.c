// SPDX-License-Identifier: BSD-2-Clause
// Time in the connection manager: messages that are sent again, sides that give up, and states that end by themselves.
// An id has one deadline; what it means follows from the state.
#include "engine/cm_impl.h"

alb_time alb_cm_code_ns(uint8_t code)
{
    return ALB_MIN(ALB_MAX(4096ull << (code & 31), ALB_CM_TIME_MIN), ALB_CM_TIME_MAX);
}

void alb_cm_arm(struct alb_cm_id *id, alb_time after_ns, alb_time now)
{
    alb_wheel_arm(&id->engine->wheel, &id->deadline.timer, now + after_ns);
}

void alb_cm_disarm(struct alb_cm_id *id)
{
    alb_wheel_disarm(&id->engine->wheel, &id->deadline.timer);
}

void alb_cm_enter_timewait(struct alb_cm_id *id, alb_time now)
{
    alb_cm_set_state(id, ALB_CM_TIMEWAIT);
    alb_cm_note_lingering(id);
    alb_cm_arm(id, id->timewait_ns, now);
}

void alb_cm_linger(struct alb_cm_id *id, enum alb_cm_state state, alb_time now)
{
    alb_cm_set_state(id, state);
    alb_cm_note_lingering(id);
    // For longer than any of our MRAs makes the peer wait before it asks again.
    alb_time patience_ns = alb_cm_code_ns(ALB_CM_PATIENCE_CODE) + id->timewait_ns;
    alb_cm_arm(id, ALB_MAX(ALB_CM_LINGER_NS, patience_ns + ALB_NS_PER_S), now);
}

static void give_up(struct alb_cm_id *id, alb_time now)
{
    switch (id->state) {
    case ALB_CM_REQ_SENT:
    case ALB_CM_REP_SENT:
        alb_cm_send_rej(id, ALB_CM_REJ_TIMEOUT);
        alb_cm_raise(id, ALB_CM_EVENT_TIMED_OUT);
        alb_cm_set_state(id, ALB_CM_IDLE);
        break;
    case ALB_CM_SIDR_SENT:
        alb_cm_raise(id, ALB_CM_EVENT_TIMED_OUT);
        alb_cm_set_state(id, ALB_CM_IDLE);
        break;
    case ALB_CM_DREQ_SENT:
        alb_cm_raise(id, ALB_CM_EVENT_DISCONNECT_TIMED_OUT);
        alb_cm_enter_timewait(id, now);
        break;
    case ALB_CM_TIMEWAIT:
        alb_cm_raise(id, ALB_CM_EVENT_TIMEWAIT_OVER);
        alb_cm_set_state(id, ALB_CM_IDLE);
        break;
    case ALB_CM_REJECTED:
    case ALB_CM_SIDR_ANSWERED:
        alb_cm_set_state(id, ALB_CM_IDLE);
        break;
    default:
        alb_assert(!"a state that waits for nothing");
    }
}

static bool has_more_tries(const struct alb_cm_id *id)
{
    bool sends = id->state == ALB_CM_REQ_SENT || id->state == ALB_CM_REP_SENT || id->state == ALB_CM_DREQ_SENT ||
                 id->state == ALB_CM_SIDR_SENT;
    return sends && id->retries_left > 0;
}

// In other states, though it was refused once, it is another's answer that is waited for, and the user may be gone.
static bool asks_elsewhere(const struct alb_cm_id *id)
{
    return id->is_refused && id->find && (id->state == ALB_CM_REQ_SENT || id->state == ALB_CM_SIDR_SENT);
}

static void fire(struct alb_deadline *deadline, alb_time now)
{
    struct alb_cm_id *id = ALB_CONTAINER_OF(deadline, struct alb_cm_id, deadline);
    if (!has_more_tries(id)) {
        give_up(id, now);
        return;
    }
    id->retries_left--;
    id->is_delayed = false;
    if (asks_elsewhere(id))
        id->gsi_qpn = id->find(id->user, id->gsi_qpn);
    id->is_refused = false;
    alb_cm_send(id);
    alb_cm_arm(id, id->timeout_ns, now);
}

void alb_cm_timer_init(struct alb_cm_id *id)
{
    alb_deadline_init(&id->deadline, fire);
}
