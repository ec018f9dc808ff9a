// SPDX-License-Identifier: BSD-2-Clause
// Runs in: segments that come one behind the other as their sender made them. What was proved of the first one - whose
// packet it is, which stream and message it belongs to - holds for those that repeat its bytes but for the numbers that
// must rise by one. They are as hostile as any: each byte is either compared, or checked, or never read.
#include "engine/csa_run.h"

#include "engine/impl.h"
#include "wire/bytes.h"

// Offsets in the packet.
#define TIMESTAMP     (ALB_BTH_BYTES + 8 + 12)
#define TIMESTAMP_END (TIMESTAMP + 4)
#define FRAME_FLAGS   (ALB_CSA_OUTER_BYTES + ALB_RUN_FLAGS)
#define FRAME_PSN     (ALB_CSA_OUTER_BYTES + ALB_RUN_PSN)
#define FRAME_INDEX   (ALB_CSA_OUTER_BYTES + ALB_RUN_INDEX)
#define FRAME_TOTAL   (ALB_CSA_OUTER_BYTES + ALB_RUN_TOTAL)

struct run {
    const struct alb_datagram *first;
    struct alb_csa *csa;
    struct alb_stream_in *in;
    struct alb_path_in *path;
    struct alb_csa_header header;
    struct alb_csa_segment segment; // the one that came last, then the one that comes next
    uint32_t header_bytes;          // of the packet and the frame
    alb_psn sequence;
    struct alb_room room; // for those that come; none: their place is looked for one by one
};

static bool is_message(const struct alb_csa_frame *frame)
{
    uint8_t op = frame->segment.op;
    return frame->type == ALB_CSA_REQUEST ? alb_csa_is_message(op) || op == ALB_CSA_TXN_WRITE
                                          : frame->type == ALB_CSA_RESPONSE && op == ALB_CSA_READ_DATA;
}

// A whole segment of a message's or an answer's middle, alone.
static bool read_first(struct run *run)
{
    struct alb_csa_cursor cursor;
    struct alb_csa_frame frame;
    enum alb_drop drop;
    const struct alb_datagram *first = run->first;
    if (alb_csa_decode(first->bytes, first->length, &run->header, &cursor) != ALB_DROP_NONE ||
        !alb_csa_next(&cursor, &frame, &drop) || cursor.at != cursor.end || !is_message(&frame))
        return false;
    run->segment = frame.segment;
    run->header_bytes = (uint32_t)(frame.segment.payload - first->bytes);
    run->in = frame.type == ALB_CSA_RESPONSE ? &run->csa->in_responses : &run->csa->in_requests;
    return (frame.segment.flags & ~ALB_CSA_REPORT_NOW) == 0;
}

// Its sender is the one that the queue pair is bound to, and nothing has to be proved.
static bool is_proven(struct alb_engine *engine, struct run *run)
{
    const struct alb_csa_header *header = &run->header;
    const struct alb_assoc *assoc = run->csa->assoc;
    return assoc && assoc->live && header->dest_slot == engine->config.slot && header->source_slot == assoc->slot &&
           header->destination_epoch == assoc->live->epoch && header->source_epoch == assoc->peer_epoch &&
           header->source_epoch == run->csa->bound_epoch &&
           alb_assoc_find(engine, &run->first->local.addr, &run->first->peer.addr, assoc->slot) == assoc;
}

// The first one was taken, and everything before it; the next one is within the same message.
static bool is_in_order(const struct run *run)
{
    const struct alb_csa_segment *segment = &run->segment;
    const struct alb_stream_in *in = run->in;
    return in->is_open && !in->waits_rnr && in->op == segment->op && in->segment_bytes == segment->payload_bytes &&
           in->total_bytes == segment->total_bytes && in->cumulative == alb_psn_next(segment->psn) &&
           in->highest == in->cumulative && alb_list_is_empty(&in->early) &&
           in->first == alb_psn_add(segment->psn, -(int32_t)segment->index) && in->placed == segment->index + 1;
}

// The memory for what is left of the message is looked up once, where that will do.
static void make_room(struct run *run)
{
    const struct alb_csa_segment *segment = &run->segment;
    uint32_t offset = (segment->index + 1) * segment->payload_bytes; // within the message, for it is open
    if (!run->in->ops->place_begin || !run->in->ops->place_begin(run->csa, segment, offset, &run->room))
        run->room = (struct alb_room){0};
}

static enum alb_outcome place(struct run *run, uint32_t offset, alb_time now)
{
    const struct alb_csa_segment *segment = &run->segment;
    if (run->room.left < segment->payload_bytes)
        return run->in->ops->place(run->csa, segment, offset, now);
    alb_place_next(run->csa->qp->engine, &run->room, segment->payload, segment->payload_bytes);
    return ALB_OUTCOME_OK;
}

static bool begin(struct alb_engine *engine, struct run *run)
{
    struct alb_csa *csa = run->csa = engine->csa->heard_last;
    if (!csa || !read_first(run) || csa->qp->number != run->segment.dest_qpn || csa->qp->type != ALB_QPT_RC ||
        csa->expect || engine->csa->credit.ops->prefers_short || alb_qp_state_of(csa->qp) == ALB_QPS_ERR ||
        !is_proven(engine, run) || !is_in_order(run))
        return false;
    run->path = alb_assoc_path_in(csa->assoc->live, run->header.path);
    run->sequence = run->header.sequence;
    return run->path != NULL;
}

// What the next one has in common with the first, and its numbers.
static bool continues(const struct run *run, const uint8_t *bytes)
{
    const uint8_t *first = run->first->bytes;
    const struct alb_csa_segment *next = &run->segment;
    return memcmp(bytes, first, ALB_RUN_BTH_PSN) == 0 && alb_get_be24(bytes + ALB_RUN_BTH_PSN) == run->sequence &&
           memcmp(bytes + ALB_BTH_BYTES, first + ALB_BTH_BYTES, TIMESTAMP - ALB_BTH_BYTES) == 0 &&
           memcmp(bytes + TIMESTAMP_END, first + TIMESTAMP_END, FRAME_FLAGS - TIMESTAMP_END) == 0 &&
           bytes[FRAME_FLAGS] == 0 && alb_get_be24(bytes + FRAME_PSN) == next->psn &&
           alb_get_be24(bytes + FRAME_INDEX) == next->index &&
           memcmp(bytes + FRAME_TOTAL, first + FRAME_TOTAL, run->header_bytes - FRAME_TOTAL) == 0;
}

// False: it is left as it was.
static bool take(struct run *run, const struct alb_datagram *datagram, alb_time now)
{
    struct alb_csa_segment *segment = &run->segment;
    struct alb_stream_in *in = run->in;
    uint32_t timestamp = alb_get_be32(datagram->bytes + TIMESTAMP), offset = segment->index * segment->payload_bytes;
    if ((uint64_t)offset + segment->payload_bytes >= segment->total_bytes ||
        !alb_path_in_is_next(run->path, run->sequence))
        return false;
    segment->payload = datagram->bytes + run->header_bytes;
    if (place(run, offset, now) != ALB_OUTCOME_OK)
        return false; // as it is found again, and then acted upon
    in->placed++;
    in->cumulative = in->highest = alb_psn_next(segment->psn);
    alb_path_in_take_next(run->path, timestamp, now);
    alb_trace_add(run->csa->qp->engine, ALB_TRACE_receive, run->csa->qp->number, segment->psn,
                  ALB_TRACE_CSA_OP(segment->op), segment->payload_bytes, now);
    alb_assoc_heard(run->csa->assoc->live, now);
    alb_assoc_note_received(run->csa->assoc->live, datagram->length, now);
    return true;
}

uint32_t alb_csa_run_in(struct alb_engine *engine, const struct alb_datagram *datagrams, uint32_t count, alb_time now)
{
    struct run run = {.first = datagrams};
    uint32_t taken = 0;
    if (alb_datagram_is_marked(datagrams) || !begin(engine, &run))
        return 0;
    make_room(&run);
    for (; taken + 1 < count; taken++) {
        const struct alb_datagram *next = &datagrams[taken + 1];
        run.sequence = alb_psn_next(run.sequence);
        run.segment.psn = alb_psn_next(run.segment.psn);
        run.segment.index++;
        if (!alb_datagram_is_like(next, datagrams) || !continues(&run, next->bytes) || !take(&run, next, now))
            break;
    }
    alb_qp_count(run.csa->qp, ALB_STAT_rcvd_pkts, taken);
    alb_qp_count(run.csa->qp, ALB_STAT_rcvd_bytes, (uint64_t)taken * run.segment.payload_bytes);
    return taken;
}
