// SPDX-License-Identifier: BSD-2-Clause
#include "engine/gsi.h"

#include "engine/cm_impl.h"

#include <errno.h>

enum {
    MADS_PER_TURN = 16,
};

static struct alb_gsi_mad *mad_at(const struct alb_gsi *gsi, uint32_t index)
{
    return &gsi->ring[index & (gsi->capacity - 1)];
}

static void build_one(struct alb_gsi *gsi, struct alb_tx_builder *builder)
{
    const struct alb_gsi_mad *mad = mad_at(gsi, gsi->sent++);
    struct alb_roce roce = {
        .opcode = ALB_UD_SEND_ONLY,
        .pkey = ALB_PKEY_DEFAULT,
        .dest_qpn = mad->qpn,
        .psn = gsi->psn,
        .qkey = ALB_GSI_QKEY,
        .src_qpn = mad->src_qpn,
    };
    gsi->psn = alb_psn_add(gsi->psn, 1);
    alb_tx_begin(builder, &mad->flow, &roce, ALB_MAD_BYTES);
    alb_tx_payload(builder, mad->bytes, ALB_MAD_BYTES);
    alb_tx_end(builder);
}

// What an earlier batch referred to, the driver has let go of.
static enum alb_build_result build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    struct alb_gsi *gsi = ALB_CONTAINER_OF(source, struct alb_gsi, source);
    for (unsigned i = 0; i < MADS_PER_TURN && gsi->sent != gsi->queued; i++) {
        if (!alb_tx_has_room(builder, 1))
            return ALB_BUILD_FULL;
        build_one(gsi, builder);
    }
    return gsi->sent != gsi->queued ? ALB_BUILD_MORE : ALB_BUILD_IDLE;
}

int alb_gsi_init(struct alb_gsi *gsi, struct alb_engine *engine, uint32_t capacity)
{
    alb_source_init(&gsi->source, build);
    gsi->capacity = capacity;
    gsi->ring = alb_engine_get_memory(engine, capacity * sizeof(*gsi->ring));
    return gsi->ring ? 0 : ENOMEM;
}

void alb_gsi_fini(struct alb_gsi *gsi, struct alb_engine *engine)
{
    if (!gsi->ring)
        return;
    alb_scheduler_remove(&gsi->source);
    alb_engine_put_memory(engine, gsi->ring, gsi->capacity * sizeof(*gsi->ring));
}

bool alb_gsi_send(struct alb_engine *engine, const struct alb_av *av, alb_qpn qpn, const struct alb_cm_message *message)
{
    struct alb_gsi *gsi = &engine->cm->gsi;
    if (gsi->queued - gsi->done == gsi->capacity)
        gsi->done = gsi->sent; // the engine has been entered again since
    if (gsi->queued - gsi->done == gsi->capacity)
        return false;
    struct alb_gsi_mad *mad = mad_at(gsi, gsi->queued++);
    alb_flow_from_av(&mad->flow, av, qpn);
    mad->qpn = qpn;
    // A peer that knows slots answers straight to ours; others know queue pair 1 only.
    alb_qpn slot = av->same_host || av->peer_has_slots ? engine->config.slot : 0;
    mad->src_qpn = slot << 16 | engine->config.gsi_index;
    alb_cm_encode(message, mad->bytes);
    alb_scheduler_wake(&engine->scheduler, &gsi->source);
    return true;
}

static struct alb_cm_arrival arrival_of(const struct alb_engine *engine, const struct alb_packet *packet,
                                        const struct alb_cm_message *message)
{
    alb_qpn from = packet->roce.src_qpn;
    uint8_t index = engine->config.gsi_index;
    bool is_gsi = (from & ALB_GSI_INDEX_MASK) == index;
    return (struct alb_cm_arrival){
        .message = message,
        .av = {.local = packet->datagram->local.addr,
               .peer = packet->datagram->peer.addr,
               .traffic_class = packet->datagram->traffic_class & (uint8_t)~ALB_ECN_MASK,
               .same_host = is_gsi && from >> 16 != 0,
               .peer_has_slots = index == ALB_GSI_ALBEDO_QPN},
        .gsi_qpn = is_gsi ? from : index,
    };
}

enum alb_drop alb_gsi_rx(struct alb_engine *engine, const struct alb_packet *packet, alb_time now)
{
    struct alb_cm_message message;
    uint32_t slot = packet->roce.dest_qpn >> 16;
    if (!engine->cm || (slot != 0 && slot != engine->config.slot))
        return ALB_DROP_UNKNOWN_QP;
    if (packet->roce.opcode != ALB_UD_SEND_ONLY)
        return ALB_DROP_BAD_SERVICE;
    if ((packet->roce.pkey & 0x7fff) != (ALB_PKEY_DEFAULT & 0x7fff))
        return ALB_DROP_BAD_PKEY;
    if (packet->roce.qkey != ALB_GSI_QKEY)
        return ALB_DROP_BAD_QKEY;
    if (!alb_cm_decode(packet->payload, packet->payload_bytes, &message))
        return ALB_DROP_BAD_REQUEST;
    engine->stats->sum.counter[ALB_STAT_rcvd_pkts]++;
    if (!engine->csa) // there it is the payload of segments
        engine->stats->sum.counter[ALB_STAT_rcvd_bytes] += packet->datagram->length + ALB_ICRC_BYTES;
    struct alb_cm_arrival arrival = arrival_of(engine, packet, &message);
    return alb_cm_rx(engine, &arrival, now);
}
