// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_loose.h"

#include "engine/csa_cut.h"
#include "engine/csa_packet.h"
#include "engine/impl.h"
#include "engine/outbound.h"
#include "engine/segmenter.h"

enum {
    PATH_NONE = 0xff,         // its packets are not counted
    UNREPORTED_MAX = 1 << 16, // packets that left by a path and were not reported; then only what asks is counted
    PACKETS_PER_PING = 64,    // of so many each, one asks for a report
    PING_ROOM_BYTES = 8,      // that a segment leaves for that
    PAYLOAD_SURE = 512,       // what every network carries (RFC 791: 576 with headers)
    SEGMENT_BYTES_MIN = 512,  // so that a message of any size has no more segments than it may have
};

struct loose {
    struct alb_unreliable *u;
    struct alb_csa_packet packet; // live NULL: not counted
    alb_psn psn;                  // of its first frame
    uint8_t slot;
    bool is_known; // there is an association
    bool waits;    // for its rate
    uint32_t epoch, destination_epoch;
    uint32_t payload_max; // largest UDP payload that the path carries, ICRC included; 0: not known
    uint32_t hash;        // of the queue pair: its frames keep to one path
    uint16_t path;        // which of the association's that is now
};

// ---- a packet -------------------------------------------------------------------------------------------------------

// The queue pair's own, unless the path's policy has found that it is not good: then the next one that is, but for what
// tries its own again.
static uint16_t choose_path(struct alb_assoc_live *live, uint32_t hash, alb_time now)
{
    struct alb_paths_out *paths = live->paths;
    const struct alb_path_ops *ops = live->engine->path;
    uint16_t own = (uint16_t)(hash % paths->count);
    if (alb_path_load(paths, own)->state != ALB_PATH_GOOD && ops->may_try && ops->may_try(paths, own, now))
        return own;
    for (uint32_t i = 0; i < paths->count; i++) {
        uint16_t path = (uint16_t)((own + i) % paths->count);
        if (alb_path_load(paths, path)->state == ALB_PATH_GOOD)
            return path;
    }
    return own;
}

static uint32_t unreported(const struct alb_path_out *out)
{
    return (uint32_t)alb_psn_diff(out->next, out->settled);
}

static bool is_unheard(const struct loose *loose, const struct alb_assoc_live *live)
{
    return unreported(&live->paths->path[loose->path]) >= UNREPORTED_MAX;
}

// Of those that are not counted, too, each so many asks.
static bool asks_by_turn(const struct loose *loose)
{
    return loose->u->uncounted % PACKETS_PER_PING == 0;
}

// A peer that has never been heard cannot know that the packets are ours, and reports none. Where nothing has been
// heard of a path for long, the few that ask are counted: one of them that comes settles all before it.
static struct alb_assoc_live *counting(struct loose *loose, struct alb_assoc *assoc)
{
    if (assoc && assoc->rest)
        alb_assoc_wake(loose->u->qp->engine, assoc);
    struct alb_assoc_live *live = assoc && assoc->peer_epoch ? assoc->live : NULL;
    if (live)
        loose->path = choose_path(live, loose->hash, loose->packet.now);
    return live && (!is_unheard(loose, live) || asks_by_turn(loose)) ? live : NULL;
}

static void aim(struct loose *loose, const struct alb_csa_parcel *parcel)
{
    const struct alb_engine *engine = loose->u->qp->engine;
    struct alb_csa_packet *packet = &loose->packet;
    struct alb_assoc *assoc = alb_assoc_find(loose->u->qp->engine, parcel->local, parcel->peer, parcel->slot);
    loose->payload_max = assoc ? assoc->payload_max : parcel->payload_max;
    packet->live = counting(loose, assoc);
    packet->flow = (struct alb_flow){
        .peer = {*parcel->peer, (uint16_t)(ALB_ROCE_PORT + parcel->slot)},
        .local = {*parcel->local, 0},
        .path = packet->live ? loose->path : (uint16_t)(loose->hash % engine->config.path_max),
    };
    uint32_t payload_max = loose->payload_max ? loose->payload_max : PAYLOAD_SURE;
    uint32_t length_max = ALB_MIN(payload_max, engine->config.csa_payload_bytes) & ~3u;
    packet->room_bytes = length_max - ALB_CSA_OUTER_BYTES - ALB_ICRC_BYTES;
    loose->slot = parcel->slot;
    loose->is_known = assoc != NULL;
    loose->epoch = assoc ? alb_assoc_epoch(engine->csa, assoc)
                         : alb_csa_epoch_for(engine->csa, parcel->local, parcel->peer, parcel->slot);
    loose->destination_epoch = assoc ? assoc->peer_epoch : 0;
    loose->psn = loose->u->next;
}

static uint8_t class_of(const struct alb_csa_parcel *parcel)
{
    return (uint8_t)((parcel->traffic_class & ~ALB_ECN_MASK) | ALB_ECN_ECT0);
}

// The association's rate, where its policy has one, is for all that is counted. One that follows a window is for what
// the window is for.
static bool may_send(struct loose *loose)
{
    struct alb_assoc_live *live = loose->packet.live;
    if (!live || alb_congestion_rate_bytes_per_s(live->engine->congestion, &live->congestion) == 0)
        return true;
    alb_time at = alb_congestion_send_at(live->engine->congestion, &live->congestion, loose->packet.now);
    loose->waits = at > loose->packet.now;
    if (loose->waits)
        alb_wheel_arm(&live->engine->wheel, &loose->u->pace_timer.timer, at);
    return !loose->waits;
}

// False: the batch has no room, or it waits.
static bool open_packet(struct loose *loose, const struct alb_csa_parcel *parcel)
{
    struct alb_csa_packet *packet = &loose->packet;
    aim(loose, parcel);
    if (!may_send(loose))
        return false;
    if (packet->live) {
        packet->live->is_used = true;
        alb_mtu_consider(packet->live, packet->now);
        if (!alb_csa_packet_open(packet))
            return false;
    } else {
        packet->header = alb_tx_packet_begin(packet->builder, ALB_CSA_OUTER_BYTES);
        if (!packet->header)
            return false;
        packet->is_open = true;
        packet->frames = 0;
    }
    packet->flow.traffic_class = class_of(parcel);
    packet->flow.hop_limit = parcel->hop_limit;
    return true;
}

// Nothing else would ask for news of the path; and a peer that has never been heard answers it with a cookie
// (csa_hello.c).
static bool asks(const struct loose *loose)
{
    const struct alb_csa_packet *packet = &loose->packet;
    if (packet->live && !is_unheard(loose, packet->live))
        return unreported(&packet->live->paths->path[loose->path]) % PACKETS_PER_PING == PACKETS_PER_PING - 1;
    bool is_turn = asks_by_turn(loose);
    loose->u->uncounted += loose->is_known;
    return loose->is_known && is_turn;
}

static void add_ping(struct loose *loose)
{
    uint8_t room[ALB_CSA_FRAME_MAX];
    uint32_t bytes = alb_csa_encode_ping(0, room);
    struct alb_csa_packet *packet = &loose->packet;
    if (packet->frames == 0 || !asks(loose) || !alb_csa_packet_fits(packet, bytes))
        return;
    uint8_t *frame = alb_csa_packet_frame(packet, bytes, 0, 0);
    if (frame)
        memcpy(frame, room, bytes);
}

static void close_uncounted(struct loose *loose)
{
    struct alb_csa_packet *packet = &loose->packet;
    const struct alb_engine *engine = loose->u->qp->engine;
    const struct alb_csa_header header = {
        .dest_slot = loose->slot,
        .source_slot = engine->config.slot,
        .sequence = loose->psn,
        .source_epoch = loose->epoch,
        .destination_epoch = loose->destination_epoch,
        .timestamp = (uint32_t)packet->now,
        .path = PATH_NONE,
    };
    if (packet->frames == 0) {
        alb_tx_packet_cancel(packet->builder);
        return;
    }
    alb_csa_encode(&header, packet->header);
    alb_csa_set_pad(packet->header, alb_roce_pad(packet->builder->packet_bytes));
    uint32_t length = ((packet->builder->packet_bytes + 3) & ~3u) + ALB_ICRC_BYTES;
    packet->flow.may_be_cut = length > loose->payload_max;
    alb_tx_packet_end(packet->builder, &packet->flow);
}

static void close_packet(struct loose *loose)
{
    struct alb_csa_packet *packet = &loose->packet;
    if (!packet->is_open)
        return;
    add_ping(loose);
    if (packet->live) {
        alb_csa_packet_close(packet);
        return;
    }
    packet->is_open = false;
    close_uncounted(loose);
}

// ---- frames ---------------------------------------------------------------------------------------------------------

static bool goes_along(const struct loose *loose, const struct alb_csa_parcel *parcel, uint32_t bytes)
{
    const struct alb_csa_packet *packet = &loose->packet;
    return packet->is_open && loose->slot == parcel->slot && packet->flow.traffic_class == class_of(parcel) &&
           packet->flow.hop_limit == parcel->hop_limit && alb_addr_equals(&packet->flow.peer.addr, parcel->peer) &&
           alb_addr_equals(&packet->flow.local.addr, parcel->local) && alb_csa_packet_fits(packet, bytes);
}

// Room for the frame, in a further packet if need be; NULL: the batch is full, or it waits.
static uint8_t *make_frame(struct loose *loose, const struct alb_csa_parcel *parcel, uint32_t header_bytes,
                           uint32_t payload_bytes, uint32_t refs)
{
    struct alb_csa_packet *packet = &loose->packet;
    uint8_t *frame = NULL;
    if (goes_along(loose, parcel, header_bytes + payload_bytes))
        frame = alb_csa_packet_frame(packet, header_bytes, payload_bytes, refs);
    if (frame)
        return frame;
    close_packet(loose);
    return open_packet(loose, parcel) ? alb_csa_packet_frame(packet, header_bytes, payload_bytes, refs) : NULL;
}

// False: the batch is full, or it waits.
static bool add_frame(struct loose *loose, struct alb_send_wqe *wqe)
{
    struct alb_unreliable *u = loose->u;
    struct alb_csa_parcel parcel;
    if (u->qp->type == ALB_QPT_UD)
        alb_csa_ud_parcel(u, wqe, &parcel);
    else
        alb_csa_uc_parcel(u, wqe, &parcel);
    uint32_t bytes = alb_segmenter_bytes(wqe->length, wqe->segment_bytes, u->sent, 1);
    parcel.segment.payload_bytes = bytes;
    uint8_t *frame =
        make_frame(loose, &parcel, alb_csa_segment_bytes(parcel.type, &parcel.segment), bytes, alb_outbound_refs(wqe));
    if (!frame)
        return false;
    alb_csa_encode_segment(parcel.type, &parcel.segment, frame);
    if (!alb_unreliable_gather(u, wqe, loose->packet.builder, bytes)) {
        alb_csa_packet_undo(&loose->packet);
        return true;
    }
    alb_unreliable_sent(u, wqe, bytes, loose->packet.now);
    alb_csa_count_frames(u->qp, 1);
    u->qp->stats->stats.counter[ALB_STAT_sent_bytes] += bytes;
    return true;
}

// A group is not an engine: what goes to it is a RoCE packet.
static bool add_multicast(struct loose *loose, struct alb_send_wqe *wqe)
{
    struct alb_tx_builder *builder = loose->packet.builder;
    uint32_t segments_before;
    close_packet(loose);
    segments_before = builder->tx->segment_count;
    bool has_room = alb_unreliable_send_packet(loose->u, wqe, builder, loose->packet.now);
    alb_qp_count_sent(loose->u->qp, builder->tx, segments_before);
    return has_room;
}

// What UC has to say of messages of partial completion. False: the batch is full, or it waits.
static bool add_due(struct loose *loose)
{
    struct alb_csa_uc *uc = ALB_CONTAINER_OF(loose->u, struct alb_csa_uc, u);
    struct alb_csa_holds holds;
    while (alb_csa_partial_next_due(uc, &holds)) {
        struct alb_csa_parcel parcel;
        alb_csa_uc_control(loose->u, &parcel);
        uint8_t *frame = make_frame(loose, &parcel, alb_csa_holds_bytes(holds.word_count), 0, 0);
        if (!frame)
            return false;
        alb_csa_encode_holds(&holds, frame);
        alb_csa_partial_said(uc, &holds);
    }
    return true;
}

static enum alb_build_result add_frames(struct loose *loose, uint32_t turn)
{
    if (loose->u->qp->type == ALB_QPT_UC && !add_due(loose))
        return loose->waits ? ALB_BUILD_IDLE : ALB_BUILD_FULL;
    for (uint32_t i = 0; i < turn; i++) {
        struct alb_send_wqe *wqe = alb_unreliable_next(loose->u, loose->packet.now);
        if (!wqe)
            return ALB_BUILD_IDLE;
        bool is_multicast = loose->u->qp->type == ALB_QPT_UD && alb_addr_is_multicast(&wqe->av.peer);
        if (!(is_multicast ? add_multicast(loose, wqe) : add_frame(loose, wqe)))
            return loose->waits ? ALB_BUILD_IDLE : ALB_BUILD_FULL;
    }
    return alb_unreliable_has_more(loose->u) ? ALB_BUILD_MORE : ALB_BUILD_IDLE;
}

enum alb_build_result alb_csa_loose_build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    struct alb_qp *qp = ALB_CONTAINER_OF(source, struct alb_qp, source);
    struct loose loose = {
        .u = alb_unreliable_of(qp),
        .packet = {.builder = builder, .now = now},
        .hash = qp->number * 2654435761u >> 16 ^ qp->attr.dest_qpn,
    };
    enum alb_build_result result = add_frames(&loose, builder->tx->burst_segments_max);
    close_packet(&loose);
    return result;
}

uint32_t alb_csa_loose_payload(const struct alb_assoc *assoc, const struct alb_csa_segment *segment)
{
    uint32_t bytes = alb_csa_segment_payload(assoc, ALB_CSA_REQUEST, segment->op, segment->flags) - PING_ROOM_BYTES;
    return ALB_MAX(bytes, (uint32_t)SEGMENT_BYTES_MIN);
}
