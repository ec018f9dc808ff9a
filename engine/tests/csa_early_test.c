// SPDX-License-Identifier: BSD-2-Clause
// What waits for its turn: in the order of PSNs, whatever the order in which it comes, and found in few steps.
#include "engine/tests/csa_pair.h"

#include "base/prng.h"

#include <stdlib.h>

enum {
    WINDOW = 4096,
    STEPS_MAX = 64 + WINDOW / 64 + 2,
};

static void configure(struct alb_engine_config *config)
{
    config->csa_window_segments = WINDOW;
    config->csa_pool_bytes = 4 << 20;
    config->csa_early_bytes_max = 4 << 20;
}

static struct csa_pair *new_pair(void)
{
    struct csa_pair *c = csa_pair_new(configure, NULL);
    csa_pair_greet(c); // offset 0 is used
    return c;
}

static struct alb_stream_in *in_of(struct csa_pair *c)
{
    return &c->csa[1]->in_requests;
}

// A message of one segment comes at that distance from what is next; returns the steps that its place took.
static uint32_t come(struct csa_pair *c, uint32_t distance)
{
    struct alb_stream_in *in = in_of(c);
    int32_t offset = alb_psn_diff(alb_psn_add(in->cumulative, (int32_t)distance), csa_pair_psn(0));
    struct alb_csa_segment segment = csa_pair_write(c, 0, offset, 0, 8, 8, ALB_CSA_LAST);
    uint32_t steps = 0;
    alb_early_place(in, segment.psn, &steps);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    return steps;
}

static void expect_order(struct csa_pair *c, uint32_t count)
{
    struct alb_stream_in *in = in_of(c);
    uint32_t found = 0;
    ALB_LIST_FOR_EACH (&in->early, node) {
        struct alb_early *early = ALB_LIST_ENTRY(node, struct alb_early, link);
        if (node->next != &in->early)
            assert_true(
                alb_psn_is_before(early->segment.psn, ALB_LIST_ENTRY(node->next, struct alb_early, link)->segment.psn));
        found++;
    }
    assert_int_equal(found, count);
}

// What is next comes, and all is executed.
static void expect_end(struct csa_pair *c, uint32_t past)
{
    struct alb_stream_in *in = in_of(c);
    alb_psn end = alb_psn_add(in->cumulative, (int32_t)past);
    come(c, 0);
    assert_int_equal(in->cumulative, end);
    assert_true(alb_list_is_empty(&in->early));
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
    assert_ptr_equal(in->held, in->own);
}

static void place__the_newest_takes_one_step(void **state)
{
    struct csa_pair *c = new_pair();
    for (uint32_t i = 1; i < WINDOW; i++)
        assert_int_equal(come(c, i), 1);
    expect_order(c, WINDOW - 1);
    expect_end(c, WINDOW);
    csa_pair_free(c);
}

static void place__the_oldest_takes_two_steps(void **state)
{
    struct csa_pair *c = new_pair();
    come(c, WINDOW - 1);
    for (uint32_t i = WINDOW - 2; i > 0; i--)
        assert_int_equal(come(c, i), 2);
    expect_order(c, WINDOW - 1);
    expect_end(c, WINDOW);
    csa_pair_free(c);
}

// First each n-th, then those between them, from behind: the worst case for a group that remembers its last one.
static void place__is_bounded(void **state)
{
    static const uint32_t strides[] = {2, 3, 63, 64, 65, 128, 1000};
    struct csa_pair *c = new_pair();
    for (size_t s = 0; s < ALB_COUNT(strides); s++) {
        uint32_t stride = strides[s], count = 0;
        for (uint32_t i = stride; i < WINDOW; i += stride, count++)
            assert_in_range(come(c, i), 1, STEPS_MAX);
        for (uint32_t i = WINDOW - 1; i > 0; i--)
            if (i % stride != 0) {
                assert_in_range(come(c, i), 1, STEPS_MAX);
                count++;
            }
        expect_order(c, count);
        expect_end(c, count + 1);
    }
    csa_pair_free(c);
}

static void shuffle(uint32_t *order, uint32_t count, struct alb_prng *prng)
{
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t other = (uint32_t)alb_prng_below(prng, i + 1), saved = order[i];
        order[i] = order[other];
        order[other] = saved;
    }
}

// In any order, with a window that begins anywhere in a group, and grows while it fills.
static void place__in_any_order(void **state)
{
    struct csa_pair *c = new_pair();
    struct alb_prng prng;
    alb_prng_init(&prng, 7);
    for (uint32_t round = 0; round < 40; round++) {
        uint32_t count = 2 + (uint32_t)alb_prng_below(&prng, round % 4 == 0 ? WINDOW - 1 : 300);
        uint32_t order[WINDOW];
        for (uint32_t i = 0; i < count; i++)
            order[i] = i + 1;
        shuffle(order, count - 1, &prng);
        for (uint32_t i = 0; i < count - 1; i++) {
            assert_in_range(come(c, order[i]), 1, STEPS_MAX);
            if (i % 64 == 0)
                expect_order(c, i + 1);
        }
        expect_order(c, count - 1);
        expect_end(c, count);
    }
    csa_pair_free(c);
}

static void keep_half(struct alb_engine_config *config)
{
    config->csa_pool_bytes = 256 << 10;
    config->csa_early_bytes_max = 128 << 10;
}

// Of blocks that are hardly more than half full.
static void keep__whole_blocks_count(void **state)
{
    struct csa_pair *c = csa_pair_new(keep_half, NULL);
    const struct alb_buddy *pool = &c->engines[1]->csa->pool;
    const uint32_t bytes = 1025 - sizeof(struct alb_early);
    csa_pair_greet(c);
    size_t before = alb_buddy_used(pool) + alb_buddy_block_bytes(alb_early_bitmap_bytes(CSA_PAIR_WINDOW));
    for (int32_t i = 2; i < CSA_PAIR_WINDOW; i++) {
        struct alb_csa_segment segment = csa_pair_write(c, 0, i, 0, bytes, bytes, ALB_CSA_LAST);
        csa_pair_arrive_segment(c, 0, &segment, 1);
    }
    assert_in_range(csa_pair_drops(c, 1, ALB_DROP_NO_RESOURCES), 1, CSA_PAIR_WINDOW / 2);
    assert_true(alb_buddy_used(pool) <= before + (128 << 10));
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 128 << 10);
    come(c, 0);
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
    csa_pair_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place__the_newest_takes_one_step),
        cmocka_unit_test(place__the_oldest_takes_two_steps),
        cmocka_unit_test(place__is_bounded),
        cmocka_unit_test(place__in_any_order),
        cmocka_unit_test(keep__whole_blocks_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
