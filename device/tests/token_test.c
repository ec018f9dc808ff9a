// SPDX-License-Identifier: BSD-2-Clause
// The driver token: exclusion, no lost notes, priority of waiters.
#include "device/token.h"

#include "base/tests/test.h"

#include <pthread.h>
#include <sched.h>

static void alb_token_try__only_one(void **state)
{
    struct alb_token token;
    alb_token_init(&token);
    assert_true(alb_token_try(&token));
    assert_false(alb_token_try(&token));
    alb_token_release(&token);
    assert_true(alb_token_try(&token));
    alb_token_release(&token);
}

static void alb_token_try__gives_way_to_a_waiter(void **state)
{
    struct alb_token token;
    alb_token_init(&token);
    atomic_store(&token.waiting, 1);
    assert_false(alb_token_try(&token));
    atomic_store(&token.waiting, 0);
    assert_true(alb_token_try(&token));
    alb_token_release(&token);
}

// A waiter that gets no processor, while others would go on.
static void alb_token_try__does_not_give_way_for_ever(void **state)
{
    struct alb_token token;
    alb_token_init(&token);
    atomic_store(&token.waiting, 1);
    for (int i = 0; i < ALB_TOKEN_GIVES_WAY; i++)
        assert_false(alb_token_try(&token));
    assert_true(alb_token_try(&token));
    assert_false(alb_token_try(&token));
    alb_token_release(&token);
    assert_true(alb_token_try(&token));
    alb_token_release(&token);
    atomic_store(&token.waiting, 0);
    alb_token_lock(&token);
    assert_false(alb_token_lock_for(&token, ALB_NS_PER_MS)); // a waiter that has been
    alb_token_release(&token);
    atomic_store(&token.waiting, 1);
    assert_false(alb_token_try(&token));
}

static void alb_token_lock_for__gives_up(void **state)
{
    struct alb_token token;
    alb_token_init(&token);
    alb_token_lock(&token);
    assert_false(alb_token_lock_for(&token, ALB_NS_PER_MS));
    assert_int_equal(atomic_load(&token.waiting), 0);
    alb_token_release(&token);
    assert_true(alb_token_lock_for(&token, ALB_NS_PER_MS));
    alb_token_release(&token);
}

struct shared {
    struct alb_token token;
    uint64_t counter; // plain: the token guards it
    atomic_uint note; // left by threads that did not get the token
    atomic_uint taken_up;
};

#define ROUNDS 20000

static void *locker(void *argument)
{
    struct shared *shared = argument;
    for (int i = 0; i < ROUNDS; i++) {
        alb_token_lock(&shared->token);
        shared->counter++;
        alb_token_release(&shared->token);
    }
    return NULL;
}

// What alb_device_kick does: leave a note, try, take notes up until none is left.
static void *kicker(void *argument)
{
    struct shared *shared = argument;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&shared->note, 1);
        while (atomic_load(&shared->note) != 0 && alb_token_try(&shared->token)) {
            atomic_fetch_add(&shared->taken_up, atomic_exchange(&shared->note, 0));
            shared->counter++;
            alb_token_release(&shared->token);
        }
    }
    return NULL;
}

static void alb_token_lock__excludes(void **state)
{
    struct shared shared = {.counter = 0};
    alb_token_init(&shared.token);
    pthread_t threads[4];
    for (size_t i = 0; i < ALB_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, locker, &shared), 0);
    for (size_t i = 0; i < ALB_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(shared.counter, ROUNDS * ALB_COUNT(threads));
    assert_true(alb_token_try(&shared.token));
}

static void alb_token_try__no_note_is_lost(void **state)
{
    struct shared shared = {.counter = 0};
    alb_token_init(&shared.token);
    pthread_t threads[3];
    for (size_t i = 0; i < ALB_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, kicker, &shared), 0);
    for (size_t i = 0; i < ALB_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&shared.note), 0);
    assert_int_equal(atomic_load(&shared.taken_up), ROUNDS * ALB_COUNT(threads));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_token_try__only_one),
        cmocka_unit_test(alb_token_try__gives_way_to_a_waiter),
        cmocka_unit_test(alb_token_try__does_not_give_way_for_ever),
        cmocka_unit_test(alb_token_lock_for__gives_up),
        cmocka_unit_test(alb_token_lock__excludes),
        cmocka_unit_test(alb_token_try__no_note_is_lost),
    };
    return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
