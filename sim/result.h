// SPDX-License-Identifier: BSD-2-Clause
// The result file: a JSON object a line, of which "record" says what it is of: run, flow, link, switch, host, part,
// network. docs/SCENARIOS.md lists the columns.
#pragma once

#include "sim/summary.h"

struct alb_result_of {
    const char *scenario, *variant; // variant: NULL, or its name
    const struct alb_run *run;
    const struct alb_summary *summary;
    double wall_seconds;
};

// 0, or the errno of a write that failed.
int alb_result_write(FILE *to, const struct alb_result_of *result);
const char *alb_result_end_name(enum alb_run_end end); // "done", "stuck", "time", "events"
// A JSON string with its quotes.
void alb_result_string(FILE *to, const char *text);
