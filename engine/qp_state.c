// SPDX-License-Identifier: BSD-2-Clause
// The queue pair state machine as ibv_modify_qp(3) shows it: which moves are legal, which attributes each needs and
// allows (InfiniBand specification, volume 1, 10.3.1 and tables 91 to 93).
#include "engine/qp_state.h"

#define STATES (ALB_QPS_ERR + 1)

#define PKEY ALB_QP_PKEY_INDEX
#define PORT ALB_QP_PORT
#define QKEY ALB_QP_QKEY
#define ACC  ALB_QP_ACCESS_FLAGS
#define CUR  ALB_QP_CUR_STATE
#define ALT  ALB_QP_ALT_PATH
#define MIG  ALB_QP_PATH_MIG_STATE
#define RNR  ALB_QP_MIN_RNR_TIMER

enum kind {
    RC,
    UC,
    UD,
    INI, // XRC_SEND
    TGT, // XRC_RECV
    KINDS,
};

// Either half of an XRC connection may be given whatever RC takes, and makes nothing of what belongs to the other half:
// the kernel's table is stricter, but programs that treat both halves as RC exist (perftest).
struct move {
    bool is_legal;
    uint32_t required[KINDS];
    uint32_t optional[INI];
};

#define BASICS  (PKEY | PORT | ACC)
#define ADDRESS (ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN)
#define SENDING (ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_SQ_PSN | ALB_QP_MAX_QP_RD_ATOMIC)
#define EN_SQD  ALB_QP_EN_SQD_ASYNC_NOTIFY

#define RUNNING                                                        \
    {                                                                  \
        CUR | ALT | ACC | RNR | MIG, CUR | ALT | ACC | MIG, CUR | QKEY \
    }

static const struct move moves[STATES][STATES] =
    {
        [ALB_QPS_RESET] =
            {
                [ALB_QPS_RESET] = {.is_legal = true},
                [ALB_QPS_INIT] = {true, {BASICS, BASICS, PKEY | PORT | QKEY, BASICS, BASICS}, {0}},
            },
        [ALB_QPS_INIT] =
            {
                [ALB_QPS_RESET] = {.is_legal = true},
                [ALB_QPS_ERR] = {.is_legal = true},
                [ALB_QPS_INIT] = {true, {0}, {BASICS, BASICS, PKEY | PORT | QKEY}},
                [ALB_QPS_RTR] = {true,
                                 {ADDRESS | ALB_QP_MAX_DEST_RD_ATOMIC | RNR, ADDRESS, 0, ADDRESS,
                                  ADDRESS | ALB_QP_MAX_DEST_RD_ATOMIC | RNR},
                                 {ALT | ACC | PKEY, ALT | ACC | PKEY, PKEY | QKEY}},
            },
        [ALB_QPS_RTR] =
            {
                [ALB_QPS_RESET] = {.is_legal = true},
                [ALB_QPS_ERR] = {.is_legal = true},
                [ALB_QPS_RTS] = {true,
                                 {SENDING, ALB_QP_SQ_PSN, ALB_QP_SQ_PSN, SENDING, ALB_QP_TIMEOUT | ALB_QP_SQ_PSN},
                                 RUNNING},
            },
        [ALB_QPS_RTS] =
            {
                [ALB_QPS_RESET] = {.is_legal = true},
                [ALB_QPS_ERR] = {.is_legal = true},
                [ALB_QPS_RTS] = {true, {0}, RUNNING},
                [ALB_QPS_SQD] = {true, {0}, {EN_SQD, EN_SQD, EN_SQD}},
            },
        [ALB_QPS_SQD] =
            {
                [ALB_QPS_RESET] = {.is_legal = true},
                [ALB_QPS_ERR] = {.is_legal = true},
                [ALB_QPS_RTS] = {true, {0}, RUNNING},
                [ALB_QPS_SQD] = {true,
                                 {0},
                                 {PORT | ALB_QP_AV | ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY |
                                      ALB_QP_MAX_QP_RD_ATOMIC | ALB_QP_MAX_DEST_RD_ATOMIC | ALT | ACC | PKEY | RNR |
                                      MIG,
                                  ALB_QP_AV | ALT | ACC | PKEY | MIG, PKEY | QKEY}},
            },
        [ALB_QPS_SQE] =
            {
                [ALB_QPS_RESET] = {.is_legal = true},
                [ALB_QPS_ERR] = {.is_legal = true},
                [ALB_QPS_RTS] = {true, {0}, {0, CUR | ACC, CUR | QKEY}},
            },
        [ALB_QPS_ERR] =
            {
                [ALB_QPS_RESET] = {.is_legal = true},
                [ALB_QPS_ERR] = {.is_legal = true},
            },
};

static enum kind kind_of(enum alb_qp_type type)
{
    switch (type) {
    case ALB_QPT_RC:
        return RC;
    case ALB_QPT_UC:
        return UC;
    case ALB_QPT_UD:
        return UD;
    case ALB_QPT_XRC_SEND:
        return INI;
    case ALB_QPT_XRC_RECV:
        return TGT;
    }
    return KINDS;
}

bool alb_qp_state_can_move(enum alb_qp_type type, enum alb_qp_state from, enum alb_qp_state to, uint32_t mask)
{
    enum kind kind = kind_of(type);
    if (kind == KINDS || from >= STATES || to >= STATES)
        return false;
    const struct move *move = &moves[from][to];
    uint32_t required = move->required[kind];
    uint32_t optional = kind < INI ? move->optional[kind] : move->required[RC] | move->optional[RC];
    uint32_t allowed = required | optional | ALB_QP_STATE;
    if (kind != UC && kind != UD && from == ALB_QPS_SQE && to == ALB_QPS_RTS) // a reliable one never comes there
        return false;
    return move->is_legal && (mask & required) == required && (mask & ~allowed) == 0;
}

const char *alb_qp_state_name(enum alb_qp_state state)
{
    static const char *const names[STATES] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return state < STATES ? names[state] : "invalid";
}
