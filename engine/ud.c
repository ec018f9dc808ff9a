// SPDX-License-Identifier: BSD-2-Clause
// Unreliable datagram service (9.8.3): one packet a message, to any queue pair that knows the Q_Key. A receive begins
// with 40 bytes for the network header the datagram came with (RoCEv2: annex A17.4.5; an IPv4 header stands in the last
// 20 of them).
#include "engine/impl.h"
#include "engine/inbound.h"
#include "engine/unreliable.h"

#define QKEY_USE_OWN 0x80000000u // a Q_Key with the high bit stands for the sending queue pair's own (10.2.4)

uint32_t alb_ud_qkey(const struct alb_qp *qp, const struct alb_send_wqe *wqe)
{
    return wqe->remote_qkey & QKEY_USE_OWN ? qp->attr.qkey : wqe->remote_qkey;
}

static void fill(struct alb_qp *qp, const struct alb_send_wqe *wqe, uint32_t k, struct alb_roce *roce,
                 struct alb_flow *flow)
{
    *roce = (struct alb_roce){
        .opcode = wqe->opcode == ALB_WR_SEND_WITH_IMM ? ALB_UD_SEND_ONLY_IMM : ALB_UD_SEND_ONLY,
        .pkey = ALB_PKEY_DEFAULT,
        .dest_qpn = wqe->remote_qpn,
        .solicited = wqe->flags & ALB_SEND_SOLICITED,
        .qkey = alb_ud_qkey(qp, wqe),
        .src_qpn = qp->number,
        .imm_be = wqe->imm_data,
    };
    alb_flow_from_av(flow, &wqe->av, wqe->remote_qpn);
}

static int create(struct alb_qp *qp)
{
    return alb_unreliable_create(qp, sizeof(struct alb_unreliable), fill);
}

static int modify(struct alb_qp *qp, uint32_t mask, enum alb_qp_state next)
{
    struct alb_unreliable *u = alb_unreliable_of(qp);
    u->mtu_bytes = qp->engine->config.mtu_max_bytes;
    if (mask & ALB_QP_SQ_PSN)
        u->next = qp->attr.sq_psn;
    return 0;
}

// ---- the network header in front of a datagram ----------------------------------------------------------------------

static void put_be16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static uint16_t ipv4_checksum(const uint8_t header[20])
{
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)header[i] << 8 | header[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void write_ipv4(const struct alb_datagram *datagram, uint8_t *ip)
{
    ip[0] = 0x45;
    ip[1] = datagram->traffic_class;
    put_be16(ip + 2, 20 + 8 + datagram->length + ALB_ICRC_BYTES);
    put_be16(ip + 6, 0x4000); // don't fragment
    ip[8] = datagram->hop_limit;
    ip[9] = 17; // UDP
    memcpy(ip + 12, datagram->peer.addr.bytes + 12, 4);
    memcpy(ip + 16, datagram->local.addr.bytes + 12, 4);
    put_be16(ip + 10, ipv4_checksum(ip));
}

static void write_ipv6(const struct alb_datagram *datagram, uint8_t *ip)
{
    ip[0] = (uint8_t)(0x60 | datagram->traffic_class >> 4);
    ip[1] = (uint8_t)(datagram->traffic_class << 4);
    put_be16(ip + 4, 8 + datagram->length + ALB_ICRC_BYTES);
    ip[6] = 17;
    ip[7] = datagram->hop_limit;
    memcpy(ip + 8, datagram->peer.addr.bytes, 16);
    memcpy(ip + 24, datagram->local.addr.bytes, 16);
}

static void write_grh(const struct alb_datagram *datagram, uint8_t grh[ALB_GRH_BYTES])
{
    memset(grh, 0, ALB_GRH_BYTES);
    if (alb_addr_is_ipv4(&datagram->peer.addr))
        write_ipv4(datagram, grh + 20);
    else
        write_ipv6(datagram, grh);
}

// Which header it is, as devices tell it in a completion's service level, which RoCE has no other use for: bit 3 for
// UDP underneath, then 1 for IPv6, 2 for IPv4. UCX 1.13 relies on it.
static uint8_t header_type(const struct alb_datagram *datagram)
{
    return alb_addr_is_ipv4(&datagram->peer.addr) ? 0x8 | 0x2 : 0x8 | 0x1;
}

// ---- receiving ------------------------------------------------------------------------------------------------------

static enum alb_drop check(const struct alb_qp *qp, const struct alb_ud_message *message)
{
    enum alb_qp_state state = alb_qp_state_of(qp);
    if (state < ALB_QPS_RTR || state == ALB_QPS_ERR)
        return ALB_DROP_WRONG_QP_STATE;
    if (message->qkey != qp->attr.qkey)
        return ALB_DROP_BAD_QKEY;
    return message->payload_bytes > qp->engine->config.mtu_max_bytes ? ALB_DROP_OVERSIZE : ALB_DROP_NONE;
}

static enum alb_outcome place(struct alb_qp *qp, const struct alb_target *target, const struct alb_ud_message *message)
{
    uint8_t grh[ALB_GRH_BYTES];
    write_grh(message->datagram, grh);
    enum alb_outcome outcome = alb_place(qp, target, 0, grh, ALB_GRH_BYTES);
    if (outcome != ALB_OUTCOME_OK)
        return outcome;
    return alb_place(qp, target, ALB_GRH_BYTES, message->payload, message->payload_bytes);
}

// The receive that the next message would take stays where it is: of a shared queue it is another's next one, too.
static enum alb_drop take_receive(struct alb_qp *qp, uint32_t length, struct alb_target *target)
{
    struct alb_srq *srq = alb_qp_srq(qp);
    const struct alb_recv_wqe *next = alb_recv_queue_peek(srq ? &srq->queue : &qp->rq, 0);
    if (!next)
        return ALB_DROP_NO_RECEIVE;
    if (length > next->length)
        return ALB_DROP_RECEIVE_TOO_SHORT;
    return alb_inbound_send(qp, target) == ALB_OUTCOME_OK ? ALB_DROP_NONE : ALB_DROP_NO_RECEIVE;
}

enum alb_drop alb_ud_take(struct alb_qp *qp, const struct alb_ud_message *message, alb_time now)
{
    uint32_t length = ALB_GRH_BYTES + message->payload_bytes;
    struct alb_target target;
    enum alb_drop drop = check(qp, message);
    if (drop == ALB_DROP_NONE)
        drop = take_receive(qp, length, &target);
    if (drop != ALB_DROP_NONE)
        return drop;
    if (place(qp, &target, message) != ALB_OUTCOME_OK) // its length was checked: what is left is its key
        return alb_unreliable_break_receive(qp, now);
    struct alb_inbound_end end = {
        .opcode = ALB_WC_RECV,
        .byte_len = length,
        .imm_data = message->has_imm ? message->imm_be : 0,
        .wc_flags = (uint16_t)(ALB_WC_GRH | (message->has_imm ? ALB_WC_WITH_IMM : 0)),
        .solicited = message->solicited,
        .src_qpn = message->src_qpn,
        .sl = header_type(message->datagram),
    };
    return alb_inbound_complete(qp, &end, now) == ALB_OUTCOME_OK ? ALB_DROP_NONE : ALB_DROP_ACCESS;
}

static enum alb_drop rx(struct alb_qp *qp, const struct alb_packet *packet, alb_time now)
{
    if (packet->info->service != ALB_SERVICE_UD)
        return ALB_DROP_BAD_SERVICE;
    if (alb_addr_is_multicast(&packet->datagram->local.addr) != (packet->roce.dest_qpn == ALB_MULTICAST_QPN))
        return ALB_DROP_WRONG_LOCAL;
    const struct alb_ud_message message = {
        .datagram = packet->datagram,
        .payload = packet->payload,
        .payload_bytes = packet->payload_bytes,
        .qkey = packet->roce.qkey,
        .src_qpn = packet->roce.src_qpn,
        .imm_be = packet->roce.imm_be,
        .has_imm = packet->info->flags & ALB_OPCODE_IMM,
        .solicited = packet->roce.solicited,
    };
    return alb_ud_take(qp, &message, now);
}

const struct alb_delivery_ops alb_ud_ops = {
    .name = "ud",
    .create = create,
    .destroy = alb_unreliable_destroy,
    .modify = modify,
    .on_state = alb_unreliable_on_state,
    .work = alb_unreliable_work,
    .rx = rx,
    .is_quiet = alb_unreliable_is_quiet,
    .query = alb_unreliable_query,
};
