// SPDX-License-Identifier: BSD-2-Clause
// Who drives while a thread of the program waits for an event. The device threads are laid to sleep for longer than a
// test takes, as by a program that polls.
#include "device/impl.h"
#include "device/tests/pair.h"

#include <unistd.h>

#define TRIES 1000

static uint64_t drives(const struct side *side)
{
    return alb_edge_counted(&side->device->board.header->edge_stats, ALB_EDGE_drives_by_thread);
}

// As if something had just been sent, or long ago.
static void note_traffic(struct side *side, bool is_recent, bool has_room)
{
    atomic_store(&side->device->active_at, is_recent ? alb_clock_now() + PAIR_LONG_NS : 1);
    atomic_store(&side->device->has_room, has_room);
}

static bool has_completion(void *side)
{
    return !alb_cq_is_empty(((struct side *)side)->cq);
}

static bool count_and_go_on(void *asked)
{
    ++*(uint32_t *)asked;
    return false;
}

// On a busy host the time may be over before anything comes; then it is the thread's.
static void alb_device_await__takes_in_what_it_waits_for(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.1.1", "127.92.1.2", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    bool is_own_work = false;
    for (int i = 0; i < TRIES && !is_own_work; i++) {
        side_lay_to_sleep(b);
        uint64_t before = drives(b);
        side_receive(b, 0, 64);
        side_send(a, 0, 64);
        note_traffic(b, true, true);
        alb_device_await(b->device, has_completion, b);
        is_own_work = has_completion(b) && drives(b) == before;
        alb_device_leave(b->device);
        assert_int_equal(side_wait(b).status, ALB_WC_SUCCESS);
        assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
    }
    assert_true(is_own_work);
    pair_close(&pair);
}

// The device thread may look at the cores just then: in one of many tries it does not.
static bool asks_once(struct side *side, bool is_recent, bool has_room)
{
    uint32_t asked = 0;
    for (int i = 0; i < TRIES && asked != 1; i++) {
        asked = 0;
        side_lay_to_sleep(side);
        note_traffic(side, is_recent, has_room);
        alb_device_await(side->device, count_and_go_on, &asked);
    }
    return asked == 1;
}

static void alb_device_await__looks_only_while_answers_come_and_there_is_room(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.1.1", "127.92.1.2", NULL);
    struct side *a = &pair.side[0];
    assert_true(asks_once(a, true, false));
    assert_true(asks_once(a, false, true));
    uint32_t asked = 0;
    for (int i = 0; i < TRIES && asked < 2; i++) {
        side_lay_to_sleep(a);
        note_traffic(a, true, true);
        asked = 0;
        alb_device_await(a->device, count_and_go_on, &asked);
    }
    assert_true(asked >= 2);
    alb_device_leave(a->device);
    pair_close(&pair);
}

// What was posted does not wait for the end of a nap, and neither does what comes while the program sleeps.
static void alb_device_leave__wakes_the_thread_that_naps(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.1.1", "127.92.1.2", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    side_lay_to_sleep(a);
    alb_time began_at = alb_clock_now();
    side_receive(b, 0, 64);
    side_send(a, 0, 64); // is left to a poll
    alb_device_leave(a->device);
    assert_int_equal(atomic_load(&a->device->polled_at), 0);
    assert_int_equal(side_wait_idle(a).status, ALB_WC_SUCCESS);
    assert_true(alb_clock_now() - began_at < PAIR_LONG_NS / 2);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_device_await__takes_in_what_it_waits_for),
        cmocka_unit_test(alb_device_await__looks_only_while_answers_come_and_there_is_room),
        cmocka_unit_test(alb_device_leave__wakes_the_thread_that_naps),
    };
    return cmocka_run_group_tests_name("await", tests, NULL, NULL);
}
