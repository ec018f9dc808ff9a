// SPDX-License-Identifier: BSD-2-Clause
// Drawn scenarios: each is one, and a few of them are carried out to the last byte.
#include "base/tests/test.h"
#include "sim/draw.h"
#include "sim/goal.h"
#include "sim/sizes.h"
#include "small_run.h"

#include <string.h>

static void alb_draw_scenario__is_always_one(void **state)
{
    static struct alb_scenario scenario;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        static struct alb_drawn drawn, again;
        struct alb_document document;
        struct alb_complaint complaint = {0};
        alb_draw_scenario(seed, &drawn);
        alb_draw_scenario(seed, &again);
        assert_string_equal(drawn.text, again.text);
        assert_string_equal(drawn.sizes, again.sizes);
        assert_string_equal(drawn.trace, again.trace);
        if (!alb_document_parse(&document, "drawn", drawn.text, strlen(drawn.text), &complaint) ||
            !alb_scenario_read(&scenario, &document, NULL, ".", &complaint) ||
            !alb_scenario_keys_have_effect(&scenario, &document, NULL, &complaint))
            fail_msg("seed %u: %s", (unsigned)seed, complaint.text);
        alb_scenario_fini(&scenario);
        alb_document_fini(&document);
    }
}

// All kinds of what a scenario may say are drawn now and then.
static void alb_draw_scenario__reaches(void **state)
{
    static const char *const said[] = {
        "kind = poisson",     "sizes = search-", "kind = goal",       "unreliable = yes", "partial = ",
        "credit = shortest",  "[host 0..",       "receive_budget = ", "from -1 tag -1",   "irequires",
        "congestion = dcqcn", "loss = sleek",    "trim = yes",        "credits",          "kind = all-to-all-steps",
        "order = host",       "order = window",
    };
    static struct alb_drawn drawn;
    for (size_t i = 0; i < ALB_COUNT(said); i++) {
        uint64_t seed = 1;
        for (; seed <= 200; seed++) {
            alb_draw_scenario(seed, &drawn);
            if (strstr(drawn.text, said[i]) || strstr(drawn.trace, said[i]))
                break;
        }
        if (seed > 200)
            fail_msg("\"%s\" is never drawn", said[i]);
    }
}

// Data files alone, since a complaint about them comes later than one about the scenario.
static void alb_draw_trace__is_always_one(void **state)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        static char text[ALB_DRAW_TEXT_MAX];
        struct alb_complaint complaint = {0};
        struct alb_schedule schedule;
        struct alb_sizes sizes;
        struct alb_prng prng;
        alb_prng_init(&prng, seed);
        alb_draw_trace(&prng, 2 + (uint32_t)seed % 9, text);
        if (!alb_goal_parse(&schedule, "w", "drawn", text, strlen(text), &complaint))
            fail_msg("seed %u: %s\n%s", (unsigned)seed, complaint.text, text);
        alb_schedule_fini(&schedule);
        alb_draw_sizes(&prng, text);
        if (!alb_sizes_parse(&sizes, "drawn", text, strlen(text), &complaint))
            fail_msg("seed %u: %s\n%s", (unsigned)seed, complaint.text, text);
    }
}

static const char *verdict_of(const struct alb_run *run)
{
    for (uint32_t i = 0; i < run->schedule.task_count; i++)
        if (alb_run_task_failed(run, i) && !run->schedule.works[run->schedule.tasks[i].work].is_unreliable)
            return "a message failed";
    if (run->end != ALB_RUN_DONE)
        return "it does not end";
    return run->is_at_rest ? run->violation : "it does not come to rest";
}

static void alb_draw_scenario__is_done_to_the_last_byte(void **state)
{
    static struct small_run small;
    static struct alb_drawn drawn;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        alb_draw_scenario(seed, &drawn);
        small_run_go_with(&small, &drawn);
        if (verdict_of(&small.run)[0])
            fail_msg("seed %u: %s", (unsigned)seed, verdict_of(&small.run));
        small_run_end(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_draw_scenario__is_always_one),
        cmocka_unit_test(alb_draw_scenario__reaches),
        cmocka_unit_test(alb_draw_trace__is_always_one),
        cmocka_unit_test(alb_draw_scenario__is_done_to_the_last_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
