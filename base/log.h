// SPDX-License-Identifier: BSD-2-Clause
// Lines for people, on stderr: "albedo: warning: ...". For device, doors and tools; never for the engine, which reports
// by events and counters. The environment variable ALBEDO_LOG (error, warning, info or debug; warning without it) says
// which levels are shown.
#pragma once

#include "base/types.h"

enum alb_log_level {
    ALB_LOG_ERROR,
    ALB_LOG_WARNING,
    ALB_LOG_INFO,
    ALB_LOG_DEBUG,
};

#define ALB_LOG_LINE_MAX 1024 // bytes of a line with its newline; what is longer is cut and ends in "..."

// True if text is a level's name.
bool alb_log_level_parse(const char *text, enum alb_log_level *level);

// True if lines of this level are shown: spares the caller work whose only use is the line.
bool alb_log_is_shown(enum alb_log_level level);

// Overrules ALBEDO_LOG.
void alb_log_set_level(enum alb_log_level level);

// Writes one line with one write(), so that lines of threads and processes do not mix. The newline is added; control
// characters in the text become spaces. Leaves errno alone. Safe in any thread.
__attribute__((format(printf, 2, 3))) void alb_log(enum alb_log_level level, const char *format, ...);
