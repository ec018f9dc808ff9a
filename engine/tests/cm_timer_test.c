// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/cm_pair.h"

static void code__is_held_within_bounds(void **state)
{
    assert_true(alb_cm_code_ns(0) == ALB_CM_TIME_MIN);
    assert_true(alb_cm_code_ns(14) == 67108864);
    assert_true(alb_cm_code_ns(20) == 4294967296);
    assert_true(alb_cm_code_ns(31) == ALB_CM_TIME_MAX);
}

// max_cm_retries times more, each after the response timeout and the way, and then the peer hears that it is over.
static void req__is_sent_again_then_given_up(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    for (unsigned i = 0; i <= CM_RETRIES; i++) {
        cm_expect_sent(cm, 0, ALB_CM_REQ);
        cm_lose(cm, 0);
        pair_pass(cm->pair, CM_TIMEOUT_NS - 1);
        cm_expect_nothing_sent(cm, 0);
        cm_expect_no_event(cm, 0);
        pair_pass(cm->pair, 1);
    }
    struct alb_cm_message rej = cm_expect_sent(cm, 0, ALB_CM_REJ);
    assert_int_equal(rej.rej.reason, ALB_CM_REJ_TIMEOUT);
    assert_int_equal(rej.rej.info_bytes, 8);
    assert_memory_equal(rej.rej.info, "\1\2\3\4\5\6\7\10", 8);
    cm_lose(cm, 0);
    cm_expect_event(cm, 0, ALB_CM_EVENT_TIMED_OUT);
    cm_expect_state(cm, 0, ALB_CM_IDLE);
    cm_connect(cm); // the id is as good as new
    cm_take_request(cm);
}

static void rep__is_sent_again_then_given_up(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    alb_cm_id_destroy(cm->ids[0], cm->pair->now); // the peer dies
    cm->ids[0] = NULL;
    cm_expect_sent(cm, 0, ALB_CM_REJ);
    cm_lose(cm, 0);
    cm_accept(cm);
    for (unsigned i = 0; i <= CM_RETRIES; i++) {
        cm_expect_sent(cm, 1, ALB_CM_REP);
        cm_lose(cm, 1);
        pair_pass(cm->pair, CM_TIMEOUT_NS);
    }
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_lose(cm, 1);
    cm_expect_event(cm, 1, ALB_CM_EVENT_TIMED_OUT);
    cm_expect_state(cm, 1, ALB_CM_IDLE);
}

// Whatever a stranger asks for: he may have sent the request in somebody else's name.
static void rep__is_bounded_in_time_and_number(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 77, .req = cm_req(cm, 300)};
    req.req.local_response_timeout = req.req.primary.ack_timeout = 31;
    req.req.max_cm_retries = 15;
    cm_inject(cm, 0, &req);
    cm->ids[1] = cm_expect_event(cm, 1, ALB_CM_EVENT_REQUEST).id;
    cm_accept(cm);
    uint32_t sent = 0;
    for (unsigned i = 0; i <= 20; i++) { // seconds
        while (pair_send(cm->pair, 1)) {
            sent++;
            cm_lose(cm, 1);
        }
        pair_pass(cm->pair, ALB_NS_PER_S);
    }
    assert_in_range(sent, 8, 9); // the last one says that it is over
    cm_expect_event(cm, 1, ALB_CM_EVENT_TIMED_OUT);
    cm_expect_state(cm, 1, ALB_CM_IDLE);
}

static void dreq__without_an_answer_ends_all_the_same(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    assert_int_equal(alb_cm_disconnect(cm->ids[0], NULL, cm->pair->now), 0);
    for (unsigned i = 0; i <= CM_RETRIES; i++) {
        cm_expect_state(cm, 0, ALB_CM_DREQ_SENT);
        cm_expect_sent(cm, 0, ALB_CM_DREQ);
        cm_lose(cm, 0);
        pair_pass(cm->pair, CM_TIMEOUT_NS);
    }
    cm_expect_event(cm, 0, ALB_CM_EVENT_DISCONNECT_TIMED_OUT);
    cm_expect_state(cm, 0, ALB_CM_TIMEWAIT);
    pair_pass(cm->pair, CM_TIMEWAIT_NS - 1);
    cm_expect_state(cm, 0, ALB_CM_TIMEWAIT);
    pair_pass(cm->pair, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_TIMEWAIT_OVER);
    cm_expect_state(cm, 0, ALB_CM_IDLE);
    cm_expect_nothing_sent(cm, 0);
}

// The side's message has come again, before its peer's user has answered it: the MRA that it brings back, of that code.
// Its service timeout and the way replace the wait that was left, and then the message comes once more.
static void expect_patience(struct cm_pair *cm, int side, enum alb_cm_type type, uint8_t code)
{
    cm_expect_sent(cm, side, type);
    cm_deliver(cm, side);
    struct alb_cm_message mra = cm_expect_sent(cm, !side, ALB_CM_MRA);
    assert_int_equal(mra.mra.answers, type == ALB_CM_REQ ? ALB_CM_ANSWERS_REQ : ALB_CM_ANSWERS_REP);
    assert_int_equal(mra.mra.service_timeout, code);
    cm_deliver(cm, !side);
    pair_pass(cm->pair, (4096ull << code) + CM_TIMEWAIT_NS - 1);
    cm_expect_nothing_sent(cm, side);
    pair_pass(cm->pair, 1);
}

// More each time, and not much at first: the answer behind it may be lost.
static void mra__buys_time(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    pair_pass(cm->pair, CM_TIMEOUT_NS);
    expect_patience(cm, 0, ALB_CM_REQ, 18);
    expect_patience(cm, 0, ALB_CM_REQ, 19);
    cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_lose(cm, 0);

    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    pair_pass(cm->pair, CM_TIMEOUT_NS);
    expect_patience(cm, 1, ALB_CM_REP, 18);
    expect_patience(cm, 1, ALB_CM_REP, 19);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_lose(cm, 1);
}

// A Linux peer asks every 6 s and heeds the first MRA only: one of 1 s would make it give up earlier.
static void mra__is_longer_than_what_a_patient_peer_waits_by_itself(void **state)
{
    struct cm_pair *cm = *state;
    const struct {
        uint8_t response_code, service_timeout;
    } cases[] = {{0, 18}, {16, 18}, {18, 20}, {20, 22}, {31, 22}};
    for (uint32_t i = 0; i < ALB_COUNT(cases); i++) {
        struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 77 + i, .req = cm_req(cm, 300 + i)};
        req.req.remote_response_timeout = cases[i].response_code;
        cm_inject(cm, 0, &req);
        struct alb_cm_id *id = cm_expect_event(cm, 1, ALB_CM_EVENT_REQUEST).id;
        cm_inject(cm, 0, &req);
        assert_int_equal(cm_expect_sent(cm, 1, ALB_CM_MRA).mra.service_timeout, cases[i].service_timeout);
        cm_lose(cm, 1);
        alb_cm_id_destroy(id, cm->pair->now);
        cm_expect_sent(cm, 1, ALB_CM_REJ);
        cm_lose(cm, 1);
    }
}

// The peer was asked for the longest patience, and the answer behind that was lost.
static void lose_a_rejection_behind_patience(struct cm_pair *cm, alb_time timewait_ns)
{
    cm_connect(cm);
    struct alb_cm_message req = cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_take_request(cm);
    cm->ids[0]->timewait_ns = cm->ids[1]->timewait_ns = timewait_ns; // the request says it
    for (int i = ALB_CM_PATIENCE_FIRST_CODE; i < ALB_CM_PATIENCE_CODE; i++) {
        cm_inject(cm, 0, &req);
        cm_expect_sent(cm, 1, ALB_CM_MRA);
        cm_lose(cm, 1);
    }
    pair_pass(cm->pair, CM_TIMEOUT_NS);
    cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_deliver(cm, 0);
    assert_int_equal(cm_expect_sent(cm, 1, ALB_CM_MRA).mra.service_timeout, ALB_CM_PATIENCE_CODE);
    cm_deliver(cm, 1);
    assert_int_equal(alb_cm_reject(cm->ids[1], ALB_CM_REJ_CONSUMER_DEFINED, NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_lose(cm, 1);
    pair_pass(cm->pair, (4096ull << ALB_CM_PATIENCE_CODE) + timewait_ns);
    cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_deliver(cm, 0);
    cm_expect_no_event(cm, 1); // the user has answered it
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_REJECTED);
}

static void rej__is_kept_for_longer_than_any_patience(void **state)
{
    lose_a_rejection_behind_patience(*state, CM_TIMEWAIT_NS);
}

static void rej__is_kept_longer_for_a_peer_far_away(void **state)
{
    lose_a_rejection_behind_patience(*state, 5 * ALB_NS_PER_S);
}

// Else a peer that asks again and again would keep it half open for ever.
static void mra__one_for_each_copy_of_a_message(void **state)
{
    struct cm_pair *cm = *state;
    const uint64_t patience_ns = (4096ull << ALB_CM_PATIENCE_CODE) + CM_TIMEWAIT_NS;
    cm_connect(cm);
    struct alb_cm_message req = cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_lose(cm, 0);
    struct alb_cm_message mra = {.type = ALB_CM_MRA,
                                 .transaction = req.transaction,
                                 .local_id = 7,
                                 .remote_id = req.local_id,
                                 .mra = {.answers = ALB_CM_ANSWERS_REQ, .service_timeout = ALB_CM_PATIENCE_CODE}};
    for (int tries_left = CM_RETRIES; tries_left >= 0; tries_left--) {
        cm_inject(cm, 1, &mra);
        pair_pass(cm->pair, patience_ns - 1);
        cm_inject(cm, 1, &mra);
        assert_int_equal(cm_dropped(cm, 0, ALB_DROP_DUPLICATE), CM_RETRIES - tries_left + 1);
        cm_expect_nothing_sent(cm, 0);
        pair_pass(cm->pair, 1);
        if (tries_left > 0)
            cm_expect_sent(cm, 0, ALB_CM_REQ);
        cm_lose(cm, 0);
    }
    cm_expect_event(cm, 0, ALB_CM_EVENT_TIMED_OUT);
    cm_expect_state(cm, 0, ALB_CM_IDLE);
}

// A REQ that comes again gets the REP once more, and no more time with it.
static void mra__a_question_that_comes_again_allows_no_other(void **state)
{
    struct cm_pair *cm = *state;
    const uint64_t patience_ns = (4096ull << CM_RESPONSE_CODE) + CM_TIMEWAIT_NS;
    cm_connect(cm);
    struct alb_cm_message req = cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_take_request(cm);
    cm_accept(cm);
    struct alb_cm_message rep = cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_lose(cm, 1);
    struct alb_cm_message mra = {.type = ALB_CM_MRA,
                                 .transaction = req.transaction,
                                 .local_id = req.local_id,
                                 .remote_id = rep.local_id,
                                 .mra = {.answers = ALB_CM_ANSWERS_REP, .service_timeout = CM_RESPONSE_CODE}};
    cm_inject(cm, 0, &mra);
    pair_pass(cm->pair, patience_ns - 1);
    cm_inject(cm, 0, &req);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_lose(cm, 1);
    cm_inject(cm, 0, &mra);
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_DUPLICATE), 2); // the REQ, and the MRA
    cm_expect_nothing_sent(cm, 1);
    pair_pass(cm->pair, 1);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_lose(cm, 1);
}

static alb_qpn find_next_slot(void *user, alb_qpn last)
{
    assert_non_null(((struct cm_pair *)user)->pair);
    return last + (1u << 16);
}

// The service may have come, and be another slot's; but where no answer came, the question goes where it went.
static void refusal__finds_where_to_ask_again(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    struct alb_cm_req req = cm_req(cm, 100);
    target.refusals = 1;
    target.find = find_next_slot;
    req.service_id++;
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_lose(cm, 0);
    pair_pass(cm->pair, CM_TIMEOUT_NS);
    cm_expect_sent(cm, 0, ALB_CM_REQ);
    assert_int_equal(cm->ids[0]->gsi_qpn, ALB_GSI_QPN);
    cm_deliver(cm, 0);
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    assert_int_equal(cm->ids[0]->gsi_qpn, ALB_GSI_QPN);
    for (int i = 0; i < 2; i++) {
        pair_pass(cm->pair, i == 0 ? ALB_CM_REFUSED_NS : CM_TIMEOUT_NS);
        cm_expect_sent(cm, 0, ALB_CM_REQ);
        cm_lose(cm, 0);
        assert_int_equal(cm->ids[0]->gsi_qpn, 1u << 16 | ALB_GSI_QPN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code__is_held_within_bounds),
        CM_TEST(req__is_sent_again_then_given_up),
        CM_TEST(rep__is_sent_again_then_given_up),
        CM_TEST(rep__is_bounded_in_time_and_number),
        CM_TEST(dreq__without_an_answer_ends_all_the_same),
        CM_TEST(mra__buys_time),
        CM_TEST(mra__is_longer_than_what_a_patient_peer_waits_by_itself),
        CM_TEST(mra__one_for_each_copy_of_a_message),
        CM_TEST(mra__a_question_that_comes_again_allows_no_other),
        CM_TEST(rej__is_kept_for_longer_than_any_patience),
        CM_TEST(rej__is_kept_longer_for_a_peer_far_away),
        CM_TEST(refusal__finds_where_to_ask_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
