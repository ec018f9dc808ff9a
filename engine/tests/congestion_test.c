// SPDX-License-Identifier: BSD-2-Clause
#include "engine/engine.h"
#include "engine/policy.h"

#include "base/tests/test.h"

static const struct alb_engine_config config = {
    .window_start_bytes = 64000,
    .window_min_bytes = 16000,
    .window_max_bytes = 1000000,
};

static void fixed_and_none__do_not_move(void **state)
{
    const struct alb_congestion_ops *const all[] = {&alb_congestion_fixed, &alb_congestion_none};
    const uint32_t windows[] = {1000000, UINT32_MAX};
    for (size_t i = 0; i < 2; i++) {
        struct alb_congestion c;
        struct alb_ack ack = {.bytes = 1 << 20, .limited = true};
        all[i]->init(&c, &config);
        assert_int_equal(c.window_bytes, windows[i]);
        alb_congestion_on_sent(all[i], &c, 1 << 20, 0);
        alb_congestion_on_ack(all[i], &c, &ack, 1);
        alb_congestion_on_loss(all[i], &c, 1 << 20, 1 << 20, ALB_LOSS_TIMEOUT, 2);
        alb_congestion_on_mark(all[i], &c, 1 << 20, 3);
        assert_int_equal(c.window_bytes, windows[i]);
        assert_int_equal(alb_congestion_send_at(all[i], &c, 4), 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_and_none__do_not_move),
    };
    return cmocka_run_group_tests_name("congestion", tests, NULL, NULL);
}
