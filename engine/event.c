// SPDX-License-Identifier: BSD-2-Clause
#include "engine/event.h"

#include "engine/cm_impl.h"

void alb_event_node_init(struct alb_event_node *node, enum alb_event_owner owner)
{
    alb_list_init(&node->link);
    node->owner = owner;
    node->pending = 0;
}

void alb_event_raise(struct alb_engine *engine, struct alb_event_node *node, enum alb_event_type type)
{
    node->pending |= 1u << type;
    if (!alb_list_is_linked(&node->link))
        alb_list_push_back(&engine->events, &node->link);
}

void alb_event_node_fini(struct alb_event_node *node)
{
    alb_list_remove(&node->link);
    node->pending = 0;
}

static void fill(struct alb_event *event, struct alb_event_node *node)
{
    event->cq = NULL;
    event->qp = NULL;
    event->srq = NULL;
    switch (node->owner) {
    case ALB_EVENT_OF_CQ:
        event->cq = ALB_CONTAINER_OF(node, struct alb_cq, event);
        event->user = event->cq->user;
        break;
    case ALB_EVENT_OF_QP:
        event->qp = ALB_CONTAINER_OF(node, struct alb_qp, event);
        event->user = event->qp->user;
        event->failure = event->qp->failure;
        break;
    case ALB_EVENT_OF_SRQ:
        event->srq = ALB_CONTAINER_OF(node, struct alb_srq, event);
        event->user = event->srq->user;
        break;
    case ALB_EVENT_OF_CM:
        event->user = ALB_CONTAINER_OF(node, struct alb_cm, event)->user;
        break;
    case ALB_EVENT_OF_REFLECT: // the driver asks which object it is about
        event->user = NULL;
        break;
    }
}

bool alb_engine_event(struct alb_engine *engine, struct alb_event *event)
{
    if (alb_list_is_empty(&engine->events))
        return false;
    struct alb_event_node *node = ALB_LIST_ENTRY(engine->events.next, struct alb_event_node, link);
    event->type = (enum alb_event_type)__builtin_ctz(node->pending);
    node->pending &= node->pending - 1;
    fill(event, node);
    if (!node->pending)
        alb_list_remove(&node->link);
    return true;
}
