// SPDX-License-Identifier: BSD-2-Clause
// Trace records as JSON lines. A field's name says what its number means, so that a new kind of record needs no code
// here.
#include "engine/policy.h"
#include "engine/qp_state.h"
#include "engine/trace.h"
#include "engine/transaction.h"
#include "engine/verbs.h"
#include "wire/aeth.h"
#include "wire/csa.h"
#include "wire/drop.h"
#include "wire/opcode.h"

#include <stdio.h>
#include <string.h>

static const char *name_of(const char *const *names, size_t count, uint64_t value)
{
    return value < count && names[value] ? names[value] : "invalid";
}

static const char *request_name(uint64_t value)
{
    static const char *const names[] = {
        [ALB_WR_RDMA_WRITE] = "rdma_write",
        [ALB_WR_RDMA_WRITE_WITH_IMM] = "rdma_write_with_imm",
        [ALB_WR_SEND] = "send",
        [ALB_WR_SEND_WITH_IMM] = "send_with_imm",
        [ALB_WR_RDMA_READ] = "rdma_read",
        [ALB_WR_ATOMIC_CMP_AND_SWP] = "atomic_cmp_and_swp",
        [ALB_WR_ATOMIC_FETCH_AND_ADD] = "atomic_fetch_and_add",
        [ALB_WR_LOCAL_INV] = "local_inv",
        [ALB_WR_BIND_MW] = "bind_mw",
        [ALB_WR_SEND_WITH_INV] = "send_with_inv",
        [ALB_WR_ATOMIC_WRITE] = "atomic_write",
        [ALB_WR_TXN_WRITE] = "txn_write",
        [ALB_WR_TXN_END] = "txn_end",
        [ALB_WR_TXN_ASK] = "txn_ask",
    };
    return name_of(names, ALB_COUNT(names), value);
}

static const char *opcode_name(uint64_t value)
{
    const char *name = NULL;
    if ((value & ~0xffull) == ALB_TRACE_CSA_OP(0))
        name = alb_csa_op_name((uint8_t)value);
    if ((value & ~0xffull) == ALB_TRACE_CSA_TYPE(0))
        name = alb_csa_type_name((uint8_t)value);
    if (name)
        return name;
    const struct alb_opcode_info *info = value <= UINT8_MAX ? alb_opcode_info((uint8_t)value) : NULL;
    return info ? info->name : "invalid";
}

static const char *state_name(uint64_t value)
{
    return alb_qp_state_name((enum alb_qp_state)value);
}

static const char *reason_name(uint64_t value)
{
    return alb_drop_name((enum alb_drop)value);
}

static const char *syndrome_name(uint64_t value)
{
    return alb_aeth_name((uint8_t)value);
}

static const char *cause_name(uint64_t value)
{
    static const char *const names[] = {
        [ALB_LOSS_NAK] = "nak",         [ALB_LOSS_GAP] = "gap", [ALB_LOSS_TIMEOUT] = "timeout",
        [ALB_LOSS_TRIMMED] = "trimmed", [ALB_LOSS_RNR] = "rnr",
    };
    return name_of(names, ALB_COUNT(names), value);
}

static const char *status_name(uint64_t value)
{
    static const char *const names[] = {
        [ALB_WC_SUCCESS] = "success",
        [ALB_WC_LOC_LEN_ERR] = "loc_len_err",
        [ALB_WC_LOC_QP_OP_ERR] = "loc_qp_op_err",
        [ALB_WC_LOC_EEC_OP_ERR] = "loc_eec_op_err",
        [ALB_WC_LOC_PROT_ERR] = "loc_prot_err",
        [ALB_WC_WR_FLUSH_ERR] = "wr_flush_err",
        [ALB_WC_MW_BIND_ERR] = "mw_bind_err",
        [ALB_WC_BAD_RESP_ERR] = "bad_resp_err",
        [ALB_WC_LOC_ACCESS_ERR] = "loc_access_err",
        [ALB_WC_REM_INV_REQ_ERR] = "rem_inv_req_err",
        [ALB_WC_REM_ACCESS_ERR] = "rem_access_err",
        [ALB_WC_REM_OP_ERR] = "rem_op_err",
        [ALB_WC_RETRY_EXC_ERR] = "retry_exc_err",
        [ALB_WC_RNR_RETRY_EXC_ERR] = "rnr_retry_exc_err",
        [ALB_WC_LOC_RDD_VIOL_ERR] = "loc_rdd_viol_err",
        [ALB_WC_REM_INV_RD_REQ_ERR] = "rem_inv_rd_req_err",
        [ALB_WC_REM_ABORT_ERR] = "rem_abort_err",
        [ALB_WC_INV_EECN_ERR] = "inv_eecn_err",
        [ALB_WC_INV_EEC_STATE_ERR] = "inv_eec_state_err",
        [ALB_WC_FATAL_ERR] = "fatal_err",
        [ALB_WC_RESP_TIMEOUT_ERR] = "resp_timeout_err",
        [ALB_WC_GENERAL_ERR] = "general_err",
    };
    return name_of(names, ALB_COUNT(names), value);
}

static const char *txn_state_name(uint64_t value)
{
    return alb_txn_state_name((enum alb_txn_state)value);
}

static const struct {
    const char *field;
    const char *(*name)(uint64_t value);
} named_fields[] = {
    {"request", request_name}, {"opcode", opcode_name}, {"old", state_name},     {"new", state_name},
    {"reason", reason_name},   {"cause", cause_name},   {"status", status_name}, {"syndrome", syndrome_name},
    {"was", txn_state_name},   {"is", txn_state_name},
};

// Appends ,"field":value; the longest line there can be is far below ALB_TRACE_LINE_MAX.
static uint32_t append_field(char *line, uint32_t length, const char *field, uint64_t value)
{
    for (size_t i = 0; i < ALB_COUNT(named_fields); i++)
        if (strcmp(named_fields[i].field, field) == 0)
            return length + (uint32_t)snprintf(line + length, ALB_TRACE_LINE_MAX - length, ",\"%s\":\"%s\"", field,
                                               named_fields[i].name(value));
    return length + (uint32_t)snprintf(line + length, ALB_TRACE_LINE_MAX - length, ",\"%s\":%llu", field,
                                       (unsigned long long)value);
}

uint32_t alb_trace_format(const struct alb_trace_record *record, char line[ALB_TRACE_LINE_MAX])
{
    static const char *const kinds[][3] = {
#define X(name, a, b) [ALB_TRACE_##name] = {#name, a, b},
        ALB_TRACES(X)
#undef X
    };
    alb_assert(record->kind < ALB_TRACE_COUNT);
    const char *const *kind = kinds[record->kind];
    uint32_t length =
        (uint32_t)snprintf(line, ALB_TRACE_LINE_MAX, "{\"at\":%llu,\"event\":\"%s\",\"qpn\":%u,\"psn\":%u",
                           (unsigned long long)record->at, kind[0], record->qpn, record->psn);
    length = append_field(line, length, kind[1], record->a);
    length = append_field(line, length, kind[2], record->b);
    length += (uint32_t)snprintf(line + length, ALB_TRACE_LINE_MAX - length, "}\n");
    alb_assert(length < ALB_TRACE_LINE_MAX);
    return length;
}
