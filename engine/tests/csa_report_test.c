// SPDX-License-Identifier: BSD-2-Clause
// What a receiving half tells its peer, and when. Side 0 asks by hand, side 1 reports.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

static struct alb_stream_in *in_of(struct csa_pair *c)
{
    return &c->csa[1]->in_requests;
}

static void write_at(struct csa_pair *c, int32_t offset, uint32_t flags)
{
    struct alb_csa_segment segment = csa_pair_write(c, 0, offset, 0, 8, 8, ALB_CSA_LAST | flags);
    csa_pair_arrive_segment(c, 0, &segment, 1);
}

// Lets side 1 send; the reports it sent, of which the last one is copied.
static uint32_t reports(struct csa_pair *c, struct alb_csa_report *report)
{
    struct alb_csa_frame frame = {0};
    pair_send(c->pair, 1);
    uint32_t count = csa_pair_count(c, 1, ALB_CSA_REPORT, &frame);
    if (report)
        *report = frame.report;
    while (pair_count(c->pair, 1))
        pair_lose(c->pair, 1);
    return count;
}

static void report__says_what_is_held(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report report;
    write_at(c, 1, 0);
    write_at(c, 4, 0);
    write_at(c, 70, ALB_CSA_REPORT_NOW);
    assert_int_equal(reports(c, &report), 1);
    assert_int_equal(report.qpn, alb_qp_number(c->qps[0]));
    assert_int_equal(report.cumulative, alb_psn_add(csa_pair_psn(0), 2));
    assert_int_equal(report.word_count, 2);
    assert_int_equal(report.held[0], 1u << 2);
    assert_int_equal(report.held[1], 1u << 4);
    assert_int_equal(report.syndrome, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    assert_false(report.is_response);
    assert_false(report.is_overdue);
}

static void use_a_wide_window(struct alb_engine_config *config)
{
    config->csa_window_segments = 8192;
}

// One packet has all of them, in their order.
static void report__of_much_has_pages(void **state)
{
    struct csa_pair *c = csa_pair_new(use_a_wide_window, NULL);
    csa_pair_greet(c);
    write_at(c, 3, 0);
    write_at(c, 3000, 0);
    write_at(c, 6000, ALB_CSA_REPORT_NOW);
    pair_send(c->pair, 1);
    assert_int_equal(pair_count(c->pair, 1), 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, NULL), 3);
    static const struct {
        uint32_t words, offset; // of the segment that is held, from the cumulative PSN
    } pages[] = {{ALB_CSA_BITMAP_WORDS, 2}, {ALB_CSA_BITMAP_WORDS, 2999}, {30, 5999}};
    for (uint32_t page = 0; page < 3; page++) {
        struct alb_csa_frame frame;
        csa_pair_frame(c, 1, ALB_CSA_REPORT, page, &frame);
        uint32_t at = pages[page].offset - page * ALB_CSA_PAGE_BITS;
        assert_int_equal(frame.report.page, page);
        assert_int_equal(frame.report.cumulative, alb_psn_add(csa_pair_psn(0), 1));
        assert_int_equal(frame.report.word_count, pages[page].words);
        for (uint32_t word = 0; word < frame.report.word_count; word++)
            assert_int_equal(frame.report.held[word], word == at / 64 ? 1ull << at % 64 : 0);
    }
    csa_pair_free(c);
}

static void report__not_unless_somebody_asks(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 1, 0);
    write_at(c, 2, 0);
    assert_int_equal(reports(c, NULL), 0);
    write_at(c, 3, ALB_CSA_REPORT_NOW);
    assert_int_equal(reports(c, NULL), 1);
}

static void report__several_reasons_make_one(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report first, second;
    for (int32_t i = 1; i < 6; i++)
        write_at(c, i, ALB_CSA_REPORT_NOW);
    assert_int_equal(reports(c, &first), 1);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_ack_deferred), 4);
    write_at(c, 6, ALB_CSA_REPORT_NOW);
    assert_int_equal(reports(c, &second), 1);
    assert_int_equal(second.number, (uint8_t)(first.number + 1));
}

static void report__goes_with_news_of_paths(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 1, ALB_CSA_REPORT_NOW);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_PATHS, NULL), 1);
}

// One packet of the path is missing before this one.
// In a packet of the only path: so many stand before it that have not left yet.
static void arrive_ahead(struct csa_pair *c, int32_t packets, const struct alb_csa_segment *segment)
{
    struct csa_made made;
    csa_pair_make(c, 0, &made);
    made.header.sequence = alb_psn_add(made.header.sequence, packets);
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, segment, "12345678");
    csa_pair_arrive(c, 0, &made);
}

static void arrive_behind_a_loss(struct csa_pair *c, const struct alb_csa_segment *segment)
{
    arrive_ahead(c, 1, segment);
}

// The path shows that something is lost: streams that miss something report it, at once.
static void hole__is_reported_when_its_path_settles(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report report;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 2, 0, 8, 8, ALB_CSA_LAST);
    arrive_behind_a_loss(c, &segment);
    assert_int_equal(reports(c, &report), 1);
    assert_int_equal(report.cumulative, alb_psn_add(csa_pair_psn(0), 1));
    assert_int_equal(report.held[0], 2);
}

// On a path that has brought packets late each gap waits as long as they were, on its own, and is reported then.
static void hole__is_reported_when_it_has_waited(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report report;
    csa_pair_live(c, 1)->paths_in[0].lateness_ns = 100 * US;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 2, 0, 8, 8, ALB_CSA_LAST);
    arrive_behind_a_loss(c, &segment);
    pair_pass(c->pair, 60 * US);
    segment = csa_pair_write(c, 0, 4, 0, 8, 8, ALB_CSA_LAST);
    arrive_ahead(c, 3, &segment);
    assert_int_equal(reports(c, NULL), 0);
    for (uint32_t i = 0; i < 2; i++) {
        pair_pass(c->pair, (i == 0 ? 40 : 60) * US - 1);
        assert_int_equal(reports(c, NULL), 0);
        pair_pass(c->pair, 1);
        assert_int_equal(reports(c, &report), 1);
        assert_int_equal(report.held[0], 1u << 1 | 1u << 3);
        assert_false(report.is_overdue);
    }
    pair_pass(c->pair, 100 * US);
    assert_int_equal(reports(c, NULL), 0);
}

static void hole__that_was_filled_is_reported_no_more(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 2, 0, 8, 8, ALB_CSA_LAST);
    arrive_behind_a_loss(c, &segment);
    segment = csa_pair_write(c, 0, 1, 0, 8, 8, ALB_CSA_LAST);
    arrive_ahead(c, 2, &segment);
    assert_int_equal(reports(c, NULL), 1);
    segment = csa_pair_write(c, 0, 3, 0, 8, 8, ALB_CSA_LAST);
    arrive_ahead(c, 4, &segment); // behind another loss, which is another stream's
    assert_int_equal(reports(c, NULL), 0);
}

static void hole__without_a_lost_packet_is_nobodys_loss(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 2, 0); // the next packet of the path: the other one comes by another path
    assert_int_equal(reports(c, NULL), 0);
}

// A message says how long it is: when the rest does not come, it is asked for, ever more rarely, and not for ever.
static void tail__is_asked_for(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report report;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 1, 0, 3 * CSA_PAIR_SEGMENT, CSA_PAIR_SEGMENT, 0);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    assert_int_equal(reports(c, NULL), 0);
    pair_pass(c->pair, 250 * US - 1); // a quarter of the round trip that is assumed
    assert_int_equal(reports(c, NULL), 0);
    pair_pass(c->pair, 1);
    assert_int_equal(reports(c, &report), 1);
    assert_true(report.is_overdue);
    assert_int_equal(report.cumulative, alb_psn_add(csa_pair_psn(0), 2));
    for (uint32_t i = 0; i < 7; i++) {
        pair_pass(c->pair, (1250 * US << i) - 1);
        assert_int_equal(reports(c, NULL), 0);
        pair_pass(c->pair, 1);
        assert_int_equal(reports(c, &report), 1);
    }
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_tail_asks), 8);
    pair_pass(c->pair, 10000 * MS);
    assert_int_equal(reports(c, NULL), 0);
    // When something comes it begins anew.
    segment = csa_pair_write(c, 0, 2, 1, 3 * CSA_PAIR_SEGMENT, CSA_PAIR_SEGMENT, 0);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    assert_int_equal(in_of(c)->asks, 0);
    pair_pass(c->pair, 10000 * MS);
    assert_true(reports(c, NULL) > 0);
}

static void expect_asked_after(struct csa_pair *c, alb_time wait_ns)
{
    pair_pass(c->pair, wait_ns - 1);
    assert_int_equal(reports(c, NULL), 0);
    pair_pass(c->pair, 1);
    assert_int_equal(reports(c, NULL), 1);
}

// When the end has come, and what is missing before it was asked for, the answer gets a round trip to come in.
static void tail__was_asked_for_already(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 2, 0, 8, 8, ALB_CSA_LAST);
    arrive_behind_a_loss(c, &segment);
    assert_int_equal(reports(c, NULL), 1);
    expect_asked_after(c, 1250 * US);
}

// What is to come behind the hole was not asked for.
static void tail__of_which_the_hole_alone_was_asked_for(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 2, 0, 2 * 8, 8, 0);
    arrive_behind_a_loss(c, &segment);
    assert_int_equal(reports(c, NULL), 1);
    expect_asked_after(c, 250 * US);
}

// The hole that was asked for was filled, and there is another one.
static void tail__of_which_another_hole_was_asked_for(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 3, 0, 8, 8, ALB_CSA_LAST);
    arrive_behind_a_loss(c, &segment);
    assert_int_equal(reports(c, NULL), 1);
    write_at(c, 1, 0);
    in_of(c)->gap_ns = 0; // so much for patience between arrivals
    expect_asked_after(c, 250 * US);
}

// Nothing was asked for, whatever number stands there.
static void tail__of_a_stream_that_never_asked(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 2, 0);
    in_of(c)->asked_psn = in_of(c)->cumulative;
    in_of(c)->asked_at = c->pair->now;
    expect_asked_after(c, 250 * US);
}

// What has been asked for in vain does not make the receiver slow to ask once something comes.
static void tail__patience_begins_anew(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 1, 0, 3 * CSA_PAIR_SEGMENT, CSA_PAIR_SEGMENT, 0);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    pair_pass(c->pair, (250 + 1250 + 2500) * US);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_tail_asks), 3); // the next one 5 ms from now
    segment = csa_pair_write(c, 0, 2, 1, 3 * CSA_PAIR_SEGMENT, CSA_PAIR_SEGMENT, 0);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    reports(c, NULL);
    pair_pass(c->pair, 3 * MS); // four gaps of an eighth of 4 ms, and a margin
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_tail_asks), 4);
}

// The first segment comes before anything is known of the way; the second one says how long it is.
static void tail__is_asked_for_by_what_is_known_meanwhile(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 1, 0, 4 * CSA_PAIR_SEGMENT, CSA_PAIR_SEGMENT, 0);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    c->csa[1]->assoc->live->peer_rtt_ns = 20 * US;
    segment = csa_pair_write(c, 0, 2, 1, 4 * CSA_PAIR_SEGMENT, CSA_PAIR_SEGMENT, 0);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    pair_pass(c->pair, 5 * US - 1);
    assert_int_equal(reports(c, NULL), 0);
    pair_pass(c->pair, 1);
    assert_int_equal(reports(c, NULL), 1);
}

static void tail__nothing_is_missing(void **state)
{
    struct csa_pair *c = *state;
    for (uint32_t i = 0; i < 2; i++) { // the first one has the timer armed
        struct alb_csa_segment segment =
            csa_pair_write(c, 0, 1 + (int32_t)i, i, 2 * CSA_PAIR_SEGMENT, CSA_PAIR_SEGMENT, i == 1 ? ALB_CSA_LAST : 0);
        csa_pair_arrive_segment(c, 0, &segment, 1);
        assert_true(alb_timer_is_armed(&in_of(c)->tail_timer.timer));
    }
    pair_pass(c->pair, 10000 * MS);
    assert_int_equal(reports(c, NULL), 0);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_tail_asks), 0);
}

// Before anything could be sent the queue pair goes.
static void report__of_who_is_gone(void **state)
{
    struct csa_pair *c = *state;
    write_at(c, 2, ALB_CSA_REPORT_NOW);
    assert_true(alb_list_is_linked(&in_of(c)->report_link));
    assert_int_equal(alb_qp_destroy(c->qps[1]), 0);
    assert_int_equal(reports(c, NULL), 0);
    pair_pass(c->pair, 3000 * MS);
}

// A program that is answered knows by then that what it sent has arrived, though the report stands behind the answer.
static void report__counts_before_the_answer_beside_it(void **state)
{
    struct csa_pair *c = *state;
    struct alb_wc wc;
    assert_int_equal(pair_receive(c->pair, c->qps[0], 7, 0, 64), 0);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 8, 0, 64), 0);
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_SEND, 2, 0, 0, 8), 0);
    assert_int_equal(pair_send(c->pair, 1), 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, NULL), 1);
    pair_deliver(c->pair, 1);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 1);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 7);
    csa_pair_expect(c, 1, 8, ALB_WC_SUCCESS);
    pair_settle(c->pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(report__says_what_is_held),
        CSA_GREETED_TEST(report__not_unless_somebody_asks),
        cmocka_unit_test(report__of_much_has_pages),
        CSA_GREETED_TEST(report__several_reasons_make_one),
        CSA_GREETED_TEST(report__goes_with_news_of_paths),
        CSA_GREETED_TEST(hole__is_reported_when_its_path_settles),
        CSA_GREETED_TEST(hole__is_reported_when_it_has_waited),
        CSA_GREETED_TEST(hole__that_was_filled_is_reported_no_more),
        CSA_GREETED_TEST(hole__without_a_lost_packet_is_nobodys_loss),
        CSA_GREETED_TEST(tail__is_asked_for),
        CSA_GREETED_TEST(tail__was_asked_for_already),
        CSA_GREETED_TEST(tail__of_which_the_hole_alone_was_asked_for),
        CSA_GREETED_TEST(tail__of_which_another_hole_was_asked_for),
        CSA_GREETED_TEST(tail__of_a_stream_that_never_asked),
        CSA_GREETED_TEST(tail__patience_begins_anew),
        CSA_GREETED_TEST(tail__is_asked_for_by_what_is_known_meanwhile),
        CSA_GREETED_TEST(tail__nothing_is_missing),
        CSA_GREETED_TEST(report__of_who_is_gone),
        CSA_GREETED_TEST(report__counts_before_the_answer_beside_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
