// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/cm_pair.h"

#define SERVICE    alb_cm_service_id(ALB_CM_PS_TCP, CM_PORT)
#define TIMEOUT_NS (100 * ALB_NS_PER_MS)

static void ask(struct cm_pair *cm, uint64_t service_id)
{
    struct alb_cm_target target = cm_target(cm, 0);
    struct alb_cm_private data = {"who", 4};
    if (!cm->ids[0])
        assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    assert_int_equal(alb_cm_resolve(cm->ids[0], &target, service_id, &data, TIMEOUT_NS, CM_RETRIES, cm->pair->now), 0);
}

static void take_question(struct cm_pair *cm)
{
    cm_expect_sent(cm, 0, ALB_CM_SIDR_REQ);
    cm_deliver(cm, 0);
    struct alb_cm_event event = cm_expect_event(cm, 1, ALB_CM_EVENT_SIDR_REQUEST);
    assert_ptr_equal(event.listener, cm->listener);
    assert_string_equal((char *)event.message.private_data, "who");
    cm->ids[1] = event.id;
}

static void sidr__question_and_answer(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_private data = {"me", 3};
    ask(cm, SERVICE);
    take_question(cm);
    assert_int_equal(alb_cm_answer(cm->ids[1], ALB_CM_SIDR_VALID, 0x123456, 0x1234567, &data, cm->pair->now), 0);
    assert_int_equal(alb_cm_answer(cm->ids[1], ALB_CM_SIDR_VALID, 1, 1, NULL, cm->pair->now), EINVAL);
    cm_expect_sent(cm, 1, ALB_CM_SIDR_REP);
    cm_deliver(cm, 1);
    struct alb_cm_event event = cm_expect_event(cm, 0, ALB_CM_EVENT_SIDR_RESPONSE);
    assert_int_equal(event.message.sidr_rep.status, ALB_CM_SIDR_VALID);
    assert_int_equal(event.message.sidr_rep.qpn, 0x123456);
    assert_int_equal(event.message.sidr_rep.qkey, 0x1234567);
    assert_true(event.message.sidr_rep.service_id == SERVICE);
    assert_string_equal((char *)event.message.private_data, "me");
    cm_expect_state(cm, 0, ALB_CM_IDLE);
    cm_expect_state(cm, 1, ALB_CM_SIDR_ANSWERED);
    pair_pass(cm->pair, ALB_CM_LINGER_NS);
    cm_expect_state(cm, 1, ALB_CM_IDLE);
}

static void sidr__a_lost_answer_is_given_again_without_asking_the_user(void **state)
{
    struct cm_pair *cm = *state;
    ask(cm, SERVICE);
    take_question(cm);
    pair_pass(cm->pair, TIMEOUT_NS); // the question comes again before it is answered
    cm_expect_sent(cm, 0, ALB_CM_SIDR_REQ);
    cm_deliver(cm, 0);
    cm_expect_no_event(cm, 1);
    cm_expect_nothing_sent(cm, 1);
    assert_int_equal(alb_cm_answer(cm->ids[1], ALB_CM_SIDR_VALID, 5, 6, NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 1, ALB_CM_SIDR_REP);
    cm_lose(cm, 1);
    pair_pass(cm->pair, TIMEOUT_NS);
    cm_expect_sent(cm, 0, ALB_CM_SIDR_REQ);
    cm_deliver(cm, 0);
    cm_expect_no_event(cm, 1);
    cm_expect_sent(cm, 1, ALB_CM_SIDR_REP);
    cm_deliver(cm, 1);
    assert_int_equal(cm_expect_event(cm, 0, ALB_CM_EVENT_SIDR_RESPONSE).message.sidr_rep.qpn, 5);
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_DUPLICATE), 2);
}

// The same id asks anew: it does not get the answer of before.
static void sidr__another_question_with_the_same_number_is_new(void **state)
{
    struct cm_pair *cm = *state;
    for (alb_qpn qpn = 5; qpn < 7; qpn++) {
        ask(cm, SERVICE);
        take_question(cm);
        assert_int_equal(alb_cm_answer(cm->ids[1], ALB_CM_SIDR_VALID, qpn, 6, NULL, cm->pair->now), 0);
        alb_cm_id_destroy(cm->ids[1], cm->pair->now);
        cm->ids[1] = NULL;
        cm_expect_sent(cm, 1, ALB_CM_SIDR_REP);
        cm_deliver(cm, 1);
        assert_int_equal(cm_expect_event(cm, 0, ALB_CM_EVENT_SIDR_RESPONSE).message.sidr_rep.qpn, qpn);
    }
}

static void sidr__nobody_serves_it(void **state)
{
    struct cm_pair *cm = *state;
    ask(cm, SERVICE + 1);
    cm_expect_sent(cm, 0, ALB_CM_SIDR_REQ);
    cm_deliver(cm, 0);
    cm_expect_sent(cm, 1, ALB_CM_SIDR_REP);
    cm_deliver(cm, 1);
    struct alb_cm_event event = cm_expect_event(cm, 0, ALB_CM_EVENT_SIDR_RESPONSE);
    assert_int_equal(event.message.sidr_rep.status, ALB_CM_SIDR_UNSUPPORTED);
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 1)), 1); // the listener
}

static void sidr__a_refusal_is_borne(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    target.refusals = 1;
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    assert_int_equal(alb_cm_resolve(cm->ids[0], &target, SERVICE + 1, NULL, TIMEOUT_NS, CM_RETRIES, cm->pair->now), 0);
    for (int i = 0; i < 2; i++) {
        cm_expect_no_event(cm, 0);
        cm_expect_sent(cm, 0, ALB_CM_SIDR_REQ);
        cm_deliver(cm, 0);
        cm_expect_sent(cm, 1, ALB_CM_SIDR_REP);
        cm_deliver(cm, 1);
        if (i == 0)
            pair_pass(cm->pair, ALB_CM_REFUSED_NS);
    }
    cm_expect_event(cm, 0, ALB_CM_EVENT_SIDR_RESPONSE);
}

static void sidr__silence_ends_it(void **state)
{
    struct cm_pair *cm = *state;
    ask(cm, SERVICE);
    for (unsigned i = 0; i <= CM_RETRIES; i++) {
        cm_expect_no_event(cm, 0);
        cm_expect_sent(cm, 0, ALB_CM_SIDR_REQ);
        cm_lose(cm, 0);
        pair_pass(cm->pair, TIMEOUT_NS);
    }
    cm_expect_event(cm, 0, ALB_CM_EVENT_TIMED_OUT);
    cm_expect_nothing_sent(cm, 0);
    cm_expect_state(cm, 0, ALB_CM_IDLE);
}

static void sidr__destroying_the_question_rejects_it(void **state)
{
    struct cm_pair *cm = *state;
    ask(cm, SERVICE);
    take_question(cm);
    alb_cm_id_destroy(cm->ids[1], cm->pair->now);
    cm->ids[1] = NULL;
    cm_expect_sent(cm, 1, ALB_CM_SIDR_REP);
    cm_deliver(cm, 1);
    struct alb_cm_event event = cm_expect_event(cm, 0, ALB_CM_EVENT_SIDR_RESPONSE);
    assert_int_equal(event.message.sidr_rep.status, ALB_CM_SIDR_REJECTED);
}

static void sidr__a_forged_answer_is_dropped(void **state)
{
    struct cm_pair *cm = *state;
    ask(cm, SERVICE);
    struct alb_cm_message question = cm_expect_sent(cm, 0, ALB_CM_SIDR_REQ);
    struct alb_cm_message forged = {
        .type = ALB_CM_SIDR_REP, .local_id = question.local_id, .transaction = question.transaction ^ 1ull << 40};
    cm_inject(cm, 1, &forged);
    forged.transaction = question.transaction;
    forged.local_id ^= 1 << 16;
    cm_inject(cm, 1, &forged);
    assert_int_equal(cm_dropped(cm, 0, ALB_DROP_STALE_RESPONSE), 2);
    cm_expect_no_event(cm, 0);
    cm_lose(cm, 0);
}

static void resolve__refuses_bad_arguments(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    uint8_t bytes[300] = {0};
    struct alb_cm_private long_data = {bytes, alb_cm_private_bytes(ALB_CM_SIDR_REQ) + 1};
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    assert_int_equal(alb_cm_resolve(cm->ids[0], &target, SERVICE, &long_data, 1, 0, cm->pair->now), EINVAL);
    assert_int_equal(alb_cm_resolve(cm->ids[0], &target, SERVICE, NULL, 0, 0, cm->pair->now), EINVAL);
    cm_expect_state(cm, 0, ALB_CM_IDLE);
    ask(cm, SERVICE);
    assert_int_equal(alb_cm_resolve(cm->ids[0], &target, SERVICE, NULL, 1, 0, cm->pair->now), EINVAL);
    take_question(cm);
    long_data.length = alb_cm_private_bytes(ALB_CM_SIDR_REP) + 1;
    assert_int_equal(alb_cm_answer(cm->ids[1], ALB_CM_SIDR_VALID, 1, 1, &long_data, cm->pair->now), EINVAL);
    cm_expect_state(cm, 1, ALB_CM_SIDR_RECEIVED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CM_TEST(sidr__question_and_answer),
        CM_TEST(sidr__a_lost_answer_is_given_again_without_asking_the_user),
        CM_TEST(sidr__another_question_with_the_same_number_is_new),
        CM_TEST(sidr__nobody_serves_it),
        CM_TEST(sidr__a_refusal_is_borne),
        CM_TEST(sidr__silence_ends_it),
        CM_TEST(sidr__destroying_the_question_rejects_it),
        CM_TEST(sidr__a_forged_answer_is_dropped),
        CM_TEST(resolve__refuses_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
