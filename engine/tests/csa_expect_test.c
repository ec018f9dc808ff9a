// SPDX-License-Identifier: BSD-2-Clause
// Announcements: which are allowed, what counts toward them, how often is asked, and which of a group holds the others
// back. What comes of it is seen in virtual time (sim/tests/csa_expect_test.c).
#include "engine/tests/pair.h"

#include "base/tests/test.h"

enum {
    MEMBERS = 4,
};

static struct pair *pair;
static struct alb_qp *members[MEMBERS][2];

static void transport_csa(struct alb_engine_config *config)
{
    assert_int_equal(alb_engine_config_transport(config, "csa"), 0);
    config->txn_staging_bytes = 256 << 10;
    config->path = "single";
    config->congestion = "fixed";
}

static void transport_csa_gbn(struct alb_engine_config *config)
{
    transport_csa(config);
    config->loss = "go-back-n";
}

static size_t pool_used(int side)
{
    return alb_buddy_used(&pair->hosts[side].engine->csa->pool);
}

static int set_up(void **state)
{
    pair = pair_new(transport_csa);
    for (uint32_t i = 0; i < MEMBERS; i++)
        pair_connect(pair, ALB_QPT_RC, members[i], NULL);
    return 0;
}

static int tear_down(void **state)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        for (int side = 0; side < 2; side++)
            assert_int_equal(alb_qp_destroy(members[i][side]), 0);
    assert_int_equal(pool_used(0), 0); // whatever was announced
    assert_int_equal(pool_used(1), 0);
    pair_free(pair);
    return 0;
}

static int expect(uint32_t member, struct alb_expectation expectation)
{
    return alb_qp_expect(members[member][1], &expectation, pair->now);
}

static void write_to(uint32_t member, uint32_t length)
{
    struct alb_wc wc;
    assert_int_equal(pair_ask(pair, members[member][0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, length), 0);
    pair_settle(pair);
    assert_true(pair_poll(pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
}

static bool is_expected(uint32_t member)
{
    const struct alb_expect *announced = alb_csa_of(members[member][1])->expect;
    return announced && (announced->bytes_left > 0 || announced->messages_left > 0);
}

static bool presses(uint32_t member)
{
    return alb_expect_is_pressing(alb_csa_of(members[member][1]));
}

// ---- what is allowed ------------------------------------------------------------------------------------------------

static int expect_of(void (*change)(struct alb_engine_config *), enum alb_qp_type type)
{
    struct pair *other = pair_new(change);
    struct alb_qp *qps[2];
    pair_connect(other, type, qps, NULL);
    int error = alb_qp_expect(qps[1], &(struct alb_expectation){.bytes = 1}, other->now);
    pair_free(other);
    return error;
}

static void expect__only_where_what_is_missing_can_be_asked_for(void **state)
{
    assert_int_equal(expect_of(transport_csa, ALB_QPT_RC), 0);
    assert_int_equal(expect_of(transport_csa, ALB_QPT_UC), EOPNOTSUPP);
    assert_int_equal(expect_of(transport_csa, ALB_QPT_UD), EOPNOTSUPP);
    assert_int_equal(expect_of(transport_csa_gbn, ALB_QPT_RC), EOPNOTSUPP);
    assert_int_equal(expect_of(NULL, ALB_QPT_RC), EOPNOTSUPP);
}

static void expect__needs_a_connection_and_a_step_within_its_steps(void **state)
{
    struct alb_qp *fresh = pair_qp(pair, 1, ALB_QPT_RC);
    assert_int_equal(alb_qp_expect(fresh, &(struct alb_expectation){.bytes = 1}, pair->now), EINVAL);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 1, .group = 7}), EINVAL);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 1, .group = 7, .step = 3, .steps = 3}), EINVAL);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 1, .steps = 3}), EINVAL);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 1ull << 63}), EINVAL);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 1, .group = 7, .step = 2, .steps = 3}), 0);
}

static void expect__pool_empty__nothing_is_expected(void **state)
{
    struct alb_buddy *pool = &pair->hosts[1].engine->csa->pool;
    void *blocks[64];
    size_t sizes[64];
    uint32_t count = 1;
    blocks[0] = alb_buddy_get(pool, ALB_BUDDY_BLOCK_BYTES_MIN); // the rest is taken in blocks of every size
    sizes[0] = ALB_BUDDY_BLOCK_BYTES_MIN;
    for (size_t bytes = pair->hosts[1].engine->config.csa_pool_bytes; bytes >= ALB_BUDDY_BLOCK_BYTES_MIN; bytes /= 2)
        while (count < ALB_COUNT(blocks) && (blocks[count] = alb_buddy_get(pool, bytes)))
            sizes[count++] = bytes;
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 1}), ENOMEM);
    assert_null(alb_csa_of(members[0][1])->expect);
    count--;
    alb_buddy_put(pool, blocks[count], sizes[count]); // enough for what is expected, not for its group
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 1, .group = 7, .steps = 1}), ENOMEM);
    assert_null(alb_csa_of(members[0][1])->expect);
    while (count > 0) {
        count--;
        alb_buddy_put(pool, blocks[count], sizes[count]);
    }
}

// ---- what counts ----------------------------------------------------------------------------------------------------

static void expect__bytes_and_messages_both_have_to_come(void **state)
{
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 5000, .messages = 2}), 0);
    write_to(0, 5000); // several segments, one message
    assert_true(is_expected(0));
    write_to(0, 0);
    assert_false(is_expected(0));
}

static void expect__again__replaces_and_zero_ends_it(void **state)
{
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 5000}), 0);
    assert_int_equal(expect(0, (struct alb_expectation){.messages = 1}), 0);
    write_to(0, 8);
    assert_false(is_expected(0));
    assert_int_equal(expect(0, (struct alb_expectation){.messages = 1}), 0);
    assert_int_equal(expect(0, (struct alb_expectation){0}), 0);
    assert_null(alb_csa_of(members[0][1])->expect);
}

static void expect__what_comes_before_the_next_step_is_announced_counts_for_it(void **state)
{
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 100, .group = 7, .step = 0, .steps = 3}), 0);
    write_to(0, 100);
    write_to(0, 60);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 100, .group = 7, .step = 1, .steps = 3}), 0);
    assert_true(is_expected(0));
    write_to(0, 40);
    assert_false(is_expected(0));
    write_to(0, 100); // of another work: no member's
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 100, .group = 8, .step = 0, .steps = 3}), 0);
    assert_true(is_expected(0));
}

// Steps may be announced by bytes and by messages in turn: what belonged to the one before does not count again.
static void expect__the_step_before_by_another_kind__counts_what_came_behind_it(void **state)
{
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 100, .group = 7, .step = 0, .steps = 3}), 0);
    write_to(0, 100);
    assert_int_equal(expect(0, (struct alb_expectation){.messages = 1, .group = 7, .step = 1, .steps = 3}), 0);
    assert_true(is_expected(0));
    write_to(0, 100);
    write_to(0, 60);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 100, .group = 7, .step = 2, .steps = 3}), 0);
    assert_true(is_expected(0));
    write_to(0, 40);
    assert_false(is_expected(0));
}

static void expect__reads_do_not_count(void **state)
{
    struct alb_wc wc;
    assert_int_equal(expect(0, (struct alb_expectation){.messages = 1}), 0);
    assert_int_equal(pair_ask(pair, members[0][0], ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 0, 64), 0);
    pair_settle(pair);
    assert_true(pair_poll(pair, 0, &wc));
    assert_true(is_expected(0));
}

static void queue_pair_ends__so_does_what_it_expected(void **state)
{
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 1, .group = 7, .steps = 1}), 0);
    assert_int_equal(alb_qp_modify(members[0][1], &attr, ALB_QP_STATE, pair->now), 0);
    assert_null(alb_csa_of(members[0][1])->expect);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 1}), EINVAL);
}

// A receive that is not posted for a second is not looked for each round trip.
static void expect__while_the_stream_waits__is_looked_at_ever_less(void **state)
{
    struct alb_engine *engine = pair->hosts[1].engine;
    const alb_time until = pair->now + ALB_NS_PER_S;
    uint32_t looks = 0;
    assert_int_equal(expect(0, (struct alb_expectation){.messages = 2}), 0);
    assert_int_equal(pair_ask(pair, members[0][0], ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 0, 64), 0);
    pair_settle(pair);
    assert_true(alb_csa_of(members[0][1])->in_requests.waits_rnr);
    for (alb_time at; (at = alb_engine_deadline(engine)) <= until; looks++) {
        pair->now = at;
        alb_engine_tick(engine, at);
    }
    assert_in_range(looks, 2, 40); // 20 of them for the association that is awake
}

static uint64_t asked(void)
{
    return pair->hosts[1].stats.sum.counter[ALB_STAT_expected_asks];
}

// Eight times, and after each twice as long; then it is the sender's to probe.
static void expect__nothing_comes__asks_ever_later_and_no_more(void **state)
{
    struct alb_engine *engine = pair->hosts[1].engine;
    const alb_time until = pair->now + 10 * ALB_NS_PER_S;
    alb_time asked_at[8], at;
    uint64_t count = 0;
    write_to(0, 8); // the peer knows us
    assert_int_equal(expect(0, (struct alb_expectation){.messages = 2}), 0);
    while ((at = alb_engine_deadline(engine)) <= until) {
        pair->now = at;
        alb_engine_tick(engine, at);
        if (asked() == count)
            continue;
        assert_int_equal(asked(), count + 1);
        assert_true(count < ALB_COUNT(asked_at));
        asked_at[count++] = at;
        assert_true(alb_csa_of(members[0][1])->in_requests.is_overdue);
        assert_true(pair_send(pair, 1) > 0); // a report
        while (pair_count(pair, 1))
            pair_lose(pair, 1);
    }
    assert_int_equal(count, 8);
    for (uint32_t i = 2; i < count; i++)
        assert_int_equal(asked_at[i] - asked_at[i - 1], 2 * (asked_at[i - 1] - asked_at[i - 2]));
    write_to(0, 8); // what comes begins it again
    assert_true(alb_timer_is_armed(&alb_csa_of(members[0][1])->expect->timer.timer));
    write_to(0, 8);
    assert_false(alb_timer_is_armed(&alb_csa_of(members[0][1])->expect->timer.timer));
}

// ---- groups ---------------------------------------------------------------------------------------------------------

static void group__half_have_finished__the_others_are_pressed(void **state)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        assert_int_equal(expect(i, (struct alb_expectation){.bytes = 64, .group = 7, .steps = 2}), 0);
    write_to(0, 64);
    for (uint32_t i = 0; i < MEMBERS; i++)
        assert_false(presses(i));
    write_to(2, 64);
    assert_false(presses(0));
    assert_false(presses(2));
    assert_true(presses(1));
    assert_true(presses(3));
    write_to(1, 64);
    assert_false(presses(1));
    assert_true(presses(3));
    write_to(3, 64);
    assert_false(presses(3));
}

static struct alb_expect *announced(uint32_t member)
{
    return alb_csa_of(members[member][1])->expect;
}

static void group__pressed__waits_no_longer_than_it_must(void **state)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        assert_int_equal(expect(i, (struct alb_expectation){.bytes = 64, .group = 7, .steps = 2}), 0);
    write_to(0, 64);
    alb_time before = announced(1)->timer.timer.at;
    announced(3)->asks = 8; // as often as it may
    alb_wheel_disarm(&pair->hosts[1].engine->wheel, &announced(3)->timer.timer);
    write_to(2, 64);
    assert_true(announced(1)->timer.timer.at < before);
    assert_false(alb_timer_is_armed(&announced(3)->timer.timer));
}

// Once: what has been put off since, while its stream waited for something else, stays so.
static void group__pressed__is_not_pressed_again(void **state)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        assert_int_equal(expect(i, (struct alb_expectation){.bytes = 64, .group = 7, .steps = 2}), 0);
    write_to(0, 64);
    write_to(2, 64);
    alb_time later = pair->now + 100 * ALB_NS_PER_MS;
    alb_wheel_arm(&pair->hosts[1].engine->wheel, &announced(1)->timer.timer, later);
    write_to(3, 64);
    assert_int_equal(announced(1)->timer.timer.at, later);
}

// All of the step had come before it was announced.
static void group__pressed_by_a_member_that_joins(void **state)
{
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 64, .group = 7, .step = 0, .steps = 2}), 0);
    write_to(0, 128);
    assert_int_equal(expect(1, (struct alb_expectation){.bytes = 64, .group = 7, .step = 1, .steps = 2}), 0);
    alb_time later = pair->now + 100 * ALB_NS_PER_MS;
    alb_wheel_arm(&pair->hosts[1].engine->wheel, &announced(1)->timer.timer, later);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 64, .group = 7, .step = 1, .steps = 2}), 0);
    assert_true(presses(1));
    assert_true(announced(1)->timer.timer.at < later);
}

static void group__other_steps_and_groups_do_not_press(void **state)
{
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 64, .group = 7, .step = 0, .steps = 2}), 0);
    assert_int_equal(expect(1, (struct alb_expectation){.bytes = 64, .group = 7, .step = 1, .steps = 2}), 0);
    assert_int_equal(expect(2, (struct alb_expectation){.bytes = 64, .group = 8, .step = 0, .steps = 2}), 0);
    assert_int_equal(expect(3, (struct alb_expectation){.bytes = 64}), 0);
    write_to(1, 64);
    write_to(2, 64);
    write_to(3, 64);
    assert_true(is_expected(0));
    assert_false(presses(0));
}

static void group__member_leaves_it__no_longer_counts(void **state)
{
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(expect(i, (struct alb_expectation){.bytes = 64, .group = 7, .steps = 2}), 0);
    write_to(0, 64);
    assert_false(presses(1));
    assert_int_equal(expect(2, (struct alb_expectation){0}), 0);
    assert_int_equal(expect(1, (struct alb_expectation){.bytes = 64, .group = 7, .steps = 2}), 0);
    assert_true(presses(1));
    assert_int_equal(expect(0, (struct alb_expectation){0}), 0);
    assert_false(presses(1));
}

// One that is waited for no more, or that ends: half of those that are left have finished.
static void group__pressed_by_a_member_that_leaves(void **state)
{
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(expect(i, (struct alb_expectation){.bytes = 64, .group = 7, .steps = 2}), 0);
    write_to(0, 64);
    alb_time later = pair->now + 100 * ALB_NS_PER_MS;
    alb_wheel_arm(&pair->hosts[1].engine->wheel, &announced(1)->timer.timer, later);
    assert_int_equal(expect(2, (struct alb_expectation){0}), 0);
    assert_true(presses(1));
    assert_true(announced(1)->timer.timer.at < later);
}

// One that goes on to the next step before all of this one has come belongs to that alone.
static void group__member_goes_on__is_pressed_there_only(void **state)
{
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(expect(i, (struct alb_expectation){.bytes = 64, .group = 7, .steps = 2}), 0);
    assert_int_equal(expect(1, (struct alb_expectation){.bytes = 64, .group = 7, .step = 1, .steps = 2}), 0);
    alb_time later = pair->now + 100 * ALB_NS_PER_MS;
    alb_wheel_arm(&pair->hosts[1].engine->wheel, &announced(1)->timer.timer, later);
    alb_wheel_arm(&pair->hosts[1].engine->wheel, &announced(2)->timer.timer, later);
    write_to(0, 64);
    assert_true(presses(2));
    assert_true(announced(2)->timer.timer.at < later);
    assert_false(presses(1));
    assert_int_equal(announced(1)->timer.timer.at, later);
}

static void group__member_goes_on_alone(void **state)
{
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 64, .group = 7, .steps = 2}), 0);
    assert_int_equal(expect(0, (struct alb_expectation){.bytes = 64}), 0);
    assert_null(announced(0)->group); // which has gone with its last member
    write_to(0, 64);
    assert_false(is_expected(0));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expect__only_where_what_is_missing_can_be_asked_for),
        CASE(expect__needs_a_connection_and_a_step_within_its_steps),
        CASE(expect__pool_empty__nothing_is_expected),
        CASE(expect__bytes_and_messages_both_have_to_come),
        CASE(expect__again__replaces_and_zero_ends_it),
        CASE(expect__what_comes_before_the_next_step_is_announced_counts_for_it),
        CASE(expect__the_step_before_by_another_kind__counts_what_came_behind_it),
        CASE(expect__reads_do_not_count),
        CASE(expect__while_the_stream_waits__is_looked_at_ever_less),
        CASE(expect__nothing_comes__asks_ever_later_and_no_more),
        CASE(queue_pair_ends__so_does_what_it_expected),
        CASE(group__half_have_finished__the_others_are_pressed),
        CASE(group__pressed__waits_no_longer_than_it_must),
        CASE(group__pressed__is_not_pressed_again),
        CASE(group__pressed_by_a_member_that_joins),
        CASE(group__other_steps_and_groups_do_not_press),
        CASE(group__member_leaves_it__no_longer_counts),
        CASE(group__pressed_by_a_member_that_leaves),
        CASE(group__member_goes_on__is_pressed_there_only),
        CASE(group__member_goes_on_alone),
    };
    return cmocka_run_group_tests_name("csa_expect", tests, NULL, NULL);
}
