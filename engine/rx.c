// SPDX-License-Identifier: BSD-2-Clause
// Receive: from datagrams to the queue pair they are for. Everything that comes in is hostile until proven otherwise;
// what does not fit is dropped and counted by reason.
#include "engine/csa_run.h"
#include "engine/group.h"
#include "engine/gsi.h"
#include "engine/impl.h"
#include "engine/rc.h"
#include "wire/bytes.h"

struct alb_qp *alb_engine_find_qp(struct alb_engine *engine, alb_qpn qpn)
{
    uint32_t index = qpn & 0xffff;
    if (qpn >> 16 != engine->config.slot || index >= engine->config.qp_max)
        return NULL;
    return engine->qps[index];
}

// On a csa device bytes received are payload, those of its multicast datagrams too.
static void count_received(struct alb_qp *qp, const struct alb_packet *packet)
{
    if (alb_likely(!qp->engine->csa)) {
        alb_qp_count_received(qp, packet->datagram);
        return;
    }
    alb_qp_count(qp, ALB_STAT_rcvd_pkts, 1);
    alb_qp_count(qp, ALB_STAT_rcvd_bytes, packet->payload_bytes);
}

static enum alb_drop deliver(struct alb_engine *engine, struct alb_qp *qp, const struct alb_packet *packet,
                             alb_time now)
{
    if ((packet->roce.pkey & 0x7fff) != (ALB_PKEY_DEFAULT & 0x7fff)) // the high bit tells full from limited members
        return ALB_DROP_BAD_PKEY;
    if (alb_qp_state_of(qp) < ALB_QPS_RTR)
        return ALB_DROP_WRONG_QP_STATE;
    count_received(qp, packet);
    alb_trace_add(engine, ALB_TRACE_receive, qp->number, packet->roce.psn, packet->roce.opcode, packet->payload_bytes,
                  now);
    if (alb_datagram_is_marked(packet->datagram))
        alb_qp_count(qp, ALB_STAT_ecn_marked_pkts, 1);
    return qp->delivery->rx(qp, packet, now);
}

// qp: that it was for; NULL: for none that is known.
static void note_drop(struct alb_engine *engine, struct alb_qp *qp, const struct alb_packet *packet, enum alb_drop drop,
                      alb_time now)
{
    alb_engine_count_drop(engine, drop);
    if (qp)
        qp->stats->dropped[drop]++;
    alb_trace_add(engine, ALB_TRACE_drop, packet->roce.dest_qpn, packet->roce.psn, drop, packet->roce.opcode, now);
}

// Each member takes its copy or drops it, whatever the others do.
static enum alb_drop deliver_copies(struct alb_engine *engine, const struct alb_packet *packet, alb_time now)
{
    const struct alb_group *group = alb_group_find(engine, &packet->datagram->local.addr);
    if (!group)
        return ALB_DROP_NO_MEMBER;
    ALB_LIST_FOR_EACH (&group->members, node) {
        struct alb_qp *qp = ALB_LIST_ENTRY(node, struct alb_membership, in_group)->qp;
        enum alb_drop drop = deliver(engine, qp, packet, now);
        if (drop != ALB_DROP_NONE)
            note_drop(engine, qp, packet, drop, now);
    }
    return ALB_DROP_NONE;
}

static enum alb_drop receive_csa(struct alb_engine *engine, const struct alb_datagram *datagram,
                                 struct alb_packet *packet, alb_time now)
{
    enum alb_drop drop = alb_csa_rx(engine, datagram, now);
    if (drop != ALB_DROP_NONE) // for the trace
        packet->roce = (struct alb_roce){.opcode = ALB_UD_SEND_ONLY};
    return drop;
}

// A packet of the kind that comes most often need not be decoded, unless something about it is to be told.
static bool receive_usual(struct alb_engine *engine, const struct alb_datagram *datagram, alb_time now)
{
    if (datagram->length < ALB_BTH_BYTES || alb_datagram_is_marked(datagram) || engine->trace.capacity > 0)
        return false;
    struct alb_qp *qp = alb_engine_find_qp(engine, alb_get_be24(datagram->bytes + ALB_BTH_DEST_QPN));
    return qp && qp->delivery->rx_usual && qp->delivery->rx_usual(qp, datagram, now);
}

static enum alb_drop receive(struct alb_engine *engine, const struct alb_datagram *datagram, struct alb_packet *packet,
                             alb_time now)
{
    uint32_t payload_offset;
    if (engine->csa && alb_csa_is_packet(datagram->bytes, datagram->length))
        return receive_csa(engine, datagram, packet, now);
    if (alb_likely(receive_usual(engine, datagram, now)))
        return ALB_DROP_NONE;
    enum alb_drop drop =
        alb_roce_decode(datagram->bytes, datagram->length, &packet->roce, &payload_offset, &packet->payload_bytes);
    if (drop != ALB_DROP_NONE)
        return drop;
    packet->info = alb_opcode_info(packet->roce.opcode);
    packet->payload = datagram->bytes + payload_offset;
    packet->datagram = datagram;
    struct alb_qp *qp = alb_engine_find_qp(engine, packet->roce.dest_qpn);
    if (alb_likely(qp))
        return deliver(engine, qp, packet, now);
    if (alb_addr_is_multicast(&datagram->local.addr))
        return packet->roce.dest_qpn == ALB_MULTICAST_QPN ? deliver_copies(engine, packet, now) : ALB_DROP_WRONG_LOCAL;
    if ((packet->roce.dest_qpn & ALB_GSI_INDEX_MASK) == engine->config.gsi_index)
        return alb_gsi_rx(engine, packet, now);
    return ALB_DROP_UNKNOWN_QP;
}

void alb_engine_count_drop(struct alb_engine *engine, enum alb_drop reason)
{
    engine->stats->dropped[reason]++;
}

// Those behind the first one that go on where it ended.
static uint32_t receive_run(struct alb_engine *engine, const struct alb_datagram *datagrams, uint32_t count,
                            alb_time now)
{
    if (count < 2 || datagrams[0].length != datagrams[1].length)
        return 0;
    return engine->csa ? alb_csa_run_in(engine, datagrams, count, now) : alb_rc_run_in(engine, datagrams, count, now);
}

void alb_engine_rx(struct alb_engine *engine, const struct alb_datagram *datagrams, uint32_t count, alb_time now)
{
    struct alb_packet packet;
    engine->now = now;
    for (uint32_t i = 0; i < count; i++) {
        enum alb_drop drop = receive(engine, &datagrams[i], &packet, now);
        if (alb_likely(drop == ALB_DROP_NONE)) {
            i += receive_run(engine, &datagrams[i], count - i, now);
            continue;
        }
        if (drop == ALB_DROP_TRUNCATED)
            packet.roce = (struct alb_roce){0}; // nothing of it was decoded
        note_drop(engine, alb_engine_find_qp(engine, packet.roce.dest_qpn), &packet, drop, now);
    }
}
