// SPDX-License-Identifier: BSD-2-Clause
#include "engine/segmenter.h"

enum place {
    FIRST,
    MIDDLE,
    LAST,
    ONLY,
};

static enum place place_of(uint32_t k, uint32_t packets)
{
    if (packets == 1)
        return ONLY;
    return k == 0 ? FIRST : k == packets - 1 ? LAST : MIDDLE;
}

// Opcodes relative to the service's base, by operation and place.
static uint8_t opcode_of(enum alb_wr_opcode operation, enum place place)
{
    static const uint8_t send[] = {ALB_RC_SEND_FIRST, ALB_RC_SEND_MIDDLE, ALB_RC_SEND_LAST, ALB_RC_SEND_ONLY};
    static const uint8_t send_imm[] = {ALB_RC_SEND_FIRST, ALB_RC_SEND_MIDDLE, ALB_RC_SEND_LAST_IMM,
                                       ALB_RC_SEND_ONLY_IMM};
    static const uint8_t send_inv[] = {ALB_RC_SEND_FIRST, ALB_RC_SEND_MIDDLE, ALB_RC_SEND_LAST_INVALIDATE,
                                       ALB_RC_SEND_ONLY_INVALIDATE};
    static const uint8_t write[] = {ALB_RC_WRITE_FIRST, ALB_RC_WRITE_MIDDLE, ALB_RC_WRITE_LAST, ALB_RC_WRITE_ONLY};
    static const uint8_t write_imm[] = {ALB_RC_WRITE_FIRST, ALB_RC_WRITE_MIDDLE, ALB_RC_WRITE_LAST_IMM,
                                        ALB_RC_WRITE_ONLY_IMM};
    switch (operation) {
    case ALB_WR_SEND_WITH_IMM:
        return send_imm[place];
    case ALB_WR_SEND_WITH_INV:
        return send_inv[place];
    case ALB_WR_RDMA_WRITE:
        return write[place];
    case ALB_WR_RDMA_WRITE_WITH_IMM:
        return write_imm[place];
    default:
        return send[place];
    }
}

void alb_segmenter_header(const struct alb_qp *qp, const struct alb_send_wqe *wqe, uint8_t service_base, uint32_t k,
                          struct alb_roce *roce)
{
    bool is_last = k == wqe->packets - 1;
    *roce = (struct alb_roce){
        .opcode = (uint8_t)(service_base + opcode_of(wqe->opcode, place_of(k, wqe->packets))),
        .migreq = true,
        .pkey = ALB_PKEY_DEFAULT,
        .dest_qpn = qp->attr.dest_qpn,
        .solicited = is_last && alb_wqe_takes_receive(wqe) && wqe->flags & ALB_SEND_SOLICITED,
        .va = wqe->remote_addr,
        .rkey = wqe->rkey,
        .length = wqe->length,
        .imm_be = wqe->imm_data,
        .invalidate_rkey = wqe->invalidate_rkey,
        .xrc_srqn = wqe->xrc_srqn,
    };
}
