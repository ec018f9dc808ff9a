// SPDX-License-Identifier: BSD-2-Clause
#include "engine/outbound.h"

#include "base/corruption.h"
#include "engine/impl.h"
#include "engine/inbound.h"
#include "engine/region_table.h"

static bool is_read(const struct alb_send_wqe *wqe)
{
    return wqe->opcode == ALB_WR_RDMA_READ;
}

// Requests whose answer is the 8 bytes that the peer's word held.
static bool is_fetching_atomic(const struct alb_send_wqe *wqe)
{
    return wqe->opcode == ALB_WR_ATOMIC_CMP_AND_SWP || wqe->opcode == ALB_WR_ATOMIC_FETCH_AND_ADD;
}

enum alb_wc_status alb_outbound_check(struct alb_qp *qp, const struct alb_send_wqe *wqe)
{
    if (alb_outbound_is_local(wqe) || wqe->flags & ALB_SEND_INLINE)
        return ALB_WC_SUCCESS;
    uint32_t access = is_read(wqe) || is_fetching_atomic(wqe) ? ALB_ACCESS_LOCAL_WRITE : 0;
    for (uint32_t i = 0; i < wqe->sge_count; i++) {
        const struct alb_sge *sge = &wqe->sge[i];
        uint8_t *host;
        if (alb_region_local(qp->engine, qp->pd, sge->lkey, sge->addr, sge->length, access, &host) != ALB_ACCESS_OK)
            return ALB_WC_LOC_PROT_ERR;
    }
    return ALB_WC_SUCCESS;
}

// The next stretch of a request's own memory that lies in one entry.
struct walk {
    const struct alb_sge *sge;
    const struct alb_sge *end;
    uint64_t skip;
};

static struct walk walk_from(const struct alb_send_wqe *wqe, uint64_t offset)
{
    return (struct walk){.sge = wqe->sge, .end = wqe->sge + wqe->sge_count, .skip = offset};
}

// Up to length bytes; 0: there are no more, or the key is no longer valid.
static uint32_t walk_next(struct alb_qp *qp, struct walk *walk, uint32_t length, uint32_t access, uint8_t **host)
{
    while (walk->sge != walk->end && walk->skip >= walk->sge->length)
        walk->skip -= walk->sge++->length;
    if (walk->sge == walk->end)
        return 0;
    uint32_t part = ALB_MIN(length, (uint32_t)(walk->sge->length - walk->skip));
    if (alb_region_local(qp->engine, qp->pd, walk->sge->lkey, walk->sge->addr + walk->skip, part, access, host) !=
        ALB_ACCESS_OK)
        return 0;
    walk->skip += part;
    return part;
}

// A piece of payload, as it is read.
static void add(const struct alb_engine *engine, struct alb_tx_builder *builder, const uint8_t *bytes, uint32_t length)
{
    alb_tx_payload(builder, alb_corrupt_read(engine->config.corruption, bytes, length), length);
}

bool alb_outbound_gather(struct alb_qp *qp, const struct alb_send_wqe *wqe, struct alb_tx_builder *builder,
                         uint64_t offset, uint32_t length)
{
    if (wqe->flags & ALB_SEND_INLINE) {
        add(qp->engine, builder, wqe->inline_data + offset, length);
        return true;
    }
    if (wqe->opcode == ALB_WR_TXN_END) {
        alb_tx_payload(builder, alb_txn_out_at(alb_csa_of(qp)->reflect_out, wqe->txn_number)->proposal + offset,
                       length);
        return true;
    }
    struct walk walk = walk_from(wqe, offset);
    while (length > 0) {
        uint8_t *host;
        uint32_t part = walk_next(qp, &walk, length, 0, &host);
        if (part == 0)
            return false;
        add(qp->engine, builder, host, part);
        length -= part;
    }
    return true;
}

uint32_t alb_outbound_stretch(struct alb_qp *qp, const struct alb_send_wqe *wqe, uint64_t offset, const uint8_t **bytes)
{
    struct walk walk = walk_from(wqe, offset);
    uint8_t *host;
    uint32_t length = walk_next(qp, &walk, UINT32_MAX, 0, &host);
    if (length > 0)
        *bytes = host;
    return length;
}

void alb_outbound_add_answer(const struct alb_engine *engine, struct alb_tx_builder *builder, const uint8_t *bytes,
                             uint32_t length)
{
    alb_tx_payload_that_may_change(builder, alb_corrupt_read(engine->config.corruption, bytes, length), length);
}

// One byte of it lies in one entry.
void alb_outbound_change_source(struct alb_qp *qp, const struct alb_send_wqe *wqe)
{
    struct alb_corruption *corruption = qp->engine->config.corruption;
    bool carries_data = !is_read(wqe) && !is_fetching_atomic(wqe) && !(wqe->flags & ALB_SEND_INLINE);
    if (alb_likely(!corruption) || wqe->length == 0 || !carries_data)
        return;
    struct walk walk = walk_from(wqe, alb_prng_below(&corruption->prng, wqe->length));
    uint8_t *host;
    if (walk_next(qp, &walk, 1, ALB_ACCESS_LOCAL_WRITE, &host) > 0)
        alb_corrupt(corruption, ALB_CORRUPT_SOURCE, host, 1);
}

enum alb_wc_status alb_outbound_scatter(struct alb_qp *qp, const struct alb_send_wqe *wqe, uint64_t offset,
                                        const uint8_t *bytes, uint32_t length)
{
    if (offset > wqe->length || length > wqe->length - offset)
        return ALB_WC_LOC_LEN_ERR;
    struct walk walk = walk_from(wqe, offset);
    while (length > 0) {
        uint8_t *host;
        uint32_t part = walk_next(qp, &walk, length, ALB_ACCESS_LOCAL_WRITE, &host);
        if (part == 0)
            return ALB_WC_LOC_PROT_ERR;
        alb_store_payload(qp->engine, host, bytes, part);
        bytes += part;
        length -= part;
    }
    return ALB_WC_SUCCESS;
}

bool alb_outbound_is_relaxed(struct alb_qp *qp, const struct alb_send_wqe *wqe)
{
    struct walk walk = walk_from(wqe, 0);
    for (uint64_t left = wqe->length; left > 0;) {
        uint8_t *host;
        uint32_t part = walk_next(qp, &walk, (uint32_t)ALB_MIN(left, (uint64_t)UINT32_MAX),
                                  ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_RELAXED_ORDERING, &host);
        if (part == 0)
            return false;
        left -= part;
    }
    return true;
}

bool alb_outbound_is_local(const struct alb_send_wqe *wqe)
{
    return wqe->opcode == ALB_WR_LOCAL_INV || wqe->opcode == ALB_WR_BIND_MW;
}

static enum alb_wc_status execute_bind(struct alb_qp *qp, const struct alb_queued_bind *queued)
{
    const struct alb_mw_bind bind = {
        .mw = alb_region_table_find_place(qp->engine, queued->mw_key),
        .mr = queued->mr_key ? alb_region_table_find(qp->engine, queued->mr_key) : NULL,
        .addr = queued->addr,
        .length = queued->length,
        .access = queued->access,
        .rkey = queued->rkey,
    };
    return alb_mw_bind(qp, &bind);
}

enum alb_wc_status alb_outbound_execute(struct alb_qp *qp, const struct alb_send_wqe *wqe)
{
    if (wqe->opcode == ALB_WR_BIND_MW)
        return execute_bind(qp, &wqe->bind);
    return alb_region_invalidate_local(qp, wqe->invalidate_rkey);
}

const char *alb_outbound_failure_text(enum alb_wc_status status)
{
    switch (status) {
    case ALB_WC_LOC_PROT_ERR:
        return "a local key does not cover the request's memory";
    case ALB_WC_LOC_LEN_ERR:
        return "the message is longer than the path MTU allows";
    case ALB_WC_MW_BIND_ERR:
        return "the memory window can't be bound so";
    case ALB_WC_LOC_QP_OP_ERR:
        return "the request is inconsistent with the queue pair";
    default:
        return "the request failed before it was sent";
    }
}
