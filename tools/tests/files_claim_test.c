// SPDX-License-Identifier: BSD-2-Clause
// Copies to one name: the newest ends the others, whether they have it or wait for it.
#include "tools/files_claim.h"

#include "base/tests/test.h"

#include <sched.h>

struct copy {
    struct files_claim claim;
    _Atomic bool is_cancelled;
    const char *name;
    bool is_taken;
    pthread_t thread;
};

static struct files_claims claims;

static int setup(void **state)
{
    files_claims_init(&claims);
    return 0;
}

static bool take(struct copy *copy)
{
    return copy->is_taken = files_claim_take(&claims, &copy->claim, copy->name, &copy->is_cancelled);
}

static bool share(struct copy *copy)
{
    return files_claim_share(&claims, &copy->claim, copy->name, &copy->is_cancelled);
}

static void drop(struct copy *copy)
{
    files_claim_drop(&claims, &copy->claim);
}

static void *take_in_thread(void *argument)
{
    take(argument);
    return NULL;
}

// Until it has cancelled the one before.
static void begin(struct copy *copy, const struct copy *before)
{
    assert_int_equal(pthread_create(&copy->thread, NULL, take_in_thread, copy), 0);
    while (!before->is_cancelled)
        sched_yield();
}

static void end(const struct copy *copy, bool is_taken)
{
    assert_int_equal(pthread_join(copy->thread, NULL), 0);
    assert_int_equal(copy->is_taken, is_taken);
}

static void files_claim_take__of_other_names(void **state)
{
    struct copy one = {.name = "one"}, other = {.name = "other"};
    assert_false(files_claims_has(&claims, "one"));
    assert_true(take(&one));
    assert_true(take(&other));
    assert_false(one.is_cancelled);
    assert_true(files_claims_has(&claims, "one"));
    drop(&one);
    assert_false(files_claims_has(&claims, "one"));
    drop(&other);
}

static void files_claim_take__waits_for_earlier_ones(void **state)
{
    struct copy first = {.name = "name"}, second = {.name = "name"};
    assert_true(take(&first));
    begin(&second, &first);
    drop(&first);
    end(&second, true);
    assert_false(second.is_cancelled);
    drop(&second);
}

static void files_claim_take__one_that_waits_ends_for_a_newer_one(void **state)
{
    struct copy first = {.name = "name"}, second = {.name = "name"}, third = {.name = "name"};
    assert_true(take(&first));
    begin(&second, &first);
    begin(&third, &second);
    end(&second, false); // though the first is still there
    drop(&first);
    end(&third, true);
    assert_false(third.is_cancelled);
    drop(&third);
}

static void files_claim_share__until_a_copy_to_it_begins(void **state)
{
    struct copy readers[2] = {{.name = "name"}, {.name = "name"}}, late = {.name = "name"}, writer = {.name = "name"};
    assert_true(share(&readers[0]));
    assert_true(share(&readers[1]));
    assert_false(readers[0].is_cancelled);
    begin(&writer, &readers[1]);
    assert_true(readers[0].is_cancelled);
    assert_false(share(&late));
    drop(&readers[1]);
    drop(&readers[0]);
    end(&writer, true);
    assert_false(share(&late));
    drop(&writer);
    assert_true(share(&late));
    drop(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(files_claim_take__of_other_names, setup),
        cmocka_unit_test_setup(files_claim_take__waits_for_earlier_ones, setup),
        cmocka_unit_test_setup(files_claim_take__one_that_waits_ends_for_a_newer_one, setup),
        cmocka_unit_test_setup(files_claim_share__until_a_copy_to_it_begins, setup),
    };
    return cmocka_run_group_tests_name("files_claim", tests, NULL, NULL);
}
