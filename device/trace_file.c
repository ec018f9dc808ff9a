// SPDX-License-Identifier: BSD-2-Clause
// Draining the engine's trace ring.
#include "device/trace_file.h"

#include "engine/trace.h"

#include <inttypes.h>
#include <stdio.h>

int alb_trace_file_open(struct alb_trace_file *trace, const char *path)
{
    trace->lost_seen = 0;
    return alb_outfile_open(&trace->file, path);
}

void alb_trace_file_close(struct alb_trace_file *trace)
{
    alb_outfile_close(&trace->file);
}

static void note_lost(struct alb_trace_file *trace, uint64_t lost)
{
    char line[ALB_TRACE_LINE_MAX];
    int length =
        snprintf(line, sizeof(line), "{\"event\":\"lost\",\"records\":%" PRIu64 "}\n", lost - trace->lost_seen);
    alb_outfile_add(&trace->file, line, (uint32_t)length);
    trace->lost_seen = lost;
}

void alb_trace_file_drain(struct alb_trace_file *trace, struct alb_engine *engine)
{
    struct alb_trace_record record;
    char line[ALB_TRACE_LINE_MAX];
    while (alb_engine_trace(engine, &record)) {
        uint32_t length = alb_trace_format(&record, line);
        alb_outfile_reserve(&trace->file, length);
        alb_outfile_add(&trace->file, line, length);
    }
    uint64_t lost = alb_engine_trace_lost(engine);
    if (lost != trace->lost_seen)
        note_lost(trace, lost);
}
