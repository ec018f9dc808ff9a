// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/cm_pair.h"

static void state_name__has_one_for_every_state(void **state)
{
    assert_string_equal(alb_cm_state_name(ALB_CM_IDLE), "idle");
    assert_string_equal(alb_cm_state_name(ALB_CM_SIDR_ANSWERED), "sidr_answered");
    assert_string_equal(alb_cm_state_name(ALB_CM_STATES), "invalid");
}

static void moves__every_state_is_reached_and_ends_idle(void **state)
{
    for (enum alb_cm_state at = ALB_CM_IDLE; at < ALB_CM_STATES; at++) {
        bool is_reached = false, leads_on = false;
        for (enum alb_cm_state other = ALB_CM_IDLE; other < ALB_CM_STATES; other++) {
            is_reached |= alb_cm_state_can_move(other, at);
            leads_on |= alb_cm_state_can_move(at, other);
        }
        assert_true(is_reached && leads_on);
        assert_false(alb_cm_state_can_move(at, at));
    }
}

static void moves__nothing_is_skipped(void **state)
{
    assert_false(alb_cm_state_can_move(ALB_CM_REQ_SENT, ALB_CM_ESTABLISHED));
    assert_false(alb_cm_state_can_move(ALB_CM_REQ_RECEIVED, ALB_CM_ESTABLISHED));
    assert_false(alb_cm_state_can_move(ALB_CM_ESTABLISHED, ALB_CM_IDLE));
    assert_false(alb_cm_state_can_move(ALB_CM_TIMEWAIT, ALB_CM_ESTABLISHED));
    assert_false(alb_cm_state_can_move(ALB_CM_LISTENING, ALB_CM_REQ_RECEIVED));
}

static void set_state__idle_forgets_the_peer(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    assert_int_equal(alb_map_count(&cm_engine(cm, 0)->cm->peers), 2);
    alb_cm_set_state(cm->ids[0], ALB_CM_TIMEWAIT);
    alb_cm_set_state(cm->ids[0], ALB_CM_IDLE);
    assert_int_equal(alb_map_count(&cm_engine(cm, 0)->cm->peers), 0);
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 0)), 1); // it is the user's still
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_name__has_one_for_every_state),
        cmocka_unit_test(moves__every_state_is_reached_and_ends_idle),
        cmocka_unit_test(moves__nothing_is_skipped),
        CM_TEST(set_state__idle_forgets_the_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
