// SPDX-License-Identifier: BSD-2-Clause
// The window toward a peer: never more in flight than it allows, shared by many queue pairs, none of which starves; and
// the host as a whole: the same trace twice, captures and traces that others can read.
#include "world.h"

#include "wire/pcap.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    KB = 1024,
    QPS = 8,
};

// Follows what is in flight from A to B by what was sent and what was acknowledged on the way.
struct watch {
    struct world *world;
    uint64_t inflight_peak;
};

static void watch(struct alb_sim_host *host, alb_sim_time now)
{
    struct watch *w = host->user;
    uint64_t sent = host->stats.sum.counter[ALB_STAT_sent_bytes];
    uint64_t there = w->world->b.host->stats.sum.counter[ALB_STAT_rcvd_bytes];
    w->inflight_peak = ALB_MAX(w->inflight_peak, sent - there);
}

static void bounded(const char *congestion, uint32_t window_bytes)
{
    struct options options;
    options_default(&options);
    options.qps = QPS;
    struct alb_engine_config *engine = &options.pair.host[ALB_SIM_A].engine;
    engine->congestion = congestion;
    engine->window_min_bytes = engine->window_start_bytes = engine->window_max_bytes = window_bytes;
    struct world *w = world_new(&options);
    struct watch watched = {.world = w};
    w->a.host->user = &watched;
    w->a.host->after = watch;
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t q = 0; q < QPS; q++)
            stage_on(w, &w->a, w->a.qps[q], (struct work){ALB_WR_RDMA_WRITE, q * 10 + i, 0, 64 * KB, 128 * KB});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    assert_true(watched.inflight_peak <= window_bytes);
    assert_true(watched.inflight_peak > window_bytes / 2);
    uint32_t done = 0;
    for (const struct alb_wc *wc; (wc = alb_cq_peek(w->a.cq)); alb_cq_pop(w->a.cq), done++)
        assert_int_equal(wc->status, ALB_WC_SUCCESS);
    assert_int_equal(done, 4 * QPS);
    expect_copied(&w->a, 0, &w->b, 128 * KB, 64 * KB);
    assert_int_equal(stat(&w->a, ALB_STAT_retransmitted_pkts), 0);
    world_free(w);
}

static void window__bounds_what_is_in_flight(void **state)
{
    bounded("aimd", 64 * KB);
    bounded("fixed", 16 * KB);
    bounded("fixed", 3 * KB);
}

static void window__is_shared_fairly(void **state)
{
    struct options options;
    options_default(&options);
    options.qps = QPS;
    options.pair.host[ALB_SIM_A].engine.window_max_bytes = 64 * KB;
    options.pair.out[ALB_SIM_A].bits_per_s = 10000000000;
    struct world *w = world_new(&options);
    for (uint32_t q = 0; q < QPS; q++)
        for (uint32_t i = 0; i < 50; i++)
            stage_on(w, &w->a, w->a.qps[q], (struct work){ALB_WR_RDMA_WRITE, q, 0, 16 * KB, 128 * KB});
    alb_sim_host_poke(w->a.host);
    uint32_t done[QPS] = {0}, total = 0;
    while (total < 25 * QPS) { // half of the work
        run_for(w, ALB_SIM_US(10));
        for (const struct alb_wc *wc; (wc = alb_cq_peek(w->a.cq)); alb_cq_pop(w->a.cq), total++)
            done[wc->wr_id]++;
    }
    for (uint32_t q = 0; q < QPS; q++)
        assert_in_range(done[q], 22, 28);
    run_idle(w);
    world_free(w);
}

static void window__reads_are_bounded_by_their_answers(void **state)
{
    struct options options;
    options_default(&options);
    struct alb_engine_config *engine = &options.pair.host[ALB_SIM_A].engine;
    engine->window_min_bytes = engine->window_start_bytes = engine->window_max_bytes = 16 * KB;
    struct world *w = world_new(&options);
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 1, 0, 100 * KB, 128 * KB});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_copied(&w->b, 128 * KB, &w->a, 0, 100 * KB);
    uint32_t asked = 0;
    for (uint32_t i = 0; i < w->a.log_count; i++) {
        assert_int_equal(w->a.log[i].roce.opcode, ALB_RC_READ_REQUEST);
        assert_true(w->a.log[i].roce.length <= 16 * KB);
        asked += w->a.log[i].roce.length;
    }
    assert_int_equal(asked, 100 * KB);
    world_free(w);
}

static void window__survives_a_small_queue(void **state)
{
    struct options options;
    options_default(&options);
    options.qps = QPS;
    options.pair.out[ALB_SIM_A] =
        (struct alb_sim_link_config){.bits_per_s = 10000000000, .delay = ALB_SIM_US(5), .queue_bytes_max = 12000};
    options.pair.host[ALB_SIM_A].ahead_bytes = 0; // all at once into the small queue
    struct world *w = world_new(&options);
    for (uint32_t q = 0; q < QPS; q++)
        for (uint32_t i = 0; i < 8; i++)
            stage_on(w, &w->a, w->a.qps[q], (struct work){ALB_WR_RDMA_WRITE, q, 0, 64 * KB, 128 * KB});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    assert_true(w->pair.out[ALB_SIM_A].stats.overflowed > 0);
    uint32_t done = 0;
    for (const struct alb_wc *wc; (wc = alb_cq_peek(w->a.cq)); alb_cq_pop(w->a.cq), done++)
        assert_int_equal(wc->status, ALB_WC_SUCCESS);
    assert_int_equal(done, 8 * QPS);
    world_free(w);
}

// What waits for the window is not under way, so its silence costs no retry.
static void window__waiting_costs_no_retry(void **state)
{
    struct options options;
    options_default(&options);
    options.qps = 2;
    options.timeout = 10; // 4 ms
    struct alb_engine_config *engine = &options.pair.host[A].engine;
    engine->congestion = "fixed";
    engine->window_min_bytes = engine->window_start_bytes = engine->window_max_bytes = KB + 64; // one packet
    struct world *w = world_new(&options);
    struct alb_qp_attr slow = {.state = ALB_QPS_SQD, .timeout = 18}; // 1 s
    assert_int_equal(alb_qp_modify(w->a.qps[1], &slow, ALB_QP_STATE, 0), 0);
    assert_int_equal(alb_qp_modify(w->a.qps[1], &slow, ALB_QP_TIMEOUT, 0), 0);
    slow.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(w->a.qps[1], &slow, ALB_QP_STATE, 0), 0);
    on_way_to_b(w, (struct alb_sim_rule){.times = 2, .action = ALB_SIM_DROP});
    post_on(w, &w->a, w->a.qps[0], (struct work){ALB_WR_RDMA_WRITE, 1, 0, KB, 64 * KB});
    post_on(w, &w->a, w->a.qps[1], (struct work){ALB_WR_RDMA_WRITE, 2, 0, KB, 64 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS); // when the other one has timed out
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    world_free(w);
}

static void marks__are_counted_and_shrink_the_window(void **state)
{
    struct options options;
    options_default(&options);
    options.pair.host[ALB_SIM_A].engine.window_start_bytes = 256 * KB;
    struct world *w = world_new(&options);
    on_way_to_a(w, (struct alb_sim_rule){ALWAYS, .action = ALB_SIM_MARK});
    for (uint32_t i = 0; i < 16; i++)
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, i, 0, 64 * KB, 128 * KB});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    assert_true(stat(&w->a, ALB_STAT_ecn_marked_pkts) > 0);
    assert_true(stat(&w->a, ALB_STAT_window_stalls) > 0);
    world_free(w);
}

// ---- the host -------------------------------------------------------------------------------------------------------

static uint64_t hash_of(uint64_t seed)
{
    struct options options;
    options_default(&options);
    options.pair.seed = seed;
    char error[ALB_FAULTS_ERROR_MAX];
    assert_true(alb_faults_parse("loss=5%,duplicate=2%,reorder=5%,delay=0..3us", &options.pair.out[ALB_SIM_A].faults,
                                 error, sizeof(error)));
    options.pair.host[ALB_SIM_A].engine.trace_records = 1024;
    struct world *w = world_new(&options);
    receive(&w->b, 9, 64 * KB, 64 * KB);
    post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 60 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    uint64_t hash = alb_sim_network_trace_hash(&w->pair.network);
    assert_int_equal(alb_engine_trace_lost(w->a.host->engine), 0);
    world_free(w);
    return hash;
}

static void seed__gives_the_same_trace_twice(void **state)
{
    assert_true(hash_of(1) != hash_of(2));
}

static void capture__holds_what_was_sent_and_received(void **state)
{
    static const char path[] = "/tmp/albedo-sim-capture-test.pcap";
    static uint8_t bytes[65536];
    struct alb_sim_capture capture;
    struct world *w = world_default();
    assert_int_equal(alb_sim_capture_open(&capture, path), 0);
    w->a.host->capture = &capture;
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 4 * KB, 64 * KB});
    run_idle(w);
    assert_int_equal(alb_sim_capture_close(&capture), 0);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    remove(path);
    struct alb_pcap_reader reader;
    struct alb_pcap_packet packet;
    const uint8_t *payload;
    uint32_t payload_bytes, count = 0;
    assert_true(alb_pcap_reader_init(&reader, bytes, length));
    while (alb_pcap_next(&reader, &packet, &payload, &payload_bytes)) {
        assert_true(alb_addr_equals(&packet.source.addr, &(count == 4 ? &w->b : &w->a)->host->addr));
        assert_int_equal(packet.time, count == 4 ? 2000 : 0);
        assert_int_equal(packet.destination.port, ALB_ROCE_PORT);
        count++;
    }
    assert_int_equal(count, 5);
    world_free(w);
}

static void trace__is_written_as_lines(void **state)
{
    struct options options;
    options_default(&options);
    options.pair.host[ALB_SIM_A].engine.trace_records = 256;
    struct world *w = world_new(&options);
    char *text = NULL;
    size_t size = 0;
    w->a.host->trace = open_memstream(&text, &size);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 4 * KB, 64 * KB});
    run_idle(w);
    fclose(w->a.host->trace);
    uint32_t lines = 0;
    for (char *line = text; *line; line = strchr(line, '\n') + 1, lines++)
        assert_int_equal(line[0], '{');
    assert_true(lines >= 4 + 2); // the packets sent, the acknowledgement, the completion
    assert_non_null(strstr(text, "\"send\""));
    assert_non_null(strstr(text, "\"complete_send\""));
    free(text);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window__bounds_what_is_in_flight),
        cmocka_unit_test(window__is_shared_fairly),
        cmocka_unit_test(window__reads_are_bounded_by_their_answers),
        cmocka_unit_test(window__survives_a_small_queue),
        cmocka_unit_test(window__waiting_costs_no_retry),
        cmocka_unit_test(marks__are_counted_and_shrink_the_window),
        cmocka_unit_test(seed__gives_the_same_trace_twice),
        cmocka_unit_test(capture__holds_what_was_sent_and_received),
        cmocka_unit_test(trace__is_written_as_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
