// SPDX-License-Identifier: BSD-2-Clause
// rc, the usual packets, predicted by their headers as in TCP: in an exchange of small messages one is like another,
// and of a long message most are. A message of one packet in its turn, the next packet of a message's middle, and the
// acknowledgement of what is in flight, are known by the first eight bytes of the BTH and the PSN. They go straight to
// the functions that place, complete and acknowledge. What is unusual about a packet, or comes of it, is for the
// general way, which begins from the beginning: nothing has been changed by then but that the receive is taken which it
// would take.
#include "engine/impl.h"
#include "engine/rc.h"
#include "engine/tx.h"
#include "wire/bytes.h"

#define BTH_PAD_SHIFT 52 // in the first eight bytes of the BTH as one number
#define BTH_PAD_BITS  (3ull << BTH_PAD_SHIFT)
#define BTH_MIGREQ    ((uint64_t)ALB_BTH_MIGREQ << 48) // the kernel's Soft-RoCE does not send it, others do

#define WRITE_HEADER_BYTES (ALB_BTH_BYTES + 16)

// A packet of one of the kinds below.
struct usual {
    const struct alb_datagram *datagram;
    const uint8_t *bytes;
    alb_psn psn;
    bool ackreq;
    uint8_t pad;
};

// The bytes of its payload; negative: it is too short for its headers.
static int64_t payload_bytes(const struct usual *packet, uint32_t header_bytes)
{
    return (int64_t)packet->datagram->length - header_bytes - packet->pad;
}

static bool is_next_message(const struct alb_rc *rc, const struct usual *packet, int64_t length)
{
    return packet->psn == rc->expected && !rc->assembly.is_open && !rc->loss_receiver.is_reported && length >= 0 &&
           length <= rc->qp->attr.path_mtu_bytes;
}

static void finish(struct alb_rc *rc, const struct usual *packet)
{
    alb_qp_count_received(rc->qp, packet->datagram);
    alb_rc_note_executed(rc, 1, true, packet->ackreq);
}

static bool take_send(struct alb_rc *rc, const struct usual *packet, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    int64_t length = payload_bytes(packet, ALB_BTH_BYTES);
    struct alb_target target;
    if (!is_next_message(rc, packet, length) || alb_inbound_send(qp, &target) != ALB_OUTCOME_OK ||
        alb_place(qp, &target, 0, packet->bytes + ALB_BTH_BYTES, (uint32_t)length) != ALB_OUTCOME_OK)
        return false;
    // Every field is named, or GCC clears them all by "rep stos" here, which is slow to start (LESSONS 47).
    const struct alb_inbound_end end = {
        .opcode = ALB_WC_RECV,
        .byte_len = (uint32_t)length,
        .imm_data = 0,
        .invalidate_rkey = 0,
        .wc_flags = 0,
        .solicited = false,
        .src_qpn = qp->attr.dest_qpn,
        .sl = qp->attr.av.sl,
    };
    rc->is_completing = true;
    alb_inbound_complete(qp, &end, now);
    rc->is_completing = false;
    finish(rc, packet);
    return true;
}

static bool take_write(struct alb_rc *rc, const struct usual *packet)
{
    struct alb_qp *qp = rc->qp;
    int64_t length = payload_bytes(packet, WRITE_HEADER_BYTES);
    struct alb_target target;
    if (!is_next_message(rc, packet, length))
        return false;
    const uint8_t *reth = packet->bytes + ALB_BTH_BYTES;
    if (alb_get_be32(reth + 12) != length ||
        alb_inbound_write(qp, alb_get_be32(reth + 8), alb_get_be64(reth), (uint64_t)length, &target) !=
            ALB_OUTCOME_OK ||
        alb_place(qp, &target, 0, packet->bytes + WRITE_HEADER_BYTES, (uint32_t)length) != ALB_OUTCOME_OK)
        return false;
    finish(rc, packet);
    return true;
}

static bool take_middle(struct alb_rc *rc, const struct usual *packet, bool is_send)
{
    struct alb_qp *qp = rc->qp;
    struct alb_assembly *assembly = &rc->assembly;
    uint32_t length = qp->attr.path_mtu_bytes;
    if (packet->psn != rc->expected || rc->loss_receiver.is_reported || !assembly->is_open ||
        assembly->is_send != is_send || packet->pad != 0 || payload_bytes(packet, ALB_BTH_BYTES) != length ||
        (!is_send && assembly->offset + length >= assembly->target.length) ||
        alb_place(qp, &assembly->target, assembly->offset, packet->bytes + ALB_BTH_BYTES, length) != ALB_OUTCOME_OK)
        return false;
    assembly->offset += length;
    alb_qp_count_received(qp, packet->datagram);
    alb_rc_note_executed(rc, 1, false, packet->ackreq);
    return true;
}

static bool take_ack(struct alb_rc *rc, const struct usual *packet, alb_time now)
{
    const uint8_t *aeth = packet->bytes + ALB_BTH_BYTES;
    if (payload_bytes(packet, ALB_BTH_BYTES + ALB_AETH_BYTES) != 0 || packet->pad != 0 || rc->answered_open > 0 ||
        !alb_psn_is_within(packet->psn, rc->una, (uint32_t)alb_psn_diff(rc->high, rc->una)) ||
        alb_aeth_class(aeth[0]) != ALB_AETH_ACK)
        return false;
    alb_qp_count_received(rc->qp, packet->datagram);
    alb_rc_acknowledge(rc, alb_psn_next(packet->psn), now);
    return true;
}

bool alb_rc_rx_usual(struct alb_qp *qp, const struct alb_datagram *datagram, alb_time now)
{
    struct alb_rc *rc = alb_rc_of(qp);
    uint64_t begin = alb_get_be64(datagram->bytes);
    uint32_t sequence = alb_get_be32(datagram->bytes + ALB_BTH_SEQUENCE);
    // No flags but the pad and MigReq, the default partition, no marks, this queue pair.
    if ((begin & ~(BTH_PAD_BITS | BTH_MIGREQ)) << 8 >> 8 != ((uint64_t)ALB_PKEY_DEFAULT << 32 | qp->number))
        return false;
    enum alb_qp_state state = alb_qp_state_of(qp);
    bool can_receive = state == ALB_QPS_RTS || state == ALB_QPS_RTR; // where programs leave what is only written to
    if (qp->type != ALB_QPT_RC || !can_receive || !qp->is_established ||
        alb_rc_check_peer(qp, datagram) != ALB_DROP_NONE)
        return false;
    qp->peer->heard = now;
    const struct usual packet = {
        .datagram = datagram,
        .bytes = datagram->bytes,
        .psn = sequence & ALB_PSN_MASK,
        .ackreq = sequence >> 31,
        .pad = begin >> BTH_PAD_SHIFT & 3,
    };
    switch (begin >> 56) {
    case ALB_RC_SEND_ONLY:
        return take_send(rc, &packet, now);
    case ALB_RC_WRITE_ONLY:
        return take_write(rc, &packet);
    case ALB_RC_SEND_MIDDLE:
        return take_middle(rc, &packet, true);
    case ALB_RC_WRITE_MIDDLE:
        return take_middle(rc, &packet, false);
    case ALB_RC_ACK:
        return take_ack(rc, &packet, now);
    default:
        return false;
    }
}

bool alb_rc_begin_usual(struct alb_rc *rc, const struct alb_send_wqe *wqe, struct alb_tx_builder *builder, bool ackreq)
{
    const struct alb_qp *qp = rc->qp;
    bool is_write = wqe->opcode == ALB_WR_RDMA_WRITE;
    if (wqe->packets != 1 || qp->type != ALB_QPT_RC || (wqe->opcode != ALB_WR_SEND && !is_write) ||
        wqe->flags & ALB_SEND_SOLICITED)
        return false;
    uint8_t *header =
        alb_tx_begin_header(builder, &qp->flow, is_write ? WRITE_HEADER_BYTES : ALB_BTH_BYTES, wqe->length);
    alb_bth_encode(header, is_write ? ALB_RC_WRITE_ONLY : ALB_RC_SEND_ONLY, alb_roce_pad(wqe->length),
                   qp->attr.dest_qpn, rc->next, ackreq);
    if (is_write) {
        uint8_t *reth = header + ALB_BTH_BYTES;
        alb_put_be64(reth, wqe->remote_addr);
        alb_put_be32(reth + 8, wqe->rkey);
        alb_put_be32(reth + 12, wqe->length);
    }
    return true;
}
