// SPDX-License-Identifier: BSD-2-Clause
// Counting, wrapping, and two threads that must see each other's slots whole.
#include "base/ring.h"
#include "base/tests/test.h"

#include <pthread.h>
#include <sched.h>

static void alb_ring__fills_and_empties(void **state)
{
    struct alb_ring ring;
    alb_ring_init(&ring, 4);
    assert_int_equal(alb_ring_free(&ring), 4);
    assert_int_equal(alb_ring_used(&ring), 0);
    assert_true(alb_ring_has_room(&ring, 4));
    assert_false(alb_ring_has_room(&ring, 5));

    alb_ring_push_commit(&ring, 3);
    assert_int_equal(alb_ring_free(&ring), 1);
    assert_int_equal(alb_ring_used(&ring), 3);
    assert_int_equal(alb_ring_tail_slot(&ring, 0), 3);
    alb_ring_push_commit(&ring, 1);
    assert_int_equal(alb_ring_free(&ring), 0);
    assert_false(alb_ring_has_room(&ring, 1));

    alb_ring_pop_commit(&ring, 3);
    assert_int_equal(alb_ring_head_slot(&ring, 0), 3);
    assert_true(alb_ring_has(&ring, 1));
    assert_false(alb_ring_has(&ring, 2));
    assert_int_equal(alb_ring_free(&ring), 3);
    assert_int_equal(alb_ring_tail_slot(&ring, 2), 2);
    alb_ring_pop_commit(&ring, 1);
    assert_int_equal(alb_ring_used(&ring), 0);
}

static void alb_ring_has_room__looks_again_when_it_knows_too_few(void **state)
{
    struct alb_ring ring;
    alb_ring_init(&ring, 4);
    alb_ring_push_commit(&ring, 4);
    assert_int_equal(alb_ring_free(&ring), 0);
    alb_ring_pop_commit(&ring, 1);
    assert_int_equal(alb_ring_free(&ring), 1);
    alb_ring_pop_commit(&ring, 2);
    assert_int_equal(alb_ring_free(&ring), 1); // what it knows, at least
    assert_true(alb_ring_has_room(&ring, 3));
    assert_int_equal(alb_ring_free(&ring), 3);
}

static void alb_ring__indexes_wrap(void **state)
{
    struct alb_ring ring;
    alb_ring_init(&ring, 8);
    // Both sides just short of the end of uint32_t, as after four billion elements.
    atomic_store(&ring.tail, UINT32_MAX - 2);
    atomic_store(&ring.head, UINT32_MAX - 2);
    ring.head_seen = ring.tail_seen = UINT32_MAX - 2;
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(alb_ring_free(&ring), 8 - i);
        assert_int_equal(alb_ring_tail_slot(&ring, 0), (UINT32_MAX - 2 + i) % 8);
        alb_ring_push_commit(&ring, 1);
    }
    assert_int_equal(alb_ring_free(&ring), 0);
    assert_int_equal(alb_ring_used(&ring), 8);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(alb_ring_head_slot(&ring, 0), (UINT32_MAX - 2 + i) % 8);
        alb_ring_pop_commit(&ring, 1);
    }
    assert_int_equal(alb_ring_used(&ring), 0);
    assert_int_equal(alb_ring_free(&ring), 8);
}

static void alb_ring__sides_are_on_separate_lines(void **state)
{
    assert_int_equal(offsetof(struct alb_ring, tail) % ALB_CACHE_LINE, 0);
    assert_int_equal(offsetof(struct alb_ring, head) % ALB_CACHE_LINE, 0);
    assert_int_equal(sizeof(struct alb_ring), 2 * ALB_CACHE_LINE);
}

enum { CAPACITY = 64, ELEMENTS = 300000 };

struct shared {
    struct alb_ring ring;
    uint64_t slots[CAPACITY][2]; // plain memory: what the commits must publish
};

static void *produce(void *argument)
{
    struct shared *s = argument;
    for (uint64_t next = 0; next < ELEMENTS;) {
        uint32_t room = alb_ring_free(&s->ring);
        uint32_t count = 0;
        for (; count < room && next < ELEMENTS && count < 1 + next % 7; count++, next++) {
            uint64_t *slot = s->slots[alb_ring_tail_slot(&s->ring, count)];
            slot[0] = next;
            slot[1] = ~next;
        }
        if (count == 0)
            sched_yield();
        else
            alb_ring_push_commit(&s->ring, count);
    }
    return NULL;
}

static void alb_ring__two_threads(void **state)
{
    static struct shared s;
    pthread_t producer;
    uint64_t wrong = 0;
    alb_ring_init(&s.ring, CAPACITY);
    assert_int_equal(pthread_create(&producer, NULL, produce, &s), 0);
    for (uint64_t next = 0; next < ELEMENTS;) {
        uint32_t used = alb_ring_used(&s.ring);
        if (used == 0)
            sched_yield();
        for (uint32_t i = 0; i < used; i++, next++) {
            const uint64_t *slot = s.slots[alb_ring_head_slot(&s.ring, i)];
            wrong += slot[0] != next || slot[1] != ~next;
        }
        alb_ring_pop_commit(&s.ring, used);
    }
    pthread_join(producer, NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(alb_ring_used(&s.ring), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_ring__fills_and_empties),
        cmocka_unit_test(alb_ring_has_room__looks_again_when_it_knows_too_few),
        cmocka_unit_test(alb_ring__indexes_wrap),
        cmocka_unit_test(alb_ring__sides_are_on_separate_lines),
        cmocka_unit_test(alb_ring__two_threads),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
