// SPDX-License-Identifier: BSD-2-Clause
// Which memory a datagram needs. One that comes in follows a chain of some ten pointers from the engine to the message;
// with thousands of engines in one process none of it is in a cache, and each step would wait for the one before.
#include "engine/impl.h"

enum {
    LINE = 64,
};

static void add(struct alb_engine_hot *hot, const void *from, size_t bytes)
{
    uintptr_t first = (uintptr_t)from / LINE, last = ((uintptr_t)from + bytes - 1) / LINE;
    for (uintptr_t line = first; from && line <= last && hot->line_count < ALB_COUNT(hot->lines); line++)
        hot->lines[hot->line_count++] = (const void *)(line * LINE);
}

#define ADD_FIELDS(hot, object, first, behind) \
    add(hot, &(object)->first, offsetof(__typeof__(*(object)), behind) - offsetof(__typeof__(*(object)), first))

static void add_engine(struct alb_engine_hot *hot, const struct alb_engine *engine)
{
    struct alb_timer *const *earliest = alb_wheel_earliest(&engine->wheel);
    ADD_FIELDS(hot, &engine->config, slot, seed);
    add(hot, &engine->wheel, LINE / 2); // those of its levels that are due soon
    if (earliest) {
        add(hot, earliest, sizeof(*earliest));
        add(hot, *earliest, sizeof((*earliest)->at));
    }
    ADD_FIELDS(hot, engine, now, xrc_srqs);
    ADD_FIELDS(hot, engine, scheduler, groups);
    ADD_FIELDS(hot, engine, events, reflect);
    add(hot, &engine->stats->sum.counter[ALB_STAT_sent_pkts], LINE);
}

static void add_association(struct alb_engine_hot *hot, const struct alb_csa_engine *csa)
{
    const struct alb_assoc *assoc = csa->found_last;
    ADD_FIELDS(hot, csa, packet_number, buckets);
    add(hot, csa->locals, sizeof(csa->locals[0]));
    add(hot, &csa->loss.ops, sizeof(csa->loss.ops));
    ADD_FIELDS(hot, &csa->credit, ops, count);
    add(hot, &csa->replies, 1);
    if (!assoc)
        return;
    add(hot, assoc, sizeof(*assoc));
    add(hot, assoc->live, assoc->live ? offsetof(struct alb_assoc_live, trimmed) : 1);
    if (assoc->live && assoc->live->paths_in) {
        hot->paths = assoc->live->paths_in;
        hot->path_bytes = sizeof(*assoc->live->paths_in);
        hot->path_count = assoc->live->paths_in_count;
    }
}

static void add_queue_pair(struct alb_engine_hot *hot, const struct alb_engine *engine, const struct alb_csa *csa)
{
    const struct alb_qp *qp = csa->qp;
    add(hot, &engine->qps[qp->number & 0xffff], sizeof(*engine->qps));
    ADD_FIELDS(hot, qp, engine, attr);
    ADD_FIELDS(hot, qp, cap, sq);
    ADD_FIELDS(hot, qp, recv_is_taken, flow);
    ADD_FIELDS(hot, qp, delivery, source);
    add(hot, &qp->stats, sizeof(qp->stats));
    add(hot, &qp->stats->stats.counter[ALB_STAT_sent_pkts], sizeof(uint64_t));
    if (qp->recv_cq) {
        add(hot, &qp->recv_cq->tail, sizeof(qp->recv_cq->tail));
        add(hot, &qp->recv_cq->head, sizeof(qp->recv_cq->head));
    }
    ADD_FIELDS(hot, csa, bound_epoch, expect);
    ADD_FIELDS(hot, csa, heard, answer_cursor);
    ADD_FIELDS(hot, &csa->responses, una, capacity);
}

static void add_receiver(struct alb_engine_hot *hot, const struct alb_engine *engine, const struct alb_csa *csa)
{
    uint32_t index = csa->target.rkey >> 8 & (engine->region_table_size - 1);
    const struct alb_region *region = engine->regions[index];
    add(hot, &csa->in_requests, sizeof(csa->in_requests));
    add(hot, &csa->target, sizeof(csa->target));
    add(hot, &engine->regions[index], sizeof(*engine->regions));
    if (region)
        ADD_FIELDS(hot, region, engine, window_count);
}

// It hears reports, and sends.
static void add_sender(struct alb_engine_hot *hot, const struct alb_csa *csa)
{
    const struct alb_stream_out *out = &csa->requests;
    const struct alb_assoc_live *live = csa->assoc ? csa->assoc->live : NULL;
    add(hot, out, sizeof(*out));
    if (out->sent)
        add(hot, alb_stream_out_at(out, out->una), 2 * LINE);
    if (live && live->paths)
        add(hot, alb_path_load(live->paths, 0), live->paths->count * sizeof(struct alb_path_load));
}

void alb_engine_hot(const struct alb_engine *engine, struct alb_engine_hot *hot)
{
    const struct alb_csa *csa = engine->csa ? engine->csa->heard_last : NULL;
    hot->line_count = 0;
    hot->paths = NULL;
    add_engine(hot, engine);
    if (engine->csa)
        add_association(hot, engine->csa);
    if (!csa)
        return;
    add_queue_pair(hot, engine, csa);
    if (csa->in_requests.is_open)
        add_receiver(hot, engine, csa);
    else
        add_sender(hot, csa);
}
