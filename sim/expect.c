// SPDX-License-Identifier: BSD-2-Clause
#include "sim/expect.h"

#include "sim/scenario.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum alb_metric_unit of; // what is counted so
    double factor;
} units[] = {
    {"%", ALB_METRIC_NUMBER, 0.01},
    {"ns", ALB_METRIC_NS, 1},
    {"us", ALB_METRIC_NS, 1e3},
    {"ms", ALB_METRIC_NS, 1e6},
    {"s", ALB_METRIC_NS, 1e9},
    {"b/s", ALB_METRIC_BITS_PER_S, 1},
    {"kb/s", ALB_METRIC_BITS_PER_S, 1e3},
    {"Mb/s", ALB_METRIC_BITS_PER_S, 1e6},
    {"Gb/s", ALB_METRIC_BITS_PER_S, 1e9},
    {"Tb/s", ALB_METRIC_BITS_PER_S, 1e12},
    {"B", ALB_METRIC_BYTES, 1},
    {"KiB", ALB_METRIC_BYTES, 0x1p10},
    {"MiB", ALB_METRIC_BYTES, 0x1p20},
    {"GiB", ALB_METRIC_BYTES, 0x1p30},
};

static const char *const units_of[] = {
    [ALB_METRIC_NUMBER] = " or %",
    [ALB_METRIC_NS] = " with ns, us, ms or s",
    [ALB_METRIC_BITS_PER_S] = " with b/s, kb/s, Mb/s, Gb/s or Tb/s",
    [ALB_METRIC_BYTES] = " with B, KiB, MiB or GiB",
};

// A number, or one with a unit that fits, of length characters.
static bool parse_value(const char *text, size_t length, enum alb_metric_unit unit, double *value)
{
    char copy[64], *end;
    if (length == 0 || length >= sizeof(copy) || text[0] < '0' || text[0] > '9')
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *value = strtod(copy, &end);
    if (!*end)
        return isfinite(*value);
    for (size_t i = 0; i < ALB_COUNT(units); i++) {
        if (units[i].of == unit && strcmp(end, units[i].name) == 0) {
            *value *= units[i].factor;
            return isfinite(*value);
        }
    }
    return false;
}

static bool parse_range(const char *text, enum alb_metric_unit unit, double *low, double *high)
{
    const char *dots = strstr(text, "..");
    *low = -INFINITY;
    *high = INFINITY;
    if (strncmp(text, ">=", 2) == 0)
        return parse_value(text + 2, strlen(text + 2), unit, low);
    if (strncmp(text, "<=", 2) == 0)
        return parse_value(text + 2, strlen(text + 2), unit, high);
    if (dots)
        return parse_value(text, (size_t)(dots - text), unit, low) &&
               parse_value(dots + 2, strlen(dots + 2), unit, high) && *low <= *high;
    if (!parse_value(text, strlen(text), unit, low))
        return false;
    *high = *low;
    return true;
}

static bool take(char to[ALB_DOCUMENT_WORD_MAX], const char *from, size_t length)
{
    if (length == 0 || length >= ALB_DOCUMENT_WORD_MAX)
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

// "variant:part.metric", "variant/variant.part.metric", "variant/variant.metric", "part.metric", "metric".
static bool split(struct alb_expectation_of *expectation, const char *key)
{
    const char *slash = strchr(key, '/'), *colon = strchr(key, ':'), *dot = strrchr(key, '.');
    const char *part = key;
    if (slash) {
        const char *by_end = strpbrk(slash + 1, ".:");
        if (colon && colon < slash)
            return false;
        if (!by_end || !take(expectation->variant, key, (size_t)(slash - key)) ||
            !take(expectation->by, slash + 1, (size_t)(by_end - slash - 1)))
            return false;
        part = by_end + 1;
    } else if (colon) {
        if (!take(expectation->variant, key, (size_t)(colon - key)))
            return false;
        part = colon + 1;
    }
    if (dot && dot > part && !take(expectation->part, part, (size_t)(dot - part)))
        return false;
    expectation->metric = alb_metric_find(dot && dot > part ? dot + 1 : part);
    return expectation->metric && (expectation->metric->is_of_part || !expectation->part[0]);
}

bool alb_expect_parse(struct alb_expectation_of *expectation, const struct alb_document_entry *entry,
                      struct alb_complaint *complaint)
{
    *expectation = (struct alb_expectation_of){.where = entry};
    if (!split(expectation, entry->key))
        return alb_complain(complaint, entry->file, entry->line,
                            "\"%s\" is no figure of a run; expected METRIC, WORKLOAD.METRIC, VARIANT:METRIC or "
                            "VARIANT/VARIANT.METRIC, with a metric that `albedo sim --keys` lists",
                            entry->key);
    // A figure by another one's is a number, whatever both are.
    enum alb_metric_unit unit = expectation->by[0] ? ALB_METRIC_NUMBER : expectation->metric->unit;
    return parse_range(entry->value, unit, &expectation->low, &expectation->high) ||
           alb_complain(complaint, entry->file, entry->line,
                        "\"%s\" is no range of it; expected LOW..HIGH, <=HIGH or >=LOW, numbers%s", entry->value,
                        units_of[unit]);
}

// Whether a variant's key is of the workload that is called so: "workload.NAME.KEY", or "workload.KEY" of the one
// without a name.
static bool brings(const char *key, const char *name)
{
    static const char section[] = "workload.";
    size_t length = strlen(name);
    if (strncmp(key, section, strlen(section)) != 0)
        return false;
    key += strlen(section);
    return strchr(key, '.') ? strncmp(key, name, length) == 0 && key[length] == '.' : strcmp(name, "flows") == 0;
}

// variant: NULL: the scenario as it stands.
static bool has_workload(const struct alb_document *document, const char *variant, const char *name)
{
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        const char *called = entry->name[0] ? entry->name : "flows";
        bool is_varied = variant && strcmp(entry->section, "variant") == 0 && strcmp(entry->name, variant) == 0;
        if ((strcmp(entry->section, "workload") == 0 && strcmp(called, name) == 0) ||
            (is_varied && brings(entry->key, name)))
            return true;
    }
    return false;
}

static bool check_workload(const struct alb_document *document, const struct alb_expectation_of *expectation,
                           const char *variant, struct alb_complaint *complaint)
{
    return has_workload(document, variant, expectation->part) ||
           alb_complain(complaint, expectation->where->file, expectation->where->line,
                        "there is no [workload %s]%s%s%s; expected one of the scenario", expectation->part,
                        variant ? " in [variant " : "", variant ? variant : "", variant ? "]" : "");
}

// Each run has it that the expectation is of.
static bool check_part(const struct alb_document *document, const struct alb_expectation_of *expectation,
                       struct alb_complaint *complaint)
{
    const char *variant = alb_scenario_variant(document, 0);
    if (!expectation->part[0])
        return true;
    if (expectation->variant[0])
        return check_workload(document, expectation, expectation->variant, complaint) &&
               (!expectation->by[0] || check_workload(document, expectation, expectation->by, complaint));
    if (!variant)
        return check_workload(document, expectation, NULL, complaint);
    for (uint32_t i = 0; variant; variant = alb_scenario_variant(document, ++i))
        if (!check_workload(document, expectation, variant, complaint))
            return false;
    return true;
}

static bool check_names(const struct alb_document *document, const struct alb_expectation_of *expectation,
                        struct alb_complaint *complaint)
{
    const char *const variants[] = {expectation->variant, expectation->by};
    for (size_t i = 0; i < ALB_COUNT(variants); i++)
        if (variants[i][0] && !alb_document_find(document, "variant", variants[i], ""))
            return alb_complain(complaint, expectation->where->file, expectation->where->line,
                                "there is no [variant %s]; expected one of the scenario", variants[i]);
    return check_part(document, expectation, complaint);
}

bool alb_expect_check(const struct alb_document *document, struct alb_complaint *complaint)
{
    for (uint32_t i = 0; i < document->count; i++) {
        const struct alb_document_entry *entry = &document->entries[i];
        struct alb_expectation_of expectation;
        if (strcmp(entry->section, "expect") == 0 && entry->key[0] &&
            (!alb_expect_parse(&expectation, entry, complaint) || !check_names(document, &expectation, complaint)))
            return false;
    }
    return true;
}
