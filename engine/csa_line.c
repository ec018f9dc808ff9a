// SPDX-License-Identifier: BSD-2-Clause
// No sender waits for ever: what is in flight is released some day, every release lets as many of them try as what it
// freed may serve, and while none is ready as many follow as there is room for. Not all of them at once: of a thousand
// all but the first few would find the window closed again.
#include "engine/csa_line.h"

#include "engine/impl.h"

static struct alb_assoc_live *live_of(const struct alb_stream_out *out)
{
    return out->csa->assoc->live;
}

// Behind the others of that place.
static void put(struct alb_stream_out *out, enum alb_line_place place)
{
    struct alb_assoc_live *live = live_of(out);
    live->in_line += out->place == ALB_LINE_NONE;
    out->place = place;
    alb_list_remove(&out->link);
    alb_list_push_back(place == ALB_LINE_READY ? &live->ready : &live->waiting, &out->link);
}

void alb_line_join(struct alb_stream_out *out, bool is_urgent)
{
    struct alb_assoc_live *live = live_of(out);
    bool waits = !is_urgent && !alb_list_is_empty(&live->waiting) && !alb_csa_turn_has_order(live);
    put(out, waits ? ALB_LINE_WAITING : ALB_LINE_READY);
}

void alb_line_leave(struct alb_stream_out *out)
{
    alb_list_remove(&out->link);
    if (out->place != ALB_LINE_NONE)
        live_of(out)->in_line--;
    out->place = ALB_LINE_NONE;
}

void alb_line_pass(struct alb_stream_out *out)
{
    put(out, ALB_LINE_READY);
}

void alb_line_go_on(struct alb_stream_out *out)
{
    alb_assert(out->place == ALB_LINE_READY);
    alb_list_remove(&out->link);
    alb_list_push_front(&live_of(out)->ready, &out->link);
}

void alb_line_hasten(struct alb_stream_out *out)
{
    alb_assert(out->place == ALB_LINE_WAITING);
    alb_list_remove(&out->link);
    alb_list_push_front(&live_of(out)->waiting, &out->link);
}

void alb_line_wait(struct alb_stream_out *out, bool is_urgent)
{
    put(out, ALB_LINE_WAITING);
    if (is_urgent)
        alb_line_hasten(out);
    live_of(out)->is_shut = true;
}

static void let_in(struct alb_assoc_live *live, uint32_t count)
{
    while (count-- > 0 && !alb_list_is_empty(&live->waiting))
        put(ALB_LIST_ENTRY(live->waiting.next, struct alb_stream_out, link), ALB_LINE_READY);
}

// Long segments that so many bytes are room for; one may go in any case, or be short.
static uint32_t segments_of(const struct alb_assoc_live *live, uint64_t bytes)
{
    return ALB_MAX((uint32_t)(bytes / live->assoc->payload_max), 1u);
}

void alb_line_open(struct alb_assoc_live *live, uint32_t freed_bytes)
{
    live->is_shut = false;
    if (alb_list_is_empty(&live->waiting) || !alb_assoc_permits(live, 1))
        return;
    if (alb_csa_turn_has_order(live))
        let_in(live, UINT32_MAX);
    else if (!alb_list_is_empty(&live->ready)) // those that are ready may never be done
        let_in(live, segments_of(live, ALB_MIN(freed_bytes, alb_assoc_room_bytes(live))));
    alb_csa_turn_hurry(live, live->engine->now);
    alb_scheduler_wake(&live->engine->scheduler, &live->source);
}

struct alb_stream_out *alb_line_next(struct alb_assoc_live *live)
{
    if (alb_list_is_empty(&live->ready) && !live->is_shut && alb_assoc_permits(live, 1))
        let_in(live, segments_of(live, alb_assoc_room_bytes(live)));
    return alb_list_is_empty(&live->ready) ? NULL : ALB_LIST_ENTRY(live->ready.next, struct alb_stream_out, link);
}
