// SPDX-License-Identifier: BSD-2-Clause
// Receive queue: the ring of posted receives of one queue pair, or shared by many.
#pragma once

#include "engine/event.h"
#include "engine/verbs.h"

#include <stdatomic.h>

struct alb_recv_wqe {
    uint64_t wr_id;
    uint64_t length; // of all its entries, or that of the longest message
    uint32_t sge_count;
    struct alb_sge sge[];
};

struct alb_recv_queue {
    uint8_t *slots;
    uint32_t stride;
    uint32_t capacity; // a power of two
    uint32_t sge_max;
    _Alignas(64) _Atomic uint32_t tail; // written by the program
    _Alignas(64) _Atomic uint32_t head; // written by the engine
};

struct alb_srq {
    struct alb_pd *pd;
    void *user;
    struct alb_xrcd *xrcd; // NULL: not one of XRC
    struct alb_cq *cq;     // XRC: where its receives complete
    uint32_t number;       // XRC: what requests name it by
    uint32_t refs;         // queue pairs attached
    uint32_t limit;        // 0: not armed
    struct alb_event_node event;
    struct alb_recv_queue queue;
};

// wr_max is rounded up to a power of two. ENOMEM.
int alb_recv_queue_init(struct alb_engine *engine, struct alb_recv_queue *queue, uint32_t wr_max, uint32_t sge_max);
void alb_recv_queue_fini(struct alb_engine *engine, struct alb_recv_queue *queue);
uint32_t alb_recv_wqe_bytes(uint32_t sge_max);

// [ring] ENOMEM when full, EINVAL for too many entries.
int alb_recv_queue_post(struct alb_recv_queue *queue, uint64_t wr_id, const struct alb_sge *sge, uint32_t sge_count);
// Copies the oldest receive into *wqe (room for alb_recv_wqe_bytes(sge_max)) and frees its slot; false if there is
// none.
bool alb_recv_queue_take(struct alb_recv_queue *queue, struct alb_recv_wqe *wqe);
// The receive that will be taken after that many others; NULL if it is not posted yet.
const struct alb_recv_wqe *alb_recv_queue_peek(const struct alb_recv_queue *queue, uint32_t behind);
uint32_t alb_recv_queue_count(const struct alb_recv_queue *queue);
// Forgets all that is posted.
void alb_recv_queue_clear(struct alb_recv_queue *queue);

// alb_recv_queue_take on a shared queue, with its limit event.
bool alb_srq_take(struct alb_srq *srq, struct alb_recv_wqe *wqe);
