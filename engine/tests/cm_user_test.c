// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/cm_pair.h"

static void connect__handshake_and_parting(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    assert_int_equal(alb_cm_disconnect(cm->ids[1], NULL, cm->pair->now), 0);
    struct alb_cm_message dreq = cm_expect_sent(cm, 1, ALB_CM_DREQ);
    assert_int_equal(dreq.dreq_qpn, 100);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_DISCONNECTED);
    cm_expect_state(cm, 0, ALB_CM_TIMEWAIT);
    cm_expect_sent(cm, 0, ALB_CM_DREP);
    cm_deliver(cm, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_DISCONNECTED);
    pair_pass(cm->pair, CM_TIMEWAIT_NS);
    for (int side = 0; side < 2; side++) {
        cm_expect_event(cm, side, ALB_CM_EVENT_TIMEWAIT_OVER);
        cm_expect_state(cm, side, ALB_CM_IDLE);
    }
}

static void connect__refuses_bad_arguments(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    struct alb_cm_req req = cm_req(cm, 100);
    uint8_t bytes[300] = {0};
    struct alb_cm_private data = {bytes, alb_cm_private_bytes(ALB_CM_REQ) + 1};
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, &data, cm->pair->now), EINVAL);
    req.transport = ALB_CM_TRANSPORT_RD;
    assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, NULL, cm->pair->now), EINVAL);
    cm_expect_state(cm, 0, ALB_CM_IDLE);
    cm_expect_nothing_sent(cm, 0);
    cm_connect(cm);
    req.transport = ALB_CM_TRANSPORT_RC;
    assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, NULL, cm->pair->now), EINVAL);
    cm_take_request(cm);
}

// The reply has the receiving queue pair where the EE context stands, as Linux does it.
static void xrc__connects_and_disconnects(void **state)
{
    static const struct alb_cm_private knock = {"knock", 6};
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    struct alb_cm_req req = cm_req(cm, 100);
    struct alb_cm_rep rep = cm_rep(0);
    req.transport = ALB_CM_TRANSPORT_EXTENDED;
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, NULL, cm->pair->now), EINVAL);
    req.extended_transport = ALB_CM_EXTENDED_XRC;
    assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, &knock, cm->pair->now), 0);
    cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_take_request(cm);
    rep.eecn = 0x777;
    assert_int_equal(alb_cm_accept(cm->ids[1], &rep, NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    struct alb_cm_event event = cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_int_equal(alb_cm_rep_qpn(&event.message.rep), 0x777);
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 0, ALB_CM_RTU);
    cm_deliver(cm, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_ESTABLISHED);
    assert_int_equal(alb_cm_disconnect(cm->ids[0], NULL, cm->pair->now), 0);
    assert_int_equal(cm_expect_sent(cm, 0, ALB_CM_DREQ).dreq_qpn, 0x777);
    cm_deliver(cm, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_DISCONNECTED);
    cm_expect_sent(cm, 1, ALB_CM_DREP);
}

static void disconnect_all__those_that_are_connected(void **state)
{
    struct cm_pair *cm = *state;
    alb_cm_disconnect_all(cm_engine(cm, 0), cm->pair->now);
    cm_expect_nothing_sent(cm, 0);
    cm_establish(cm);
    alb_cm_disconnect_all(cm_engine(cm, 0), cm->pair->now);
    cm_expect_sent(cm, 0, ALB_CM_DREQ);
    cm_deliver(cm, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_DISCONNECTED);
    cm_expect_sent(cm, 1, ALB_CM_DREP);
    cm_deliver(cm, 1);
    alb_cm_disconnect_all(cm_engine(cm, 0), cm->pair->now);
    cm_expect_nothing_sent(cm, 0);
}

static void ece__goes_with_request_and_reply(void **state)
{
    static const struct alb_cm_ece ece = {.vendor_id = 0x15b3, .options = 7};
    static const struct alb_cm_private knock = {"knock", 6}, come_in = {"come in", 8};
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    struct alb_cm_req req = cm_req(cm, 100);
    struct alb_cm_rep rep = cm_rep(200);
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    alb_cm_id_set_ece(cm->ids[0], &ece);
    assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, &knock, cm->pair->now), 0);
    struct alb_cm_message sent = cm_expect_sent(cm, 0, ALB_CM_REQ);
    assert_memory_equal(&sent.ece, &ece, sizeof(ece));
    cm_take_request(cm);
    alb_cm_id_set_ece(cm->ids[1], &ece);
    assert_int_equal(alb_cm_accept(cm->ids[1], &rep, &come_in, cm->pair->now), 0);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    struct alb_cm_event event = cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_memory_equal(&event.message.ece, &ece, sizeof(ece));
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, cm->pair->now), 0);
    sent = cm_expect_sent(cm, 0, ALB_CM_RTU);
    assert_int_equal(sent.ece.vendor_id, 0);
    cm_deliver(cm, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_ESTABLISHED);
}

// What does not fit the state changes nothing.
static void calls__in_the_wrong_state(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_rep rep = cm_rep(1);
    alb_time now = cm->pair->now;
    cm_establish(cm);
    for (int side = 0; side < 2; side++) {
        assert_int_equal(alb_cm_accept(cm->ids[side], &rep, NULL, now), EINVAL);
        assert_int_equal(alb_cm_establish(cm->ids[side], NULL, now), EINVAL);
        assert_int_equal(alb_cm_reject(cm->ids[side], ALB_CM_REJ_CONSUMER_DEFINED, NULL, now), EINVAL);
        assert_int_equal(alb_cm_notice_traffic(cm->ids[side], now), EINVAL);
        cm_expect_state(cm, side, ALB_CM_ESTABLISHED);
        cm_expect_nothing_sent(cm, side);
    }
    assert_int_equal(alb_cm_disconnect(cm->listener, NULL, now), EINVAL);
}

static void calls__private_data_too_long(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_rep rep = cm_rep(200);
    uint8_t bytes[300] = {0};
    struct alb_cm_private data = {bytes, sizeof(bytes)};
    alb_time now = cm->pair->now;
    cm_connect(cm);
    cm_take_request(cm);
    assert_int_equal(alb_cm_accept(cm->ids[1], &rep, &data, now), EINVAL);
    assert_int_equal(alb_cm_reject(cm->ids[1], ALB_CM_REJ_CONSUMER_DEFINED, &data, now), EINVAL);
    cm_expect_state(cm, 1, ALB_CM_REQ_RECEIVED);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_int_equal(alb_cm_establish(cm->ids[0], &data, now), EINVAL);
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, now), 0);
    assert_int_equal(alb_cm_disconnect(cm->ids[0], &data, now), EINVAL);
    cm_expect_state(cm, 0, ALB_CM_ESTABLISHED);
    pair_deliver_all(cm->pair, 0);
}

static void reject__with_reason_and_words(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_private data = {"not today", 10};
    cm_connect(cm);
    cm_take_request(cm);
    assert_int_equal(alb_cm_reject(cm->ids[1], ALB_CM_REJ_CONSUMER_DEFINED, &data, cm->pair->now), 0);
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    struct alb_cm_event event = cm_expect_event(cm, 0, ALB_CM_EVENT_REJECTED);
    assert_int_equal(event.message.rej.reason, ALB_CM_REJ_CONSUMER_DEFINED);
    assert_int_equal(event.message.rej.answers, ALB_CM_ANSWERS_REQ);
    assert_string_equal((char *)event.message.private_data, "not today");
    cm_expect_state(cm, 0, ALB_CM_IDLE);
    cm_expect_state(cm, 1, ALB_CM_REJECTED);
    // The same queue pair may try again at once.
    alb_cm_id_destroy(cm->ids[1], cm->pair->now);
    alb_cm_id_destroy(cm->ids[0], cm->pair->now);
    cm->ids[0] = cm->ids[1] = NULL;
    cm_connect(cm);
    cm_take_request(cm);
}

static void reject__a_response(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    assert_int_equal(alb_cm_reject(cm->ids[0], ALB_CM_REJ_NO_RESOURCES, NULL, cm->pair->now), 0);
    assert_int_equal(cm_expect_sent(cm, 0, ALB_CM_REJ).rej.answers, ALB_CM_ANSWERS_REP);
    cm_lose(cm, 0);
    pair_pass(cm->pair, CM_TIMEOUT_NS); // the response comes again, and so does the answer
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    cm_expect_sent(cm, 0, ALB_CM_REJ);
    cm_deliver(cm, 0);
    assert_int_equal(cm_expect_event(cm, 1, ALB_CM_EVENT_REJECTED).message.rej.reason, ALB_CM_REJ_NO_RESOURCES);
    cm_expect_state(cm, 1, ALB_CM_IDLE);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE); // which it did not take
}

// What destroying an id tells the peer, in each state.

static void destroy__while_asking(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    alb_cm_id_destroy(cm->ids[0], cm->pair->now);
    cm->ids[0] = NULL;
    cm_expect_sent(cm, 0, ALB_CM_REJ);
    cm_deliver(cm, 0);
    assert_int_equal(cm_expect_event(cm, 1, ALB_CM_EVENT_REJECTED).message.rej.reason, ALB_CM_REJ_TIMEOUT);
    cm_expect_state(cm, 1, ALB_CM_IDLE);
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 0)), 0);
}

static void destroy__what_waits_for_an_answer(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    alb_cm_id_destroy(cm->ids[1], cm->pair->now);
    cm->ids[1] = NULL;
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_lose(cm, 1);
    pair_pass(cm->pair, CM_TIMEOUT_NS);
    cm_expect_sent(cm, 0, ALB_CM_REQ); // again, and is rejected again without a new event
    cm_deliver(cm, 0);
    cm_expect_no_event(cm, 1);
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_REJECTED);
}

static void destroy__between_reply_and_ready(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    alb_cm_id_destroy(cm->ids[1], cm->pair->now);
    cm->ids[1] = NULL;
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_REJECTED);
    cm_expect_state(cm, 0, ALB_CM_IDLE);
}

static void destroy__what_is_connected(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    alb_cm_id_destroy(cm->ids[0], cm->pair->now);
    cm->ids[0] = NULL;
    cm_expect_sent(cm, 0, ALB_CM_DREQ);
    cm_lose(cm, 0); // it says so again, though its user has gone
    assert_false(alb_engine_is_quiet(cm_engine(cm, 0)));
    pair_pass(cm->pair, CM_TIMEOUT_NS);
    cm_expect_sent(cm, 0, ALB_CM_DREQ);
    cm_deliver(cm, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_DISCONNECTED);
    cm_expect_sent(cm, 1, ALB_CM_DREP);
    cm_deliver(cm, 1);
    assert_true(alb_engine_is_quiet(cm_engine(cm, 0)));
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 0)), 1);
    pair_pass(cm->pair, CM_TIMEWAIT_NS);
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 0)), 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_TIMEWAIT_OVER);
}

static void destroy__a_listener_rejects_what_nobody_took(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_deliver(cm, 0);
    assert_true(alb_cm_has_event(cm_engine(cm, 1)));
    alb_cm_id_destroy(cm->listener, cm->pair->now);
    cm->listener = NULL;
    cm_expect_no_event(cm, 1);
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_REJECTED);
}

static void traffic__is_as_good_as_ready_to_use(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, cm->pair->now), 0);
    assert_int_equal(alb_cm_notice_traffic(cm->ids[1], cm->pair->now), 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_ESTABLISHED);
    cm_expect_sent(cm, 0, ALB_CM_RTU);
    cm_deliver(cm, 0);
    cm_expect_no_event(cm, 1);
    pair_pass(cm->pair, CM_TIMEOUT_NS);
    cm_expect_nothing_sent(cm, 1);
}

static void id__says_who_it_is(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    assert_ptr_equal(cm->ids[0]->user, cm);
    alb_cm_id_set_user(cm->ids[0], state);
    assert_ptr_equal(cm->ids[0]->user, state);
    assert_int_equal(cm_expect_sent(cm, 0, ALB_CM_REQ).local_id, alb_cm_id_number(cm->ids[0]));
    assert_true(alb_addr_equals(&alb_cm_id_av(cm->ids[0])->peer, &cm->pair->hosts[1].addr));
    cm_lose(cm, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CM_TEST(connect__handshake_and_parting),
        CM_TEST(connect__refuses_bad_arguments),
        CM_TEST(xrc__connects_and_disconnects),
        CM_TEST(disconnect_all__those_that_are_connected),
        CM_TEST(ece__goes_with_request_and_reply),
        CM_TEST(calls__in_the_wrong_state),
        CM_TEST(calls__private_data_too_long),
        CM_TEST(reject__with_reason_and_words),
        CM_TEST(reject__a_response),
        CM_TEST(destroy__while_asking),
        CM_TEST(destroy__what_waits_for_an_answer),
        CM_TEST(destroy__between_reply_and_ready),
        CM_TEST(destroy__what_is_connected),
        CM_TEST(destroy__a_listener_rejects_what_nobody_took),
        CM_TEST(traffic__is_as_good_as_ready_to_use),
        CM_TEST(id__says_who_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
