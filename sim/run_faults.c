// SPDX-License-Identifier: BSD-2-Clause
// What a scenario says goes wrong with which cables, and when.
#include "base/text.h"
#include "sim/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool parse_value(const struct alb_scenario *scenario, const struct alb_scenario_fault *fault, uint64_t *value,
                        struct alb_complaint *complaint)
{
    const struct alb_document_entry *place = alb_scenario_place(scenario, "fault", fault->where->name, "value");
    char error[ALB_TEXT_ERROR_MAX] = "";
    uint32_t per_billion = 0;
    uint64_t number = 0;
    const char *text = fault->value;
    bool is_good = true;
    switch (fault->kind) {
    case ALB_FAULT_LOSS:
    case ALB_FAULT_CORRUPT:
        is_good = text && alb_text_parse_probability(text, &per_billion, error, sizeof(error));
        *value = per_billion;
        break;
    case ALB_FAULT_RATE:
        is_good = text && alb_text_parse_rate(text, value, error, sizeof(error));
        if (is_good && *value == 0) {
            snprintf(error, sizeof(error), "\"%.40s\" carries nothing, as kind = death does", text);
            is_good = false;
        }
        break;
    case ALB_FAULT_DELAY:
    case ALB_FAULT_DEATH:
        is_good = text ? alb_text_parse_duration(text, &number, error, sizeof(error)) : fault->kind == ALB_FAULT_DEATH;
        *value = ALB_SIM_NS(number);
        break;
    default:
        *value = 0;
    }
    return is_good ||
           alb_complain(complaint, place->file, place->line, "value: %s; expected one for a fault of kind %s",
                        text ? error : "none", alb_cluster_fault_name((enum alb_cluster_fault_kind)fault->kind));
}

static int schedule(struct alb_run *run, const struct alb_scenario_fault *from, uint32_t cable, uint64_t value,
                    bool ends)
{
    const struct alb_cluster_fault fault = {
        .at = ends ? from->until : from->at,
        .cable = cable,
        .ways = {from->way != 2, from->way != 1},
        .kind = (enum alb_cluster_fault_kind)from->kind,
        .value = value,
        .ends = ends,
    };
    return alb_cluster_fault(run->cluster, &fault);
}

// It could not be scheduled.
static bool refuse(const struct alb_run *run, const struct alb_scenario_fault *fault, int error,
                   struct alb_complaint *complaint)
{
    const struct alb_document_entry *place = alb_scenario_place(run->scenario, "fault", fault->where->name, "value");
    if (error == ENOMEM)
        return alb_complain(complaint, place->file, place->line,
                            "no memory is left for other routes; expected a smaller cluster");
    char least[ALB_TEXT_QUANTITY_MAX];
    alb_time least_ns = fault->kind == ALB_FAULT_DELAY ? (alb_cluster_delay_min(run->cluster) + 999) / 1000 : 0;
    return alb_complain(complaint, place->file, place->line, "value: \"%.60s\"; expected a duration from %s to 3600s",
                        fault->value, alb_text_format_duration(least_ns, least));
}

static bool no_cable(const struct alb_topology *topology, const char *pattern, const struct alb_document_entry *place,
                     struct alb_complaint *complaint)
{
    char tiers[40] = "tier:0";
    if (topology->tier_count > 1)
        snprintf(tiers, sizeof(tiers), "tier:0 to tier:%" PRIu32, topology->tier_count - 1);
    return alb_complain(
        complaint, place->file, place->line,
        "no cable matches \"%.60s\"; expected %s, with :N behind it for N of it, or NODE-NODE with * for "
        "any text",
        pattern, tiers);
}

// "tier:T:N" with a number beyond the last cable of that tier.
static bool check_number(const struct alb_scenario_fault *fault, uint32_t count, const struct alb_document_entry *place,
                         struct alb_complaint *complaint)
{
    uint32_t tier, number;
    return !alb_topology_first_of_tier(fault->cables, &tier, &number) || number <= count ||
           alb_complain(complaint, place->file, place->line,
                        "tier %" PRIu32 " has %" PRIu32 " cables; expected no more", tier, count);
}

// Schedules when the fault begins, or when it ends, if it does.
static bool add_fault(struct alb_run *run, const struct alb_scenario_fault *fault, bool ends,
                      struct alb_complaint *complaint)
{
    uint32_t *cables = malloc((run->topology.cable_count + 1u) * sizeof(*cables));
    uint64_t value = 0;
    alb_assert(cables);
    uint32_t count = alb_topology_select(&run->topology, fault->cables, cables, run->topology.cable_count);
    const struct alb_document_entry *place = alb_scenario_place(run->scenario, "fault", fault->where->name, "cables");
    bool is_good = parse_value(run->scenario, fault, &value, complaint);
    if (is_good && count == 0)
        is_good = no_cable(&run->topology, fault->cables, place, complaint);
    is_good = is_good && check_number(fault, count, place, complaint);
    for (uint32_t i = 0; i < count && is_good && run->cluster; i++) {
        int error = schedule(run, fault, cables[i], value, ends);
        is_good = error == 0 || refuse(run, fault, error, complaint);
    }
    free(cables);
    return is_good;
}

// The ends first: of two faults of a cable, one may begin at the moment at which the other one ends.
bool alb_run_faults(struct alb_run *run, struct alb_complaint *complaint)
{
    const struct alb_scenario *scenario = run->scenario;
    for (uint32_t i = 0; i < scenario->fault_count; i++)
        if (scenario->faults[i].until && !add_fault(run, &scenario->faults[i], true, complaint))
            return false;
    for (uint32_t i = 0; i < scenario->fault_count; i++)
        if (!add_fault(run, &scenario->faults[i], false, complaint))
            return false;
    return true;
}
