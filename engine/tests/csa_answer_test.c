// SPDX-License-Identifier: BSD-2-Clause
// Answers on their way, and how long they are kept. Side 0 asks by hand, side 1 answers.
#include "engine/csa_message.h"
#include "engine/csa_run.h"
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define A CSA_PAIR_ANSWER_SEGMENT

static void read(struct csa_pair *c, int32_t offset, uint32_t length, int32_t acked)
{
    struct alb_csa_segment segment = csa_pair_write(c, 0, offset, 0, length, 0, ALB_CSA_LAST);
    segment.op = ALB_CSA_READ;
    segment.acked = alb_psn_add(csa_pair_psn(0), acked);
    csa_pair_arrive_segment(c, 0, &segment, 0);
}

static void report(struct csa_pair *c, uint16_t number, int32_t cumulative, uint64_t held)
{
    struct csa_made made;
    const struct alb_csa_report what = {
        .is_response = true,
        .is_overdue = true,
        .number = number,
        .syndrome = ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT),
        .qpn = alb_qp_number(c->qps[1]),
        .cumulative = alb_psn_add(csa_pair_psn(0), cumulative),
        .word_count = held != 0,
        .held = {held},
    };
    csa_pair_make(c, 0, &made);
    csa_pair_add_report(&made, &what);
    csa_pair_arrive(c, 0, &made);
}

static void lose_all(struct csa_pair *c)
{
    while (pair_count(c->pair, 1))
        pair_lose(c->pair, 1);
}

// Memory of side 1 beside the pair's own, which goes before what was asked of it has left.
static struct alb_region *lend(struct csa_pair *c, uint8_t memory[64])
{
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(c->pair->hosts[1].pd, memory, 64, (uintptr_t)memory, ALB_ACCESS_REMOTE_READ, &mr),
                     0);
    return mr;
}

static void read_lent(struct csa_pair *c, int32_t offset, const uint8_t *memory, uint32_t rkey, int32_t acked)
{
    struct alb_csa_segment segment = csa_pair_write(c, 0, offset, 0, 8, 0, ALB_CSA_LAST);
    segment.op = ALB_CSA_READ;
    segment.va = (uintptr_t)memory;
    segment.rkey = rkey;
    segment.acked = alb_psn_add(csa_pair_psn(0), acked);
    csa_pair_arrive_segment(c, 0, &segment, 0);
}

static void answer__a_read_in_segments(void **state)
{
    struct csa_pair *c = *state;
    read(c, 1, 2 * A + 5, 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 3);
    for (uint32_t i = 0; i < 3; i++) {
        struct alb_csa_frame frame;
        csa_pair_frame(c, 1, ALB_CSA_RESPONSE, i, &frame);
        const struct alb_csa_segment *segment = &frame.segment;
        assert_int_equal(segment->op, ALB_CSA_READ_DATA);
        assert_int_equal(segment->psn, alb_psn_add(csa_pair_psn(0), (int32_t)i)); // as the stream that it answers
        assert_int_equal(segment->request_psn, alb_psn_add(csa_pair_psn(0), 1));
        assert_int_equal(segment->index, i);
        assert_int_equal(segment->total_bytes, 2 * A + 5);
        assert_int_equal(segment->payload_bytes, i < 2 ? A : 5);
        assert_memory_equal(segment->payload, c->pair->hosts[1].memory + i * A, segment->payload_bytes);
        assert_int_equal(!(segment->flags & ALB_CSA_LAST), i < 2);
    }
}

static void answer__of_nothing(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    read(c, 1, 0, 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, &frame), 1);
    assert_int_equal(frame.segment.payload_bytes, 0);
    assert_true(frame.segment.flags & ALB_CSA_REPORT_NOW); // the latest there is
}

static void answer__kept_until_it_is_known_to_be_held(void **state)
{
    struct csa_pair *c = *state;
    read(c, 1, 2 * A, 0);
    read(c, 2, 8, 0);
    pair_send(c->pair, 1);
    lose_all(c);
    assert_int_equal(c->csa[1]->answer_count, 2);
    report(c, 50, 1, 0); // half of the first one
    assert_int_equal(c->csa[1]->answer_count, 2);
    report(c, 51, 2, 0);
    assert_int_equal(c->csa[1]->answer_count, 1);
    read(c, 3, 8, 3); // the requester says that it holds the second one as well
    assert_int_equal(c->csa[1]->answer_count, 1);
    assert_int_equal(csa_pair_live(c, 1)->inflight_bytes, 0);
    read(c, 4, 8, 1);   // an old word changes nothing
    read(c, 5, 8, 100); // nor one of answers that never left
    assert_int_equal(c->csa[1]->answer_count, 3);
}

// The bytes are those that the memory holds when a segment leaves, also when it leaves again.
static void answer__what_is_lost_goes_again(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    read(c, 1, 3 * A, 0);
    pair_send(c->pair, 1);
    lose_all(c);
    memset(c->pair->hosts[1].memory + A, 0xcc, A);
    pair_pass(c->pair, 2 * ALB_NS_PER_MS); // beyond the round trip that is assumed
    lose_all(c);
    report(c, 50, 1, 2); // the second one is missing
    pair_send(c->pair, 1);
    csa_pair_frame(c, 1, ALB_CSA_RESPONSE, 0, &frame);
    assert_int_equal(frame.segment.index, 1);
    assert_int_equal(frame.segment.payload[0], 0xcc);
    assert_true(csa_pair_stat(c, 1, ALB_STAT_retransmitted_pkts) >= 1);
}

static void answer__whose_memory_is_gone(void **state)
{
    struct csa_pair *c = *state;
    static uint8_t memory[64];
    struct alb_csa_frame frame;
    struct alb_region *mr = lend(c, memory);
    read_lent(c, 1, memory, alb_region_key(mr), 0);
    assert_int_equal(alb_mr_destroy(mr), 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 0);
    assert_true(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame) > 0);
    assert_int_equal(frame.report.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(csa_pair_live(c, 1)->inflight_bytes, 0);
}

// What can not be given waits for the answer before it, and is said also when the word that this one came is in a
// request that is refused itself.
static void answer__whose_memory_is_gone_behind_another(void **state)
{
    struct csa_pair *c = *state;
    static uint8_t memory[64];
    struct alb_csa_frame frame;
    struct alb_region *mr = lend(c, memory);
    uint32_t rkey = alb_region_key(mr);
    read(c, 1, 8, 0);
    read_lent(c, 2, memory, rkey, 0);
    assert_int_equal(alb_mr_destroy(mr), 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 1);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
    lose_all(c);
    read_lent(c, 3, memory, rkey, 1); // the same key
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    pair_send(c->pair, 1);
    assert_true(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame) > 0);
    assert_int_equal(frame.report.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
    assert_int_equal(c->csa[1]->answer_count, 0);
}

// A request that names a key that there is not.
static void read_nowhere(struct csa_pair *c, int32_t offset)
{
    struct alb_csa_segment segment = csa_pair_write(c, 0, offset, 0, 8, 0, ALB_CSA_LAST);
    segment.op = ALB_CSA_READ;
    segment.rkey ^= 0xabcd00;
    segment.acked = csa_pair_psn(0);
    csa_pair_arrive_segment(c, 0, &segment, 0);
}

// Lets side 1 send; how many reports there were, of which the last one is copied.
static uint32_t reports(struct csa_pair *c, struct alb_csa_report *last)
{
    struct alb_csa_frame frame = {0};
    pair_send(c->pair, 1);
    uint32_t count = csa_pair_count(c, 1, ALB_CSA_REPORT, &frame);
    *last = frame.report;
    lose_all(c);
    return count;
}

// The peer takes the oldest request without an answer for the one that is refused.
static void refusal__is_said_when_all_before_it_is_answered(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report said;
    read(c, 1, 2 * A, 0);
    read_nowhere(c, 2);
    reports(c, &said);
    assert_int_equal(said.syndrome, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    report(c, 50, 1, 0);
    assert_int_equal(reports(c, &said), 0);
    report(c, 51, 2, 0);
    assert_int_equal(reports(c, &said), 1);
    assert_int_equal(said.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
}

// Then the peer hears of that one, and not of the request behind it that was refused before.
static void refusal__of_an_answer_before_it_takes_its_place(void **state)
{
    struct csa_pair *c = *state;
    static uint8_t memory[64];
    struct alb_csa_report said;
    struct alb_region *mr = lend(c, memory);
    read_lent(c, 1, memory, alb_region_key(mr), 0);
    read(c, 2, ALB_MAX_MESSAGE + 1u, 0);
    assert_int_equal(c->csa[1]->in_requests.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_INVALID_REQUEST));
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_true(reports(c, &said) > 0);
    assert_int_equal(said.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
    assert_int_equal(c->csa[1]->answer_count, 0);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_resp_remote_invalid_request), 1); // the queue pair ends once
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_resp_remote_access_errors), 0);
}

// Also when it had left before, and what it takes the place of has been said.
static void refusal__of_a_lost_answer_is_said(void **state)
{
    struct csa_pair *c = *state;
    static uint8_t memory[64];
    struct alb_csa_report said;
    struct alb_region *mr = lend(c, memory);
    read_lent(c, 1, memory, alb_region_key(mr), 0);
    read_nowhere(c, 2);
    assert_int_equal(reports(c, &said), 1);
    assert_int_equal(said.syndrome, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    assert_int_equal(alb_mr_destroy(mr), 0);
    pair_pass(c->pair, 60 * ALB_NS_PER_MS);
    lose_all(c);
    report(c, 50, 0, 0);
    assert_int_equal(reports(c, &said), 1);
    assert_int_equal(said.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
}

// It left before, and may have come: its requester reports it missing, and such a report may be late. Only one that
// still lacks it long afterwards is refused.
static void lose_memory_behind_it(bool comes)
{
    struct csa_pair *c = csa_pair_new(NULL, NULL);
    static uint8_t memory[64];
    struct alb_csa_frame frame;
    uint32_t probes = 0;
    csa_pair_greet(c);
    struct alb_region *mr = lend(c, memory);
    read_lent(c, 1, memory, alb_region_key(mr), 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 1);
    lose_all(c);
    assert_int_equal(alb_mr_destroy(mr), 0);
    for (uint8_t number = 50; number < 56; number++) {
        pair_pass(c->pair, 2 * ALB_NS_PER_MS);
        report(c, number, 0, 0);
        pair_send(c->pair, 1);
        assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 0);
        assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
        assert_true(csa_pair_count(c, 1, ALB_CSA_PROBE, NULL) <= 1); // as often as silence asks, not as it is answered
        probes += csa_pair_count(c, 1, ALB_CSA_PROBE, NULL);
        lose_all(c);
    }
    assert_true(probes > 0);
    if (comes) {
        report(c, 60, 1, 0);
        assert_int_equal(c->csa[1]->answer_count, 0);
        pair_pass(c->pair, 1000 * ALB_NS_PER_MS);
        assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
    } else {
        pair_pass(c->pair, 60 * ALB_NS_PER_MS);
        lose_all(c);
        report(c, 60, 0, 0);
        pair_send(c->pair, 1);
        assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
        csa_pair_count(c, 1, ALB_CSA_REPORT, &frame);
        assert_int_equal(frame.report.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
    }
    csa_pair_free(c);
}

static void answer__whose_memory_is_gone_since_it_came(void **state)
{
    lose_memory_behind_it(true);
}

static void answer__whose_memory_is_gone_since_it_was_lost(void **state)
{
    lose_memory_behind_it(false);
}

// ---- silence --------------------------------------------------------------------------------------------------------

// Lets time pass until side 1 sends segments of answers: how many, of which the last is copied.
static uint32_t answers_after_silence(struct csa_pair *c, struct alb_csa_frame *last)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < 1000 && count == 0; i++) {
        pair_pass(c->pair, ALB_NS_PER_MS);
        pair_send(c->pair, 1);
        count = csa_pair_count(c, 1, ALB_CSA_RESPONSE, last);
        lose_all(c);
    }
    return count;
}

// Its next life has not asked for them, and may have asked for others by the same numbers.
static void refusal__answers_before_it_end_with_the_peers_life(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_report said;
    struct csa_made made;
    uint8_t frame[ALB_CSA_FRAME_MAX];
    read(c, 1, 2 * A, 0);
    read_nowhere(c, 2);
    reports(c, &said);
    csa_pair_make(c, 0, &made);
    uint32_t epoch = made.header.source_epoch;
    made.header.source_epoch ^= 1;
    csa_pair_add_bytes(&made, frame, alb_csa_encode_reset(ALB_CSA_RESET_EPOCH, epoch, frame));
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(c->csa[1]->assoc->peer_epoch, 0);
    pair_pass(c->pair, 100 * ALB_NS_PER_MS);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 0);
    assert_int_equal(c->csa[1]->answer_count, 0);
}

static void probe__is_the_newest_segment_once(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    read(c, 1, 2 * A, 0);
    pair_send(c->pair, 1);
    lose_all(c);
    assert_int_equal(answers_after_silence(c, &frame), 1);
    assert_int_equal(frame.segment.index, 1);
    assert_int_equal(frame.segment.flags, ALB_CSA_LAST | ALB_CSA_PROBING | ALB_CSA_REPORT_NOW);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 0);
}

static void probe__that_does_not_fit_leaves_in_the_next_packet(void **state)
{
    struct csa_pair *c = *state;
    struct alb_stream_out *out = &c->csa[1]->responses;
    struct alb_csa_frame frame;
    struct alb_tx_builder builder;
    struct alb_csa_packet packet;
    read(c, 1, 2 * A, 0);
    pair_send(c->pair, 1);
    lose_all(c);
    alb_stream_out_probe_oldest(out);
    alb_tx_builder_init(&builder, &c->pair->hosts[1].tx);
    alb_csa_packet_init(&packet, csa_pair_live(c, 1), &builder, c->pair->now);
    assert_true(alb_csa_packet_open(&packet));
    packet.frames = 1;
    packet.room_bytes = 8;
    assert_int_equal(alb_csa_fill_response(c->csa[1], &packet), ALB_CSA_FILL_PACKET);
    packet.frames = 0; // given up
    alb_csa_packet_close(&packet);
    alb_stream_out_wake(out);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, &frame), 1);
    assert_int_equal(frame.segment.index, 0);
    assert_int_equal(frame.segment.flags, ALB_CSA_PROBING | ALB_CSA_REPORT_NOW);
}

// Other answers wait until the requester says that it has something.
static void silence__holds_answers_back(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    read(c, 1, 8, 0);
    pair_send(c->pair, 1);
    lose_all(c);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(answers_after_silence(c, &frame), 1);
    read(c, 2, 8, 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 0);
    lose_all(c);
    report(c, 50, 1, 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, &frame), 1);
    assert_int_equal(frame.segment.request_psn, alb_psn_add(csa_pair_psn(0), 2));
}

// Many READs and atomics both ways, with every third packet lost.
static void answers__of_both_sides_with_losses(void **state)
{
    struct csa_pair *c = *state;
    struct alb_wc wc;
    uint32_t done[2] = {0}, packets = 0;
    for (uint32_t round = 0; round < 4000 && done[0] + done[1] < 24; round++) {
        for (int side = 0; side < 2 && round < 12; side++)
            assert_int_equal(pair_ask(c->pair, c->qps[side], round % 3 ? ALB_WR_RDMA_READ : ALB_WR_ATOMIC_FETCH_AND_ADD,
                                      round, ALB_SEND_SIGNALED, 4096 * (uint32_t)(1 + side), round % 3 ? 3000 : 8),
                             0);
        for (int side = 0; side < 2; side++) {
            pair_send(c->pair, side);
            while (pair_count(c->pair, side))
                if (packets++ % 3 == 2)
                    pair_lose(c->pair, side);
                else
                    pair_deliver(c->pair, side);
        }
        pair_pass(c->pair, 300 * ALB_NS_PER_US);
        for (int side = 0; side < 2; side++)
            while (pair_poll(c->pair, side, &wc)) {
                assert_int_equal(wc.status, ALB_WC_SUCCESS);
                assert_int_equal(wc.wr_id, done[side]++);
            }
    }
    assert_int_equal(done[0] + done[1], 24);
}

// ---- what may be owed -----------------------------------------------------------------------------------------------

static enum alb_outcome cut(struct csa_pair *c, uint32_t length)
{
    struct alb_csa_answer answer = {.op = ALB_CSA_READ, .length = length};
    return alb_csa_cut_answer(c->csa[1], &answer);
}

static void owed__no_more_than_there_are_places(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa *csa = c->csa[1];
    assert_int_equal(cut(c, 8), ALB_OUTCOME_OK);
    csa->answer_count = csa->answer_capacity;
    assert_int_equal(cut(c, 8), ALB_OUTCOME_INVALID_REQUEST);
    csa->answer_count = 0;
}

// What is older and what is newer can be told apart within half of the numbers.
static void owed__no_more_than_half_of_the_numbers(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa *csa = c->csa[1];
    alb_psn before = csa->answer_psn;
    const int32_t half = ALB_PSN_MASK / 2;
    csa->answer_psn = alb_psn_add(csa->responses.una, half - 3);
    assert_int_equal(cut(c, 3 * A), ALB_OUTCOME_OK);
    assert_int_equal(cut(c, 3 * A + 1), ALB_OUTCOME_RNR);
    csa->answer_psn = before;
}

// The segments of an answer between its first and its last may go as a run.
static void answer_rest__is_what_is_neither_first_nor_last(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_rest_out rest;
    read(c, 1, 3 * A + 5, 0);
    assert_false(alb_csa_answer_rest(c->csa[1], csa_pair_psn(0), &rest));
    for (uint32_t k = 1; k < 3; k++) {
        assert_true(alb_csa_answer_rest(c->csa[1], alb_psn_add(csa_pair_psn(0), (int32_t)k), &rest));
        assert_int_equal(rest.k, k);
        assert_int_equal(rest.packets, 4);
        assert_int_equal(rest.segment_bytes, A);
        assert_int_equal(rest.bytes_count, (3 - k) * A + 5);
        assert_ptr_equal(rest.bytes, c->pair->hosts[1].memory + k * A);
    }
    assert_false(alb_csa_answer_rest(c->csa[1], alb_psn_add(csa_pair_psn(0), 3), &rest));
    assert_false(alb_csa_answer_rest(c->csa[1], alb_psn_add(csa_pair_psn(0), 4), &rest));
}

// A report is asked for when enough has gone, when the window has no room for two more, and with the latest.
// Behind the last one that the peer has room for.
static void answer__asks_where_no_more_may_leave(void **state)
{
    struct csa_pair *c = *state;
    c->csa[1]->responses.room = 3;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8 * CSA_PAIR_ANSWER_SEGMENT);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 3);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_PROBE, NULL), 1);
    pair_settle(c->pair); // no time passes
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

static void answer__asks_for_a_report(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa *csa = c->csa[1];
    struct alb_assoc_live *live = csa_pair_live(c, 1);
    read(c, 1, 8 * A, 0);
    uint32_t window = ALB_MIN(live->congestion.window_bytes, live->credit_bytes);
    uint32_t many = window / ALB_MAX(4u, live->paths->count / 2u), inflight = live->inflight_bytes;
    csa->responses.unasked_bytes = many - 2 * A;
    assert_false(alb_csa_answer_asks_for_report(csa, false, A));
    assert_int_equal(csa->responses.unasked_bytes, many - A);
    assert_true(alb_csa_answer_asks_for_report(csa, false, A));
    assert_int_equal(csa->responses.unasked_bytes, 0);
    live->inflight_bytes = window - 2 * A;
    assert_false(alb_csa_answer_asks_for_report(csa, false, A));
    live->inflight_bytes++;
    assert_true(alb_csa_answer_asks_for_report(csa, false, A));
    live->inflight_bytes = inflight;
    assert_false(alb_csa_answer_asks_for_report(csa, true, A)); // the last of its answer, with others behind it
    csa->responses.next = alb_psn_add(csa->answer_psn, -1);
    assert_true(alb_csa_answer_asks_for_report(csa, true, A));
    csa->responses.next = csa->responses.una;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(answer__a_read_in_segments),
        CSA_GREETED_TEST(answer__of_nothing),
        CSA_GREETED_TEST(answer__kept_until_it_is_known_to_be_held),
        CSA_GREETED_TEST(answer__what_is_lost_goes_again),
        CSA_GREETED_TEST(answer__whose_memory_is_gone),
        CSA_GREETED_TEST(answer__whose_memory_is_gone_behind_another),
        CSA_GREETED_TEST(refusal__is_said_when_all_before_it_is_answered),
        CSA_GREETED_TEST(refusal__of_an_answer_before_it_takes_its_place),
        CSA_GREETED_TEST(refusal__of_a_lost_answer_is_said),
        cmocka_unit_test(answer__whose_memory_is_gone_since_it_came),
        cmocka_unit_test(answer__whose_memory_is_gone_since_it_was_lost),
        CSA_GREETED_TEST(refusal__answers_before_it_end_with_the_peers_life),
        CSA_GREETED_TEST(probe__is_the_newest_segment_once),
        CSA_GREETED_TEST(probe__that_does_not_fit_leaves_in_the_next_packet),
        CSA_GREETED_TEST(silence__holds_answers_back),
        CSA_GREETED_TEST(answers__of_both_sides_with_losses),
        CSA_GREETED_TEST(owed__no_more_than_there_are_places),
        CSA_GREETED_TEST(owed__no_more_than_half_of_the_numbers),
        CSA_GREETED_TEST(answer_rest__is_what_is_neither_first_nor_last),
        CSA_GREETED_TEST(answer__asks_for_a_report),
        CSA_GREETED_TEST(answer__asks_where_no_more_may_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
