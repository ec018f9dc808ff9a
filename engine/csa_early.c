// SPDX-License-Identifier: BSD-2-Clause
// The last one of each group stands behind the bitmap of what is held, if that is from the pool; the own one has a
// single group. A bitmap covers as many PSNs as it has bits, from the cumulative one on, so only the group of that one
// may have PSNs of both ends.
#include "engine/csa_early.h"

#include "engine/impl.h"

enum {
    GROUP = 64, // PSNs
};

static alb_psn psn_of(const struct alb_list *node)
{
    return ALB_LIST_ENTRY(node, struct alb_early, link)->segment.psn;
}

// NULL: there is one group.
static struct alb_early **lasts_of(const struct alb_stream_in *in)
{
    return in->held == in->own ? NULL : (struct alb_early **)(in->held + in->capacity / 64);
}

static uint32_t group_of(const struct alb_stream_in *in, alb_psn psn)
{
    return (psn & (in->capacity - 1)) / GROUP;
}

static void note(struct alb_stream_in *in, struct alb_early *early)
{
    struct alb_early **lasts = lasts_of(in);
    if (!lasts)
        return;
    struct alb_early **last = &lasts[group_of(in, early->segment.psn)];
    if (!*last || alb_psn_is_after(early->segment.psn, (*last)->segment.psn))
        *last = early;
}

void alb_early_index(struct alb_stream_in *in)
{
    ALB_LIST_FOR_EACH (&in->early, node)
        note(in, ALB_LIST_ENTRY(node, struct alb_early, link));
}

// ---- places ---------------------------------------------------------------------------------------------------------

static struct alb_list *place_before(struct alb_stream_in *in, struct alb_list *after, alb_psn psn, uint32_t *steps)
{
    for (; after != &in->early && alb_psn_is_after(psn_of(after), psn); after = after->prev)
        ++*steps;
    return after;
}

static struct alb_list *place_from_first(struct alb_stream_in *in, alb_psn psn, uint32_t *steps)
{
    struct alb_list *next = in->early.next;
    for (; next != &in->early && alb_psn_is_before(psn_of(next), psn); next = next->next)
        ++*steps;
    return next->prev;
}

// The last one of the PSN's group, or of the nearest group before it that has any; there is one that waits.
static struct alb_early *nearest(struct alb_stream_in *in, alb_psn psn, uint32_t *steps)
{
    struct alb_early **lasts = lasts_of(in);
    uint32_t group = group_of(in, psn), groups = in->capacity / GROUP;
    struct alb_early *last = lasts[group];
    if (last && alb_psn_diff(psn, last->segment.psn) >= GROUP) // of the other end
        last = NULL;
    for (uint32_t i = 1; !last && i <= groups; i++, ++*steps)
        last = lasts[(group - i) & (groups - 1)];
    return last;
}

// Mostly the newest, so the ends are looked at first.
struct alb_list *alb_early_place(struct alb_stream_in *in, alb_psn psn, uint32_t *steps)
{
    struct alb_list *newest = in->early.prev;
    *steps = 1;
    if (newest == &in->early || alb_psn_is_before(psn_of(newest), psn))
        return newest;
    ++*steps;
    if (alb_psn_is_before(psn, psn_of(in->early.next)))
        return &in->early;
    if (!lasts_of(in))
        return place_before(in, newest, psn, steps);
    if (alb_psn_diff(psn, in->cumulative) < GROUP)
        return place_from_first(in, psn, steps);
    struct alb_early *last = nearest(in, psn, steps);
    if (alb_psn_diff(last->segment.psn, psn) >= GROUP) // of the other end: those before it there are the first ones
        return place_from_first(in, psn, steps);
    return place_before(in, &last->link, psn, steps);
}

// ---- what waits -----------------------------------------------------------------------------------------------------

// Whole blocks count, since that is what the pool is short of.
static struct alb_early *get_block(struct alb_stream_in *in, uint32_t payload_bytes)
{
    struct alb_engine *engine = in->csa->qp->engine;
    uint32_t bytes = (uint32_t)alb_buddy_block_bytes(sizeof(struct alb_early) + payload_bytes);
    if (engine->csa->waiting_bytes + bytes > engine->config.csa_early_bytes_max)
        return NULL;
    struct alb_early *early = alb_buddy_get(&engine->csa->pool, bytes);
    if (!early)
        return NULL;
    early->bytes = bytes;
    in->early_bytes += bytes;
    engine->csa->waiting_bytes += bytes;
    return early;
}

static void put_block(struct alb_stream_in *in, struct alb_early *early)
{
    struct alb_csa_engine *engine = in->csa->qp->engine->csa;
    in->early_bytes -= early->bytes;
    engine->waiting_bytes -= early->bytes;
    alb_buddy_put(&engine->pool, early, early->bytes);
}

static void insert(struct alb_stream_in *in, struct alb_early *early, const struct alb_csa_segment *segment,
                   bool is_placed)
{
    uint32_t steps;
    early->segment = *segment;
    early->segment.payload = is_placed ? NULL : early->payload;
    early->is_placed = is_placed;
    if (segment->payload_bytes && !is_placed)
        memcpy(early->payload, segment->payload, segment->payload_bytes);
    alb_list_init(&early->link);
    alb_list_push_front(alb_early_place(in, segment->psn, &steps), &early->link);
    note(in, early);
}

// What is dropped is sent again, and may not have been placed: its header has its block before.
bool alb_early_keep(struct alb_stream_in *in, const struct alb_csa_segment *segment,
                    alb_early_try_to_place *try_to_place)
{
    struct alb_early *early = get_block(in, try_to_place ? 0 : segment->payload_bytes);
    if (!early)
        return false;
    bool is_placed = try_to_place && try_to_place(in, segment);
    if (try_to_place && !is_placed) {
        put_block(in, early);
        early = get_block(in, segment->payload_bytes);
        if (!early)
            return false;
    }
    insert(in, early, segment, is_placed);
    return true;
}

void alb_early_put_first(struct alb_stream_in *in)
{
    struct alb_early *early = alb_early_first(&in->early), **lasts = lasts_of(in);
    if (lasts && lasts[group_of(in, early->segment.psn)] == early)
        lasts[group_of(in, early->segment.psn)] = NULL;
    alb_list_remove(&early->link);
    put_block(in, early);
}
