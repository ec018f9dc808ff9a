// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/cm_pair.h"

static void event_name__has_one_for_every_type(void **state)
{
    assert_string_equal(alb_cm_event_name(ALB_CM_EVENT_REQUEST), "request");
    assert_string_equal(alb_cm_event_name(ALB_CM_EVENT_SIDR_RESPONSE), "sidr_response");
    assert_string_equal(alb_cm_event_name(ALB_CM_EVENT_TYPES), "invalid");
}

// One word for the driver each time that the queue begins to fill.
static void raise__tells_the_driver_once(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_event event;
    for (uint32_t i = 0; i < 3; i++) {
        struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 5 + i, .req = cm_req(cm, 5 + i)};
        cm_inject(cm, 0, &req);
    }
    assert_true(alb_engine_event(cm_engine(cm, 1), &event));
    assert_int_equal(event.type, ALB_EVENT_CM);
    assert_ptr_equal(event.user, cm);
    assert_false(alb_engine_event(cm_engine(cm, 1), &event));
    for (uint32_t i = 0; i < 3; i++) {
        struct alb_cm_event request = cm_expect_event(cm, 1, ALB_CM_EVENT_REQUEST);
        assert_int_equal(request.message.req.qpn, 5 + i); // oldest first
        alb_cm_id_destroy(request.id, cm->pair->now);
    }
    struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 8, .req = cm_req(cm, 8)};
    cm_inject(cm, 0, &req);
    assert_true(alb_engine_event(cm_engine(cm, 1), &event));
    assert_int_equal(event.type, ALB_EVENT_CM);
}

static void event__of_one_id_come_in_their_order(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    assert_int_equal(alb_cm_disconnect(cm->ids[0], NULL, cm->pair->now), 0);
    pair_settle(cm->pair);
    pair_pass(cm->pair, CM_TIMEWAIT_NS);
    for (int side = 0; side < 2; side++) {
        cm_expect_event(cm, side, ALB_CM_EVENT_DISCONNECTED);
        assert_ptr_equal(cm_expect_event(cm, side, ALB_CM_EVENT_TIMEWAIT_OVER).id, cm->ids[side]);
        cm_expect_no_event(cm, side);
    }
}

// A response that is rejected before the user has seen it is not shown any more: its numbers are void.
static void event__a_rejection_takes_an_untaken_response_with_it(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    alb_cm_id_destroy(cm->ids[1], cm->pair->now);
    cm->ids[1] = NULL;
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    assert_int_equal(cm_expect_event(cm, 0, ALB_CM_EVENT_REJECTED).message.type, ALB_CM_REJ);
    cm_expect_no_event(cm, 0);
}

static void event__ends_with_its_id(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    assert_int_equal(alb_cm_disconnect(cm->ids[0], NULL, cm->pair->now), 0);
    pair_settle(cm->pair);
    alb_cm_id_destroy(cm->ids[1], cm->pair->now);
    cm->ids[1] = NULL;
    cm_expect_no_event(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_DISCONNECTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_name__has_one_for_every_type),
        CM_TEST(raise__tells_the_driver_once),
        CM_TEST(event__of_one_id_come_in_their_order),
        CM_TEST(event__a_rejection_takes_an_untaken_response_with_it),
        CM_TEST(event__ends_with_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
