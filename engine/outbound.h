// SPDX-License-Identifier: BSD-2-Clause
// What the verbs layer does for messages that go out: finds their bytes, scatters answers, executes local operations.
#pragma once

#include "engine/qp.h"
#include "engine/tx.h"

// Checks that every entry of the request may be read (or written: READ, atomics), before its first packet.
enum alb_wc_status alb_outbound_check(struct alb_qp *qp, const struct alb_send_wqe *wqe);

// How many references alb_outbound_gather adds at most.
static inline uint32_t alb_outbound_refs(const struct alb_send_wqe *wqe)
{
    return wqe->flags & ALB_SEND_INLINE || wqe->opcode == ALB_WR_TXN_END ? 1 : wqe->sge_count;
}

// Adds length bytes at offset of the message to the segment being built. False if a key is no longer valid: then the
// segment is not complete and must be given up (alb_outbound_check first).
bool alb_outbound_gather(struct alb_qp *qp, const struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                         uint64_t offset, uint32_t length);

// How much of the message lies in one piece from offset on, and where; 0: nothing, or a key is no longer valid.
uint32_t alb_outbound_stretch(struct alb_qp *qp, const struct alb_send_wqe *wqe, uint64_t offset,
                              const uint8_t **bytes);

// Adds a piece of what a READ asks for.
void alb_outbound_add_answer(const struct alb_engine *engine, struct alb_tx_builder *builder, const uint8_t *bytes,
                             uint32_t length);

// The request begins: corruption on demand of the memory that it carries.
void alb_outbound_change_source(struct alb_qp *qp, const struct alb_send_wqe *wqe);

// Puts bytes that answer a READ or atomic at offset of the request's own memory. LOC_PROT_ERR if a key is no longer
// valid.
enum alb_wc_status alb_outbound_scatter(struct alb_qp *qp, const struct alb_send_wqe *wqe, uint64_t offset,
                                        const uint8_t *bytes, uint32_t length);

// True if the order of what is stored in the request's own memory does not matter to the program.
bool alb_outbound_is_relaxed(struct alb_qp *qp, const struct alb_send_wqe *wqe);

// True for READs and atomic operations.
static inline bool alb_outbound_wants_answer(const struct alb_send_wqe *wqe)
{
    return wqe->opcode == ALB_WR_RDMA_READ || wqe->opcode == ALB_WR_ATOMIC_CMP_AND_SWP ||
           wqe->opcode == ALB_WR_ATOMIC_FETCH_AND_ADD || wqe->opcode == ALB_WR_ATOMIC_WRITE;
}

// True for requests that never reach the wire (LOCAL_INV, BIND_MW), and their execution.
bool alb_outbound_is_local(const struct alb_send_wqe *wqe);
enum alb_wc_status alb_outbound_execute(struct alb_qp *qp, const struct alb_send_wqe *wqe);

// Why a request failed before it was sent, for a log line.
const char *alb_outbound_failure_text(enum alb_wc_status status);
