// SPDX-License-Identifier: BSD-2-Clause
// The ledger: what stays, what goes, and a full one.
#include "device/ledger.h"

#include "base/tests/test.h"

#include <errno.h>

static struct alb_ledger ledger;

static int setup(void **state)
{
    return alb_ledger_init(&ledger);
}

static int teardown(void **state)
{
    alb_ledger_fini(&ledger);
    return 0;
}

static struct alb_ledger_entry *add(uint64_t initiator, uint64_t number)
{
    const struct alb_txn_id id = {.initiator = initiator, .number = number};
    struct alb_ledger_entry *entry;
    assert_int_equal(alb_ledger_add(&ledger, &id, &entry), 0);
    return entry;
}

static void add_outcome(uint64_t initiator, uint64_t number)
{
    struct alb_ledger_entry *entry = add(initiator, number);
    alb_ledger_commit(&ledger, entry);
    entry->is_placed = true;
}

static bool has(uint64_t initiator, uint64_t number)
{
    const struct alb_txn_id id = {.initiator = initiator, .number = number};
    return alb_ledger_find(&ledger, &id) != NULL;
}

static void alb_ledger_add__once(void **state)
{
    struct alb_ledger_entry *entry = add(1, 1), *again;
    assert_int_equal(alb_ledger_add(&ledger, &entry->id, &again), EEXIST);
    assert_int_equal(ledger.bound_count, 1);
    alb_ledger_commit(&ledger, entry);
    alb_ledger_commit(&ledger, entry);
    assert_int_equal(ledger.bound_count, 0);
    alb_ledger_drop(&ledger, entry);
    assert_int_equal(alb_ledger_count(&ledger), 0);
    assert_int_equal(alb_ledger_initiator_count(&ledger), 1); // what it numbers further on is not committed
}

static void alb_ledger_pass__drops_what_is_over(void **state)
{
    add_outcome(1, 1);
    add_outcome(1, 2);
    add_outcome(1, 5);
    add_outcome(2, 1);
    add(1, 3);                             // bound
    alb_ledger_commit(&ledger, add(1, 4)); // its bytes are needed
    alb_ledger_pass(&ledger, 1, 5);
    alb_ledger_pass(&ledger, 3, 5); // of no initiator
    assert_false(has(1, 1) || has(1, 2));
    assert_true(has(1, 3) && has(1, 4) && has(1, 5) && has(2, 1));
    alb_ledger_pass(&ledger, 2, 2); // the last of its initiator
    assert_false(has(2, 1));
    assert_int_equal(alb_ledger_initiator_count(&ledger), 2);
}

static void alb_ledger_forget__the_older_half(void **state)
{
    for (uint64_t i = 1; i <= 5; i++)
        add_outcome(i, 1);
    add(1, 2);
    assert_int_equal(alb_ledger_forget(&ledger), 3);
    assert_false(has(1, 1) || has(2, 1) || has(3, 1));
    assert_true(has(4, 1) && has(5, 1) && has(1, 2));
}

static uint64_t low_water_of(uint64_t name)
{
    for (uint32_t i = 0; i < alb_ledger_initiator_count(&ledger); i++) {
        const struct alb_ledger_initiator *initiator = alb_ledger_initiator_at(&ledger, i);
        if (initiator->name == name)
            return initiator->low_water;
    }
    return UINT64_MAX;
}

static void alb_ledger_forget__moves_the_marks(void **state)
{
    add_outcome(1, 7);
    add_outcome(1, 9);
    assert_int_equal(low_water_of(1), 0);
    assert_int_equal(alb_ledger_forget(&ledger), 1);
    assert_int_equal(low_water_of(1), 8);
    assert_true(has(1, 9));
}

static void alb_ledger_know__the_oldest_idle_one_makes_room(void **state)
{
    add(1, 1); // not idle
    for (uint64_t i = 2; i <= ALB_LEDGER_MAX; i++)
        assert_int_equal(alb_ledger_know(&ledger, i, i), 0);
    assert_int_equal(low_water_of(2), 2);
    add(ALB_LEDGER_MAX + 1, 1);
    assert_int_equal(alb_ledger_initiator_count(&ledger), ALB_LEDGER_MAX);
    assert_true(low_water_of(2) == UINT64_MAX);
    assert_true(low_water_of(1) == 0 && low_water_of(3) == 3);
}

static void alb_ledger_know__none_is_idle(void **state)
{
    for (uint64_t i = 1; i <= ALB_LEDGER_MAX; i++)
        add_outcome(i, 1);
    assert_int_equal(alb_ledger_know(&ledger, ALB_LEDGER_MAX + 1, 5), ENOSPC);
    assert_int_equal(alb_ledger_know(&ledger, 1, 1), 0); // that is known
    assert_int_equal(alb_ledger_initiator_count(&ledger), ALB_LEDGER_MAX);
}

static void alb_ledger_add__full(void **state)
{
    struct alb_ledger_entry *entry;
    const struct alb_txn_id one_more = {.initiator = 0, .number = 1};
    for (uint64_t i = 1; i <= ALB_LEDGER_MAX; i++)
        add_outcome(i, 1);
    assert_int_equal(alb_ledger_add(&ledger, &one_more, &entry), ENOSPC);
    assert_int_equal(alb_ledger_forget(&ledger), ALB_LEDGER_MAX / 2);
    assert_int_equal(alb_ledger_add(&ledger, &one_more, &entry), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(alb_ledger_add__once),
        TEST(alb_ledger_pass__drops_what_is_over),
        TEST(alb_ledger_forget__the_older_half),
        TEST(alb_ledger_forget__moves_the_marks),
        TEST(alb_ledger_know__the_oldest_idle_one_makes_room),
        TEST(alb_ledger_know__none_is_idle),
        TEST(alb_ledger_add__full),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
