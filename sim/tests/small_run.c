// SPDX-License-Identifier: BSD-2-Clause
#include "small_run.h"

#include "base/tests/test.h"

#include <stdio.h>
#include <string.h>

static void begin(struct small_run *small, const char *text, const struct alb_scenario_data *data, uint32_t count)
{
    struct alb_complaint complaint = {0};
    bool is_good = alb_document_parse(&small->document, "f", text, strlen(text), &complaint) &&
                   alb_scenario_read(&small->scenario, &small->document, NULL, "scenarios", &complaint);
    small->scenario.data = data;
    small->scenario.data_count = count;
    if (!is_good || !alb_run_init(&small->run, &small->scenario, &complaint))
        fail_msg("%s", complaint.text);
}

static void go(struct small_run *small, bool has_heat)
{
    const struct alb_run_options options = {
        .until = ALB_SIM_NEVER, .events_max = 50000000, .has_heat = has_heat, .progress_events = 100000};
    alb_run_go(&small->run, &options);
}

void small_run_begin(struct small_run *small, const char *text)
{
    begin(small, text, NULL, 0);
}

void small_run_go(struct small_run *small, const char *text, bool has_heat)
{
    begin(small, text, NULL, 0);
    go(small, has_heat);
}

void small_run_name(struct alb_scenario_data data[2], struct alb_drawn *drawn)
{
    data[0].text = drawn->sizes;
    data[1].text = drawn->trace;
    snprintf(data[0].name, sizeof(data[0].name), "%s", drawn->sizes_name);
    snprintf(data[1].name, sizeof(data[1].name), "%s", drawn->trace_name);
}

void small_run_go_with(struct small_run *small, struct alb_drawn *drawn)
{
    struct alb_scenario_data data[2];
    small_run_name(data, drawn);
    begin(small, drawn->text, data, ALB_COUNT(data));
    small->scenario.data_count = 0;
    go(small, false);
}

void small_run_go_on(struct small_run *small, const char *text, char *map)
{
    const struct alb_scenario_data data = {.name = "map", .text = map};
    begin(small, text, &data, 1);
    small->scenario.data_count = 0;
    go(small, false);
}

void small_run_end(struct small_run *small)
{
    alb_run_fini(&small->run);
    alb_scenario_fini(&small->scenario);
    alb_document_fini(&small->document);
}
