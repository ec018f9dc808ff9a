// SPDX-License-Identifier: BSD-2-Clause
// Runs out: what a burst of a long message has behind its first packet.
#include "engine/csa_run.h"

#include "engine/impl.h"
#include "engine/outbound.h"
#include "wire/bytes.h"

struct run {
    struct alb_stream_out *out;
    const struct alb_send_wqe *wqe; // NULL: an answer
    uint8_t opcode;                 // of the request, for the trace
    bool is_full;                   // its packets have the size in use (struct alb_sent)
    struct alb_csa_rest_out rest;
};

// Of a turn while others are in line. Half as many cost next to nothing more; with a whole burst a short message waits
// a quarter longer behind sixteen long ones (LESSONS 141).
enum { TURN_PACKETS = 16 };

static bool is_alone(const struct alb_assoc_live *live)
{
    return live->ready.next == live->ready.prev;
}

// In packets: one window is enough for a turn of each that is in line.
static uint32_t turn_of(const struct alb_csa_packet *packet)
{
    const struct alb_assoc_live *live = packet->live;
    uint32_t most = ALB_MIN((uint32_t)TURN_PACKETS, packet->builder->tx->burst_segments_max);
    uint32_t share = live->congestion.window_bytes / live->in_line / live->assoc->payload_max;
    return ALB_MAX(ALB_MIN(share, most), 1u);
}

// How many packets of the stream's turn may follow its first one. Where the line has an order each packet is for whom
// is first then.
static uint32_t take_turn(struct alb_stream_out *out, const struct alb_csa_packet *packet, uint32_t packets_max)
{
    uint32_t left = out->turn_left;
    out->turn_left = 0;
    if (is_alone(packet->live))
        return packets_max;
    if (alb_csa_turn_has_order(packet->live))
        return 0;
    return (left ? left : turn_of(packet)) - 1;
}

static bool is_steady(const struct alb_stream_out *out)
{
    const struct alb_csa *csa = out->csa;
    enum alb_qp_state state = alb_qp_state_of(csa->qp);
    bool may_send = out->is_response ? state != ALB_QPS_ERR : state == ALB_QPS_RTS && !csa->is_waiting_rnr;
    return may_send && csa->qp->type == ALB_QPT_RC && out->lost_count == 0 && out->probes == 0 && !out->probe_is_due &&
           !out->has_probe_psn;
}

static bool is_plain(const struct alb_send_wqe *wqe)
{
    bool is_message = wqe->opcode == ALB_WR_RDMA_WRITE || wqe->opcode == ALB_WR_RDMA_WRITE_WITH_IMM ||
                      wqe->opcode == ALB_WR_SEND || wqe->opcode == ALB_WR_SEND_WITH_IMM ||
                      wqe->opcode == ALB_WR_TXN_WRITE;
    return is_message && !wqe->is_done && !(wqe->flags & ALB_SEND_INLINE) && wqe->txn_number == 0;
}

// What is left of the request that the next segment belongs to; false: it begins with it, or is not of the plain kind.
static bool find_request(struct run *run)
{
    struct alb_csa *csa = run->out->csa;
    if (csa->cursor == csa->started)
        return false;
    const struct alb_send_wqe *wqe = alb_csa_wqe(csa, csa->cursor);
    int32_t k = alb_psn_diff(run->out->next, wqe->first_psn);
    if (!is_plain(wqe) || k < 1 || (uint32_t)k + 1 >= wqe->packets)
        return false;
    run->wqe = wqe;
    run->opcode = wqe->opcode;
    run->rest =
        (struct alb_csa_rest_out){.k = (uint32_t)k, .packets = wqe->packets, .segment_bytes = wqe->segment_bytes};
    run->rest.bytes_count =
        alb_outbound_stretch(csa->qp, wqe, (uint64_t)run->rest.k * wqe->segment_bytes, &run->rest.bytes);
    return true;
}

static bool find_answer(struct run *run)
{
    run->wqe = NULL;
    run->opcode = ALB_WR_RDMA_READ;
    return alb_csa_answer_rest(run->out->csa, run->out->next, &run->rest);
}

// The packet holds the segment before that one, and nothing else.
static bool is_before(const struct alb_csa_packet *packet, const struct run *run)
{
    const uint8_t *frame = packet->header + ALB_CSA_OUTER_BYTES;
    return packet->frames == 1 && packet->charged_bytes == run->rest.segment_bytes + ALB_CSA_SEGMENT_OVERHEAD &&
           !packet->flow.may_be_cut && frame[0] == (run->out->is_response ? ALB_CSA_RESPONSE : ALB_CSA_REQUEST) &&
           alb_get_be24(frame + ALB_RUN_PSN) == alb_psn_add(run->out->next, -1) &&
           (frame[ALB_RUN_FLAGS] & ~ALB_CSA_REPORT_NOW) == 0;
}

// False: the next segment, if there is one, goes the ordinary way.
static bool begin(const struct alb_csa_packet *packet, struct alb_stream_out *out, struct run *run)
{
    run->out = out;
    if (!is_steady(out) || out->csa->qp->engine->config.corruption ||
        !(out->is_response ? find_answer(run) : find_request(run)) || !is_before(packet, run) ||
        !alb_tx_can_repeat(packet->builder, run->rest.segment_bytes))
        return false;
    run->is_full = alb_stream_out_at(out, alb_psn_add(out->next, -1))->is_full;
    return true;
}

// The next segment is one of the message's middle, and its bytes lie in one piece.
static bool goes_on(const struct alb_csa_rest_out *rest)
{
    return rest->k + 1 < rest->packets && rest->bytes_count >= rest->segment_bytes;
}

static void write_numbers(struct alb_csa_packet *packet, const struct run *run, uint8_t *header, uint8_t flags)
{
    uint8_t *frame = header + ALB_CSA_OUTER_BYTES;
    alb_put_be24(header + ALB_RUN_BTH_PSN, packet->sequence);
    frame[ALB_RUN_FLAGS] = flags;
    alb_put_be24(frame + ALB_RUN_PSN, run->out->next);
    alb_put_be24(frame + ALB_RUN_INDEX, run->rest.k);
}

// As alb_csa_packet_charge does.
static void charge(struct alb_csa_packet *packet, struct run *run, uint32_t cost_bytes)
{
    struct alb_stream_out *out = run->out;
    *alb_stream_out_at(out, out->next) = (struct alb_sent){
        .at_64ns = (uint32_t)(packet->now >> 6),
        .sequence = packet->sequence,
        .path = packet->flow.path,
        .bytes = (uint16_t)cost_bytes,
        .state = ALB_SENT_FLYING,
        .times = 1,
        .is_full = run->is_full,
    };
    out->next = alb_psn_next(out->next);
    out->inflight_bytes += cost_bytes;
    packet->live->inflight_bytes += cost_bytes;
    alb_path_sent(packet->live->paths, packet->flow.path, cost_bytes, packet->now);
}

static bool asks_for_report(const struct run *run, uint32_t cost_bytes)
{
    struct alb_csa *csa = run->out->csa;
    return run->wqe ? alb_csa_asks_for_report(csa, run->wqe, false, false, cost_bytes)
                    : alb_csa_answer_asks_for_report(csa, false, cost_bytes);
}

static bool add(struct alb_csa_packet *packet, struct run *run, uint32_t cost_bytes)
{
    struct alb_engine *engine = packet->live->engine;
    struct alb_csa_rest_out *rest = &run->rest;
    if (!alb_assoc_permits(packet->live, cost_bytes) || !alb_stream_out_has_room(run->out))
        return false;
    uint8_t *header = alb_tx_repeat(packet->builder, rest->bytes);
    if (!header)
        return false;
    bool asks = asks_for_report(run, cost_bytes);
    packet->sequence = alb_psn_next(packet->sequence);
    write_numbers(packet, run, header, asks ? ALB_CSA_REPORT_NOW : 0);
    alb_trace_add(engine, ALB_TRACE_send, run->out->csa->qp->number, run->out->next, run->opcode, rest->segment_bytes,
                  packet->now);
    charge(packet, run, cost_bytes);
    alb_congestion_on_sent(engine->congestion, &packet->live->congestion, packet->builder->burst->segment_bytes,
                           packet->now);
    rest->bytes += rest->segment_bytes;
    rest->bytes_count -= rest->segment_bytes;
    rest->k++;
    return true;
}

// The end of a burst cuts turns, now this one's, now that one's, or always the same one's.
static void resume_later(struct alb_stream_out *out, uint32_t packets)
{
    if (packets == 0 || is_alone(out->csa->assoc->live))
        return;
    out->turn_left = (uint8_t)packets;
    alb_line_go_on(out);
}

// How long a burst is that has the rest of a message, too; 0: longer than the window, or than what a path that is only
// tried should have. In two bursts, on two paths, the message would take twice the system calls, and what comes with
// the first one would keep a program's poll from finding the second (LESSONS 145).
static uint32_t to_its_end(const struct alb_csa_packet *packet, const struct alb_csa_rest_out *rest,
                           uint32_t data_bytes, uint32_t cost_bytes)
{
    const struct alb_assoc_live *live = packet->live;
    uint64_t bytes = data_bytes + (uint64_t)(rest->packets - rest->k) * cost_bytes;
    bool is_good = alb_path_load(live->paths, packet->flow.path)->state == ALB_PATH_GOOD;
    return is_good && bytes <= live->congestion.window_bytes ? (uint32_t)bytes : 0;
}

uint32_t alb_csa_run_out(struct alb_csa_packet *packet, uint32_t packets_max, uint32_t *burst_bytes,
                         uint32_t *data_bytes)
{
    struct alb_stream_out *out = packet->filled_by;
    struct run run;
    uint32_t count = 0, turn = out ? take_turn(out, packet, packets_max) : 0;
    alb_csa_packet_close(packet);
    if (turn == 0 || !begin(packet, out, &run))
        return 0;
    uint32_t cost_bytes = run.rest.segment_bytes + ALB_CSA_SEGMENT_OVERHEAD;
    *burst_bytes = ALB_MAX(*burst_bytes, to_its_end(packet, &run.rest, *data_bytes, cost_bytes));
    while (count < ALB_MIN(packets_max, turn) && *data_bytes < *burst_bytes && goes_on(&run.rest) &&
           add(packet, &run, cost_bytes)) {
        *data_bytes += cost_bytes;
        count++;
    }
    if (*data_bytes >= *burst_bytes || alb_tx_burst_is_full(packet->builder))
        resume_later(out, turn - count);
    if (count == 0)
        return 0;
    alb_csa_count_frames(out->csa->qp, count);
    out->csa->qp->stats->stats.counter[ALB_STAT_sent_bytes] += (uint64_t)count * run.rest.segment_bytes;
    out->sent_at = packet->now;
    alb_stream_out_watch(out, packet->now);
    return count;
}
