// SPDX-License-Identifier: BSD-2-Clause
// XRC domains, and the shared receive queues that requests name by number (annex A14). The table of numbers exists
// while there is one to name.
#include "engine/xrc.h"

#include "engine/impl.h"

#include <errno.h>

// ---- domains --------------------------------------------------------------------------------------------------------

int alb_xrcd_create(struct alb_engine *engine, struct alb_xrcd **out)
{
    if (engine->xrcd_count == engine->config.xrcd_max)
        return ENOMEM;
    struct alb_xrcd *xrcd = alb_engine_get_memory(engine, sizeof(*xrcd));
    if (!xrcd)
        return ENOMEM;
    xrcd->engine = engine;
    alb_list_init(&xrcd->qps);
    engine->xrcd_count++;
    *out = xrcd;
    return 0;
}

int alb_xrcd_destroy(struct alb_xrcd *xrcd)
{
    struct alb_engine *engine = xrcd->engine;
    if (xrcd->refs > 0)
        return EBUSY;
    alb_engine_put_memory(engine, xrcd, sizeof(*xrcd));
    engine->xrcd_count--;
    return 0;
}

// ---- numbers --------------------------------------------------------------------------------------------------------

// One place more than there can be queues: number 0 is not used.
static uint32_t table_size(const struct alb_engine *engine)
{
    return ALB_MIN(engine->config.srq_max, 0xfffeu) + 1;
}

static int open_table(struct alb_engine *engine)
{
    if (engine->xrc_srq_count == table_size(engine) - 1)
        return ENOMEM;
    if (!engine->xrc_srqs)
        engine->xrc_srqs = alb_engine_get_memory(engine, table_size(engine) * sizeof(*engine->xrc_srqs));
    return engine->xrc_srqs ? 0 : ENOMEM;
}

static void close_table(struct alb_engine *engine)
{
    if (engine->xrc_srq_count > 0)
        return;
    alb_engine_put_memory(engine, engine->xrc_srqs, table_size(engine) * sizeof(*engine->xrc_srqs));
    engine->xrc_srqs = NULL;
}

// Searched from a random place on, so that a number says nothing about the next.
static uint32_t take_index(struct alb_engine *engine, struct alb_srq *srq)
{
    uint32_t count = table_size(engine) - 1;
    uint32_t index = 1 + alb_rng_below(&engine->rng, count);
    while (engine->xrc_srqs[index])
        index = index % count + 1;
    engine->xrc_srqs[index] = srq;
    engine->xrc_srq_count++;
    return index;
}

static struct alb_srq *find(const struct alb_qp *qp, uint32_t number)
{
    const struct alb_engine *engine = qp->engine;
    uint32_t index = number & 0xffff;
    if (!engine->xrc_srqs || number >> 16 != engine->config.slot || index >= table_size(engine))
        return NULL;
    struct alb_srq *srq = engine->xrc_srqs[index];
    return srq && srq->xrcd == qp->xrcd ? srq : NULL;
}

int alb_srq_create_xrc(struct alb_pd *pd, struct alb_xrcd *xrcd, struct alb_cq *cq, uint32_t wr_max, uint32_t sge_max,
                       uint32_t limit, void *user, struct alb_srq **out)
{
    struct alb_engine *engine = pd->engine;
    struct alb_srq *srq;
    int error = open_table(engine);
    if (error)
        return error;
    error = alb_srq_create(pd, wr_max, sge_max, limit, user, &srq);
    if (error) {
        close_table(engine);
        return error;
    }
    srq->xrcd = xrcd;
    srq->cq = cq;
    srq->number = (uint32_t)engine->config.slot << 16 | take_index(engine, srq);
    xrcd->refs++;
    cq->refs++;
    *out = srq;
    return 0;
}

// A message in progress is not received any more: its receive is the program's again, like those still posted.
void alb_xrc_forget_srq(struct alb_srq *srq)
{
    struct alb_engine *engine = srq->pd->engine;
    ALB_LIST_FOR_EACH (&srq->xrcd->qps, node) {
        struct alb_qp *qp = ALB_LIST_ENTRY(node, struct alb_qp, of_xrcd);
        if (qp->named_srq != srq)
            continue;
        qp->named_srq = NULL;
        qp->recv_is_taken = false;
    }
    engine->xrc_srqs[srq->number & 0xffff] = NULL;
    engine->xrc_srq_count--;
    close_table(engine);
    srq->xrcd->refs--;
    srq->cq->refs--;
}

uint32_t alb_srq_number(const struct alb_srq *srq)
{
    return srq->number;
}

// ---- requests -------------------------------------------------------------------------------------------------------

enum alb_outcome alb_xrc_name(struct alb_qp *qp, uint32_t number, bool is_in_progress)
{
    struct alb_srq *srq = find(qp, number);
    if (!srq || (is_in_progress && srq != qp->named_srq))
        return ALB_OUTCOME_INVALID_REQUEST;
    qp->named_srq = srq;
    qp->keys_pd = srq->pd;
    return ALB_OUTCOME_OK;
}

enum alb_outcome alb_xrc_name_keys(struct alb_qp *qp, uint32_t number)
{
    const struct alb_srq *srq = find(qp, number);
    if (!srq)
        return ALB_OUTCOME_INVALID_REQUEST;
    qp->keys_pd = srq->pd;
    return ALB_OUTCOME_OK;
}
