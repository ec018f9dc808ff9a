// SPDX-License-Identifier: BSD-2-Clause
#include "engine/policy.h"

#include "base/tests/test.h"

static const struct alb_loss_ops *const ops = &alb_loss_go_back_n;

static void on_segment__reports_a_gap_once(void **state)
{
    struct alb_loss_receiver receiver = {0};
    assert_int_equal(ops->on_segment(&receiver, 0), ALB_LOSS_ACCEPT);
    assert_int_equal(ops->on_segment(&receiver, 1), ALB_LOSS_REPORT);
    assert_int_equal(ops->on_segment(&receiver, 2), ALB_LOSS_DROP);
    assert_int_equal(ops->on_segment(&receiver, -3), ALB_LOSS_DUPLICATE);
    assert_int_equal(ops->on_segment(&receiver, 1), ALB_LOSS_DROP);
    assert_int_equal(ops->on_segment(&receiver, 0), ALB_LOSS_ACCEPT);
    assert_int_equal(ops->on_segment(&receiver, 5), ALB_LOSS_REPORT); // the next gap is another one
}

static void on_loss__goes_back_to_the_oldest(void **state)
{
    struct alb_loss_sender sender = {0};
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_NAK), 0);
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_NAK), 0);
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_TIMEOUT), 0);
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_RNR), 0);
}

static void on_loss__acts_on_a_gap_once_until_progress(void **state)
{
    struct alb_loss_sender sender = {0};
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_GAP), 0);
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_GAP), -1);
    ops->on_progress(&sender);
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_GAP), 0);
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_TIMEOUT), 0);
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_GAP), 0); // what the timeout sent again was lost too
    ops->on_progress(&sender);
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_NAK), 0);
    assert_int_equal(ops->on_loss(&sender, ALB_LOSS_GAP), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_segment__reports_a_gap_once),
        cmocka_unit_test(on_loss__goes_back_to_the_oldest),
        cmocka_unit_test(on_loss__acts_on_a_gap_once_until_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
