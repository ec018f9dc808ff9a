// SPDX-License-Identifier: BSD-2-Clause
// The queue of what the engine has to say upward. It cannot overflow: every object carries its own node, with a bit per
// type.
#pragma once

#include "base/list.h"
#include "engine/engine.h"

enum alb_event_owner {
    ALB_EVENT_OF_CQ,
    ALB_EVENT_OF_QP,
    ALB_EVENT_OF_SRQ,
    ALB_EVENT_OF_CM,
    ALB_EVENT_OF_REFLECT,
};

struct alb_event_node {
    struct alb_list link;
    enum alb_event_owner owner;
    uint32_t pending; // bit per enum alb_event_type
};

void alb_event_node_init(struct alb_event_node *node, enum alb_event_owner owner);
// Queues an event of that type for the node's owner; one that is pending already stays one.
void alb_event_raise(struct alb_engine *engine, struct alb_event_node *node, enum alb_event_type type);
// Forgets what is pending; the owner is about to end.
void alb_event_node_fini(struct alb_event_node *node);
