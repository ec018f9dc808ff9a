// SPDX-License-Identifier: BSD-2-Clause
// Reading fault specifications and deciding on datagrams.
#include "base/faults.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { ITEM_TEXT_MAX = 128 };

static const char accepted[] =
    "accepted: loss, duplicate, reorder, corrupt, source, read, packet, stage, copy, misplace, stale (each =1% or the "
    "like) and delay (=1ms or =50us..1ms)";

#define CORRUPTION(place) (offsetof(struct alb_faults_spec, corruption.chance) + (place) * sizeof(uint32_t))

static const struct {
    const char *name;
    size_t offset;
} probabilities[] = {
    {"loss", offsetof(struct alb_faults_spec, loss)},
    {"duplicate", offsetof(struct alb_faults_spec, duplicate)},
    {"reorder", offsetof(struct alb_faults_spec, reorder)},
    {"corrupt", offsetof(struct alb_faults_spec, corrupt)},
    {"source", CORRUPTION(ALB_CORRUPT_SOURCE)},
    {"read", CORRUPTION(ALB_CORRUPT_READ)},
    {"packet", CORRUPTION(ALB_CORRUPT_PACKET)},
    {"stage", CORRUPTION(ALB_CORRUPT_STAGE)},
    {"copy", CORRUPTION(ALB_CORRUPT_COPY)},
    {"misplace", CORRUPTION(ALB_CORRUPT_MISPLACE)},
    {"stale", CORRUPTION(ALB_CORRUPT_STALE)},
};

enum { DELAY = ALB_COUNT(probabilities), NAMES };

// The number of a fault by its name; NAMES if there is none.
static uint32_t fault_of(const char *name)
{
    for (uint32_t i = 0; i < DELAY; i++) {
        if (strcmp(name, probabilities[i].name) == 0)
            return i;
    }
    return strcmp(name, "delay") == 0 ? (uint32_t)DELAY : (uint32_t)NAMES;
}

static uint32_t *probability(struct alb_faults_spec *spec, uint32_t i)
{
    return (uint32_t *)((char *)spec + probabilities[i].offset);
}

static bool parse_value(uint32_t fault, const char *name, const char *value, struct alb_faults_spec *spec, char *error,
                        size_t error_size)
{
    char reason[ALB_TEXT_ERROR_MAX];
    if (fault != DELAY) {
        if (alb_text_parse_probability(value, probability(spec, fault), reason, sizeof(reason)))
            return true;
        snprintf(error, error_size, "%s: %s", name, reason);
        return false;
    }
    if (!alb_text_parse_duration_range(value, &spec->delay_ns_min, &spec->delay_ns_max, reason, sizeof(reason))) {
        snprintf(error, error_size, "%s: %s", name, reason);
        return false;
    }
    if (spec->delay_ns_max > ALB_FAULTS_DELAY_NS_MAX) {
        snprintf(error, error_size, "%s: \"%s\" is longer than %llus", name, value,
                 (unsigned long long)(ALB_FAULTS_DELAY_NS_MAX / ALB_NS_PER_S));
        return false;
    }
    return true;
}

// item is "name=value" and may be changed; seen has a bit for each fault that has been given.
static bool parse_item(char *item, uint32_t *seen, struct alb_faults_spec *spec, char *error, size_t error_size)
{
    char *equals = strchr(item, '=');
    if (equals == NULL) {
        snprintf(error, error_size, "\"%s\" has no \"=\"; %s", item, accepted);
        return false;
    }
    *equals = '\0';
    uint32_t fault = fault_of(item);
    if (fault == NAMES) {
        snprintf(error, error_size, "\"%s\" is no fault; %s", item, accepted);
        return false;
    }
    if (*seen & 1u << fault) {
        snprintf(error, error_size, "\"%s\" is given twice", item);
        return false;
    }
    *seen |= 1u << fault;
    return parse_value(fault, item, equals + 1, spec, error, error_size);
}

bool alb_faults_parse(const char *text, struct alb_faults_spec *spec, char *error, size_t error_size)
{
    struct alb_faults_spec parsed = {0};
    uint32_t seen = 0;
    bool is_none = *text == '\0' || strcmp(text, "none") == 0;

    for (const char *at = text; !is_none; at++) {
        char item[ITEM_TEXT_MAX];
        size_t length = strcspn(at, ",");
        if (length >= sizeof(item)) {
            snprintf(error, error_size, "\"%.40s...\" is too long; %s", at, accepted);
            return false;
        }
        memcpy(item, at, length);
        item[length] = '\0';
        if (!parse_item(item, &seen, &parsed, error, error_size))
            return false;
        at += length;
        if (*at == '\0')
            break;
    }
    *spec = parsed;
    return true;
}

char *alb_faults_format(const struct alb_faults_spec *spec, char text[ALB_FAULTS_TEXT_MAX])
{
    char quantity[ALB_TEXT_QUANTITY_MAX], quantity_max[ALB_TEXT_QUANTITY_MAX];
    const char *comma = "";
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < DELAY; i++) {
        uint32_t per_billion = *probability((struct alb_faults_spec *)spec, i);
        if (per_billion == 0)
            continue;
        used += (size_t)snprintf(text + used, ALB_FAULTS_TEXT_MAX - used, "%s%s=%s", comma, probabilities[i].name,
                                 alb_text_format_probability(per_billion, quantity));
        comma = ",";
    }
    if (spec->delay_ns_max > 0) {
        alb_text_format_duration(spec->delay_ns_min, quantity);
        alb_text_format_duration(spec->delay_ns_max, quantity_max);
        bool is_range = spec->delay_ns_min != spec->delay_ns_max;
        snprintf(text + used, ALB_FAULTS_TEXT_MAX - used, "%sdelay=%s%s%s", comma, quantity, is_range ? ".." : "",
                 is_range ? quantity_max : "");
    }
    return text[0] == '\0' ? strcpy(text, "none") : text;
}

void alb_faults_init(struct alb_faults *faults, const struct alb_faults_spec *spec, uint64_t seed)
{
    *faults = (struct alb_faults){.spec = *spec};
    alb_prng_init(&faults->prng, seed);
}

// One draw, scaled to 0 ... n - 1. The bias of less than n / 2^64 buys that every use takes exactly one draw.
static uint64_t draw_below(struct alb_prng *prng, uint64_t n)
{
    return (uint64_t)((unsigned __int128)alb_prng_u64(prng) * n >> 64);
}

struct alb_fault_verdict alb_faults_decide(struct alb_faults *faults, uint32_t datagram_bytes)
{
    const struct alb_faults_spec *spec = &faults->spec;
    struct alb_prng *prng = &faults->prng;
    alb_assert(datagram_bytes <= UINT32_MAX / 8);
    uint64_t delay_span_ns = spec->delay_ns_max - spec->delay_ns_min + 1;

    bool is_lost = alb_prng_chance(prng, spec->loss);
    bool is_duplicate = alb_prng_chance(prng, spec->duplicate);
    bool is_reordered = alb_prng_chance(prng, spec->reorder);
    bool is_corrupt = alb_prng_chance(prng, spec->corrupt) && datagram_bytes > 0;
    uint32_t pass = 1 + (uint32_t)draw_below(prng, ALB_FAULTS_PASS_MAX);
    uint32_t corrupt_bit = (uint32_t)draw_below(prng, 8 * datagram_bytes);
    alb_time delay_ns[2];
    for (int i = 0; i < 2; i++)
        delay_ns[i] = spec->delay_ns_min + draw_below(prng, delay_span_ns);

    faults->datagrams++;
    if (is_lost) {
        faults->lost++;
        return (struct alb_fault_verdict){.is_lost = true};
    }
    faults->duplicated += is_duplicate;
    faults->reordered += is_reordered;
    faults->corrupted += is_corrupt;
    faults->delayed += delay_ns[0] > 0 || (is_duplicate && delay_ns[1] > 0);
    return (struct alb_fault_verdict){
        .is_corrupt = is_corrupt,
        .copies = is_duplicate ? 2 : 1,
        .corrupt_bit = is_corrupt ? corrupt_bit : 0,
        .pass = is_reordered ? pass : 0,
        .delay_ns = {delay_ns[0], is_duplicate ? delay_ns[1] : 0},
    };
}
