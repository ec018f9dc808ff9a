// SPDX-License-Identifier: BSD-2-Clause
// Announced messages of which every packet is lost: nothing that came shows the gap, only the announcement does. Times
// are bounded in round trips.
#include "world.h"

#include <stdlib.h>

enum {
    KB = 1024,
    PAYLOAD_MAX = 1472,
    SEGMENT = 1404, // payload of a SEND's
    LENGTH_MAX = 16 * KB,
    TRIP_NS = 20000, // two delays
    MEMBERS = 4,
};

static struct world *w;

static int set_up(void **state)
{
    struct options options;
    world_transport = "csa";
    options_default(&options);
    options.path_payload_max = PAYLOAD_MAX;
    options.qps = MEMBERS;
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        options.pair.host[side].engine.path_max = 1;
        options.pair.host[side].engine.path = "single";
        options.pair.host[side].engine.congestion = "fixed";
        options.pair.out[side].bits_per_s = 10000000000;
        options.pair.out[side].delay = ALB_SIM_US(10);
    }
    w = world_new(&options);
    for (uint32_t i = 0; i < MEMBERS; i++) // every peer has been heard, and round trips are known
        for (uint32_t n = 0; n < 4; n++) {
            post_on(w, &w->a, w->a.qps[i], (struct work){ALB_WR_RDMA_WRITE, 1, 0, KB, 200 * KB});
            run_for(w, ALB_SIM_US(60));
            expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
        }
    return 0;
}

static int tear_down(void **state)
{
    world_free(w);
    return 0;
}

static void expect(uint32_t member, struct alb_expectation expectation)
{
    assert_int_equal(alb_qp_expect(w->b.qps[member], &expectation, alb_sim_host_now(w->b.host)), 0);
    alb_sim_host_poke(w->b.host);
}

static void lose_next_to(uint32_t member, uint32_t segments)
{
    on_way_to_b(w, (struct alb_sim_rule){.by = ALB_SIM_BY_FRAME | ALB_SIM_BY_QPN | ALB_SIM_BY_NEW,
                                         .frame = ALB_CSA_REQUEST,
                                         .qpn = alb_qp_number(w->b.qps[member]),
                                         .times = segments,
                                         .action = ALB_SIM_DROP});
}

static alb_time asked_after(uint32_t member, alb_time since)
{
    for (uint32_t n = 1; n <= frames_of(&w->b, ALB_CSA_REPORT); n++) {
        const struct sent_frame *frame = nth_frame(&w->b, ALB_CSA_REPORT, n);
        if (alb_sim_to_ns(frame->at) >= since && frame->qpn == alb_qp_number(w->a.qps[member]))
            return alb_sim_to_ns(frame->at) - since;
    }
    return ALB_TIME_NEVER;
}

// How long after it was sent a message is received of which every packet was lost at first.
static alb_time time_of_lost(uint32_t length, bool is_announced)
{
    struct alb_wc wc;
    uint32_t segments = (length + SEGMENT - 1) / SEGMENT;
    receive_on(&w->b, w->b.qps[0], 9, 64 * KB, LENGTH_MAX);
    alb_time posted = alb_sim_to_ns(now_of(w));
    if (is_announced)
        expect(0, (struct alb_expectation){.bytes = length});
    lose_next_to(0, segments);
    post(w, &w->a, (struct work){ALB_WR_SEND, 7, 0, length});
    run_idle(w);
    assert_true(alb_sim_script_is_done(alb_sim_link_script(&w->pair.out[A])));
    alb_sim_script_clear(alb_sim_link_script(&w->pair.out[A]));
    expect_wc(w->a.cq, 7, ALB_WC_SUCCESS);
    expect_wc_as(w->b.recv_cq, 9, ALB_WC_SUCCESS, &wc);
    expect_copied(&w->a, 0, &w->b, 64 * KB, length);
    return wc.timestamp - posted;
}

static void lost_whole__announced__received_within_two_round_trips(void **state)
{
    static const uint32_t lengths[] = {1, 64, KB, 5 * KB, LENGTH_MAX};
    for (uint32_t i = 0; i < ALB_COUNT(lengths); i++) {
        alb_time wire_ns = lengths[i] * 8 / 10 * 11 / 10; // headers too
        uint64_t probes = stat(&w->a, ALB_STAT_tail_probes), asks = stat(&w->b, ALB_STAT_expected_asks);
        assert_in_range(time_of_lost(lengths[i], true), TRIP_NS, 2 * (TRIP_NS + wire_ns) + 1000);
        assert_int_equal(stat(&w->a, ALB_STAT_tail_probes), probes);
        assert_int_equal(stat(&w->b, ALB_STAT_expected_asks), asks + 1);
    }
}

static void lost_whole__not_announced__takes_a_probe(void **state)
{
    uint64_t probes = stat(&w->a, ALB_STAT_tail_probes);
    assert_in_range(time_of_lost(5 * KB, false), 2 * TRIP_NS + 5 * KB, 3 * (TRIP_NS + 5 * KB));
    assert_true(stat(&w->a, ALB_STAT_tail_probes) > probes);
}

static void second_of_two_lost_whole__asked_for(void **state)
{
    uint64_t probes = stat(&w->a, ALB_STAT_tail_probes);
    expect(0, (struct alb_expectation){.messages = 2});
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, KB, 128 * KB});
    run_for(w, ALB_SIM_US(12));
    alb_time posted = alb_sim_to_ns(now_of(w));
    lose_next_to(0, 1);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 2, 0, KB, 130 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    assert_int_equal(stat(&w->a, ALB_STAT_tail_probes), probes);
    assert_true(asked_after(0, posted) < 2 * TRIP_NS);
}

static void nothing_lost__nothing_asked(void **state)
{
    uint64_t asks = stat(&w->b, ALB_STAT_expected_asks), again = w->a.segments_again;
    for (uint32_t step = 0; step < 20; step++) {
        expect(0, (struct alb_expectation){.bytes = 8 * KB, .messages = 1, .group = 1, .step = step, .steps = 20});
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, step, 0, 8 * KB, 128 * KB});
        run_for(w, ALB_SIM_US(60));
        expect_wc(w->a.cq, step, ALB_WC_SUCCESS);
    }
    run_idle(w);
    assert_int_equal(stat(&w->b, ALB_STAT_expected_asks), asks);
    assert_int_equal(w->a.segments_again, again);
}

static void nothing_sent__asks_become_rare_and_end(void **state)
{
    uint64_t asks = stat(&w->b, ALB_STAT_expected_asks), again = w->a.segments_again;
    alb_time announced = alb_sim_to_ns(now_of(w));
    expect(0, (struct alb_expectation){.messages = 1});
    run_for(w, ALB_SIM_US(9)); // less than half a round trip
    assert_int_equal(stat(&w->b, ALB_STAT_expected_asks), asks);
    run_for(w, ALB_SIM_US(90));
    assert_in_range(stat(&w->b, ALB_STAT_expected_asks), asks + 2, asks + 4);
    run_idle(w);
    assert_int_equal(stat(&w->b, ALB_STAT_expected_asks), asks + 8);
    assert_in_range(asked_after(0, announced), TRIP_NS / 2, TRIP_NS);
    // A late sender is served as if nothing had been announced, and nothing was sent for the questions.
    assert_int_equal(w->a.segments_again, again);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 5, 0, KB, 128 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 5, ALB_WC_SUCCESS);
    assert_int_equal(stat(&w->b, ALB_STAT_expected_asks), asks + 8);
}

static void announce_all(uint32_t group)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        expect(i, (struct alb_expectation){.bytes = KB, .group = group, .step = 0, .steps = 1});
}

static alb_time asked_of_last(bool others_come)
{
    alb_time announced = alb_sim_to_ns(now_of(w));
    announce_all(1 + others_come);
    for (uint32_t i = 0; i < MEMBERS - 1 && others_come; i++)
        post_on(w, &w->a, w->a.qps[i], (struct work){ALB_WR_RDMA_WRITE, 1, 0, KB, 128 * KB});
    run_for(w, ALB_SIM_US(100));
    for (uint32_t i = 0; i < MEMBERS - 1 && others_come; i++)
        expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    alb_time asked = asked_after(MEMBERS - 1, announced);
    expect(MEMBERS - 1, (struct alb_expectation){0});
    run_idle(w);
    return asked;
}

static void group__who_holds_it_back_is_asked_for_sooner(void **state)
{
    alb_time patient = asked_of_last(false), pressed = asked_of_last(true);
    assert_in_range(pressed, TRIP_NS / 2, TRIP_NS);
    assert_true(patient >= pressed + TRIP_NS);
}

static void group__who_holds_it_back_is_asked_for_first(void **state)
{
    // 0 is not of the group, 3 holds 1 and 2 back; both are due at the same moment.
    uint32_t reports = frames_of(&w->b, ALB_CSA_REPORT);
    for (uint32_t i = 1; i < MEMBERS; i++)
        expect(i, (struct alb_expectation){.bytes = KB, .group = 1, .step = 0, .steps = 1});
    expect(0, (struct alb_expectation){.bytes = KB});
    for (uint32_t i = 1; i < MEMBERS - 1; i++)
        post_on(w, &w->a, w->a.qps[i], (struct work){ALB_WR_RDMA_WRITE, 1, 0, KB, 128 * KB});
    run_for(w, ALB_SIM_US(30));
    uint32_t place[MEMBERS] = {0};
    for (uint32_t n = reports + 1; n <= frames_of(&w->b, ALB_CSA_REPORT); n++)
        for (uint32_t i = 0; i < MEMBERS; i++)
            if (nth_frame(&w->b, ALB_CSA_REPORT, n)->qpn == alb_qp_number(w->a.qps[i]) && place[i] == 0)
                place[i] = n;
    assert_true(place[0] > 0 && place[3] > 0);
    assert_true(place[3] < place[0]);
    expect(0, (struct alb_expectation){0});
    expect(3, (struct alb_expectation){0});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(lost_whole__announced__received_within_two_round_trips),
        CASE(lost_whole__not_announced__takes_a_probe),
        CASE(second_of_two_lost_whole__asked_for),
        CASE(nothing_lost__nothing_asked),
        CASE(nothing_sent__asks_become_rare_and_end),
        CASE(group__who_holds_it_back_is_asked_for_sooner),
        CASE(group__who_holds_it_back_is_asked_for_first),
    };
    return cmocka_run_group_tests_name("csa_expect", tests, NULL, NULL);
}
