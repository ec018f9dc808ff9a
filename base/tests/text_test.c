// SPDX-License-Identifier: BSD-2-Clause
// What each parser accepts, exactly; what it refuses, and that it then says why and changes nothing.
#include "base/prng.h"
#include "base/tests/test.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

struct accepted {
    const char *text;
    uint64_t value;
};

static void assert_complains(const char *error, const char *text)
{
    assert_int_equal(error[0], '"');
    assert_memory_equal(error + 1, text, ALB_MIN(strlen(text), (size_t)60));
    assert_true(strlen(error) < ALB_TEXT_ERROR_MAX - 1);
    assert_null(strchr(error, '\n'));
}

static void alb_text_character__of_utf8_only(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"", 0},
        {"a", 1},
        {"\x7f", 1},
        {"\xc3\xa4", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\x80", 0},
        {"\xe9", 0},             // Latin-1
        {"\xc3(", 0},            // another begins
        {"\xe2\x82", 0},         // cut off
        {"\xf0\x9f\x98", 0},     // likewise
        {"\xc0\x80", 0},         // longer than needed
        {"\xe0\x80\x80", 0},     // likewise
        {"\xf0\x80\x80\x80", 0}, // likewise
        {"\xed\xa0\x80", 0},     // a surrogate
        {"\xf4\x90\x80\x80", 0}, // beyond the last one
        {"\xff", 0},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++)
        assert_int_equal(alb_text_character(cases[i].text), cases[i].bytes);
}

static void alb_text_mark__at_the_beginning_only(void **state)
{
    assert_int_equal(alb_text_mark("\xef\xbb\xbf# text", 9), 3);
    assert_int_equal(alb_text_mark("\xef\xbb\xbf", 3), 3);
    assert_int_equal(alb_text_mark("\xef\xbb\xbf", 2), 0); // cut off
    assert_int_equal(alb_text_mark(" \xef\xbb\xbf", 4), 0);
    assert_int_equal(alb_text_mark("", 0), 0);
}

static void alb_text_parse_u64__bounds_and_bases(void **state)
{
    static const struct accepted good[] = {{"0", 0},
                                           {"7", 7},
                                           {"007", 7},
                                           {"0x1F", 31},
                                           {"18446744073709551615", UINT64_MAX},
                                           {"0xffffffffffffffff", UINT64_MAX}};
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "-1",
                                      "+1",
                                      "1.0",
                                      "1e3",
                                      "0x",
                                      "x",
                                      "1f",
                                      "18446744073709551616",
                                      "0x10000000000000000",
                                      "99999999999999999999999999999999999999999999999999999999999999"};
    char error[ALB_TEXT_ERROR_MAX];
    for (size_t i = 0; i < ALB_COUNT(good); i++) {
        uint64_t value = 1234;
        assert_true(alb_text_parse_u64(good[i].text, 0, UINT64_MAX, &value, error, sizeof(error)));
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        uint64_t value = 1234;
        assert_false(alb_text_parse_u64(bad[i], 0, UINT64_MAX, &value, error, sizeof(error)));
        assert_int_equal(value, 1234);
        assert_complains(error, bad[i]);
    }
    uint64_t value;
    assert_true(alb_text_parse_u64("3", 3, 5, &value, error, sizeof(error)));
    assert_true(alb_text_parse_u64("5", 3, 5, &value, error, sizeof(error)));
    assert_false(alb_text_parse_u64("2", 3, 5, &value, error, sizeof(error)));
    assert_false(alb_text_parse_u64("6", 3, 5, &value, error, sizeof(error)));
    assert_string_equal(error, "\"6\" is not a whole number from 3 to 5");
}

// With a unit that there is: a number of it that is not held is none that is not understood.
static void alb_text_parse__says_what_is_too_large(void **state)
{
    static const struct {
        bool (*parse)(const char *text, uint64_t *value, char *error, size_t error_size);
        const char *text, *error;
    } cases[] = {
        {alb_text_parse_rate, "1e30Tb/s", "\"1e30Tb/s\" is too large; expected less than 1.8e19 b/s"},
        {alb_text_parse_duration, "99999999999s", "\"99999999999s\" is too large; expected less than 1.8e19 ns"},
        {alb_text_parse_bytes, "99999999T", "\"99999999T\" is too large; expected less than 1.8e19 bytes"},
        {alb_text_parse_rate, "1e30",
         "\"1e30\" is not a rate: a number with b/s, kb/s, Mb/s, Gb/s or Tb/s, "
         "powers of 1000"}};
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        char error[ALB_TEXT_ERROR_MAX];
        uint64_t value = 1234;
        assert_false(cases[i].parse(cases[i].text, &value, error, sizeof(error)));
        assert_string_equal(error, cases[i].error);
        assert_int_equal(value, 1234);
    }
}

static void alb_text_parse_duration__units(void **state)
{
    static const struct accepted good[] = {
        {"0", 0},
        {"0ns", 0},
        {"300ns", 300},
        {"50us", 50000},
        {"1ms", 1000000},
        {"2s", 2000000000},
        {"1.5ms", 1500000},
        {"0.1us", 100},
        {"1.000s", 1000000000},
        {"1e3us", 1000000},
        {"25e-1us", 2500},
        {"0.001us", 1},
        {"0e40", 0},
        {"0.0000000000000000000000000", 0},
        {"18446744073709551614ns", UINT64_MAX - 1},
    };
    static const char *const bad[] = {
        "",
        "5",
        "ms",
        "1 ms",
        "1msec",
        "1MS",
        "-1ms",
        ".5ms",
        "5.ms",
        "1..2ms",
        "0.3ns",
        "1e41s",
        "1e-5ns",
        "1e",
        "1es",
        "1e-s",
        "1.2.3s",
        "1m",
        "1ms,",
        "18446744073709551615ns",
        "18446744073709551616ns",
        "20000000000s",
        "nan",
        "inf",
        "0x10ns",
        "99999999999999999999999999s",
    };
    char error[ALB_TEXT_ERROR_MAX];
    for (size_t i = 0; i < ALB_COUNT(good); i++) {
        alb_time value = 1234;
        assert_true(alb_text_parse_duration(good[i].text, &value, error, sizeof(error)));
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        alb_time value = 1234;
        assert_false(alb_text_parse_duration(bad[i], &value, error, sizeof(error)));
        assert_int_equal(value, 1234);
        assert_complains(error, bad[i]);
    }
}

static void alb_text_parse_duration_range__one_or_two(void **state)
{
    static const char *const bad[] = {
        "",       "..",        "1ms..",
        "..1ms",  "1ms..50us", "1ms..2ms..3ms",
        "1..2ms", "1ms...2ms", "111111111111111111111111111111111111111111111111111111111111111111111us..1ms"};
    char error[ALB_TEXT_ERROR_MAX];
    alb_time min = 1, max = 2;
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        assert_false(alb_text_parse_duration_range(bad[i], &min, &max, error, sizeof(error)));
        assert_int_equal(min, 1);
        assert_int_equal(max, 2);
    }
    assert_true(alb_text_parse_duration_range("50us..1ms", &min, &max, error, sizeof(error)));
    assert_int_equal(min, 50000);
    assert_int_equal(max, 1000000);
    assert_true(alb_text_parse_duration_range("0..0.5ms", &min, &max, error, sizeof(error)));
    assert_int_equal(min, 0);
    assert_int_equal(max, 500000);
    assert_true(alb_text_parse_duration_range("7us", &min, &max, error, sizeof(error)));
    assert_int_equal(min, 7000);
    assert_int_equal(max, 7000);
}

static void alb_text_parse_probability__percent_or_fraction(void **state)
{
    static const struct accepted good[] = {
        {"0", 0},
        {"0%", 0},
        {"1%", 10000000},
        {"0.1%", 1000000},
        {"0.01%", 100000},
        {"100%", 1000000000},
        {"1e-5", 10000},
        {"0.001", 1000000},
        {"1e-9", 1},
        {"0.0000001%", 1},
        {"0.999999999", 999999999},
        {"1e1%", 100000000},
        {"12.5%", 125000000},
    };
    static const char *const bad[] = {"",    "%",   "1",   "2",     "100",         "1.0",  "101%", "100.0000001%",
                                      "-1%", "1 %", "1%%", "1e-10", "0.00000001%", "1e9%", "half"};
    char error[ALB_TEXT_ERROR_MAX];
    for (size_t i = 0; i < ALB_COUNT(good); i++) {
        uint32_t value = 1234;
        assert_true(alb_text_parse_probability(good[i].text, &value, error, sizeof(error)));
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        uint32_t value = 1234;
        assert_false(alb_text_parse_probability(bad[i], &value, error, sizeof(error)));
        assert_int_equal(value, 1234);
        assert_complains(error, bad[i]);
    }
}

static void alb_text_parse_bytes__powers_of_1024(void **state)
{
    static const struct accepted good[] = {
        {"0", 0},           {"4096", 4096},  {"4096B", 4096},   {"64KiB", 65536},
        {"64K", 65536},     {"8M", 8 << 20}, {"8MiB", 8 << 20}, {"1.5GiB", 3ull << 29},
        {"2T", 2ull << 40}, {"0.5K", 512},   {"1e3", 1000},     {"16777215T", 16777215ull << 40},
    };
    static const char *const bad[] = {"", "K", "1KB", "1k", "1 K", "0.3K", "1.5", "16777216T", "-1", "1MB", "1GiBs"};
    char error[ALB_TEXT_ERROR_MAX];
    for (size_t i = 0; i < ALB_COUNT(good); i++) {
        uint64_t value = 1234;
        assert_true(alb_text_parse_bytes(good[i].text, &value, error, sizeof(error)));
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        uint64_t value = 1234;
        assert_false(alb_text_parse_bytes(bad[i], &value, error, sizeof(error)));
        assert_int_equal(value, 1234);
        assert_complains(error, bad[i]);
    }
}

static void alb_text_parse_rate__powers_of_1000(void **state)
{
    static const struct accepted good[] = {{"0b/s", 0},          {"100Gb/s", 100000000000}, {"2.5Gb/s", 2500000000},
                                           {"40Mb/s", 40000000}, {"9kb/s", 9000},           {"1.6Tb/s", 1600000000000}};
    static const char *const bad[] = {"", "100", "100G", "100GB/s", "100 Gb/s", "-1Gb/s", "0.1b/s", "99999999999Gb/s"};
    char error[ALB_TEXT_ERROR_MAX];
    uint64_t value = 77;
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        assert_false(alb_text_parse_rate(bad[i], &value, error, sizeof(error)));
        assert_complains(error, bad[i]);
        assert_int_equal(value, 77);
    }
    for (size_t i = 0; i < ALB_COUNT(good); i++) {
        assert_true(alb_text_parse_rate(good[i].text, &value, error, sizeof(error)));
        assert_int_equal(value, good[i].value);
    }
}

static void alb_text_parse__error_is_cut_to_its_buffer(void **state)
{
    char error[8];
    uint64_t value;
    assert_false(alb_text_parse_bytes("nonsense", &value, error, sizeof(error)));
    assert_string_equal(error, "\"nonsen");
    assert_false(alb_text_parse_bytes("nonsense", &value, NULL, 0));
}

static void alb_text_format__shortest_and_readable_again(void **state)
{
    char text[ALB_TEXT_QUANTITY_MAX];
    assert_string_equal(alb_text_format_duration(0, text), "0");
    assert_string_equal(alb_text_format_duration(1500000, text), "1500us");
    assert_string_equal(alb_text_format_duration(1000000, text), "1ms");
    assert_string_equal(alb_text_format_duration(2000000000, text), "2s");
    assert_string_equal(alb_text_format_duration(UINT64_MAX - 1, text), "18446744073709551614ns");
    assert_string_equal(alb_text_format_probability(0, text), "0");
    assert_string_equal(alb_text_format_probability(10000000, text), "1%");
    assert_string_equal(alb_text_format_probability(100000, text), "0.01%");
    assert_string_equal(alb_text_format_probability(1, text), "0.0000001%");
    assert_string_equal(alb_text_format_probability(1000000000, text), "100%");

    struct alb_prng prng;
    alb_prng_init(&prng, 4);
    for (int i = 0; i < 2000; i++) {
        alb_time duration = alb_prng_u64(&prng) >> alb_prng_below(&prng, 64), duration_again;
        uint32_t chance = (uint32_t)alb_prng_below(&prng, 1000000001), chance_again;
        assert_true(alb_text_parse_duration(alb_text_format_duration(duration, text), &duration_again, NULL, 0));
        assert_int_equal(duration_again, duration);
        assert_true(alb_text_parse_probability(alb_text_format_probability(chance, text), &chance_again, NULL, 0));
        assert_int_equal(chance_again, chance);
    }
}

static void alb_text_disarm__no_control_characters(void **state)
{
    static const char *const cases[][2] = {
        {"plain \xc3\xa4\xc2\xa0\xe2\x82\xac", "plain \xc3\xa4\xc2\xa0\xe2\x82\xac"},
        {"\x1b[2J\n\x7f", "?[2J??"},
        {"\xc2\x9b"
         "2J\xc2\x80\xc2\x9f",
         "??2J????"},
        {"cut \xc2", "cut \xc2"},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", cases[i][0]);
        assert_string_equal(alb_text_disarm(text), cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_text_character__of_utf8_only),
        cmocka_unit_test(alb_text_mark__at_the_beginning_only),
        cmocka_unit_test(alb_text_parse_u64__bounds_and_bases),
        cmocka_unit_test(alb_text_parse__says_what_is_too_large),
        cmocka_unit_test(alb_text_parse_duration__units),
        cmocka_unit_test(alb_text_parse_duration_range__one_or_two),
        cmocka_unit_test(alb_text_parse_probability__percent_or_fraction),
        cmocka_unit_test(alb_text_parse_bytes__powers_of_1024),
        cmocka_unit_test(alb_text_parse_rate__powers_of_1000),
        cmocka_unit_test(alb_text_parse__error_is_cut_to_its_buffer),
        cmocka_unit_test(alb_text_format__shortest_and_readable_again),
        cmocka_unit_test(alb_text_disarm__no_control_characters),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
