// SPDX-License-Identifier: BSD-2-Clause
// Completion queues. The notification is a handshake without a lock: the engine publishes a completion and then looks
// whether the queue is armed, the program arms it and then looks for completions. Both sides are sequentially
// consistent, so at least one of them sees the other.
#include "engine/cq.h"

#include "engine/impl.h"

#include <errno.h>

static uint32_t count_of(const struct alb_cq *cq)
{
    return atomic_load_explicit(&cq->tail, memory_order_relaxed) -
           atomic_load_explicit(&cq->head, memory_order_acquire);
}

static struct alb_wc *entry(const struct alb_cq *cq, uint32_t index)
{
    return &cq->entries[index & (cq->capacity - 1)];
}

static uint32_t capacity_for(uint32_t entries)
{
    uint32_t capacity = 1;
    while (capacity < entries)
        capacity *= 2;
    return capacity;
}

static bool is_in_range(const struct alb_engine *engine, uint32_t entries)
{
    return entries > 0 && entries <= engine->config.cqe_max && entries <= 1u << 31;
}

int alb_cq_create(struct alb_engine *engine, uint32_t entries, void *user, struct alb_cq **out)
{
    if (!is_in_range(engine, entries))
        return EINVAL;
    if (engine->cq_count == engine->config.cq_max)
        return ENOMEM;
    struct alb_cq *cq = alb_engine_get_memory(engine, sizeof(*cq));
    if (!cq)
        return ENOMEM;
    cq->capacity = capacity_for(entries);
    cq->limit = ALB_MIN(cq->capacity, engine->config.cqe_max);
    cq->entries = alb_engine_get_memory(engine, (size_t)cq->capacity * sizeof(*cq->entries));
    if (!cq->entries) {
        alb_engine_put_memory(engine, cq, sizeof(*cq));
        return ENOMEM;
    }
    cq->engine = engine;
    cq->user = user;
    alb_event_node_init(&cq->event, ALB_EVENT_OF_CQ);
    engine->cq_count++;
    *out = cq;
    return 0;
}

int alb_cq_resize(struct alb_cq *cq, uint32_t entries)
{
    struct alb_engine *engine = cq->engine;
    uint32_t count = count_of(cq);
    if (!is_in_range(engine, entries) || entries < count)
        return EINVAL;
    uint32_t capacity = capacity_for(entries);
    struct alb_wc *moved = alb_engine_get_memory(engine, (size_t)capacity * sizeof(*moved));
    if (!moved)
        return ENOMEM;
    uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        moved[i] = *entry(cq, head + i);
    alb_engine_put_memory(engine, cq->entries, (size_t)cq->capacity * sizeof(*cq->entries));
    cq->entries = moved;
    cq->capacity = capacity;
    cq->limit = ALB_MIN(capacity, engine->config.cqe_max);
    uint32_t solicited = atomic_load_explicit(&cq->solicited, memory_order_relaxed) - head;
    atomic_store_explicit(&cq->solicited, (int32_t)solicited > 0 ? solicited : 0, memory_order_relaxed);
    atomic_store_explicit(&cq->head, 0, memory_order_relaxed);
    atomic_store_explicit(&cq->tail, count, memory_order_release);
    return 0;
}

bool alb_cq_is_used(const struct alb_cq *cq)
{
    return cq->refs > 0;
}

int alb_cq_destroy(struct alb_cq *cq)
{
    struct alb_engine *engine = cq->engine;
    if (alb_cq_is_used(cq))
        return EBUSY;
    alb_event_node_fini(&cq->event);
    alb_engine_put_memory(engine, cq->entries, (size_t)cq->capacity * sizeof(*cq->entries));
    alb_engine_put_memory(engine, cq, sizeof(*cq));
    engine->cq_count--;
    return 0;
}

uint32_t alb_cq_entries(const struct alb_cq *cq)
{
    return cq->limit;
}

void alb_cq_set_silent(struct alb_cq *cq)
{
    cq->is_silent = true;
}

// A queue that is armed for anything stays so when it is asked for solicited completions only.
bool alb_cq_arm(struct alb_cq *cq, enum alb_cq_arm arm)
{
    uint32_t armed = atomic_load_explicit(&cq->arm, memory_order_seq_cst);
    while (armed < (uint32_t)arm &&
           !atomic_compare_exchange_weak_explicit(&cq->arm, &armed, arm, memory_order_seq_cst, memory_order_seq_cst))
        ;
    uint32_t end = atomic_load_explicit(arm == ALB_CQ_ARM_NEXT ? &cq->tail : &cq->solicited, memory_order_seq_cst);
    uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    return arm != ALB_CQ_ARM_NONE && !cq->is_silent && (int32_t)(end - head) > 0;
}

bool alb_cq_is_armed(const struct alb_cq *cq)
{
    return !cq->is_silent && atomic_load_explicit(&cq->arm, memory_order_relaxed) != ALB_CQ_ARM_NONE;
}

void alb_cq_tell(struct alb_cq *cq)
{
    if (atomic_exchange_explicit(&cq->arm, ALB_CQ_ARM_NONE, memory_order_seq_cst) != ALB_CQ_ARM_NONE)
        alb_event_raise(cq->engine, &cq->event, ALB_EVENT_CQ_NOTIFY);
}

static void notify(struct alb_cq *cq, bool solicited)
{
    uint32_t armed = atomic_load_explicit(&cq->arm, memory_order_seq_cst);
    if (alb_likely(armed == ALB_CQ_ARM_NONE) || (armed == ALB_CQ_ARM_SOLICITED && !solicited))
        return;
    alb_cq_tell(cq);
}

bool alb_cq_push(struct alb_cq *cq, const struct alb_wc *wc, bool solicited, alb_time now)
{
    if (alb_unlikely(count_of(cq) >= cq->limit)) {
        atomic_store_explicit(&cq->overrun, true, memory_order_relaxed);
        if (!cq->has_told)
            alb_event_raise(cq->engine, &cq->event, ALB_EVENT_CQ_ERR);
        cq->has_told = true;
        return false;
    }
    // Only if it is not so: pollers read what is beside it.
    if (alb_unlikely(cq->has_told))
        cq->has_told = false;
    uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
    struct alb_wc *slot = entry(cq, tail);
    *slot = *wc;
    slot->timestamp = now;
    if (cq->is_silent) {
        atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
    } else {
        solicited |= wc->status != ALB_WC_SUCCESS;
        if (solicited)
            atomic_store_explicit(&cq->solicited, tail + 1, memory_order_relaxed);
        atomic_store_explicit(&cq->tail, tail + 1, memory_order_seq_cst);
        notify(cq, solicited);
    }
    return true;
}

bool alb_cq_is_empty(const struct alb_cq *cq)
{
    return atomic_load_explicit(&cq->head, memory_order_relaxed) ==
           atomic_load_explicit(&cq->tail, memory_order_seq_cst);
}

const struct alb_wc *alb_cq_peek(struct alb_cq *cq)
{
    uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&cq->tail, memory_order_seq_cst))
        return NULL;
    return entry(cq, head);
}

// The request that a send's completion ends leaves its queue with it; what the engine has read there is released.
static void give_place_back(const struct alb_wc *wc)
{
    if (!wc->qp || wc->opcode & ALB_WC_RECV)
        return;
    struct alb_send_queue *sq = &wc->qp->sq;
    uint32_t polled = atomic_load_explicit(&sq->polled, memory_order_relaxed);
    atomic_store_explicit(&sq->polled, polled + 1, memory_order_release);
}

void alb_cq_pop(struct alb_cq *cq)
{
    uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    give_place_back(entry(cq, head));
    atomic_store_explicit(&cq->head, head + 1, memory_order_release);
}

bool alb_cq_is_overrun(const struct alb_cq *cq)
{
    return atomic_load_explicit(&cq->overrun, memory_order_relaxed);
}

void alb_cq_forget_qp(struct alb_cq *cq, const struct alb_qp *qp)
{
    uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
    uint32_t kept = head;
    for (uint32_t i = head; i != tail; i++) {
        if (entry(cq, i)->qp == qp)
            continue;
        if (kept != i)
            *entry(cq, kept) = *entry(cq, i);
        kept++;
    }
    if ((int32_t)(atomic_load_explicit(&cq->solicited, memory_order_relaxed) - kept) > 0)
        atomic_store_explicit(&cq->solicited, kept, memory_order_relaxed);
    atomic_store_explicit(&cq->tail, kept, memory_order_release);
}
