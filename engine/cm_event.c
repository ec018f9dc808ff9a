// SPDX-License-Identifier: BSD-2-Clause
// What the connection manager has to say upward. An id's events are bits, so the queue cannot overflow; their numbers
// rise in the order in which one id can meet them, and each happens once between two idle states.
#include "engine/cm_impl.h"

static const char *const names[] = {
    [ALB_CM_EVENT_REQUEST] = "request",
    [ALB_CM_EVENT_RESPONSE] = "response",
    [ALB_CM_EVENT_ESTABLISHED] = "established",
    [ALB_CM_EVENT_REJECTED] = "rejected",
    [ALB_CM_EVENT_TIMED_OUT] = "timed_out",
    [ALB_CM_EVENT_DISCONNECTED] = "disconnected",
    [ALB_CM_EVENT_DISCONNECT_TIMED_OUT] = "disconnect_timed_out",
    [ALB_CM_EVENT_TIMEWAIT_OVER] = "timewait_over",
    [ALB_CM_EVENT_SIDR_REQUEST] = "sidr_request",
    [ALB_CM_EVENT_SIDR_RESPONSE] = "sidr_response",
};
_Static_assert(ALB_COUNT(names) == ALB_CM_EVENT_TYPES, "every event has a name");

const char *alb_cm_event_name(enum alb_cm_event_type type)
{
    return (unsigned)type < ALB_CM_EVENT_TYPES ? names[type] : "invalid";
}

void alb_cm_raise(struct alb_cm_id *id, enum alb_cm_event_type type)
{
    if (id->is_orphan)
        return;
    // A response that the user has not taken is void once it is rejected, and its message gone.
    if (type == ALB_CM_EVENT_REJECTED)
        id->pending &= ~(1u << ALB_CM_EVENT_RESPONSE);
    struct alb_cm *cm = id->engine->cm;
    if (alb_list_is_empty(&cm->events))
        alb_event_raise(id->engine, &cm->event, ALB_EVENT_CM);
    id->pending |= 1u << type;
    if (!alb_list_is_linked(&id->event_link))
        alb_list_push_back(&cm->events, &id->event_link);
}

void alb_cm_forget_events(struct alb_cm_id *id)
{
    id->pending = 0;
    alb_list_remove(&id->event_link);
}

void alb_cm_leave_listener(struct alb_cm_id *id)
{
    if (!id->listener)
        return;
    id->listener->untaken_count--;
    id->listener = NULL;
    alb_list_remove(&id->sibling);
}

// Its user has heard of it; its place in the backlog is free when the program has, too.
static void hand_over(struct alb_cm_id *id)
{
    id->listener = NULL;
    alb_list_remove(&id->sibling);
}

void alb_cm_request_taken(struct alb_cm_id *listener)
{
    alb_assert(listener->state == ALB_CM_LISTENING && listener->untaken_count > 0);
    listener->untaken_count--;
}

bool alb_cm_has_event(const struct alb_engine *engine)
{
    return engine->cm && !alb_list_is_empty(&engine->cm->events);
}

bool alb_cm_event(struct alb_engine *engine, struct alb_cm_event *event)
{
    if (!alb_cm_has_event(engine))
        return false;
    struct alb_cm_id *id = ALB_LIST_ENTRY(engine->cm->events.next, struct alb_cm_id, event_link);
    *event = (struct alb_cm_event){
        .type = (enum alb_cm_event_type)__builtin_ctz(id->pending),
        .id = id,
        .user = id->user,
        .listener = id->listener,
        .listener_user = id->listener ? id->listener->user : NULL,
        .message = id->received,
    };
    hand_over(id);
    id->pending &= id->pending - 1;
    if (!id->pending)
        alb_list_remove(&id->event_link);
    return true;
}
