// SPDX-License-Identifier: BSD-2-Clause
#include "engine/recv_queue.h"

#include "engine/impl.h"

#include <errno.h>

static struct alb_recv_wqe *slot(const struct alb_recv_queue *queue, uint32_t index)
{
    return (struct alb_recv_wqe *)(queue->slots + (size_t)(index & (queue->capacity - 1)) * queue->stride);
}

uint32_t alb_recv_wqe_bytes(uint32_t sge_max)
{
    return (uint32_t)(sizeof(struct alb_recv_wqe) + sge_max * sizeof(struct alb_sge));
}

int alb_recv_queue_init(struct alb_engine *engine, struct alb_recv_queue *queue, uint32_t wr_max, uint32_t sge_max)
{
    queue->stride = alb_recv_wqe_bytes(sge_max);
    queue->sge_max = sge_max;
    queue->capacity = wr_max > 0;
    while (queue->capacity < wr_max)
        queue->capacity *= 2;
    atomic_init(&queue->tail, 0);
    atomic_init(&queue->head, 0);
    queue->slots = NULL;
    if (queue->capacity == 0)
        return 0;
    queue->slots = alb_engine_get_memory(engine, (size_t)queue->capacity * queue->stride);
    return queue->slots ? 0 : ENOMEM;
}

void alb_recv_queue_fini(struct alb_engine *engine, struct alb_recv_queue *queue)
{
    alb_engine_put_memory(engine, queue->slots, (size_t)queue->capacity * queue->stride);
    queue->slots = NULL;
}

static void copy_entries(struct alb_sge *to, const struct alb_sge *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        to[i] = from[i];
}

int alb_recv_queue_post(struct alb_recv_queue *queue, uint64_t wr_id, const struct alb_sge *sge, uint32_t sge_count)
{
    uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    if (sge_count > queue->sge_max)
        return EINVAL;
    if (tail - atomic_load_explicit(&queue->head, memory_order_acquire) >= queue->capacity)
        return ENOMEM;
    struct alb_recv_wqe *wqe = slot(queue, tail);
    wqe->wr_id = wr_id;
    wqe->length = 0;
    wqe->sge_count = sge_count;
    for (uint32_t i = 0; i < sge_count; i++)
        wqe->length += sge[i].length;
    wqe->length = ALB_MIN(wqe->length, (uint64_t)ALB_MAX_MESSAGE); // of more byte_len could not say how much has come
    copy_entries(wqe->sge, sge, sge_count);
    atomic_store_explicit(&queue->tail, tail + 1, memory_order_release);
    return 0;
}

bool alb_recv_queue_take(struct alb_recv_queue *queue, struct alb_recv_wqe *wqe)
{
    uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&queue->tail, memory_order_acquire))
        return false;
    const struct alb_recv_wqe *posted = slot(queue, head);
    wqe->wr_id = posted->wr_id;
    wqe->length = posted->length;
    wqe->sge_count = posted->sge_count;
    copy_entries(wqe->sge, posted->sge, posted->sge_count);
    atomic_store_explicit(&queue->head, head + 1, memory_order_release);
    return true;
}

const struct alb_recv_wqe *alb_recv_queue_peek(const struct alb_recv_queue *queue, uint32_t behind)
{
    uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    uint32_t posted = atomic_load_explicit(&queue->tail, memory_order_acquire) - head;
    return behind < posted ? slot(queue, head + behind) : NULL;
}

uint32_t alb_recv_queue_count(const struct alb_recv_queue *queue)
{
    return atomic_load_explicit(&queue->tail, memory_order_acquire) -
           atomic_load_explicit(&queue->head, memory_order_relaxed);
}

void alb_recv_queue_clear(struct alb_recv_queue *queue)
{
    uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_acquire);
    atomic_store_explicit(&queue->head, tail, memory_order_release);
}
