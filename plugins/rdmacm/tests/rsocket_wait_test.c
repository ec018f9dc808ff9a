// SPDX-License-Identifier: BSD-2-Clause
// Threads that wait for one rsocket, step by step in a single one.
#include "plugins/rdmacm/rsocket.h"

#include "base/tests/test.h"

static bool progress(struct rsocket *rs)
{
    return false;
}

static bool arm(struct rsocket *rs)
{
    return true;
}

static const struct rsocket_ops quiet = {.progress = progress, .arm = arm};

static int setup(void **state)
{
    static struct rsocket rs;
    rs = (struct rsocket){0};
    *state = &rs;
    return rsocket_init(&rs, &quiet, AF_INET, SOCK_STREAM);
}

static int teardown(void **state)
{
    struct rsocket *rs = *state;
    assert_int_equal(rs->waiters, 0);
    assert_ptr_equal(rsocket_table_take(rs->fd), rs);
    rsocket_fini(rs);
    return 0;
}

static uint64_t enter(struct rsocket *rs)
{
    uint64_t entered;
    assert_true(rsocket_enter(rs, &entered));
    return entered;
}

static bool is_awake(const struct rsocket *rs)
{
    struct pollfd poller = {.fd = rs->fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1;
}

static void wake__reaches_all_that_sleep(void **state)
{
    struct rsocket *rs = *state;
    uint64_t a = enter(rs), b = enter(rs);
    assert_false(is_awake(rs));
    rsocket_wake(rs);
    assert_true(is_awake(rs));
    rsocket_leave(rs, a);
    assert_true(is_awake(rs));
    rsocket_leave(rs, b);
    assert_false(is_awake(rs));
}

// As both do when they find nothing: each is back before the other has left.
static void wake__ends_when_each_has_looked(void **state)
{
    struct rsocket *rs = *state;
    uint64_t a = enter(rs), b = enter(rs);
    rsocket_wake(rs);
    rsocket_leave(rs, a);
    a = enter(rs);
    assert_true(is_awake(rs));
    rsocket_leave(rs, b);
    b = enter(rs);
    assert_false(is_awake(rs));
    rsocket_leave(rs, a);
    rsocket_leave(rs, b);
}

static void wake__reaches_one_that_came_after_the_last(void **state)
{
    struct rsocket *rs = *state;
    uint64_t a = enter(rs);
    rsocket_wake(rs);
    uint64_t b = enter(rs);
    rsocket_wake(rs);
    rsocket_leave(rs, a);
    assert_true(is_awake(rs));
    rsocket_leave(rs, b);
    assert_false(is_awake(rs));
}

// Nobody is left for whom it would be.
static void wake__is_not_kept(void **state)
{
    struct rsocket *rs = *state;
    rsocket_wake(rs);
    uint64_t a = enter(rs);
    assert_false(is_awake(rs));
    rsocket_wake(rs);
    uint64_t b = enter(rs);
    rsocket_leave(rs, b);
    assert_true(is_awake(rs));
    rsocket_leave(rs, a);
    assert_false(is_awake(rs));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(wake__reaches_all_that_sleep),
        TEST(wake__ends_when_each_has_looked),
        TEST(wake__reaches_one_that_came_after_the_last),
        TEST(wake__is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
