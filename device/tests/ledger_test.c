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
    assert_int_equal(alb_map_count(&ledger.initiators), 0);
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
    alb_ledger_pass(&ledger, 3, 5); // nobody
    assert_false(has(1, 1) || has(1, 2));
    assert_true(has(1, 3) && has(1, 4) && has(1, 5) && has(2, 1));
    alb_ledger_pass(&ledger, 2, 2); // the last of its initiator
    assert_int_equal(alb_map_count(&ledger.initiators), 1);
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
        TEST(alb_ledger_add__full),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
