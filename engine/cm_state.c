// SPDX-License-Identifier: BSD-2-Clause
// The states of a communication id and the moves between them (12.9.7, less what only one side of a call sees: RTU
// timeouts and MRAs are timers here, not states).
#include "engine/cm_impl.h"

static const char *const names[] = {
    [ALB_CM_IDLE] = "idle",
    [ALB_CM_LISTENING] = "listening",
    [ALB_CM_REQ_SENT] = "req_sent",
    [ALB_CM_REQ_RECEIVED] = "req_received",
    [ALB_CM_REP_SENT] = "rep_sent",
    [ALB_CM_REP_RECEIVED] = "rep_received",
    [ALB_CM_ESTABLISHED] = "established",
    [ALB_CM_DREQ_SENT] = "dreq_sent",
    [ALB_CM_TIMEWAIT] = "timewait",
    [ALB_CM_REJECTED] = "rejected",
    [ALB_CM_SIDR_SENT] = "sidr_sent",
    [ALB_CM_SIDR_RECEIVED] = "sidr_received",
    [ALB_CM_SIDR_ANSWERED] = "sidr_answered",
};
_Static_assert(ALB_COUNT(names) == ALB_CM_STATES, "every state has a name");

const char *alb_cm_state_name(enum alb_cm_state state)
{
    return (unsigned)state < ALB_CM_STATES ? names[state] : "invalid";
}

#define TO(state) (1u << (state))

static const uint32_t moves[ALB_CM_STATES] = {
    [ALB_CM_IDLE] = TO(ALB_CM_LISTENING) | TO(ALB_CM_REQ_SENT) | TO(ALB_CM_REQ_RECEIVED) | TO(ALB_CM_SIDR_SENT) |
                    TO(ALB_CM_SIDR_RECEIVED),
    [ALB_CM_LISTENING] = TO(ALB_CM_IDLE),
    [ALB_CM_REQ_SENT] = TO(ALB_CM_REP_RECEIVED) | TO(ALB_CM_IDLE),
    [ALB_CM_REQ_RECEIVED] = TO(ALB_CM_REP_SENT) | TO(ALB_CM_REJECTED) | TO(ALB_CM_IDLE),
    [ALB_CM_REP_SENT] = TO(ALB_CM_ESTABLISHED) | TO(ALB_CM_TIMEWAIT) | TO(ALB_CM_REJECTED) | TO(ALB_CM_IDLE),
    [ALB_CM_REP_RECEIVED] = TO(ALB_CM_ESTABLISHED) | TO(ALB_CM_REJECTED) | TO(ALB_CM_IDLE),
    [ALB_CM_ESTABLISHED] = TO(ALB_CM_DREQ_SENT) | TO(ALB_CM_TIMEWAIT),
    [ALB_CM_DREQ_SENT] = TO(ALB_CM_TIMEWAIT) | TO(ALB_CM_IDLE), // an orphan that gives way
    [ALB_CM_TIMEWAIT] = TO(ALB_CM_IDLE),
    [ALB_CM_REJECTED] = TO(ALB_CM_IDLE),
    [ALB_CM_SIDR_SENT] = TO(ALB_CM_IDLE),
    [ALB_CM_SIDR_RECEIVED] = TO(ALB_CM_SIDR_ANSWERED) | TO(ALB_CM_IDLE),
    [ALB_CM_SIDR_ANSWERED] = TO(ALB_CM_IDLE),
};

bool alb_cm_state_can_move(enum alb_cm_state from, enum alb_cm_state to)
{
    return moves[from] & TO(to);
}

bool alb_cm_is_quiet(const struct alb_engine *engine)
{
    return !engine->cm || engine->cm->parting == 0;
}

void alb_cm_set_state(struct alb_cm_id *id, enum alb_cm_state state)
{
    alb_assert(alb_cm_state_can_move(id->state, state));
    struct alb_cm *cm = id->engine->cm;
    if (id->state == ALB_CM_DREQ_SENT)
        cm->parting--;
    if (state == ALB_CM_DREQ_SENT)
        cm->parting++;
    id->state = state;
    if (state != ALB_CM_IDLE)
        return;
    alb_cm_disarm(id);
    alb_cm_forget_peer(id);
    if (id->is_orphan)
        alb_cm_release(id);
}
