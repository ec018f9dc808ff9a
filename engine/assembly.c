// SPDX-License-Identifier: BSD-2-Clause
#include "engine/assembly.h"

// First, Middle, Last, Only in an order that makes a message, and of one kind (9.7.4.1.1 to 9.7.4.1.3).
static bool fits_sequence(const struct alb_assembly *assembly, const struct alb_opcode_info *info)
{
    bool begins = info->flags & ALB_OPCODE_FIRST;
    if (begins == assembly->is_open)
        return false;
    return begins || assembly->is_send == !!(info->flags & ALB_OPCODE_SEND);
}

// All packets but the last are full; a Last carries something (9.7.4.1.7 and .8).
static bool fits_length(const struct alb_qp *qp, const struct alb_packet *packet)
{
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t flags = packet->info->flags;
    if (!(flags & ALB_OPCODE_LAST))
        return packet->payload_bytes == mtu;
    if (!(flags & ALB_OPCODE_FIRST) && packet->payload_bytes == 0)
        return false;
    return packet->payload_bytes <= mtu;
}

static enum alb_outcome begin(struct alb_qp *qp, const struct alb_packet *packet, struct alb_target *target)
{
    if (packet->info->flags & ALB_OPCODE_SEND)
        return alb_inbound_send(qp, target);
    if (packet->roce.length > ALB_MAX_MESSAGE)
        return ALB_OUTCOME_INVALID_REQUEST;
    return alb_inbound_write(qp, packet->roce.rkey, packet->roce.va, packet->roce.length, target);
}

static bool fits_write(const struct alb_assembly *assembly, const struct alb_packet *packet)
{
    uint64_t end = assembly->offset + packet->payload_bytes;
    bool is_last = packet->info->flags & ALB_OPCODE_LAST;
    return is_last ? end == assembly->target.length : end < assembly->target.length;
}

static enum alb_outcome complete(struct alb_qp *qp, const struct alb_assembly *assembly,
                                 const struct alb_packet *packet, alb_time now)
{
    uint32_t flags = packet->info->flags;
    struct alb_inbound_end end = {
        .opcode = assembly->is_send ? ALB_WC_RECV : ALB_WC_RECV_RDMA_WITH_IMM,
        .byte_len = (uint32_t)assembly->offset,
        .solicited = packet->roce.solicited,
        .src_qpn = qp->attr.dest_qpn,
        .sl = qp->attr.av.sl,
    };
    if (flags & ALB_OPCODE_IMM) {
        end.wc_flags |= ALB_WC_WITH_IMM;
        end.imm_data = packet->roce.imm_be;
    }
    if (flags & ALB_OPCODE_INVALIDATE) {
        end.wc_flags |= ALB_WC_WITH_INV;
        end.invalidate_rkey = packet->roce.invalidate_rkey;
    }
    return alb_inbound_complete(qp, &end, now);
}

enum alb_outcome alb_assembly_add(struct alb_qp *qp, struct alb_assembly *assembly, const struct alb_packet *packet,
                                  alb_time now)
{
    uint32_t flags = packet->info->flags;
    if (!fits_sequence(assembly, packet->info) || !fits_length(qp, packet))
        return ALB_OUTCOME_INVALID_REQUEST;
    // The receive is taken before anything is placed, so that a packet refused with RNR leaves no trace.
    bool ends_receive = flags & ALB_OPCODE_ENDS_RECEIVE;
    if (ends_receive && !alb_qp_take_receive(qp))
        return ALB_OUTCOME_RNR;
    // Nothing of what is noted counts before is_open.
    if (flags & ALB_OPCODE_FIRST) {
        assembly->is_send = flags & ALB_OPCODE_SEND;
        assembly->offset = 0;
        enum alb_outcome outcome = begin(qp, packet, &assembly->target);
        if (outcome != ALB_OUTCOME_OK)
            return outcome;
    }
    if (!assembly->is_send && !fits_write(assembly, packet))
        return ALB_OUTCOME_INVALID_REQUEST;
    enum alb_outcome outcome =
        alb_place(qp, &assembly->target, assembly->offset, packet->payload, packet->payload_bytes);
    if (outcome != ALB_OUTCOME_OK)
        return outcome;
    assembly->offset += packet->payload_bytes;
    assembly->is_open = !(flags & ALB_OPCODE_LAST);
    return ends_receive ? complete(qp, assembly, packet, now) : ALB_OUTCOME_OK;
}

void alb_assembly_abandon(struct alb_assembly *assembly)
{
    assembly->is_open = false;
}
