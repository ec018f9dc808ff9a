// SPDX-License-Identifier: BSD-2-Clause
// Which peer a sender serves first, for the credit policy "shortest": as at a receiver (credit_shortest.c), that whose
// message has least left, less what it has gained by waiting. A message that began at t and has r bytes left is due at
// t + r / aging: of two such moments the difference does not change while both wait, so the scheduler compares numbers
// that were computed when the peer last had its turn, or something came into its line. Likewise between the queue pairs
// that send to one peer.
//
// Before all goes what is short: it takes little from the others, and would wait long behind what is old. So does what
// was lost, and what asks for it, since its turn has been once, and often nothing else is missing of its message. And
// so does what is said about the other direction, since a peer's messages must not wait for ours. But each of them goes
// alone, else data would follow it out of turn.
#include "engine/impl.h"
#include "engine/outbound.h"

// That a stream's next new segment belongs to.
struct message {
    alb_psn first;
    uint64_t rest_bytes;
};

static uint64_t rest_bytes(const struct alb_stream_out *out, alb_psn first, uint32_t packets, uint32_t segment_bytes)
{
    int32_t sent = alb_psn_diff(out->next, first);
    return sent < 0 || (uint32_t)sent >= packets ? 0 : (uint64_t)(packets - (uint32_t)sent) * segment_bytes;
}

static bool next_request(const struct alb_csa *csa, struct message *next)
{
    uint32_t tail = atomic_load_explicit(&csa->qp->sq.tail, memory_order_acquire);
    for (uint32_t i = csa->cursor; i != tail; i++) {
        const struct alb_send_wqe *wqe = alb_csa_wqe(csa, i);
        bool is_cut = i != csa->started;
        *next = (struct message){
            .first = is_cut ? wqe->first_psn : csa->started_psn,
            .rest_bytes = is_cut ? rest_bytes(&csa->requests, wqe->first_psn, wqe->packets, wqe->segment_bytes)
                                 : (alb_outbound_wants_answer(wqe) ? 0 : wqe->length),
        };
        if (!is_cut || next->rest_bytes > 0)
            return true;
    }
    return false;
}

static bool next_answer(const struct alb_csa *csa, struct message *next)
{
    const struct alb_csa_answer *answer = alb_csa_find_answer(csa, csa->responses.next);
    if (!answer)
        return false;
    *next = (struct message){
        .first = answer->first,
        .rest_bytes = rest_bytes(&csa->responses, answer->first, answer->packets, answer->segment_bytes),
    };
    return true;
}

static bool mends(struct alb_stream_out *out)
{
    alb_psn psn;
    return out->lost_count > 0 || out->probe_is_due || alb_stream_out_take_probe(out, &psn);
}

static alb_time due_of(const struct alb_engine *engine, struct alb_stream_out *out, alb_time now)
{
    struct message next;
    if (mends(out) || !(out->is_response ? next_answer(out->csa, &next) : next_request(out->csa, &next)))
        return 0;
    if (out->turn_began == 0 || out->turn_psn != next.first) {
        out->turn_psn = next.first;
        out->turn_began = now;
    }
    if (next.rest_bytes <= engine->config.window_start_bytes)
        return 0;
    unsigned __int128 ns = (unsigned __int128)next.rest_bytes * ALB_NS_PER_S;
    return out->turn_began + (alb_time)(ns / engine->config.credit_aging_bytes_per_s);
}

bool alb_csa_turn_has_order(const struct alb_assoc_live *live)
{
    return live->engine->csa->credit.ops->prefers_short;
}

alb_time alb_csa_turn_due(const struct alb_assoc_live *live, alb_time now)
{
    const struct alb_list *line = alb_list_is_empty(&live->ready) ? &live->waiting : &live->ready;
    if (!alb_csa_turn_has_order(live) || alb_list_is_empty(line))
        return 0;
    return due_of(live->engine, ALB_LIST_ENTRY(line->next, struct alb_stream_out, link), now);
}

void alb_csa_turn_hurry(struct alb_assoc_live *live, alb_time now)
{
    struct alb_source *source = &live->source;
    if (!alb_csa_turn_has_order(live))
        return;
    alb_csa_turn_choose(live, now);
    alb_time due = alb_csa_turn_due(live, now);
    source->due = source->is_ready ? ALB_MIN(source->due, due) : due;
}

void alb_csa_turn_tell(struct alb_assoc_live *live)
{
    struct alb_scheduler *scheduler = &live->engine->scheduler;
    if (!alb_csa_turn_has_order(live)) {
        alb_scheduler_wake(scheduler, &live->source);
        return;
    }
    live->source.due = 0;
    alb_scheduler_wake_first(scheduler, &live->source);
}

bool alb_csa_turn_is_over(const struct alb_assoc_live *live, alb_time now)
{
    return alb_csa_turn_has_order(live) && live->source.due == 0 && alb_csa_turn_due(live, now) != 0;
}

void alb_csa_turn_choose(struct alb_assoc_live *live, alb_time now)
{
    if (!alb_csa_turn_has_order(live) || live->ready.next == live->ready.prev)
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
