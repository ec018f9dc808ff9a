// SPDX-License-Identifier: BSD-2-Clause
// Which peer a sender serves first, for the credit policy "shortest": as at a receiver (credit_shortest.c), that whose
// message has least left, less what it has gained by waiting. A message that began at t and has r bytes left is due at
// t + r / aging: of two such moments the difference does not change while both wait, so the scheduler compares numbers
// that were computed when the peer last had its turn. Likewise between the queue pairs that send to one peer. What is
// short goes before all: it takes little from the others, and would wait long behind what is old. So does what is said
// about the other direction, since a peer's messages must not wait for ours; but alone, else data would follow it out
// of turn.
#include "engine/impl.h"

// Of the request that the next new segment belongs to.
static uint64_t rest_bytes(const struct alb_stream_out *out, const struct alb_send_wqe *wqe)
{
    int32_t sent = alb_psn_diff(out->next, wqe->first_psn);
    return sent < 0 || (uint32_t)sent >= wqe->packets ? 0
                                                      : (uint64_t)(wqe->packets - (uint32_t)sent) * wqe->segment_bytes;
}

static alb_time due_of(const struct alb_engine *engine, const struct alb_stream_out *out, alb_time now)
{
    struct alb_csa *csa = out->csa;
    if (out->is_response || csa->cursor == csa->started)
        return now;
    const struct alb_send_wqe *wqe = alb_csa_wqe(csa, csa->cursor);
    if (csa->turn_began == 0 || csa->turn_psn != wqe->first_psn) {
        csa->turn_psn = wqe->first_psn;
        csa->turn_began = now;
    }
    uint64_t rest = rest_bytes(out, wqe);
    if (rest <= engine->config.window_start_bytes)
        return 0;
    unsigned __int128 ns = (unsigned __int128)rest * ALB_NS_PER_S;
    return csa->turn_began + (alb_time)(ns / engine->config.credit_aging_bytes_per_s);
}

alb_time alb_csa_turn_due(const struct alb_assoc_live *live, alb_time now)
{
    const struct alb_list *line = alb_list_is_empty(&live->ready) ? &live->waiting : &live->ready;
    if (!live->engine->csa->credit.ops->prefers_short || alb_list_is_empty(line))
        return 0;
    return due_of(live->engine, ALB_LIST_ENTRY(line->next, struct alb_stream_out, link), now);
}

void alb_csa_turn_tell(struct alb_assoc_live *live)
{
    struct alb_scheduler *scheduler = &live->engine->scheduler;
    if (!live->engine->csa->credit.ops->prefers_short) {
        alb_scheduler_wake(scheduler, &live->source);
        return;
    }
    live->source.due = 0;
    alb_scheduler_wake_first(scheduler, &live->source);
}

bool alb_csa_turn_only_tells(const struct alb_assoc_live *live, alb_time now)
{
    if (!live->engine->csa->credit.ops->prefers_short || live->source.due != 0)
        return false;
    bool tells = !alb_list_is_empty(&live->reports) || live->paths_are_due || live->trimmed_is_due ||
                 !alb_list_is_empty(&live->reflections) || live->pong_bytes || live->cnp_is_due;
    return tells && alb_csa_turn_due(live, now) != 0;
}

void alb_csa_turn_choose(struct alb_assoc_live *live, alb_time now)
{
    if (!live->engine->csa->credit.ops->prefers_short || live->ready.next == live->ready.prev)
        return;
    struct alb_stream_out *first = NULL;
    alb_time least = ALB_TIME_NEVER;
    uint32_t left = ALB_SCHEDULER_COMPARED;
    ALB_LIST_FOR_EACH (&live->ready, node) {
        struct alb_stream_out *out = ALB_LIST_ENTRY(node, struct alb_stream_out, link);
        alb_time due = due_of(live->engine, out, now);
        if (due < least) {
            first = out;
            least = due;
        }
        if (--left == 0)
            break;
    }
    alb_list_remove(&first->link);
    alb_list_push_front(&live->ready, &first->link);
}
