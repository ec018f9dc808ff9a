// SPDX-License-Identifier: BSD-2-Clause
#include "wire/icrc.h"

#include "base/tests/test.h"

static bool admits(struct alb_icrc_peer *peer, uint32_t identification)
{
    return alb_icrc_peer_admits(peer, (uint16_t)identification, 0);
}

static bool would_admit(const struct alb_icrc_peer *peer, uint32_t identification, alb_time now)
{
    struct alb_icrc_peer copy = *peer;
    return alb_icrc_peer_admits(&copy, (uint16_t)identification, now);
}

static void icrc_peer__is_small(void **state)
{
    assert_in_range(sizeof(struct alb_icrc_peer), 1, 16);
}

static void icrc_peer__numbering_by_place_is_held_to_places(void **state)
{
    struct alb_icrc_peer peer = {0};
    for (unsigned burst = 1; burst < 40; burst++)
        for (unsigned place = 0; place < burst % 7 * 20 + 1; place++)
            assert_true(admits(&peer, place)); // from the first packet on
    assert_true(would_admit(&peer, 127, 0));
    assert_false(would_admit(&peer, 128, 0));
    assert_false(would_admit(&peer, 128, 60 * ALB_NS_PER_S)); // a pause changes nothing
    assert_false(would_admit(&peer, 65535, 0));
}

static void icrc_peer_expects__the_place_or_the_next_count(void **state)
{
    struct alb_icrc_peer peer = {0};
    assert_int_equal(alb_icrc_peer_expects(&peer, 0), 0);
    assert_true(admits(&peer, 0));
    assert_true(admits(&peer, 1));
    assert_int_equal(alb_icrc_peer_expects(&peer, 0), 0);
    assert_int_equal(alb_icrc_peer_expects(&peer, 7), 7);
    struct alb_icrc_peer counts = {0};
    assert_true(admits(&counts, 0xfffe));
    assert_int_equal(alb_icrc_peer_expects(&counts, 7), 0xffff);
    assert_true(admits(&counts, 0xffff));
    assert_int_equal(alb_icrc_peer_expects(&counts, 7), 0);
}

static void icrc_peer__first_packet_may_come_from_the_middle_of_a_burst(void **state)
{
    struct alb_icrc_peer peer = {0};
    assert_true(admits(&peer, 90));
    assert_true(admits(&peer, 0));
    assert_true(admits(&peer, 127));
    assert_true(admits(&peer, 1));
}

static void icrc_peer__counting_is_followed_through_the_wrap_losses_and_reordering(void **state)
{
    struct alb_icrc_peer peer = {0};
    for (uint32_t count = 60000; count < 200000; count += 1 + count % 50) {
        assert_true(admits(&peer, count));
        assert_true(admits(&peer, count - 30));
    }
    assert_true(admits(&peer, 40000 + 0) == false);
}

static void icrc_peer__counting_is_held_to_a_window_that_a_pause_widens(void **state)
{
    struct alb_icrc_peer peer = {0};
    assert_true(admits(&peer, 30000));
    assert_true(would_admit(&peer, 30256, 0));
    assert_false(would_admit(&peer, 30257, 0));
    assert_true(would_admit(&peer, 29936, 0));
    assert_false(would_admit(&peer, 29935, 0));
    assert_true(would_admit(&peer, 31256, 1000 * ALB_NS_PER_MS));
    assert_false(would_admit(&peer, 31257, 1000 * ALB_NS_PER_MS));
    assert_true(would_admit(&peer, 29000, 120 * ALB_NS_PER_S)); // after two minutes it may be anywhere
}

static void icrc_peer__counter_that_starts_low_leaves_the_low_range_unhindered(void **state)
{
    struct alb_icrc_peer peer = {0};
    for (uint32_t count = 3; count < 1000; count++)
        assert_true(admits(&peer, count));
}

static void icrc_peer__third_packet_of_a_new_range_is_followed(void **state)
{
    struct alb_icrc_peer peer = {0};
    for (uint32_t count = 100; count < 110; count++)
        assert_true(admits(&peer, count));
    assert_false(admits(&peer, 20000));
    assert_false(admits(&peer, 20001));
    assert_true(admits(&peer, 20002));
    assert_true(admits(&peer, 20003));
    assert_false(would_admit(&peer, 110, 0));

    // Strays that agree with nothing do not move it.
    for (uint32_t n = 0; n < 3; n++) {
        assert_false(would_admit(&peer, 40000 + n * 5000, 0));
        assert_true(admits(&peer, 20004 + n));
    }
}

static void icrc_peer__by_place_can_turn_to_counting(void **state)
{
    struct alb_icrc_peer peer = {0};
    for (unsigned n = 0; n < 20; n++)
        assert_true(admits(&peer, 0));
    assert_false(admits(&peer, 5000));
    assert_false(admits(&peer, 5001));
    assert_true(admits(&peer, 5002));
    assert_true(admits(&peer, 5003));
}

// One counter per connection, or random ones: some packets are lost until that is understood, and then none.
static void icrc_peer__without_a_habit_is_given_up_on(void **state)
{
    struct alb_icrc_peer peer = {0};
    unsigned refused = 0;
    for (uint32_t n = 0; n < 10000; n++)
        refused += !admits(&peer, n * 40503);
    assert_in_range(refused, 1, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(icrc_peer__is_small),
        cmocka_unit_test(icrc_peer__numbering_by_place_is_held_to_places),
        cmocka_unit_test(icrc_peer_expects__the_place_or_the_next_count),
        cmocka_unit_test(icrc_peer__first_packet_may_come_from_the_middle_of_a_burst),
        cmocka_unit_test(icrc_peer__counting_is_followed_through_the_wrap_losses_and_reordering),
        cmocka_unit_test(icrc_peer__counting_is_held_to_a_window_that_a_pause_widens),
        cmocka_unit_test(icrc_peer__counter_that_starts_low_leaves_the_low_range_unhindered),
        cmocka_unit_test(icrc_peer__third_packet_of_a_new_range_is_followed),
        cmocka_unit_test(icrc_peer__by_place_can_turn_to_counting),
        cmocka_unit_test(icrc_peer__without_a_habit_is_given_up_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
