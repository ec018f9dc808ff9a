// SPDX-License-Identifier: BSD-2-Clause
#include "engine/send_queue.h"

#include "engine/impl.h"

#include <errno.h>

enum {
    STRIDE_ALIGNMENT = 64, // the program fills a request while the engine notes things in the one before it
    INLINE_MIN_BYTES = 16, // given if less is asked for: rdma_xclient asks for none, and sends that much
};

int alb_send_queue_init(struct alb_engine *engine, struct alb_send_queue *queue, const struct alb_qp_cap *cap)
{
    uint32_t sge_bytes = cap->send_sge_max * (uint32_t)sizeof(struct alb_sge);
    uint32_t inline_min_bytes =
        cap->send_wr_max ? ALB_MIN((uint32_t)INLINE_MIN_BYTES, engine->config.inline_max_bytes) : 0;
    queue->inline_max_bytes = ALB_MAX(cap->inline_max_bytes, inline_min_bytes);
    uint32_t bytes = (uint32_t)sizeof(struct alb_send_wqe) + ALB_MAX(sge_bytes, queue->inline_max_bytes);
    queue->stride = (bytes + STRIDE_ALIGNMENT - 1) / STRIDE_ALIGNMENT * STRIDE_ALIGNMENT;
    queue->sge_max = cap->send_sge_max;
    queue->capacity = cap->send_wr_max > 0;
    while (queue->capacity < cap->send_wr_max)
        queue->capacity *= 2;
    alb_send_queue_clear(queue);
    queue->slots = NULL;
    if (queue->capacity == 0)
        return 0;
    queue->slots = alb_engine_get_memory(engine, (size_t)queue->capacity * queue->stride);
    return queue->slots ? 0 : ENOMEM;
}

void alb_send_queue_fini(struct alb_engine *engine, struct alb_send_queue *queue)
{
    alb_engine_put_memory(engine, queue->slots, (size_t)queue->capacity * queue->stride);
    queue->slots = NULL;
}

void alb_send_queue_clear(struct alb_send_queue *queue)
{
    queue->staged = 0;
    atomic_store_explicit(&queue->tail, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->polled, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->silent, 0, memory_order_relaxed);
    atomic_store_explicit(&queue->head, 0, memory_order_release);
}

// Each count is released behind the engine's last look at the requests that it counts, and these are completed in turn:
// as many as both counts say, from the oldest one on, have been left.
uint32_t alb_send_queue_room(const struct alb_send_queue *queue)
{
    uint32_t left = atomic_load_explicit(&queue->silent, memory_order_acquire) +
                    atomic_load_explicit(&queue->polled, memory_order_acquire);
    return queue->capacity - (queue->staged - left);
}
