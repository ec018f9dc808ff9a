// SPDX-License-Identifier: BSD-2-Clause
// Events of a day in their order, however many there are and however they come.
#include "base/prng.h"
#include "base/tests/test.h"
#include "sim/event_sort.h"

#include <stdlib.h>
#include <string.h>

enum {
    COUNT_MAX = 1500,
    ROUNDS = 400,
    SHAPES = 5,
};

enum shape {
    MIXED,
    SORTED,
    TURNED,  // runs that are sorted each, one after the other, as from several links
    SPREAD,  // over a window
    CROWDED, // at its ends
};

static alb_sim_time time_of(enum shape shape, uint32_t i, struct alb_prng *prng)
{
    switch (shape) {
    case SORTED:
        return i;
    case TURNED:
        return i % 20;
    case SPREAD:
        return 7000000 + alb_prng_below(prng, 1000000);
    case CROWDED:
        return 7000000 + alb_prng_below(prng, 2) * 1000000 - alb_prng_below(prng, 3);
    case MIXED:
        break;
    }
    return alb_prng_below(prng, 100);
}

static void draw(struct alb_sim_slot *slots, uint32_t count, struct alb_prng *prng, enum shape shape)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = 1 + (uint32_t)alb_prng_below(prng, 3);
        slots[i] = (struct alb_sim_slot){.at = time_of(shape, i, prng), .tie = i, .node = node};
    }
}

static void check(const struct alb_sim_slot *slots, uint32_t count, bool by_node)
{
    uint64_t ties = 0;
    for (uint32_t i = 0; i < count; i++)
        ties += slots[i].tie;
    assert_int_equal(ties, (uint64_t)count * (count - 1) / 2);
    for (uint32_t i = 1; i < count; i++)
        if (!alb_sim_slot_is_before(&slots[i - 1], &slots[i], by_node))
            fail_msg("%u of %u, %s", i, count, by_node ? "by node" : "by time");
}

static void sort__any_number_of_any_shape(void **state)
{
    struct alb_sim_slot *slots = malloc(COUNT_MAX * sizeof(*slots));
    struct alb_prng prng;
    assert_non_null(slots);
    alb_prng_init(&prng, 5);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t count = 1 + (uint32_t)alb_prng_below(&prng, round % 4 ? 100 : COUNT_MAX);
        draw(slots, count, &prng, (enum shape)(round % SHAPES));
        alb_sim_sort(slots, count, round % 2);
        check(slots, count, round % 2);
    }
    alb_sim_sort(slots, 0, false);
    free(slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sort__any_number_of_any_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
