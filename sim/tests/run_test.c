// SPDX-License-Identifier: BSD-2-Clause
// Runs of scenarios: everything that was to be done is done, in an order that the edges allow, and again the same.
#include "base/tests/test.h"
#include "sim/cluster_impl.h"
#include "sim/draw.h"
#include "sim/network.h"
#include "small_run.h"

#include <string.h>

static struct small_run small;

static void assert_order(const struct alb_run *run)
{
    for (uint32_t i = 0; i < run->schedule.task_count; i++) {
        const struct alb_task_times *times = &run->times[i];
        assert_false(alb_run_task_failed(run, i));
        assert_true(times->begun <= times->done && times->done != ALB_SIM_NEVER);
        for (uint32_t e = run->schedule.first_edge[i]; e < run->schedule.first_edge[i + 1]; e++) {
            const struct alb_task_edge *edge = &run->schedule.edges[e];
            assert_true((edge->at_start ? times->begun : times->done) <= run->times[edge->to].begun);
        }
    }
}

static void alb_run_go__does_every_workload(void **state)
{
    static const char *const workloads[] = {
        "kind = permutation\nsize = 100000\nmessages = 5\ndepth = 2\nqueue_pairs = 2\n",
        "kind = incast\nto = 3\nsize = 10000\nop = send\n",
        "kind = all-to-all\nsize = 20000\nop = read\n",
        "kind = poisson\nload = 30%\nsize = 5000\nflows = 200\n",
        "kind = all-reduce-ring\nsize = 80000\nrounds = 2\nthink = 3us\n",
        "kind = all-reduce-tree\nsize = 80000\npieces = 4\n",
        "kind = all-gather\nsize = 80000\n",
        "kind = reduce-scatter\nsize = 80000\nop = send\n",
        "kind = all-to-all-steps\nsize = 80000\n",
        "kind = goal\nfile = traces/broadcast.goal\n",
    };
    static const char *const hosts[] = {"[host]\ntransport = csa\n", "[host]\ntransport = rc\n"};
    for (size_t h = 0; h < ALB_COUNT(hosts); h++) {
        for (size_t i = 0; i < ALB_COUNT(workloads); i++) {
            char text[500];
            snprintf(text, sizeof(text), "[network]\nhosts = 8\n%s[workload]\n%s", hosts[h], workloads[i]);
            small_run_go(&small, text, false);
            if (small.run.end != ALB_RUN_DONE)
                fail_msg("%s%s: ended as %d", hosts[h], workloads[i], small.run.end);
            assert_int_equal(small.run.tasks_failed, 0);
            assert_int_equal(small.run.bytes_done, small.run.bytes);
            assert_int_equal(small.run.expectations_refused, 0);
            assert_order(&small.run);
            small_run_end(&small);
        }
    }
}

static uint64_t dcqcn_rate_max(const char *host)
{
    char text[300];
    snprintf(text, sizeof(text),
             "[network]\nhosts = 2\nrate = 200Gb/s\n[host]\ncongestion = dcqcn\n%s[workload]\nkind = permutation\n"
             "size = 1000\n",
             host);
    small_run_begin(&small, text);
    uint64_t rate = alb_engine_configuration(small.run.cluster->hosts[1].host.engine)->dcqcn.rate_max_bytes_per_s;
    small_run_end(&small);
    return rate;
}

static void alb_run_init__dcqcn_begins_with_the_rate_of_the_link(void **state)
{
    assert_int_equal(dcqcn_rate_max(""), 25000000000);
    assert_int_equal(dcqcn_rate_max("dcqcn_rate_max = 40Gb/s\n"), 5000000000);
    assert_int_equal(dcqcn_rate_max("[host 1]\ndcqcn_rate_max = 10Gb/s\n"), 1250000000);
    assert_int_equal(dcqcn_rate_max("dcqcn_hyper = 300Gb/s\n"), 37500000000);
    assert_int_equal(dcqcn_rate_max("[host 1]\ncongestion = dcqcn:hyper=300Gb/s\n"), 37500000000);
    assert_int_equal(dcqcn_rate_max("[host 1]\ncongestion = dcqcn:rate_max=40Gb/s\n"), 5000000000);
}

static void alb_run_init__uc_is_as_fast_as_the_link(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 2\nrate = 400Gb/s\n[switch]\nport_buffer = 0\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 100000000\nunreliable = yes\n",
                 false);
    assert_in_range(alb_run_time(&small.run), ALB_SIM_US(2000), ALB_SIM_US(2200));
    small_run_end(&small);
}

// Whichever host's cable a file of a topology names first.
static void alb_run_init__load_is_of_the_first_host(void **state)
{
    alb_sim_time last[2];
    for (size_t i = 0; i < 2; i++) {
        char map[] = "hosts 2\nswitch s\ncable h1 s 10Gb/s 1us\ncable h0 s 100Gb/s 1us\n";
        char same[] = "hosts 2\nswitch s\ncable h0 s 100Gb/s 1us\ncable h1 s 10Gb/s 1us\n";
        small_run_go_on(&small,
                        "[network]\ntopology = file\nfile = map\n[workload]\nkind = poisson\nsize = 1000\n"
                        "load = 1%\nflows = 20\n",
                        i ? map : same);
        last[i] = small.run.schedule.tasks[19].at;
        small_run_end(&small);
    }
    assert_int_equal(last[0], last[1]);
}

// Also where those of other pairs stand between them.
static void alb_run_init__messages_of_a_pair_take_its_queue_pairs_in_turn(void **state)
{
    uint32_t turns[2][2] = {{0}}, most = 0;
    small_run_go(&small,
                 "[network]\nhosts = 2\n[workload]\nkind = poisson\nload = 30%\nsize = 5000\nflows = 20\n"
                 "queue_pairs = 4\n",
                 false);
    for (uint32_t i = 0; i < small.run.schedule.task_count; i++) {
        const struct alb_task *task = &small.run.schedule.tasks[i];
        if (task->kind != ALB_TASK_SEND)
            continue;
        uint32_t index = small.run.channels[small.run.channel_of[i]].index;
        assert_int_equal(index, turns[task->rank][task->peer]++ % 4);
        most = ALB_MAX(most, index);
    }
    assert_int_equal(most, 3);
    small_run_end(&small);
}

static void alb_run_go__is_the_same_twice(void **state)
{
    static const char text[] = "[network]\ntopology = fat-tree\n[workload]\nkind = permutation\nsize = 300000\n"
                               "[fault]\nkind = loss\ncables = tier:1\nvalue = 1%\n";
    uint64_t hashes[2];
    for (uint32_t i = 0; i < 2; i++) {
        small_run_go(&small, text, i == 1); // what is watched does not change it
        assert_int_equal(small.run.end, ALB_RUN_DONE);
        hashes[i] = alb_cluster_trace_hash(small.run.cluster);
        small_run_end(&small);
    }
    assert_int_equal(hashes[0], hashes[1]);
}

// Runs it in that order. drawn: where its data files are, or NULL.
static void go_in_order(const char *text, struct alb_drawn *drawn, enum alb_cluster_order order, bool has_heat)
{
    struct alb_scenario_data data[2];
    const struct alb_run_options options = {.until = ALB_SIM_NEVER, .events_max = 50000000, .has_heat = has_heat};
    struct alb_complaint complaint = {0};
    assert_true(alb_document_parse(&small.document, "f", text, strlen(text), &complaint));
    bool is_good = alb_scenario_read(&small.scenario, &small.document, NULL, "scenarios", &complaint);
    small.scenario.order = order;
    if (drawn) {
        small_run_name(data, drawn);
        small.scenario.data = data;
        small.scenario.data_count = ALB_COUNT(data);
    }
    if (!is_good || !alb_run_init(&small.run, &small.scenario, &complaint))
        fail_msg("%s", complaint.text);
    alb_run_go(&small.run, &options);
}

// All that a run tells of: when tasks began and ended, what was sent when, what each link and host has counted.
static uint64_t hash_of_all(void)
{
    const struct alb_run *run = &small.run;
    uint64_t hash = alb_cluster_trace_hash(run->cluster);
    struct alb_cluster_totals totals;
    alb_cluster_totals(run->cluster, &totals);
    totals.bytes = 0; // how many packets there have been at once depends on the order
    alb_sim_note(&hash, alb_cluster_now(run->cluster), run->ended_at, &totals, sizeof(totals));
    alb_sim_note(&hash, run->end, 0, run->times, run->schedule.task_count * (uint32_t)sizeof(*run->times));
    for (uint32_t i = 0; i < 2 * run->topology.cable_count; i++) {
        struct alb_cluster_link_stats stats;
        alb_cluster_link_stats(run->cluster, i, &stats);
        alb_sim_note(&hash, i, 0, &stats, sizeof(stats));
    }
    for (uint32_t i = 0; i < run->topology.host_count; i++)
        alb_sim_note(&hash, i, 0, alb_cluster_host_stats(run->cluster, i), sizeof(struct alb_device_stats));
    return hash;
}

static void assert_same_in_both_orders(const char *text, struct alb_drawn *drawn)
{
    uint64_t hashes[2];
    for (uint32_t i = 0; i < 2; i++) {
        go_in_order(text, drawn, i ? ALB_CLUSTER_WINDOWS_BY_TIME : ALB_CLUSTER_BY_HOST, false);
        hashes[i] = hash_of_all();
        small_run_end(&small);
    }
    if (hashes[0] != hashes[1])
        fail_msg("not the same host by host:\n%s", text);
}

static void alb_run_go__is_the_same_host_by_host(void **state)
{
    static const char *const texts[] = {
        "[network]\ntopology = fat-tree\n[switch]\nspread = spray\nflow_control = pfc\nbuffer = 1M\n"
        "[workload]\nkind = incast\nto = 3\nsize = 100000\n",
        "[network]\ntopology = fat-tree\n[switch]\nmark_min = 20000\nmark_max = 100000\nmark_chance = 30%\n[host]\n"
        "congestion = dcqcn\n[workload]\nkind = permutation\nsize = 300000\n",
        "[network]\nhosts = 8\n[workload]\nkind = all-reduce-ring\nsize = 80000\nrounds = 2\nthink = 3us\n"
        "[workload t]\nkind = goal\nfile = traces/broadcast.goal\n",
        "[scenario]\nend = 77us\n[network]\ntopology = leaf-spine\n[workload]\nkind = poisson\nload = 60%\n"
        "size = 50000\nflows = 500\n[fault]\nkind = death\ncables = tier:1:1\nat = 20us\nuntil = 50us\nvalue = 5us\n",
    };
    for (size_t i = 0; i < ALB_COUNT(texts); i++)
        assert_same_in_both_orders(texts[i], NULL);
}

static void alb_run_go__is_the_same_host_by_host_whatever_is_drawn(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        static struct alb_drawn drawn;
        alb_draw_scenario(seed, &drawn);
        memcpy(strstr(drawn.text, "real_bytes = yes"), "real_bytes = no ", 16);
        assert_same_in_both_orders(drawn.text, &drawn);
    }
}

// A column of the heat map divides a window; the run ends where that would have ended.
static void alb_run_go__is_the_same_watched_host_by_host(void **state)
{
    static const enum alb_cluster_order orders[] = {ALB_CLUSTER_BY_HOST, ALB_CLUSTER_WINDOWS_BY_TIME};
    static const char *const networks[] = {"topology = fat-tree\n", "topology = file\nfile = topologies/ring\n"};
    for (uint32_t i = 0; i < 2 * ALB_COUNT(networks) * 20; i++) {
        char text[300];
        uint64_t hashes[2];
        snprintf(text, sizeof(text),
                 "[scenario]\ninterval = 700ns\n[network]\n%s[workload]\nkind = permutation\nsize = %u\n",
                 networks[i / 2 % 2], 1000 + 1700 * (i / 4));
        for (uint32_t watched = 0; watched < 2; watched++) {
            go_in_order(text, NULL, orders[i % 2], watched);
            assert_int_equal(small.run.end, ALB_RUN_DONE);
            hashes[watched] = alb_cluster_trace_hash(small.run.cluster) ^ alb_cluster_now(small.run.cluster);
            small_run_end(&small);
        }
        assert_int_equal(hashes[0], hashes[1]);
    }
}

// A pause that the slow link still carries when it is repaired, and the far end begins anew, must not last.
static void alb_run_go__forgets_pauses_that_a_repair_overtakes(void **state)
{
    small_run_go(&small,
                 "[network]\ntopology = two-sites\nhosts = 8\nlong_delay = 100us\nrate = 400Gb/s\n[switch]\n"
                 "flow_control = pfc\npfc_headroom = 20489\nbuffer = 224892\n[host]\nloss = fixed\n[workload]\n"
                 "start = 188us\nkind = all-to-all\nsize = 34000\n[fault]\nkind = rate\nat = 439us\nuntil = 2765us\n"
                 "cables = tier:0:7\nvalue = 100Mb/s\n",
                 false);
    assert_int_equal(small.run.end, ALB_RUN_DONE);
    assert_int_equal(small.run.tasks_failed, 0);
    small_run_end(&small);
}

// A switch that has room again cannot say so while the way to the paused sender is dead, and must once it is not.
static void alb_run_go__takes_a_pause_back_after_the_way_to_it_was_dead(void **state)
{
    static const char text[] = "[network]\ntopology = fat-tree\ncore_rate = 1Gb/s\n[switch]\nflow_control = pfc\n"
                               "buffer = 220093\n[workload]\nkind = all-to-all\nsize = %u\n[fault]\nkind = death\n"
                               "at = 320us\nuntil = 2859us\ncables = h9-*\nway = down\n";
    for (uint32_t bytes = 20000; bytes <= 40000; bytes += 5000) {
        char with_size[400];
        snprintf(with_size, sizeof(with_size), text, bytes);
        small_run_go(&small, with_size, false);
        assert_int_equal(small.run.end, ALB_RUN_DONE);
        assert_int_equal(small.run.tasks_failed, 0);
        small_run_end(&small);
    }
}

static void alb_run_go__counts_what_uc_loses(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 2\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 4000\nmessages = 400\n"
                 "unreliable = yes\n[fault]\nkind = loss\ncables = h0-*\nvalue = 10%\n",
                 false);
    assert_int_equal(small.run.end, ALB_RUN_DONE);
    assert_in_range(small.run.tasks_failed, 10, 100);
    assert_int_equal(small.run.bytes_done, (400 - small.run.tasks_failed) * 4000);
    small_run_end(&small);
}

// Also where nothing arrives at all, and whether or not anybody looks at the links.
static void alb_run_time__lasts_until_the_last_lost_message_has_left(void **state)
{
    static const char *const text =
        "[network]\nhosts = 2\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1M\nmessages = 10\n"
        "unreliable = yes\n[fault]\nkind = loss\ncables = h0-*\nvalue = 100%\n";
    alb_sim_time times[2];
    for (size_t has_heat = 0; has_heat < 2; has_heat++) {
        alb_sim_time left = 0;
        small_run_go(&small, text, has_heat);
        for (uint32_t i = 0; i < small.run.schedule.task_count; i++)
            left = ALB_MAX(left, small.run.times[i].done);
        assert_int_equal(small.run.tasks_failed, 10);
        times[has_heat] = alb_run_time(&small.run);
        assert_int_equal(times[has_heat], left);
        small_run_end(&small);
    }
    assert_int_equal(times[0], times[1]);
}

// Whatever is lost, of data, answers and questions, is sent again until every message is whole, to the last byte.
static void alb_run_go__sends_again_what_partial_completion_misses(void **state)
{
    static const char *const sizes[] = {"4000", "100000"};
    for (size_t i = 0; i < ALB_COUNT(sizes); i++) {
        char text[400];
        snprintf(text, sizeof(text),
                 "[network]\nhosts = 2\n[host]\nreal_bytes = yes\n[workload]\nkind = pairs\nhosts = 0\nto = 1\n"
                 "size = %s\nmessages = 40\nunreliable = yes\npartial = 50us\n"
                 "[fault]\nkind = loss\ncables = h0-*\nvalue = 10%%\n",
                 sizes[i]);
        small_run_go(&small, text, false);
        assert_int_equal(small.run.end, ALB_RUN_DONE);
        assert_string_equal(small.run.violation, "");
        assert_int_equal(small.run.tasks_failed, 0);
        assert_int_equal(small.run.bytes_done, small.run.bytes);
        assert_in_range(small.run.resent, 1, small.run.bytes / 1000);
        small_run_end(&small);
    }
}

// Nothing comes any more: after its retries each is given up, and the run ends.
static void alb_run_go__gives_up_partial_completion_in_the_end(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 2\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 10000\nmessages = 4\n"
                 "unreliable = yes\npartial = 20us\nretries = 3\n[fault]\nkind = death\ncables = h0-*\nat = 0us\n",
                 false);
    assert_int_equal(small.run.end, ALB_RUN_DONE);
    assert_int_equal(small.run.tasks_failed, 4);
    small_run_end(&small);
}

static void alb_run_go__ends_at_its_time(void **state)
{
    small_run_go(&small, "[scenario]\nend = 20us\n[workload]\nkind = permutation\nsize = 1M\n", false);
    assert_int_equal(small.run.end, ALB_RUN_TIME);
    assert_int_equal(alb_cluster_now(small.run.cluster), ALB_SIM_US(20));
    assert_int_not_equal(alb_run_first_open(&small.run), ALB_TASK_NONE);
    small_run_end(&small);
}

static void note_events(void *context, const struct alb_run_progress *progress)
{
    *(uint64_t *)context = progress->events;
    assert_int_equal(progress->until, ALB_SIM_S(9)); // the sooner of the caller's and the scenario's
}

// Whatever pieces it goes in, each of which runs on to the end of its window, and whether somebody looks on or not.
static void alb_run_go__ends_after_so_many_events(void **state)
{
    static const char *const orders[] = {"time", "window", "host"};
    for (size_t i = 0; i < 2 * ALB_COUNT(orders); i++) {
        static alb_sim_time ended;
        char text[200];
        uint64_t events = 0;
        const struct alb_run_options options = {.until = ALB_SIM_S(i % 2 ? 9 : 10),
                                                .events_max = 10000,
                                                .progress_events = 50,
                                                .has_heat = i % 2,
                                                .on_progress = note_events,
                                                .context = &events};
        snprintf(text, sizeof(text), "[scenario]\norder = %s\nend = %ds\n[workload]\nkind = permutation\nsize = 10M\n",
                 orders[i / 2], i % 2 ? 10 : 9);
        small_run_begin(&small, text);
        assert_int_equal(alb_run_go(&small.run, &options), ALB_RUN_EVENTS);
        assert_in_range(alb_sim_queue_done(alb_cluster_queue(small.run.cluster)), 10000, 12000);
        assert_int_equal(events, alb_sim_queue_done(alb_cluster_queue(small.run.cluster)));
        assert_true(i % 2 == 0 || ended == alb_cluster_now(small.run.cluster));
        ended = alb_cluster_now(small.run.cluster);
        small_run_end(&small);
    }
}

// Of receipts that wait in line the last one is taken first, and another one comes behind the rest.
static void alb_run_go__receipts_from_any_rank_wait_in_line(void **state)
{
    static struct alb_drawn drawn = {
        .text = "[network]\nhosts = 2\n[workload]\nkind = goal\nfile = t\n",
        .trace_name = "t",
        .trace = "num_ranks 2\nrank 0 {\nr1: recv 8b from -1 tag 1\nr2: recv 8b from -1 tag 2\n"
                 "r3: recv 8b from -1 tag 3\nr3 requires r2\n}\n"
                 "rank 1 {\ns2: send 8b to 0 tag 2\ns3: send 8b to 0 tag 3\ns3 requires s2\nc: calc 100000\n"
                 "c requires s3\ns1: send 8b to 0 tag 1\ns1 requires c\n}\n"};
    small_run_go_with(&small, &drawn);
    assert_int_equal(small.run.end, ALB_RUN_DONE);
    assert_int_equal(small.run.wild[0].first, ALB_TASK_NONE);
    small_run_end(&small);
}

// A link that is dead permanently: the queue pair gives up, and the run ends all the same.
static void alb_run_go__ends_when_a_queue_pair_fails(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 4\n[workload]\nkind = pairs\nhosts = 0..1\nto = 2..3\nsize = 1M\nmessages = 3\n"
                 "timeout = 8\nretries = 2\n[fault]\nkind = death\ncables = h0-*\nat = 10us\n",
                 false);
    assert_true(small.run.end == ALB_RUN_STUCK || small.run.end == ALB_RUN_DONE);
    assert_int_equal(small.run.tasks_failed, 1);
    assert_int_equal(small.run.tasks_done, 4); // the others of that pair never begin
    small_run_end(&small);
}

static void alb_run_init__says_what_was_expected(void **state)
{
    static const struct {
        const char *text, *complaint;
    } bad[] = {
        {"[network]\ntopology = file\n[workload]\nkind = permutation\nsize = 1",
         "f:2: topology = file; expected file = NAME too"},
        {"[network]\ntopology = fat-tree\nk = 7\n[workload]\nkind = permutation\nsize = 1",
         "f:3: k, the ports of a switch in a fat-tree, is even, and 2 to 128"},
        {"[network]\ntopology = fat-tree\nk = 8\noversubscription = 3\n[workload]\nkind = permutation\nsize = 1",
         "f:4: the oversubscription of a fat-tree divides k / 2, since an edge has k / 2 divided by it uplinks"},
        {"[network]\ntopology = star\nrate = 1Gb/s\nhosts = 70000\n[workload]\nkind = permutation\nsize = 1",
         "f:4: a star has 1 to 65536 hosts"},
        {"[network]\ntopology = leaf-spine\nleaves = 9\nhosts = 65536\n[workload]\nkind = permutation\nsize = 1",
         "f:4: a switch has at most 65536 ports"},
        {"[network]\ntopology = file\nfile = none\n[workload]\nkind = permutation\nsize = 1",
         "f:3: scenarios/none: No such file or directory; expected a file of up to 1 GiB"},
        {"[workload]\nkind = permutation\nsize = 1\n[fault]\nkind = loss\ncables = tier:9\nvalue = 1%",
         "f:6: no cable matches \"tier:9\"; expected tier:0, with :N behind it for N of it, or NODE-NODE with * for "
         "any text"},
        {"[network]\nhosts = 4\n[switch]\nflow_control = pfc\nbuffer = 10K\n[workload]\nkind = permutation\nsize = 1",
         "f:5: buffer: expected more than the headroom that pfc keeps for a switch's ports, 151936 bytes here"},
        {"[workload]\nkind = goal\nfile = sizes/websearch.txt",
         "scenarios/sizes/websearch.txt:1: found \"#\"; expected \"num_ranks\" or \"rank\""},
        {"[workload]\nkind = permutation\nsizes = traces/broadcast.goal",
         "scenarios/traces/broadcast.goal:1: expected two numbers in less than 80 characters"},
        {"[host]\nqueue_pair_max = 17\n[workload]\nkind = all-to-all\nsize = 1",
         "f:3: hosts 0 and 2 can't be connected: Cannot allocate memory; expected larger limits in [host] "
         "(queue_pair_max, peer_max, pool)"},
        {"[workload]\nkind = permutation\nsize = 1\n[fault]\nkind = repair\ncables = tier:0:17",
         "f:6: tier 0 has 16 cables; expected no more"},
        {"[workload]\nkind = permutation\nsize = 1\n[fault]\nkind = repair\ncables = tier:0:4294967297",
         "f:6: tier 0 has 16 cables; expected no more"},
        {"[workload]\nkind = permutation\nsize = 1\n[fault]\nkind = loss\ncables = tier:0",
         "f:4: value: none; expected one for a fault of kind loss"},
        {"[workload]\nkind = permutation\nsize = 1\n[fault]\nkind = rate\ncables = tier:0\nvalue = 0b/s",
         "f:7: value: \"0b/s\" carries nothing, as kind = death does; expected one for a fault of kind rate"},
        {"[workload]\nkind = permutation\nsize = 1\n[fault]\nkind = delay\ncables = tier:0\nvalue = 9000s",
         "f:7: value: \"9000s\"; expected a duration from 0 to 3600s"},
        {"[workload]\nkind = permutation\nsize = 1\n[fault]\nkind = death\ncables = tier:0\nvalue = 9000s",
         "f:7: value: \"9000s\"; expected a duration from 0 to 3600s"},
        {"[workload]\nkind = incast\nhosts = 3\nto = 3\nsize = 1",
         "f:1: the workload sends nothing; expected at least one message from a host to another"},
        {"[network]\nhosts = 4\n[host]\nreal_bytes = yes\n[workload a]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000\n"
         "[workload b]\nkind = pairs\nhosts = 2\nto = 3\nsize = 1G\nmessages = 5",
         "f:4: real_bytes: hosts 2 and 3 have more than 4 GiB of messages for each other by one queue pair; expected "
         "less"},
        {"[network]\nhosts = 4\n[host 2..4]\nloss = irn\n[workload]\nkind = permutation\nsize = 1",
         "f:3: \"2..4\" is no list of hosts; expected all, or numbers and ranges such as 0..7 or 0..62/2 with commas "
         "between, below 4, no more of them than there are hosts, no step beyond its range"},
        {"[host 0]\nwindow_max = 100K\n[host 0..3]\nwindow_min = 200K\n[workload]\nkind = permutation\nsize = 1",
         "f:4: window_min: expected no more than window_max"},
    };
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        struct alb_complaint complaint = {0};
        assert_true(alb_document_parse(&small.document, "f", bad[i].text, strlen(bad[i].text), &complaint));
        assert_true(alb_scenario_read(&small.scenario, &small.document, NULL, "scenarios", &complaint));
        assert_false(alb_run_init(&small.run, &small.scenario, &complaint));
        assert_string_equal(complaint.text, bad[i].complaint);
        alb_scenario_fini(&small.scenario);
        alb_document_fini(&small.document);
    }
}

static const char with_bytes[] = "[network]\nhosts = 3\n[host]\nreal_bytes = yes\n[workload]\nkind = all-to-all\n"
                                 "size = 10000\n[workload s]\nkind = all-gather\nop = send\nsize = 9000\n";

// Whatever byte it is, of a source, of a target or between them.
static void alb_run_go__checks_every_byte(void **state)
{
    uint64_t memory_used = 1;
    for (uint64_t at = 0; at < memory_used; at += 1 + memory_used / 40) {
        small_run_go(&small, with_bytes, false);
        memory_used = small.run.memory_used;
        assert_int_equal(small.run.end, ALB_RUN_DONE);
        assert_string_equal(small.run.violation, "");
        alb_cluster_memory(small.run.cluster, 1)[at] ^= 7;
        alb_run_model_end(&small.run, false);
        if (!small.run.violation[0])
            fail_msg("byte %u of host 1 has changed, and nobody noticed", (unsigned)at);
        small_run_end(&small);
    }
}

// Told to the run as if the engine had given it, in the middle of the run.
static void complete_again(struct alb_run *run, const struct alb_wc *wc)
{
    const struct alb_cluster_completion completion = {
        .channel = run->channels[0].channel, .status = (enum alb_wc_status)wc->status, .wc = wc};
    alb_run_on_complete(run, &completion, alb_cluster_now(run->cluster));
}

// What the pattern of a message's bytes does not tell.
static void alb_run_go__is_judged_by_the_model(void **state)
{
    static const char text[] = "[network]\nhosts = 2\n[host]\nreal_bytes = yes\n[workload]\nkind = pairs\nhosts = 0\n"
                               "to = 1\nsize = 300\nmessages = 4\ndepth = 4\n";
    static const struct {
        struct alb_wc wc;
        const char *violation;
    } wrong[] = {
        {{.wr_id = 2, .opcode = ALB_WC_RDMA_WRITE}, "hosts 0 and 1: request 2 of queue pair 0/0 completed twice"},
        {{.wr_id = 5, .opcode = ALB_WC_RDMA_WRITE}, "hosts 0 and 1: request 5 of queue pair 0/0 completed twice, or w"},
        {{.wr_id = 3, .opcode = ALB_WC_RDMA_WRITE, .status = ALB_WC_WR_FLUSH_ERR}, "hosts 0 and 1: request 3 of "},
    };
    for (size_t i = 0; i < ALB_COUNT(wrong); i++) {
        small_run_go(&small, text, false);
        assert_string_equal(small.run.violation, "");
        complete_again(&small.run, &wrong[i].wc);
        assert_memory_equal(small.run.violation, wrong[i].violation, strlen(wrong[i].violation));
        assert_non_null(strstr(small.run.promise, "request %u of queue pair %u/%u completed twice"));
        small_run_end(&small);
    }
}

// Completions in another order than that of the requests, or with a status for which there is no reason.
static void alb_run_go__knows_order_and_status(void **state)
{
    static const char text[] = "[network]\nhosts = 2\n[host]\nreal_bytes = yes\n[workload]\nkind = pairs\nhosts = 0\n"
                               "to = 1\nsize = 300\nmessages = 4\ndepth = 4\n";
    static const struct {
        struct alb_wc wc;
        const char *promise;
    } wrong[] = {
        {{.wr_id = 1, .opcode = ALB_WC_RDMA_WRITE}, "completed before request"},
        {{.wr_id = 0, .opcode = ALB_WC_SEND}, "success out of place"},
        {{.wr_id = 0, .opcode = ALB_WC_RDMA_WRITE, .status = ALB_WC_WR_FLUSH_ERR}, "ended with"},
        {{.wr_id = 0, .opcode = ALB_WC_RDMA_WRITE, .status = ALB_WC_REM_ACCESS_ERR}, "ended with"},
    };
    for (size_t i = 0; i < ALB_COUNT(wrong); i++) {
        small_run_begin(&small, text);
        alb_run_starts_begin(&small.run);
        alb_cluster_run(small.run.cluster, ALB_SIM_NS(10), UINT64_MAX); // posted, and under way
        complete_again(&small.run, &wrong[i].wc);
        if (!small.run.promise || !strstr(small.run.promise, wrong[i].promise))
            fail_msg("%zu: %s", i, small.run.violation);
        small_run_end(&small);
    }
}

// What comes when all is done may change nothing any more.
static void alb_run_go__comes_to_rest(void **state)
{
    small_run_go(&small, with_bytes, false);
    assert_true(small.run.is_at_rest);
    assert_true(alb_cluster_now(small.run.cluster) > small.run.ended_at);
    assert_int_equal(alb_run_time(&small.run), small.run.ended_at);
    small_run_end(&small);
}

// Also the way down, piece by piece: a rank to which nothing comes any more asks for what it was told of.
static void alb_run_go__announces_each_piece_of_a_tree(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 4\n[workload]\nkind = all-reduce-tree\nsize = 32K\nrounds = 4\npieces = 8\n"
                 "[fault]\ncables = h3-*\nway = down\nkind = loss\nvalue = 100%\nat = 30us\nuntil = 200us\n",
                 false);
    const struct alb_device_stats *stats = alb_cluster_host_stats(small.run.cluster, 3);
    assert_true(stats->sum.counter[ALB_STAT_expected_asks] > 0);
    small_run_end(&small);
}

// What is sent differs from what should be: found when it comes.
static void alb_run_go__finds_a_wrong_byte(void **state)
{
    const struct alb_run_options options = {.until = ALB_SIM_NEVER, .events_max = 1000000};
    struct alb_complaint complaint = {0};
    assert_true(alb_document_parse(&small.document, "f", with_bytes, strlen(with_bytes), &complaint));
    assert_true(alb_scenario_read(&small.scenario, &small.document, NULL, ".", &complaint));
    assert_true(alb_run_init(&small.run, &small.scenario, &complaint));
    alb_cluster_memory(small.run.cluster, 0)[small.run.arenas[0].constant[0].at + 5000] ^= 1; // of 10,000
    alb_run_go(&small.run, &options);
    assert_memory_equal(small.run.violation, "message 0 from host 0 to host 1: byte 5000 of 10000", 51);
    small_run_end(&small);
}

static const char *many; // of which

static bool no_room(const char *what, uint32_t made, uint32_t all, char *why, size_t size)
{
    snprintf(why, size, "%u of %u %s are enough", made, all, what);
    return strcmp(what, many) != 0 || made < 4;
}

static void alb_run_init__ends_when_memory_will_not_do(void **state)
{
    static const char text[] = "[network]\nhosts = 9\n[workload]\nkind = all-to-all\nsize = 300000\n";
    static const char *const kinds[][2] = {{"hosts", "f:1: 4 of 9 hosts are enough; expected a smaller cluster"},
                                           {"connections", "f:3: 32 of 36 connections are enough; expected fewer"}};
    for (size_t i = 0; i < ALB_COUNT(kinds); i++) {
        struct alb_complaint complaint = {0};
        many = kinds[i][0];
        assert_true(alb_document_parse(&small.document, "f", text, strlen(text), &complaint));
        assert_true(alb_scenario_read(&small.scenario, &small.document, NULL, "scenarios", &complaint));
        small.scenario.has_room = no_room;
        assert_false(alb_run_init(&small.run, &small.scenario, &complaint));
        assert_string_equal(complaint.text, kinds[i][1]);
        alb_scenario_fini(&small.scenario);
        alb_document_fini(&small.document);
    }
}

// Before anything of it is made.
static void alb_run_init__refuses_at_once_what_is_far_too_large(void **state)
{
    static const char *const kinds[] = {"kind = all-to-all\n", "kind = incast\nto = 0..99\n"};
    for (size_t i = 0; i < ALB_COUNT(kinds); i++) {
        struct alb_complaint complaint = {0};
        char text[200];
        snprintf(text, sizeof(text), "[network]\nhosts = 100\n[workload]\n%ssize = 1\n", kinds[i]);
        assert_true(alb_document_parse(&small.document, "f", text, strlen(text), &complaint));
        assert_true(alb_scenario_read(&small.scenario, &small.document, NULL, "scenarios", &complaint));
        small.scenario.memory_bytes = 30 << 20;
        many = "";
        small.scenario.has_room = no_room;
        assert_false(alb_run_init(&small.run, &small.scenario, &complaint));
        assert_memory_equal(complaint.text, "f:4: 4950 connections take 0.0 GiB of memory or more", 52);
        alb_scenario_fini(&small.scenario);
        alb_document_fini(&small.document);
    }
}

static void alb_run_check__knows_what_routes_take(void **state)
{
    static const char text[] = "[network]\ntopology = leaf-spine\nhosts = 1\nleaves = 2000\nspines = 1\n"
                               "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1\n";
    struct alb_complaint complaint = {0};
    assert_true(alb_document_parse(&small.document, "f", text, strlen(text), &complaint));
    assert_true(alb_scenario_read(&small.scenario, &small.document, NULL, "scenarios", &complaint));
    small.scenario.memory_bytes = 4 * 2000 * 2001;
    assert_true(alb_run_check(&small.scenario, &complaint));
    small.scenario.memory_bytes--;
    assert_false(alb_run_check(&small.scenario, &complaint));
    assert_memory_equal(complaint.text, "f:1: routes between 2001 switches take 0.0 GiB of memory, and there are", 70);
    alb_scenario_fini(&small.scenario);
    alb_document_fini(&small.document);
}

// Of messages that all end at the same time, too.
static void alb_run_bytes_arrived__counts_messages_under_way(void **state)
{
    static const char *const hosts[] = {"csa", "rc"};
    for (size_t i = 0; i < ALB_COUNT(hosts); i++) {
        char text[300];
        snprintf(text, sizeof(text),
                 "[scenario]\nend = 100us\n[network]\nhosts = 4\nrate = 100Gb/s\n[host]\ntransport = %s\n"
                 "[workload]\nkind = permutation\nsize = 2500000\n",
                 hosts[i]);
        small_run_go(&small, text, false);
        assert_int_equal(small.run.end, ALB_RUN_TIME);
        assert_int_equal(small.run.bytes_done, 0);
        assert_in_range(alb_run_bytes_arrived(&small.run), 4000000, 5000000); // half of the 200 us that all of it takes
        small_run_end(&small);
    }
    small_run_go(&small, "[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 100000\n", false);
    assert_int_equal(alb_run_bytes_arrived(&small.run), 400000);
    small_run_end(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_run_go__does_every_workload),
        cmocka_unit_test(alb_run_init__dcqcn_begins_with_the_rate_of_the_link),
        cmocka_unit_test(alb_run_init__load_is_of_the_first_host),
        cmocka_unit_test(alb_run_init__uc_is_as_fast_as_the_link),
        cmocka_unit_test(alb_run_init__messages_of_a_pair_take_its_queue_pairs_in_turn),
        cmocka_unit_test(alb_run_go__is_the_same_twice),
        cmocka_unit_test(alb_run_go__is_the_same_host_by_host),
        cmocka_unit_test(alb_run_go__is_the_same_host_by_host_whatever_is_drawn),
        cmocka_unit_test(alb_run_go__is_the_same_watched_host_by_host),
        cmocka_unit_test(alb_run_go__forgets_pauses_that_a_repair_overtakes),
        cmocka_unit_test(alb_run_go__takes_a_pause_back_after_the_way_to_it_was_dead),
        cmocka_unit_test(alb_run_go__counts_what_uc_loses),
        cmocka_unit_test(alb_run_time__lasts_until_the_last_lost_message_has_left),
        cmocka_unit_test(alb_run_go__sends_again_what_partial_completion_misses),
        cmocka_unit_test(alb_run_go__gives_up_partial_completion_in_the_end),
        cmocka_unit_test(alb_run_go__ends_at_its_time),
        cmocka_unit_test(alb_run_go__ends_after_so_many_events),
        cmocka_unit_test(alb_run_go__receipts_from_any_rank_wait_in_line),
        cmocka_unit_test(alb_run_go__ends_when_a_queue_pair_fails),
        cmocka_unit_test(alb_run_init__says_what_was_expected),
        cmocka_unit_test(alb_run_init__ends_when_memory_will_not_do),
        cmocka_unit_test(alb_run_init__refuses_at_once_what_is_far_too_large),
        cmocka_unit_test(alb_run_check__knows_what_routes_take),
        cmocka_unit_test(alb_run_go__checks_every_byte),
        cmocka_unit_test(alb_run_go__is_judged_by_the_model),
        cmocka_unit_test(alb_run_go__knows_order_and_status),
        cmocka_unit_test(alb_run_go__comes_to_rest),
        cmocka_unit_test(alb_run_go__announces_each_piece_of_a_tree),
        cmocka_unit_test(alb_run_go__finds_a_wrong_byte),
        cmocka_unit_test(alb_run_bytes_arrived__counts_messages_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
