// SPDX-License-Identifier: BSD-2-Clause
// Round robin over the sources that have something to send, or nearly so. A source is taken out of the line while it
// builds, so that it may queue itself elsewhere (for a window, for a rate) or be woken again.
#include "engine/scheduler.h"

void alb_scheduler_init(struct alb_scheduler *scheduler, uint32_t compared)
{
    alb_list_init(&scheduler->ready);
    scheduler->compared = compared;
}

void alb_source_init(struct alb_source *source,
                     enum alb_build_result (*build)(struct alb_source *, struct alb_tx_builder *, alb_time))
{
    alb_list_init(&source->link);
    source->is_ready = false;
    source->due = 0;
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

void alb_scheduler_wake_first(struct alb_scheduler *scheduler, struct alb_source *source)
{
    alb_list_remove(&source->link);
    alb_list_push_front(&scheduler->ready, &source->link);
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

static struct alb_source *source_of(struct alb_list *node)
{
    return ALB_LIST_ENTRY(node, struct alb_source, link);
}

// NULL: there is none.
static struct alb_source *take_next(struct alb_scheduler *scheduler)
{
    struct alb_list *line = &scheduler->ready, *node = line->next;
    if (node == line)
        return NULL;
    struct alb_source *found = source_of(node);
    for (uint32_t i = 1; i < scheduler->compared && (node = node->next) != line; i++)
        if (source_of(node)->due < found->due)
            found = source_of(node);
    alb_scheduler_remove(found);
    return found;
}

void alb_scheduler_run(struct alb_scheduler *scheduler, struct alb_tx_builder *builder, alb_time now)
{
    struct alb_source *source;
    while ((source = take_next(scheduler))) {
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
