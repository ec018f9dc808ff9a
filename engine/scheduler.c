// SPDX-License-Identifier: BSD-2-Clause
// Round robin over the sources that have something to send. A source is taken out of the line while it builds, so that
// it may queue itself elsewhere (for a window, for a rate) or be woken again.
#include "engine/scheduler.h"

void alb_scheduler_init(struct alb_scheduler *scheduler)
{
    alb_list_init(&scheduler->ready);
}

void alb_source_init(struct alb_source *source,
                     enum alb_build_result (*build)(struct alb_source *, struct alb_tx_builder *, alb_time))
{
    alb_list_init(&source->link);
    source->is_ready = false;
    source->build = build;
}

void alb_scheduler_wake(struct alb_scheduler *scheduler, struct alb_source *source)
{
    if (source->is_ready)
        return;
    alb_list_remove(&source->link);
    alb_list_push_back(&scheduler->ready, &source->link);
    source->is_ready = true;
}

void alb_scheduler_remove(struct alb_source *source)
{
    alb_list_remove(&source->link);
    source->is_ready = false;
}

bool alb_scheduler_is_idle(const struct alb_scheduler *scheduler)
{
    return alb_list_is_empty(&scheduler->ready);
}

void alb_scheduler_run(struct alb_scheduler *scheduler, struct alb_tx_builder *builder, alb_time now)
{
    struct alb_list *node;
    while ((node = alb_list_pop(&scheduler->ready))) {
        struct alb_source *source = ALB_LIST_ENTRY(node, struct alb_source, link);
        source->is_ready = false;
        switch (source->build(source, builder, now)) {
        case ALB_BUILD_IDLE:
            break;
        case ALB_BUILD_MORE:
            alb_scheduler_wake(scheduler, source);
            break;
        case ALB_BUILD_FULL:
            alb_list_remove(&source->link);
            alb_list_push_front(&scheduler->ready, &source->link);
            source->is_ready = true;
            return;
        }
    }
}
