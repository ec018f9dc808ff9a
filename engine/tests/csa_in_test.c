// SPDX-License-Identifier: BSD-2-Clause
// The receiving half of a stream. Side 0 asks by hand, side 1 receives; PSNs are offsets from the first of the stream.
#include "engine/region_claim.h"
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define S CSA_PAIR_SEGMENT

static struct alb_stream_in *in_of(struct csa_pair *c)
{
    return &c->csa[1]->in_requests;
}

static int32_t cumulative(struct csa_pair *c)
{
    return alb_psn_diff(in_of(c)->cumulative, csa_pair_psn(0));
}

// One segment of a WRITE of total bytes that begins at first, placed where the message's bytes are.
static void write_at(struct csa_pair *c, int32_t first, uint32_t index, uint32_t total, uint8_t value)
{
    uint32_t count = total <= S ? 1 : (total + S - 1) / S;
    bool is_last = index == count - 1;
    struct alb_csa_segment segment = csa_pair_write(c, 0, first + (int32_t)index, index, total,
                                                    is_last ? total - index * S : S, is_last ? ALB_CSA_LAST : 0);
    csa_pair_arrive_segment(c, 0, &segment, value);
}

static uint8_t byte(struct csa_pair *c, uint32_t offset)
{
    return c->pair->hosts[1].memory[offset];
}

// ---- order ----------------------------------------------------------------------------------------------------------

static void segment__placed_as_it_comes_and_the_last_one_last(void **state)
{
    struct csa_pair *c = *state;
    uint8_t before = byte(c, 2 * S);
    write_at(c, 1, 2, 3 * S, 0x33);
    assert_int_equal(byte(c, 2 * S), before); // it waits
    write_at(c, 1, 1, 3 * S, 0x22);
    assert_int_equal(byte(c, S), 0x22);
    assert_int_equal(byte(c, 2 * S), before);
    assert_int_equal(cumulative(c), 1);
    write_at(c, 1, 0, 3 * S, 0x11);
    assert_int_equal(byte(c, 0), 0x11);
    assert_int_equal(byte(c, 2 * S), 0x33);
    assert_int_equal(byte(c, 3 * S - 1), 0x33);
    assert_int_equal(cumulative(c), 4);
    assert_false(alb_stream_in_misses(in_of(c)));
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
}

// The answer to a probe says that all which was on its way has come, or is lost.
static void segment__of_a_probe_is_answered_as_overdue(void **state)
{
    struct csa_pair *c = *state;
    for (int32_t probes = 0; probes < 2; probes++) {
        uint32_t flags = ALB_CSA_LAST | ALB_CSA_REPORT_NOW | (probes ? ALB_CSA_PROBING : 0);
        struct alb_csa_segment segment = csa_pair_write(c, 0, 1 + probes, 0, 8, 8, flags);
        struct alb_csa_frame frame;
        csa_pair_arrive_segment(c, 0, &segment, 1);
        pair_send(c->pair, 1);
        assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame), 1);
        assert_int_equal(frame.report.is_overdue, probes);
        pair_deliver_all(c->pair, 1);
    }
}

static void segment__of_a_later_message_waits(void **state)
{
    struct csa_pair *c = *state;
    uint8_t before = byte(c, 0);
    write_at(c, 3, 0, 8, 3);
    write_at(c, 2, 0, 8, 2);
    assert_int_equal(byte(c, 0), before);
    assert_true(c->engines[1]->csa->waiting_bytes >= 16);
    write_at(c, 1, 0, 8, 1);
    assert_int_equal(byte(c, 0), 3); // in the order of messages
    assert_int_equal(cumulative(c), 4);
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
}

// Every order of the segments of three messages comes to the same end.
static void segment__any_order(void **state)
{
    static const struct {
        uint8_t first, index, count;
    } parts[] = {{1, 0, 2}, {1, 1, 2}, {3, 0, 1}, {4, 0, 3}, {4, 1, 3}, {4, 2, 3}};
    enum { N = ALB_COUNT(parts) };
    uint32_t order[N] = {0, 1, 2, 3, 4, 5}, turns[N] = {0}, i = 0, runs = 0;
    struct csa_pair *c = csa_pair_new(NULL, NULL);
    csa_pair_greet(c);
    int32_t base = 0;
    for (;;) {
        memset(c->pair->hosts[1].memory, 0, 3 * S);
        for (uint32_t k = 0; k < N; k++)
            write_at(c, base + parts[order[k]].first, parts[order[k]].index, parts[order[k]].count * S,
                     parts[order[k]].first);
        base += 6;
        runs++;
        assert_int_equal(cumulative(c), base + 1);
        assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
        for (uint32_t k = 0; k < 3 * S; k++)
            assert_int_equal(byte(c, k), 4);
        // The next permutation (B. R. Heap, 1963).
        while (i < N && turns[i] >= i)
            turns[i++] = 0;
        if (i == N)
            break;
        uint32_t k = i % 2 ? turns[i] : 0, saved = order[k];
        order[k] = order[i];
        order[i] = saved;
        turns[i]++;
        i = 0;
    }
    assert_int_equal(runs, 720);
    csa_pair_free(c);
}

// ---- once -----------------------------------------------------------------------------------------------------------

static void segment__a_second_time_is_dropped_and_reported(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 1, 0, 8, 1);
    write_at(c, 3, 0, 8, 3);
    pair_send(c->pair, 1);
    while (pair_count(c->pair, 1))
        pair_lose(c->pair, 1);
    write_at(c, 3, 0, 8, 7); // waits already
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_DUPLICATE), 1);
    assert_true(alb_list_is_linked(&in_of(c)->report_link));
    write_at(c, 1, 0, 8, 9); // executed already
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_DUPLICATE), 2);
    assert_int_equal(byte(c, 0), 1);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_duplicate_request), 2);
}

// An answer that comes ahead is no request.
static void segment__of_an_answer_ahead_counts_as_one(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 4 * CSA_PAIR_ANSWER_SEGMENT);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_lose(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_implied_nak_seq_err), 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_out_of_seq_request), 0);
}

static void segment__beyond_the_window_is_dropped(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 1 + CSA_PAIR_WINDOW, 0, 8, 1);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_OUT_OF_SEQUENCE), 1);
    write_at(c, CSA_PAIR_WINDOW, 0, 8, 1);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_OUT_OF_SEQUENCE), 1);
    assert_int_equal(in_of(c)->capacity, CSA_PAIR_WINDOW > 256 ? CSA_PAIR_WINDOW : 256);
}

// What was held stays held when there must be room for more.
static void segment__growing_keeps_what_is_held(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 3, 0, 8, 3);
    write_at(c, 40, 0, 8, 4);
    assert_int_equal(in_of(c)->capacity, ALB_STREAM_IN_OWN);
    write_at(c, 100, 0, 8, 5);
    assert_true(in_of(c)->capacity > ALB_STREAM_IN_OWN);
    for (int32_t i = 1; i < 128; i++)
        assert_int_equal(alb_bitmap_test(in_of(c)->held, alb_psn_add(csa_pair_psn(0), i) & (in_of(c)->capacity - 1)),
                         i == 3 || i == 40 || i == 100);
    for (int32_t i = 1; i <= 100; i++)
        write_at(c, i, 0, 8, 6);
    assert_int_equal(cumulative(c), 101);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_DUPLICATE), 3);
}

// ---- bounds ---------------------------------------------------------------------------------------------------------

static void keep_little(struct alb_engine_config *config)
{
    config->csa_early_bytes_max = 4 * S; // two blocks
}

static void segment__that_would_wait_is_dropped_for_lack_of_room(void **state)
{
    struct csa_pair *c = csa_pair_new(keep_little, NULL);
    csa_pair_greet(c);
    for (int32_t i = 2; i < 6; i++)
        write_at(c, i, 0, S, (uint8_t)i);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NO_RESOURCES), 2);
    assert_true(c->engines[1]->csa->waiting_bytes <= 4 * S);
    write_at(c, 1, 0, S, 1); // what is next needs no room
    assert_int_equal(cumulative(c), 4);
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
    write_at(c, 4, 0, S, 4);
    write_at(c, 5, 0, S, 5);
    assert_int_equal(cumulative(c), 6);
    csa_pair_free(c);
}

static void last_report(struct csa_pair *c, struct alb_csa_report *report)
{
    struct alb_csa_frame frame;
    pair_send(c->pair, 1);
    assert_true(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame) > 0);
    *report = frame.report;
    while (pair_count(c->pair, 1))
        pair_lose(c->pair, 1);
}

static void probe(struct csa_pair *c, int32_t next)
{
    struct csa_made made;
    const struct alb_csa_probe what = {.dest_qpn = alb_qp_number(c->qps[1]),
                                       .next = alb_psn_add(csa_pair_psn(0), next)};
    csa_pair_make(c, 0, &made);
    csa_pair_add_probe(&made, &what);
    csa_pair_arrive(c, 0, &made);
}

// The next report says that there was no room, and only that one.
static void check_full(struct csa_pair *c, bool is_full)
{
    struct alb_csa_report report;
    probe(c, 2);
    last_report(c, &report);
    assert_int_equal(report.is_full, is_full);
    probe(c, 2);
    last_report(c, &report);
    assert_false(report.is_full);
}

static void full__is_reported_once(void **state)
{
    struct csa_pair *c = csa_pair_new(keep_little, NULL);
    csa_pair_greet(c);
    write_at(c, 2, 0, S, 2);
    write_at(c, 3, 0, S, 3);
    check_full(c, false);
    write_at(c, 4, 0, S, 4);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NO_RESOURCES), 1);
    check_full(c, true);
    write_at(c, 1 + CSA_PAIR_WINDOW, 0, 8, 1);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_OUT_OF_SEQUENCE), 1);
    check_full(c, true);
    csa_pair_free(c);
}

static void stop__gives_back_all_that_waits(void **state)
{
    struct csa_pair *c = *state;
    size_t before = alb_buddy_used(&c->engines[1]->csa->pool);
    for (int32_t i = 2; i < 100; i += 2)
        write_at(c, i, 0, 8, 1);
    assert_true(alb_buddy_used(&c->engines[1]->csa->pool) > before);
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
    assert_int_equal(alb_buddy_used(&c->engines[1]->csa->pool), before);
    assert_false(alb_list_is_linked(&in_of(c)->open_link));
    assert_false(alb_timer_is_armed(&in_of(c)->tail_timer.timer));
}

// ---- numbers that contradict each other -----------------------------------------------------------------------------

// The first segment of a message of three, or of another message, comes; then one that does not go with it.
static void contradict(const struct alb_csa_segment *change, int32_t offset)
{
    struct csa_pair *c = csa_pair_new(NULL, NULL);
    csa_pair_greet(c);
    struct alb_csa_segment segment = csa_pair_write(c, 0, 1, 0, 3 * S, S, 0);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
    segment = csa_pair_write(c, 0, offset, change->index, change->total_bytes, change->payload_bytes, change->flags);
    segment.op = change->op;
    csa_pair_arrive_segment(c, 0, &segment, 2);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_BAD_REQUEST), 1);
    struct alb_csa_frame frame;
    pair_send(c->pair, 1);
    assert_true(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame) > 0);
    assert_int_equal(frame.report.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_INVALID_REQUEST));
    csa_pair_free(c);
}

static void contradiction__is_refused(void **state)
{
    static const struct {
        const char *what;
        int32_t offset;
        struct alb_csa_segment segment;
    } cases[] = {
        {"operation", 2, {.op = ALB_CSA_SEND, .index = 1, .total_bytes = 3 * S, .payload_bytes = S}},
        {"total", 2, {.op = ALB_CSA_WRITE, .index = 1, .total_bytes = 3 * S - 4, .payload_bytes = S}},
        {"bytes of a segment", 2, {.op = ALB_CSA_WRITE, .index = 1, .total_bytes = 3 * S, .payload_bytes = S + 4}},
        {"first segment", 2, {.op = ALB_CSA_WRITE, .index = 0, .total_bytes = 8, .payload_bytes = 8, .flags = 16}},
        {"first segment", 3, {.op = ALB_CSA_WRITE, .index = 1, .total_bytes = 3 * S, .payload_bytes = S}},
        {"last segment", 2, {.op = ALB_CSA_WRITE, .index = 1, .total_bytes = 3 * S, .payload_bytes = S, .flags = 16}},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        print_message("%s\n", cases[i].what);
        contradict(&cases[i].segment, cases[i].offset);
    }
}

static void contradiction__that_came_before_its_message_began(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 2, 0, 8, 7); // a message of its own, it says
    write_at(c, 1, 0, 3 * S, 1);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
}

static void contradiction__that_reaches_into_a_message_that_is_over(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 3, 1, 2 * S, 7); // of a message that begins at 3
    write_at(c, 1, 0, 8, 1);
    write_at(c, 2, 0, 8, 1);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
    write_at(c, 3, 0, 8, 1); // of one that is over by then
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
}

static void contradiction__in_the_length_of_the_last_segment(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 1, 0, 3 * S, 1);
    write_at(c, 1, 1, 3 * S, 1);
    struct alb_csa_segment segment = csa_pair_write(c, 0, 3, 2, 3 * S, S - 4, ALB_CSA_LAST);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
}

// Whatever the numbers: nothing beyond the region changes, and what waits is bounded.
static void hostile__numbers(void **state)
{
    static const uint32_t indexes[] = {0, 1, 2, 3, 127, 4095, 0x3fffff, 0x400000, 0x7fffff, 0xffffff};
    static const uint32_t totals[] = {0, 1, 3, 4, 8, S, S + 1, 2 * S, 1u << 20, 1u << 31, 0xffffffff};
    static const uint32_t payloads[] = {0, 1, 4, 8, S};
    static const int32_t offsets[] = {-1, 0, 1, 2, 63, 64, 65, 127, 128, 1 << 22, (1 << 23) - 1};
    for (uint32_t flags = 0; flags <= ALB_CSA_LAST; flags += ALB_CSA_LAST) {
        struct csa_pair *c = csa_pair_new(NULL, NULL);
        csa_pair_greet(c);
        for (size_t i = 0; i < ALB_COUNT(indexes); i++)
            for (size_t t = 0; t < ALB_COUNT(totals); t++)
                for (size_t p = 0; p < ALB_COUNT(payloads); p++)
                    for (size_t o = 0; o < ALB_COUNT(offsets); o++) {
                        struct alb_csa_segment segment =
                            csa_pair_write(c, 0, offsets[o], indexes[i], totals[t], payloads[p], flags);
                        csa_pair_arrive_segment(c, 0, &segment, 0xee);
                        assert_true(c->engines[1]->csa->waiting_bytes <= c->engines[1]->config.csa_early_bytes_max);
                    }
        pair_check_guards(c->pair);
        csa_pair_free(c);
    }
}

// ---- receives -------------------------------------------------------------------------------------------------------

static struct alb_csa_segment send(struct csa_pair *c, int32_t offset, uint32_t bytes)
{
    struct alb_csa_segment segment = csa_pair_write(c, 0, offset, 0, bytes, bytes, ALB_CSA_LAST);
    segment.op = ALB_CSA_SEND;
    return segment;
}

// It is held, and says so in bit 0; so does what comes behind it.
static void rnr__what_came_is_held(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report report;
    struct alb_csa_segment segment = send(c, 1, 8);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    write_at(c, 2, 0, 8, 2);
    last_report(c, &report);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_RNR(1));
    assert_int_equal(report.cumulative, alb_psn_add(csa_pair_psn(0), 1));
    assert_int_equal(report.held[0], 3);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_send_rnr_err), 1);
    // A probe finds no receive either, and then one.
    probe(c, 3);
    last_report(c, &report);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_RNR(1));
    assert_int_equal(pair_receive(c->pair, c->qps[1], 5, 4096, 8), 0);
    probe(c, 3);
    last_report(c, &report);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    assert_int_equal(report.cumulative, alb_psn_add(csa_pair_psn(0), 3));
    assert_int_equal(report.word_count, 0);
    assert_int_equal(byte(c, 4096), 1);
    assert_int_equal(byte(c, 0), 2);
    csa_pair_expect(c, 1, 5, ALB_WC_SUCCESS);
}

// A bell says that there is something to do, which need not be a receive: what is waited for is reported once, and
// again only when the peer asks, or something has changed.
static void rnr__is_not_said_again_at_each_bell(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report report;
    struct alb_csa_segment segment = send(c, 1, 8);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    last_report(c, &report);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_RNR(1));
    for (uint32_t i = 0; i < 10; i++) {
        alb_engine_bell_ring(c->qps[1]);
        pair_send(c->pair, 1);
        assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, NULL), 0);
    }
    probe(c, 2);
    last_report(c, &report);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_RNR(1));
    segment = send(c, 2, 8); // two messages, and one receive: the second wait is another one
    segment.recv_number = 1;
    csa_pair_arrive_segment(c, 0, &segment, 2);
    last_report(c, &report);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 5, 4096, 8), 0);
    last_report(c, &report);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_RNR(1));
    assert_int_equal(report.cumulative, alb_psn_add(csa_pair_psn(0), 2));
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_send_rnr_err), 4); // each of these four reports
}

// A WRITE with immediate places what it has, and takes its receive before its last bytes are there.
static void rnr__of_a_write_with_immediate(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report report;
    uint8_t before = byte(c, S);
    struct alb_csa_segment segment = csa_pair_write(c, 0, 1, 0, 2 * S, S, 0);
    segment.op = ALB_CSA_WRITE_IMM;
    csa_pair_arrive_segment(c, 0, &segment, 1);
    segment = csa_pair_write(c, 0, 2, 1, 2 * S, S, ALB_CSA_LAST);
    segment.op = ALB_CSA_WRITE_IMM;
    segment.imm_be = 0x77;
    csa_pair_arrive_segment(c, 0, &segment, 2);
    assert_int_equal(byte(c, 0), 1);
    assert_int_equal(byte(c, S), before);
    last_report(c, &report);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_RNR(1));
    assert_int_equal(report.cumulative, alb_psn_add(csa_pair_psn(0), 2));
    assert_int_equal(report.held[0], 1);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 5, 4096, 8), 0);
    probe(c, 3);
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.opcode, ALB_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x77);
    assert_int_equal(wc.byte_len, 2 * S);
    assert_int_equal(byte(c, S), 2);
}

// ---- memory that a transaction has ----------------------------------------------------------------------------------

static const char transaction;

static void claim(struct csa_pair *c, struct alb_claim *it, uint32_t offset)
{
    alb_claim_init(it, &transaction, NULL);
    assert_true(alb_region_claim(c->pair->hosts[1].mr, it, pair_va(c->pair, 1, offset), 1));
}

static void check_report(struct csa_pair *c, uint8_t syndrome, int32_t next, uint64_t held)
{
    struct alb_csa_report report;
    last_report(c, &report);
    assert_int_equal(report.syndrome, syndrome);
    assert_int_equal(alb_psn_diff(report.cumulative, csa_pair_psn(0)), next);
    assert_int_equal(report.word_count ? report.held[0] : 0, held);
}

#define READY ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT)

// The message waits, and what comes behind it; nothing is executed, nothing must be sent again.
static void claimed__before_a_write(void **state)
{
    struct csa_pair *c = *state;
    struct alb_claim it;
    uint8_t before = byte(c, 0);
    claim(c, &it, S + 5);
    write_at(c, 1, 0, 2 * S, 1);
    write_at(c, 3, 0, 8, 3);
    write_at(c, 1, 1, 2 * S, 2);
    assert_int_equal(byte(c, 0), before);
    check_report(c, ALB_AETH_SYNDROME_RNR(1), 1, 7);
    probe(c, 4);
    check_report(c, ALB_AETH_SYNDROME_RNR(1), 1, 7);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_send_rnr_err), 2);
    alb_region_unclaim(&it);
    probe(c, 4);
    check_report(c, READY, 4, 0);
    assert_int_equal(byte(c, 0), 3);
    assert_int_equal(byte(c, 8), 1);
    assert_int_equal(byte(c, S + 5), 2);
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
}

// What cannot be placed is held and not acknowledged as if it had been; nothing overtakes it.
static void claimed__in_the_middle_of_a_write(void **state)
{
    struct csa_pair *c = *state;
    struct alb_claim it;
    uint8_t before[4] = {0, byte(c, S), byte(c, 2 * S), byte(c, 3 * S)};
    write_at(c, 1, 0, 4 * S, 1);
    claim(c, &it, 2 * S - 1);
    write_at(c, 1, 1, 4 * S, 2);
    write_at(c, 1, 2, 4 * S, 3);
    write_at(c, 1, 3, 4 * S, 4);
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(byte(c, i * S), before[i]);
    check_report(c, ALB_AETH_SYNDROME_RNR(1), 2, 7);
    write_at(c, 1, 1, 4 * S, 2); // again: it is there already
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_DUPLICATE), 1);
    check_report(c, ALB_AETH_SYNDROME_RNR(1), 2, 7);
    alb_region_unclaim(&it);
    probe(c, 5);
    check_report(c, READY, 5, 0);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(byte(c, i * S), i + 1);
}

// Others of the message that come late are placed, and do not hide that one of them waits.
static void claimed__while_earlier_ones_are_missing(void **state)
{
    struct csa_pair *c = *state;
    struct alb_claim it;
    uint8_t before = byte(c, 2 * S);
    write_at(c, 1, 1, 4 * S, 2);
    claim(c, &it, 2 * S);
    write_at(c, 1, 2, 4 * S, 3);
    check_report(c, ALB_AETH_SYNDROME_RNR(1), 1, 6);
    write_at(c, 1, 0, 4 * S, 1);
    assert_int_equal(byte(c, 0), 1);
    assert_int_equal(byte(c, 2 * S), before);
    check_report(c, ALB_AETH_SYNDROME_RNR(1), 3, 1);
    alb_region_unclaim(&it);
    write_at(c, 1, 3, 4 * S, 4); // whatever comes finds that it is free
    assert_int_equal(byte(c, 2 * S), 3);
    assert_int_equal(byte(c, 3 * S), 4);
    assert_int_equal(cumulative(c), 5);
}

static void claimed__with_no_memory_to_wait_in(void **state)
{
    struct csa_pair *c = *state;
    struct alb_claim it;
    c->engines[1]->config.csa_early_bytes_max = 0;
    claim(c, &it, 0);
    write_at(c, 1, 0, 8, 1);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NO_RECEIVE), 1);
    check_report(c, ALB_AETH_SYNDROME_RNR(1), 1, 0);
    alb_region_unclaim(&it);
    write_at(c, 1, 0, 8, 1);
    assert_int_equal(byte(c, 0), 1);
    assert_int_equal(cumulative(c), 2);
}

// ---- policies -------------------------------------------------------------------------------------------------------

static void use_go_back_n(struct alb_engine_config *config)
{
    config->loss = "go-back-n";
}

static void go_back_n__takes_no_segment_out_of_order_and_says_so_once(void **state)
{
    struct csa_pair *c = csa_pair_new(use_go_back_n, NULL);
    struct alb_csa_report report;
    csa_pair_greet(c);
    write_at(c, 2, 0, 8, 2);
    last_report(c, &report);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    assert_int_equal(report.word_count, 0);
    write_at(c, 3, 0, 8, 3);
    assert_int_equal(pair_send(c->pair, 1), 0);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_sent_seq_err), 1);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_OUT_OF_SEQUENCE), 2);
    write_at(c, 1, 0, 8, 1);
    assert_int_equal(cumulative(c), 2);
    write_at(c, 3, 0, 8, 3); // another gap
    last_report(c, &report);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    csa_pair_free(c);
}

static void use_irn(struct alb_engine_config *config)
{
    config->loss = "irn";
}

static void irn__reports_each_segment_out_of_order(void **state)
{
    struct csa_pair *c = csa_pair_new(use_irn, NULL);
    struct alb_csa_report report;
    csa_pair_greet(c);
    write_at(c, 2, 0, 8, 2);
    last_report(c, &report);
    assert_int_equal(report.held[0], 2);
    write_at(c, 4, 0, 8, 2);
    last_report(c, &report);
    assert_int_equal(report.held[0], 2 | 8);
    csa_pair_free(c);
}

// ---- the end of the stream ------------------------------------------------------------------------------------------

static void hear_end__tells_what_is_missing(void **state)
{
    struct csa_pair *c = *state;
    assert_false(alb_stream_in_misses(in_of(c)));
    probe(c, 5);
    assert_true(alb_stream_in_misses(in_of(c)));
    assert_int_equal(alb_psn_diff(in_of(c)->end, csa_pair_psn(0)), 5);
    probe(c, 3); // an older one
    assert_int_equal(alb_psn_diff(in_of(c)->end, csa_pair_psn(0)), 5);
    probe(c, 5 + (1 << 23)); // nonsense
    assert_int_equal(alb_psn_diff(in_of(c)->end, csa_pair_psn(0)), 5);
    for (int32_t i = 1; i < 5; i++)
        write_at(c, i, 0, 8, 1);
    assert_false(alb_stream_in_misses(in_of(c)));
}

static void hear_end__from_a_segment_of_a_long_message(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 1, 1, 100 * S, 1);
    assert_int_equal(alb_psn_diff(in_of(c)->end, csa_pair_psn(0)), 101);
}

// What many holes have made grow is given back when there is none any more.
static void bitmap__shrinks_when_nothing_is_missing(void **state)
{
    struct csa_pair *c = *state;
    struct alb_stream_in *in = &c->csa[1]->in_requests;
    csa_pair_greet(c);
    size_t used = alb_buddy_used(&c->engines[1]->csa->pool);
    for (int32_t i = 100; i > 0; i--) {
        struct alb_csa_segment segment = csa_pair_write(c, 0, i, 0, 8, 8, ALB_CSA_LAST);
        csa_pair_arrive_segment(c, 0, &segment, 1);
        assert_int_equal(in->capacity > ALB_STREAM_IN_OWN, i > 1);
    }
    assert_true(in->cumulative == alb_psn_add(csa_pair_psn(0), 101));
    assert_int_equal(alb_buddy_used(&c->engines[1]->csa->pool), used);
    for (int32_t i = 110; i > 100; i--) { // and all is as at first
        struct alb_csa_segment segment = csa_pair_write(c, 0, i, 0, 8, 8, ALB_CSA_LAST);
        csa_pair_arrive_segment(c, 0, &segment, 1);
    }
    assert_true(in->cumulative == alb_psn_add(csa_pair_psn(0), 111));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(bitmap__shrinks_when_nothing_is_missing),
        CSA_GREETED_TEST(segment__placed_as_it_comes_and_the_last_one_last),
        CSA_GREETED_TEST(segment__of_a_probe_is_answered_as_overdue),
        CSA_GREETED_TEST(segment__of_a_later_message_waits),
        cmocka_unit_test(segment__any_order),
        CSA_GREETED_TEST(segment__a_second_time_is_dropped_and_reported),
        CSA_GREETED_TEST(segment__of_an_answer_ahead_counts_as_one),
        CSA_GREETED_TEST(segment__beyond_the_window_is_dropped),
        CSA_GREETED_TEST(segment__growing_keeps_what_is_held),
        cmocka_unit_test(segment__that_would_wait_is_dropped_for_lack_of_room),
        cmocka_unit_test(full__is_reported_once),
        CSA_GREETED_TEST(stop__gives_back_all_that_waits),
        cmocka_unit_test(contradiction__is_refused),
        CSA_GREETED_TEST(contradiction__that_came_before_its_message_began),
        CSA_GREETED_TEST(contradiction__that_reaches_into_a_message_that_is_over),
        CSA_GREETED_TEST(contradiction__in_the_length_of_the_last_segment),
        cmocka_unit_test(hostile__numbers),
        CSA_GREETED_TEST(rnr__what_came_is_held),
        CSA_GREETED_TEST(rnr__is_not_said_again_at_each_bell),
        CSA_GREETED_TEST(rnr__of_a_write_with_immediate),
        CSA_GREETED_TEST(claimed__before_a_write),
        CSA_GREETED_TEST(claimed__in_the_middle_of_a_write),
        CSA_GREETED_TEST(claimed__while_earlier_ones_are_missing),
        CSA_GREETED_TEST(claimed__with_no_memory_to_wait_in),
        cmocka_unit_test(go_back_n__takes_no_segment_out_of_order_and_says_so_once),
        cmocka_unit_test(irn__reports_each_segment_out_of_order),
        CSA_GREETED_TEST(hear_end__tells_what_is_missing),
        CSA_GREETED_TEST(hear_end__from_a_segment_of_a_long_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
