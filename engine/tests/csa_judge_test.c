// SPDX-License-Identifier: BSD-2-Clause
// What reports do to the sending half of a stream: what has arrived, and what is lost. Side 0 sends, the reports of
// side 1 are made by hand. Offsets are from the first PSN of the stream.
#include "engine/tests/csa_pair.h"

#define MS   ALB_NS_PER_MS
#define ACK  ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT)
#define COST CSA_PAIR_SMALL_CHARGE

static int32_t una(struct csa_pair *c)
{
    return alb_psn_diff(csa_pair_out(c)->una, csa_pair_psn(0));
}

static void settle(struct csa_pair *c, alb_psn settled, uint32_t received)
{
    struct csa_made made;
    const struct alb_csa_paths paths = {
        .credit_bytes = ALB_CSA_CREDIT_NONE,
        .count = 1,
        .entries = {{.settled = settled, .received = received, .echo = (uint32_t)c->pair->now}},
    };
    csa_pair_make(c, 1, &made);
    csa_pair_add_paths(&made, &paths);
    csa_pair_arrive(c, 1, &made);
}

// ---- reports --------------------------------------------------------------------------------------------------------

static void report__cumulative(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_send_lost(c, 5);
    csa_pair_expect_inflight(c, 5 * COST);
    csa_pair_arrive_report(c, 1, 50, 3, 0, ACK);
    assert_int_equal(una(c), 3);
    csa_pair_expect_inflight(c, 3 * COST);
    csa_pair_arrive_report(c, 1, 51, 6, 0, ACK);
    assert_int_equal(una(c), 6);
    csa_pair_expect_inflight(c, 0);
}

static void use_go_back_n(struct alb_engine_config *config)
{
    config->loss = "go-back-n";
}

// What was not taken is not lost: nothing else between the two hosts is slowed down for it.
static void report__of_a_refusal(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_send_lost(c, 3);
    uint32_t window_bytes = c->csa[0]->assoc->live->congestion.window_bytes;
    settle(c, csa_pair_live(c, 0)->paths->path[0].next, 1);
    csa_pair_arrive_report(c, 1, 50, 2, 0, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_ERR);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_packet_seq_err), 0);
    assert_int_equal(c->csa[0]->assoc->live->congestion.window_bytes, window_bytes);
}

// The highest bit of a syndrome means nothing.
static void report__of_what_was_dropped_out_of_sequence(void **state)
{
    for (uint32_t bit = 0; bit <= 0x80; bit += 0x80) {
        struct csa_pair *c = csa_pair_new(use_go_back_n, NULL);
        csa_pair_greet(c);
        csa_pair_send_lost(c, 3);
        csa_pair_arrive_report(c, 1, 50, 1, 0, (uint8_t)(ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR) | bit));
        assert_int_equal(csa_pair_out(c)->lost_count, 3);
        csa_pair_free(c);
    }
}

static void report__of_answers_refuses_nothing(void **state)
{
    struct csa_pair *c = *state;
    struct alb_stream_out *out = &c->csa[1]->responses;
    struct csa_made made;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 4 * CSA_PAIR_ANSWER_SEGMENT);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    while (pair_send(c->pair, 1) > 0)
        while (pair_count(c->pair, 1))
            pair_lose(c->pair, 1);
    const struct alb_csa_paths paths = {
        .credit_bytes = ALB_CSA_CREDIT_NONE,
        .count = 1,
        .entries = {{.settled = csa_pair_live(c, 1)->paths->path[0].next, .received = 1}},
    };
    const struct alb_csa_report report = {
        .number = 50,
        .syndrome = ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR),
        .qpn = alb_qp_number(c->qps[1]),
        .is_response = true,
        .cumulative = out->una,
        .word_count = 1,
        .held = {2},
    };
    csa_pair_make(c, 0, &made);
    csa_pair_add_paths(&made, &paths);
    csa_pair_add_report(&made, &report);
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(alb_stream_out_count(out), 4);
    assert_int_equal(out->lost_count, 3);
}

static void use_a_wide_window(struct alb_engine_config *config)
{
    config->csa_pool_bytes = 16 << 20;
    config->csa_early_bytes_max = 8 << 20;
    config->csa_window_segments = 4096;
    config->window_start_bytes = config->window_max_bytes = 16 << 20;
}

// 3,200 segments, all of them lost.
static struct csa_pair *send_many(void)
{
    struct csa_pair *c = csa_pair_new(use_a_wide_window, NULL);
    csa_pair_greet(c);
    for (uint32_t i = 0; i < 16; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, 0, 200 * CSA_PAIR_SEGMENT);
    while (pair_send(c->pair, 0) > 0)
        while (pair_count(c->pair, 0))
            pair_lose(c->pair, 0);
    assert_int_equal(alb_stream_out_count(csa_pair_out(c)), 3200);
    settle(c, csa_pair_live(c, 0)->paths->path[0].next, 1);
    return c;
}

// All of the page is missing but for its second segment.
static void arrive_page(struct csa_pair *c, uint16_t number, uint32_t page, uint32_t words)
{
    struct csa_made made;
    struct alb_csa_report report = {
        .number = number,
        .syndrome = ACK,
        .qpn = alb_qp_number(c->qps[0]),
        .cumulative = alb_psn_add(csa_pair_psn(0), 1),
        .page = page,
        .word_count = words,
        .held = {1u << 1},
    };
    csa_pair_make(c, 1, &made);
    csa_pair_add_report(&made, &report);
    csa_pair_arrive(c, 1, &made);
}

static void report__a_page_tells_of_its_segments_only(void **state)
{
    struct csa_pair *c = send_many();
    arrive_page(c, 50, 0, ALB_CSA_BITMAP_WORDS);
    assert_int_equal(csa_pair_state(c, 1), ALB_SENT_LOST);
    assert_int_equal(csa_pair_state(c, 2), ALB_SENT_HELD);
    assert_int_equal(csa_pair_state(c, 2048), ALB_SENT_LOST);
    assert_int_equal(csa_pair_state(c, 2049), ALB_SENT_FLYING);
    arrive_page(c, 50, 1, 1); // nothing has come beyond it
    assert_int_equal(csa_pair_state(c, 2049), ALB_SENT_LOST);
    assert_int_equal(csa_pair_state(c, 2050), ALB_SENT_HELD);
    assert_int_equal(csa_pair_state(c, 3200), ALB_SENT_LOST);
    assert_int_equal(csa_pair_out(c)->lost_count, 3198);
    csa_pair_free(c);
}

// A packet that comes twice is as old as its report, whatever the page.
static void report__pages_of_one_number_count_once_each(void **state)
{
    struct csa_pair *c = send_many();
    arrive_page(c, 50, 0, 1);
    arrive_page(c, 50, 1, 1);
    uint64_t before = csa_pair_drops(c, 0, ALB_DROP_STALE_RESPONSE);
    arrive_page(c, 50, 0, 1);
    arrive_page(c, 50, 1, 1);
    arrive_page(c, 49, 2, 1);
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_STALE_RESPONSE), before + 3);
    csa_pair_free(c);
}

// One packet in fifty is lost, also behind what a single frame of the report tells of.
static void report__of_pages_repairs_all_at_once(void **state)
{
    struct csa_pair *c = csa_pair_new(use_a_wide_window, NULL);
    uint32_t packets = 0;
    csa_pair_greet(c);
    for (uint32_t i = 0; i < 16; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 200 * CSA_PAIR_SEGMENT);
    while (pair_send(c->pair, 0) > 0)
        while (pair_count(c->pair, 0)) {
            if (++packets % 50 == 1)
                pair_lose(c->pair, 0);
            else
                pair_deliver(c->pair, 0);
        }
    assert_int_equal(packets, 3200);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    pair_send(c->pair, 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REQUEST, NULL), 64);
    pair_settle(c->pair);
    for (uint32_t i = 0; i < 16; i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[0].memory, c->pair->hosts[1].memory, 200 * CSA_PAIR_SEGMENT);
    csa_pair_free(c);
}

// What lies beyond what was sent is nonsense.
static void report__a_page_beyond_the_window(void **state)
{
    struct csa_pair *c = send_many();
    arrive_page(c, 50, ALB_CSA_PAGES_MAX - 1, ALB_CSA_BITMAP_WORDS);
    assert_int_equal(csa_pair_out(c)->lost_count, 0);
    assert_int_equal(csa_pair_state(c, 2), ALB_SENT_FLYING);
    csa_pair_free(c);
}

static void report__bitmap(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_send_lost(c, 5);
    csa_pair_arrive_report(c, 1, 50, 2, 0x0a, ACK); // 3 and 5 are held
    assert_int_equal(una(c), 2);
    assert_int_equal(csa_pair_state(c, 2), ALB_SENT_FLYING);
    assert_int_equal(csa_pair_state(c, 3), ALB_SENT_HELD);
    assert_int_equal(csa_pair_state(c, 4), ALB_SENT_FLYING);
    assert_int_equal(csa_pair_state(c, 5), ALB_SENT_HELD);
    csa_pair_expect_inflight(c, 2 * COST);
    csa_pair_arrive_report(c, 1, 51, 2, 0x0a, ACK); // said again
    csa_pair_expect_inflight(c, 2 * COST);
    csa_pair_arrive_report(c, 1, 52, 6, 0, ACK);
    csa_pair_expect_inflight(c, 0);
}

static void report__an_older_one_is_ignored(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_send_lost(c, 5);
    csa_pair_arrive_report(c, 1, 50, 2, 0, ACK);
    csa_pair_arrive_report(c, 1, 50, 3, 0, ACK);
    csa_pair_arrive_report(c, 1, 49, 3, 0, ACK);
    csa_pair_arrive_report(c, 1, (uint16_t)(50 - 32767), 3, 0, ACK);
    assert_int_equal(una(c), 2);
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_STALE_RESPONSE), 3);
    csa_pair_arrive_report(c, 1, 50 + 300, 2, 0, ACK); // a receiver that is not ready has said so often
    csa_pair_arrive_report(c, 1, 50 + 140, 2, 0, ACK); // and one of those words comes late
    assert_int_equal(c->csa[0]->requests.report_number, 350);
    csa_pair_arrive_report(c, 1, 50 + 301, 3, 0, ACK);
    assert_int_equal(una(c), 3);
    csa_pair_arrive_report(c, 1, 50 + 301 + 32767, 4, 0, ACK);
    assert_int_equal(una(c), 4);
}

static void report__numbers_wrap(void **state)
{
    struct csa_pair *c = *state;
    uint16_t number = 65530;
    csa_pair_arrive_report(c, 1, 30000, 1, 0, ACK);
    csa_pair_arrive_report(c, 1, 60000, 1, 0, ACK);
    for (int32_t i = 1; i <= 12; i++) {
        csa_pair_send_lost(c, 1);
        csa_pair_arrive_report(c, 1, number++, i + 1, 0, ACK);
        assert_int_equal(una(c), i + 1);
    }
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_STALE_RESPONSE), 0);
}

static void report__of_what_was_never_sent(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_send_lost(c, 3);
    csa_pair_arrive_report(c, 1, 50, 5, 0, ACK);
    csa_pair_arrive_report(c, 1, 51, 0, 0, ACK); // acknowledged already
    csa_pair_arrive_report(c, 1, 52, 1 << 22, 0, ACK);
    csa_pair_arrive_report(c, 1, 53, -(1 << 23), 0, ACK);
    assert_int_equal(una(c), 1);
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_STALE_RESPONSE), 4);
    csa_pair_arrive_report(c, 1, 60, 2, ~0ull, ACK); // what was sent counts
    csa_pair_expect_inflight(c, 0);
    assert_int_equal(csa_pair_state(c, 3), ALB_SENT_HELD);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTS);
}

// ---- what is lost ---------------------------------------------------------------------------------------------------

// The path settled the packets before, and the report does not say that they came.
static void lost__is_what_its_path_has_settled(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    for (uint32_t i = 0; i < 4; i++)
        csa_pair_send_lost(c, 1); // a packet each
    alb_psn next = csa_pair_live(c, 0)->paths->path[0].next;
    csa_pair_arrive_report(c, 1, 50, 1, 8, ACK); // nothing is settled
    assert_int_equal(csa_pair_out(c)->lost_count, 0);
    settle(c, alb_psn_add(next, -1), 2); // all but the last one
    csa_pair_arrive_report(c, 1, 51, 1, 4, ACK);
    assert_int_equal(csa_pair_state(c, 1), ALB_SENT_LOST);
    assert_int_equal(csa_pair_state(c, 2), ALB_SENT_LOST);
    assert_int_equal(csa_pair_state(c, 3), ALB_SENT_HELD);
    assert_int_equal(csa_pair_state(c, 4), ALB_SENT_HELD);
    assert_int_equal(csa_pair_out(c)->lost_count, 2);
    csa_pair_expect_inflight(c, 0);
    pair_send(c->pair, 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REQUEST, NULL), 2);
    for (uint32_t i = 0; i < 2; i++) {
        csa_pair_frame(c, 0, ALB_CSA_REQUEST, i, &frame);
        assert_int_equal(frame.segment.psn, alb_psn_add(csa_pair_psn(0), 1 + (int32_t)i));
        assert_true(frame.segment.flags & ALB_CSA_REPORT_NOW);
    }
    assert_int_equal(csa_pair_out(c)->lost_count, 0);
    assert_int_equal(alb_stream_out_at(csa_pair_out(c), alb_psn_add(csa_pair_psn(0), 1))->times, 2);
    // The same report again does not lose them again: they left by another packet.
    csa_pair_arrive_report(c, 1, 52, 1, 4, ACK);
    assert_int_equal(csa_pair_out(c)->lost_count, 0);
    csa_pair_expect_inflight(c, 2 * COST);
}

static void use_many_paths(struct alb_engine_config *config)
{
    config->path_max = 64;
    config->window_start_bytes = config->window_max_bytes = config->window_min_bytes;
}

// 1 leaves, later 2, which alone is said to have come. Over many paths that tells how far 1 is behind; not if 2 has
// left twice, since which of them came is unknown.
static uint32_t lost_behind(bool is_resent)
{
    struct csa_pair *c = csa_pair_new(use_many_paths, NULL);
    csa_pair_greet(c);
    if (is_resent) {
        csa_pair_send_lost(c, 2);
        alb_assoc_release(csa_pair_live(c, 0),
                          alb_stream_out_mark_lost(csa_pair_out(c), alb_psn_add(csa_pair_psn(0), 2)));
        pair_pass(c->pair, MS / 2);
        csa_pair_send_lost(c, 1); // behind it
        assert_int_equal(alb_stream_out_at(csa_pair_out(c), alb_psn_add(csa_pair_psn(0), 2))->times, 2);
    } else {
        csa_pair_send_lost(c, 1);
        pair_pass(c->pair, MS / 2);
        csa_pair_send_lost(c, 1);
    }
    csa_pair_arrive_report(c, 1, 50, 1, 2, ACK);
    assert_int_equal(csa_pair_state(c, 2), ALB_SENT_HELD);
    uint32_t lost = csa_pair_out(c)->lost_count;
    csa_pair_free(c);
    return lost;
}

static void lost__is_what_was_overtaken_by_one_that_left_once(void **state)
{
    assert_int_equal(lost_behind(false), 1);
    assert_int_equal(lost_behind(true), 0);
}

static uint32_t judged; // segments, by the loss policy

static bool count_and_keep(const struct alb_csa_loss *loss, const struct alb_loss_segment *segment,
                           const struct alb_loss_sending *sending)
{
    judged++;
    return false;
}

// So many reports in one packet, of two pages each: the first page says that the segments up to 2049 are missing, the
// second that the others are.
static void arrive_reports(struct csa_pair *c, uint16_t number, uint32_t count)
{
    struct csa_made made;
    csa_pair_make(c, 1, &made);
    for (uint32_t i = 0; i < 2 * count; i++) {
        const struct alb_csa_report report = {
            .number = (uint16_t)(number + i / 2),
            .syndrome = ACK,
            .qpn = alb_qp_number(c->qps[0]),
            .cumulative = alb_psn_add(csa_pair_psn(0), 1),
            .page = i % 2,
            .word_count = i % 2 ? 1 : ALB_CSA_BITMAP_WORDS,
        };
        csa_pair_add_report(&made, &report);
    }
    csa_pair_arrive(c, 1, &made);
}

// An honest packet has one report of a stream. Others cost their sender little.
static void lost__each_packet_judges_a_segment_once(void **state)
{
    struct csa_pair *c = send_many();
    struct alb_csa_loss *loss = &c->engines[0]->csa->loss;
    struct alb_csa_loss_ops counting = *loss->ops;
    counting.is_lost = count_and_keep;
    loss->ops = &counting;
    judged = 0;
    arrive_reports(c, 50, 5);
    assert_int_equal(judged, 3200);
    assert_int_equal(csa_pair_out(c)->report_number, 54); // they are taken all the same
    arrive_reports(c, 60, 1);
    assert_int_equal(judged, 2 * 3200);
    arrive_page(c, 61, 0, 1);
    assert_int_equal(judged, 3 * 3200 - 1);
    loss->ops = &alb_csa_loss_csa;
    csa_pair_free(c);
}

// What one report of a packet acknowledges is behind those that judge after it.
static void lost__what_was_not_judged_is_by_the_next(void **state)
{
    struct csa_pair *c = send_many();
    struct csa_made made;
    csa_pair_make(c, 1, &made);
    for (uint32_t i = 0; i < 2; i++) {
        const struct alb_csa_report report = {
            .number = (uint16_t)(50 + i),
            .syndrome = ACK,
            .qpn = alb_qp_number(c->qps[0]),
            .cumulative = alb_psn_add(csa_pair_psn(0), 1 + 100 * (int32_t)i),
            .word_count = i == 0 ? ALB_CSA_BITMAP_WORDS : 1,
        };
        csa_pair_add_report(&made, &report);
    }
    csa_pair_arrive(c, 1, &made);
    assert_int_equal(csa_pair_state(c, 101), ALB_SENT_LOST);
    assert_int_equal(csa_pair_state(c, 3200), ALB_SENT_LOST);
    assert_int_equal(csa_pair_out(c)->lost_count, 3100);
    csa_pair_free(c);
}

// ---- a peer without room --------------------------------------------------------------------------------------------

static void arrive_full(struct csa_pair *c, uint16_t number, int32_t cumulative, uint64_t held)
{
    struct csa_made made;
    const struct alb_csa_report report = {
        .is_full = true,
        .number = number,
        .syndrome = ACK,
        .qpn = alb_qp_number(c->qps[0]),
        .cumulative = alb_psn_add(csa_pair_psn(0), cumulative),
        .word_count = held != 0,
        .held = {held},
    };
    csa_pair_make(c, 1, &made);
    csa_pair_add_report(&made, &report);
    csa_pair_arrive(c, 1, &made);
}

// Requests that leave now; they are lost.
static uint32_t leaving(struct csa_pair *c)
{
    pair_send(c->pair, 0);
    uint32_t count = csa_pair_count(c, 0, ALB_CSA_REQUEST, NULL);
    while (pair_count(c->pair, 0))
        pair_lose(c->pair, 0);
    return count;
}

// Twelve leave, a packet each, the path settles them, and the peer has dropped all but the first so many.
static void fill_up(struct csa_pair *c, int32_t taken)
{
    for (uint32_t i = 0; i < 12; i++)
        csa_pair_send_lost(c, 1);
    settle(c, csa_pair_live(c, 0)->paths->path[0].next, 13);
    arrive_full(c, 50, 1 + taken, 0);
}

static void full__half_of_it_goes_again(void **state)
{
    struct csa_pair *c = *state;
    fill_up(c, 0);
    assert_int_equal(csa_pair_out(c)->lost_count, 12);
    assert_int_equal(leaving(c), 6);
    csa_pair_send_lost(c, 1); // nor does anything new
    assert_int_equal(alb_stream_out_count(csa_pair_out(c)), 12);
}

// In no time at all: what is dropped again and again does not go again until something is taken.
static void full__again_and_again_leaves_silence_to_decide(void **state)
{
    struct csa_pair *c = *state;
    uint32_t sent = 0;
    fill_up(c, 0);
    for (uint16_t number = 51; number < 60; number++) {
        sent = leaving(c);
        settle(c, csa_pair_live(c, 0)->paths->path[0].next, 13);
        arrive_full(c, number, 1, 0);
    }
    assert_int_equal(sent, 0); // not even that one, which went alone
    assert_int_equal(csa_pair_out(c)->lost_count, 11);
    csa_pair_arrive_report(c, 1, 60, 3, 0, ACK); // two are taken
    assert_int_equal(leaving(c), 3);
    csa_pair_arrive_report(c, 1, 61, 6, 0, ACK);
    assert_int_equal(leaving(c), 6);
    csa_pair_arrive_report(c, 1, 62, 13, 0, ACK);
    csa_pair_send_lost(c, 16);
    assert_int_equal(alb_stream_out_count(csa_pair_out(c)), 13);
}

// What it has taken meanwhile it can take.
static void full__as_much_as_was_taken(void **state)
{
    struct csa_pair *c = *state;
    fill_up(c, 8);
    assert_int_equal(leaving(c), 4);
    csa_pair_arrive_report(c, 1, 51, 13, 0, ACK);
    csa_pair_send_lost(c, 16);
    assert_int_equal(alb_stream_out_count(csa_pair_out(c)), 12);
}

static void use_fixed(struct alb_engine_config *config)
{
    config->loss = "fixed";
}

// The oldest is held, for want of a receive, and the others have to wait: a policy of timeouts asks all the same.
static void full__and_silent(void **state)
{
    struct csa_pair *c = csa_pair_new(use_fixed, NULL);
    csa_pair_greet(c);
    fill_up(c, 0);
    for (uint16_t number = 51; number < 60; number++)
        arrive_full(c, number, 1, 1);
    leaving(c);
    pair_pass(c->pair, MS);
    pair_send(c->pair, 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_PROBE, NULL), 1);
    csa_pair_free(c);
}

static void wait_long(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 18;
}

// What a silent stream has under way is no longer charged. It has come, all the same.
static void silence__ends_with_what_has_come_behind_a_gap(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, wait_long);
    csa_pair_greet(c);
    csa_pair_send_lost(c, 12);
    while (!alb_stream_out_is_silent(csa_pair_out(c))) {
        pair_pass(c->pair, MS);
        leaving(c);
    }
    csa_pair_expect_inflight(c, 0);
    csa_pair_arrive_report(c, 1, 50, 1, 0xffe, ACK);
    assert_int_equal(csa_pair_out(c)->probes, 0);
    csa_pair_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(report__cumulative),
        CSA_GREETED_TEST(report__of_a_refusal),
        cmocka_unit_test(report__of_what_was_dropped_out_of_sequence),
        CSA_GREETED_TEST(report__of_answers_refuses_nothing),
        CSA_GREETED_TEST(report__bitmap),
        cmocka_unit_test(report__a_page_tells_of_its_segments_only),
        cmocka_unit_test(report__pages_of_one_number_count_once_each),
        cmocka_unit_test(report__of_pages_repairs_all_at_once),
        cmocka_unit_test(report__a_page_beyond_the_window),
        CSA_GREETED_TEST(report__an_older_one_is_ignored),
        CSA_GREETED_TEST(report__numbers_wrap),
        CSA_GREETED_TEST(report__of_what_was_never_sent),
        CSA_GREETED_TEST(lost__is_what_its_path_has_settled),
        cmocka_unit_test(lost__each_packet_judges_a_segment_once),
        cmocka_unit_test(lost__what_was_not_judged_is_by_the_next),
        cmocka_unit_test(lost__is_what_was_overtaken_by_one_that_left_once),
        CSA_GREETED_TEST(full__half_of_it_goes_again),
        CSA_GREETED_TEST(full__again_and_again_leaves_silence_to_decide),
        CSA_GREETED_TEST(full__as_much_as_was_taken),
        cmocka_unit_test(full__and_silent),
        cmocka_unit_test(silence__ends_with_what_has_come_behind_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
