// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

// A source that has some bursts to give, and writes down whenever it is asked.
struct giver {
    struct alb_source source;
    char name;
    int left;
    int full_at; // asked with that many left, the batch is full
    struct alb_list *elsewhere;
    bool wakes_itself;
};

static struct alb_scheduler scheduler;
static char asked[64];

static enum alb_build_result build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    struct giver *giver = ALB_CONTAINER_OF(source, struct giver, source);
    size_t length = strlen(asked);
    assert_true(length + 1 < sizeof(asked));
    assert_int_equal(now, 42);
    asked[length] = giver->name;
    if (giver->left == giver->full_at) {
        giver->full_at = -1;
        return ALB_BUILD_FULL;
    }
    if (giver->elsewhere)
        alb_list_push_back(giver->elsewhere, &source->link);
    if (giver->wakes_itself) {
        giver->wakes_itself = false;
        alb_scheduler_wake(&scheduler, source);
        return ALB_BUILD_IDLE;
    }
    return --giver->left > 0 ? ALB_BUILD_MORE : ALB_BUILD_IDLE;
}

static struct giver giver_of(char name, int left)
{
    return (struct giver){.name = name, .left = left, .full_at = -1};
}

static void start(struct giver *givers, int count)
{
    memset(asked, 0, sizeof(asked));
    alb_scheduler_init(&scheduler, 1);
    for (int i = 0; i < count; i++)
        alb_source_init(&givers[i].source, build);
}

static void scheduler_run__takes_turns(void **state)
{
    struct giver g[] = {giver_of('a', 3), giver_of('b', 1), giver_of('c', 2)};
    start(g, 3);
    assert_true(alb_scheduler_is_idle(&scheduler));
    for (int i = 0; i < 3; i++)
        alb_scheduler_wake(&scheduler, &g[i].source);
    assert_false(alb_scheduler_is_idle(&scheduler));
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_string_equal(asked, "abcaca");
    assert_true(alb_scheduler_is_idle(&scheduler));
}

// Of those at the head of the line; what has no time of its own goes before what has.
static void scheduler_run__compares_when_they_are_due(void **state)
{
    struct giver g[] = {giver_of('a', 2), giver_of('b', 1), giver_of('c', 1), giver_of('d', 1)};
    start(g, 4);
    scheduler.compared = 3;
    for (int i = 0; i < 4; i++) {
        g[i].source.due = (alb_time)(i < 2 ? 30 - i : i == 2 ? 40 : 0);
        alb_scheduler_wake(&scheduler, &g[i].source);
    }
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_string_equal(asked, "bdaac"); // d was not among the first three at first
}

static void scheduler_run__full_keeps_its_place(void **state)
{
    struct giver g[] = {giver_of('a', 2), giver_of('b', 2)};
    start(g, 2);
    g[1].full_at = 2;
    alb_scheduler_wake(&scheduler, &g[0].source);
    alb_scheduler_wake(&scheduler, &g[1].source);
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_string_equal(asked, "ab");
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_string_equal(asked, "abbab");
}

static void scheduler_wake__twice_is_once(void **state)
{
    struct giver g[] = {giver_of('a', 1), giver_of('b', 1)};
    start(g, 2);
    alb_scheduler_wake(&scheduler, &g[0].source);
    alb_scheduler_wake(&scheduler, &g[1].source);
    alb_scheduler_wake(&scheduler, &g[0].source);
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_string_equal(asked, "ab");
}

static void scheduler_wake__while_building_counts(void **state)
{
    struct giver g[] = {giver_of('a', 1)};
    start(g, 1);
    g[0].wakes_itself = true;
    alb_scheduler_wake(&scheduler, &g[0].source);
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_string_equal(asked, "aa");
}

static void scheduler_wake__calls_back_one_that_waits_elsewhere(void **state)
{
    struct giver g[] = {giver_of('a', 1)};
    struct alb_list elsewhere;
    alb_list_init(&elsewhere);
    start(g, 1);
    g[0].elsewhere = &elsewhere;
    alb_scheduler_wake(&scheduler, &g[0].source);
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_ptr_equal(elsewhere.next, &g[0].source.link);
    assert_true(alb_scheduler_is_idle(&scheduler));
    alb_scheduler_wake(&scheduler, &g[0].source);
    assert_true(alb_list_is_empty(&elsewhere));
    assert_false(alb_scheduler_is_idle(&scheduler));
}

static void scheduler_wake_first__stands_before_the_others(void **state)
{
    struct giver g[] = {giver_of('a', 1), giver_of('b', 1), giver_of('c', 1), giver_of('d', 1)};
    start(g, 4);
    for (int i = 0; i < 3; i++)
        alb_scheduler_wake(&scheduler, &g[i].source);
    alb_scheduler_wake_first(&scheduler, &g[2].source); // it stands in the line already
    alb_scheduler_wake_first(&scheduler, &g[3].source);
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_string_equal(asked, "dcab");
}

static void scheduler_remove__takes_it_out_of_any_line(void **state)
{
    struct giver g[] = {giver_of('a', 1), giver_of('b', 1)};
    struct alb_list elsewhere;
    alb_list_init(&elsewhere);
    start(g, 2);
    alb_scheduler_remove(&g[0].source);
    alb_scheduler_wake(&scheduler, &g[0].source);
    alb_scheduler_wake(&scheduler, &g[1].source);
    alb_scheduler_remove(&g[0].source);
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_string_equal(asked, "b");
    alb_list_push_back(&elsewhere, &g[0].source.link);
    alb_scheduler_remove(&g[0].source);
    assert_true(alb_list_is_empty(&elsewhere));
    alb_scheduler_wake(&scheduler, &g[0].source);
    alb_scheduler_run(&scheduler, NULL, 42);
    assert_string_equal(asked, "ba");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scheduler_run__takes_turns),
        cmocka_unit_test(scheduler_run__compares_when_they_are_due),
        cmocka_unit_test(scheduler_run__full_keeps_its_place),
        cmocka_unit_test(scheduler_wake__twice_is_once),
        cmocka_unit_test(scheduler_wake__while_building_counts),
        cmocka_unit_test(scheduler_wake__calls_back_one_that_waits_elsewhere),
        cmocka_unit_test(scheduler_wake_first__stands_before_the_others),
        cmocka_unit_test(scheduler_remove__takes_it_out_of_any_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
