// SPDX-License-Identifier: BSD-2-Clause
// The keys of each section of a scenario.
#pragma once

#include "sim/scenario_field.h"

struct alb_scenario_section {
    const char *name;
    const char *text;
    const struct alb_field *fields; // each a table of its own, up to two
    uint32_t count;
    const struct alb_field *more;
    uint32_t more_count;
};

enum {
    ALB_SECTION_SCENARIO, // struct alb_scenario
    ALB_SECTION_NETWORK,  // struct alb_topology_spec; more: struct alb_scenario
    ALB_SECTION_SWITCH,   // struct alb_switch_config
    ALB_SECTION_HOST,     // struct alb_engine_config; more: struct alb_scenario_host
    ALB_SECTION_WORKLOAD, // struct alb_scenario_workload
    ALB_SECTION_FAULT,    // struct alb_scenario_fault
    ALB_SECTION_EXPECT,   // keys are metrics
    ALB_SECTION_VARIANT,  // keys are keys of other sections
    ALB_SECTIONS,
};

extern const struct alb_scenario_section alb_scenario_sections[ALB_SECTIONS];
