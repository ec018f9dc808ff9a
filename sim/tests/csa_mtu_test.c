// SPDX-License-Identifier: BSD-2-Clause
// How long packets may be: found where it is unknown, kept where the network says it, given up where long packets
// vanish, and messages that were cut longer get through all the same.
#include "world.h"

#include "engine/impl.h"

enum {
    KB = 1024,
    ENGINE_MAX = 9000, // what the engines would send
    USUAL = 1472,
};

static struct world *w;

struct way {
    uint32_t told, carried;
    bool is_trusted; // what is told is taken for what is carried
    bool is_ipv6;
};

static int make(const struct way *way)
{
    struct options options;
    struct alb_sim_pair_config addresses;
    world_transport = "csa";
    options_default(&options);
    alb_sim_pair_config_default(&addresses, way->is_ipv6);
    options.path_payload_max = way->told;
    options.pair.packet_bytes_max = ENGINE_MAX;
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        options.pair.host[side].addr = addresses.host[side].addr;
        options.pair.host[side].engine.path_max = 1;
        options.pair.host[side].engine.path = "single";
        options.pair.host[side].engine.congestion = "fixed";
        options.pair.host[side].engine.csa_payload_bytes = ENGINE_MAX;
        options.pair.host[side].engine.csa_trusts_routes = way->is_trusted;
        options.pair.out[side].bits_per_s = 10000000000;
        options.pair.out[side].delay = ALB_SIM_US(10);
        options.pair.out[side].payload_bytes_max = way->carried;
    }
    w = world_new(&options);
    return 0;
}

static int end(void **state)
{
    world_free(w);
    return 0;
}

static uint32_t size_of(const struct end *side)
{
    return alb_csa_of(side->qp)->assoc->payload_max;
}

static void carry(uint32_t bytes)
{
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
        alb_sim_link_set_payload_max(&w->pair.out[side], bytes);
}

// On the links of so many sides, A first.
static void lose(const char *spec, uint32_t sides)
{
    struct alb_faults_spec faults;
    char error[100];
    assert_true(alb_faults_parse(spec, &faults, error, sizeof(error)));
    for (uint32_t side = 0; side < sides; side++)
        alb_sim_link_set_faults(&w->pair.out[side], &faults, 7 + side);
    w->a.is_log_closed = w->b.is_log_closed = true;
}

static void write_and_wait(uint32_t length)
{
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, length, 128 * KB});
    run_for(w, ALB_SIM_US(3000));
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 128 * KB, length);
}

static uint32_t largest_segment(const struct end *side, uint32_t from)
{
    uint32_t most = 0;
    for (uint32_t i = from; i < side->frame_count; i++)
        if (side->frames[i].type == ALB_CSA_REQUEST)
            most = ALB_MAX(most, side->frames[i].payload_bytes);
    return most;
}

static void unknown__begins_with_what_is_usual_and_finds_more(void **state)
{
    static const uint32_t carried[] = {ENGINE_MAX, 8972, 5000, 4052, 1500, USUAL};
    for (uint32_t i = 0; i < ALB_COUNT(carried); i++) {
        make(&(struct way){.carried = carried[i]});
        assert_int_equal(size_of(&w->a), USUAL);
        write_and_wait(32 * KB);
        write_and_wait(8);
        write_and_wait(8);
        assert_in_range(size_of(&w->a), carried[i] - 32, carried[i]);
        assert_int_equal(w->a.segments_again, 0); // it cost no segment
        assert_int_equal(stat(&w->a, ALB_STAT_path_mtu_drops), 0);
        uint32_t from = w->a.frame_count;
        write_and_wait(32 * KB);
        assert_in_range(largest_segment(&w->a, from), size_of(&w->a) - 100, size_of(&w->a));
        end(NULL);
    }
}

static void told_and_trusted__nothing_is_tried(void **state)
{
    make(&(struct way){.told = 8972, .carried = 8972, .is_trusted = true});
    assert_int_equal(size_of(&w->a), 8972);
    write_and_wait(32 * KB);
    run_idle(w);
    assert_int_equal(frames_of(&w->a, ALB_CSA_PING), 0);
    assert_int_equal(size_of(&w->a), 8972);
}

static void mtu__tries_end_and_come_again(void **state)
{
    make(&(struct way){.carried = 2000});
    for (uint32_t i = 0; i < 4; i++)
        write_and_wait(8);
    uint32_t pings = frames_of(&w->a, ALB_CSA_PING), size = size_of(&w->a);
    assert_in_range(size, 1968, 2000);
    carry(8972);
    for (uint32_t i = 0; i < 9; i++) {
        write_and_wait(8);
        run_for(w, ALB_SIM_MS(500));
    }
    assert_int_equal(frames_of(&w->a, ALB_CSA_PING), pings);
    for (uint32_t i = 0; i < 20; i++) {
        write_and_wait(8);
        run_for(w, ALB_SIM_MS(500));
    }
    assert_int_equal(size_of(&w->a), 8972);
}

static void told_less__what_is_under_way_goes_in_fragments(void **state)
{
    const struct alb_endpoint peer = {w->b.host->addr, w->b.host->port};
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 100 * KB, 128 * KB});
    run_for(w, ALB_SIM_US(20));
    carry(1400);
    alb_engine_path_mtu(w->a.host->engine, &peer, 1400, alb_sim_host_now(w->a.host));
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 128 * KB, 100 * KB);
    assert_int_equal(stat(&w->a, ALB_STAT_path_mtu_drops), 0);
    uint64_t lost = w->pair.out[A].stats.too_long;
    uint32_t from = w->a.frame_count;
    write_and_wait(32 * KB);
    assert_in_range(largest_segment(&w->a, from), 1300, 1400);
    assert_int_equal(w->pair.out[A].stats.too_long, lost);
}

// What both have found.
static int make_8972(void **state)
{
    make(&(struct way){.told = 8972, .carried = 8972});
    alb_csa_of(w->a.qp)->assoc->payload_max = 8972;
    alb_csa_of(w->b.qp)->assoc->payload_max = 8972;
    return 0;
}

static void long_packets_vanish__found_out_and_message_completes(void **state)
{
    write_and_wait(8);
    carry(1400);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 100 * KB, 128 * KB});
    run_for(w, ALB_SIM_MS(150)); // a tenth of a second, and what led to it
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 128 * KB, 100 * KB);
    assert_int_equal(stat(&w->a, ALB_STAT_path_mtu_drops), 1);
    run_for(w, ALB_SIM_MS(5));
    assert_in_range(size_of(&w->a), 1368, 1400);
    uint64_t again = w->a.segments_again;
    write_and_wait(32 * KB);
    assert_int_equal(w->a.segments_again, again);
}

static void first_packets_vanish__found_out(void **state)
{
    carry(1400); // before anything has been received
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 100 * KB, 128 * KB});
    run_for(w, ALB_SIM_MS(250));
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 128 * KB, 100 * KB);
    assert_int_equal(stat(&w->a, ALB_STAT_path_mtu_drops), 1);
}

static void long_answers_vanish__found_out_by_who_answers(void **state)
{
    write_and_wait(8);
    carry(1400);
    post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 1, 0, 100 * KB, 128 * KB});
    run_for(w, ALB_SIM_MS(150));
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_copied(&w->b, 128 * KB, &w->a, 0, 100 * KB);
    assert_int_equal(stat(&w->b, ALB_STAT_path_mtu_drops), 1);
}

static void gathered_packets_vanish__found_out(void **state)
{
    write_and_wait(8);
    carry(1400);
    for (uint32_t i = 0; i < 60; i++)
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, i, 256 * i, 200, 128 * KB + 256 * i});
    alb_sim_host_poke(w->a.host);
    run_for(w, ALB_SIM_MS(10));
    for (uint32_t i = 0; i < 60; i++) {
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
        expect_copied(&w->a, 256 * i, &w->b, 128 * KB + 256 * i, 200);
    }
}

static void nothing_arrives__says_nothing_of_sizes(void **state)
{
    write_and_wait(8);
    alb_sim_pair_set_partition(&w->pair, true);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 100 * KB, 128 * KB});
    run_for(w, ALB_SIM_MS(20));
    assert_true(frames_of(&w->a, ALB_CSA_PING) > 0); // it was suspected
    alb_sim_pair_set_partition(&w->pair, false);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    assert_int_equal(size_of(&w->a), 8972);
    assert_int_equal(stat(&w->a, ALB_STAT_path_mtu_drops), 0);
}

static void random_losses__size_stays(void **state)
{
    lose("loss=5%", ALB_SIM_SIDES);
    for (uint32_t i = 0; i < 200; i++) {
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 100 * KB, 128 * KB});
        run_for(w, ALB_SIM_MS(2));
        expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    }
    assert_int_equal(size_of(&w->a), 8972);
    assert_int_equal(stat(&w->a, ALB_STAT_path_mtu_drops), 0);
}

// ---- where nobody cuts what is too long -----------------------------------------------------------------------------

// Without a word, and for good, whatever IP might do: as routers of IPv6 do whose messages are filtered.
static void narrow(uint32_t bytes)
{
    carry(bytes);
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
        w->pair.out[side].config.never_cuts = true;
}

static void connect_anew(void)
{
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(w->a.qp, &attr, ALB_QP_STATE, now_of(w)), 0);
    assert_int_equal(alb_qp_modify(w->b.qp, &attr, ALB_QP_STATE, now_of(w)), 0);
    connect_qps(w, w->a.qp, w->b.qp);
}

// Segments of its size have gone, so that it cannot end; those of the next connection are short from the beginning.
static void never_cut__message_under_way_fails_and_the_next_arrives(void **state)
{
    write_and_wait(8);
    narrow(1400);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 100 * KB, 128 * KB});
    run_for(w, ALB_SIM_MS(700)); // eight timeouts of the queue pair
    expect_wc(w->a.cq, 1, ALB_WC_RETRY_EXC_ERR);
    connect_anew();
    assert_in_range(size_of(&w->a), 1232, 1400);
    write_and_wait(100 * KB);
    assert_int_equal(stat(&w->a, ALB_STAT_path_mtu_drops), 1);
}

static void never_cut__one_segment_fails_too(void **state)
{
    write_and_wait(8);
    narrow(1400);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 4 * KB, 128 * KB});
    run_for(w, ALB_SIM_MS(700));
    expect_wc(w->a.cq, 1, ALB_WC_RETRY_EXC_ERR);
}

// Who asked is told: it could not know, and might wait for ever.
static void never_cut__answer_under_way_is_refused(void **state)
{
    write_and_wait(8);
    narrow(1400);
    post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 1, 0, 100 * KB, 128 * KB});
    run_for(w, ALB_SIM_MS(400));
    expect_wc(w->a.cq, 1, ALB_WC_REM_OP_ERR);
    assert_int_equal(alb_qp_state_of(w->b.qp), ALB_QPS_ERR);
    connect_anew();
    post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 2, 0, 100 * KB, 128 * KB});
    run_for(w, ALB_SIM_MS(3));
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_copied(&w->b, 128 * KB, &w->a, 0, 100 * KB);
}

// Losses alone do not look like that, however many there are.
static void never_cut__losses_of_short_segments_end_nothing(void **state)
{
    write_and_wait(8);
    lose("loss=80%", 1);
    for (uint32_t i = 0; i < 20; i++) {
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 100 * KB, 128 * KB});
        run_for(w, ALB_SIM_MS(1000));
        expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    }
    assert_int_equal(stat(&w->a, ALB_STAT_path_mtu_drops), 0); // PINGs are lost as well, but not all that is as long
}

// What was found was wrong, or is no longer so.
static void never_cut__losses_of_segments_that_only_seem_too_long_end_nothing(void **state)
{
    write_and_wait(8);
    lose("loss=50%", ALB_SIM_SIDES);
    for (uint32_t i = 0; i < 60; i++) {
        struct alb_assoc *assoc = alb_csa_of(w->a.qp)->assoc;
        assoc->payload_max = 8972;
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 100 * KB, 128 * KB});
        run_for(w, ALB_SIM_US(5));
        assoc->payload_max = 1232;
        run_for(w, ALB_SIM_MS(2000));
        expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    }
}

// ---- where the routes' word has to be tried -------------------------------------------------------------------------

static void told__begins_with_what_is_usual_and_finds_what_is_carried(void **state)
{
    static const struct way ways[] = {
        {8972, 8972, false, false}, {8972, 4052, false, false}, {8972, 1472, false, false}, {1400, 1400, false, false},
        {8952, 8952, false, true},  {8952, 1452, false, true},  {8952, 1400, false, true},  {8952, 1232, false, true},
    };
    for (uint32_t i = 0; i < ALB_COUNT(ways); i++) {
        uint32_t usual = ways[i].is_ipv6 ? 1232 : USUAL, carried = ways[i].carried;
        make(&ways[i]);
        assert_int_equal(size_of(&w->a), ALB_MIN(ways[i].told, usual));
        write_and_wait(100 * KB);
        write_and_wait(8);
        assert_in_range(size_of(&w->a), carried - 32, carried);
        assert_int_equal(w->a.segments_again, 0);
        assert_int_equal(stat(&w->a, ALB_STAT_path_mtu_drops), 0);
        end(NULL);
    }
}

static void told__first_messages_arrive_where_no_refusal_does(void **state)
{
    for (uint32_t is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
        make(&(struct way){8952, 8952, false, is_ipv6});
        narrow(1472 - 72 * is_ipv6);
        write_and_wait(100 * KB);
        post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 2, 0, 100 * KB, 128 * KB});
        run_for(w, ALB_SIM_MS(3));
        expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
        end(NULL);
    }
}

static void told__next_association_begins_with_what_was_found(void **state)
{
    make(&(struct way){.told = 8972, .carried = 8972});
    write_and_wait(8);
    write_and_wait(8);
    assert_int_equal(size_of(&w->a), 8972);
    connect_anew();
    assert_int_equal(size_of(&w->a), 8972);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_8972, end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown__begins_with_what_is_usual_and_finds_more),
        cmocka_unit_test_teardown(told_and_trusted__nothing_is_tried, end),
        cmocka_unit_test_teardown(mtu__tries_end_and_come_again, end),
        CASE(told_less__what_is_under_way_goes_in_fragments),
        CASE(long_packets_vanish__found_out_and_message_completes),
        CASE(first_packets_vanish__found_out),
        CASE(long_answers_vanish__found_out_by_who_answers),
        CASE(gathered_packets_vanish__found_out),
        CASE(nothing_arrives__says_nothing_of_sizes),
        CASE(random_losses__size_stays),
        CASE(never_cut__message_under_way_fails_and_the_next_arrives),
        CASE(never_cut__one_segment_fails_too),
        CASE(never_cut__answer_under_way_is_refused),
        CASE(never_cut__losses_of_short_segments_end_nothing),
        CASE(never_cut__losses_of_segments_that_only_seem_too_long_end_nothing),
        cmocka_unit_test(told__begins_with_what_is_usual_and_finds_what_is_carried),
        cmocka_unit_test(told__first_messages_arrive_where_no_refusal_does),
        cmocka_unit_test_teardown(told__next_association_begins_with_what_was_found, end),
    };
    return cmocka_run_group_tests_name("csa_mtu", tests, NULL, NULL);
}
