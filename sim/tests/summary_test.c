// SPDX-License-Identifier: BSD-2-Clause
// Summaries: counts, percentiles, the ideal of collectives, metrics by name, and the result file.
#include "base/tests/test.h"
#include "sim/ideal.h"
#include "sim/result.h"
#include "small_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct small_run small;
static struct alb_summary summary;

static double value(const char *name, const char *part)
{
    double found = -1;
    const struct alb_metric *metric = alb_metric_find(name);
    assert_non_null(metric);
    assert_true(alb_metric_value(&summary, metric, part, &found));
    return found;
}

static void end(void)
{
    alb_summary_fini(&summary);
    small_run_end(&small);
}

static void alb_summary_make__one_flow_alone(void **state)
{
    small_run_go(&small, "[network]\nhosts = 2\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 100000\n", false);
    alb_summary_make(&summary, &small.run);
    double fct = value("fct_p50", NULL);
    assert_true(value("flows", NULL) == 1 && value("done", NULL) == 1 && value("failed", NULL) == 0);
    assert_true(fct > 8000 + 4000 && fct < 8000 + 4000 + 3000); // ns: 8 us of payload, four links of 1 us
    assert_true(value("fct_max", NULL) == fct && value("fct_min", "flows") == fct);
    assert_true(value("slowdown_p99", NULL) >= 1 && value("slowdown_p99", NULL) < 1.1);
    assert_true(value("goodput", NULL) > 8e5 / (fct * 1e-9) * 0.99 &&
                value("goodput", NULL) <= 8e5 / (fct * 1e-9) * 1.01);
    assert_true(value("packet_hops", NULL) > 2 * 24);
    double nothing;
    assert_false(alb_metric_value(&summary, alb_metric_find("fct_max"), "none", &nothing));
    assert_false(alb_metric_value(&summary, alb_metric_find("packets"), "flows", &nothing));
    assert_null(alb_metric_find("fct"));
    end();
}

// Of what nothing has come of there is no completion time; 0 would meet every expectation.
static void alb_metric_value__is_none_of_what_is_not_done(void **state)
{
    char text[ALB_METRIC_TEXT_MAX];
    double none = 0;
    small_run_go(&small,
                 "[network]\nhosts = 2\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000\nretries = 1\n"
                 "[fault]\nkind = death\ncables = h1-*\n",
                 false);
    alb_summary_make(&summary, &small.run);
    assert_true(value("flows", NULL) == 1 && value("done", NULL) == 0 && value("goodput", NULL) == 0);
    assert_false(alb_metric_value(&summary, alb_metric_find("fct_max"), NULL, &none));
    assert_false(alb_metric_value(&summary, alb_metric_find("fct_min"), "flows", &none));
    assert_false(alb_metric_value(&summary, alb_metric_find("slowdown_max"), NULL, &none));
    assert_false(alb_metric_value(&summary, alb_metric_find("time"), NULL, &none));
    assert_string_equal(alb_metric_format(ALB_METRIC_NS, NAN, text), "none");
    end();
}

static void alb_metric_value__has_no_ideal_of_what_is_no_collective(void **state)
{
    double none = 0;
    small_run_go(&small,
                 "[network]\nhosts = 4\n[workload ring]\nkind = all-gather\nsize = 1M\n"
                 "[workload flows]\nkind = permutation\nsize = 1000\n",
                 false);
    alb_summary_make(&summary, &small.run);
    assert_true(value("ideal", "ring") > 0 && value("over_ideal", "ring") >= 1);
    assert_true(value("time", "flows") > 0 && value("time", NULL) > 0);
    assert_false(alb_metric_value(&summary, alb_metric_find("ideal"), "flows", &none));
    assert_false(alb_metric_value(&summary, alb_metric_find("over_ideal"), "flows", &none));
    assert_false(alb_metric_value(&summary, alb_metric_find("over_ideal"), NULL, &none)); // of all together
    end();
}

// What a link has carried belongs to the whole of a run, though its last message was done long before.
// Its receipts are posted before.
static void alb_summary_make__a_collective_takes_its_time_from_its_start(void **state)
{
    double times[2];
    for (uint32_t i = 0; i < 2; i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "[network]\nhosts = 4\n[workload ring]\nkind = all-gather\nsize = 1M\nstart = %ums\n", i);
        small_run_go(&small, text, false);
        alb_summary_make(&summary, &small.run);
        times[i] = value("time", "ring");
        assert_true(value("time", NULL) == times[i]);
        end();
    }
    assert_true(times[1] < 1.01 * times[0] && times[1] > 0.99 * times[0]);
}

static void alb_summary_make__links_of_a_run_that_was_cut(void **state)
{
    small_run_go(&small,
                 "[scenario]\nend = 100us\n[network]\nhosts = 2\nrate = 10Gb/s\n"
                 "[workload small]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000\n"
                 "[workload large]\nkind = pairs\nhosts = 1\nto = 0\nsize = 1000000\n",
                 false);
    alb_summary_make(&summary, &small.run);
    assert_true(value("done", "small") == 1 && value("done", "large") == 0);
    assert_true(value("simulated", NULL) == 1e5);
    assert_true(value("busiest", NULL) > 0.5 && value("busiest", NULL) <= 1);
    end();
}

// What is under way when a run is cut may arrive, and what has not begun may be sent.
static void alb_summary_make__unreliable_messages_of_a_run_that_was_cut(void **state)
{
    small_run_go(&small,
                 "[scenario]\nend = 100us\n[network]\nhosts = 2\nrate = 10Gb/s\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 100000\nmessages = 10\nunreliable = yes\n",
                 false);
    alb_summary_make(&summary, &small.run);
    assert_true(value("done", NULL) == 1);
    assert_true(value("failed", NULL) == 0);
    end();
}

static void alb_summary_make__percentiles_and_bins(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 2\n[workload small]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000\nmessages = 99\n"
                 "[workload large]\nkind = pairs\nhosts = 1\nto = 0\nsize = 1000000\n",
                 false);
    alb_summary_make(&summary, &small.run);
    assert_int_equal(summary.part_count, 2);
    assert_int_equal(summary.bin_count, 2);
    assert_int_equal(summary.bins[0].flows, 99);
    assert_int_equal(summary.bins[1].bytes_max, 1048576);
    char text[5000] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    alb_summary_print(&summary, file);
    fclose(file);
    assert_non_null(strstr(text, "  up to 4 KiB          99 flows, mean "));
    assert_non_null(strstr(text, "  up to 1 MiB           1 flows, mean "));
    assert_true(value("fct_p99", NULL) < 20000 &&
                value("fct_p999", NULL) > 80000); // ns: the hundredth is the large one
    assert_true(value("fct_p999", NULL) == value("fct_max", "large"));
    end();
}

static void alb_summary_make__counts_what_all_hosts_sent_again(void **state)
{
    double again = 0;
    small_run_go(&small,
                 "[network]\nhosts = 4\n[workload]\nkind = all-to-all\nsize = 100000\n"
                 "[fault]\nkind = loss\ncables = tier:0\nvalue = 1%\n",
                 false);
    alb_summary_make(&summary, &small.run);
    for (uint32_t host = 0; host < 4; host++)
        again += (double)alb_cluster_host_stats(small.run.cluster, host)->sum.counter[ALB_STAT_retransmitted_pkts];
    assert_true(again > 0 && value("retransmitted", NULL) == again);
    end();
}

// Two queue pairs that take turns in a cache of one, and in one of two.
static void alb_summary_make__counts_what_a_cache_held(void **state)
{
    for (uint32_t entries = 1; entries <= 2; entries++) {
        char text[300];
        snprintf(text, sizeof(text),
                 "[network]\nhosts = 2\n[host]\ntransport = rc\ncache_entries = %u\nmiss_penalty = 100ns\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000\nmessages = 100\nqueue_pairs = 2\n",
                 (unsigned)entries);
        small_run_go(&small, text, false);
        alb_summary_make(&summary, &small.run);
        assert_true(value("cache_hits", NULL) + value("cache_misses", NULL) > 300); // a write and its answer
        assert_true(entries == 2 ? value("cache_misses", NULL) == 4 : value("cache_misses", NULL) >= 200);
        end();
    }
}

// Also of messages of two packets, which take different ways.
static void alb_summary_make__nothing_is_faster_than_the_ideal(void **state)
{
    static const char *const kinds[] = {"transport = csa\n", "transport = csa\npath = spray\n", "transport = rc\n"};
    for (size_t i = 0; i < ALB_COUNT(kinds); i++) {
        char text[300];
        snprintf(text, sizeof(text),
                 "[network]\ntopology = fat-tree\nk = 4\n[host]\n%s[workload]\nkind = poisson\nload = 10%%\n"
                 "sizes = sizes/alistorage.txt\nflows = 2000\n",
                 kinds[i]);
        small_run_go(&small, text, false);
        alb_summary_make(&summary, &small.run);
        assert_true(value("done", NULL) == 2000 && summary.all.slowdown.min >= 1);
        end();
    }
}

// Packets of UC have room for a question beside their payload, and the engine rounds them down.
static void alb_summary_make__packets_of_the_ideal_are_no_larger_than_real_ones(void **state)
{
    static const uint32_t payloads[] = {512, 4192, 4195, 4999};
    for (size_t i = 0; i < ALB_COUNT(payloads); i++) {
        char text[400];
        snprintf(text, sizeof(text),
                 "[network]\ntopology = leaf-spine\nleaves = 2\nspines = 1\nhosts = 2\nrate = 25Gb/s\ndelay = 0\n"
                 "core_rate = 10Gb/s\ncore_delay = 0\n[switch]\nlatency = 0\n[host]\nlatency = 0\npayload = %u\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 3\nsize = 100000\nop = send\nunreliable = yes\n",
                 (unsigned)payloads[i]);
        small_run_go(&small, text, false);
        alb_summary_make(&summary, &small.run);
        assert_true(value("done", NULL) == 1 && summary.all.slowdown.min >= 1);
        end();
    }
}

// Whatever comes first in the file, of two cables side by side and of two ways over other switches.
static void alb_summary_make__the_ideal_takes_the_fastest_of_the_shortest_ways(void **state)
{
    static const char hosts[] = "hosts 2\nswitch a\nswitch b\nswitch c\nswitch d\ncable h0 a 10Gb/s 1us\n"
                                "cable h1 b 10Gb/s 1us\n";
    static const char *const ways[][2] = {
        {"cable a b 1Gb/s 100us\n", "cable a b 10Gb/s 1us\n"},
        {"cable a c 1Gb/s 100us\ncable c b 10Gb/s 1us\n", "cable a d 10Gb/s 1us\ncable d b 10Gb/s 1us\n"}};
    for (size_t i = 0; i < 2 * ALB_COUNT(ways); i++) {
        char map[300];
        snprintf(map, sizeof(map), "%s%s%s", hosts, ways[i / 2][i % 2], ways[i / 2][1 - i % 2]);
        small_run_go_on(&small,
                        "[network]\ntopology = file\nfile = map\n[workload]\nkind = pairs\nhosts = 0\nto = 1\n"
                        "size = 10000\nmessages = 100\n[workload small]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1\n"
                        "start = 100ms\nmessages = 50\n",
                        map);
        alb_summary_make(&summary, &small.run);
        assert_true(value("done", NULL) == 150);
        assert_in_range(summary.all.slowdown.min * 1000, 1000, 1300);
        assert_in_range(summary.parts[1].slowdown.min * 1000, 1000, 1300);
        end();
    }
}

// Two cables that together are slower than the hosts, and differ.
static void alb_summary_make__the_ideal_shares_ways_that_differ(void **state)
{
    char map[] = "hosts 2\nswitch a\nswitch b\ncable h0 a 100Gb/s 1us\ncable h1 b 100Gb/s 1us\n"
                 "cable a b 10Gb/s 1us\ncable a b 10Gb/s 2us\n";
    small_run_go_on(&small,
                    "[network]\ntopology = file\nfile = map\n"
                    "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000000\n",
                    map);
    alb_summary_make(&summary, &small.run);
    assert_in_range(alb_run_ideal(&small.run, 0), ALB_SIM_US(400), ALB_SIM_US(430));
    assert_true(summary.all.slowdown.min >= 1);
    end();
}

// A chain of a hundred switches.
static void alb_summary_make__the_ideal_of_a_long_way(void **state)
{
    char map[8000] = "hosts 2\nswitch s0\ncable h0 s0 10Gb/s 1us\n";
    size_t length = strlen(map);
    for (int i = 1; i < 100; i++)
        length +=
            (size_t)snprintf(map + length, sizeof(map) - length, "switch s%d\ncable s%d s%d 10Gb/s 1us\n", i, i - 1, i);
    snprintf(map + length, sizeof(map) - length, "cable h1 s99 10Gb/s 1us\n");
    small_run_go_on(&small,
                    "[network]\ntopology = file\nfile = map\n"
                    "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 100000\n",
                    map);
    alb_summary_make(&summary, &small.run);
    assert_in_range(summary.all.slowdown.max * 1000, 1000, 1100);
    end();
}

// A ring of n hosts: 2 (n - 1) steps, each a message of a part there; no schedule gets below that.
static void alb_ideal_work__of_a_ring(void **state)
{
    small_run_go(&small, "[network]\nhosts = 4\n[workload]\nkind = all-reduce-ring\nsize = 400000\n", false);
    alb_summary_make(&summary, &small.run);
    alb_sim_time step = alb_cluster_ideal_time(small.run.cluster, 0, 1, 100000, 4116, 142);
    alb_sim_time ideal = alb_ideal_work(&small.run, 0);
    assert_in_range(ideal, 6 * step * 99 / 100, 6 * step * 101 / 100);
    assert_true(value("over_ideal", "flows") >= 1 && value("over_ideal", "flows") < 1.5);
    end();
}

// Between two sites a step takes as long as its acknowledgement, which is no part of either.
static void alb_ideal_work__is_met_on_an_idle_network(void **state)
{
    static const char *const kinds[] = {"all-gather", "all-reduce-ring", "reduce-scatter", "all-to-all-steps"};
    for (size_t i = 0; i < ALB_COUNT(kinds); i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "[network]\ntopology = two-sites\nhosts = 2\n[host]\ntransport = rc\n[workload]\nkind = %s\n"
                 "size = 1000\n",
                 kinds[i]);
        small_run_go(&small, text, false);
        alb_summary_make(&summary, &small.run);
        assert_true(value("over_ideal", "flows") >= 1 && value("over_ideal", "flows") < 1.001);
        end();
    }
}

// Three slow hosts, whose links are busy for as long as it takes, and a fast one.
static void alb_ideal_work__of_hosts_with_different_links(void **state)
{
    char map[] = "hosts 4\nswitch s\ncable h0 s 10Gb/s 1us\ncable h1 s 10Gb/s 1us\ncable h2 s 10Gb/s 1us\n"
                 "cable s h3 100Gb/s 1us\n";
    small_run_go_on(&small,
                    "[network]\ntopology = file\nfile = map\n[workload]\nkind = all-reduce-tree\n"
                    "size = 4M\npieces = 64\n",
                    map);
    alb_summary_make(&summary, &small.run);
    assert_true(value("over_ideal", "flows") >= 1 && value("over_ideal", "flows") < 1.5);
    end();
}

static void alb_metric_format__scales(void **state)
{
    static const struct {
        enum alb_metric_unit unit;
        double value;
        const char *text;
    } cases[] = {{ALB_METRIC_NS, 195300, "195.3 us"},
                 {ALB_METRIC_NS, 2.5, "2.5 ns"},
                 {ALB_METRIC_NS, 1e9, "1 s"},
                 {ALB_METRIC_BITS_PER_S, 9.21e10, "92.1 Gb/s"},
                 {ALB_METRIC_BYTES, 1572864, "1.5 MiB"},
                 {ALB_METRIC_NUMBER, 3, "3"},
                 {ALB_METRIC_NUMBER, 0.25, "0.25"}};
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        char text[ALB_METRIC_TEXT_MAX];
        assert_string_equal(alb_metric_format(cases[i].unit, cases[i].value, text), cases[i].text);
    }
}

static uint32_t count(const char *text, const char *word)
{
    uint32_t found = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        found++;
    return found;
}

static void alb_result_write__a_line_each(void **state)
{
    char *text;
    size_t size;
    small_run_go(&small, "[network]\nhosts = 3\n[workload a]\nkind = all-gather\nsize = 30000\n", true);
    alb_summary_make(&summary, &small.run);
    FILE *file = open_memstream(&text, &size);
    const struct alb_result_of result = {.scenario = "x\"y", .variant = "v", .run = &small.run, .summary = &summary};
    assert_int_equal(alb_result_write(file, &result), 0);
    fclose(file);
    assert_int_equal(count(text, "\n"), 1 + 6 + 6 + 1 + 3 + 2 + 1);
    assert_int_equal(count(text, "{\"record\":\"flow\""), 6);
    assert_int_equal(count(text, "{\"record\":\"link\""), 6);
    assert_int_equal(count(text, "{\"record\":\"host\""), 3);
    assert_non_null(strstr(text, "\"scenario\":\"x\\\"y\",\"variant\":\"v\",\"seed\":1,"));
    assert_non_null(strstr(text, "\"from\":\"h0\",\"to\":\"s0\",\"tier\":0,\"bits_per_s\":100000000000,"));
    assert_int_equal(count(text, "\"state\":\"done\""), 6);
    free(text);
    end();
}

// By UC a send is done when its message has left; whether that has come is what counts.
static void alb_result_write__messages_under_way_are_open(void **state)
{
    char *text;
    size_t size;
    small_run_go(&small,
                 "[scenario]\nend = 2us\n[network]\nhosts = 2\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000\nmessages = 4\ndepth = 4\n"
                 "unreliable = yes\n",
                 false);
    assert_true(small.run.times[0].done < ALB_SIM_US(2));
    alb_summary_make(&summary, &small.run);
    FILE *file = open_memstream(&text, &size);
    const struct alb_result_of result = {.scenario = "x", .run = &small.run, .summary = &summary};
    assert_int_equal(alb_result_write(file, &result), 0);
    fclose(file);
    assert_int_equal(count(text, "\"state\":\"done\""), 0);
    assert_int_equal(count(text, "\"state\":\"open\""), 4);
    free(text);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_metric_value__is_none_of_what_is_not_done),
        cmocka_unit_test(alb_metric_value__has_no_ideal_of_what_is_no_collective),
        cmocka_unit_test(alb_summary_make__one_flow_alone),
        cmocka_unit_test(alb_summary_make__a_collective_takes_its_time_from_its_start),
        cmocka_unit_test(alb_summary_make__links_of_a_run_that_was_cut),
        cmocka_unit_test(alb_summary_make__unreliable_messages_of_a_run_that_was_cut),
        cmocka_unit_test(alb_summary_make__percentiles_and_bins),
        cmocka_unit_test(alb_summary_make__counts_what_all_hosts_sent_again),
        cmocka_unit_test(alb_summary_make__counts_what_a_cache_held),
        cmocka_unit_test(alb_summary_make__nothing_is_faster_than_the_ideal),
        cmocka_unit_test(alb_summary_make__packets_of_the_ideal_are_no_larger_than_real_ones),
        cmocka_unit_test(alb_summary_make__the_ideal_takes_the_fastest_of_the_shortest_ways),
        cmocka_unit_test(alb_summary_make__the_ideal_shares_ways_that_differ),
        cmocka_unit_test(alb_summary_make__the_ideal_of_a_long_way),
        cmocka_unit_test(alb_ideal_work__of_a_ring),
        cmocka_unit_test(alb_ideal_work__is_met_on_an_idle_network),
        cmocka_unit_test(alb_ideal_work__of_hosts_with_different_links),
        cmocka_unit_test(alb_metric_format__scales),
        cmocka_unit_test(alb_result_write__a_line_each),
        cmocka_unit_test(alb_result_write__messages_under_way_are_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
