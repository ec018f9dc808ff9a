// SPDX-License-Identifier: BSD-2-Clause
// What switches promise: which packet goes where, which port gets how much of the buffer, and that flow control loses
// nothing.
#include "cluster_bench.h"

#include "base/tests/test.h"
#include "engine/impl.h"
#include "sim/cluster_impl.h"

#include <string.h>

enum {
    KB = 1024,
    SWITCH = 16, // node of the star's center
};

// Senders that heed nothing: each has so much in flight.
static void prepare_deaf(struct bench *b, uint32_t window_bytes)
{
    bench_prepare(b, "csa");
    b->config.engine.congestion = "fixed";
    b->config.engine.path = "single";
    b->config.engine.window_start_bytes = b->config.engine.window_max_bytes = window_bytes;
    b->config.switches.port_bytes_max = 0;
}

static struct alb_cluster_switch_stats stats_of(const struct bench *b, uint32_t node)
{
    struct alb_cluster_switch_stats stats;
    alb_cluster_switch_stats(b->cluster, node, &stats);
    return stats;
}

// ---- which way ------------------------------------------------------------------------------------------------------

// Packets that left each of a leaf's four uplinks.
static void count_uplinks(const struct bench *b, uint64_t packets[4])
{
    uint32_t cables[4];
    assert_int_equal(alb_topology_select(&b->topology, "l0-s*", cables, 4), 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct alb_cluster_link_stats stats;
        alb_cluster_link_stats(b->cluster, 2 * cables[i], &stats);
        packets[i] = stats.packets;
    }
}

static void flows_over_uplinks(struct bench *b, enum alb_spread spread, uint32_t flows, uint64_t packets[4])
{
    prepare_deaf(b, 64 * KB);
    b->spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    b->spec.hosts = 16;
    b->config.switches.spread = spread;
    bench_create(b);
    for (uint32_t i = 0; i < flows; i++)
        bench_write(b, i % 16, 16 + i, 128 * KB);
    bench_run(b, flows);
    count_uplinks(b, packets);
    bench_destroy(b);
}

static void ecmp__a_flow_stays_on_its_way(void **state)
{
    struct bench b;
    uint64_t packets[4];
    flows_over_uplinks(&b, ALB_SPREAD_ECMP, 1, packets);
    uint32_t used = 0;
    for (uint32_t i = 0; i < 4; i++)
        used += packets[i] > 0;
    assert_int_equal(used, 1);
}

static void ecmp__flows_spread(void **state)
{
    struct bench b;
    uint64_t packets[4];
    flows_over_uplinks(&b, ALB_SPREAD_ECMP, 48, packets);
    uint64_t sum = packets[0] + packets[1] + packets[2] + packets[3];
    for (uint32_t i = 0; i < 4; i++)
        assert_in_range(packets[i], sum / 12, sum / 2);
}

static void spray__a_flow_goes_all_ways_evenly(void **state)
{
    struct bench b;
    uint64_t packets[4];
    flows_over_uplinks(&b, ALB_SPREAD_SPRAY, 1, packets);
    for (uint32_t i = 0; i < 4; i++)
        assert_in_range(packets[i], packets[0] - 1, packets[0] + 1);
    assert_true(packets[0] > 5);
}

// ---- the buffer -----------------------------------------------------------------------------------------------------

static void buffer__dynamic_threshold_leaves_room_for_others(void **state)
{
    struct bench b;
    prepare_deaf(&b, 256 * KB);
    b.config.switches.buffer_bytes = 600000;
    b.config.switches.alpha_16ths = 16; // one busy port may have half
    bench_create(&b);
    bench_incast(&b, 15, 512 * KB);
    bench_run(&b, 15);
    struct alb_cluster_link_stats link;
    alb_cluster_link_stats(b.cluster, 1, &link); // down to host 0
    assert_true(link.dropped > 0);
    assert_in_range(link.queued_bytes_peak, 280000, 310000);
    bench_destroy(&b);
}

// A star of 64,000 hosts would spend its time counting.
static void buffer__is_kept_count_of_where_ports_are_many(void **state)
{
    for (uint32_t hosts = 64; hosts <= 65; hosts++) {
        struct bench b;
        prepare_deaf(&b, 256 * KB);
        b.spec.hosts = hosts;
        bench_create(&b);
        assert_int_equal(b.cluster->switches[0].goes_ahead, hosts == 64);
        bench_destroy(&b);
    }
}

// Where links go ahead the ports are counted now and then, and the most is found all the same.
static void buffer__without_end_its_peak_is_what_the_longest_queues_hold(void **state)
{
    struct bench b;
    prepare_deaf(&b, 256 * KB);
    bench_create(&b);
    bench_incast(&b, 15, 512 * KB);
    uint64_t peak = 0;
    while (b.done < 15 && alb_cluster_run(b.cluster, ALB_SIM_S(1), 1) == ALB_CLUSTER_EVENTS)
        peak = ALB_MAX(peak, stats_of(&b, SWITCH).buffered_bytes);
    struct alb_cluster_link_stats link;
    alb_cluster_link_stats(b.cluster, 1, &link); // down to host 0
    assert_true(peak > 2 * 1000 * KB);
    assert_in_range(stats_of(&b, SWITCH).buffered_bytes_peak, peak, peak + 256); // what left meanwhile
    assert_in_range(peak, link.queued_bytes_peak, link.queued_bytes_peak + 20 * KB);
    assert_int_equal(stats_of(&b, SWITCH).dropped, 0);
    bench_destroy(&b);
}

static void buffer__two_busy_ports_share(void **state)
{
    struct bench b;
    prepare_deaf(&b, 256 * KB);
    b.config.switches.buffer_bytes = 600000;
    b.config.switches.alpha_16ths = 16; // two busy ports may have a third each
    bench_create(&b);
    for (uint32_t i = 2; i < 16; i++)
        bench_write(&b, i, i % 2, 512 * KB);
    bench_run(&b, 14);
    for (uint32_t host = 0; host < 2; host++) {
        struct alb_cluster_link_stats link;
        alb_cluster_link_stats(b.cluster, 2 * host + 1, &link);
        assert_in_range(link.queued_bytes_peak, 180000, 310000);
    }
    assert_true(stats_of(&b, SWITCH).buffered_bytes_peak <= 410000);
    assert_int_equal(stats_of(&b, SWITCH).buffered_bytes, 0);
    bench_destroy(&b);
}

static void marks__between_min_and_max_by_chance(void **state)
{
    struct bench b;
    prepare_deaf(&b, 64 * KB);
    b.config.switches.mark_min_bytes = 10000;
    b.config.switches.mark_max_bytes = 400000;
    b.config.switches.mark_per_million = 500000;
    bench_create(&b);
    bench_incast(&b, 4, 512 * KB);
    bench_run(&b, 4);
    struct alb_cluster_link_stats link;
    alb_cluster_link_stats(b.cluster, 1, &link);
    assert_in_range(link.marked, link.packets / 20, link.packets / 3); // about 200 KB wait
    bench_destroy(&b);
}

static void trim__payload_goes_and_headers_arrive(void **state)
{
    struct bench b;
    prepare_deaf(&b, 128 * KB);
    b.config.switches.port_bytes_max = 50000;
    b.config.switches.trims = true;
    bench_create(&b);
    bench_incast(&b, 15, 256 * KB);
    bench_run(&b, 15);
    struct alb_cluster_totals totals = bench_totals(&b);
    assert_true(totals.trimmed > 0);
    assert_int_equal(totals.dropped, 0);
    assert_int_equal(alb_cluster_host_stats(b.cluster, 0)->dropped[ALB_DROP_TRUNCATED], totals.trimmed);
    bench_destroy(&b);
}

// A header that is damaged says nothing: it is dropped like a whole packet that is.
static void trim__a_damaged_header_is_not_believed(void **state)
{
    struct bench b;
    prepare_deaf(&b, 128 * KB);
    b.config.switches.port_bytes_max = 50000;
    b.config.switches.trims = true;
    bench_create(&b);
    const struct alb_cluster_fault damage = {0, 0, {false, true}, ALB_FAULT_CORRUPT, 1000000000, false}; // to host 0
    assert_int_equal(alb_cluster_fault(b.cluster, &damage), 0);
    bench_incast(&b, 15, 256 * KB);
    alb_cluster_run(b.cluster, ALB_SIM_MS(1), UINT64_MAX);
    const struct alb_device_stats *stats = alb_cluster_host_stats(b.cluster, 0);
    assert_true(bench_totals(&b).trimmed > 0);
    assert_true(stats->dropped[ALB_DROP_BAD_ICRC] > bench_totals(&b).trimmed / 2);
    assert_int_equal(stats->dropped[ALB_DROP_TRUNCATED] + stats->sum.counter[ALB_STAT_trimmed_reported], 0);
    bench_destroy(&b);
}

// Senders that act on reports of trimming: all that is cut off goes again by that, and nothing in vain.
static void trim__what_is_cut_off_goes_again_by_that_alone(void **state)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.config.switches.port_bytes_max = 50000;
    b.config.switches.trims = true;
    bench_create(&b);
    bench_incast(&b, 15, 256 * KB);
    bench_run(&b, 15);
    uint64_t again = 0, trimmed = 0, probes = 0;
    for (uint32_t host = 1; host <= 15; host++) {
        const struct alb_stats *stats = &alb_cluster_host_stats(b.cluster, host)->sum;
        again += stats->counter[ALB_STAT_retransmitted_pkts];
        trimmed += stats->counter[ALB_STAT_trimmed_pkts];
        probes += stats->counter[ALB_STAT_tail_probes];
    }
    const struct alb_stats *receiver = &alb_cluster_host_stats(b.cluster, 0)->sum;
    assert_true(trimmed > 100);
    assert_true(receiver->counter[ALB_STAT_duplicate_request] <= trimmed / 100);
    assert_in_range(again, trimmed, trimmed + trimmed / 50);
    assert_int_equal(probes, 0);
    bench_destroy(&b);
}

static alb_sim_time time_of_one(uint64_t port_bytes, struct alb_cluster_totals *totals)
{
    struct bench b;
    bench_prepare(&b, "csa");
    b.config.engine.path = "single";
    b.config.engine.window_start_bytes = 64 * KB;
    b.config.switches.port_bytes_max = port_bytes;
    b.config.switches.trims = true;
    bench_create(&b);
    bench_write(&b, 1, 0, 24 * KB);
    bench_write(&b, 2, 0, 24 * KB);
    bench_run(&b, 2);
    *totals = bench_totals(&b);
    bench_destroy(&b);
    return b.last_at;
}

// Two messages meet; the last packets of one are cut off, and nothing comes behind them that would show it.
static void trim__costs_about_a_round_trip(void **state)
{
    struct alb_cluster_totals whole, cut;
    alb_sim_time without = time_of_one(1000 * KB, &whole), with = time_of_one(12 * KB, &cut);
    assert_int_equal(whole.trimmed, 0);
    assert_true(cut.trimmed > 0);
    assert_true(with - without < ALB_SIM_US(12));
}

// A hint that no switch has sent: of any path and number, or of a packet that may be on its way; damaged, too.
static void forge_hint(struct bench *b, struct alb_prng *prng)
{
    struct alb_sim_host *host = &b->cluster->hosts[0].host;
    const struct alb_sim_host *sender = &b->cluster->hosts[1 + alb_prng_below(prng, 15)].host;
    const struct alb_csa *csa = sender->engine->csa->heard_last;
    uint8_t bytes[ALB_CSA_OUTER_BYTES + ALB_CSA_FRAME_MAX] = {0};
    if (!csa)
        return;
    const struct alb_csa_segment segment = {
        .op = ALB_CSA_WRITE,
        .dest_qpn = csa->qp->attr.dest_qpn,
        .psn = alb_psn_add(csa->requests.una, (int32_t)alb_prng_below(prng, 80) - 8),
    };
    const struct alb_sent *sent = alb_stream_out_at(&csa->requests, segment.psn);
    bool is_apt = alb_prng_below(prng, 2);
    const struct alb_csa_header header = {
        .sequence = is_apt ? sent->sequence : (uint32_t)alb_prng_u64(prng) & ALB_PSN_MASK,
        .source_epoch = alb_assoc_epoch(sender->engine->csa, csa->assoc),
        .destination_epoch = csa->assoc->peer_epoch,
        .path = is_apt ? sent->path : (uint8_t)alb_prng_below(prng, 5),
    };
    alb_csa_encode(&header, bytes);
    alb_csa_encode_segment(ALB_CSA_REQUEST, &segment, bytes + ALB_CSA_OUTER_BYTES);
    if (alb_prng_below(prng, 4) == 0)
        bytes[alb_prng_below(prng, ALB_CSA_TRIMMED_BYTES)] ^= (uint8_t)(1 << alb_prng_below(prng, 8));
    const struct alb_datagram datagram = {
        .peer = {sender->addr, ALB_ROCE_PORT},
        .local = {host->addr, ALB_ROCE_PORT},
        .bytes = bytes,
        .length = ALB_CSA_TRIMMED_BYTES,
    };
    alb_engine_rx_trimmed(host->engine, &datagram, alb_sim_host_now(host));
    alb_sim_host_poke(host);
}

// What is sent again in vain is one packet for each at most, and nothing else comes of them.
static void trim__forged_hints_do_no_harm(void **state)
{
    struct bench b;
    struct alb_prng prng;
    uint64_t again = 0;
    bench_prepare(&b, "csa");
    bench_create(&b);
    alb_prng_init(&prng, 7);
    bench_incast(&b, 15, 256 * KB);
    while (b.done < 15 && alb_cluster_run(b.cluster, ALB_SIM_S(1), 20) == ALB_CLUSTER_EVENTS)
        forge_hint(&b, &prng);
    assert_int_equal(b.done, 15);
    assert_int_equal(b.failed, 0);
    const struct alb_device_stats *stats = alb_cluster_host_stats(b.cluster, 0);
    uint64_t told = stats->sum.counter[ALB_STAT_trimmed_reported], forged = stats->dropped[ALB_DROP_TRUNCATED];
    for (uint32_t host = 1; host <= 15; host++)
        again += alb_cluster_host_stats(b.cluster, host)->sum.counter[ALB_STAT_trimmed_pkts];
    assert_true(forged > 100 && told > 0 && told <= forged);
    assert_true(again > 0 && again <= told);
    bench_destroy(&b);
}

// ---- nothing is lost ------------------------------------------------------------------------------------------------

static void deaf_incast(struct bench *b, enum alb_flow_control flow_control, uint64_t buffer_bytes)
{
    prepare_deaf(b, 512 * KB);
    b->config.switches.flow_control = flow_control;
    b->config.switches.buffer_bytes = buffer_bytes;
    b->config.switches.alpha_16ths = 2;
    bench_create(b);
    bench_incast(b, 15, 1024 * KB);
    bench_run(b, 15);
}

static void without_flow_control__an_incast_is_dropped(void **state)
{
    struct bench b;
    deaf_incast(&b, ALB_FLOW_CONTROL_NONE, 1500000);
    assert_true(bench_totals(&b).dropped > 0);
    bench_destroy(&b);
}

static void pfc__drops_nothing(void **state)
{
    struct bench b;
    deaf_incast(&b, ALB_FLOW_CONTROL_PFC, 1500000);
    struct alb_cluster_switch_stats stats = stats_of(&b, SWITCH);
    struct alb_cluster_link_stats link;
    assert_int_equal(bench_totals(&b).dropped, 0);
    assert_true(stats.pauses_sent > 0 && stats.headroom_bytes_peak > 0);
    assert_int_equal(stats.buffered_bytes, 0);
    alb_cluster_link_stats(b.cluster, 2 * 5, &link); // up from host 5
    assert_true(link.pauses > 0 && link.paused > ALB_SIM_US(10));
    bench_destroy(&b);
}

struct two_senders {
    alb_sim_time took;
    uint64_t pauses;
};

// More than the link to their receiver carries, through ports that hold 50 KB of each.
static struct two_senders two_senders(enum alb_flow_control flow_control, uint64_t xon_gap_bytes)
{
    struct bench b;
    prepare_deaf(&b, 512 * KB);
    b.config.switches.flow_control = flow_control;
    b.config.switches.buffer_bytes = 2000000;
    b.config.switches.pfc_xoff_bytes = flow_control == ALB_FLOW_CONTROL_PFC ? 50000 : 0;
    b.config.switches.pfc_xon_gap_bytes = xon_gap_bytes;
    bench_create(&b);
    bench_incast(&b, 2, 4096 * KB);
    bench_run(&b, 2);
    struct two_senders seen = {.took = b.last_at, .pauses = stats_of(&b, SWITCH).pauses_sent};
    bench_destroy(&b);
    return seen;
}

// What is queued when the feeders are told to go on lasts until their packets come: the link is never idle.
static void pfc__goes_on_before_the_queue_is_empty(void **state)
{
    struct two_senders credits = two_senders(ALB_FLOW_CONTROL_CREDITS, 0);
    struct two_senders pfc = two_senders(ALB_FLOW_CONTROL_PFC, 8400);
    assert_in_range(pfc.took, credits.took * 99 / 100, credits.took * 101 / 100);
}

static void pfc__a_wider_gap_pauses_less_often(void **state)
{
    struct two_senders narrow = two_senders(ALB_FLOW_CONTROL_PFC, 4200);
    struct two_senders wide = two_senders(ALB_FLOW_CONTROL_PFC, 25000);
    assert_true(narrow.pauses > wide.pauses * 5 / 4);
}

// Fifteen senders at one leaf, and the receiver at another: the spine's pauses reach the leaf, the leaf's the hosts.
static void pfc__pauses_propagate(void **state)
{
    struct bench b;
    prepare_deaf(&b, 512 * KB);
    b.spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    b.spec.leaves = 2;
    b.spec.spines = 1;
    b.spec.core_bits_per_s = 400000000000;
    b.config.switches.flow_control = ALB_FLOW_CONTROL_PFC;
    b.config.switches.buffer_bytes = 3000000;
    b.config.switches.alpha_16ths = 2;
    bench_create(&b);
    for (uint32_t i = 16; i < 31; i++)
        bench_write(&b, i, 0, 1024 * KB);
    bench_run(&b, 15);
    assert_int_equal(bench_totals(&b).dropped, 0);
    assert_true(stats_of(&b, 32).pauses_sent > 0); // the receiver's leaf
    assert_true(stats_of(&b, 34).pauses_sent > 0); // the spine
    assert_true(stats_of(&b, 33).pauses_sent > 0); // the senders' leaf
    bench_destroy(&b);
}

// What a paused cable holds when it dies is lost in it: it holds up nothing behind it.
static void pfc__ends_with_the_cable(void **state)
{
    struct bench b;
    prepare_deaf(&b, 512 * KB);
    b.spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    b.spec.leaves = 2;
    b.spec.spines = 1;
    b.config.switches.flow_control = ALB_FLOW_CONTROL_PFC;
    b.config.switches.buffer_bytes = 3000000;
    b.config.switches.alpha_16ths = 2;
    bench_create(&b);
    uint32_t receiver = bench_cable(&b, "h0-l0"), core = bench_cable(&b, "l1-s0");
    struct alb_cluster_fault pause = {0, receiver, {true, true}, ALB_FAULT_PAUSE, 0, false};
    struct alb_cluster_fault death = {ALB_SIM_US(300), core, {true, true}, ALB_FAULT_DEATH, ALB_SIM_US(1), false};
    assert_int_equal(alb_cluster_fault(b.cluster, &pause), 0);
    assert_int_equal(alb_cluster_fault(b.cluster, &death), 0);
    for (uint32_t i = 16; i < 31; i++)
        bench_write(&b, i, 0, 1024 * KB);
    alb_cluster_run(b.cluster, ALB_SIM_US(299), UINT64_MAX);
    assert_true(stats_of(&b, 34).pauses_sent > 0 &&
                stats_of(&b, 33).buffered_bytes > 0); // the spine, the senders' leaf
    alb_cluster_run(b.cluster, ALB_SIM_US(600), UINT64_MAX);
    assert_int_equal(stats_of(&b, 33).buffered_bytes, 0);
    bench_destroy(&b);
}

static void pfc__too_little_headroom_drops(void **state)
{
    struct bench b;
    prepare_deaf(&b, 512 * KB);
    b.config.switches.flow_control = ALB_FLOW_CONTROL_PFC;
    b.config.switches.buffer_bytes = 1500000;
    b.config.switches.alpha_16ths = 2;
    b.config.switches.pfc_headroom_bytes = 5000;
    bench_create(&b);
    bench_incast(&b, 15, 1024 * KB);
    bench_run(&b, 15);
    assert_true(bench_totals(&b).dropped > 0);
    bench_destroy(&b);
}

static void credits__never_overflow(void **state)
{
    struct bench b;
    prepare_deaf(&b, 512 * KB);
    b.config.switches.flow_control = ALB_FLOW_CONTROL_CREDITS;
    b.config.switches.credit_bytes = 30000;
    bench_create(&b);
    bench_incast(&b, 15, 1024 * KB);
    bench_run(&b, 15);
    assert_int_equal(bench_totals(&b).dropped, 0);
    assert_in_range(stats_of(&b, SWITCH).buffered_bytes_peak, 15 * 20000, 15 * 30000);
    bench_destroy(&b);
}

static void credits__lost_packets_give_theirs_back(void **state)
{
    struct bench b;
    prepare_deaf(&b, 128 * KB);
    b.config.switches.flow_control = ALB_FLOW_CONTROL_CREDITS;
    b.config.switches.credit_bytes = 60000;
    bench_create(&b);
    struct alb_cluster_fault fault = {.cable = 1, .ways = {true, true}, .kind = ALB_FAULT_LOSS, .value = 10000000};
    assert_int_equal(alb_cluster_fault(b.cluster, &fault), 0);
    bench_write(&b, 1, 0, 8192 * KB);
    bench_run(&b, 1);
    assert_true(bench_totals(&b).lost > 10);
    bench_destroy(&b);
}

static void create__contradictions_are_refused(void **state)
{
    struct bench b;
    char error[ALB_TOPOLOGY_ERROR_MAX];
    bench_prepare(&b, "csa");
    assert_true(alb_topology_build(&b.topology, &b.spec, error));
    b.config.switches.flow_control = ALB_FLOW_CONTROL_PFC;
    b.config.switches.buffer_bytes = 100000; // less than 16 headrooms
    assert_int_not_equal(alb_cluster_create(&b.config, &b.topology, &b.cluster), 0);
    b.config.switches.buffer_bytes = 0;
    b.config.switches.trims = true;
    assert_int_not_equal(alb_cluster_create(&b.config, &b.topology, &b.cluster), 0);
    alb_topology_free(&b.topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ecmp__a_flow_stays_on_its_way),
        cmocka_unit_test(ecmp__flows_spread),
        cmocka_unit_test(spray__a_flow_goes_all_ways_evenly),
        cmocka_unit_test(buffer__dynamic_threshold_leaves_room_for_others),
        cmocka_unit_test(buffer__is_kept_count_of_where_ports_are_many),
        cmocka_unit_test(buffer__without_end_its_peak_is_what_the_longest_queues_hold),
        cmocka_unit_test(buffer__two_busy_ports_share),
        cmocka_unit_test(marks__between_min_and_max_by_chance),
        cmocka_unit_test(trim__payload_goes_and_headers_arrive),
        cmocka_unit_test(trim__a_damaged_header_is_not_believed),
        cmocka_unit_test(trim__what_is_cut_off_goes_again_by_that_alone),
        cmocka_unit_test(trim__costs_about_a_round_trip),
        cmocka_unit_test(trim__forged_hints_do_no_harm),
        cmocka_unit_test(without_flow_control__an_incast_is_dropped),
        cmocka_unit_test(pfc__drops_nothing),
        cmocka_unit_test(pfc__goes_on_before_the_queue_is_empty),
        cmocka_unit_test(pfc__a_wider_gap_pauses_less_often),
        cmocka_unit_test(pfc__pauses_propagate),
        cmocka_unit_test(pfc__ends_with_the_cable),
        cmocka_unit_test(pfc__too_little_headroom_drops),
        cmocka_unit_test(credits__never_overflow),
        cmocka_unit_test(credits__lost_packets_give_theirs_back),
        cmocka_unit_test(create__contradictions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
