// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_packet.h"

#include "engine/impl.h"

enum {
    ECT0 = ALB_ECN_ECT0,
    PATH_NONE = 0xff,
};

void alb_csa_packet_init(struct alb_csa_packet *packet, struct alb_assoc_live *live, struct alb_tx_builder *builder,
                         alb_time now)
{
    const struct alb_assoc *assoc = live->assoc;
    *packet = (struct alb_csa_packet){
        .live = live,
        .builder = builder,
        .flow.peer = {assoc->peer, (uint16_t)(ALB_ROCE_PORT + assoc->slot)},
        .flow.local = {live->engine->csa->locals[assoc->local], 0},
        .flow.traffic_class = ECT0,
        .now = now,
    };
    packet->flow.path = alb_paths_choose(live->paths, live->engine->path, (uint32_t)(assoc - live->engine->csa->assocs),
                                         builder->tx->burst_bytes_max, now);
}

// What is gathered behind a message's last segment should not make its packet longer than those before it, or it would
// leave by a call of its own. Behind short packets it may: few of them would hold it.
static uint32_t length_max(const struct alb_csa_packet *packet)
{
    uint32_t most = packet->live->assoc->payload_max, room = alb_tx_burst_room(packet->builder, &packet->flow);
    return room >= most / 2 ? ALB_MIN(room, most) : most;
}

bool alb_csa_packet_open(struct alb_csa_packet *packet)
{
    struct alb_assoc_live *live = packet->live;
    uint8_t *header = alb_tx_packet_begin(packet->builder, ALB_CSA_OUTER_BYTES);
    if (!header)
        return false;
    packet->is_open = true;
    packet->has_class = packet->is_whole = false;
    packet->frames = packet->charged_bytes = 0;
    packet->header = header;
    packet->filled_by = NULL;
    packet->sequence = live->paths->path[packet->flow.path].next;
    packet->room_bytes = (length_max(packet) & ~3u) - ALB_CSA_OUTER_BYTES - ALB_ICRC_BYTES;
    return true;
}

// A PING to a peer that has never been heard proves nothing to it: it is dropped, and not counted.
static bool is_counted(const struct alb_csa_packet *packet)
{
    return !packet->is_whole || packet->live->assoc->peer_epoch != 0;
}

void alb_csa_packet_close(struct alb_csa_packet *packet)
{
    struct alb_assoc_live *live = packet->live;
    const struct alb_engine *engine = live->engine;
    if (!packet->is_open)
        return;
    packet->is_open = false;
    if (packet->frames == 0) {
        alb_tx_packet_cancel(packet->builder);
        return;
    }
    const struct alb_csa_header header = {
        .dest_slot = live->assoc->slot,
        .source_slot = engine->config.slot,
        .sequence = packet->sequence,
        .source_epoch = live->epoch,
        .destination_epoch = live->assoc->peer_epoch,
        .timestamp = (uint32_t)packet->now,
        .path = is_counted(packet) ? (uint8_t)packet->flow.path : PATH_NONE,
        .rtt_code = alb_csa_time_encode(live->rtt_ns),
    };
    alb_csa_encode(&header, packet->header);
    alb_csa_set_pad(packet->header, alb_roce_pad(packet->builder->packet_bytes));
    uint32_t length = ((packet->builder->packet_bytes + 3) & ~3u) + ALB_ICRC_BYTES;
    packet->flow.is_whole = packet->is_whole;
    packet->flow.may_be_cut = length > live->assoc->payload_max && !packet->is_whole;
    uint32_t bytes = alb_tx_packet_end(packet->builder, &packet->flow);
    if (is_counted(packet))
        alb_path_sent(live->paths, packet->flow.path, 0, packet->now); // its segments have been charged
    alb_congestion_on_sent(engine->congestion, &live->congestion, bytes, packet->now);
}

uint8_t *alb_csa_packet_frame(struct alb_csa_packet *packet, uint32_t header_bytes, uint32_t payload_bytes,
                              uint32_t refs)
{
    uint32_t pad = alb_roce_pad(packet->builder->packet_bytes);
    uint8_t *frame = alb_tx_packet_bytes(packet->builder, pad + header_bytes, payload_bytes, refs);
    if (!frame)
        return NULL;
    if (pad)
        memset(frame, 0, pad);
    uint32_t bytes = pad + header_bytes + payload_bytes;
    packet->room_bytes -= ALB_MIN(bytes, packet->room_bytes);
    packet->frames++;
    return frame + pad;
}

void alb_csa_packet_undo(struct alb_csa_packet *packet)
{
    alb_tx_packet_undo(packet->builder);
    packet->frames--;
}

// Wide: the segment's message was cut before the path became narrower.
static void note_size(const struct alb_csa_packet *packet, struct alb_sent *sent)
{
    uint32_t bytes = packet->builder->packet_bytes + ALB_ICRC_BYTES, most = packet->live->assoc->payload_max;
    sent->is_wide = bytes > most;
    sent->is_full = bytes <= most && bytes + ALB_MTU_GRAIN > most;
}

void alb_csa_packet_charge(struct alb_csa_packet *packet, struct alb_stream_out *out,
                           const struct alb_csa_segment *segment)
{
    // A probe into silence delays nothing else, and keeps nothing awake.
    uint32_t bytes = alb_stream_out_is_silent(out) ? 0 : segment->payload_bytes + ALB_CSA_SEGMENT_OVERHEAD;
    alb_path_charge(packet->live->paths, packet->flow.path, bytes);
    alb_stream_out_sent(out, segment->psn, bytes, packet->flow.path, packet->sequence, packet->now);
    note_size(packet, alb_stream_out_at(out, segment->psn));
    packet->charged_bytes += bytes;
    out->csa->qp->stats->stats.counter[ALB_STAT_sent_bytes] += segment->payload_bytes;
}
