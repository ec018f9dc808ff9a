// SPDX-License-Identifier: BSD-2-Clause
// Distributions of sizes and of gaps: what is drawn has the distribution that it should have.
#include "base/tests/test.h"
#include "sim/sizes.h"

#include <stdio.h>
#include <string.h>

enum {
    DRAWS = 200000,
};

static bool parse(struct alb_sizes *sizes, const char *text, struct alb_complaint *complaint)
{
    return alb_sizes_parse(sizes, "f", text, strlen(text), complaint);
}

static void alb_sizes_parse__points(void **state)
{
    struct alb_sizes sizes;
    struct alb_complaint complaint = {0};
    assert_true(parse(&sizes, "# sizes\n0 0\n\n 1000\t22.93 # more\r\n2000 100", &complaint));
    assert_int_equal(sizes.count, 3);
    assert_int_equal(sizes.points[1].bytes, 1000);
    assert_int_equal(sizes.points[1].per_billion, 229300000);
    assert_int_equal(alb_sizes_mean(&sizes), (1000 * 2293 + 3000 * 7707) / 20000);
}

static void alb_sizes_parse__says_where_and_what_was_expected(void **state)
{
    static const struct {
        const char *text, *complaint;
    } bad[] = {
        {"", "f: expected the last point at 100 percent and more than 0 bytes"},
        {"0 0\n5 50", "f:2: expected the last point at 100 percent and more than 0 bytes"},
        {"0 0\n0 100", "f:2: expected the last point at 100 percent and more than 0 bytes"},
        {"0 1", "f:1: expected the first point at 0 percent"},
        {"0 0\n7 10\n6 100", "f:3: expected more bytes and a larger percentage than in the point before"},
        {"0 0\n7 10\n8 10", "f:3: expected more bytes and a larger percentage than in the point before"},
        {"0 0\n7", "f:2: expected two numbers: bytes, and percent of flows not larger"},
        {"0 0 0", "f:1: expected two numbers: bytes, and percent of flows not larger"},
        {"x 0", "f:1: \"x\" is not a whole number from 0 to 4294967295"},
        {"0 0\n1 100.5", "f:2: \"100.5%\" is not a probability: 0% to 100%, or a fraction below 1 such as 1e-5, in "
                         "whole parts per billion"},
    };
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        struct alb_sizes sizes;
        struct alb_complaint complaint = {0};
        assert_false(parse(&sizes, bad[i].text, &complaint));
        assert_string_equal(complaint.text, bad[i].complaint);
    }
}

static void alb_sizes_draw__has_the_parts_that_the_points_say(void **state)
{
    struct alb_sizes sizes;
    struct alb_complaint complaint = {0};
    struct alb_prng prng;
    uint32_t up_to_10 = 0, up_to_505 = 0, ones = 0;
    uint64_t sum = 0;
    assert_true(parse(&sizes, "0 0\n10 25\n1000 100", &complaint));
    alb_prng_init(&prng, 1);
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint64_t bytes = alb_sizes_draw(&sizes, &prng);
        assert_in_range(bytes, 1, 1000);
        ones += bytes == 1;
        up_to_10 += bytes < 10;
        up_to_505 += bytes < 505;
        sum += bytes;
    }
    assert_in_range(up_to_10, DRAWS * 24 / 100, DRAWS * 26 / 100);
    assert_in_range(up_to_505, DRAWS * 61 / 100, DRAWS * 64 / 100);
    assert_in_range(ones, DRAWS * 4 / 100, DRAWS * 6 / 100); // what would be 0 is 1
    assert_in_range(sum / DRAWS, alb_sizes_mean(&sizes) - 5, alb_sizes_mean(&sizes) + 5);
}

static void alb_sizes_draw__data_files(void **state)
{
    static const struct {
        const char *file;
        uint64_t mean;
    } files[] = {{"websearch", 1711250}, {"alistorage", 40869}, {"fbhadoop", 120420}};
    for (size_t i = 0; i < ALB_COUNT(files); i++) {
        char name[64], text[4096];
        struct alb_sizes sizes;
        struct alb_complaint complaint = {0};
        snprintf(name, sizeof(name), "scenarios/sizes/%s.txt", files[i].file);
        FILE *file = fopen(name, "r");
        assert_non_null(file);
        size_t length = fread(text, 1, sizeof(text), file);
        fclose(file);
        if (!alb_sizes_parse(&sizes, name, text, length, &complaint))
            fail_msg("%s", complaint.text);
        assert_int_equal(alb_sizes_mean(&sizes), files[i].mean);
    }
}

static void alb_sizes_gap__is_exponential(void **state)
{
    struct alb_prng prng;
    const alb_sim_time mean = ALB_SIM_US(10);
    alb_sim_time sum = 0;
    uint32_t beyond_mean = 0, beyond_thrice = 0;
    alb_prng_init(&prng, 7);
    for (uint32_t i = 0; i < DRAWS; i++) {
        alb_sim_time gap = alb_sizes_gap(mean, &prng);
        sum += gap;
        beyond_mean += gap > mean;
        beyond_thrice += gap > 3 * mean;
    }
    assert_in_range(sum / DRAWS, mean - mean / 100, mean + mean / 100);
    assert_in_range(beyond_mean, DRAWS * 363 / 1000, DRAWS * 373 / 1000); // 1/e
    assert_in_range(beyond_thrice, DRAWS * 47 / 1000, DRAWS * 53 / 1000); // 1/e^3
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_sizes_parse__points),
        cmocka_unit_test(alb_sizes_parse__says_where_and_what_was_expected),
        cmocka_unit_test(alb_sizes_draw__has_the_parts_that_the_points_say),
        cmocka_unit_test(alb_sizes_draw__data_files),
        cmocka_unit_test(alb_sizes_gap__is_exponential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
