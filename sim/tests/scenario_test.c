// SPDX-License-Identifier: BSD-2-Clause
// Scenarios: what their keys set, and that every mistake is said with its line and what was expected.
#include "base/tests/test.h"
#include "sim/cluster.h"
#include "sim/scenario.h"
#include "sim/scenario_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The linker puts it before malloc (--wrap).
static size_t allocated_bytes;
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    allocated_bytes += bytes;
    return __real_malloc(bytes);
}

static bool read_variant(struct alb_scenario *scenario, const char *text, const char *variant,
                         struct alb_complaint *complaint)
{
    struct alb_document document;
    if (!alb_document_parse(&document, "f", text, strlen(text), complaint))
        return false;
    bool is_good = alb_scenario_read(scenario, &document, variant, ".", complaint);
    alb_document_fini(&document);
    return is_good;
}

static void read_good(struct alb_scenario *scenario, const char *text, const char *variant)
{
    struct alb_complaint complaint = {0};
    if (!read_variant(scenario, text, variant, &complaint))
        fail_msg("%s", complaint.text);
}

static void alb_scenario_read__every_kind_of_value(void **state)
{
    static struct alb_scenario scenario;
    read_good(&scenario,
              "[scenario]\ntitle = a b\nstage = nightly\nseed = 7\nend = 2ms\n"
              "[network]\ntopology = fat-tree\nk = 8\nrate = 400Gb/s\ndelay = 600ns\n"
              "[switch]\nbuffer = 16M\nalpha = 0.5\nmark_chance = 20%\nflow_control = pfc\n"
              "[host]\ntransport = csa\nloss = irn:few=5\npaths = 64\nwindow_max = 1M\nrtt_target = 30us\n"
              "dcqcn_rate_max = 100Gb/s\nmtu = 1024\nbatch = 4\nreal_bytes = yes\n"
              "[host 2,4..6]\npaths = 4\n"
              "[workload bulk]\nkind = poisson\nload = 80%\nsize = 1e6\nend = 1ms\n"
              "[workload]\nkind = all-reduce-tree\nsize = 1M\nop = send\n"
              "[fault]\ncables = tier:1:2\nkind = rate\nvalue = 10Gb/s\nway = down\nat = 5us\n",
              NULL);
    assert_string_equal(scenario.title, "a b");
    assert_int_equal(scenario.stage, 1);
    assert_int_equal(scenario.seed, 7);
    assert_int_equal(scenario.end, ALB_SIM_MS(2));
    assert_int_equal(scenario.network.shape, ALB_TOPOLOGY_FAT_TREE);
    assert_int_equal(scenario.network.k, 8);
    assert_int_equal(scenario.network.host_bits_per_s, 400000000000);
    assert_int_equal(scenario.network.host_delay, ALB_SIM_NS(600));
    assert_int_equal(scenario.switches.buffer_bytes, 16 << 20);
    assert_int_equal(scenario.switches.alpha_16ths, 8);
    assert_int_equal(scenario.switches.mark_per_million, 200000);
    assert_int_equal(scenario.switches.flow_control, ALB_FLOW_CONTROL_PFC);
    assert_true(scenario.host.has_real_bytes);
    assert_string_equal(scenario.engine.loss, "irn:few=5");
    assert_int_equal(scenario.engine.path_max, 64);
    assert_int_equal(scenario.engine.window_max_bytes, 1 << 20);
    assert_int_equal(scenario.engine.rtt_target_ns, 30000);
    assert_int_equal(scenario.engine.dcqcn.rate_max_bytes_per_s, 12500000000);
    assert_int_equal(scenario.host.mtu_bytes, 1024);
    assert_int_equal(scenario.host.batch, 4);
    assert_int_equal(scenario.workload_count, 2);
    assert_string_equal(scenario.workloads[0].name, "bulk");
    assert_int_equal(scenario.workloads[0].kind, ALB_WORKLOAD_POISSON);
    assert_int_equal(scenario.workloads[0].load_per_billion, 800000000);
    assert_int_equal(scenario.workloads[0].bytes, 1000000);
    assert_int_equal(scenario.workloads[1].kind, ALB_WORKLOAD_COLLECTIVE + ALB_COLLECTIVE_ALL_REDUCE_TREE);
    assert_int_equal(scenario.workloads[1].op, ALB_WORK_SEND);
    assert_int_equal(scenario.fault_count, 1);
    assert_int_equal(scenario.faults[0].kind, ALB_FAULT_RATE);
    assert_int_equal(scenario.faults[0].way, 2);
    struct alb_engine_config engine = scenario.engine;
    alb_scenario_change_host(&scenario, 3, &engine);
    assert_int_equal(engine.path_max, 64);
    alb_scenario_change_host(&scenario, 5, &engine);
    assert_int_equal(engine.path_max, 4);
    alb_scenario_fini(&scenario);
}

// Which hosts a list is of, however many a scenario could have, is known without making it.
static void alb_scenario_change_host__of_many(void **state)
{
    static struct alb_scenario scenario;
    read_good(&scenario,
              "[network]\nhosts = 65536\n[host all]\npaths = 4\n[host 0,10..60000/10]\npaths = 8\n"
              "[host 9..20]\nrtt_target = 50us\n[workload]\nkind = permutation\nsize = 1\n",
              NULL);
    uint32_t eights = 0, slow = 0;
    allocated_bytes = 0;
    for (uint32_t host = 0; host < 65536; host++) {
        struct alb_engine_config engine = scenario.engine;
        alb_scenario_change_host(&scenario, host, &engine);
        eights += engine.path_max == 8;
        slow += engine.rtt_target_ns == 50000;
        if (allocated_bytes > 65536)
            fail_msg("host %u: %zu bytes", host, allocated_bytes);
    }
    assert_int_equal(eights, 6001);
    assert_int_equal(slow, 12);
    alb_scenario_fini(&scenario);
}

static void alb_scenario_read__variants(void **state)
{
    static const char text[] = "[workload]\nkind = permutation\nsize = 1M\n"
                               "[variant big]\nworkload.size = 4M\nnetwork.hosts = 32\n"
                               "[variant slow]\nnetwork.rate = 1Gb/s\n";
    static struct alb_scenario scenario;
    struct alb_complaint complaint = {0};
    struct alb_document document;
    assert_true(alb_document_parse(&document, "f", text, strlen(text), &complaint));
    assert_string_equal(alb_scenario_variant(&document, 0), "big");
    assert_string_equal(alb_scenario_variant(&document, 1), "slow");
    assert_null(alb_scenario_variant(&document, 2));
    alb_document_fini(&document);
    read_good(&scenario, text, NULL);
    assert_int_equal(scenario.workloads[0].bytes, 1 << 20);
    alb_scenario_fini(&scenario);
    read_good(&scenario, text, "big");
    assert_int_equal(scenario.network.hosts, 32);
    assert_int_equal(scenario.workloads[0].bytes, 4 << 20);
    alb_scenario_fini(&scenario);
    assert_false(read_variant(&scenario, text, "small", &complaint));
    assert_string_equal(complaint.text, "--variant: there is no [variant small] in f; there are big, slow");
}

static bool read_set(struct alb_scenario *scenario, const char *setting, const char *variant,
                     struct alb_complaint *complaint)
{
    static const char text[] =
        "[workload]\nkind = permutation\nsize = 1M\n[host]\nloss = csa\n"
        "[variant big]\nworkload.size = 4M\nhost.loss = fixed\n[variant small]\nhost.paths = 2\n";
    struct alb_document document;
    assert_true(alb_document_parse(&document, "f", text, strlen(text), complaint));
    bool is_good = alb_document_set(&document, setting, complaint) &&
                   alb_scenario_read(scenario, &document, variant, ".", complaint);
    alb_document_fini(&document);
    return is_good;
}

static void alb_scenario_read__a_setting_wins_over_a_variant(void **state)
{
    static struct alb_scenario scenario;
    struct alb_complaint complaint = {0};
    assert_true(read_set(&scenario, "workload.size=2M", "big", &complaint));
    assert_int_equal(scenario.workloads[0].bytes, 2 << 20);
    alb_scenario_fini(&scenario);
    assert_true(read_set(&scenario, "variant.big.workload.size=8M", "big", &complaint));
    assert_int_equal(scenario.workloads[0].bytes, 8 << 20);
    alb_scenario_fini(&scenario);
    assert_true(read_set(&scenario, "variant.big.workload.size=8M", "small", &complaint));
    assert_int_equal(scenario.workloads[0].bytes, 1 << 20);
    alb_scenario_fini(&scenario);
    assert_false(read_set(&scenario, "host.loss=nonsense", "big", &complaint));
    assert_false(read_set(&scenario, "variant.big.host.nosuch=1", "big", &complaint));
    complaint = (struct alb_complaint){0};
    assert_false(read_set(&scenario, "variant.none.host.loss=csa", "big", &complaint));
    assert_string_equal(complaint.text, "--set: there is no [variant none] in f; there are big, small");
    complaint = (struct alb_complaint){0};
    assert_false(read_set(&scenario, "variant.big.expect.fct_max=<=1ns", "small", &complaint));
    assert_string_equal(complaint.text, "--set: expect.fct_max: expected big:fct_max, in [expect]");
}

// What a policy's name gives is taken together with the keys, in whatever order they stand.
static void alb_scenario_read__parameters_agree_with_keys(void **state)
{
    static struct alb_scenario scenario;
    read_good(&scenario,
              "[host]\ncongestion = dcqcn:rate_max=100Mb/s\ndcqcn_hyper = 50Mb/s\n"
              "[workload]\nkind = permutation\nsize = 1\n",
              NULL);
    alb_scenario_fini(&scenario);
}

// The policies of the hosts that a list names are checked though they are used later.
static void alb_scenario_read__says_where_and_what_was_expected(void **state)
{
    static const struct {
        const char *text, *complaint; // its beginning
    } bad[] = {
        {"", "f: nothing is sent; expected a [workload]"},
        {"[net]\n", "f:1: there is no section [net]; expected scenario, network, switch, host,"},
        {"[switch x]\n", "f:1: [switch x] has a name; expected [switch]"},
        {"[variant]\n", "f:1: expected [variant NAME]"},
        {"[variant a/b]\n", "f:1: [variant a/b]: expected a name of letters, digits, \"-\" and \"_\""},
        {"[variant a]\nexpect.done = 7\n", "f:2: expect.done: expected a:done, in [expect]"},
        {"[variant a]\nexpect.w.done = 7\n", "f:2: expect.w.done: expected a:w.done, in [expect]"},
        {"[variant a]\nvariant.q.r.s = 7\n", "f:2: variant.q.r.s: expected no variant within a variant"},
        {"[workload a.b]\n", "f:1: [workload a.b]: expected a name of"},
        {"[fault a:b]\n", "f:1: [fault a:b]: expected a name of"},
        {"[fault a,b]\n", "f:1: [fault a,b]: expected a name of"},
        {"[network]\nq = 1\n", "f:2: [network] has no key \"q\"; expected one of topology, hosts, leaves,"},
        {"[network]\ntopology = ring\n", "f:2: topology is \"ring\"; expected one of star, leaf-spine, fat-tree,"},
        {"[network]\nk = x\n", "f:2: k: \"x\" is not a whole number from 2 to 128"},
        {"[network]\nk = -4\n", "f:2: k: \"-4\" is not a whole number from 2 to 128"},
        {"[network]\nrate = 1000Tb/s\n", "f:2: rate is \"1000Tb/s\"; expected from 1b/s to 100Tb/s"},
        {"[network]\nrate = 1e30Tb/s\n", "f:2: rate: \"1e30Tb/s\" is too large"},
        {"[switch]\nbuffer = 2T\n", "f:2: buffer is \"2T\"; expected from 0 to 1024G"},
        {"[network]\nk = 1\n", "f:2: k is \"1\"; expected from 2 to 128"},
        {"[network]\nrate = 100\n", "f:2: rate: \"100\" is not a rate: a number with b/s"},
        {"[network]\ndelay = 11s\n", "f:2: delay is \"11s\"; expected from 0 to 10s"},
        {"[switch]\nalpha = 0.3\n", "f:2: alpha: \"0.3\" is not a number of whole sixteenths"},
        {"[switch]\ntrim = 1\n", "f:2: trim is \"1\"; expected one of no, yes"},
        {"[switch]\nmark_chance = 2\n", "f:2: mark_chance: \"2\" is ambiguous"},
        {"[switch]\nmark_chance = 1e-7\n", "f:2: mark_chance: \"1e-7\" is finer than a part per million; expected"},
        {"[switch]\nmark_chance = 0.00015%\n", "f:2: mark_chance: \"0.00015%\" is finer than a part per million"},
        {"[host]\ntransport = tcp\n", "f:2: transport is \"tcp\"; expected one of rc, csa"},
        {"[workload]\nkind = permutation\nsize = 1\npartial = 1us\n",
         "f:1: expected transport = csa, unreliable = yes and op = write for partial"},
        {"[host]\ntransport = rc\n[workload]\nkind = permutation\nsize = 1\nunreliable = yes\npartial = 1us\n",
         "f:3: expected transport = csa, unreliable = yes and op = write for partial"},
        {"[host]\nloss = tahoe\n", "f:2: transport csa has no loss policy \"tahoe\"; expected one of csa,"},
        {"[host]\nloss = irn:many=3\n", "f:2: loss: \"irn:many=3\": irn has low=1us..high (100us), high="},
        {"[host]\nloss = csa:few=3\n", "f:2: loss: \"csa:few=3\": csa has no parameters"},
        {"[host]\npath = single:few=3\n", "f:2: path: \"single:few=3\": single has no parameters"},
        {"[host]\nloss = irn:low=50us,high=10us\n",
         "f:2: loss: \"irn:low=50us,high=10us\": irn has low=1us..high (100us), high=low..10s (320us)"},
        {"[host]\n[host 1]\nloss = irn:low=20ms\n", "f:3: loss: \"irn:low=20ms\": irn has low=1us..high"},
        {"[host]\ndcqcn_rate_max = 1Gb/s\ndcqcn_rate_min = 2Gb/s\n",
         "f:2: dcqcn_rate_max: expected no less than dcqcn_rate_min, which is 2000000000 b/s"},
        {"[host]\ndcqcn_rate_max = 1Mb/s\n", "f:2: dcqcn_rate_max: expected no less than dcqcn_rate_min, which is"},
        {"[host]\ncongestion = dcqcn:rate_max=100Mb/s\n",
         "f:1: dcqcn_rate_max: expected no less than dcqcn_hyper, which is 400000000 b/s"},
        {"[host]\ncongestion = window:max=32KiB\n", "f:1: window_start: expected a size from window_min to window_max"},
        {"[host]\ndcqcn_rate_max = 7b/s\n",
         "f:2: dcqcn_rate_max: \"7b/s\" is less than a byte a second; expected 0b/s"},
        {"[host]\ndcqcn_rate_min = 0b/s\n", "f:2: dcqcn_rate_min is \"0b/s\"; expected from 8b/s to "},
        {"[host]\ndcqcn_gain_log2 = 0\n", "f:2: dcqcn_gain_log2 is \"0\"; expected from 1 to 16"},
        {"[host]\ndcqcn_increase = 1ns\n", "f:2: dcqcn_increase is \"1ns\"; expected from 1us to "},
        {"[host]\ndcqcn_counter = 0\n", "f:2: dcqcn_counter is \"0\"; expected from 1 to "},
        {"[workload all]\nkind = permutation\nsize = 1\n", "f:1: expected another name: all of them are called all"},
        {"[workload flows]\nkind = permutation\nsize = 1\n[workload]\nkind = permutation\nsize = 1\n",
         "f:4: expected a name: there is a [workload flows], as one without a name is called"},
        {"[workload]\nkind = permutation\nsize = 1\n[workload flows]\nkind = permutation\nsize = 1\n",
         "f:4: expected another name: [workload] is called flows"},
        {"[host 0..3]\ncongestion = slow\n", "f:2: transport csa has no congestion policy \"slow\"; expected one"},
        {"[host 3..0]\n", "f:1: \"3..0\" is no list of hosts; expected all, or numbers and ranges"},
        {"[host 0]\ntransport = rc\n", "f:2: [host 0] has no key \"transport\"; expected one of loss,"},
        {"[host]\npool = 3M\n", "f:2: pool: expected a power of two from 4K"},
        {"[host]\npool = 1\n", "f:2: pool: expected a power of two from 4K"},
        {"[host 0]\npool = 1\n", "f:2: pool: expected a power of two from 4K"},
        {"[host]\npool = 4K\n", "f:2: pool: expected "},
        {"[host]\nwindow_segments = 0\n", "f:2: window_segments: expected a power of two from 4 to 4194304"},
        {"[host]\nwindow_min = 1M\nwindow_max = 1K\n", "f:2: window_min: expected no more than window_max"},
        {"[host]\nwindow_start = 0\n", "f:2: window_start: expected a size from window_min to window_max"},
        {"[host]\nwindow_start = 1M\n[host 1]\nwindow_start = 1\n", "f:4: window_start: expected a size from"},
        {"[host]\nbatch = 17\n", "f:2: batch is \"17\"; expected from 1 to 16"},
        {"[host]\nqueue_pair_max = 1\n", "f:2: queue_pair_max is \"1\"; expected from"},
        {"[host]\npeer_max = 2147483649\n", "f:2: peer_max is \"2147483649\"; expected from 1 to 1048576"},
        {"[host]\nrtt_target = 0us\n", "f:2: rtt_target is \"0us\"; expected from 1ns to 100s"},
        {"[switch]\nmark_min = 1M\nmark_max = 1K\n", "f:2: mark_min: expected less than mark_max"},
        {"[switch]\nflow_control = pfc\ntrim = yes\n", "f:3: trim: expected no trimming where flow_control keeps"},
        {"[switch]\nflow_control = pfc\nbuffer = 1M\npfc_xoff = 2M\n", "f:4: pfc_xoff: expected no more than buffer"},
        {"[switch]\nflow_control = pfc\nbuffer = 1M\npfc_xoff = 10K\npfc_xon_gap = 99999999\n",
         "f:5: pfc_xon_gap: expected no more than pfc_xoff"},
        {"[switch]\nflow_control = pfc\nbuffer = 1M\npfc_xon_gap = 99999999\n",
         "f:4: pfc_xon_gap: expected no more than buffer"},
        {"[switch]\nflow_control = pfc\n", "f:2: flow_control: expected buffer or pfc_xoff too: from where on pfc"},
        {"[switch]\nflow_control = pfc\nbuffer = 1M\nport_buffer = 100K\n",
         "f:4: port_buffer: expected flow_control = none for it; with pfc buffer, alpha and pfc_xoff bound"},
        {"[switch]\nflow_control = credits\nport_buffer = 100K\n", "f:3: port_buffer: expected flow_control = none"},
        {"[switch]\nflow_control = credits\nbuffer = 1M\n", "f:3: buffer: expected credit_buffer instead"},
        {"[switch]\nalpha = 1\n", "f:2: alpha: expected buffer too"},
        {"[switch]\ncredit_buffer = 100K\n", "f:2: credit_buffer: expected flow_control = credits for it"},
        {"[switch]\npfc_xoff = 100K\n", "f:2: pfc_xoff: expected flow_control = pfc for it"},
        {"[switch]\npfc_xon_gap = 10K\n", "f:2: pfc_xon_gap: expected flow_control = pfc for it"},
        {"[switch]\npfc_headroom = 10K\n", "f:2: pfc_headroom: expected flow_control = pfc for it"},
        {"[switch]\ntrim_buffer = 10K\n", "f:2: trim_buffer: expected trim = yes for it"},
        {"[switch]\nport_buffer = 10\n", "f:2: port_buffer: expected room for a packet of hosts, 4258 bytes on"},
        {"[switch]\nbuffer = 10\n", "f:2: buffer: expected room for a packet of hosts, 4258 bytes on"},
        {"[switch]\nbuffer = 10K\nalpha = 0.25\n", "f:3: alpha: expected room for a packet of hosts, 4258 bytes on"},
        {"[switch]\nflow_control = credits\ncredit_buffer = 10\n", "f:3: credit_buffer: expected room for a packet"},
        {"[switch]\nport_buffer = 1000\n[host]\ntransport = rc\nmtu = 1024\n",
         "f:2: port_buffer: expected room for a packet of hosts, 1122 bytes on"},
        {"[switch]\nport_buffer = 1000\n[host]\ntransport = rc\nmtu = 1024\npayload = 512\n",
         "f:2: port_buffer: expected room for a packet of hosts, 1122 bytes on"},
        {"[host]\nmtu = 1000\n", "f:2: mtu: expected 256, 512, 1024, 2048 or 4096"},
        {"[network]\nfile = ring\n", "f:2: file: expected topology = file for it"},
        {"[workload]\nkind = permutation\nsize = 1M\nsizes = sizes/web-search\n",
         "f:1: expected size or sizes for the workload, not both"},
        {"[workload]\nsize = 1M\n", "f:1: expected kind = ... for the workload"},
        {"[workload]\nkind = permutation\n", "f:1: expected size, above 0, or sizes for the workload"},
        {"[workload]\nkind = goal\n", "f:1: a goal workload has no trace; expected file = NAME"},
        {"[workload]\nkind = poisson\nsize = 1M\n", "f:1: expected load, and flows or end, for a poisson workload"},
        {"[workload]\nkind = incast\nsize = 1M\n", "f:1: expected to = HOSTS, who receives"},
        {"[workload]\nkind = all-gather\nsize = 1M\nop = read\n", "f:1: expected op = write or send for what is"},
        {"[fault]\nkind = death\n", "f:1: expected cables and kind for the fault"},
        {"[fault]\nkind = death\ncables = tier:0\nat = 2us\nuntil = 1us\n", "f:1: expected until to be after at"},
    };
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        static struct alb_scenario scenario;
        struct alb_complaint complaint = {0};
        assert_false(read_variant(&scenario, bad[i].text, NULL, &complaint));
        if (strncmp(complaint.text, bad[i].complaint, strlen(bad[i].complaint)) != 0)
            fail_msg("\"%s\" instead of \"%s\"", complaint.text, bad[i].complaint);
    }
}

// Each of these sections would do alone.
static void alb_scenario_host_lists_agree__what_several_say_of_one_host(void **state)
{
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"[host 0]\npool = 8K\npaths = 2\n[host 0..3]\npaths = 128\n", "f:5: pool: expected "},
        {"[host 0]\nwindow_max = 100K\n[host 0..3]\nwindow_min = 200K\n",
         "f:7: window_min: expected no more than window_max"},
        {"[host 0..3]\nwindow_min = 200K\n[host 1]\nrtt_target = 9us\n[host 2..3]\nwindow_max = 100K\n",
         "f:5: window_min: expected no more than window_max"},
        {"[host]\nwindow_min = 50K\nwindow_start = 60K\n[host 0]\nwindow_max = 100K\n[host 0,1]\nwindow_start = 200K\n",
         "f:10: window_start: expected a size from window_min to window_max"},
        {"[host 0..1]\nwindow_start = 64K\n[host 0]\nwindow_max = 32K\n",
         "f:5: window_start: expected a size from window_min to window_max"},
        {"[host 0]\nwindow_max = 100K\n[host 0..3]\nwindow_min = 200K\n[host 0..1]\nwindow_min = 20K\n", NULL},
        {"[host 0,8]\nwindow_max = 100K\n[host 1..3,8]\nwindow_min = 200K\n", NULL}, // there is no host 8
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        static struct alb_scenario scenario;
        struct alb_complaint complaint = {0};
        char text[300];
        snprintf(text, sizeof(text), "[workload]\nkind = permutation\nsize = 1\n%s", cases[i].text);
        read_good(&scenario, text, NULL);
        assert_int_equal(alb_scenario_host_lists_agree(&scenario, 8, &complaint), !cases[i].complaint);
        if (cases[i].complaint && strncmp(complaint.text, cases[i].complaint, strlen(cases[i].complaint)) != 0)
            fail_msg("\"%s\" instead of \"%s\"", complaint.text, cases[i].complaint);
        alb_scenario_fini(&scenario);
    }
}

static void has_effect(const char *text, const char *variant, const char *setting, const char *expected)
{
    static struct alb_scenario scenario;
    struct alb_complaint complaint = {0};
    struct alb_document document;
    char all[600];
    snprintf(all, sizeof(all), "[workload w]\nkind = permutation\nsize = 1\n%s", text);
    assert_true(alb_document_parse(&document, "f", all, strlen(all), &complaint));
    assert_true(!setting || alb_document_set(&document, setting, &complaint));
    if (!alb_scenario_read(&scenario, &document, variant, ".", &complaint))
        fail_msg("%s", complaint.text);
    bool is_good = alb_scenario_keys_have_effect(&scenario, &document, variant, &complaint);
    if (is_good != !expected || (expected && strncmp(complaint.text, expected, strlen(expected)) != 0))
        fail_msg("\"%s\" instead of \"%s\" of %s", complaint.text, expected ? expected : "", text);
    alb_scenario_fini(&scenario);
    alb_document_fini(&document);
}

static void alb_scenario_keys_have_effect__each_of_its_own(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"to = 1\n", "f:4: to: expected kind = incast or pairs for it"},
        {"load = 1%\n", "f:4: load: expected kind = poisson for it"},
        {"think = 1us\n", "f:4: think: expected a collective for it"},
        {"messages = 9\ndepth = 2\ngap = 1us\n", NULL},
        {"[workload]\nkind = all-gather\nsize = 1\ndepth = 2\n", "f:7: depth: expected permutation, incast,"},
        {"[workload]\nkind = all-gather\nsize = 1\npieces = 2\n",
         "f:7: pieces: expected kind = all-reduce-tree for it"},
        {"[workload]\nkind = goal\nfile = t\nstart = 1ms\n",
         "f:7: start: expected no start, a trace begins with the run"},
        {"[workload]\nkind = all-reduce-tree\nsize = 1\npieces = 2\nrounds = 3\nthink = 1us\n", NULL},
        {"[network]\nk = 4\n", "f:5: k: expected topology = fat-tree for it"},
        {"[network]\ntopology = fat-tree\nhosts = 4\n", "f:6: hosts: expected another topology for it"},
        {"[network]\ntopology = two-sites\nlong_cables = 4\nhosts = 6\nlong_delay = 1ms\n", NULL},
        {"[network]\nhosts = 4\ncore_rate = 1Gb/s\n", "f:6: core_rate: expected topology = leaf-spine or fat-tree"},
        {"[switch]\nmark_chance = 1%\n", "f:5: mark_chance: expected mark_max too"},
        {"[switch]\nspread = spray\n", "f:5: spread: expected a topology with more than one way"},
        {"[host]\ncache_entries = 4\n", "f:5: cache_entries: expected transport = rc for it"},
        {"[host]\ntransport = rc\nmiss_penalty = 1us\n", "f:6: miss_penalty: expected cache_entries too"},
        {"[host]\ntransport = rc\ncache_entries = 4\nmiss_penalty = 1us\n", NULL},
        {"[host]\ntransport = rc\npaths = 4\n", "f:6: paths: expected transport = csa for it"},
        {"[host]\nreceives = 4\n", "f:5: receives: expected op = send, unreliable = yes, a collective or a trace"},
        {"[host]\nmemory = 1M\n", "f:5: memory: expected real_bytes = yes for it"},
        {"[host]\ncongestion = fixed\nrtt_target = 9us\n", "f:6: rtt_target: expected congestion = window for it"},
        {"[host]\nmtu = 1024\n", "f:5: mtu: expected transport = rc for it"},
        {"[host]\ntransport = rc\npayload = 1100\n",
         "f:6: payload: expected transport = csa for it; packets of rc are as long as mtu allows"},
        {"[host]\ntransport = rc\nmtu = 1024\nwindow_start = 8K\nwindow_min = 4K\n", NULL},
        {"[host]\nwindow_start = 8K\nwindow_min = 4K\nwindow_max = 1M\n", NULL},
        {"[host]\ncongestion = fixed\nwindow_start = 8K\n", "f:6: window_start: expected congestion = window or aimd"},
        {"[host]\ncongestion = dcqcn\nwindow_min = 8K\n", "f:6: window_min: expected congestion = window or aimd"},
        {"[host]\ncongestion = fixed\nwindow_start = 1M\nwindow_max = 1024K\n", NULL},
        {"[host]\ncongestion = dcqcn\nwindow_max = 1M\n", NULL},
        {"[host]\ncongestion = none\nwindow_max = 1M\n", "f:6: window_max: expected another congestion than none"},
        {"[host]\ncongestion = none\nwindow_start = 1M\nwindow_max = 1M\n", "f:6: window_start: expected congestion ="},
        {"[host]\ncongestion = none\ncredit = shortest\nwindow_start = 1M\n", NULL},
        {"[host]\ncongestion = none\nwindow_max = 1M\n[host 2]\ncongestion = fixed\n", NULL},
        {"[host]\ncredit_aging = 1Gb/s\n", "f:5: credit_aging: expected credit = shortest for it"},
        {"[host]\ncredit = off\ngrant_min = 8K\n", "f:6: grant_min: expected credit = end-to-end or shortest for it"},
        {"[host]\ndcqcn_cnp = 1us\n", "f:5: dcqcn_cnp: expected congestion = dcqcn for it"},
        {"[host]\n[host 2]\ndcqcn_cnp = 1us\n", "f:6: dcqcn_cnp: expected congestion = dcqcn for it"},
        {"[host]\ndcqcn_cnp = 1us\n[host 2]\ncongestion = dcqcn\n", NULL},
        {"[fault]\ncables = h0-*\nkind = pause\nvalue = 1\n", "f:7: value: expected none for a fault of this kind"},
        {"[fault]\ncables = h0-*\nkind = repair\nuntil = 1us\n", "f:7: until: expected none for what ends another"},
        {"[fault]\ncables = h0-*\nkind = death\nvalue = 1us\nuntil = 1us\n", NULL},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++)
        has_effect(cases[i].text, NULL, NULL, cases[i].expected);
}

// A key that variants share may be for one of them, and one that a setting leaves without effect is not a mistake.
static void alb_scenario_keys_have_effect__with_variants_and_settings(void **state)
{
    static const char variants[] = "load = 1%\n[variant drawn]\nworkload.w.kind = poisson\nworkload.w.flows = 9\n"
                                   "[variant wrong]\nhost.dcqcn_cnp = 1us\n";
    has_effect(variants, "drawn", NULL, NULL);
    has_effect(variants, "wrong", NULL, "f:9: dcqcn_cnp: expected congestion = dcqcn for it");
    has_effect(variants, NULL, NULL, NULL);
    has_effect("[network]\ntopology = fat-tree\nk = 8\n", NULL, "network.topology=star", NULL);
    has_effect("", NULL, "network.k=4", NULL);
}

static void alb_scenario_hosts__lists(void **state)
{
    static const struct {
        const char *list;
        uint32_t count, first, last;
    } good[] = {{"all", 10, 0, 9},   {"3", 1, 3, 3},      {"0..9/4", 3, 0, 8},
                {"7..8,2", 3, 7, 2}, {"3..3/2", 1, 3, 3}, {"0..9/9", 2, 0, 9}};
    static const char *const bad[] = {"",  "10",     "5..",  "..5",    "1,",     "1 2",
                                      "a", "0..9/0", "3..2", "0..9,0", "5..7/3", "5..7/18446744073709551615"};
    const struct alb_document_entry where = {.file = "f", .line = 3};
    struct alb_complaint complaint = {0};
    uint32_t *hosts;
    for (size_t i = 0; i < ALB_COUNT(good); i++) {
        assert_int_equal(alb_scenario_hosts(good[i].list, 10, &where, &hosts, &complaint), good[i].count);
        assert_int_equal(hosts[0], good[i].first);
        assert_int_equal(hosts[good[i].count - 1], good[i].last);
        free(hosts);
    }
    for (size_t i = 0; i < ALB_COUNT(bad); i++)
        if (alb_scenario_hosts(bad[i], 10, &where, &hosts, &complaint))
            fail_msg("\"%s\" was taken", bad[i]);
}

static void alb_scenario_print_keys__names_every_section(void **state)
{
    char text[20000];
    FILE *file = fmemopen(text, sizeof(text), "w");
    alb_scenario_print_keys(file);
    fclose(file);
    static const char *const words[] = {"[scenario]",
                                        "[network]",
                                        "[switch]",
                                        "[host]",
                                        "[workload]",
                                        "[fault]",
                                        "[expect]",
                                        "[variant]",
                                        "oversubscription",
                                        "dcqcn_cnp",
                                        "one of star, leaf-spine, fat-tree, two-sites, file\n",
                                        "of hosts' links (100Gb/s)\n",
                                        "unless there is buffer or trim; 0: no such limit (750000)\n",
                                        "policy (end-to-end)\n",
                                        "above an idle one (28us)\n"};
    for (size_t i = 0; i < ALB_COUNT(words); i++)
        assert_non_null(strstr(text, words[i]));
}

static void assert_read_back(const struct alb_field *fields, uint32_t count, const void *object, void *copy)
{
    for (uint32_t i = 0; i < count; i++) {
        struct alb_document_entry entry = {.file = "f"};
        struct alb_complaint complaint;
        char again[ALB_FIELD_TEXT_MAX];
        alb_field_format(&fields[i], object, entry.value);
        if (fields[i].kind == ALB_FIELD_TEXT && !entry.value[0])
            continue;
        assert_true(alb_field_parse(&fields[i], &entry, copy, &complaint));
        assert_string_equal(alb_field_format(&fields[i], copy, again), entry.value);
    }
}

static void alb_field_format__is_read_back(void **state)
{
    static struct alb_scenario all, copy;
    const char text[] = "[switch]\nbuffer = 3G\nalpha = 2.0625\nmark_chance = 0.5%\ntrim = yes\nspread = spray\n"
                        "latency = 1500ns\n[workload]\nkind = permutation\nsize = 1\n";
    struct alb_document document;
    struct alb_complaint complaint;
    assert_true(alb_document_parse(&document, "f", text, strlen(text), &complaint));
    assert_true(alb_scenario_read(&all, &document, NULL, "", &complaint));
    const struct {
        uint32_t section;
        const void *object;
        void *copy;
    } parts[] = {
        {ALB_SECTION_NETWORK, &all.network, &copy.network},
        {ALB_SECTION_SWITCH, &all.switches, &copy.switches},
        {ALB_SECTION_HOST, &all.engine, &copy.engine},
    };
    for (size_t i = 0; i < ALB_COUNT(parts); i++) {
        const struct alb_scenario_section *section = &alb_scenario_sections[parts[i].section];
        assert_read_back(section->fields, section->count, parts[i].object, parts[i].copy);
    }
    alb_scenario_fini(&all);
    alb_document_fini(&document);
}

static void alb_scenario_file__a_byte_order_mark_is_no_text(void **state)
{
    static struct alb_scenario scenario;
    const struct alb_document_entry where = {.file = "f", .line = 1};
    struct alb_complaint complaint = {0};
    char path[] = "/tmp/scenario_test.XXXXXX";
    size_t length;
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "\xef\xbb\xbfhosts 2\n", 11), 11);
    char *text = alb_scenario_file(&scenario, path, &where, &length, &complaint);
    assert_string_equal(text, "hosts 2\n");
    assert_int_equal(length, 8);
    free(text);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_scenario_read__every_kind_of_value),
        cmocka_unit_test(alb_scenario_change_host__of_many),
        cmocka_unit_test(alb_scenario_read__variants),
        cmocka_unit_test(alb_scenario_read__a_setting_wins_over_a_variant),
        cmocka_unit_test(alb_scenario_read__parameters_agree_with_keys),
        cmocka_unit_test(alb_scenario_read__says_where_and_what_was_expected),
        cmocka_unit_test(alb_scenario_host_lists_agree__what_several_say_of_one_host),
        cmocka_unit_test(alb_scenario_keys_have_effect__each_of_its_own),
        cmocka_unit_test(alb_scenario_keys_have_effect__with_variants_and_settings),
        cmocka_unit_test(alb_scenario_hosts__lists),
        cmocka_unit_test(alb_scenario_print_keys__names_every_section),
        cmocka_unit_test(alb_field_format__is_read_back),
        cmocka_unit_test(alb_scenario_file__a_byte_order_mark_is_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
