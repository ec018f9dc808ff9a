// SPDX-License-Identifier: BSD-2-Clause
// The wheel against a plain array that is searched for its minimum, and the corners by hand.
#include "base/tests/test.h"
#include "base/wheel.h"

#include <stdlib.h>

enum { TIMERS = 300 };

struct model {
    struct alb_wheel wheel;
    struct alb_timer timers[TIMERS];
    alb_time at[TIMERS]; // ALB_TIME_NEVER: unarmed
    uint64_t order[TIMERS];
    uint64_t orders;
    alb_time now;
    uint64_t random;
};

static uint64_t draw(struct model *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random;
}

// Spans of all magnitudes below the given number of bits.
static uint64_t draw_span(struct model *m, uint32_t bits_max)
{
    uint32_t bits = (uint32_t)(draw(m) % (bits_max + 1));
    return bits == 0 ? 0 : draw(m) >> (64 - bits);
}

static void model_init(struct model *m, alb_time now, uint64_t seed)
{
    alb_wheel_init(&m->wheel, now);
    m->now = now;
    m->orders = 0;
    m->random = seed;
    for (int i = 0; i < TIMERS; i++) {
        alb_timer_init(&m->timers[i]);
        m->at[i] = ALB_TIME_NEVER;
    }
}

static int model_earliest(const struct model *m)
{
    int best = -1;
    for (int i = 0; i < TIMERS; i++) {
        if (m->at[i] == ALB_TIME_NEVER)
            continue;
        if (best < 0 || m->at[i] < m->at[best] || (m->at[i] == m->at[best] && m->order[i] < m->order[best]))
            best = i;
    }
    return best;
}

static void model_arm(struct model *m, int i, alb_time at)
{
    alb_wheel_arm(&m->wheel, &m->timers[i], at);
    m->at[i] = at;
    m->order[i] = m->orders++;
    assert_int_equal(alb_timer_is_armed(&m->timers[i]), at != ALB_TIME_NEVER);
}

static void model_check_next_due(const struct model *m)
{
    int best = model_earliest(m);
    assert_int_equal(alb_wheel_next_due(&m->wheel), best < 0 ? ALB_TIME_NEVER : m->at[best]);
}

// Pops all that is due and compares each with the model.
static void model_pop(struct model *m)
{
    for (;;) {
        int best = model_earliest(m);
        struct alb_timer *timer = alb_wheel_pop_due(&m->wheel, m->now);
        if (best < 0 || m->at[best] > m->now) {
            assert_null(timer);
            return;
        }
        assert_ptr_equal(timer, &m->timers[best]);
        assert_false(alb_timer_is_armed(timer));
        m->at[best] = ALB_TIME_NEVER;
    }
}

static void random_run(alb_time start, uint64_t seed, uint32_t bits_max, int steps)
{
    struct model *m = malloc(sizeof(*m));
    assert_non_null(m);
    model_init(m, start, seed);
    for (int step = 0; step < steps; step++) {
        int i = (int)(draw(m) % TIMERS);
        switch (draw(m) % 8) {
        case 0: // shared moments, so that ties are common
            model_arm(m, i, m->now + (draw_span(m, 20) & ~(uint64_t)0x3ff));
            break;
        case 1:
        case 2:
        case 3:
            model_arm(m, i, m->now + draw_span(m, bits_max));
            break;
        case 4: // in the past
            model_arm(m, i, m->now - ALB_MIN(m->now, draw_span(m, 30)));
            break;
        case 5:
            alb_wheel_disarm(&m->wheel, &m->timers[i]);
            m->at[i] = ALB_TIME_NEVER;
            break;
        case 6:
            m->now += draw_span(m, draw(m) % 4 == 0 ? bits_max - 4 : 20);
            model_pop(m);
            break;
        case 7: // exactly to the next one, and a nanosecond short of it
            model_check_next_due(m);
            if (alb_wheel_next_due(&m->wheel) != ALB_TIME_NEVER && alb_wheel_next_due(&m->wheel) > m->now + 1) {
                m->now = alb_wheel_next_due(&m->wheel) - 1;
                assert_null(alb_wheel_pop_due(&m->wheel, m->now));
                m->now++;
                model_pop(m);
            }
            break;
        }
        model_check_next_due(m);
    }
    free(m);
}

static void alb_wheel__agrees_with_a_sorted_model(void **state)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        random_run(0, seed, 34, 10000);
        random_run(seed * 0x123456789abcdefull, seed + 100, 24, 10000);
        random_run(UINT64_MAX / 2, seed + 200, 50, 10000);
    }
}

static void alb_wheel_next_due__never_without_timers(void **state)
{
    struct alb_wheel wheel;
    struct alb_timer timer;
    alb_wheel_init(&wheel, 77);
    alb_timer_init(&timer);
    assert_int_equal(alb_wheel_next_due(&wheel), ALB_TIME_NEVER);
    assert_null(alb_wheel_pop_due(&wheel, ALB_TIME_NEVER - 1));
    alb_wheel_disarm(&wheel, &timer);
    assert_false(alb_timer_is_armed(&timer));
    alb_wheel_arm(&wheel, &timer, 1000);
    alb_wheel_arm(&wheel, &timer, ALB_TIME_NEVER);
    assert_false(alb_timer_is_armed(&timer));
    assert_int_equal(alb_wheel_next_due(&wheel), ALB_TIME_NEVER);
}

static void alb_wheel_arm__ties_keep_their_order_across_levels(void **state)
{
    static const alb_time starts[] = {0, 1, ALB_NS_PER_S, (1ull << 40) - 1};
    for (size_t s = 0; s < ALB_COUNT(starts); s++) {
        struct alb_wheel wheel;
        struct alb_timer timers[64];
        alb_time at = starts[s] + 3600 * ALB_NS_PER_S;
        alb_wheel_init(&wheel, starts[s]);
        for (size_t i = 0; i < ALB_COUNT(timers); i++) {
            alb_timer_init(&timers[i]);
            alb_wheel_arm(&wheel, &timers[i], at);
            alb_time now = at - (3600 * ALB_NS_PER_S >> i); // halfway there each time
            assert_null(alb_wheel_pop_due(&wheel, ALB_MIN(now, at - 1)));
        }
        for (size_t i = 0; i < ALB_COUNT(timers); i++)
            assert_ptr_equal(alb_wheel_pop_due(&wheel, at), &timers[i]);
        assert_null(alb_wheel_pop_due(&wheel, at));
    }
}

static void alb_wheel_arm__rearming_goes_behind_its_equals(void **state)
{
    struct alb_wheel wheel;
    struct alb_timer a, b;
    alb_wheel_init(&wheel, 0);
    alb_timer_init(&a);
    alb_timer_init(&b);
    alb_wheel_arm(&wheel, &a, 500);
    alb_wheel_arm(&wheel, &b, 500);
    alb_wheel_arm(&wheel, &a, 500);
    assert_ptr_equal(alb_wheel_pop_due(&wheel, 500), &b);
    assert_ptr_equal(alb_wheel_pop_due(&wheel, 500), &a);
}

static void alb_wheel_arm__the_past_is_due_at_once_and_in_order(void **state)
{
    struct alb_wheel wheel;
    struct alb_timer a, b, c;
    alb_wheel_init(&wheel, 0);
    alb_timer_init(&a);
    alb_timer_init(&b);
    alb_timer_init(&c);
    assert_null(alb_wheel_pop_due(&wheel, ALB_NS_PER_S));
    alb_wheel_arm(&wheel, &a, ALB_NS_PER_S);
    alb_wheel_arm(&wheel, &b, 5);
    alb_wheel_arm(&wheel, &c, 3);
    assert_int_equal(alb_wheel_next_due(&wheel), 3);
    assert_ptr_equal(alb_wheel_pop_due(&wheel, ALB_NS_PER_S), &c);
    assert_ptr_equal(alb_wheel_pop_due(&wheel, ALB_NS_PER_S), &b);
    assert_ptr_equal(alb_wheel_pop_due(&wheel, ALB_NS_PER_S), &a);
    assert_null(alb_wheel_pop_due(&wheel, ALB_NS_PER_S));
}

static void alb_wheel_arm__to_the_end_of_time(void **state)
{
    struct alb_wheel wheel;
    struct alb_timer far, near;
    alb_wheel_init(&wheel, 0);
    alb_timer_init(&far);
    alb_timer_init(&near);
    alb_wheel_arm(&wheel, &far, ALB_TIME_NEVER - 1);
    alb_wheel_arm(&wheel, &near, 1);
    assert_int_equal(alb_wheel_next_due(&wheel), 1);
    assert_ptr_equal(alb_wheel_pop_due(&wheel, ALB_TIME_NEVER - 2), &near);
    assert_null(alb_wheel_pop_due(&wheel, ALB_TIME_NEVER - 2));
    assert_int_equal(alb_wheel_next_due(&wheel), ALB_TIME_NEVER - 1);
    assert_ptr_equal(alb_wheel_pop_due(&wheel, ALB_TIME_NEVER - 1), &far);
}

static void alb_wheel_pop_due__time_that_stands_or_goes_back(void **state)
{
    struct alb_wheel wheel;
    struct alb_timer timer;
    alb_wheel_init(&wheel, 10000);
    alb_timer_init(&timer);
    alb_wheel_arm(&wheel, &timer, 20000);
    assert_null(alb_wheel_pop_due(&wheel, 15000));
    assert_null(alb_wheel_pop_due(&wheel, 12000));
    assert_null(alb_wheel_pop_due(&wheel, 19999));
    assert_ptr_equal(alb_wheel_pop_due(&wheel, 20000), &timer);
}

static void alb_wheel__is_small(void **state)
{
    assert_true(sizeof(struct alb_wheel) <= 3072);
    assert_true(sizeof(struct alb_timer) <= 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_wheel__agrees_with_a_sorted_model),
        cmocka_unit_test(alb_wheel_next_due__never_without_timers),
        cmocka_unit_test(alb_wheel_arm__ties_keep_their_order_across_levels),
        cmocka_unit_test(alb_wheel_arm__rearming_goes_behind_its_equals),
        cmocka_unit_test(alb_wheel_arm__the_past_is_due_at_once_and_in_order),
        cmocka_unit_test(alb_wheel_arm__to_the_end_of_time),
        cmocka_unit_test(alb_wheel_pop_due__time_that_stands_or_goes_back),
        cmocka_unit_test(alb_wheel__is_small),
    };
    return cmocka_run_group_tests_name("wheel", tests, NULL, NULL);
}
