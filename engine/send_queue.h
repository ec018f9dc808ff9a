// SPDX-License-Identifier: BSD-2-Clause
// Send queue: the ring of posted work requests of one queue pair, with what the requester notes about each.
#pragma once

#include "engine/verbs.h"
#include "wire/psn.h"

#include <stdatomic.h>

// A bind as it waits in the queue: by keys, since what it names may be destroyed before it is executed.
struct alb_queued_bind {
    uint32_t mw_key;
    uint32_t mr_key; // 0: none
    uint32_t access;
    uint32_t rkey;
    uint64_t addr;
    uint64_t length;
};

struct alb_send_wqe {
    uint64_t wr_id;
    uint8_t opcode; // enum alb_wr_opcode
    uint8_t flags;  // enum alb_send_flags; ALB_SEND_SIGNALED is resolved with sq_sig_all
    uint8_t status; // enum alb_wc_status, of a request that failed before it was sent
    bool is_done;   // executed here: a local operation, or one that failed before it was sent
    uint16_t sge_count;
    uint32_t length; // bytes of the message
    uint32_t imm_data;
    uint32_t invalidate_rkey;
    alb_psn first_psn; // set when it is first sent
    uint32_t packets;  // PSNs it takes: request packets, or response packets of a READ
    uint32_t xrc_srqn;
    uint32_t segment_bytes; // csa: payload of each segment but the last
    uint32_t recv_number;   // csa: receives that earlier requests use
    bool is_answered;       // csa
    bool is_resend;         // csa, UC: only what the peer does not hold goes
    uint32_t partial;       // csa, UC: number of the message of partial completion; 0: it is none
    uint8_t vendor_err;     // of its completion: enum alb_txn_reason
    uint64_t txn_number;    // of an operation that waits for a verdict; 0: none
    union {
        struct {
            uint64_t remote_addr;
            uint64_t compare_add;
            uint64_t swap;
            uint32_t rkey;
        };
        struct {
            struct alb_av av;
            alb_qpn remote_qpn;
            uint32_t remote_qkey;
        };
        struct alb_queued_bind bind;
    };
    union {
        struct alb_sge sge[0];
        uint8_t inline_data[0];
    };
};

struct alb_send_queue {
    uint8_t *slots;
    uint32_t stride;
    uint32_t capacity; // a power of two
    uint32_t sge_max;
    uint32_t inline_max_bytes;
    _Alignas(64) uint32_t staged;       // one past the last request staged; the program's
    _Atomic uint32_t tail;              // one past the last request handed over; written by the program
    _Atomic uint32_t polled;            // completions popped; written by the program
    _Alignas(64) _Atomic uint32_t head; // the oldest request not completed; written by the engine
    _Atomic uint32_t silent;            // requests completed without a completion; written by the engine
};

static inline struct alb_send_wqe *alb_send_queue_at(const struct alb_send_queue *queue, uint32_t index)
{
    return (struct alb_send_wqe *)(queue->slots + (size_t)(index & (queue->capacity - 1)) * queue->stride);
}

// Requests that can be staged. A request whose completion waits in its queue keeps its place until that is popped: a
// program that polls only when it is told that the send queue is full does not overrun its completion queue. Counted by
// what was polled and what is silent, so that a program that has polled N completions finds N places whatever the
// engine completes meanwhile.
uint32_t alb_send_queue_room(const struct alb_send_queue *queue);

int alb_send_queue_init(struct alb_engine *engine, struct alb_send_queue *queue, const struct alb_qp_cap *cap);
void alb_send_queue_fini(struct alb_engine *engine, struct alb_send_queue *queue);
void alb_send_queue_clear(struct alb_send_queue *queue);
