// SPDX-License-Identifier: BSD-2-Clause
#include "small_run.h"

#include "base/tests/test.h"

#include <string.h>

void small_run_begin(struct small_run *small, const char *text)
{
    struct alb_complaint complaint = {0};
    bool is_good = alb_document_parse(&small->document, "f", text, strlen(text), &complaint) &&
                   alb_scenario_read(&small->scenario, &small->document, NULL, "scenarios", &complaint) &&
                   alb_run_init(&small->run, &small->scenario, &complaint);
    if (!is_good)
        fail_msg("%s", complaint.text);
}

void small_run_go(struct small_run *small, const char *text, bool has_heat)
{
    const struct alb_run_options options = {
        .until = ALB_SIM_NEVER, .events_max = 50000000, .has_heat = has_heat, .progress_events = 100000};
    small_run_begin(small, text);
    alb_run_go(&small->run, &options);
}

void small_run_end(struct small_run *small)
{
    alb_run_fini(&small->run);
    alb_scenario_fini(&small->scenario);
    alb_document_fini(&small->document);
}
