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

// ---- windows --------------------------------------------------------------------------------------------------------

enum {
    NODES = 20, // the first is nobody
    TRAVELLERS = 300,
    LENGTH = 1000,
};

struct crowd;

struct traveller {
    struct alb_sim_event event;
    struct crowd *crowd;
    uint32_t number;
};

// Nodes that pass travellers on and move their alarms, each by chance of its own; somebody outside looks at all.
struct crowd {
    struct alb_sim_queue queue;
    struct alb_prng prng[NODES];
    uint64_t log[NODES];
    struct traveller travellers[TRAVELLERS], alarms[NODES];
    uint64_t stop_at;
};

static void note(struct crowd *crowd, uint32_t node, uint64_t what)
{
    crowd->log[node] = (crowd->log[node] ^ what) * 0x9e3779b97f4a7c15ull;
    crowd->log[node] ^= crowd->log[node] >> 29;
}

static void travel(struct alb_sim_event *event, alb_sim_time now)
{
    struct traveller *traveller = ALB_CONTAINER_OF(event, struct traveller, event);
    struct crowd *crowd = traveller->crowd;
    uint32_t node = crowd->queue.node;
    struct alb_prng *prng = &crowd->prng[node];
    note(crowd, node, now << 16 | traveller->number);
    if (alb_prng_below(prng, 3) == 0)
        alb_sim_queue_schedule(&crowd->queue, event, now + alb_prng_below(prng, 3) * 200);
    else
        alb_sim_queue_schedule_for(&crowd->queue, event, now + LENGTH + alb_prng_below(prng, 4) * 300,
                                   1 + (uint32_t)alb_prng_below(prng, NODES - 1));
    if (alb_prng_below(prng, 4) == 0)
        alb_sim_queue_schedule(&crowd->queue, &crowd->alarms[node].event,
                               alb_prng_below(prng, 5) ? now + alb_prng_below(prng, 20) * 250 : ALB_SIM_NEVER);
    crowd->queue.is_stopped |= crowd->stop_at && now >= crowd->stop_at;
}

static void alarm_node(struct alb_sim_event *event, alb_sim_time now)
{
    struct traveller *alarm = ALB_CONTAINER_OF(event, struct traveller, event);
    assert_int_equal(alarm->crowd->queue.node, alarm->number);
    note(alarm->crowd, alarm->number, now);
}

// Who is nobody sees what all have done before, and nothing of what they do now.
static void look_at_all(struct alb_sim_event *event, alb_sim_time now)
{
    struct traveller *outside = ALB_CONTAINER_OF(event, struct traveller, event);
    struct crowd *crowd = outside->crowd;
    struct alb_prng *prng = &crowd->prng[ALB_SIM_NOBODY];
    assert_int_equal(crowd->queue.node, ALB_SIM_NOBODY);
    for (uint32_t node = 1; node < NODES; node++)
        note(crowd, ALB_SIM_NOBODY, crowd->log[node]);
    uint32_t node = 1 + (uint32_t)alb_prng_below(prng, NODES - 1);
    alb_sim_queue_schedule_for(&crowd->queue, &crowd->alarms[node].event, now + alb_prng_below(prng, 2), node);
    alb_sim_queue_schedule(&crowd->queue, event, now + alb_prng_below(prng, 30) * 500);
}

static struct crowd *crowd_new(bool by_node, uint32_t travellers)
{
    struct crowd *crowd = calloc(1, sizeof(*crowd));
    alb_sim_queue_init(&crowd->queue);
    alb_sim_queue_set_windows(&crowd->queue, LENGTH, NODES, by_node);
    for (uint32_t i = 0; i < NODES; i++) {
        alb_prng_init(&crowd->prng[i], i);
        crowd->alarms[i] = (struct traveller){.crowd = crowd, .number = i};
        alb_sim_event_init(&crowd->alarms[i].event, i == ALB_SIM_NOBODY ? look_at_all : alarm_node);
    }
    for (uint32_t i = 0; i < travellers; i++) {
        crowd->travellers[i] = (struct traveller){.crowd = crowd, .number = i};
        alb_sim_event_init(&crowd->travellers[i].event, travel);
        alb_sim_queue_schedule_for(&crowd->queue, &crowd->travellers[i].event, i * 10, 1 + i % (NODES - 1));
    }
    alb_sim_queue_schedule(&crowd->queue, &crowd->alarms[ALB_SIM_NOBODY].event, 700);
    return crowd;
}

static void crowd_free(struct crowd *crowd)
{
    alb_sim_queue_fini(&crowd->queue);
    free(crowd);
}

static void assert_same(const struct crowd *a, const struct crowd *b)
{
    assert_memory_equal(a->log, b->log, sizeof(a->log));
    assert_int_equal(a->queue.now, b->queue.now);
    assert_int_equal(a->queue.fired, b->queue.fired);
    assert_int_equal(alb_sim_queue_count(&a->queue), alb_sim_queue_count(&b->queue));
    assert_int_equal(alb_sim_queue_next_at(&a->queue), alb_sim_queue_next_at(&b->queue));
}

static void windows__give_the_same_by_node_and_by_time(void **state)
{
    static const uint32_t travellers[] = {1, 3, TRAVELLERS}; // sorted as a whole, and dealt out
    for (uint32_t i = 0; i < ALB_COUNT(travellers); i++) {
        struct crowd *crowds[] = {crowd_new(true, travellers[i]), crowd_new(false, travellers[i])};
        for (alb_sim_time until = 0; until < ALB_SIM_NS(200); until += 777) {
            for (uint32_t c = 0; c < 2; c++) {
                while (alb_sim_queue_run(&crowds[c]->queue, until, 100))
                    assert_true(crowds[c]->queue.now <= until);
                alb_sim_queue_advance(&crowds[c]->queue, until);
            }
            assert_same(crowds[0], crowds[1]);
        }
        assert_true(crowds[0]->queue.fired > 100 * travellers[i]);
        crowd_free(crowds[0]);
        crowd_free(crowds[1]);
    }
}

// Whatever comes from outside then is still in time.
static void windows__are_ended_by_a_stop(void **state)
{
    struct crowd *crowds[] = {crowd_new(true, TRAVELLERS), crowd_new(false, TRAVELLERS)};
    for (uint32_t c = 0; c < 2; c++) {
        struct alb_sim_queue *queue = &crowds[c]->queue;
        crowds[c]->stop_at = 10250;
        assert_true(alb_sim_queue_run(queue, ALB_SIM_S(1), UINT64_MAX));
        assert_true(queue->now >= 10250 && queue->now < 11000);
        assert_true(alb_sim_queue_next_at(queue) >= queue->now);
        crowds[c]->stop_at = 0;
        alb_sim_queue_schedule_for(queue, &crowds[c]->alarms[3].event, queue->now, 3);
        assert_false(alb_sim_queue_run(queue, 20000, UINT64_MAX));
    }
    assert_same(crowds[0], crowds[1]);
    crowd_free(crowds[0]);
    crowd_free(crowds[1]);
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
        cmocka_unit_test(windows__give_the_same_by_node_and_by_time),
        cmocka_unit_test(windows__are_ended_by_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
