// SPDX-License-Identifier: BSD-2-Clause
#include "sim/sizes.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

enum {
    BILLION = 1000000000,
    LINE_MAX_BYTES = 80,
};

// ---- a data file ----------------------------------------------------------------------------------------------------

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char *word_of(char **at)
{
    while (is_space(**at))
        (*at)++;
    char *word = *at;
    while (**at && !is_space(**at))
        (*at)++;
    if (**at)
        *(*at)++ = '\0';
    return word;
}

// line is the parser's to change.
static bool add_line(struct alb_sizes *sizes, const char *file, uint32_t number, char *line,
                     struct alb_complaint *complaint)
{
    char percent[LINE_MAX_BYTES + 2], error[ALB_TEXT_ERROR_MAX];
    char *first = word_of(&line), *second = word_of(&line), *third = word_of(&line);
    struct alb_sizes_point point;
    if (*second == '\0' || *third != '\0')
        return alb_complain(complaint, file, number, "expected two numbers: bytes, and percent of flows not larger");
    if (sizes->count == ALB_SIZES_POINTS_MAX)
        return alb_complain(complaint, file, number, "expected %d points at most", ALB_SIZES_POINTS_MAX);
    if (!alb_text_parse_u64(first, 0, UINT32_MAX, &point.bytes, error, sizeof(error)))
        return alb_complain(complaint, file, number, "%s", error);
    strcpy(percent, second);
    strcat(percent, "%");
    if (!alb_text_parse_probability(percent, &point.per_billion, error, sizeof(error)))
        return alb_complain(complaint, file, number, "%s", error);
    const struct alb_sizes_point *before = sizes->count ? &sizes->points[sizes->count - 1] : NULL;
    if (!before && point.per_billion != 0)
        return alb_complain(complaint, file, number, "expected the first point at 0 percent");
    if (before && (point.bytes < before->bytes || point.per_billion <= before->per_billion))
        return alb_complain(complaint, file, number,
                            "expected more bytes and a larger percentage than in the point "
                            "before");
    sizes->points[sizes->count++] = point;
    return true;
}

bool alb_sizes_parse(struct alb_sizes *sizes, const char *file, const char *text, size_t length,
                     struct alb_complaint *complaint)
{
    uint32_t number = 0;
    sizes->count = 0;
    for (const char *at = text, *end = text + length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((newline ? newline : end) - at);
        const char *comment = memchr(at, '#', bytes);
        size_t used = comment ? (size_t)(comment - at) : bytes;
        char line[LINE_MAX_BYTES];
        number++;
        while (used > 0 && is_space(at[used - 1]))
            used--;
        if (used >= sizeof(line) || memchr(at, '\0', used))
            return alb_complain(complaint, file, number, "expected two numbers in less than %d characters",
                                LINE_MAX_BYTES);
        memcpy(line, at, used);
        line[used] = '\0';
        if (used > 0 && !add_line(sizes, file, number, line, complaint))
            return false;
        at += bytes + 1;
    }
    if (sizes->count < 2 || sizes->points[sizes->count - 1].per_billion != BILLION ||
        sizes->points[sizes->count - 1].bytes == 0)
        return alb_complain(complaint, file, number, "expected the last point at 100 percent and more than 0 bytes");
    return true;
}

// ---- draws ----------------------------------------------------------------------------------------------------------

uint64_t alb_sizes_draw(const struct alb_sizes *sizes, struct alb_prng *prng)
{
    uint64_t at = alb_prng_below(prng, BILLION);
    uint32_t i = 1;
    while (sizes->points[i].per_billion <= at)
        i++;
    const struct alb_sizes_point *low = &sizes->points[i - 1], *high = &sizes->points[i];
    uint64_t bytes =
        low->bytes + (high->bytes - low->bytes) * (at - low->per_billion) / (high->per_billion - low->per_billion);
    return ALB_MAX(bytes, (uint64_t)1);
}

uint64_t alb_sizes_mean(const struct alb_sizes *sizes)
{
    unsigned __int128 sum = 0;
    for (uint32_t i = 1; i < sizes->count; i++) {
        const struct alb_sizes_point *low = &sizes->points[i - 1], *high = &sizes->points[i];
        sum += (unsigned __int128)(low->bytes + high->bytes) * (high->per_billion - low->per_billion);
    }
    return (uint64_t)(sum / 2 / BILLION);
}

// -log2(x / 2^64) for x > 0, in 2^-32: the whole part is the number of leading zeros, each further bit comes from
// squaring the rest.
static uint64_t minus_log2(uint64_t x)
{
    uint32_t zeros = (uint32_t)__builtin_clzll(x);
    uint64_t rest = x << zeros, fraction = 0; // rest / 2^63: 1 to 2
    for (uint32_t bit = 0; bit < 32; bit++) {
        unsigned __int128 square = (unsigned __int128)rest * rest;
        bool carries = square >> 127 & 1;
        rest = (uint64_t)(square >> (carries ? 64 : 63));
        fraction = fraction << 1 | carries;
    }
    return ((uint64_t)(zeros + 1) << 32) - fraction;
}

alb_sim_time alb_sizes_gap(alb_sim_time mean, struct alb_prng *prng)
{
    const uint64_t ln_2 = 2977044472u; // in 2^-32
    uint64_t drawn = alb_prng_u64(prng);
    unsigned __int128 gap = (unsigned __int128)minus_log2(drawn ? drawn : 1) * ln_2 >> 32;
    return (alb_sim_time)(gap * mean >> 32);
}
