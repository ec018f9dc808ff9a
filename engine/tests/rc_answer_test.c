// SPDX-License-Identifier: BSD-2-Clause
// What the responder sends, and in what order. Side 0 asks by hand, side 1 answers.
#include "engine/rc.h"

#include "engine/tests/pair.h"

#include "base/tests/test.h"

enum {
    MTU = 1024,
};

// A request at that place in the sequence: a WRITE of eight bytes, a READ of length bytes from the start of memory, or
// an atomic.
static void arrive(struct pair_qps *c, uint8_t opcode, int32_t psn_offset, uint32_t length)
{
    static const uint8_t payload[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    bool has_payload = alb_opcode_info(opcode)->flags & ALB_OPCODE_PAYLOAD;
    struct alb_roce roce = pair_request(c, opcode, psn_offset, length);
    pair_inject(c->pair, 0, &roce, payload, has_payload ? 8 : 0);
}

struct want {
    uint8_t opcode;
    int32_t psn_offset;
    uint32_t payload_bytes;
};

static void expect(struct pair_qps *c, const struct want *wants, uint32_t count)
{
    pair_send(c->pair, 1);
    assert_int_equal(pair_count(c->pair, 1), count);
    for (uint32_t i = 0; i < count; i++) {
        const struct pair_packet *packet = pair_peek(c->pair, 1, i);
        assert_int_equal(packet->roce.opcode, wants[i].opcode);
        assert_int_equal(packet->roce.psn, alb_psn_add(PAIR_PSN, wants[i].psn_offset));
        assert_int_equal(packet->payload_bytes, wants[i].payload_bytes);
    }
}

static void lose_all(struct pair_qps *c)
{
    while (pair_count(c->pair, 1) > 0)
        pair_lose(c->pair, 1);
}

static void answer__a_read_in_packets(void **state)
{
    static const struct want wants[] = {
        {ALB_RC_READ_RESPONSE_FIRST, 0, MTU},
        {ALB_RC_READ_RESPONSE_MIDDLE, 1, MTU},
        {ALB_RC_READ_RESPONSE_LAST, 2, 5},
    };
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 2 * MTU + 5);
    expect(c, wants, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct pair_packet *packet = pair_peek(c->pair, 1, i);
        assert_memory_equal(packet->bytes + packet->payload_offset, c->pair->hosts[1].memory + i * MTU,
                            packet->payload_bytes);
    }
    assert_int_equal(pair_peek(c->pair, 1, 0)->roce.syndrome, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    assert_int_equal(pair_peek(c->pair, 1, 0)->roce.msn, 1);
}

static void answer__small_ones(void **state)
{
    static const struct want wants[] = {
        {ALB_RC_READ_RESPONSE_ONLY, 0, 9},
        {ALB_RC_READ_RESPONSE_ONLY, 1, 0},
        {ALB_RC_ATOMIC_ACK, 2, 0},
        {ALB_RC_READ_RESPONSE_ONLY, 3, 0},
    };
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 9);
    arrive(c, ALB_RC_READ_REQUEST, 1, 0);
    arrive(c, ALB_RC_FETCH_ADD, 2, 8);
    arrive(c, ALB_RC_ATOMIC_WRITE, 3, 8);
    expect(c, wants, 4); // the last one acknowledges all: no acknowledgement beside it
}

static void answer__acknowledgements_are_merged(void **state)
{
    static const struct want wants[] = {{ALB_RC_ACK, 9, 0}};
    struct pair_qps *c = *state;
    for (int32_t i = 0; i < 10; i++)
        arrive(c, ALB_RC_WRITE_ONLY, i, 8);
    expect(c, wants, 1);
    assert_int_equal(c->pair->hosts[1].stats.sum.counter[ALB_STAT_ack_sent], 1);
    assert_int_equal(c->pair->hosts[1].stats.sum.counter[ALB_STAT_ack_deferred], 9);
}

// An acknowledgement that overtook an answer would say that the answer was lost (9.7.5.1.1).
static void answer__acknowledgements_stand_behind_answers(void **state)
{
    static const struct want wants[] = {
        {ALB_RC_READ_RESPONSE_ONLY, 1, 8},
        {ALB_RC_ATOMIC_ACK, 3, 0},
        {ALB_RC_ACK, 4, 0},
    };
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_WRITE_ONLY, 0, 8);
    arrive(c, ALB_RC_READ_REQUEST, 1, 8);
    arrive(c, ALB_RC_WRITE_ONLY, 2, 8);
    arrive(c, ALB_RC_FETCH_ADD, 3, 8);
    arrive(c, ALB_RC_WRITE_ONLY, 4, 8);
    expect(c, wants, 3);
}

// A READ or atomic is acknowledged by its answer: an ACK of its PSN would say that there is none to wait for.
static void answer__no_acknowledgement_stands_for_an_answer(void **state)
{
    static const uint8_t opcodes[] = {ALB_RC_READ_REQUEST, ALB_RC_FETCH_ADD, ALB_RC_ATOMIC_WRITE};
    struct pair_qps *c = *state;
    for (size_t i = 0; i < ALB_COUNT(opcodes); i++) {
        pair_connect(c->pair, ALB_QPT_RC, c->qps, NULL);
        arrive(c, ALB_RC_WRITE_ONLY, 0, 8);
        arrive(c, opcodes[i], 1, 8);
        arrive(c, opcodes[i], 2, 8);
        pair_send(c->pair, 1);
        assert_int_equal(pair_count(c->pair, 1), 2); // the answers acknowledge the WRITE too
        lose_all(c);
        arrive(c, ALB_RC_WRITE_ONLY, 0, 8);
        expect(c, (struct want[]){{ALB_RC_ACK, 0, 0}}, 1);
        lose_all(c);
        arrive(c, ALB_RC_WRITE_ONLY, 3, 8);
        arrive(c, ALB_RC_WRITE_ONLY, 0, 8);
        expect(c, (struct want[]){{ALB_RC_ACK, 3, 0}}, 1);
        lose_all(c);
    }
}

// Only READs have come: what is acknowledged again is what came before the connection's first packet.
static void answer__acknowledges_nothing_before_the_first_message(void **state)
{
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    pair_send(c->pair, 1);
    lose_all(c);
    arrive(c, ALB_RC_WRITE_ONLY, -1, 8);
    expect(c, (struct want[]){{ALB_RC_ACK, -1, 0}}, 1);
}

// So far behind the READs that followed, its number would be taken for one that is to come.
static void answer__no_acknowledgement_of_what_is_far_behind(void **state)
{
    struct pair_qps *c = *state;
    struct alb_rc *rc = alb_rc_of(c->qps[1]);
    arrive(c, ALB_RC_WRITE_ONLY, 0, 8);
    pair_send(c->pair, 1);
    lose_all(c);
    rc->expected = alb_psn_add(rc->expected, ALB_RC_ACK_REACH - 1); // as after as many packets of answers
    rc->behind_ack = ALB_RC_ACK_REACH - 1;
    arrive(c, ALB_RC_WRITE_ONLY, 0, 8);
    expect(c, (struct want[]){{ALB_RC_ACK, 0, 0}}, 1);
    lose_all(c);
    for (int32_t i = 0; i < 2; i++) {
        arrive(c, ALB_RC_READ_REQUEST, ALB_RC_ACK_REACH + i, 8);
        expect(c, (struct want[]){{ALB_RC_READ_RESPONSE_ONLY, ALB_RC_ACK_REACH + i, 8}}, 1);
        lose_all(c);
        arrive(c, ALB_RC_WRITE_ONLY, 0, 8);
        alb_qp_farewell(c->qps[1]);
        expect(c, NULL, 0);
    }
}

// Requests that all come again before anything was answered are answered once, in their order.
static void answer__once_what_comes_again_meanwhile(void **state)
{
    static const struct want wants[] = {
        {ALB_RC_READ_RESPONSE_FIRST, 0, MTU},
        {ALB_RC_READ_RESPONSE_LAST, 1, MTU},
        {ALB_RC_READ_RESPONSE_ONLY, 2, 8},
        {ALB_RC_ATOMIC_ACK, 3, 0},
    };
    struct pair_qps *c = *state;
    for (int times = 0; times < 2; times++) {
        arrive(c, ALB_RC_READ_REQUEST, 0, 2 * MTU);
        arrive(c, ALB_RC_READ_REQUEST, 2, 8);
        arrive(c, ALB_RC_FETCH_ADD, 3, 8);
    }
    expect(c, wants, 4);
}

// The network's second copy of a request that was answered long ago costs nothing that is owed to later ones.
static void answer__later_ones_beside_a_late_copy(void **state)
{
    static const struct want first[] = {
        {ALB_RC_READ_RESPONSE_FIRST, 0, MTU}, {ALB_RC_READ_RESPONSE_LAST, 1, MTU}, {ALB_RC_ATOMIC_ACK, 2, 0}};
    static const struct want wants[] = {
        {ALB_RC_READ_RESPONSE_FIRST, 0, MTU}, {ALB_RC_READ_RESPONSE_LAST, 1, MTU}, {ALB_RC_ATOMIC_ACK, 2, 0},
        {ALB_RC_READ_RESPONSE_ONLY, 3, 8},    {ALB_RC_ATOMIC_ACK, 4, 0},
    };
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 2 * MTU);
    arrive(c, ALB_RC_FETCH_ADD, 2, 8);
    expect(c, first, 3);
    lose_all(c);
    arrive(c, ALB_RC_READ_REQUEST, 3, 8);
    arrive(c, ALB_RC_FETCH_ADD, 4, 8);
    arrive(c, ALB_RC_FETCH_ADD, 2, 8);
    arrive(c, ALB_RC_READ_REQUEST, 0, 2 * MTU);
    expect(c, wants, 5);
}

// A peer with as many open as were agreed has what came before them.
static void answer__no_late_copy_without_room(void **state)
{
    struct want wants[PAIR_RD_ATOMIC];
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    expect(c, (struct want[]){{ALB_RC_READ_RESPONSE_ONLY, 0, 8}}, 1);
    lose_all(c);
    for (int32_t i = 0; i < PAIR_RD_ATOMIC; i++) {
        wants[i] = (struct want){ALB_RC_READ_RESPONSE_ONLY, i + 1, 8};
        arrive(c, ALB_RC_READ_REQUEST, i + 1, 8);
    }
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    expect(c, wants, PAIR_RD_ATOMIC);
}

// The answer to a late copy comes in between the packets of a later one's middle, which are made from each other.
static void answer__a_middle_goes_on_behind_a_late_copy(void **state)
{
    static const struct want wants[] = {
        {ALB_RC_READ_RESPONSE_ONLY, 0, MTU},
        {ALB_RC_READ_RESPONSE_MIDDLE, 4, MTU},
        {ALB_RC_READ_RESPONSE_MIDDLE, 5, MTU},
        {ALB_RC_READ_RESPONSE_LAST, 6, MTU},
    };
    struct pair_qps *c = *state;
    struct pair_host *host = &c->pair->hosts[1];
    arrive(c, ALB_RC_READ_REQUEST, 0, MTU);
    pair_send(c->pair, 1);
    lose_all(c);
    arrive(c, ALB_RC_READ_REQUEST, 1, 6 * MTU);
    host->tx.segment_capacity = 3;
    alb_engine_tx(host->engine, &host->tx, c->pair->now);
    host->tx.segment_capacity = PAIR_SEGMENTS;
    arrive(c, ALB_RC_READ_REQUEST, 0, MTU);
    expect(c, wants, ALB_COUNT(wants));
}

static void answer__naks_stand_behind_answers(void **state)
{
    static const struct want wants[] = {
        {ALB_RC_READ_RESPONSE_FIRST, 0, MTU},
        {ALB_RC_READ_RESPONSE_LAST, 1, MTU},
        {ALB_RC_ACK, 2, 0},
    };
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 2 * MTU);
    arrive(c, ALB_RC_WRITE_ONLY, 3, 8); // a gap
    expect(c, wants, 3);
    assert_int_equal(pair_peek(c->pair, 1, 2)->roce.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
}

// The refusal of a request puts the queue pair into error, and yet what was owed before is answered, and a NAK sent.
static void answer__still_in_error(void **state)
{
    static const struct want wants[] = {
        {ALB_RC_READ_RESPONSE_ONLY, 0, 8},
        {ALB_RC_ACK, 1, 0},
    };
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    arrive(c, ALB_RC_WRITE_LAST, 1, 8); // of no message
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    expect(c, wants, 2);
    assert_int_equal(pair_peek(c->pair, 1, 1)->roce.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_INVALID_REQUEST));
}

static void answer__not_when_the_program_ends_it(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    arrive(c, ALB_RC_WRITE_ONLY, 1, 8);
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    expect(c, NULL, 0);
    assert_true(alb_qp_is_quiet(c->qps[1]));
}

// Memory that is deregistered while a READ of it is being answered is not read any more: a NAK says where it ended.
static void answer__memory_that_goes(void **state)
{
    struct pair_qps *c = *state;
    struct pair_host *host = &c->pair->hosts[1];
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(host->pd, host->memory, 65536, (uintptr_t)host->memory, ALB_ACCESS_REMOTE_READ, &mr),
                     0);
    struct alb_roce roce = {
        .opcode = ALB_RC_READ_REQUEST,
        .pkey = 0xffff,
        .dest_qpn = alb_qp_number(c->qps[1]),
        .psn = PAIR_PSN,
        .ackreq = true,
        .va = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(mr),
        .length = 8 * MTU,
    };
    pair_inject(c->pair, 0, &roce, NULL, 0);
    host->tx.segment_capacity = 3;
    alb_engine_tx(host->engine, &host->tx, c->pair->now);
    host->tx.segment_capacity = PAIR_SEGMENTS;
    assert_int_equal(alb_mr_destroy(mr), 0);
    static const struct want wants[] = {{ALB_RC_ACK, 3, 0}};
    expect(c, wants, 1);
    assert_int_equal(pair_peek(c->pair, 1, 0)->roce.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
}

// The same when a READ comes again after its memory has gone.
static void answer__memory_that_has_gone(void **state)
{
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    pair_send(c->pair, 1);
    pair_lose(c->pair, 1);
    c->qps[1]->attr.access = 0; // or the key: nothing of it may be read any more
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    static const struct want wants[] = {{ALB_RC_ACK, 0, 0}};
    expect(c, wants, 1);
    assert_int_equal(pair_peek(c->pair, 1, 0)->roce.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
}

// But not in place of a NAK that is owed: the READ may be a late copy, whose peer has its answer.
static void answer__a_nak_is_not_replaced_by_that_of_a_late_copy(void **state)
{
    static const struct want wants[] = {{ALB_RC_ACK, 1, 0}};
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    pair_send(c->pair, 1);
    lose_all(c);
    arrive(c, ALB_RC_WRITE_ONLY, 2, 8); // a gap
    c->qps[1]->attr.access = 0;
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    expect(c, wants, 1);
    assert_int_equal(pair_peek(c->pair, 1, 0)->roce.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
}

// Both ways at once: answers do not keep our own requests from being sent.
static void answer__requests_of_our_own_go_too(void **state)
{
    struct pair_qps *c = *state;
    uint32_t ours = 0, theirs = 0;
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 131072, 100 * MTU), 0);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 0, 100 * MTU), 0);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    for (uint32_t i = 0; i < pair_count(c->pair, 1); i++) {
        bool is_answer = alb_opcode_info(pair_peek(c->pair, 1, i)->roce.opcode)->flags & ALB_OPCODE_RESPONSE;
        theirs += is_answer;
        ours += !is_answer;
    }
    assert_true(ours > 10 && theirs > 10);
    pair_settle(c->pair);
    struct alb_wc wc;
    for (int side = 0; side < 2; side++) {
        assert_true(pair_poll(c->pair, side, &wc));
        assert_int_equal(wc.status, ALB_WC_SUCCESS);
    }
}

static void farewell__acknowledges_again_what_came(void **state)
{
    struct pair_qps *c = *state;
    alb_qp_farewell(c->qps[1]);
    assert_int_equal(pair_send(c->pair, 1), 0); // nothing has come
    arrive(c, ALB_RC_WRITE_ONLY, 0, 8);
    pair_send(c->pair, 1);
    pair_lose(c->pair, 1);
    assert_true(alb_qp_is_quiet(c->qps[1]));
    alb_qp_farewell(c->qps[1]);
    assert_false(alb_qp_is_quiet(c->qps[1]));
    assert_int_equal(pair_send(c->pair, 1), 2);
    assert_true(alb_qp_is_quiet(c->qps[1]));
    assert_int_equal(pair_send(c->pair, 1), 0);
}

// A program that has what it waited for may end the connection before the acknowledgement has left.
static void farewell__is_said_in_error_too(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    arrive(c, ALB_RC_WRITE_ONLY, 0, 8);
    alb_qp_farewell(c->qps[1]);
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_false(alb_qp_is_quiet(c->qps[1]));
    assert_int_equal(pair_send(c->pair, 1), 3);
    assert_int_equal(pair_peek(c->pair, 1, 0)->roce.opcode, ALB_RC_ACK);
    assert_int_equal(pair_peek(c->pair, 1, 0)->roce.syndrome, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    assert_true(alb_qp_is_quiet(c->qps[1]));
    alb_qp_farewell(c->qps[1]);
    assert_int_equal(pair_send(c->pair, 1), 0);
}

// What has not been answered must not be acknowledged.
static void farewell__is_not_said_behind_a_read(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    arrive(c, ALB_RC_READ_REQUEST, 0, 8);
    alb_qp_farewell(c->qps[1]);
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_true(alb_qp_is_quiet(c->qps[1]));
    assert_int_equal(pair_send(c->pair, 1), 0);
}

static void farewell__acknowledges_no_read_that_was_answered(void **state)
{
    struct pair_qps *c = *state;
    arrive(c, ALB_RC_READ_REQUEST, 0, 2 * MTU);
    pair_send(c->pair, 1);
    lose_all(c);
    alb_qp_farewell(c->qps[1]);
    expect(c, NULL, 0);
    arrive(c, ALB_RC_WRITE_ONLY, 2, 8);
    arrive(c, ALB_RC_READ_REQUEST, 3, 8);
    pair_send(c->pair, 1);
    lose_all(c);
    alb_qp_farewell(c->qps[1]);
    expect(c, (struct want[]){{ALB_RC_ACK, 2, 0}, {ALB_RC_ACK, 2, 0}}, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_RC_TEST(answer__a_read_in_packets),
        PAIR_RC_TEST(answer__small_ones),
        PAIR_RC_TEST(answer__acknowledgements_are_merged),
        PAIR_RC_TEST(answer__acknowledgements_stand_behind_answers),
        PAIR_RC_TEST(answer__no_acknowledgement_stands_for_an_answer),
        PAIR_RC_TEST(answer__acknowledges_nothing_before_the_first_message),
        PAIR_RC_TEST(answer__no_acknowledgement_of_what_is_far_behind),
        PAIR_RC_TEST(answer__once_what_comes_again_meanwhile),
        PAIR_RC_TEST(answer__later_ones_beside_a_late_copy),
        PAIR_RC_TEST(answer__no_late_copy_without_room),
        PAIR_RC_TEST(answer__a_middle_goes_on_behind_a_late_copy),
        PAIR_RC_TEST(answer__naks_stand_behind_answers),
        PAIR_RC_TEST(answer__still_in_error),
        PAIR_RC_TEST(answer__not_when_the_program_ends_it),
        PAIR_RC_TEST(answer__memory_that_goes),
        PAIR_RC_TEST(answer__memory_that_has_gone),
        PAIR_RC_TEST(answer__a_nak_is_not_replaced_by_that_of_a_late_copy),
        PAIR_RC_TEST(answer__requests_of_our_own_go_too),
        PAIR_RC_TEST(farewell__acknowledges_again_what_came),
        PAIR_RC_TEST(farewell__is_said_in_error_too),
        PAIR_RC_TEST(farewell__is_not_said_behind_a_read),
        PAIR_RC_TEST(farewell__acknowledges_no_read_that_was_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
