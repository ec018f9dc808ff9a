// SPDX-License-Identifier: BSD-2-Clause
// The engine's trace: a ring of small records that the driver drains and writes as JSON lines. Device and simulator
// write the same.
#pragma once

#include "base/types.h"

struct alb_engine;
struct alb_qp;

#define ALB_TRACES(X)                      \
    X(state, "old", "new")                 \
    X(send, "request", "bytes")            \
    X(resend, "request", "bytes")          \
    X(receive, "opcode", "bytes")          \
    X(drop, "reason", "opcode")            \
    X(ack, "syndrome", "msn")              \
    X(report, "syndrome", "words")         \
    X(silence, "times", "rtt_ns")          \
    X(go_back, "cause", "packets")         \
    X(timeout, "retries", "limit")         \
    X(rnr_wait, "timer_ns", "retries")     \
    X(complete_send, "status", "wr_id")    \
    X(complete_receive, "status", "wr_id") \
    X(txn_out, "was", "is")                \
    X(txn_in, "was", "is")

enum alb_trace_kind {
#define X(name, a, b) ALB_TRACE_##name,
    ALB_TRACES(X)
#undef X
        ALB_TRACE_COUNT
};

// What stands in a field "opcode": a RoCE opcode, or of a CSA packet an operation or the type of a frame without one.
#define ALB_TRACE_CSA_OP(op)     (0x100u | (op))
#define ALB_TRACE_CSA_TYPE(type) (0x200u | (type))

struct alb_trace_record {
    alb_time at;
    uint32_t kind; // enum alb_trace_kind
    uint32_t qpn;
    uint32_t psn;
    uint64_t a, b; // as ALB_TRACES names them
};

struct alb_trace {
    struct alb_trace_record *records;
    uint32_t capacity; // 0: off
    uint32_t first, count;
    uint64_t lost; // records that found the ring full
};

// The ring of config.trace_records; ENOMEM.
int alb_trace_init(struct alb_engine *engine);
void alb_trace_fini(struct alb_engine *engine);
// To a trace that is on: alb_trace_add of engine/impl.h asks.
void alb_trace_put(struct alb_trace *trace, enum alb_trace_kind kind, uint32_t qpn, uint32_t psn, uint64_t a,
                   uint64_t b, alb_time now);

// The next record, oldest first; false if there is none.
bool alb_engine_trace(struct alb_engine *engine, struct alb_trace_record *record);
// Records lost because the ring was not drained.
uint64_t alb_engine_trace_lost(const struct alb_engine *engine);

#define ALB_TRACE_LINE_MAX 256
// Writes a record as one line of JSON with its newline; returns the length without the terminating zero. What has a
// name (requests, opcodes, states, drop reasons, syndromes, causes, statuses) is written as a string.
uint32_t alb_trace_format(const struct alb_trace_record *record, char line[ALB_TRACE_LINE_MAX]);
