// SPDX-License-Identifier: BSD-2-Clause
// Windows of the event queue: node by node and by time the same happens.
#include "sim/event_queue.h"

#include "base/prng.h"
#include "base/tests/test.h"

#include <stdlib.h>

enum {
    NODES = 20, // the first is no node
    TRAVELLERS = 300,
    LENGTH = 1000,
};

struct crowd;

struct traveller {
    struct alb_sim_event event;
    struct crowd *crowd;
    uint32_t number;
};

// Nodes that pass travellers on and move their alarms, each by chance of its own; an event of no node looks at all.
struct crowd {
    struct alb_sim_queue queue;
    struct alb_prng prng[NODES];
    uint64_t log[NODES];
    struct traveller travellers[TRAVELLERS], alarms[NODES];
    uint64_t stop_at;
    bool has_sides; // odd nodes and even ones
};

static void note(struct crowd *crowd, uint32_t node, uint64_t what)
{
    crowd->log[node] = (crowd->log[node] ^ what) * 0x9e3779b97f4a7c15ull;
    crowd->log[node] ^= crowd->log[node] >> 29;
}

// Where it goes from there.
static uint32_t next_of(struct crowd *crowd, uint32_t node)
{
    uint32_t next = 1 + (uint32_t)alb_prng_below(&crowd->prng[node], NODES - 1);
    if (!crowd->has_sides || (node ^ next) & 1)
        return next;
    return next > 1 ? next - 1 : next + 1;
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
                                   next_of(crowd, node));
    if (alb_prng_below(prng, 4) == 0)
        alb_sim_queue_schedule(&crowd->queue, &crowd->alarms[node].event,
                               alb_prng_below(prng, 5) ? now + alb_prng_below(prng, 20) * 250 : ALB_SIM_NEVER);
    crowd->queue.is_stopped |= crowd->stop_at && now >= crowd->stop_at && !(crowd->has_sides && node & 1);
}

static void alarm_node(struct alb_sim_event *event, alb_sim_time now)
{
    struct traveller *alarm = ALB_CONTAINER_OF(event, struct traveller, event);
    assert_int_equal(alarm->crowd->queue.node, alarm->number);
    note(alarm->crowd, alarm->number, now);
}

// An event of no node sees what all have done before, and nothing of what they do now.
static void look_at_all(struct alb_sim_event *event, alb_sim_time now)
{
    struct traveller *outside = ALB_CONTAINER_OF(event, struct traveller, event);
    struct crowd *crowd = outside->crowd;
    struct alb_prng *prng = &crowd->prng[ALB_SIM_NO_NODE];
    assert_int_equal(crowd->queue.node, ALB_SIM_NO_NODE);
    for (uint32_t node = 1; node < NODES; node++)
        note(crowd, ALB_SIM_NO_NODE, crowd->log[node]);
    uint32_t node = 1 + (uint32_t)alb_prng_below(prng, NODES - 1);
    alb_sim_queue_schedule_for(&crowd->queue, &crowd->alarms[node].event, now + alb_prng_below(prng, 2), node);
    alb_sim_queue_schedule(&crowd->queue, event, now + alb_prng_below(prng, 30) * 500);
}

static struct crowd *crowd_new(bool by_node, bool has_sides, uint32_t travellers)
{
    struct crowd *crowd = calloc(1, sizeof(*crowd));
    uint8_t sides[NODES - 1];
    for (uint32_t i = 0; i < NODES - 1; i++)
        sides[i] = i % 2 == 0; // of node i + 1
    crowd->has_sides = has_sides;
    alb_sim_queue_init(&crowd->queue);
    alb_sim_queue_set_windows(&crowd->queue, LENGTH, NODES - 1, by_node, has_sides ? sides : NULL);
    for (uint32_t i = 0; i < NODES; i++) {
        alb_prng_init(&crowd->prng[i], i);
        crowd->alarms[i] = (struct traveller){.crowd = crowd, .number = i};
        alb_sim_event_init(&crowd->alarms[i].event, i == ALB_SIM_NO_NODE ? look_at_all : alarm_node);
    }
    for (uint32_t i = 0; i < travellers; i++) {
        crowd->travellers[i] = (struct traveller){.crowd = crowd, .number = i};
        alb_sim_event_init(&crowd->travellers[i].event, travel);
        alb_sim_queue_schedule_for(&crowd->queue, &crowd->travellers[i].event, i * 10, 1 + i % (NODES - 1));
    }
    alb_sim_queue_schedule(&crowd->queue, &crowd->alarms[ALB_SIM_NO_NODE].event, 700);
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

static void fire_once(struct alb_sim_event *event, alb_sim_time now)
{
}

static void windows__give_the_same_by_node_and_by_time(void **state)
{
    static const uint32_t travellers[] = {1, 3, TRAVELLERS}; // sorted as a whole, and dealt out
    for (uint32_t i = 0; i < 2 * ALB_COUNT(travellers); i++) {
        bool has_sides = i % 2;
        struct crowd *crowds[] = {crowd_new(true, has_sides, travellers[i / 2]),
                                  crowd_new(false, has_sides, travellers[i / 2])};
        for (alb_sim_time until = 0; until < ALB_SIM_NS(200); until += 777) {
            for (uint32_t c = 0; c < 2; c++) {
                while (alb_sim_queue_run(&crowds[c]->queue, until, 100))
                    assert_true(crowds[c]->queue.now <= until);
                alb_sim_queue_advance(&crowds[c]->queue, until);
            }
            assert_same(crowds[0], crowds[1]);
        }
        assert_true(crowds[0]->queue.fired > 100 * travellers[i / 2]);
        crowd_free(crowds[0]);
        crowd_free(crowds[1]);
    }
}

// Also where that was of no node.
static void windows__end_at_the_time_of_the_last_event(void **state)
{
    for (uint32_t by_node = 0; by_node < 2; by_node++) {
        struct crowd *crowd = crowd_new(by_node, false, 1);
        struct alb_sim_queue *queue = &crowd->queue;
        crowd->travellers[0].event.fire = crowd->alarms[ALB_SIM_NO_NODE].event.fire = fire_once;
        assert_false(alb_sim_queue_run(queue, ALB_SIM_NS(50), UINT64_MAX));
        assert_int_equal(queue->fired, 2);
        assert_int_equal(queue->now, 700);
        crowd_free(crowd);
    }
}

static uint64_t next_random(struct crowd *crowd)
{
    return alb_prng_u64(&crowd->prng[ALB_SIM_NO_NODE]);
}

// Whatever comes from outside then is still in time.
static void stop_and_go_on(bool has_sides, uint64_t stop_at, alb_sim_time overrun)
{
    struct crowd *crowds[] = {crowd_new(true, has_sides, TRAVELLERS), crowd_new(false, has_sides, TRAVELLERS)};
    for (uint32_t c = 0; c < 2; c++) {
        struct alb_sim_queue *queue = &crowds[c]->queue;
        crowds[c]->stop_at = stop_at;
        assert_true(alb_sim_queue_run(queue, ALB_SIM_S(1), UINT64_MAX));
        assert_true(queue->now >= stop_at && queue->now < stop_at + overrun);
        assert_true(alb_sim_queue_next_at(queue) >= queue->now);
    }
    assert_same(crowds[0], crowds[1]);
    for (uint32_t c = 0; c < 2; c++) {
        struct alb_sim_queue *queue = &crowds[c]->queue;
        crowds[c]->stop_at = 0;
        for (uint32_t node = 1; node < NODES; node++)
            alb_sim_queue_schedule_for(queue, &crowds[c]->alarms[node].event, queue->now + next_random(crowds[c]) % 500,
                                       node);
        assert_false(alb_sim_queue_run(queue, 20000, UINT64_MAX));
    }
    assert_same(crowds[0], crowds[1]);
    crowd_free(crowds[0]);
    crowd_free(crowds[1]);
}

static void windows__are_ended_by_a_stop(void **state)
{
    stop_and_go_on(false, 10250, 750);
    for (uint64_t stop_at = 9250; stop_at < 13000; stop_at += 250)
        stop_and_go_on(true, stop_at, 2 * LENGTH);
}

// Wherever a run ends that may fire so many events, and begins anew with what comes from outside.
static void windows__are_ended_by_enough_events(void **state)
{
    for (uint64_t enough = 1; enough < 3000; enough += 1 + enough / 2) {
        struct crowd *crowd = crowd_new(true, true, TRAVELLERS), *other = crowd_new(false, true, TRAVELLERS);
        while (alb_sim_queue_run(&crowd->queue, ALB_SIM_NS(50), enough))
            assert_true(alb_sim_queue_next_at(&crowd->queue) + LENGTH >= crowd->queue.now);
        alb_sim_queue_run(&other->queue, ALB_SIM_NS(50), UINT64_MAX);
        alb_sim_queue_advance(&crowd->queue, ALB_SIM_NS(50));
        alb_sim_queue_advance(&other->queue, ALB_SIM_NS(50));
        assert_same(crowd, other);
        crowd_free(crowd);
        crowd_free(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows__give_the_same_by_node_and_by_time),
        cmocka_unit_test(windows__end_at_the_time_of_the_last_event),
        cmocka_unit_test(windows__are_ended_by_a_stop),
        cmocka_unit_test(windows__are_ended_by_enough_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
