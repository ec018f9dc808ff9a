// SPDX-License-Identifier: BSD-2-Clause
// Pages of a calendar give back what was put into them, whatever was removed in between.
#include "base/prng.h"
#include "base/tests/test.h"
#include "sim/event_pages.h"

#include <stdlib.h>

enum {
    EVENTS = 600,
    STEPS = 20000,
    PAGES = 5,
    NONE = UINT32_MAX,
};

// The last one is the calendar's last, too.
static const uint32_t numbers[PAGES] = {0, 63, 64, 4000, ALB_SIM_DAYS - 1};

struct box {
    struct alb_sim_pages pages;
    struct alb_sim_event events[EVENTS];
    uint32_t page_of[EVENTS]; // index into numbers; NONE
};

static struct box *box_new(void)
{
    struct box *box = calloc(1, sizeof(*box));
    assert_non_null(box);
    alb_sim_pages_init(&box->pages);
    for (uint32_t i = 0; i < EVENTS; i++) {
        alb_sim_event_init(&box->events[i], NULL);
        box->page_of[i] = NONE;
    }
    return box;
}

static void box_free(struct box *box)
{
    alb_sim_pages_fini(&box->pages);
    free(box);
}

static void put(struct box *box, uint32_t event, uint32_t page)
{
    alb_sim_page_put(&box->pages, numbers[page], &box->events[event], 1000 + event, event, 1);
    box->page_of[event] = page;
    assert_int_equal(box->events[event].keeper, numbers[page]);
}

static uint32_t count_in(const struct box *box, uint32_t page, uint32_t *first)
{
    uint32_t count = 0;
    for (uint32_t i = EVENTS; i-- > 0;)
        if (box->page_of[i] == page) {
            count++;
            *first = i;
        }
    return count;
}

static void check_page(const struct box *box, uint32_t page)
{
    uint32_t first = NONE, count = count_in(box, page, &first);
    assert_int_equal(box->pages.page[numbers[page]].count, count);
    if (count > 0) {
        assert_int_equal(alb_sim_page_earliest(&box->pages, numbers[page]), 1000 + first);
        assert_int_equal(alb_sim_pages_next(&box->pages, numbers[page]), numbers[page]);
        alb_sim_page_fetch(&box->pages, numbers[page]);
    }
}

static void take(struct box *box, uint32_t page)
{
    struct alb_sim_slot slots[EVENTS];
    uint32_t first, count = count_in(box, page, &first);
    if (count == 0)
        return;
    alb_sim_page_take(&box->pages, numbers[page], slots);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t event = (uint32_t)slots[i].tie;
        assert_int_equal(box->page_of[event], page);
        assert_int_equal(slots[i].at, 1000 + event);
        box->page_of[event] = NONE;
    }
    assert_int_equal(box->pages.page[numbers[page]].count, 0);
}

static void page__gives_back_what_was_put(void **state)
{
    struct box *box = box_new();
    struct alb_prng prng;
    alb_prng_init(&prng, 3);
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t event = (uint32_t)alb_prng_below(&prng, EVENTS), page = (uint32_t)alb_prng_below(&prng, PAGES);
        uint64_t scheduled = box->pages.count;
        if (box->page_of[event] == NONE) {
            put(box, event, page);
            assert_int_equal(box->pages.count, scheduled + 1);
        } else {
            page = box->page_of[event];
            alb_sim_page_remove(&box->pages, numbers[page], box->events[event].place);
            box->page_of[event] = NONE;
            assert_int_equal(box->events[event].place, ALB_SIM_UNSCHEDULED);
            assert_int_equal(box->pages.count, scheduled - 1);
        }
        check_page(box, page);
        if (step % 500 == 499)
            take(box, page);
    }
    for (uint32_t page = 0; page < PAGES; page++)
        take(box, page);
    assert_int_equal(box->pages.count, 0);
    box_free(box);
}

static void pages_next__in_turn(void **state)
{
    struct box *box = box_new();
    put(box, 0, 2);
    assert_int_equal(alb_sim_pages_next(&box->pages, 0), 64);
    assert_int_equal(alb_sim_pages_next(&box->pages, 64), 64);
    assert_int_equal(alb_sim_pages_next(&box->pages, 65), 64);
    put(box, 1, 4);
    assert_int_equal(alb_sim_pages_next(&box->pages, 65), ALB_SIM_DAYS - 1);
    put(box, 2, 0);
    alb_sim_page_remove(&box->pages, ALB_SIM_DAYS - 1, box->events[1].place);
    assert_int_equal(alb_sim_pages_next(&box->pages, 65), 0);
    box_free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page__gives_back_what_was_put),
        cmocka_unit_test(pages_next__in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
