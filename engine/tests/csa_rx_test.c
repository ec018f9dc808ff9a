// SPDX-License-Identifier: BSD-2-Clause
// Packets in, most of them hostile. Side 0 makes them, side 1 receives.
#include "engine/tests/csa_pair.h"

#include "base/prng.h"

#include <stdlib.h>

static int32_t cumulative(struct csa_pair *c)
{
    return alb_psn_diff(c->csa[1]->in_requests.cumulative, csa_pair_psn(0));
}

static uint64_t dropped(const struct csa_pair *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ALB_DROP_COUNT; i++)
        sum += csa_pair_drops(c, 1, i);
    return sum;
}

static struct alb_csa_segment small_write(struct csa_pair *c, int32_t offset)
{
    return csa_pair_write(c, 0, offset, 0, 8, 8, ALB_CSA_LAST);
}

// ---- frames ---------------------------------------------------------------------------------------------------------

static void frames__are_acted_upon_in_order(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    csa_pair_make(c, 0, &made);
    for (int32_t i = 1; i < 5; i++) {
        struct alb_csa_segment segment = small_write(c, i);
        segment.va += 8 * (uint32_t)i;
        csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, "12345678");
    }
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(cumulative(c), 5);
    assert_memory_equal(c->pair->hosts[1].memory + 8, "12345678123456781234567812345678", 32);
    assert_int_equal(dropped(c), 0);
}

// What stood before it counts.
static void frames__one_that_is_not_understood_ends_the_packet(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    static const uint8_t unknown[12] = {0x7f};
    struct alb_csa_segment first = small_write(c, 1), second = small_write(c, 2);
    csa_pair_make(c, 0, &made);
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &first, "12345678");
    csa_pair_add_bytes(&made, unknown, sizeof(unknown));
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &second, "12345678");
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(cumulative(c), 2);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_UNKNOWN_OPCODE), 1);
    assert_int_equal(dropped(c), 1);
}

static void frames__one_that_is_refused_does_not_end_the_packet(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_segment first = small_write(c, 1), second = first;
    first.dest_qpn++;
    csa_pair_make(c, 0, &made);
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &first, "12345678");
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &second, "12345678");
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(cumulative(c), 2);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_UNKNOWN_QP), 1);
}

static uint32_t dropped_of(const struct csa_pair *c, int side, enum alb_drop reason)
{
    return c->qps[side]->stats->dropped[reason];
}

// Each queue pair counts what named it and was of no use.
static void frames__dropped_by_the_queue_pair_they_name(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_segment segment = small_write(c, 1), wrong = small_write(c, 2);
    const struct alb_csa_report report = {.qpn = alb_qp_number(c->qps[1]), .cumulative = 5, .number = 1};
    wrong.dest_qpn++;
    csa_pair_make(c, 0, &made);
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, "12345678");
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, "12345678");
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &wrong, "12345678");
    csa_pair_add_report(&made, &report);
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(dropped_of(c, 1, ALB_DROP_DUPLICATE), 1);
    assert_int_equal(dropped_of(c, 1, ALB_DROP_STALE_RESPONSE), csa_pair_drops(c, 1, ALB_DROP_STALE_RESPONSE));
    assert_int_equal(dropped_of(c, 1, ALB_DROP_STALE_RESPONSE), 1);
    assert_int_equal(dropped_of(c, 1, ALB_DROP_UNKNOWN_QP), 0);
}

static void use_a_trace(struct alb_engine_config *config)
{
    config->trace_records = 64;
}

static void frames__dropped_are_in_the_trace_with_the_queue_pair_they_name(void **state)
{
    struct csa_pair *c = csa_pair_new(use_a_trace, NULL);
    struct csa_made made;
    struct alb_trace_record record;
    const struct alb_csa_report report = {.qpn = alb_qp_number(c->qps[1]), .cumulative = 5, .number = 1};
    csa_pair_greet(c);
    csa_pair_make(c, 0, &made);
    csa_pair_add_report(&made, &report);
    csa_pair_arrive(c, 0, &made);
    do
        assert_true(alb_engine_trace(c->engines[1], &record));
    while (record.kind != ALB_TRACE_drop);
    assert_int_equal(record.a, ALB_DROP_STALE_RESPONSE);
    assert_int_equal(record.b, ALB_TRACE_CSA_TYPE(ALB_CSA_REPORT));
    assert_int_equal(record.qpn, report.qpn);
    csa_pair_free(c);
}

// Cut anywhere, a packet is counted as dropped, or what is left of it is whole.
static void frames__cut_short(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    const struct alb_csa_report report = {
        .qpn = alb_qp_number(c->qps[1]), .cumulative = 5, .word_count = 3, .held = {1, 2, 3}, .number = 1};
    const struct alb_csa_paths paths = {.count = 3};
    const struct alb_csa_probe probe = {.dest_qpn = alb_qp_number(c->qps[1])};
    struct alb_csa_segment segment = small_write(c, -1); // a duplicate
    csa_pair_make(c, 0, &made);
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, "12345678");
    csa_pair_add_report(&made, &report);
    csa_pair_add_paths(&made, &paths);
    csa_pair_add_probe(&made, &probe);
    for (uint32_t length = ALB_CSA_OUTER_BYTES; length <= made.length; length++) {
        struct csa_made cut = made;
        cut.length = length;
        csa_pair_arrive(c, 0, &cut);
    }
    for (uint32_t length = 0; length < ALB_CSA_OUTER_BYTES; length++) {
        uint8_t *bytes = malloc(length + 1);
        memcpy(bytes, made.bytes, length);
        struct alb_datagram datagram = {.peer = made.peer, .local = made.local, .bytes = bytes, .length = length};
        uint64_t before = dropped(c);
        alb_engine_rx(c->engines[1], &datagram, 1, c->pair->now);
        assert_int_equal(dropped(c), before + 1);
        free(bytes);
    }
    assert_int_equal(cumulative(c), 1);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
}

// Any bytes at all: nothing is written outside of what the peer may write, and memory stays bounded.
static void frames__of_noise(void **state)
{
    struct csa_pair *c = *state;
    struct alb_prng prng;
    alb_prng_init(&prng, 4242);
    size_t most = c->pair->hosts[1].bytes_held;
    for (uint32_t run = 0; run < 20000; run++) {
        struct csa_made made;
        struct alb_csa_segment segment = small_write(c, (int32_t)alb_prng_below(&prng, 40));
        const struct alb_csa_report report = {.qpn = alb_qp_number(c->qps[1]), .word_count = 2, .held = {5, 6}};
        const struct alb_csa_paths paths = {.count = 2};
        csa_pair_make(c, 0, &made);
        csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, "12345678");
        csa_pair_add_report(&made, &report);
        csa_pair_add_paths(&made, &paths);
        for (uint32_t flips = 1 + alb_prng_below(&prng, 6); flips > 0; flips--)
            made.bytes[ALB_CSA_OUTER_BYTES + alb_prng_below(&prng, made.length - ALB_CSA_OUTER_BYTES)] =
                (uint8_t)alb_prng_u64(&prng);
        csa_pair_arrive(c, 0, &made);
        if (run % 64 == 0) {
            pair_send(c->pair, 1);
            while (pair_count(c->pair, 1))
                pair_lose(c->pair, 1);
        }
    }
    assert_true(c->pair->hosts[1].bytes_held <= most);
    assert_true(c->engines[1]->csa->waiting_bytes <= c->engines[1]->config.csa_early_bytes_max);
    pair_check_guards(c->pair);
}

// ---- the queue pair that a packet is for ----------------------------------------------------------------------------

static void expect_drop(struct csa_pair *c, struct csa_made *made, enum alb_drop drop)
{
    uint64_t before = csa_pair_drops(c, 1, drop), all = dropped(c);
    csa_pair_arrive(c, 0, made);
    assert_int_equal(csa_pair_drops(c, 1, drop), before + 1);
    assert_int_equal(dropped(c), all + 1);
}

static void make_write(struct csa_pair *c, struct csa_made *made, const struct alb_csa_segment *segment)
{
    csa_pair_make(c, 0, made);
    csa_pair_add_segment(made, ALB_CSA_REQUEST, segment, "12345678");
}

static void qp__must_be_connected_to_the_sender(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_segment segment = small_write(c, 1);
    struct alb_qp *fresh = pair_qp(c->pair, 1, ALB_QPT_RC), *ud = pair_qp(c->pair, 1, ALB_QPT_UD);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, NULL);
    assert_int_equal(pair_move(c->pair, ud, ALB_QPS_RTS, &attr), 0);
    segment.dest_qpn = alb_qp_number(fresh);
    make_write(c, &made, &segment);
    expect_drop(c, &made, ALB_DROP_WRONG_QP_STATE);
    segment.dest_qpn = alb_qp_number(ud);
    make_write(c, &made, &segment);
    expect_drop(c, &made, ALB_DROP_BAD_SERVICE);
    segment.dest_qpn = 0x010000 | (alb_qp_number(c->qps[1]) & 0xffff); // in another slot
    make_write(c, &made, &segment);
    expect_drop(c, &made, ALB_DROP_UNKNOWN_QP);
    // Connected to another peer.
    attr = pair_attr(c->pair, 1, c->qps[0]);
    attr.av.peer = alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, 77});
    assert_int_equal(pair_move(c->pair, fresh, ALB_QPS_RTR, &attr), 0);
    segment.dest_qpn = alb_qp_number(fresh);
    make_write(c, &made, &segment);
    expect_drop(c, &made, ALB_DROP_WRONG_PEER);
    assert_int_equal(cumulative(c), 1);
}

static void peer__another_address_or_slot_is_a_stranger(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_segment segment = small_write(c, 1);
    make_write(c, &made, &segment);
    made.peer.addr = alb_addr_from_ipv4((const uint8_t[]){10, 9, 9, 9});
    expect_drop(c, &made, ALB_DROP_BAD_EPOCH); // which is none of ours for it
    make_write(c, &made, &segment);
    made.header.source_slot = 1;
    expect_drop(c, &made, ALB_DROP_BAD_EPOCH); // which is none of ours for it
    make_write(c, &made, &segment);
    made.local.addr = alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, 9});
    expect_drop(c, &made, ALB_DROP_BAD_EPOCH); // which is none of ours for it
    make_write(c, &made, &segment);
    made.header.dest_slot = 1;
    expect_drop(c, &made, ALB_DROP_WRONG_PEER);
    make_write(c, &made, &segment);
    made.header.source_epoch ^= 1;
    expect_drop(c, &made, ALB_DROP_BAD_EPOCH);
    assert_int_equal(cumulative(c), 1);
    assert_int_equal(pair_send(c->pair, 1), 3);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESET, NULL), 3);
}

// ---- strangers ------------------------------------------------------------------------------------------------------

// Nothing but a queue pair's first message counts.
static void proof__is_the_first_message(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_segment segment = small_write(c, 1);
    const struct alb_csa_report report = {.qpn = alb_qp_number(c->qps[1]), .cumulative = csa_pair_psn(1), .number = 1};
    const struct alb_csa_paths paths = {.credit_bytes = 1};
    const struct alb_csa_probe probe = {.dest_qpn = alb_qp_number(c->qps[1]), .next = csa_pair_psn(0)};
    static const uint8_t ping[4] = {ALB_CSA_PING}, cnp[4] = {ALB_CSA_CNP};
    pair_settle(c->pair);
    make_write(c, &made, &segment); // the second one
    expect_drop(c, &made, ALB_DROP_NOT_PROVEN);
    csa_pair_make(c, 0, &made);
    csa_pair_add_report(&made, &report);
    expect_drop(c, &made, ALB_DROP_NOT_PROVEN);
    csa_pair_make(c, 0, &made);
    csa_pair_add_paths(&made, &paths);
    expect_drop(c, &made, ALB_DROP_NOT_PROVEN);
    csa_pair_make(c, 0, &made);
    csa_pair_add_probe(&made, &probe);
    expect_drop(c, &made, ALB_DROP_NOT_PROVEN);
    csa_pair_make(c, 0, &made);
    csa_pair_add_bytes(&made, ping, 4);
    expect_drop(c, &made, ALB_DROP_NOT_PROVEN);
    csa_pair_make(c, 0, &made);
    csa_pair_add_bytes(&made, cnp, 4);
    expect_drop(c, &made, ALB_DROP_NOT_PROVEN);
    assert_int_equal(c->csa[1]->assoc->peer_epoch, 0);
    assert_int_equal(c->csa[1]->bound_epoch, 0);
    assert_int_equal(pair_send(c->pair, 1), 1); // a cookie. The others were too short to be answered
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_COOKIE, NULL), 1);
    pair_lose(c->pair, 1);
    segment = small_write(c, 0);
    make_write(c, &made, &segment);
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(cumulative(c), 1);
    assert_int_equal(c->csa[1]->bound_epoch, csa_pair_epoch(c, 0));
}

// The queue pairs of the former life would go on sending to the new one, which may have queue pairs of the same
// numbers.
static void probe_arrives(struct csa_pair *c, int32_t offset, enum alb_drop drop)
{
    struct csa_made made;
    const struct alb_csa_probe probe = {.dest_qpn = alb_qp_number(c->qps[1]),
                                        .next = alb_psn_add(csa_pair_psn(0), offset)};
    csa_pair_make(c, 0, &made);
    csa_pair_add_probe(&made, &probe);
    if (drop == ALB_DROP_NONE)
        csa_pair_arrive(c, 0, &made);
    else
        expect_drop(c, &made, drop);
}

// The peer is proven, by another queue pair: it may still not know this one's numbers.
static void proof__of_a_queue_pair_is_a_number_that_fits(void **state)
{
    struct csa_pair *c = *state;
    int32_t window = (int32_t)c->engines[1]->config.csa_window_segments;
    c->csa[1]->bound_epoch = 0;
    probe_arrives(c, 0, ALB_DROP_NOT_PROVEN);
    probe_arrives(c, 1 + window + 1, ALB_DROP_NOT_PROVEN);
    assert_int_equal(c->csa[1]->bound_epoch, 0);
    probe_arrives(c, 1 + window, ALB_DROP_NONE);
    assert_int_equal(c->csa[1]->bound_epoch, csa_pair_epoch(c, 0));
}

// Whoever has asked for a queue pair knows its numbers, and may have said that it is at another one's address and slot.
static void proof__is_none_of_a_life_in_place_of_one_that_is_known(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_segment segment = small_write(c, 0);
    uint32_t known = c->csa[1]->assoc->peer_epoch;
    struct alb_qp *qp = pair_qp(c->pair, 1, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, c->qps[0]);
    assert_int_equal(pair_move(c->pair, qp, ALB_QPS_RTS, &attr), 0);
    pair_settle(c->pair);
    segment.dest_qpn = alb_qp_number(qp);
    make_write(c, &made, &segment);
    made.header.source_epoch ^= 1;
    made.header.destination_epoch = 0;
    expect_drop(c, &made, ALB_DROP_NOT_PROVEN);
    assert_int_equal(alb_csa_of(qp)->bound_epoch, 0);
    assert_int_equal(c->csa[1]->assoc->peer_epoch, known);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
    assert_int_equal(pair_send(c->pair, 1), 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_COOKIE, NULL), 1); // which a new life would bring back
    pair_lose(c->pair, 1);
    make_write(c, &made, &segment);
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(alb_csa_of(qp)->bound_epoch, known);
}

// A sender fills its window before anything has come from us: those packets are not lost.
static void path__counts_what_came_before_the_peer_knew_us(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 10 * CSA_PAIR_SEGMENT);
    assert_int_equal(pair_send(c->pair, 0), 10);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(csa_pair_live(c, 1)->paths_in[0].received, 10);
    pair_settle(c->pair);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    assert_int_equal(csa_pair_live(c, 0)->paths->path[0].recent_lost, 0);
    assert_int_equal(csa_pair_live(c, 0)->paths->path[0].received_seen, 11);
}

// ---- two lives of a queue pair --------------------------------------------------------------------------------------

enum { PSN_OF_ANOTHER_LIFE = 0x123456 };

static void reconnect(struct csa_pair *c, int side, enum alb_qp_state state)
{
    struct alb_qp_attr attr = pair_attr(c->pair, side, c->qps[!side]);
    attr.sq_psn = attr.rq_psn = PSN_OF_ANOTHER_LIFE;
    attr.state = ALB_QPS_RESET;
    assert_int_equal(alb_qp_modify(c->qps[side], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(pair_move(c->pair, c->qps[side], state, &attr), 0);
}

// Until it may send, the queue pair has no numbers for its requests, nor for the answers to them. What is said of those
// of the former life comes late: it fits what is left of that one, and is nothing to this one.
static void former_life__is_not_heard_before_the_requests_have_numbers(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    const struct alb_csa_probe probe = {
        .is_response = true, .dest_qpn = alb_qp_number(c->qps[0]), .next = alb_psn_add(csa_pair_psn(0), 1)};
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 64);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, NULL), 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_RESPONSE, NULL), 1);
    reconnect(c, 0, ALB_QPS_RTR);
    pair_deliver_all(c->pair, 1);
    csa_pair_make(c, 1, &made);
    csa_pair_add_probe(&made, &probe);
    csa_pair_arrive(c, 1, &made);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTR);
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_WRONG_QP_STATE), 3);
    assert_int_equal(c->csa[0]->bound_epoch, 0);
    assert_int_equal(pair_send(c->pair, 0), 0);
    struct alb_qp_attr attr = pair_attr(c->pair, 0, c->qps[1]);
    attr.sq_psn = PSN_OF_ANOTHER_LIFE;
    attr.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, pair_mask(ALB_QPT_RC, ALB_QPS_RTS), c->pair->now), 0);
    reconnect(c, 1, ALB_QPS_RTS);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 2, ALB_SEND_SIGNALED, 64);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
}

// ---- answers --------------------------------------------------------------------------------------------------------

static void reset__for_who_means_another_life(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct csa_seen seen;
    struct alb_csa_segment segment = small_write(c, 1);
    make_write(c, &made, &segment);
    made.header.destination_epoch ^= 1;
    expect_drop(c, &made, ALB_DROP_BAD_EPOCH);
    assert_int_equal(cumulative(c), 1);
    assert_int_equal(pair_send(c->pair, 1), 1);
    csa_pair_look(c, 1, 0, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.frames[0].type, ALB_CSA_RESET);
    assert_int_equal(seen.frames[0].reset.epoch, made.header.destination_epoch);
    assert_true(pair_peek(c->pair, 1, 0)->datagram.length <= made.length + 3);
}

static void reset__no_more_than_a_few_at_a_time(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_segment segment = small_write(c, 1);
    make_write(c, &made, &segment);
    made.header.destination_epoch ^= 1;
    for (uint32_t i = 0; i < 1000; i++)
        csa_pair_arrive(c, 0, &made);
    assert_int_equal(pair_send(c->pair, 1), ALB_CSA_REPLIES);
}

// The numbers of the life that is over say nothing of those of the next one, which may lie before them.
static void reset__ends_what_was_known_of_the_peers_paths(void **state)
{
    struct csa_pair *c = *state;
    const uint32_t epoch = csa_pair_epoch(c, 0);
    uint8_t reset[ALB_CSA_FRAME_MAX];
    uint32_t reset_bytes = alb_csa_encode_reset(ALB_CSA_RESET_EPOCH, epoch, reset);
    struct csa_made made;
    struct alb_csa_frame told;
    struct alb_qp *qps[2];
    csa_pair_live(c, 1)->credit_bytes = 1; // as that life said
    csa_pair_make(c, 0, &made);
    csa_pair_add_bytes(&made, reset, reset_bytes);
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(csa_pair_live(c, 1)->credit_bytes, ALB_CSA_CREDIT_NONE);

    alb_psn sequence = alb_psn_add(made.header.sequence, -100000);
    pair_connect(c->pair, ALB_QPT_RC, qps, NULL);
    struct alb_csa_segment first = csa_pair_write(c, 0, 0, 0, 8, 8, ALB_CSA_LAST | ALB_CSA_REPORT_NOW);
    first.dest_qpn = alb_qp_number(qps[1]);
    csa_pair_make(c, 0, &made);
    made.header.source_epoch = epoch ^ 1;
    made.header.destination_epoch = 0;
    made.header.sequence = sequence;
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &first, "12345678");
    csa_pair_arrive(c, 0, &made);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_PATHS, &told), 1);
    assert_int_equal(told.paths.count, 1);
    assert_int_equal(told.paths.entries[0].settled, alb_psn_next(sequence));
}

// It could not be answered from there, and every member of the group would answer.
static void reset__never_to_what_was_sent_to_a_group(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_segment segment = small_write(c, 1);
    make_write(c, &made, &segment);
    made.header.destination_epoch ^= 1;
    made.local.addr = alb_addr_from_ipv4((const uint8_t[]){239, 0, 0, 1});
    expect_drop(c, &made, ALB_DROP_WRONG_LOCAL);
    assert_int_equal(pair_send(c->pair, 1), 0);
}

static void ping__is_answered_with_its_length(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_frame frame;
    static const uint8_t ping[104] = {ALB_CSA_PING, 0, 0, 100};
    csa_pair_make(c, 0, &made);
    csa_pair_add_bytes(&made, ping, sizeof(ping));
    csa_pair_arrive(c, 0, &made);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_PONG, &frame), 1);
    assert_int_equal(frame.pong_bytes, ALB_CSA_OUTER_BYTES + sizeof(ping) + ALB_ICRC_BYTES);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_PATHS, NULL), 1);
}

static void marks__are_counted_by_path(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_frame frame;
    for (int32_t i = 1; i < 6; i++) {
        struct alb_csa_segment segment = small_write(c, i);
        segment.flags |= ALB_CSA_REPORT_NOW;
        make_write(c, &made, &segment);
        made.header.sequence = alb_psn_add(made.header.sequence, i - 1);
        made.traffic_class = i % 2 ? ALB_ECN_CE : ALB_ECN_ECT0;
        csa_pair_arrive(c, 0, &made);
    }
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_PATHS, &frame), 1);
    assert_int_equal(frame.paths.count, 1);
    assert_int_equal(frame.paths.entries[0].received, 6);
    assert_int_equal(frame.paths.entries[0].marked, 3);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_ecn_marked_pkts), 3);
}

static void use_dcqcn(struct alb_engine_config *config)
{
    config->congestion = "dcqcn";
}

static void mark__is_told_by_a_congestion_notification(void **state)
{
    struct csa_pair *c = csa_pair_new(use_dcqcn, NULL);
    struct csa_made made;
    csa_pair_greet(c);
    for (int32_t i = 1; i < 3; i++) { // one for both
        struct alb_csa_segment segment = small_write(c, i);
        make_write(c, &made, &segment);
        made.header.sequence = alb_psn_add(made.header.sequence, i - 1);
        made.traffic_class = ALB_ECN_CE;
        csa_pair_arrive(c, 0, &made);
    }
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_CNP, NULL), 1);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_np_cnp_sent), 1);
    assert_false(csa_pair_live(c, 0)->congestion.dcqcn.is_limited);
    uint64_t received = csa_pair_stat(c, 0, ALB_STAT_rcvd_pkts) + pair_count(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_rcvd_pkts), received); // whatever it says
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_rp_cnp_handled), 1);
    assert_true(csa_pair_live(c, 0)->congestion.dcqcn.is_limited);
    csa_pair_free(c);
}

// What several frames say is one piece of news for the congestion policy.
static void paths__are_added_up_until_something_is_acknowledged(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_assoc_live *live = csa_pair_live(c, 0);
    const struct alb_path_out *path = &live->paths->path[0];
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8 * CSA_PAIR_SEGMENT);
    pair_send(c->pair, 0);
    while (pair_count(c->pair, 0))
        pair_lose(c->pair, 0);
    struct alb_csa_paths paths = {.credit_bytes = 12345, .share = ALB_CSA_SHARE_EVEN / 2, .count = 1};
    struct alb_csa_path_entry *entry = &paths.entries[0];
    *entry = (struct alb_csa_path_entry){
        .settled = path->settled, .received = path->received_seen, .marked = path->marked_seen};
    csa_pair_make(c, 1, &made);
    for (uint32_t i = 0; i < 2; i++) { // of four packets each time
        entry->settled = alb_psn_add(entry->settled, 4);
        entry->received += 1 + i;
        entry->marked += 1;
        csa_pair_add_paths(&made, &paths);
    }
    csa_pair_arrive(c, 1, &made);
    assert_int_equal(live->credit_bytes, 12345);
    assert_int_equal(live->share, ALB_CSA_SHARE_EVEN / 2);
    assert_int_equal(live->news_received, 3);
    assert_int_equal(live->news_marked, 2);
    assert_int_equal(live->news_lost, 5);
}

// ---- XRC ------------------------------------------------------------------------------------------------------------

static void xrc__a_shared_receive_queue_is_named_or_it_is_no_request(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_xrcd *xrcd;
    assert_int_equal(alb_xrcd_create(c->engines[1], &xrcd), 0);
    struct alb_qp_init init = {.type = ALB_QPT_XRC_RECV, .xrcd = xrcd};
    struct alb_qp *recv = pair_qp_with(c->pair, 1, &init);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, c->qps[0]);
    assert_int_equal(pair_move(c->pair, recv, ALB_QPS_RTR, &attr), 0);
    struct alb_csa_segment segment = small_write(c, 0);
    segment.dest_qpn = alb_qp_number(recv);
    make_write(c, &made, &segment);
    expect_drop(c, &made, ALB_DROP_BAD_SERVICE);
    segment = small_write(c, 1); // and the other way about
    segment.flags |= ALB_CSA_XRC;
    make_write(c, &made, &segment);
    expect_drop(c, &made, ALB_DROP_BAD_SERVICE);
    assert_int_equal(cumulative(c), 1);
    // It never asks, so nothing answers it.
    struct alb_csa_segment answer = {
        .op = ALB_CSA_RESULT, .flags = ALB_CSA_LAST, .dest_qpn = alb_qp_number(recv), .psn = csa_pair_psn(1)};
    csa_pair_make(c, 0, &made);
    csa_pair_add_segment(&made, ALB_CSA_RESPONSE, &answer, NULL);
    expect_drop(c, &made, ALB_DROP_BAD_SERVICE);
    assert_int_equal(alb_qp_destroy(recv), 0);
    assert_int_equal(alb_xrcd_destroy(xrcd), 0);
}

static void use_two_paths(struct alb_engine_config *config)
{
    config->path_max = 2;
    config->path = "spray";
    config->csa_probe_min_ns = 50 * ALB_NS_PER_MS;
}

// Another queue pair's news show that a path is silent. Streams with something on it need not wait for a report of
// their own.
static void paths__what_a_silent_path_had_goes_again_at_once(void **state)
{
    struct csa_pair *c = csa_pair_new(use_two_paths, NULL);
    struct alb_qp *others[2];
    csa_pair_greet(c);
    pair_connect(c->pair, ALB_QPT_RC, others, NULL);
    for (uint32_t i = 0; i < 8; i++) { // both paths are known
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 8);
        pair_send(c->pair, 0);
        pair_pass(c->pair, 1000);
        pair_settle(c->pair);
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
    }
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 10, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    while (pair_count(c->pair, 0))
        pair_lose(c->pair, 0);
    uint16_t path = csa_pair_live(c, 0)->paths->current;
    pair_pass(c->pair, 200 * ALB_NS_PER_US);
    assert_int_equal(pair_ask(c->pair, others[0], ALB_WR_RDMA_WRITE, 11, ALB_SEND_SIGNALED, 8192, 8), 0);
    pair_send(c->pair, 0);
    assert_true(csa_pair_live(c, 0)->paths->current != path);
    pair_settle(c->pair); // no time passes
    struct alb_wc wc[2];
    assert_true(pair_poll(c->pair, 0, &wc[0]) && pair_poll(c->pair, 0, &wc[1]));
    assert_int_equal(wc[0].wr_id + wc[1].wr_id, 21);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 1);
    assert_int_equal(csa_pair_live(c, 0)->inflight_bytes, 0);
    csa_pair_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths__what_a_silent_path_had_goes_again_at_once),
        cmocka_unit_test(frames__dropped_are_in_the_trace_with_the_queue_pair_they_name),
        CSA_GREETED_TEST(frames__are_acted_upon_in_order),
        CSA_GREETED_TEST(frames__one_that_is_not_understood_ends_the_packet),
        CSA_GREETED_TEST(frames__one_that_is_refused_does_not_end_the_packet),
        CSA_GREETED_TEST(frames__dropped_by_the_queue_pair_they_name),
        CSA_GREETED_TEST(frames__cut_short),
        CSA_GREETED_TEST(frames__of_noise),
        CSA_GREETED_TEST(qp__must_be_connected_to_the_sender),
        CSA_GREETED_TEST(peer__another_address_or_slot_is_a_stranger),
        CSA_PAIR_TEST(proof__is_the_first_message),
        CSA_GREETED_TEST(proof__of_a_queue_pair_is_a_number_that_fits),
        CSA_GREETED_TEST(proof__is_none_of_a_life_in_place_of_one_that_is_known),
        CSA_PAIR_TEST(path__counts_what_came_before_the_peer_knew_us),
        CSA_GREETED_TEST(former_life__is_not_heard_before_the_requests_have_numbers),
        CSA_GREETED_TEST(reset__for_who_means_another_life),
        CSA_GREETED_TEST(reset__no_more_than_a_few_at_a_time),
        CSA_GREETED_TEST(reset__ends_what_was_known_of_the_peers_paths),
        CSA_GREETED_TEST(reset__never_to_what_was_sent_to_a_group),
        CSA_GREETED_TEST(ping__is_answered_with_its_length),
        CSA_GREETED_TEST(marks__are_counted_by_path),
        cmocka_unit_test(mark__is_told_by_a_congestion_notification),
        CSA_GREETED_TEST(paths__are_added_up_until_something_is_acknowledged),
        CSA_GREETED_TEST(xrc__a_shared_receive_queue_is_named_or_it_is_no_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
