// SPDX-License-Identifier: BSD-2-Clause
// RC over a network that loses, doubles, delays and damages chosen packets (InfiniBand specification, volume 1, 9.7).
#include "world.h"

enum {
    KB = 1024,
};

static const alb_sim_time timeout_14 = 4096ull * 1000 << 14; // 4.096 us * 2^14, in picoseconds

#define ID_WRITE 7

// A WRITE of n packets with one fault on its way, and what must come of it in the end.
static struct world *write_with(struct alb_sim_rule to_b, uint32_t packets)
{
    struct world *w = world_default();
    on_way_to_b(w, to_b);
    assert_int_equal(post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, ID_WRITE, 0, packets * KB, 64 * KB}), 0);
    return w;
}

static void finish_write(struct world *w, uint32_t packets)
{
    run_idle(w);
    expect_wc(w->a.cq, ID_WRITE, ALB_WC_SUCCESS);
    expect_none(w->a.cq);
    expect_copied(&w->a, 0, &w->b, 64 * KB, packets * KB);
    world_free(w);
}

static void write__completes_in_one_round_trip(void **state)
{
    struct world *w = write_with((struct alb_sim_rule){NTH(UINT32_MAX)}, 4);
    run_for(w, ALB_SIM_US(2) - 1);
    expect_none(w->a.cq);
    run_for(w, 1);
    struct alb_wc wc;
    expect_wc_as(w->a.cq, ID_WRITE, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.opcode, ALB_WC_RDMA_WRITE);
    assert_int_equal(wc.timestamp, 2000);
    assert_int_equal(w->a.log_count, 4);
    assert_int_equal(w->b.log_count, 1);
    assert_int_equal(w->b.log[0].roce.opcode, ALB_RC_ACK);
    assert_int_equal(w->b.log[0].roce.psn, 1003);
    assert_int_equal(w->b.log[0].roce.msn, 1);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 4 * KB);
    run_idle(w);
    world_free(w);
}

static void first_packet_lost__nak_then_go_back(void **state)
{
    struct world *w = write_with((struct alb_sim_rule){OPCODE(ALB_RC_WRITE_FIRST), .action = ALB_SIM_DROP}, 4);
    run_for(w, ALB_SIM_US(4));
    const struct sent *nak = nth_sent(&w->b, ALB_RC_ACK, 1);
    assert_int_equal(nak->roce.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    assert_int_equal(nak->roce.psn, 1000);
    assert_int_equal(nak->at, ALB_SIM_US(1));
    assert_int_equal(stat(&w->b, ALB_STAT_sent_seq_err), 1); // once for the gap, not for each packet behind it
    assert_int_equal(stat(&w->a, ALB_STAT_retransmitted_pkts), 4);
    assert_int_equal(nth_sent(&w->a, ALB_RC_WRITE_FIRST, 2)->at, ALB_SIM_US(2));
    finish_write(w, 4);
}

static void middle_packet_lost__goes_back_to_it_only(void **state)
{
    struct world *w = write_with((struct alb_sim_rule){NTH(3), .action = ALB_SIM_DROP}, 5);
    run_for(w, ALB_SIM_US(4));
    assert_int_equal(nth_sent(&w->b, ALB_RC_ACK, 1)->roce.psn, 1002);
    assert_int_equal(w->a.log_count, 5 + 3);
    assert_int_equal(stat(&w->a, ALB_STAT_retransmitted_pkts), 3);
    finish_write(w, 5);
}

static void last_packet_lost__timeout_at_exactly_its_time(void **state)
{
    struct world *w = write_with((struct alb_sim_rule){OPCODE(ALB_RC_WRITE_LAST), .action = ALB_SIM_DROP}, 4);
    run_for(w, timeout_14 - 1);
    assert_int_equal(w->a.log_count, 4);
    run_for(w, 1);
    assert_int_equal(w->a.log[4].at, timeout_14);
    assert_int_equal(w->a.log[4].roce.psn, 1000);
    assert_int_equal(stat(&w->a, ALB_STAT_local_ack_timeout_err), 1);
    finish_write(w, 4);
}

static void only_packet_lost__timeout_follows_the_attribute(void **state)
{
    for (uint8_t timeout = 1; timeout <= 20; timeout += 3) {
        struct options options;
        options_default(&options);
        options.timeout = timeout;
        struct world *w = world_new(&options);
        on_way_to_b(w, (struct alb_sim_rule){.action = ALB_SIM_DROP});
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, ID_WRITE, 0, 8, 64 * KB});
        run_idle(w);
        assert_int_equal(w->a.log[1].at, (4096ull * 1000) << timeout);
        finish_write(w, 0);
    }
}

static void timeout_zero__waits_for_ever(void **state)
{
    struct options options;
    options_default(&options);
    options.timeout = 0;
    struct world *w = world_new(&options);
    on_way_to_b(w, (struct alb_sim_rule){.action = ALB_SIM_DROP});
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, ID_WRITE, 0, 8, 64 * KB});
    run_idle(w);
    expect_none(w->a.cq);
    assert_int_equal(w->a.log_count, 1);
    assert_false(alb_qp_is_quiet(w->a.qp));
    world_free(w);
}

static void ack_lost__request_again_acked_again_executed_once(void **state)
{
    struct world *w = world_default();
    on_way_to_a(w, (struct alb_sim_rule){OPCODE(ALB_RC_ACK), .action = ALB_SIM_DROP});
    receive(&w->b, 1, 64 * KB, 4 * KB);
    receive(&w->b, 2, 96 * KB, 4 * KB);
    post(w, &w->a, (struct work){ALB_WR_SEND, ID_WRITE, 0, 3 * KB, 0});
    run_idle(w);
    expect_wc(w->a.cq, ID_WRITE, ALB_WC_SUCCESS);
    expect_wc(w->b.recv_cq, 1, ALB_WC_SUCCESS);
    expect_none(w->b.recv_cq);
    assert_int_equal(sent_of(&w->b, ALB_RC_ACK), 2 + 2); // the duplicates of the three packets are acknowledged too
    assert_int_equal(stat(&w->b, ALB_STAT_duplicate_request), 3);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 3 * KB);
    world_free(w);
}

static void nak_lost__timeout(void **state)
{
    struct world *w = write_with((struct alb_sim_rule){NTH(2), .action = ALB_SIM_DROP}, 4);
    on_way_to_a(w, (struct alb_sim_rule){.by = ALB_SIM_BY_NAK, .action = ALB_SIM_DROP});
    run_for(w, timeout_14);
    assert_int_equal(stat(&w->a, ALB_STAT_local_ack_timeout_err), 1);
    assert_int_equal(w->a.log[4].at, timeout_14);
    finish_write(w, 4);
}

static void retries_exceeded__after_exactly_retry_cnt(void **state)
{
    static const uint64_t timeouts[] = {1, 3, 7, 11, 15, 19, 23, 27}; // each is twice the one before, four at most
    for (uint8_t retries = 0; retries <= 7; retries++) {
        struct options options;
        options_default(&options);
        options.retry_cnt = retries;
        struct world *w = world_new(&options);
        on_way_to_b(w, (struct alb_sim_rule){ALWAYS, .action = ALB_SIM_DROP});
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 8, 64 * KB, .is_unsignaled = true});
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 2, 0, 8, 64 * KB});
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 3, 0, 8, .is_unsignaled = true});
        receive(&w->a, 4, 0, 64);
        alb_sim_host_poke(w->a.host);
        run_idle(w);
        struct alb_wc wc;
        expect_wc_as(w->a.cq, 1, ALB_WC_RETRY_EXC_ERR, &wc);
        assert_int_equal(wc.timestamp, timeouts[retries] * (4096ull << 14));
        expect_wc(w->a.cq, 2, ALB_WC_WR_FLUSH_ERR);
        expect_wc(w->a.cq, 3, ALB_WC_WR_FLUSH_ERR);
        expect_none(w->a.cq);
        expect_wc(w->a.recv_cq, 4, ALB_WC_WR_FLUSH_ERR);
        assert_int_equal(sent_of(&w->a, ALB_RC_WRITE_ONLY), retries + 1);
        expect_state(&w->a, ALB_QPS_ERR);
        expect_state(&w->b, ALB_QPS_RTS);
        assert_int_equal(w->a.host->events[ALB_EVENT_QP_FAILED], 1);
        assert_int_equal(w->a.host->failure.status, ALB_WC_RETRY_EXC_ERR);
        assert_int_equal(w->a.host->failure.retry_limit, retries);
        world_free(w);
    }
}

static void progress__gives_all_retries_back(void **state)
{
    struct options options;
    options_default(&options);
    options.retry_cnt = 1;
    struct world *w = world_new(&options);
    for (uint32_t i = 0; i < 6; i++) // each request is lost once, one after the other
        on_way_to_b(w, (struct alb_sim_rule){.by = ALB_SIM_BY_PSN, .psn = 1000 + i, .action = ALB_SIM_DROP});
    for (uint32_t i = 0; i < 6; i++) {
        post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, i, i * KB, 8, 64 * KB + i * KB});
        run_idle(w);
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    }
    world_free(w);
}

static void duplicate_packet__is_executed_once(void **state)
{
    struct world *w = world_default();
    on_way_to_b(w, (struct alb_sim_rule){ALWAYS, .action = ALB_SIM_DUPLICATE});
    for (uint32_t i = 0; i < 3; i++)
        receive(&w->b, i, 64 * KB + i * 8 * KB, 8 * KB);
    post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 3 * KB});
    post(w, &w->a, (struct work){ALB_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 8, 128 * KB, .compare_add = 5});
    uint64_t before, after;
    memcpy(&before, w->b.memory + 128 * KB, 8);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_wc(w->b.recv_cq, 0, ALB_WC_SUCCESS);
    expect_none(w->b.recv_cq);
    memcpy(&after, w->b.memory + 128 * KB, 8);
    assert_true(after == before + 5);
    world_free(w);
}

static void swapped_packets__nak_and_recovery(void **state)
{
    struct world *w = write_with((struct alb_sim_rule){NTH(2), .action = ALB_SIM_SWAP}, 4);
    run_for(w, ALB_SIM_US(10));
    assert_int_equal(nth_sent(&w->b, ALB_RC_ACK, 1)->roce.psn,
                     1001); // the third came before the second and was dropped,
    assert_int_equal(nth_sent(&w->b, ALB_RC_ACK, 2)->roce.psn, 1002); // so it is missing when the fourth comes
    assert_int_equal(stat(&w->a, ALB_STAT_packet_seq_err), 2);
    finish_write(w, 4);
}

static void corrupt_packet__is_dropped_by_its_icrc(void **state)
{
    struct world *w = write_with((struct alb_sim_rule){NTH(2), .action = ALB_SIM_CORRUPT, .amount = 12 * 8 + 77}, 4);
    run_for(w, ALB_SIM_US(10));
    assert_int_equal(w->b.host->stats.dropped[ALB_DROP_BAD_ICRC], 1);
    assert_int_equal(stat(&w->a, ALB_STAT_packet_seq_err), 1);
    finish_write(w, 4);
}

static void late_packet__is_a_duplicate_when_it_comes(void **state)
{
    struct world *w = write_with((struct alb_sim_rule){NTH(2), .action = ALB_SIM_DELAY, .amount = ALB_SIM_US(50)}, 4);
    run_for(w, ALB_SIM_US(100));
    assert_int_equal(stat(&w->b, ALB_STAT_duplicate_request), 1);
    finish_write(w, 4);
}

// ---- READ -----------------------------------------------------------------------------------------------------------

static void read_with_answer_lost(uint8_t opcode, alb_sim_time limit)
{
    struct world *w = world_default();
    on_way_to_a(w, (struct alb_sim_rule){OPCODE(opcode), .action = ALB_SIM_DROP});
    post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 1, 0, 4 * KB, 64 * KB});
    run_for(w, limit - 1);
    expect_none(w->a.cq);
    run_idle(w);
    struct alb_wc wc;
    expect_wc_as(w->a.cq, 1, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.opcode, ALB_WC_RDMA_READ);
    assert_int_equal(wc.byte_len, 4 * KB);
    assert_int_equal(wc.timestamp * 1000, limit);
    expect_copied(&w->b, 64 * KB, &w->a, 0, 4 * KB);
    assert_true(alb_sim_script_is_done(alb_sim_link_script(&w->pair.out[ALB_SIM_B])));
    world_free(w);
}

static void read__first_answer_lost(void **state)
{
    read_with_answer_lost(ALB_RC_READ_RESPONSE_FIRST, ALB_SIM_US(4));
}

static void read__middle_answer_lost(void **state)
{
    read_with_answer_lost(ALB_RC_READ_RESPONSE_MIDDLE, ALB_SIM_US(4));
}

static void read__last_answer_lost(void **state)
{
    // The timer runs from when something was last heard: the third answer, after one round trip.
    read_with_answer_lost(ALB_RC_READ_RESPONSE_LAST, ALB_SIM_US(2) + timeout_14 + ALB_SIM_US(2));
}

static void read__request_lost(void **state)
{
    struct world *w = world_default();
    on_way_to_b(w, (struct alb_sim_rule){.action = ALB_SIM_DROP});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 1, 0, 4 * KB, 64 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 2, 8 * KB, 4 * KB, 96 * KB});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_copied(&w->b, 64 * KB, &w->a, 0, 4 * KB);
    expect_copied(&w->a, 8 * KB, &w->b, 96 * KB, 4 * KB);
    world_free(w);
}

static void read__goes_on_where_the_answers_stopped(void **state)
{
    struct world *w = world_default();
    on_way_to_a(w, (struct alb_sim_rule){NTH(3), .times = 6, .action = ALB_SIM_DROP});
    post(w, &w->a, (struct work){ALB_WR_RDMA_READ, 1, 0, 8 * KB, 64 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    const struct sent *again = nth_sent(&w->a, ALB_RC_READ_REQUEST, 2);
    assert_int_equal(again->roce.psn, 1002);
    assert_int_equal(again->roce.va, (uintptr_t)w->b.memory + 66 * KB);
    assert_int_equal(again->roce.length, 6 * KB);
    expect_copied(&w->b, 64 * KB, &w->a, 0, 8 * KB);
    world_free(w);
}

static void read__answers_doubled_or_out_of_order(void **state)
{
    static const enum alb_sim_action actions[] = {ALB_SIM_DUPLICATE, ALB_SIM_SWAP};
    for (uint32_t i = 0; i < ALB_COUNT(actions); i++) {
        for (uint32_t nth = 1; nth <= 8; nth++) {
            struct world *w = world_default();
            on_way_to_a(w, (struct alb_sim_rule){NTH(nth), .action = actions[i]});
            stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 1, 0, 4 * KB, 64 * KB});
            stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 2, 16 * KB, 4 * KB, 80 * KB});
            alb_sim_host_poke(w->a.host);
            run_idle(w);
            expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
            expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
            expect_none(w->a.cq);
            expect_copied(&w->b, 64 * KB, &w->a, 0, 4 * KB);
            expect_copied(&w->b, 80 * KB, &w->a, 16 * KB, 4 * KB);
            world_free(w);
        }
    }
}

// It was asked for in quarters of the window, and has room for all of it when the answers are lost. A responder refuses
// a duplicate that asks for more than it has granted.
static void read__asked_for_again_in_the_same_pieces(void **state)
{
    struct options options;
    options_default(&options);
    struct alb_engine_config *engine = &options.pair.host[A].engine;
    engine->congestion = "fixed";
    engine->window_min_bytes = engine->window_start_bytes = engine->window_max_bytes = 4 * (KB + 64);
    struct world *w = world_new(&options);
    on_way_to_a(w, (struct alb_sim_rule){OPCODE(ALB_RC_READ_RESPONSE_FIRST), .action = ALB_SIM_DROP});
    on_way_to_b(w, (struct alb_sim_rule){OPCODE(ALB_RC_READ_REQUEST), NTH(2), .action = ALB_SIM_DROP});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 2 * KB, 64 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 2, 16 * KB, 4 * KB, 80 * KB});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_copied(&w->b, 80 * KB, &w->a, 16 * KB, 4 * KB);
    for (uint32_t n = 1; nth_sent(&w->a, ALB_RC_READ_REQUEST, n); n++)
        assert_int_equal(nth_sent(&w->a, ALB_RC_READ_REQUEST, n)->roce.length, KB);
    world_free(w);
}

// ---- atomics --------------------------------------------------------------------------------------------------------

static void atomic__answer_lost_replayed_not_executed(void **state)
{
    for (enum alb_wr_opcode opcode = ALB_WR_ATOMIC_CMP_AND_SWP; opcode <= ALB_WR_ATOMIC_FETCH_AND_ADD; opcode++) {
        struct world *w = world_default();
        uint64_t before = 41, after, fetched;
        memcpy(w->b.memory + 64 * KB, &before, 8);
        on_way_to_a(w, (struct alb_sim_rule){OPCODE(ALB_RC_ATOMIC_ACK), .times = 3, .action = ALB_SIM_DROP});
        post(w, &w->a, (struct work){opcode, 1, 0, 8, 64 * KB, .compare_add = 41, .swap = 82});
        run_idle(w);
        expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
        memcpy(&after, w->b.memory + 64 * KB, 8);
        memcpy(&fetched, w->a.memory, 8);
        assert_int_equal(fetched, 41);
        assert_int_equal(after, 82);
        assert_int_equal(stat(&w->b, ALB_STAT_duplicate_request), 3);
        world_free(w);
    }
}

static void atomic__replayed_from_among_many(void **state)
{
    struct world *w = world_default();
    uint64_t word = 0;
    memcpy(w->b.memory + 64 * KB, &word, 8);
    on_way_to_a(w, (struct alb_sim_rule){OPCODE(ALB_RC_ATOMIC_ACK), NTH(2), .times = 9, .action = ALB_SIM_DROP});
    for (uint32_t i = 0; i < 8; i++)
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_ATOMIC_FETCH_AND_ADD, i, 8 * i, 8, 64 * KB, .compare_add = 1});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    for (uint64_t i = 0; i < 8; i++) {
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
        memcpy(&word, w->a.memory + 8 * i, 8);
        assert_int_equal(word, i);
    }
    memcpy(&word, w->b.memory + 64 * KB, 8);
    assert_int_equal(word, 8);
    world_free(w);
}

// An answer that is owed a second time must not take the place that the next request is entitled to.
static void atomic__owed_twice_leaves_room_for_the_next(void **state)
{
    struct options options;
    options_default(&options);
    options.rd_atomic = 1;
    options.qps = 2;
    options.pair.out[B].bits_per_s = 1000000000;
    struct world *w = world_new(&options);
    uint64_t word = 7;
    memcpy(w->b.memory + 64 * KB, &word, 8);
    // The first one is so late that it was sent again and answered before it comes.
    const alb_sim_time late = timeout_14 + ALB_SIM_US(100);
    on_way_to_b(w, (struct alb_sim_rule){.action = ALB_SIM_DELAY, .amount = late});
    post(w, &w->a, (struct work){ALB_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 64 * KB, .compare_add = 1});
    run_for(w, late - ALB_SIM_US(10));
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    post_on(w, &w->b, w->b.qps[1],
            (struct work){ALB_WR_RDMA_WRITE, 2, 0, 32 * KB, 128 * KB}); // B's link is busy for 100 us
    run_for(w, ALB_SIM_US(15));
    post(w, &w->a, (struct work){ALB_WR_ATOMIC_FETCH_AND_ADD, 3, 8, 8, 64 * KB, .compare_add = 1});
    run_idle(w);
    expect_wc(w->a.cq, 3, ALB_WC_SUCCESS);
    expect_wc(w->b.cq, 2, ALB_WC_SUCCESS);
    memcpy(&word, w->b.memory + 64 * KB, 8);
    assert_int_equal(word, 9);
    memcpy(&word, w->a.memory + 8, 8);
    assert_int_equal(word, 8);
    world_free(w);
}

static void atomic_write__duplicate_does_not_undo_what_came_later(void **state)
{
    struct world *w = world_default();
    on_way_to_b(w, (struct alb_sim_rule){.action = ALB_SIM_DUPLICATE});
    on_way_to_a(w, (struct alb_sim_rule){OPCODE(ALB_RC_READ_RESPONSE_ONLY), .action = ALB_SIM_DROP});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_ATOMIC_WRITE, 1, 0, 8, 64 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 2, 16, 8, 64 * KB});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_copied(&w->a, 16, &w->b, 64 * KB, 8);
    world_free(w);
}

// ---- numbers --------------------------------------------------------------------------------------------------------

static void psn__wraps_with_every_kind_of_work(void **state)
{
    for (uint32_t start = 0xfffff0; start != 8; start = (start + 1) & ALB_PSN_MASK) {
        struct options options;
        options_default(&options);
        options.psn[0] = options.psn[1] = start;
        struct world *w = world_new(&options);
        on_way_to_b(w, (struct alb_sim_rule){NTH(9), .times = 1, .action = ALB_SIM_DROP});
        on_way_to_a(w, (struct alb_sim_rule){NTH(4), .times = 2, .action = ALB_SIM_DROP});
        receive(&w->b, 9, 128 * KB, 4 * KB);
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 7 * KB, 64 * KB});
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, 2, 16 * KB, 7 * KB, 80 * KB});
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 3, 32 * KB, 3 * KB});
        stage_on(w, &w->a, w->a.qp,
                 (struct work){ALB_WR_ATOMIC_FETCH_AND_ADD, 4, 48 * KB, 8, 160 * KB, .compare_add = 1});
        alb_sim_host_poke(w->a.host);
        run_idle(w);
        for (uint64_t i = 1; i <= 4; i++)
            expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
        expect_wc(w->b.recv_cq, 9, ALB_WC_SUCCESS);
        expect_copied(&w->a, 0, &w->b, 64 * KB, 7 * KB);
        expect_copied(&w->b, 80 * KB, &w->a, 16 * KB, 7 * KB);
        expect_copied(&w->a, 32 * KB, &w->b, 128 * KB, 3 * KB);
        world_free(w);
    }
}

static void acks__are_coalesced(void **state)
{
    struct world *w = world_default();
    for (uint32_t i = 0; i < 32; i++)
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, i, 0, 64, 64 * KB, .is_unsignaled = i != 31});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    expect_wc(w->a.cq, 31, ALB_WC_SUCCESS);
    expect_none(w->a.cq);
    assert_int_equal(w->a.log_count, 32);
    assert_int_equal(w->b.log_count, 1);
    assert_int_equal(w->b.log[0].roce.psn, 1031);
    assert_int_equal(w->b.log[0].roce.msn, 32);
    world_free(w);
}

static void late_ack__of_what_was_sent_again_is_taken(void **state)
{
    struct world *w = write_with((struct alb_sim_rule){NTH(UINT32_MAX)}, 4);
    on_way_to_a(w, (struct alb_sim_rule){.action = ALB_SIM_DELAY, .amount = timeout_14});
    finish_write(w, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write__completes_in_one_round_trip),
        cmocka_unit_test(first_packet_lost__nak_then_go_back),
        cmocka_unit_test(middle_packet_lost__goes_back_to_it_only),
        cmocka_unit_test(last_packet_lost__timeout_at_exactly_its_time),
        cmocka_unit_test(only_packet_lost__timeout_follows_the_attribute),
        cmocka_unit_test(timeout_zero__waits_for_ever),
        cmocka_unit_test(ack_lost__request_again_acked_again_executed_once),
        cmocka_unit_test(nak_lost__timeout),
        cmocka_unit_test(retries_exceeded__after_exactly_retry_cnt),
        cmocka_unit_test(progress__gives_all_retries_back),
        cmocka_unit_test(duplicate_packet__is_executed_once),
        cmocka_unit_test(swapped_packets__nak_and_recovery),
        cmocka_unit_test(corrupt_packet__is_dropped_by_its_icrc),
        cmocka_unit_test(late_packet__is_a_duplicate_when_it_comes),
        cmocka_unit_test(read__first_answer_lost),
        cmocka_unit_test(read__middle_answer_lost),
        cmocka_unit_test(read__last_answer_lost),
        cmocka_unit_test(read__request_lost),
        cmocka_unit_test(read__goes_on_where_the_answers_stopped),
        cmocka_unit_test(read__answers_doubled_or_out_of_order),
        cmocka_unit_test(read__asked_for_again_in_the_same_pieces),
        cmocka_unit_test(atomic__answer_lost_replayed_not_executed),
        cmocka_unit_test(atomic__replayed_from_among_many),
        cmocka_unit_test(atomic__owed_twice_leaves_room_for_the_next),
        cmocka_unit_test(atomic_write__duplicate_does_not_undo_what_came_later),
        cmocka_unit_test(psn__wraps_with_every_kind_of_work),
        cmocka_unit_test(acks__are_coalesced),
        cmocka_unit_test(late_ack__of_what_was_sent_again_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
