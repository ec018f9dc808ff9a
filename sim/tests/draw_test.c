// SPDX-License-Identifier: BSD-2-Clause
// Drawn scenarios: each is one, and a few of them are carried out to the last byte.
#include "base/tests/test.h"
#include "sim/draw.h"
#include "small_run.h"

#include <string.h>

static void alb_draw_scenario__is_always_one(void **state)
{
    static struct alb_scenario scenario;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        char text[ALB_DRAW_TEXT_MAX], again[ALB_DRAW_TEXT_MAX];
        struct alb_document document;
        struct alb_complaint complaint = {0};
        alb_draw_scenario(seed, text);
        alb_draw_scenario(seed, again);
        assert_string_equal(text, again);
        if (!alb_document_parse(&document, "drawn", text, strlen(text), &complaint) ||
            !alb_scenario_read(&scenario, &document, NULL, ".", &complaint))
            fail_msg("seed %u: %s", (unsigned)seed, complaint.text);
        alb_scenario_fini(&scenario);
        alb_document_fini(&document);
    }
}

static void alb_draw_scenario__is_done_to_the_last_byte(void **state)
{
    static struct small_run small;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        char text[ALB_DRAW_TEXT_MAX];
        alb_draw_scenario(seed, text);
        small_run_go(&small, text, false);
        if (small.run.end != ALB_RUN_DONE || small.run.tasks_failed || small.run.violation[0])
            fail_msg("seed %u: ended as %d, %u failed, %s", (unsigned)seed, small.run.end,
                     (unsigned)small.run.tasks_failed, small.run.violation);
        small_run_end(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_draw_scenario__is_always_one),
        cmocka_unit_test(alb_draw_scenario__is_done_to_the_last_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
