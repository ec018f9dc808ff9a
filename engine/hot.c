// SPDX-License-Identifier: BSD-2-Clause
// Which memory a datagram needs. One that comes in follows a chain of some ten pointers from the engine to the message;
// with thousands of engines in one process none of it is in a cache, and each step would wait for the one before.
#include "engine/impl.h"

enum {
    LINE = 64,
};

struct lines {
    const void **at;
    uint32_t count, max;
};

static void add(struct lines *lines, const void *from, size_t bytes)
{
    uintptr_t first = (uintptr_t)from / LINE, last = ((uintptr_t)from + bytes - 1) / LINE;
    for (uintptr_t line = first; from && line <= last && lines->count < lines->max; line++)
        lines->at[lines->count++] = (const void *)(line * LINE);
}

static void add_engine(struct lines *lines, const struct alb_engine *engine)
{
    add(lines, &engine->wheel, offsetof(struct alb_wheel, roots));
    add(lines, &engine->now, offsetof(struct alb_engine, csa) + sizeof(engine->csa) - offsetof(struct alb_engine, now));
}

static void add_association(struct lines *lines, const struct alb_csa_engine *csa)
{
    const struct alb_assoc *assoc = csa->found_last;
    add(lines, &csa->epoch, offsetof(struct alb_csa_engine, buckets) - offsetof(struct alb_csa_engine, epoch));
    add(lines, csa->locals, sizeof(csa->locals[0]));
    add(lines, &csa->loss, sizeof(csa->loss));
    if (!assoc)
        return;
    add(lines, assoc, sizeof(*assoc));
    add(lines, assoc->live, assoc->live ? sizeof(*assoc->live) : 1);
}

static void add_queue_pair(struct lines *lines, const struct alb_engine *engine, const struct alb_csa *csa)
{
    const struct alb_qp *qp = csa->qp;
    const struct alb_stream_in *in = &csa->in_requests;
    add(lines, &engine->qps[qp->number & 0xffff], sizeof(*engine->qps));
    add(lines, qp, offsetof(struct alb_qp, cap));
    add(lines, &qp->delivery, sizeof(qp->delivery) + sizeof(qp->delivery_state));
    add(lines, &qp->stats->stats.counter[ALB_STAT_sent_pkts], 2 * LINE);
    add(lines, csa, 2 * sizeof(csa->qp));
    if (in->is_open) { // it receives
        uint32_t index = csa->target.rkey >> 8 & (engine->region_table_size - 1);
        add(lines, in, sizeof(*in));
        add(lines, &csa->heard, sizeof(csa->heard));
        add(lines, &csa->target, sizeof(csa->target));
        add(lines, &engine->regions[index], sizeof(*engine->regions));
        add(lines, engine->regions[index], LINE + 8);
    } else {
        add(lines, &csa->requests, sizeof(csa->requests));
    }
}

uint32_t alb_engine_hot_lines(const struct alb_engine *engine, const void **lines_out, uint32_t lines_max)
{
    struct lines lines = {lines_out, 0, lines_max};
    add_engine(&lines, engine);
    if (!engine->csa)
        return lines.count;
    add_association(&lines, engine->csa);
    if (engine->csa->heard_last)
        add_queue_pair(&lines, engine, engine->csa->heard_last);
    return lines.count;
}
