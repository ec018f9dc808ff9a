// SPDX-License-Identifier: BSD-2-Clause
// Whose turn it is, by itself; then senders of one message each that keep to their grants, in virtual time.
#include "engine/credit.h"
#include "engine/engine.h"

#include "base/tests/test.h"

enum {
    KB = 1024,
    SENDERS = ALB_CREDIT_PLACES,
    SHORT_BYTES = 100 * KB,
    LONG_BYTES = 1000 * KB,
    RTT_NS = 20000,
};

static const struct alb_engine_config config = {
    .grant_min_bytes = 4 * KB,
    .credit_interval_ns = ALB_NS_PER_MS,
    .window_start_bytes = SHORT_BYTES,
};

static struct alb_credit_pool pool;
static struct alb_credit_in senders[SENDERS];
static struct alb_credit_message messages[SENDERS];

static int setup_with(const struct alb_credit_ops *ops, uint32_t budget_bytes)
{
    struct alb_engine_config own = config;
    own.receive_budget_bytes = budget_bytes;
    alb_credit_pool_init(&pool, ops, &own);
    for (size_t i = 0; i < SENDERS; i++)
        alb_credit_in_init(&senders[i]);
    memset(messages, 0, sizeof(messages));
    return 0;
}

static int setup(void **state)
{
    return setup_with(&alb_credit_shortest, 0);
}

// A packet of a message of which so much is still to come.
static void heard(uint32_t i, uint64_t rest_bytes, alb_time now)
{
    alb_credit_on_packet(&pool, &senders[i], 4096, RTT_NS, now);
    alb_credit_on_rest(&pool, &senders[i], &messages[i], rest_bytes, RTT_NS, now);
}

static uint32_t grant(uint32_t i, alb_time now)
{
    return alb_credit_grant(&pool, &senders[i], now);
}

// The senders that may send, as bits.
static uint32_t turns(alb_time now)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < SENDERS; i++)
        bits |= (uint32_t)(grant(i, now) == ALB_CSA_CREDIT_NONE) << i;
    return bits;
}

static void alb_credit_waits__no_more_go_than_may(void **state)
{
    for (uint32_t i = 0; i < SENDERS; i++)
        heard(i, LONG_BYTES, 0);
    assert_int_equal(turns(0), (1 << ALB_CREDIT_FIRST_MAX) - 1);
    assert_int_equal(grant(SENDERS - 1, 0), ALB_CREDIT_WAITING_BYTES);
}

static void alb_credit_waits__who_has_least_left_goes(void **state)
{
    for (uint32_t i = 0; i < SENDERS; i++)
        heard(i, (SENDERS - i) * (uint64_t)LONG_BYTES, 0);
    assert_int_equal(turns(0), 7 << (SENDERS - 3));
    heard(0, LONG_BYTES / 2, 0); // a new message
    assert_int_equal(turns(0), 3 << (SENDERS - 2) | 1);
    heard(1, LONG_BYTES * 2 + 1, 0); // a little more than the largest that sends now
    assert_int_equal(turns(0), 3 << (SENDERS - 2) | 1);
    heard(1, LONG_BYTES * 2 - 1, 0);
    assert_int_equal(turns(0), 1 << (SENDERS - 1) | 3);
}

// All places are taken by others.
static void alb_credit_waits__who_has_no_place_waits(void **state)
{
    struct alb_credit_in late;
    struct alb_credit_message message = {0};
    alb_credit_in_init(&late);
    for (uint32_t i = 0; i < SENDERS; i++)
        heard(i, LONG_BYTES, 0);
    alb_credit_on_rest(&pool, &late, &message, LONG_BYTES, RTT_NS, 0);
    assert_int_equal(alb_credit_grant(&pool, &late, 0), ALB_CREDIT_WAITING_BYTES);
    alb_credit_on_rest(&pool, &late, &message, LONG_BYTES - 1, RTT_NS, 0);
    assert_int_equal(alb_credit_grant(&pool, &late, 0), ALB_CSA_CREDIT_NONE);
    assert_int_equal(turns(0), 2 | 4); // of those that are alike the first has lost its place
}

// What has waited for a tick counts for so much less.
static void alb_credit_waits__who_has_waited_goes_before_who_has_little_less(void **state)
{
    const uint32_t gained = 100 * KB;
    struct alb_engine_config own = config;
    own.credit_aging_bytes_per_s = gained * (uint64_t)ALB_NS_PER_S / RTT_NS;
    alb_credit_pool_init(&pool, &alb_credit_shortest, &own);
    for (uint32_t i = 0; i < 4; i++)
        heard(i, LONG_BYTES, 0);
    for (uint32_t i = 1; i < 4; i++)
        heard(i, LONG_BYTES, RTT_NS);
    assert_int_equal(turns(RTT_NS), 0xf7);     // those from 4 on have said nothing yet
    heard(4, LONG_BYTES - gained / 2, RTT_NS); // less, but not by what the others have gained
    assert_int_equal(turns(RTT_NS), 0xe7);
    heard(5, LONG_BYTES - 2 * gained, RTT_NS);
    assert_int_equal(turns(RTT_NS), 0xe3);
    heard(0, SHORT_BYTES, RTT_NS);
    heard(0, LONG_BYTES - gained / 2, RTT_NS); // a new message, which has gained nothing
    assert_int_equal(turns(RTT_NS), 0xe6);
}

// A byte in a millisecond, at the least rate that can be given.
static void alb_credit_waits__who_is_hardly_aging_has_waited_too(void **state)
{
    const alb_time minute = 60 * ALB_NS_PER_S;
    struct alb_engine_config own = config;
    own.credit_aging_bytes_per_s = 1000;
    alb_credit_pool_init(&pool, &alb_credit_shortest, &own);
    for (uint32_t i = 0; i < 4; i++)
        heard(i, LONG_BYTES, 0);
    for (uint32_t i = 1; i < 4; i++)
        heard(i, LONG_BYTES, minute);
    heard(4, LONG_BYTES - 50000, minute); // the others have gained 60,000
    assert_int_equal(turns(minute) & 0x1f, 2 | 4 | 8);
}

// A short message of another queue pair comes in between.
static void alb_credit_waits__a_short_one_between_does_not_make_it_young(void **state)
{
    const uint32_t gained = 100 * KB;
    struct alb_engine_config own = config;
    struct alb_credit_message other = {0};
    own.credit_aging_bytes_per_s = gained * (uint64_t)ALB_NS_PER_S / RTT_NS;
    alb_credit_pool_init(&pool, &alb_credit_shortest, &own);
    heard(0, LONG_BYTES, 0);
    for (uint32_t i = 1; i < 4; i++)
        heard(i, LONG_BYTES - gained / 2, RTT_NS);
    alb_credit_on_rest(&pool, &senders[0], &other, SHORT_BYTES, RTT_NS, RTT_NS);
    heard(0, LONG_BYTES, RTT_NS);
    assert_int_equal(turns(RTT_NS) & 0xf, 1 | 2 | 4);
}

static void alb_credit_waits__what_is_short_needs_no_turn(void **state)
{
    for (uint32_t i = 0; i < SENDERS; i++)
        heard(i, i < 5 ? SHORT_BYTES : LONG_BYTES, 0);
    assert_int_equal(turns(0), 0xff);
    heard(0, LONG_BYTES, 0);
    assert_int_equal(turns(0), 0xfe);
    heard(7, SHORT_BYTES, 0); // its place is free
    heard(0, LONG_BYTES, 0);
    assert_int_equal(turns(0), 0xff);
}

static void alb_credit_waits__who_is_not_heard_loses_its_turn(void **state)
{
    for (uint32_t i = 0; i < SENDERS; i++)
        heard(i, LONG_BYTES + i, 0);
    for (alb_time now = 0; now < 10 * RTT_NS; now += RTT_NS)
        for (uint32_t i = 1; i < SENDERS; i++)
            heard(i, LONG_BYTES + i, now);
    assert_int_equal(turns(10 * RTT_NS), 0xe);
    heard(0, LONG_BYTES, 10 * RTT_NS); // it is still the next
    assert_int_equal(turns(10 * RTT_NS), 7);
}

static void alb_credit_waits__who_has_ended_loses_its_turn(void **state)
{
    for (uint32_t i = 0; i < SENDERS; i++)
        heard(i, LONG_BYTES, 0);
    alb_credit_in_fini(&pool, &senders[1]);
    alb_credit_in_init(&senders[1]);
    assert_int_equal(turns(0), 1 | 2 | 4 | 8); // 1 has said nothing since
}

static void alb_credit_waits__elsewhere_nobody_does(void **state)
{
    setup_with(&alb_credit_end_to_end, 0);
    for (uint32_t i = 0; i < SENDERS; i++)
        heard(i, LONG_BYTES, 0);
    assert_int_equal(turns(0), 0xff);
}

static void alb_credit_waits__whatever_is_said_of_the_rest(void **state)
{
    heard(0, UINT64_MAX, 0);
    heard(1, 0, 0);
    assert_int_equal(grant(0, 0), ALB_CSA_CREDIT_NONE);
    assert_int_equal(grant(1, 0), ALB_CSA_CREDIT_NONE);
    for (uint32_t i = 0; i < SENDERS; i++)
        heard(i, UINT64_MAX, 0);
    assert_int_equal(grant(7, 0), ALB_CREDIT_WAITING_BYTES);
}

// Waiting senders count as what they use, and the others share the rest.
static void alb_credit_grant__shares_of_a_budget_go_to_those_whose_turn_it_is(void **state)
{
    const uint32_t budget_bytes = 1000 * KB;
    setup_with(&alb_credit_shortest, budget_bytes);
    for (alb_time now = 0; now < 20 * ALB_NS_PER_MS; now += RTT_NS)
        for (uint32_t i = 0; i < SENDERS; i++) {
            alb_credit_on_packet(&pool, &senders[i], grant(i, now), RTT_NS, now);
            alb_credit_on_rest(&pool, &senders[i], &messages[i], LONG_BYTES + i, RTT_NS, now);
        }
    for (uint32_t i = 0; i < SENDERS; i++)
        if (i < 3)
            assert_in_range(grant(i, 20 * ALB_NS_PER_MS), budget_bytes / 5, budget_bytes / 3);
        else
            assert_int_equal(grant(i, 20 * ALB_NS_PER_MS), ALB_CREDIT_WAITING_BYTES);
}

// By half as much as the next one: none of them leaves its turn, but the first has most of the link.
static void alb_credit_share__who_is_before_others_answers_marks_less(void **state)
{
    for (uint32_t i = 0; i < SENDERS; i++)
        heard(i, LONG_BYTES + i, 0);
    static const uint32_t parts[SENDERS] = {16, 8, 4, 2, 2, 2, 2, 2};
    for (uint32_t i = 0; i < SENDERS; i++)
        assert_int_equal(alb_credit_share(&pool, &senders[i], 0), ALB_CSA_SHARE_EVEN / parts[i]);
    heard(SENDERS - 1, SHORT_BYTES, 0); // needs no turn
    assert_int_equal(alb_credit_share(&pool, &senders[SENDERS - 1], 0), ALB_CSA_SHARE_EVEN / 16);
}

// What each of them sends in this round trip: what it was granted, and at most what it may at first.
static uint64_t sends(uint32_t granted, uint64_t rest)
{
    uint64_t bytes = ALB_MIN(granted, (uint32_t)SHORT_BYTES);
    return ALB_MIN(bytes, rest);
}

// Eight messages at once: each round trip a link's worth comes, by the grants of the round before. The first one ends
// early, and the last not much later than if all had shared: a few alone do not fill the link.
static void alb_credit__messages_end_one_after_the_other(void **state)
{
    const uint32_t link_bytes = 4 * SHORT_BYTES, evenly = SENDERS * LONG_BYTES / link_bytes;
    uint32_t round = 0, first = 0, left = SENDERS, granted[SENDERS];
    uint64_t rest[SENDERS];
    for (uint32_t i = 0; i < SENDERS; i++) {
        granted[i] = SHORT_BYTES;
        rest[i] = LONG_BYTES;
    }
    while (left > 0 && round++ < 2 * evenly) {
        uint64_t wanted = 0;
        for (uint32_t i = 0; i < SENDERS; i++)
            wanted += sends(granted[i], rest[i]);
        wanted = ALB_MAX(wanted, (uint64_t)link_bytes);
        for (uint32_t i = 0; i < SENDERS; i++) {
            if (rest[i] == 0)
                continue;
            rest[i] -= (sends(granted[i], rest[i]) * link_bytes + wanted - 1) / wanted;
            heard(i, rest[i], round * (alb_time)RTT_NS);
            left -= rest[i] == 0;
            first = first == 0 && rest[i] == 0 ? round : first;
        }
        for (uint32_t i = 0; i < SENDERS; i++)
            granted[i] = grant(i, round * (alb_time)RTT_NS);
    }
    assert_int_equal(left, 0);
    assert_in_range(first, 1, evenly * 2 / 3);
    assert_in_range(round, 1, evenly + evenly / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(alb_credit_waits__no_more_go_than_may, setup),
        cmocka_unit_test_setup(alb_credit_waits__who_has_least_left_goes, setup),
        cmocka_unit_test_setup(alb_credit_waits__who_has_no_place_waits, setup),
        cmocka_unit_test_setup(alb_credit_waits__who_has_waited_goes_before_who_has_little_less, setup),
        cmocka_unit_test_setup(alb_credit_waits__who_is_hardly_aging_has_waited_too, setup),
        cmocka_unit_test_setup(alb_credit_waits__a_short_one_between_does_not_make_it_young, setup),
        cmocka_unit_test_setup(alb_credit_waits__what_is_short_needs_no_turn, setup),
        cmocka_unit_test_setup(alb_credit_waits__who_is_not_heard_loses_its_turn, setup),
        cmocka_unit_test_setup(alb_credit_waits__who_has_ended_loses_its_turn, setup),
        cmocka_unit_test_setup(alb_credit_waits__elsewhere_nobody_does, setup),
        cmocka_unit_test_setup(alb_credit_waits__whatever_is_said_of_the_rest, setup),
        cmocka_unit_test_setup(alb_credit_grant__shares_of_a_budget_go_to_those_whose_turn_it_is, setup),
        cmocka_unit_test_setup(alb_credit_share__who_is_before_others_answers_marks_less, setup),
        cmocka_unit_test_setup(alb_credit__messages_end_one_after_the_other, setup),
    };
    return cmocka_run_group_tests_name("credit_shortest", tests, NULL, NULL);
}
