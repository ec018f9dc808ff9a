// SPDX-License-Identifier: BSD-2-Clause
// What values of [host] and [switch] must have to do with each other, said with the line of the key that is wrong: the
// engine and the switches only say EINVAL.
#include "sim/scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_power_of_two(uint32_t value)
{
    return value && (value & (value - 1)) == 0;
}

static bool complain(const struct alb_scenario *scenario, const char *section, const char *name, const char *key,
                     const char *expected, struct alb_complaint *complaint)
{
    const struct alb_document_entry *entry = alb_document_find(&scenario->document, section, name, key);
    if (!entry) // another one's fault, or that of a section without a name
        entry = alb_document_find(&scenario->document, section, "", key);
    if (!entry)
        entry = alb_document_find(&scenario->document, section, name, "");
    return alb_complain(complaint, entry ? entry->file : scenario->document.file, entry ? entry->line : 0,
                        "%s: expected %s", key, expected);
}

// What one peer needs at a time: with less nothing would ever leave, nor fail.
static uint32_t pool_needed_bytes(const struct alb_engine_config *engine)
{
    struct alb_engine_state_sizes sizes;
    if (strcmp(engine->transport, "csa") != 0 || alb_engine_state_sizes(engine, &sizes) != 0)
        return 0;
    return sizes.association_active_bytes - sizes.association_idle_bytes;
}

static bool pool_agrees(const struct alb_scenario *scenario, const char *name, const struct alb_engine_config *engine,
                        struct alb_complaint *complaint)
{
    char expected[96];
    uint32_t needed_bytes = pool_needed_bytes(engine);
    if (!is_power_of_two(engine->csa_pool_bytes) || engine->csa_pool_bytes < ALB_SCENARIO_POOL_MIN)
        return complain(scenario, "host", name, "pool", "a power of two from 4K", complaint);
    snprintf(expected, sizeof(expected), "%" PRIu32 " bytes or more: what one peer takes over %" PRIu32 " paths",
             needed_bytes, engine->path_max);
    return engine->csa_pool_bytes >= needed_bytes || complain(scenario, "host", name, "pool", expected, complaint);
}

bool alb_scenario_engine_agrees(const struct alb_scenario *scenario, const char *name,
                                const struct alb_engine_config *engine, struct alb_complaint *complaint)
{
    const char *const section = "host";
    uint32_t segments = engine->csa_window_segments;
    if (engine->window_min_bytes > engine->window_max_bytes)
        return complain(scenario, section, name, "window_min", "no more than window_max", complaint);
    if (engine->window_start_bytes < engine->window_min_bytes || engine->window_start_bytes > engine->window_max_bytes)
        return complain(scenario, section, name, "window_start", "a size from window_min to window_max", complaint);
    if (!is_power_of_two(segments) || segments < 4 || segments > 1u << 22)
        return complain(scenario, section, name, "window_segments", "a power of two from 4 to 4194304", complaint);
    return pool_agrees(scenario, name, engine, complaint);
}

bool alb_scenario_switches_agree(const struct alb_scenario *scenario, struct alb_complaint *complaint)
{
    const struct alb_switch_config *switches = &scenario->switches;
    if (switches->mark_max_bytes && switches->mark_min_bytes >= switches->mark_max_bytes)
        return complain(scenario, "switch", "", "mark_min", "less than mark_max", complaint);
    if (switches->trims && switches->flow_control != ALB_FLOW_CONTROL_NONE)
        return complain(scenario, "switch", "", "trim", "no trimming where flow_control keeps buffers from overflowing",
                        complaint);
    return true;
}
