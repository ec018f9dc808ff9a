// SPDX-License-Identifier: BSD-2-Clause
// Whether runs came to what their scenario expects.
#include "tools/sim.h"

#include <math.h>
#include <string.h>

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static const struct sim_outcome *find(const struct sim_outcome *outcomes, uint32_t count, const char *variant)
{
    for (uint32_t i = 0; i < count; i++)
        if (outcomes[i].variant && is(outcomes[i].variant, variant))
            return &outcomes[i];
    return NULL;
}

static bool value_of(const struct alb_expectation_of *expectation, const struct sim_outcome *outcome, double *value)
{
    return alb_metric_value(&outcome->summary, expectation->metric, expectation->part[0] ? expectation->part : NULL,
                            value);
}

static char *format_bound(enum alb_metric_unit unit, double value, char text[ALB_METRIC_TEXT_MAX])
{
    return isinf(value) ? strcpy(text, "any") : alb_metric_format(unit, value, text);
}

static bool judge(const struct alb_expectation_of *expectation, const char *name, enum alb_metric_unit unit,
                  double value, FILE *to)
{
    char text[ALB_METRIC_TEXT_MAX], low[ALB_METRIC_TEXT_MAX], high[ALB_METRIC_TEXT_MAX];
    bool is_met = value >= expectation->low && value <= expectation->high;
    fprintf(to, "%s %s%s%s = %s, expected %s .. %s\n", is_met ? "ok  " : "FAIL", name, name[0] ? ": " : "",
            expectation->where->key, alb_metric_format(unit, value, text), format_bound(unit, expectation->low, low),
            format_bound(unit, expectation->high, high));
    return is_met;
}

// Of each variant, or of the one that it names, or of two.
static bool check(const struct alb_expectation_of *expectation, const struct sim_outcome *outcomes, uint32_t count,
                  FILE *to)
{
    double value, by;
    if (expectation->by[0]) {
        const struct sim_outcome *over = find(outcomes, count, expectation->variant);
        const struct sim_outcome *under = find(outcomes, count, expectation->by);
        if (!over || !under)
            return true; // not run
        bool is_good = value_of(expectation, over, &value) && value_of(expectation, under, &by) && by != 0;
        return judge(expectation, "", ALB_METRIC_NUMBER, is_good ? value / by : NAN, to);
    }
    bool all_met = true;
    for (uint32_t i = 0; i < count; i++) {
        bool is_named = expectation->variant[0];
        if (is_named && !(outcomes[i].variant && is(outcomes[i].variant, expectation->variant)))
            continue;
        bool is_good = value_of(expectation, &outcomes[i], &value);
        all_met &= judge(expectation, is_named || !outcomes[i].variant ? "" : outcomes[i].variant,
                         expectation->metric->unit, is_good ? value : NAN, to);
    }
    return all_met;
}

// Whether the entry is an expectation.
static bool read_entry(const struct alb_document_entry *entry, struct alb_expectation_of *expectation)
{
    struct alb_complaint complaint = {0};
    return is(entry->section, "expect") && entry->key[0] && alb_expect_parse(expectation, entry, &complaint);
}

// Of that part, or of all.
static bool says_how_many_fail(const struct sim_file *file, const struct sim_outcome *outcome, const char *part)
{
    struct alb_expectation_of expectation;
    for (uint32_t i = 0; i < file->document.count; i++) {
        if (!read_entry(&file->document.entries[i], &expectation))
            continue;
        bool is_of_run = !expectation.variant[0] || (outcome->variant && is(expectation.variant, outcome->variant));
        bool is_of_part = !expectation.part[0] || is(expectation.part, part);
        if (is(expectation.metric->name, "failed") && is_of_run && is_of_part && !expectation.by[0])
            return true;
    }
    return false;
}

// No message may fail where the scenario does not say how many do.
static bool check_failures(const struct sim_file *file, const struct sim_outcome *outcome, FILE *to)
{
    const struct alb_summary *summary = &outcome->summary;
    bool all_met = true;
    for (uint32_t i = 0; i < summary->part_count; i++) {
        const struct alb_summary_part *part = &summary->parts[i];
        if (part->failed == 0 || says_how_many_fail(file, outcome, part->name))
            continue;
        fprintf(to, "FAIL %s%s%s.failed = %.0f, expected 0, since [expect] has no other number\n",
                outcome->variant ? outcome->variant : "", outcome->variant ? ": " : "", part->name, part->failed);
        all_met = false;
    }
    return all_met;
}

bool sim_check(const struct sim_file *file, const struct sim_outcome *outcomes, uint32_t count, FILE *to)
{
    bool all_met = true;
    struct alb_expectation_of expectation;
    for (uint32_t i = 0; i < file->document.count; i++)
        if (read_entry(&file->document.entries[i], &expectation))
            all_met &= check(&expectation, outcomes, count, to);
    for (uint32_t i = 0; i < count; i++)
        all_met &= check_failures(file, &outcomes[i], to);
    return all_met;
}

bool sim_check_ends(const struct sim_outcome *outcomes, uint32_t count, FILE *to)
{
    bool all_ended = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct sim_outcome *outcome = &outcomes[i];
        if (outcome->end == ALB_RUN_DONE || (outcome->has_end && !outcome->is_cut))
            continue;
        fprintf(to, "FAIL %s%send = %s, expected done%s\n", outcome->variant ? outcome->variant : "",
                outcome->variant ? ": " : "", alb_result_end_name(outcome->end),
                outcome->has_end ? " or the scenario's own end" : ", since [scenario] has no end");
        all_ended = false;
    }
    return all_ended;
}
