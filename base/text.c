// SPDX-License-Identifier: BSD-2-Clause
// Parsing and writing of quantities.
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// digits * 10^exponent
struct decimal {
    uint64_t digits;
    int exponent;
};

struct unit {
    const char *name;
    uint64_t factor;
};

enum {
    EXPONENT_MAX = 40,    // beyond any unit and any 64-bit number, and far from overflow
    QUOTED_TEXT_MAX = 60, // of what the user wrote
};

__attribute__((format(printf, 3, 4))) static bool refuse(char *error, size_t error_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (error_size > 0)
        vsnprintf(error, error_size, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Reads one digit; false if there are more than fit.
static bool add_digit(struct decimal *d, char digit, bool is_fraction)
{
    if (d->exponent < -EXPONENT_MAX || __builtin_mul_overflow(d->digits, 10, &d->digits) ||
        __builtin_add_overflow(d->digits, (uint64_t)(digit - '0'), &d->digits))
        return false;
    d->exponent -= is_fraction;
    return true;
}

// Reads "12", "0.5" or "1e-5" and returns what follows it; NULL if that is not how the text starts. The sign of the
// whole is none, and a point stands between digits.
static const char *read_decimal(const char *text, struct decimal *d)
{
    *d = (struct decimal){0};
    if (!is_digit(*text))
        return NULL;
    for (; is_digit(*text); text++) {
        if (!add_digit(d, *text, false))
            return NULL;
    }
    if (text[0] == '.' && is_digit(text[1])) {
        for (text++; is_digit(*text); text++) {
            if (!add_digit(d, *text, true))
                return NULL;
        }
    }
    if (*text != 'e')
        return text;
    bool is_negative = text[1] == '-';
    text += 1 + (text[1] == '-' || text[1] == '+');
    if (!is_digit(*text))
        return NULL;
    int exponent = 0;
    for (; is_digit(*text); text++) {
        exponent = exponent * 10 + (*text - '0');
        if (exponent > EXPONENT_MAX)
            return NULL;
    }
    d->exponent += is_negative ? -exponent : exponent;
    return text;
}

// What a text may be: a quantity, too large a one, or none.
enum reading {
    READ,
    TOO_LARGE,
    MALFORMED,
};

// *value = d * factor if that is a whole number of 64 bits.
static enum reading scale(struct decimal d, uint64_t factor, uint64_t *value)
{
    unsigned __int128 product = (unsigned __int128)d.digits * factor;
    for (; d.exponent < 0 && product != 0; d.exponent++) {
        if (product % 10 != 0)
            return MALFORMED;
        product /= 10;
    }
    for (; d.exponent > 0 && product != 0; d.exponent--) {
        if (product > UINT64_MAX)
            return TOO_LARGE;
        product *= 10;
    }
    if (product > UINT64_MAX)
        return TOO_LARGE;
    *value = (uint64_t)product;
    return READ;
}

// *value = the number and unit that text is.
static enum reading read_quantity(const char *text, const struct unit *units, size_t unit_count, uint64_t *value)
{
    struct decimal d;
    const char *suffix = read_decimal(text, &d);
    if (suffix == NULL)
        return MALFORMED;
    for (size_t i = 0; i < unit_count; i++) {
        if (strcmp(suffix, units[i].name) == 0)
            return scale(d, units[i].factor, value);
    }
    return MALFORMED;
}

static bool parse_quantity(const char *text, const struct unit *units, size_t unit_count, uint64_t *value)
{
    return read_quantity(text, units, unit_count, value) == READ;
}

// False, with what is wrong with a text that is no quantity of that many 64-bit units.
static bool refuse_large(const char *text, const char *unit, char *error, size_t error_size)
{
    return refuse(error, error_size, "\"%.*s\" is too large; expected less than 1.8e19 %s", QUOTED_TEXT_MAX, text,
                  unit);
}

static bool parse_whole(const char *text, uint64_t *value)
{
    unsigned base = 10;
    uint64_t result = 0;
    if (text[0] == '0' && text[1] == 'x') {
        base = 16;
        text += 2;
    }
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        unsigned digit = is_digit(*text)                ? (unsigned)(*text - '0')
                         : *text >= 'a' && *text <= 'f' ? (unsigned)(*text - 'a') + 10
                         : *text >= 'A' && *text <= 'F' ? (unsigned)(*text - 'A') + 10
                                                        : 16;
        if (digit >= base || __builtin_mul_overflow(result, base, &result) ||
            __builtin_add_overflow(result, digit, &result))
            return false;
    }
    *value = result;
    return true;
}

bool alb_text_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value, char *error, size_t error_size)
{
    uint64_t parsed;
    if (!parse_whole(text, &parsed) || parsed < min || parsed > max)
        return refuse(error, error_size, "\"%.*s\" is not a whole number from %" PRIu64 " to %" PRIu64, QUOTED_TEXT_MAX,
                      text, min, max);
    *value = parsed;
    return true;
}

bool alb_text_parse_duration(const char *text, alb_time *value, char *error, size_t error_size)
{
    static const struct unit units[] = {{"ns", 1}, {"us", ALB_NS_PER_US}, {"ms", ALB_NS_PER_MS}, {"s", ALB_NS_PER_S}};
    static const struct unit none = {"", 1};
    uint64_t parsed = 0;
    bool is_zero = parse_quantity(text, &none, 1, &parsed) && parsed == 0;
    if (read_quantity(text, units, ALB_COUNT(units), &parsed) == TOO_LARGE)
        return refuse_large(text, "ns", error, error_size);
    if (!is_zero && (!parse_quantity(text, units, ALB_COUNT(units), &parsed) || parsed == ALB_TIME_NEVER))
        return refuse(error, error_size,
                      "\"%.*s\" is not a duration: a number with ns, us, ms or s, such as 50us or 1.5ms, in whole "
                      "nanoseconds",
                      QUOTED_TEXT_MAX, text);
    *value = parsed;
    return true;
}

bool alb_text_parse_duration_range(const char *text, alb_time *min, alb_time *max, char *error, size_t error_size)
{
    const char *dots = strstr(text, "..");
    alb_time first = 0, second = 0;
    if (dots == NULL) {
        if (!alb_text_parse_duration(text, &first, error, error_size))
            return false;
        *min = *max = first;
        return true;
    }
    char head[64];
    if ((size_t)(dots - text) >= sizeof(head))
        return refuse(error, error_size, "\"%.*s\" is too long for a range of durations", QUOTED_TEXT_MAX, text);
    memcpy(head, text, (size_t)(dots - text));
    head[dots - text] = '\0';
    if (!alb_text_parse_duration(head, &first, error, error_size) ||
        !alb_text_parse_duration(dots + 2, &second, error, error_size))
        return false;
    if (first > second)
        return refuse(error, error_size, "\"%.*s\" runs backwards: write the shorter duration first", QUOTED_TEXT_MAX,
                      text);
    *min = first;
    *max = second;
    return true;
}

bool alb_text_parse_probability(const char *text, uint32_t *per_billion, char *error, size_t error_size)
{
    static const struct unit percent = {"%", 10000000}, fraction = {"", 1000000000};
    uint64_t parsed;
    if (parse_quantity(text, &fraction, 1, &parsed)) {
        if (parsed >= 1000000000)
            return refuse(error, error_size, "\"%.*s\" is ambiguous: write %.*s%% or %s", QUOTED_TEXT_MAX, text,
                          QUOTED_TEXT_MAX, text, parsed == 1000000000 ? "100%" : "a fraction below 1");
    } else if (!parse_quantity(text, &percent, 1, &parsed) || parsed > 1000000000) {
        return refuse(error, error_size,
                      "\"%.*s\" is not a probability: 0%% to 100%%, or a fraction below 1 such as 1e-5, in whole parts "
                      "per billion",
                      QUOTED_TEXT_MAX, text);
    }
    *per_billion = (uint32_t)parsed;
    return true;
}

bool alb_text_parse_bytes(const char *text, uint64_t *value, char *error, size_t error_size)
{
    static const struct unit units[] = {
        {"", 1},           {"B", 1},
        {"K", 1ull << 10}, {"KiB", 1ull << 10},
        {"M", 1ull << 20}, {"MiB", 1ull << 20},
        {"G", 1ull << 30}, {"GiB", 1ull << 30},
        {"T", 1ull << 40}, {"TiB", 1ull << 40},
    };
    if (read_quantity(text, units, ALB_COUNT(units), value) == TOO_LARGE)
        return refuse_large(text, "bytes", error, error_size);
    if (!parse_quantity(text, units, ALB_COUNT(units), value))
        return refuse(
            error, error_size,
            "\"%.*s\" is not a size in bytes: a number alone or with K, M, G or T (or KiB ...), powers of 1024",
            QUOTED_TEXT_MAX, text);
    return true;
}

bool alb_text_parse_rate(const char *text, uint64_t *value, char *error, size_t error_size)
{
    static const struct unit units[] = {
        {"b/s", 1}, {"kb/s", 1000}, {"Mb/s", 1000000}, {"Gb/s", 1000000000}, {"Tb/s", 1000000000000},
    };
    if (read_quantity(text, units, ALB_COUNT(units), value) == TOO_LARGE)
        return refuse_large(text, "b/s", error, error_size);
    if (!parse_quantity(text, units, ALB_COUNT(units), value))
        return refuse(error, error_size,
                      "\"%.*s\" is not a rate: a number with b/s, kb/s, Mb/s, Gb/s or Tb/s, powers of 1000",
                      QUOTED_TEXT_MAX, text);
    return true;
}

char *alb_text_format_duration(alb_time value, char text[ALB_TEXT_QUANTITY_MAX])
{
    static const struct unit units[] = {{"s", ALB_NS_PER_S}, {"ms", ALB_NS_PER_MS}, {"us", ALB_NS_PER_US}, {"ns", 1}};
    size_t i = 0;
    while (value % units[i].factor != 0)
        i++;
    snprintf(text, ALB_TEXT_QUANTITY_MAX, "%" PRIu64 "%s", value / units[i].factor, value == 0 ? "" : units[i].name);
    return text;
}

char *alb_text_format_probability(uint32_t per_billion, char text[ALB_TEXT_QUANTITY_MAX])
{
    if (per_billion == 0)
        return strcpy(text, "0");
    int length = snprintf(text, ALB_TEXT_QUANTITY_MAX, "%u.%07u", per_billion / 10000000, per_billion % 10000000);
    while (text[length - 1] == '0')
        length--;
    if (text[length - 1] == '.')
        length--;
    strcpy(text + length, "%");
    return text;
}

static bool continues(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t alb_text_character(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    if (at[0] < 0x80)
        return at[0] != 0;
    if (at[0] < 0xc2 || at[0] > 0xf4 || !continues(at[1]))
        return 0;
    if (at[0] < 0xe0)
        return 2;
    // Longer than needed, a surrogate, or beyond U+10FFFF.
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf0 && at[1] < 0x90) ||
        (at[0] == 0xf4 && at[1] >= 0x90) || !continues(at[2]))
        return 0;
    if (at[0] < 0xf0)
        return 3;
    return continues(at[3]) ? 4 : 0;
}

size_t alb_text_mark(const char *text, size_t length)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t bytes = strlen(mark);
    return length >= bytes && memcmp(text, mark, bytes) == 0 ? bytes : 0;
}

char *alb_text_disarm(char *text)
{
    for (uint8_t *at = (uint8_t *)text; *at; at++) {
        if (*at < ' ' || *at == 0x7f)
            *at = '?';
        else if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) // U+0080 to U+009F: terminals obey these, too
            at[0] = at[1] = '?';
    }
    return text;
}
