// SPDX-License-Identifier: BSD-2-Clause
// Cuts the message of a SEND or WRITE into packets as the specification does: First, Middle, Last or Only. RC and UC
// share it.
#pragma once

#include "engine/qp.h"
#include "wire/roce.h"

// At the peer a receive completes by it.
static inline bool alb_wqe_takes_receive(const struct alb_send_wqe *wqe)
{
    return wqe->opcode == ALB_WR_SEND || wqe->opcode == ALB_WR_SEND_WITH_IMM || wqe->opcode == ALB_WR_SEND_WITH_INV ||
           wqe->opcode == ALB_WR_RDMA_WRITE_WITH_IMM;
}

// Number of packets of a message of length bytes: at least one.
static inline uint32_t alb_segmenter_packets(uint32_t length, uint32_t mtu_bytes)
{
    return length <= mtu_bytes ? 1 : (uint32_t)(((uint64_t)length + mtu_bytes - 1) / mtu_bytes);
}

// Bytes of payload in packets [first, first + count) of it.
static inline uint32_t alb_segmenter_bytes(uint32_t length, uint32_t mtu_bytes, uint32_t first, uint32_t count)
{
    uint64_t begin = (uint64_t)first * mtu_bytes;
    uint64_t end = begin + (uint64_t)count * mtu_bytes;
    return (uint32_t)((end < length ? end : length) - (begin < length ? begin : length));
}

// The headers of packet k of a request, but for psn and ackreq. service_base is the RC or UC opcode of "SEND First"
// (0x00, 0x20).
void alb_segmenter_header(const struct alb_qp *qp, const struct alb_send_wqe *wqe, uint8_t service_base, uint32_t k,
                          struct alb_roce *roce);
