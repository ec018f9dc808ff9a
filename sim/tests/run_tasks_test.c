// SPDX-License-Identifier: BSD-2-Clause
#include "base/tests/test.h"
#include "small_run.h"

static struct small_run small;

// One that would end beyond the end of time never does, and what waits for its processor never begins.
static void alb_run_drain__calculations_beyond_the_end_of_time(void **state)
{
    char calculation[] = "num_ranks 1\nrank 0 {\ncalc 9223372036854775\n}\n";
    static const char text[] = "[network]\nhosts = 2\n"
                               "[workload a]\nkind = goal\nfile = map\n[workload b]\nkind = goal\nfile = map\n"
                               "[workload c]\nkind = goal\nfile = map\n";
    small_run_go_on(&small, text, calculation);
    assert_int_equal(small.run.end, ALB_RUN_STUCK);
    assert_int_equal(small.run.tasks_done, 1);
    assert_true(small.run.times[1].begun != ALB_SIM_NEVER && small.run.times[1].done == ALB_SIM_NEVER);
    assert_true(small.run.times[2].begun == ALB_SIM_NEVER);
    small_run_end(&small);
}

static void alb_run_drain__a_calculation_behind_a_late_message(void **state)
{
    char trace[] = "num_ranks 2\nrank 0 {\na: calc 6223372036854775\nb: send 100b to 1\nb requires a\n}\n"
                   "rank 1 {\nc: recv 100b from 0\nd: calc 3000000000000000\nd requires c\n}\n";
    static const char text[] = "[network]\nhosts = 2\n[workload a]\nkind = goal\nfile = map\n"
                               "[workload b]\nkind = goal\nfile = map\n";
    small_run_go_on(&small, text, trace);
    assert_int_equal(small.run.end, ALB_RUN_STUCK);
    assert_int_equal(small.run.tasks_done, 7); // all but the second one's last
    small_run_end(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_run_drain__calculations_beyond_the_end_of_time),
        cmocka_unit_test(alb_run_drain__a_calculation_behind_a_late_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
