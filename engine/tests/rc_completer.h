// SPDX-License-Identifier: BSD-2-Clause
// What the tests of the completer of RC have: side 0 asks, and responses come that no engine has sent.
#pragma once

#include "engine/rc.h"

#include "engine/tests/pair_expect.h"

enum {
    MTU = 1024,
    TIMEOUT_NS = 4096 << 10, // of timeout code 10
};

static inline void ask(struct pair_qps *c, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t length)
{
    assert_int_equal(pair_ask(c->pair, c->qps[0], opcode, wr_id, ALB_SEND_SIGNALED, 0, length), 0);
}

static inline void lose_all(struct pair_qps *c, int side)
{
    while (pair_count(c->pair, side) > 0)
        pair_lose(c->pair, side);
}

static inline struct alb_roce response(const struct pair_qps *c, uint8_t opcode, int32_t psn_offset, uint8_t syndrome)
{
    return (struct alb_roce){
        .opcode = opcode,
        .pkey = 0xffff,
        .dest_qpn = alb_qp_number(c->qps[0]),
        .psn = alb_psn_add(PAIR_PSN, psn_offset),
        .syndrome = syndrome,
    };
}

static inline void acknowledge(struct pair_qps *c, int32_t psn_offset, uint8_t syndrome)
{
    struct alb_roce roce = response(c, ALB_RC_ACK, psn_offset, syndrome);
    pair_inject(c->pair, 1, &roce, NULL, 0);
}

static inline uint64_t counted(const struct pair_qps *c, enum alb_stat stat)
{
    return c->pair->hosts[0].stats.sum.counter[stat];
}

static inline uint64_t dropped(const struct pair_qps *c, enum alb_drop reason)
{
    return c->pair->hosts[0].stats.dropped[reason];
}

#define ACK        ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT)
#define NAK(code)  ALB_AETH_SYNDROME_NAK(code)
#define RNR(timer) ALB_AETH_SYNDROME_RNR(timer)
