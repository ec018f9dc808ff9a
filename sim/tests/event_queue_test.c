// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_queue.h"

#include "base/prng.h"
#include "base/tests/test.h"

#include <stdlib.h>

struct probe {
    struct alb_sim_event event;
    alb_sim_time due;
    uint64_t order; // of scheduling
    uint32_t fired;
};

static struct probe *last;

static void fire(struct alb_sim_event *event, alb_sim_time now)
{
    struct probe *probe = ALB_CONTAINER_OF(event, struct probe, event);
    assert_true(probe->due == now);
    if (last && last->due == probe->due)
        assert_true(last->order < probe->order);
    else if (last)
        assert_true(last->due < probe->due);
    probe->fired++;
    last = probe;
}

static void schedule__same_moment_fires_in_order(void **state)
{
    struct alb_sim_queue queue;
    struct probe probes[100];
    alb_sim_queue_init(&queue);
    last = NULL;
    for (uint32_t i = 0; i < 100; i++) {
        probes[i] = (struct probe){.due = i % 3, .order = i};
        alb_sim_event_init(&probes[i].event, fire);
        alb_sim_queue_schedule(&queue, &probes[i].event, probes[i].due);
    }
    while (alb_sim_queue_step(&queue))
        ;
    assert_int_equal(queue.fired, 100);
    assert_int_equal(queue.now, 2);
    alb_sim_queue_fini(&queue);
}

static void schedule__random_moves_and_cancels_keep_the_order(void **state)
{
    enum { COUNT = 1000, STEPS = 100000 };
    struct alb_sim_queue queue;
    struct probe *probes = calloc(COUNT, sizeof(*probes));
    struct alb_prng prng;
    uint64_t scheduled = 0;
    alb_prng_init(&prng, 5);
    alb_sim_queue_init(&queue);
    last = NULL;
    for (uint32_t i = 0; i < COUNT; i++)
        alb_sim_event_init(&probes[i].event, fire);
    for (uint32_t i = 0; i < STEPS; i++) {
        struct probe *probe = &probes[alb_prng_below(&prng, COUNT)];
        switch (alb_prng_below(&prng, 4)) {
        case 0:
            alb_sim_queue_cancel(&queue, &probe->event);
            assert_false(alb_sim_event_is_scheduled(&probe->event));
            break;
        case 1:
            alb_sim_queue_step(&queue);
            break;
        default:
            if (probe == last)
                last = NULL; // what it was last is about to change
            probe->due = queue.now + alb_prng_below(&prng, 1000);
            probe->order = i;
            alb_sim_queue_schedule(&queue, &probe->event, probe->due);
            scheduled++;
        }
    }
    while (alb_sim_queue_step(&queue))
        ;
    assert_true(queue.fired > STEPS / 5 && queue.fired < scheduled);
    alb_sim_queue_fini(&queue);
    free(probes);
}

// From picoseconds to seconds ahead: today, in the calendar, beyond it. The length of a day changes on the way.
static void schedule__near_and_far_keep_the_order(void **state)
{
    enum { COUNT = 3000, STEPS = 400000 };
    struct alb_sim_queue *queue = calloc(1, sizeof(*queue));
    struct probe *probes = calloc(COUNT, sizeof(*probes));
    struct alb_prng prng;
    alb_prng_init(&prng, 6);
    alb_sim_queue_init(queue);
    last = NULL;
    for (uint32_t i = 0; i < COUNT; i++)
        alb_sim_event_init(&probes[i].event, fire);
    for (uint32_t i = 0; i < STEPS; i++) {
        struct probe *probe = &probes[alb_prng_below(&prng, COUNT)];
        uint64_t choice = alb_prng_below(&prng, 8);
        if (choice == 0) {
            alb_sim_queue_cancel(queue, &probe->event);
        } else if (choice < 4) {
            alb_sim_queue_step(queue);
        } else {
            if (probe == last)
                last = NULL;
            uint64_t span = 1ull << alb_prng_below(&prng, i < STEPS / 2 ? 20 : 42);
            probe->due = queue->now + alb_prng_below(&prng, span);
            probe->order = i;
            alb_sim_queue_schedule(queue, &probe->event, probe->due);
        }
    }
    assert_true(queue->day_shift != 10); // it has been thought over
    uint64_t left = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        left += alb_sim_event_is_scheduled(&probes[i].event);
    assert_int_equal(alb_sim_queue_count(queue), left);
    while (left-- > 0) {
        alb_sim_time next_at = alb_sim_queue_next_at(queue);
        assert_true(alb_sim_queue_step(queue));
        assert_true(queue->now == next_at);
    }
    assert_false(alb_sim_queue_step(queue));
    alb_sim_queue_fini(queue);
    free(probes);
    free(queue);
}

struct bouncer {
    struct probe probe;
    struct alb_sim_queue *queue;
    struct alb_prng *prng;
    uint64_t *order;
};

static void bounce(struct alb_sim_event *event, alb_sim_time now)
{
    struct bouncer *bouncer = ALB_CONTAINER_OF(event, struct bouncer, probe.event);
    fire(event, now);
    static struct probe before; // what the next one is compared with: this one is about to change
    before = bouncer->probe;
    last = &before;
    bouncer->probe.due = now + alb_prng_below(bouncer->prng, 2000);
    bouncer->probe.order = ++*bouncer->order;
    alb_sim_queue_schedule(bouncer->queue, event, bouncer->probe.due);
}

// A crowd within a day, which goes on while the day is shortened: what comes into the rest of the open day still comes
// in its turn.
static void schedule__in_an_open_day_that_is_shortened_keeps_the_order(void **state)
{
    enum { COUNT = 400 };
    struct alb_sim_queue *queue = calloc(1, sizeof(*queue));
    struct bouncer *bouncers = calloc(COUNT, sizeof(*bouncers));
    struct alb_prng prng;
    uint64_t order = 0;
    alb_prng_init(&prng, 7);
    alb_sim_queue_init(queue);
    last = NULL;
    for (uint32_t i = 0; i < COUNT; i++) {
        bouncers[i] = (struct bouncer){.queue = queue, .prng = &prng, .order = &order, .probe = {.due = i, .order = i}};
        order = i;
        alb_sim_event_init(&bouncers[i].probe.event, bounce);
        alb_sim_queue_schedule(queue, &bouncers[i].probe.event, i);
    }
    alb_sim_queue_run(queue, ALB_SIM_US(10), UINT64_MAX);
    assert_true(queue->day_shift < 8); // several times
    assert_int_equal(alb_sim_queue_count(queue), COUNT);
    alb_sim_queue_fini(queue);
    free(bouncers);
    free(queue);
}

static void stop_after(struct alb_sim_event *event, alb_sim_time now)
{
    struct probe *probe = ALB_CONTAINER_OF(event, struct probe, event);
    probe->fired++;
    if (probe->order)
        ((struct alb_sim_queue *)(uintptr_t)probe->order)->is_stopped = true;
}

static void run__until_a_moment_a_number_or_a_stop(void **state)
{
    struct alb_sim_queue *queue = calloc(1, sizeof(*queue));
    struct probe probes[6] = {0};
    alb_sim_queue_init(queue);
    for (uint32_t i = 0; i < 6; i++) {
        alb_sim_event_init(&probes[i].event, stop_after);
        alb_sim_queue_schedule(queue, &probes[i].event, ALB_SIM_US(10 * i));
    }
    probes[4].order = (uintptr_t)queue;
    assert_true(alb_sim_queue_run(queue, ALB_SIM_S(1), 2));
    assert_int_equal(queue->fired, 2);
    assert_false(alb_sim_queue_run(queue, ALB_SIM_US(29), UINT64_MAX));
    assert_int_equal(queue->fired, 3);
    alb_sim_queue_advance(queue, ALB_SIM_US(25));
    alb_sim_queue_schedule(queue, &probes[0].event, ALB_SIM_US(26)); // before what has been looked at
    assert_true(alb_sim_queue_run(queue, ALB_SIM_S(1), UINT64_MAX));
    assert_int_equal(probes[0].fired, 2);
    assert_int_equal(queue->now, ALB_SIM_US(40));
    assert_false(alb_sim_queue_run(queue, ALB_SIM_S(1), UINT64_MAX));
    assert_int_equal(queue->fired, 7);
    alb_sim_queue_fini(queue);
    free(queue);
}

static void schedule__never_cancels(void **state)
{
    struct alb_sim_queue queue;
    struct probe probe = {.due = 7};
    alb_sim_queue_init(&queue);
    alb_sim_event_init(&probe.event, fire);
    alb_sim_queue_schedule(&queue, &probe.event, 7);
    assert_int_equal(alb_sim_queue_next_at(&queue), 7);
    alb_sim_queue_schedule(&queue, &probe.event, ALB_SIM_NEVER);
    assert_true(alb_sim_queue_next_at(&queue) == ALB_SIM_NEVER);
    assert_false(alb_sim_queue_step(&queue));
    alb_sim_queue_fini(&queue);
}

static void advance__moves_now(void **state)
{
    struct alb_sim_queue queue;
    alb_sim_queue_init(&queue);
    alb_sim_queue_advance(&queue, ALB_SIM_MS(3));
    assert_int_equal(queue.now, 3000000000);
    alb_sim_queue_fini(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule__same_moment_fires_in_order),
        cmocka_unit_test(schedule__random_moves_and_cancels_keep_the_order),
        cmocka_unit_test(schedule__near_and_far_keep_the_order),
        cmocka_unit_test(schedule__in_an_open_day_that_is_shortened_keeps_the_order),
        cmocka_unit_test(run__until_a_moment_a_number_or_a_stop),
        cmocka_unit_test(schedule__never_cancels),
        cmocka_unit_test(advance__moves_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
