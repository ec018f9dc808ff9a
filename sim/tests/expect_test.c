// SPDX-License-Identifier: BSD-2-Clause
// Expectations: whose figure, which range, and what is said of those that make no sense.
#include "base/tests/test.h"
#include "sim/expect.h"

#include <math.h>
#include <string.h>

static bool parse(struct alb_expectation_of *expectation, const char *key, const char *value,
                  struct alb_complaint *complaint)
{
    static struct alb_document_entry entry;
    entry = (struct alb_document_entry){.file = "f", .line = 3};
    strcpy(entry.key, key);
    strcpy(entry.value, value);
    *complaint = (struct alb_complaint){0};
    return alb_expect_parse(expectation, &entry, complaint);
}

static void alb_expect_parse__whose_figure(void **state)
{
    static const struct {
        const char *key, *variant, *by, *part, *metric;
    } cases[] = {
        {"fct_max", "", "", "", "fct_max"},       {"bulk.fct_max", "", "", "bulk", "fct_max"},
        {"a:goodput", "a", "", "", "goodput"},    {"a:bulk.goodput", "a", "", "bulk", "goodput"},
        {"a/b.goodput", "a", "b", "", "goodput"}, {"a/b.bulk.goodput", "a", "b", "bulk", "goodput"},
        {"a/b.packets", "a", "b", "", "packets"},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        struct alb_expectation_of expectation;
        struct alb_complaint complaint;
        if (!parse(&expectation, cases[i].key, "1", &complaint))
            fail_msg("%s", complaint.text);
        assert_string_equal(expectation.variant, cases[i].variant);
        assert_string_equal(expectation.by, cases[i].by);
        assert_string_equal(expectation.part, cases[i].part);
        assert_string_equal(expectation.metric->name, cases[i].metric);
    }
}

static void alb_expect_parse__ranges(void **state)
{
    static const struct {
        const char *key, *value;
        double low, high;
    } cases[] = {{"flows", "7", 7, 7},
                 {"fct_max", "1us..2.5us", 1000, 2500},
                 {"goodput", "<=90Gb/s", -INFINITY, 9e10},
                 {"buffer_peak", ">=1MiB", 1048576, INFINITY},
                 {"retransmitted_part", "5%..10%", 0.05, 0.1},
                 {"a/b.goodput", "90%..110%", 0.9, 1.1},
                 {"flows", "0..0", 0, 0}};
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        struct alb_expectation_of expectation;
        struct alb_complaint complaint;
        assert_true(parse(&expectation, cases[i].key, cases[i].value, &complaint));
        assert_true(fabs(expectation.low - cases[i].low) < 1e-9 || expectation.low == cases[i].low);
        assert_true(fabs(expectation.high - cases[i].high) < 1e-9 || expectation.high == cases[i].high);
    }
}

static void alb_expect_parse__says_what_was_expected(void **state)
{
    static const char *const keys[] = {"fct", "bulk.packets", "a:fct", "a/b", "a:b/c.goodput", ".goodput", ":goodput"};
    static const char *const values[] = {"", "x", "1..", "..2", "2..1", "1 us", "1parsec", "<=", "-1", "1..2..3"};
    struct alb_expectation_of expectation;
    struct alb_complaint complaint;
    for (size_t i = 0; i < ALB_COUNT(keys); i++) {
        if (parse(&expectation, keys[i], "1", &complaint))
            fail_msg("\"%s\" was taken", keys[i]);
        assert_memory_equal(complaint.text, "f:3: ", 5);
        assert_non_null(strstr(complaint.text, "expected METRIC"));
    }
    for (size_t i = 0; i < ALB_COUNT(values); i++) {
        if (parse(&expectation, "flows", values[i], &complaint))
            fail_msg("\"%s\" was taken", values[i]);
        assert_non_null(strstr(complaint.text, "expected LOW..HIGH"));
    }
}

static void alb_expect_parse__units_are_the_figures(void **state)
{
    static const char *const cases[][2] = {
        {"goodput", ">=60ms"}, {"fct_max", "<=4Gb/s"}, {"retransmitted_part", "<=5GiB"},
        {"flows", "1us"},      {"buffer_peak", "5%"},  {"a/b.goodput", ">=1Gb/s"},
        {"goodput", "1..2us"}};
    struct alb_expectation_of expectation;
    struct alb_complaint complaint;
    for (size_t i = 0; i < ALB_COUNT(cases); i++)
        if (parse(&expectation, cases[i][0], cases[i][1], &complaint))
            fail_msg("\"%s = %s\" was taken", cases[i][0], cases[i][1]);
    assert_false(parse(&expectation, "goodput", ">=60ms", &complaint));
    assert_string_equal(complaint.text,
                        "f:3: \">=60ms\" is no range of it; expected LOW..HIGH, <=HIGH or >=LOW, numbers "
                        "with b/s, kb/s, Mb/s, Gb/s or Tb/s");
}

static void alb_expect_check__names_must_be_there(void **state)
{
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"[workload]\nk = 1\n[expect]\nflows.done = 1\n", ""},
        {"[workload a]\nk = 1\n[variant v]\nx.y = 1\n[expect]\nv:a.done = 1\n", ""},
        {"[expect]\na.done = 1\n", "f:2: there is no [workload a]; expected one of the scenario"},
        {"[expect]\nv:done = 1\n", "f:2: there is no [variant v]; expected one of the scenario"},
        {"[variant v]\nworkload.b.kind = incast\n[variant w]\nworkload.b.size = 1\n[expect]\nv:b.done = 1\n"
         "v/w.b.done = 1\nb.done = 1\n",
         ""},
        {"[variant v]\nworkload.kind = incast\n[expect]\nv:flows.done = 1\n", ""},
        {"[variant v]\nworkload.b.kind = incast\n[variant w]\n[expect]\nb.done = 1\n",
         "f:5: there is no [workload b] in [variant w]; expected one of the scenario"},
        {"[variant v]\nworkload.bb.kind = incast\n[expect]\nv:b.done = 1\n",
         "f:4: there is no [workload b] in [variant v]; expected one of the scenario"},
        {"[variant v]\nworkload.b.kind = incast\n[variant w]\n[expect]\nv/w.b.done = 1\n",
         "f:5: there is no [workload b] in [variant w]; expected one of the scenario"},
        {"[variant v]\n[expect]\nv/w.done = 1\n", "f:3: there is no [variant w]; expected one of the scenario"},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        struct alb_document document;
        struct alb_complaint complaint = {0};
        assert_true(alb_document_parse(&document, "f", cases[i].text, strlen(cases[i].text), &complaint));
        assert_int_equal(alb_expect_check(&document, &complaint), cases[i].complaint[0] == '\0');
        assert_string_equal(complaint.text, cases[i].complaint);
        alb_document_fini(&document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_expect_parse__whose_figure),
        cmocka_unit_test(alb_expect_parse__ranges),
        cmocka_unit_test(alb_expect_parse__says_what_was_expected),
        cmocka_unit_test(alb_expect_parse__units_are_the_figures),
        cmocka_unit_test(alb_expect_check__names_must_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
