// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues.
#include "engine/impl.h"
#include "engine/xrc.h"

#include <errno.h>

static bool is_in_range(const struct alb_engine *engine, uint32_t wr_max)
{
    return wr_max > 0 && wr_max <= engine->config.srq_wr_max;
}

int alb_srq_create(struct alb_pd *pd, uint32_t wr_max, uint32_t sge_max, uint32_t limit, void *user,
                   struct alb_srq **out)
{
    struct alb_engine *engine = pd->engine;
    if (!is_in_range(engine, wr_max) || sge_max > engine->config.sge_max || limit > wr_max)
        return EINVAL;
    if (engine->srq_count == engine->config.srq_max)
        return ENOMEM;
    struct alb_srq *srq = alb_engine_get_memory(engine, sizeof(*srq));
    if (!srq)
        return ENOMEM;
    int error = alb_recv_queue_init(engine, &srq->queue, wr_max, sge_max);
    if (error) {
        alb_engine_put_memory(engine, srq, sizeof(*srq));
        return error;
    }
    srq->pd = pd;
    srq->user = user;
    srq->limit = limit;
    alb_event_node_init(&srq->event, ALB_EVENT_OF_SRQ);
    pd->refs++;
    engine->srq_count++;
    *out = srq;
    return 0;
}

// Moves what is posted into a queue of another size.
static int resize(struct alb_srq *srq, uint32_t wr_max)
{
    struct alb_engine *engine = srq->pd->engine;
    struct alb_recv_queue *queue = &srq->queue;
    struct alb_recv_queue other;
    uint32_t count = alb_recv_queue_count(queue);
    if (!is_in_range(engine, wr_max) || wr_max < count)
        return EINVAL;
    int error = alb_recv_queue_init(engine, &other, wr_max, queue->sge_max);
    if (error)
        return error;
    for (uint32_t i = 0; i < count; i++) {
        bool is_taken = alb_recv_queue_take(queue, (struct alb_recv_wqe *)(other.slots + (size_t)i * other.stride));
        alb_assert(is_taken);
    }
    alb_recv_queue_fini(engine, queue);
    queue->slots = other.slots;
    queue->capacity = other.capacity;
    atomic_store_explicit(&queue->head, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->tail, count, memory_order_release);
    return 0;
}

int alb_srq_modify(struct alb_srq *srq, uint32_t wr_max, uint32_t limit)
{
    uint32_t capacity = wr_max ? wr_max : srq->queue.capacity;
    if ((limit != UINT32_MAX ? limit : srq->limit) > capacity)
        return EINVAL;
    if (wr_max) {
        int error = resize(srq, wr_max);
        if (error)
            return error;
    }
    if (limit != UINT32_MAX)
        srq->limit = limit;
    return 0;
}

bool alb_srq_is_used(const struct alb_srq *srq)
{
    return srq->refs > 0;
}

int alb_srq_destroy(struct alb_srq *srq)
{
    struct alb_engine *engine = srq->pd->engine;
    if (alb_srq_is_used(srq))
        return EBUSY;
    if (srq->xrcd)
        alb_xrc_forget_srq(srq);
    alb_event_node_fini(&srq->event);
    alb_recv_queue_fini(engine, &srq->queue);
    srq->pd->refs--;
    alb_engine_put_memory(engine, srq, sizeof(*srq));
    engine->srq_count--;
    return 0;
}

void alb_srq_query(const struct alb_srq *srq, uint32_t *wr_max, uint32_t *sge_max, uint32_t *limit)
{
    *wr_max = srq->queue.capacity;
    *sge_max = srq->queue.sge_max;
    *limit = srq->limit;
}

int alb_srq_post(struct alb_srq *srq, uint64_t wr_id, const struct alb_sge *sge, uint32_t sge_count)
{
    return alb_recv_queue_post(&srq->queue, wr_id, sge, sge_count);
}

// The limit is armed once: the event disarms it (InfiniBand specification, volume 1, 10.2.9.3).
bool alb_srq_take(struct alb_srq *srq, struct alb_recv_wqe *wqe)
{
    if (!alb_recv_queue_take(&srq->queue, wqe))
        return false;
    if (srq->limit > 0 && alb_recv_queue_count(&srq->queue) < srq->limit) {
        srq->limit = 0;
        alb_event_raise(srq->pd->engine, &srq->event, ALB_EVENT_SRQ_LIMIT_REACHED);
    }
    return true;
}
