// SPDX-License-Identifier: BSD-2-Clause
// The engine's trace as a file of JSON lines.
#pragma once

#include "device/outfile.h"
#include "engine/engine.h"

// Records that the engine's ring holds between two drains.
#define ALB_TRACE_FILE_RECORDS 16384

struct alb_trace_file {
    struct alb_outfile file;
    uint64_t lost_seen;
};

// Errors: those of alb_outfile_open.
int alb_trace_file_open(struct alb_trace_file *trace, const char *path);
void alb_trace_file_close(struct alb_trace_file *trace);

// Writes what the engine has recorded since the last call.
void alb_trace_file_drain(struct alb_trace_file *trace, struct alb_engine *engine);
