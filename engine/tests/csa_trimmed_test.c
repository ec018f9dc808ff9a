// SPDX-License-Identifier: BSD-2-Clause
// Packets that a switch has cut down to their headers. Side 0 sends, side 1 gets what is left of it; no time passes
// unless a test says so, so that nothing but the hint recovers anything.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define MS ALB_NS_PER_MS

// What is left of a datagram from that side comes to the other, in memory of its exact length.
static void arrive_trimmed(struct csa_pair *c, int side, const struct alb_datagram *datagram, uint32_t length)
{
    struct alb_datagram left = *datagram;
    uint8_t *bytes = malloc(ALB_MAX(length, 1u));
    assert_non_null(bytes);
    memcpy(bytes, datagram->bytes, length);
    left.bytes = bytes;
    left.length = length;
    alb_engine_rx_trimmed(c->engines[!side], &left, c->pair->now);
    free(bytes);
}

// The oldest packet of that side is trimmed on its way.
static void trim(struct csa_pair *c, int side)
{
    const struct alb_datagram *datagram = &pair_peek(c->pair, side, 0)->datagram;
    arrive_trimmed(c, side, datagram, ALB_MIN(datagram->length, (uint32_t)ALB_CSA_TRIMMED_BYTES));
    pair_lose(c->pair, side);
}

// What side 1 reports: the number of such frames on the wire, of which the last one is copied.
static uint32_t reported(struct csa_pair *c, struct alb_csa_trimmed *trimmed)
{
    struct alb_csa_frame frame = {0};
    pair_send(c->pair, 1);
    uint32_t count = csa_pair_count(c, 1, ALB_CSA_TRIMMED, &frame);
    if (trimmed)
        *trimmed = frame.trimmed;
    return count;
}

// A WRITE of so many segments is on the wire.
static void ask_segments(struct csa_pair *c, uint32_t segments)
{
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, segments * CSA_PAIR_SEGMENT);
    pair_send(c->pair, 0);
    assert_int_equal(pair_count(c->pair, 0), segments);
}

// ---- recovery -------------------------------------------------------------------------------------------------------

static void trimmed__is_reported_at_once(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    struct alb_csa_trimmed trimmed;
    ask_segments(c, 3);
    pair_deliver(c->pair, 0);
    csa_pair_look(c, 0, 0, &seen);
    trim(c, 0);
    assert_int_equal(reported(c, &trimmed), 1);
    assert_false(trimmed.is_response);
    assert_int_equal(trimmed.dest_qpn, alb_qp_number(c->qps[0]));
    assert_int_equal(trimmed.psn, seen.frames[0].segment.psn);
    assert_int_equal(trimmed.path, 0);
    assert_int_equal(trimmed.sequence, seen.header.sequence);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_trimmed_reported), 1);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_TRUNCATED), 1);
}

static void trimmed__goes_again_alone(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 3);
    pair_deliver(c->pair, 0);
    trim(c, 0);
    pair_deliver(c->pair, 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_trimmed_pkts), 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 1);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_duplicate_request), 0);
}

// The peer has a request in front of what it says of ours.
static void trimmed__is_told_behind_a_request(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    ask_segments(c, 3);
    pair_deliver(c->pair, 0);
    trim(c, 0);
    pair_deliver(c->pair, 0);
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_WRITE, 2, 0, 0, 8), 0);
    assert_int_equal(reported(c, NULL), 1);
    csa_pair_look(c, 1, 0, &seen);
    assert_int_equal(seen.count, 4);
    assert_int_equal(seen.frames[0].type, ALB_CSA_REQUEST);
    pair_deliver(c->pair, 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_trimmed_pkts), 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_packet_seq_err), 0); // of a path that has lost
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_STALE_RESPONSE), 0);
}

// Nothing that comes behind it shows that it is missing.
static void trimmed__last_one_does_not_wait(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 3);
    pair_deliver(c->pair, 0);
    pair_deliver(c->pair, 0);
    trim(c, 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_tail_asks), 0);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_tail_probes), 0);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 1);
}

static void trimmed__all_requests_of_the_packet_go_again(void **state)
{
    struct csa_pair *c = *state;
    for (uint64_t id = 1; id <= 3; id++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, id, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    assert_int_equal(pair_count(c->pair, 0), 1);
    trim(c, 0);
    assert_int_equal(reported(c, NULL), 1);
    pair_settle(c->pair);
    for (uint64_t id = 1; id <= 3; id++)
        csa_pair_expect(c, 0, id, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_trimmed_pkts), 1);
}

static void trimmed__an_answer(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 3 * CSA_PAIR_ANSWER_SEGMENT);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    trim(c, 1); // it is bound by what it has sent, and its peer by that
    pair_deliver_all(c->pair, 1);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_trimmed_pkts), 1);
}

// Nothing of ours had reached its sender yet, but another packet of that sender has come whole.
static void trimmed__in_the_first_window(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    ask_segments(c, 3);
    csa_pair_look(c, 0, 1, &seen);
    assert_int_equal(seen.header.destination_epoch, 0);
    pair_deliver(c->pair, 0);
    trim(c, 0);
    pair_deliver(c->pair, 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_trimmed_pkts), 1);
}

// By a queue pair's numbers, as they prove a first message that comes whole; but nothing is kept, and no peer is bound.
static void trimmed__the_very_first_one(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 3);
    for (uint32_t i = 0; i < 3; i++)
        trim(c, 0);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_trimmed_reported), 3);
    assert_int_equal(c->csa[1]->bound_epoch, 0);
    assert_int_equal(c->csa[1]->assoc->peer_epoch, 0);
    assert_int_equal(reported(c, NULL), 3);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_trimmed_pkts), 3);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_tail_probes), 0);
}

// Without the numbers nothing is trusted.
static void trimmed__of_a_stranger(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    for (int32_t wrong = -1; wrong <= 1; wrong += 2) {
        struct alb_csa_segment segment = csa_pair_write(c, 0, wrong, 0, 8, 8, ALB_CSA_LAST);
        csa_pair_make(c, 0, &made);
        csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, "12345678");
        alb_csa_encode(&made.header, made.bytes);
        const struct alb_datagram datagram = {.peer = made.peer, .local = made.local, .bytes = made.bytes};
        arrive_trimmed(c, 0, &datagram, ALB_CSA_TRIMMED_BYTES);
    }
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_trimmed_reported), 0);
    assert_int_equal(pair_send(c->pair, 1), 0);
}

// ---- what follows from it -------------------------------------------------------------------------------------------

static void path__has_not_lost_it(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 4);
    trim(c, 0);
    pair_deliver_all(c->pair, 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    const struct alb_path_out *out = &csa_pair_live(c, 0)->paths->path[0];
    assert_int_equal(out->recent_lost, 0);
    assert_int_equal(out->recent_marked, 1);
    assert_int_equal(out->trimmed, 0);
}

// Long packets that are cut off again and again are no sign of a path that carries only short ones.
static void path_mtu__is_not_suspected(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 1);
    for (uint32_t i = 0; i < 4 * ALB_MTU_SUSPICIOUS_TIMES; i++) {
        trim(c, 0);
        pair_send(c->pair, 1);
        pair_deliver_all(c->pair, 1);
        pair_send(c->pair, 0);
        assert_int_equal(pair_count(c->pair, 0), 1);
        assert_int_equal(csa_pair_count(c, 0, ALB_CSA_PING, NULL), 0);
    }
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_path_mtu_drops), 0);
}

// ---- what is not believed -------------------------------------------------------------------------------------------

static void expect_nothing_told(struct csa_pair *c)
{
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_trimmed_reported), 0);
    assert_int_equal(reported(c, NULL), 0);
}

static void left__of_any_length(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 1);
    const struct alb_datagram *datagram = &pair_peek(c->pair, 0, 0)->datagram;
    for (uint32_t length = 0; length < ALB_CSA_OUTER_BYTES + 15; length++)
        arrive_trimmed(c, 0, datagram, length);
    expect_nothing_told(c);
    arrive_trimmed(c, 0, datagram, ALB_CSA_OUTER_BYTES + 15);
    assert_int_equal(reported(c, NULL), 1);
}

// One byte of what is left is another one, be it by damage or by malice: no state changes, and what is reported is of
// no use but for a queue pair's own missing segments.
static void left__with_any_byte_wrong(void **state)
{
    struct csa_pair *c = *state;
    uint8_t bytes[ALB_CSA_TRIMMED_BYTES];
    ask_segments(c, 1);
    struct alb_datagram datagram = pair_peek(c->pair, 0, 0)->datagram;
    struct alb_stream_in before = c->csa[1]->in_requests;
    struct alb_path_in path_before = csa_pair_live(c, 1)->paths_in[0];
    memcpy(bytes, datagram.bytes, sizeof(bytes));
    datagram.bytes = bytes;
    for (uint32_t i = 0; i < 8 * sizeof(bytes); i++) {
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        arrive_trimmed(c, 0, &datagram, sizeof(bytes));
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    assert_memory_equal(&c->csa[1]->in_requests, &before, sizeof(before));
    assert_memory_equal(&csa_pair_live(c, 1)->paths_in[0], &path_before, sizeof(path_before));
    assert_true(reported(c, NULL) <= ALB_TRIMMED_MAX);
    pair_deliver_all(c->pair, 1);
    assert_true(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts) + csa_pair_stat(c, 0, ALB_STAT_trimmed_pkts) <= 1);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

static void left__of_what_is_there(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 2);
    struct alb_datagram datagram = pair_peek(c->pair, 0, 0)->datagram;
    uint8_t bytes[ALB_CSA_TRIMMED_BYTES];
    memcpy(bytes, datagram.bytes, sizeof(bytes));
    datagram.bytes = bytes;
    pair_deliver(c->pair, 0);
    arrive_trimmed(c, 0, &datagram, sizeof(bytes));
    expect_nothing_told(c);
}

static void left__of_another_life(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    for (uint32_t which = 0; which < 2; which++) {
        struct alb_csa_segment segment = csa_pair_write(c, 0, 1, 0, 8, 8, ALB_CSA_LAST);
        csa_pair_make(c, 0, &made);
        *(which ? &made.header.source_epoch : &made.header.destination_epoch) ^= 1;
        csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, "12345678");
        alb_csa_encode(&made.header, made.bytes);
        const struct alb_datagram datagram = {.peer = made.peer, .local = made.local, .bytes = made.bytes};
        arrive_trimmed(c, 0, &datagram, ALB_CSA_TRIMMED_BYTES);
    }
    expect_nothing_told(c);
}

// The queue pair is connected again, heard its peer, and may not send yet: there is no number for an answer.
static void left__of_an_answer_to_a_former_life(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 3 * CSA_PAIR_ANSWER_SEGMENT);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    struct alb_qp_attr attr = pair_attr(c->pair, 0, c->qps[1]);
    attr.rq_psn = c->csa[1]->requests.next;
    attr.state = ALB_QPS_RESET;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(pair_move(c->pair, c->qps[0], ALB_QPS_RTR, &attr), 0);
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 0, 8), 0);
    pair_send(c->pair, 1);
    pair_hurry(c->pair, 1, pair_count(c->pair, 1) - 1);
    pair_deliver(c->pair, 1);
    assert_int_equal(c->csa[0]->bound_epoch, csa_pair_epoch(c, 1));
    trim(c, 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_trimmed_reported), 0);
}

// What is there besides the segments that are missing cannot make it talk.
static void left__of_no_segment(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    const struct alb_csa_report report = {.qpn = alb_qp_number(c->qps[1]), .word_count = 8};
    csa_pair_make(c, 0, &made);
    csa_pair_add_report(&made, &report);
    alb_csa_encode(&made.header, made.bytes);
    const struct alb_datagram datagram = {.peer = made.peer, .local = made.local, .bytes = made.bytes};
    arrive_trimmed(c, 0, &datagram, ALB_CSA_TRIMMED_BYTES);
    expect_nothing_told(c);
}

static void left__again_before_it_was_told(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 1);
    const struct alb_datagram *datagram = &pair_peek(c->pair, 0, 0)->datagram;
    for (uint32_t i = 0; i < 5; i++)
        arrive_trimmed(c, 0, datagram, ALB_CSA_TRIMMED_BYTES);
    assert_int_equal(reported(c, NULL), 1);
}

// The same again later: what it names has left in another packet meanwhile.
static void left__again_after_it_was_told(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 1);
    const struct alb_datagram *datagram = &pair_peek(c->pair, 0, 0)->datagram;
    for (uint32_t i = 0; i < 5; i++) {
        arrive_trimmed(c, 0, datagram, ALB_CSA_TRIMMED_BYTES);
        assert_int_equal(reported(c, NULL), 1);
        pair_deliver_all(c->pair, 1);
        pair_send(c->pair, 0);
    }
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_trimmed_pkts), 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 1);
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_STALE_RESPONSE), 4);
}

static void left__more_than_can_wait(void **state)
{
    struct csa_pair *c = *state;
    ask_segments(c, 2 * ALB_TRIMMED_MAX);
    for (uint32_t i = 0; i < 2 * ALB_TRIMMED_MAX; i++)
        trim(c, 0);
    assert_int_equal(reported(c, NULL), ALB_TRIMMED_MAX);
    assert_int_equal(reported(c, NULL), ALB_TRIMMED_MAX); // those on the wire, and no more
    pair_settle(c->pair);
    pair_pass(c->pair, 100 * MS);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

// ---- what a peer may say --------------------------------------------------------------------------------------------

static void say(struct csa_pair *c, const struct alb_csa_trimmed *trimmed, uint32_t destination_epoch)
{
    struct csa_made made;
    uint8_t frame[ALB_CSA_FRAME_MAX];
    uint32_t bytes = alb_csa_encode_trimmed(trimmed, frame);
    csa_pair_make(c, 1, &made);
    made.header.destination_epoch = destination_epoch;
    csa_pair_add_bytes(&made, frame, bytes);
    csa_pair_arrive(c, 1, &made);
    pair_send(c->pair, 0);
}

static void frame__names_what_has_not_left_so(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    ask_segments(c, 2);
    csa_pair_look(c, 0, 0, &seen);
    uint32_t epoch = csa_pair_epoch(c, 0);
    const struct alb_csa_trimmed good = {
        .dest_qpn = alb_qp_number(c->qps[0]), .psn = seen.frames[0].segment.psn, .sequence = seen.header.sequence};
    struct alb_csa_trimmed bad[5] = {good, good, good, good, good};
    bad[0].psn = alb_psn_add(good.psn, 2);
    bad[1].psn = alb_psn_add(good.psn, -1);
    bad[2].path = 63;
    bad[3].sequence = alb_psn_add(good.sequence, 1);
    bad[4].is_response = true;
    for (uint32_t i = 0; i < ALB_COUNT(bad); i++)
        say(c, &bad[i], epoch);
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_STALE_RESPONSE), ALB_COUNT(bad));
    struct alb_csa_trimmed stranger = good;
    stranger.dest_qpn ^= 0x40;
    say(c, &stranger, epoch);
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_UNKNOWN_QP), 1);
    say(c, &good, 0);
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_NOT_PROVEN), 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_trimmed_pkts), 0);
    assert_int_equal(pair_count(c->pair, 0), 2);
    say(c, &good, epoch);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_trimmed_pkts), 1);
    assert_int_equal(pair_count(c->pair, 0), 3);
}

// ---- other transports -----------------------------------------------------------------------------------------------

static void left__of_roce(void **state)
{
    struct pair *pair = pair_new(NULL);
    struct alb_qp *qps[2];
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    assert_int_equal(pair_ask(pair, qps[0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 1000), 0);
    pair_send(pair, 0);
    struct alb_datagram datagram = pair_peek(pair, 0, 0)->datagram;
    datagram.length = ALB_CSA_TRIMMED_BYTES;
    alb_engine_rx_trimmed(pair->hosts[1].engine, &datagram, pair->now);
    assert_int_equal(pair->hosts[1].stats.dropped[ALB_DROP_TRUNCATED], 1);
    assert_int_equal(pair_send(pair, 1), 0);
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(trimmed__is_reported_at_once),
        CSA_GREETED_TEST(trimmed__goes_again_alone),
        CSA_GREETED_TEST(trimmed__is_told_behind_a_request),
        CSA_GREETED_TEST(trimmed__last_one_does_not_wait),
        CSA_GREETED_TEST(trimmed__all_requests_of_the_packet_go_again),
        CSA_GREETED_TEST(trimmed__an_answer),
        CSA_PAIR_TEST(trimmed__in_the_first_window),
        CSA_PAIR_TEST(trimmed__the_very_first_one),
        CSA_PAIR_TEST(trimmed__of_a_stranger),
        CSA_GREETED_TEST(path__has_not_lost_it),
        CSA_GREETED_TEST(path_mtu__is_not_suspected),
        CSA_GREETED_TEST(left__of_any_length),
        CSA_GREETED_TEST(left__with_any_byte_wrong),
        CSA_GREETED_TEST(left__of_what_is_there),
        CSA_GREETED_TEST(left__of_an_answer_to_a_former_life),
        CSA_GREETED_TEST(left__of_another_life),
        CSA_GREETED_TEST(left__of_no_segment),
        CSA_GREETED_TEST(left__again_before_it_was_told),
        CSA_GREETED_TEST(left__again_after_it_was_told),
        CSA_GREETED_TEST(left__more_than_can_wait),
        CSA_GREETED_TEST(frame__names_what_has_not_left_so),
        cmocka_unit_test(left__of_roce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
