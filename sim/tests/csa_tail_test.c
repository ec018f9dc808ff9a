// SPDX-License-Identifier: BSD-2-Clause
// CSA when the end of something is lost, where nothing comes behind it that would show the gap: the last segments, what
// is sent again, a report, an answer, everything. Times are bounded in round trips, and no timer of the sender's that
// stands for silence may have fired.
#include "world.h"

#include <stdlib.h>

enum {
    KB = 1024,
    PAYLOAD_MAX = 1472, // of UDP at an MTU of 1500
    LONG = 40 * KB,
    RULES_MAX = 10,
};

// What happens to one message, and when.
struct run {
    struct work work; // id and flags are ours
    struct alb_sim_rule to_b[RULES_MAX], to_a[RULES_MAX];
    uint32_t to_b_count, to_a_count;
    // Results, in ns.
    alb_time posted;
    alb_time first_sent, last_sent; // segments of the message, the first time
    alb_time received;              // it is whole at the end that it is for
    alb_time completed;
    alb_psn psn; // of its first segment
    uint32_t segments;
    uint32_t reports; // of B since it was posted
    uint64_t again;   // segments sent again by both
};

static alb_time ns(alb_sim_time at)
{
    return alb_sim_to_ns(at);
}

static struct world *new_world(void)
{
    struct options options;
    world_transport = "csa";
    options_default(&options);
    options.path_payload_max = PAYLOAD_MAX;
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++) {
        options.pair.host[side].engine.path_max = 1;
        options.pair.out[side].bits_per_s = 10000000000;
        options.pair.out[side].delay = ALB_SIM_US(50);
    }
    return world_new(&options);
}

// The association has seen round trips, and is at rest.
static void warm_up(struct world *w)
{
    for (uint32_t i = 0; i < 8; i++) {
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, i % 2 ? 16 * KB : 8, 200 * KB});
        run_for(w, ALB_SIM_US(300));
        expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    }
}

static bool takes_receive(enum alb_wr_opcode opcode)
{
    return opcode == ALB_WR_SEND || opcode == ALB_WR_RDMA_WRITE_WITH_IMM;
}

static enum alb_csa_type type_of(enum alb_wr_opcode opcode)
{
    return opcode == ALB_WR_RDMA_READ ? ALB_CSA_RESPONSE : ALB_CSA_REQUEST;
}

static void look_at_segments(struct run *run, const struct end *sender, alb_sim_time posted)
{
    run->segments = 0;
    for (uint32_t i = 0; i < sender->frame_count; i++) {
        const struct sent_frame *frame = &sender->frames[i];
        if (frame->at < posted || frame->type != type_of(run->work.opcode) || frame->is_again)
            continue;
        if (run->segments++ == 0) {
            run->first_sent = ns(frame->at);
            run->psn = frame->psn;
        }
        run->last_sent = ns(frame->at);
    }
}

static void do_run(struct run *run)
{
    struct world *w = new_world();
    struct alb_wc wc;
    warm_up(w);
    for (uint32_t i = 0; i < run->to_b_count; i++)
        on_way_to_b(w, run->to_b[i]);
    for (uint32_t i = 0; i < run->to_a_count; i++)
        on_way_to_a(w, run->to_a[i]);
    receive(&w->b, 9, 64 * KB, 64 * KB);
    alb_sim_time posted = now_of(w);
    uint64_t again = w->a.segments_again + w->b.segments_again;
    uint32_t reports = frames_of(&w->b, ALB_CSA_REPORT);
    run->posted = ns(posted);
    run->work.id = 7;
    run->work.to = 128 * KB;
    post(w, &w->a, run->work);
    run_idle(w);
    assert_true(alb_sim_script_is_done(alb_sim_link_script(&w->pair.out[A])));
    assert_true(alb_sim_script_is_done(alb_sim_link_script(&w->pair.out[B])));
    expect_wc_as(w->a.cq, 7, ALB_WC_SUCCESS, &wc);
    run->received = run->completed = wc.timestamp;
    if (takes_receive(run->work.opcode)) {
        expect_wc_as(w->b.recv_cq, 9, ALB_WC_SUCCESS, &wc);
        run->received = wc.timestamp;
    }
    expect_none(w->a.cq);
    expect_none(w->b.recv_cq);
    if (run->work.opcode == ALB_WR_SEND)
        expect_copied(&w->a, 0, &w->b, 64 * KB, run->work.length);
    if (run->work.opcode == ALB_WR_RDMA_READ)
        expect_copied(&w->b, 128 * KB, &w->a, 0, run->work.length);
    look_at_segments(run, run->work.opcode == ALB_WR_RDMA_READ ? &w->b : &w->a, posted);
    run->again = w->a.segments_again + w->b.segments_again - again;
    run->reports = frames_of(&w->b, ALB_CSA_REPORT) - reports;
    assert_int_equal(stat(&w->a, ALB_STAT_local_ack_timeout_err), 0);
    assert_int_equal(stat(&w->b, ALB_STAT_local_ack_timeout_err), 0);
    world_free(w);
}

static struct run run_of(struct work work)
{
    return (struct run){.work = work};
}

// A full segment there and its report back.
static alb_time round_trip_ns(void)
{
    struct run run = run_of((struct work){ALB_WR_RDMA_WRITE, .length = KB});
    do_run(&run);
    assert_in_range(run.completed - run.first_sent, 100000, 104000);
    return run.completed - run.first_sent;
}

static void drop_to_b(struct run *run, struct alb_sim_rule rule)
{
    rule.action = ALB_SIM_DROP;
    run->to_b[run->to_b_count++] = rule;
}

static void drop_to_a(struct run *run, struct alb_sim_rule rule)
{
    rule.action = ALB_SIM_DROP;
    run->to_a[run->to_a_count++] = rule;
}

static struct alb_sim_rule segment(const struct run *clean, uint32_t index, uint32_t new_or_again)
{
    return (struct alb_sim_rule){.by = ALB_SIM_BY_FRAME | ALB_SIM_BY_PSN | new_or_again,
                                 .frame = type_of(clean->work.opcode),
                                 .psn = alb_psn_add(clean->psn, (int32_t)index)};
}

// late may be so many half round trips behind expected.
static void assert_within(alb_time late, alb_time expected, uint32_t halves)
{
    static alb_time round_trip;
    if (!round_trip)
        round_trip = round_trip_ns();
    if (late > expected + halves * round_trip / 2)
        fail_msg("%llu ns behind its time; %u halves of a round trip are %llu", (unsigned long long)(late - expected),
                 halves, (unsigned long long)(halves * round_trip / 2));
}

// ---- what is sent ---------------------------------------------------------------------------------------------------

static const struct work works[] = {
    {ALB_WR_SEND, .length = LONG},
    {ALB_WR_SEND, .length = 5 * KB},
    {ALB_WR_RDMA_WRITE_WITH_IMM, .length = LONG},
    {ALB_WR_RDMA_READ, .length = LONG},
};

static void last_segments_lost__asked_for_at_once(void **state)
{
    for (uint32_t i = 0; i < ALB_COUNT(works); i++) {
        struct run clean = run_of(works[i]);
        do_run(&clean);
        assert_int_equal(clean.again, 0);
        for (uint32_t k = 1; k < clean.segments && k <= 8; k++) {
            struct run run = run_of(works[i]);
            for (uint32_t n = 1; n <= k; n++) {
                if (works[i].opcode == ALB_WR_RDMA_READ)
                    drop_to_a(&run, segment(&clean, clean.segments - n, ALB_SIM_BY_NEW));
                else
                    drop_to_b(&run, segment(&clean, clean.segments - n, ALB_SIM_BY_NEW));
            }
            do_run(&run);
            assert_within(run.received, clean.received, 3);
            assert_true(run.again >= k);
            assert_true(run.again <= k + 1);
        }
    }
}

static void segment_sent_again_lost__asked_for_again(void **state)
{
    for (uint32_t i = 0; i < ALB_COUNT(works); i++) {
        struct run clean = run_of(works[i]);
        do_run(&clean);
        for (uint32_t place = 0; place < 3; place++) { // first, middle, last
            uint32_t index = place * (clean.segments - 1) / 2;
            struct run once = run_of(works[i]), twice = run_of(works[i]);
            void (*drop)(struct run *, struct alb_sim_rule) =
                works[i].opcode == ALB_WR_RDMA_READ ? drop_to_a : drop_to_b;
            drop(&once, segment(&clean, index, ALB_SIM_BY_NEW));
            do_run(&once);
            assert_within(once.received, clean.received, 3);
            drop(&twice, segment(&clean, index, ALB_SIM_BY_NEW));
            drop(&twice, segment(&clean, index, ALB_SIM_BY_AGAIN));
            do_run(&twice);
            // A lost answer may be asked for a second time half a round trip later.
            assert_within(twice.received, once.received, works[i].opcode == ALB_WR_RDMA_READ ? 4 : 3);
        }
    }
}

static void first_or_middle_lost__does_not_wait_for_the_end(void **state)
{
    struct run clean = run_of((struct work){ALB_WR_SEND, .length = 60 * KB});
    do_run(&clean);
    for (uint32_t index = 0; index < clean.segments / 2; index++) {
        struct run run = run_of(clean.work);
        drop_to_b(&run, segment(&clean, index, ALB_SIM_BY_NEW));
        do_run(&run);
        assert_int_equal(run.again, 1);
        assert_within(run.received, clean.received, 2);
    }
}

// ---- what is reported -----------------------------------------------------------------------------------------------

static void last_report_lost__the_sender_learns_soon(void **state)
{
    static const struct work told[] = {
        {ALB_WR_SEND, .length = LONG},
        {ALB_WR_SEND, .length = 8},
        {ALB_WR_RDMA_WRITE, .length = LONG},
        {ALB_WR_RDMA_WRITE, .length = 8},
    };
    for (uint32_t i = 0; i < ALB_COUNT(told); i++) {
        struct run clean = run_of(told[i]), run = run_of(told[i]);
        do_run(&clean);
        assert_true(clean.reports > 0);
        drop_to_a(&run, (struct alb_sim_rule){.by = ALB_SIM_BY_FRAME, .frame = ALB_CSA_REPORT, .from = clean.reports});
        do_run(&run);
        assert_within(run.completed, clean.completed, 3);
        if (takes_receive(told[i].opcode))
            assert_within(run.received, clean.received, 0);
    }
}

static void report_of_a_loss_lost__told_again(void **state)
{
    struct run clean = run_of((struct work){ALB_WR_SEND, .length = LONG});
    do_run(&clean);
    struct run once = run_of(clean.work);
    drop_to_b(&once, segment(&clean, clean.segments - 1, ALB_SIM_BY_NEW));
    do_run(&once);
    for (uint32_t n = 1; n <= once.reports; n++) {
        struct run run = once;
        run.to_a_count = 0;
        drop_to_a(&run, (struct alb_sim_rule){.by = ALB_SIM_BY_FRAME, .frame = ALB_CSA_REPORT, .from = n});
        do_run(&run);
        assert_within(run.received, once.received, 3);
    }
}

// ---- everything -----------------------------------------------------------------------------------------------------

static void whole_message_lost__probed_for(void **state)
{
    static const struct work whole[] = {
        {ALB_WR_SEND, .length = 8},
        {ALB_WR_SEND, .length = 5 * KB},
        {ALB_WR_RDMA_WRITE_WITH_IMM, .length = KB},
        {ALB_WR_RDMA_READ, .length = 8},
        {ALB_WR_ATOMIC_FETCH_AND_ADD, .length = 8},
    };
    for (uint32_t i = 0; i < ALB_COUNT(whole); i++) {
        struct run clean = run_of(whole[i]), run = run_of(whole[i]);
        do_run(&clean);
        drop_to_b(&run, (struct alb_sim_rule){
                            .by = ALB_SIM_BY_FRAME | ALB_SIM_BY_NEW, .frame = ALB_CSA_REQUEST, .times = UINT32_MAX});
        do_run(&run);
        // Its segments behind each other on the wire; and an answer takes half a round trip more.
        alb_time sent = clean.posted + (clean.last_sent - clean.first_sent) + whole[i].length;
        assert_within(run.received, sent, takes_receive(whole[i].opcode) ? 6 : 7);
    }
}

static void answer_lost_whole__asked_for_again(void **state)
{
    static const struct work asking[] = {
        {ALB_WR_RDMA_READ, .length = 8},
        {ALB_WR_RDMA_READ, .length = 5 * KB},
        {ALB_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .compare_add = 3},
        {ALB_WR_ATOMIC_CMP_AND_SWP, .length = 8},
    };
    for (uint32_t i = 0; i < ALB_COUNT(asking); i++) {
        struct run clean = run_of(asking[i]), run = run_of(asking[i]);
        do_run(&clean);
        drop_to_a(&run, (struct alb_sim_rule){
                            .by = ALB_SIM_BY_FRAME | ALB_SIM_BY_NEW, .frame = ALB_CSA_RESPONSE, .times = UINT32_MAX});
        do_run(&run);
        assert_within(run.received, clean.received, 5); // three round trips from when it was sent
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_segments_lost__asked_for_at_once),
        cmocka_unit_test(segment_sent_again_lost__asked_for_again),
        cmocka_unit_test(first_or_middle_lost__does_not_wait_for_the_end),
        cmocka_unit_test(last_report_lost__the_sender_learns_soon),
        cmocka_unit_test(report_of_a_loss_lost__told_again),
        cmocka_unit_test(whole_message_lost__probed_for),
        cmocka_unit_test(answer_lost_whole__asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
