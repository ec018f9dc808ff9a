// SPDX-License-Identifier: BSD-2-Clause
// The ring of trace records. When it is full the newest records are lost: what led to trouble says more than its
// repetition.
#include "engine/trace.h"

#include "engine/impl.h"

#include <errno.h>

int alb_trace_init(struct alb_engine *engine)
{
    struct alb_trace *trace = &engine->trace;
    *trace = (struct alb_trace){.capacity = engine->config.trace_records};
    if (trace->capacity == 0)
        return 0;
    trace->records = alb_engine_get_memory(engine, (size_t)trace->capacity * sizeof(*trace->records));
    return trace->records ? 0 : ENOMEM;
}

void alb_trace_fini(struct alb_engine *engine)
{
    struct alb_trace *trace = &engine->trace;
    alb_engine_put_memory(engine, trace->records, (size_t)trace->capacity * sizeof(*trace->records));
    *trace = (struct alb_trace){0};
}

void alb_trace_put(struct alb_trace *trace, enum alb_trace_kind kind, uint32_t qpn, uint32_t psn, uint64_t a,
                   uint64_t b, alb_time now)
{
    if (trace->count == trace->capacity) {
        trace->lost++;
        return;
    }
    uint32_t room = trace->capacity - trace->first; // before the ring's end
    uint32_t at = trace->count < room ? trace->first + trace->count : trace->count - room;
    trace->records[at] = (struct alb_trace_record){.at = now, .kind = kind, .qpn = qpn, .psn = psn, .a = a, .b = b};
    trace->count++;
}

bool alb_engine_trace(struct alb_engine *engine, struct alb_trace_record *record)
{
    struct alb_trace *trace = &engine->trace;
    if (trace->count == 0)
        return false;
    *record = trace->records[trace->first];
    trace->first = trace->first + 1 == trace->capacity ? 0 : trace->first + 1;
    trace->count--;
    return true;
}

uint64_t alb_engine_trace_lost(const struct alb_engine *engine)
{
    return engine->trace.lost;
}
