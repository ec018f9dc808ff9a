// SPDX-License-Identifier: BSD-2-Clause
#include "engine/engine.h"
#include "engine/policy.h"

#include "base/tests/test.h"

static const struct alb_engine_config config = {
    .window_start_bytes = 64000,
    .window_min_bytes = 16000,
    .window_max_bytes = 1000000,
};

static struct alb_congestion start(const struct alb_congestion_ops *ops)
{
    struct alb_congestion congestion;
    ops->init(&congestion, &config);
    return congestion;
}

static void ack(struct alb_congestion *congestion, uint32_t bytes, bool limited)
{
    struct alb_ack ack = {.bytes = bytes, .limited = limited};
    alb_congestion_aimd.on_ack(congestion, &ack, 0);
}

static void aimd__doubles_a_round_until_the_bound(void **state)
{
    const struct alb_congestion_ops *ops = &alb_congestion_aimd;
    struct alb_congestion c = start(ops);
    assert_int_equal(c.window_bytes, 64000);
    for (int i = 0; i < 64; i++)
        ack(&c, 1000, true);
    assert_int_equal(c.window_bytes, 128000);
    ack(&c, 4000000, true);
    assert_int_equal(c.window_bytes, 1000000);
}

static void aimd__does_not_grow_unless_it_is_what_limits(void **state)
{
    const struct alb_congestion_ops *ops = &alb_congestion_aimd;
    struct alb_congestion c = start(ops);
    ack(&c, 64000, false);
    assert_int_equal(c.window_bytes, 64000);
}

static void aimd__halves_once_a_round(void **state)
{
    const struct alb_congestion_ops *ops = &alb_congestion_aimd;
    struct alb_congestion c = start(ops);
    ops->on_loss(&c, 60000, 60000, ALB_LOSS_NAK, 0);
    assert_int_equal(c.window_bytes, 32000);
    ops->on_loss(&c, 60000, 60000, ALB_LOSS_GAP, 0);
    ops->on_mark(&c, 60000, 0);
    assert_int_equal(c.window_bytes, 32000);
    ack(&c, 59999, false);
    ops->on_mark(&c, 30000, 0);
    assert_int_equal(c.window_bytes, 32000);
    ack(&c, 1, false);
    ops->on_mark(&c, 30000, 0);
    assert_int_equal(c.window_bytes, 16000);
    ack(&c, 30000, false);
    ops->on_loss(&c, 16000, 16000, ALB_LOSS_GAP, 0);
    assert_int_equal(c.window_bytes, 16000);
}

static void aimd__grows_by_a_segment_a_round_after_a_loss(void **state)
{
    const struct alb_congestion_ops *ops = &alb_congestion_aimd;
    struct alb_congestion c = start(ops);
    ops->on_loss(&c, 64000, 64000, ALB_LOSS_NAK, 0);
    for (int i = 0; i < 31; i++)
        ack(&c, 1000, true);
    assert_int_equal(c.window_bytes, 32000);
    ack(&c, 1000, true);
    assert_int_equal(c.window_bytes, 32000 + 4096);
    ack(&c, 32000 + 4096, true);
    assert_int_equal(c.window_bytes, 32000 + 2 * 4096);
}

static void aimd__timeout_begins_at_the_bottom(void **state)
{
    const struct alb_congestion_ops *ops = &alb_congestion_aimd;
    struct alb_congestion c = start(ops);
    ops->on_loss(&c, 64000, 64000, ALB_LOSS_TIMEOUT, 0);
    assert_int_equal(c.window_bytes, 16000);
    ack(&c, 16000, true); // doubles up to half of what it was
    assert_int_equal(c.window_bytes, 32000);
    ack(&c, 31999, true);
    assert_int_equal(c.window_bytes, 32000);
    ack(&c, 1, true);
    assert_int_equal(c.window_bytes, 32000 + 4096);
}

static void aimd__a_slow_program_is_no_congestion(void **state)
{
    const struct alb_congestion_ops *ops = &alb_congestion_aimd;
    struct alb_congestion c = start(ops);
    ops->on_loss(&c, 64000, 64000, ALB_LOSS_RNR, 0);
    assert_int_equal(c.window_bytes, 64000);
    assert_int_equal(c.aimd.hold_bytes, 0);
}

static void aimd__stays_within_its_bounds_whatever_comes(void **state)
{
    const struct alb_congestion_ops *ops = &alb_congestion_aimd;
    struct alb_congestion c = start(ops);
    uint32_t random = 1;
    for (int i = 0; i < 100000; i++) {
        random = random * 1664525 + 1013904223;
        uint32_t bytes = random >> (random >> 27);
        switch (random >> 16 & 7) {
        case 0:
            ops->on_loss(&c, bytes, bytes, random & 3, 0);
            break;
        case 1:
            ops->on_mark(&c, bytes, 0);
            break;
        default:
            ack(&c, bytes, random & 1);
        }
        assert_in_range(c.window_bytes, config.window_min_bytes, config.window_max_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aimd__doubles_a_round_until_the_bound),
        cmocka_unit_test(aimd__does_not_grow_unless_it_is_what_limits),
        cmocka_unit_test(aimd__halves_once_a_round),
        cmocka_unit_test(aimd__grows_by_a_segment_a_round_after_a_loss),
        cmocka_unit_test(aimd__timeout_begins_at_the_bottom),
        cmocka_unit_test(aimd__a_slow_program_is_no_congestion),
        cmocka_unit_test(aimd__stays_within_its_bounds_whatever_comes),
    };
    return cmocka_run_group_tests_name("congestion_aimd", tests, NULL, NULL);
}
