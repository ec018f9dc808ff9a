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

// ---- queues ---------------------------------------------------------------------------------------------------------

static uint64_t sum_of(enum alb_stat stat)
{
    uint64_t sum = 0;
    for (uint32_t host = 0; host < small.run.topology.host_count; host++)
        sum += alb_cluster_host_stats(small.run.cluster, host)->sum.counter[stat];
    return sum;
}

#define INCAST_OF_SENDS                                   \
    "[network]\nhosts = 101\n[switch]\nport_buffer = 0\n" \
    "[workload]\nkind = incast\nhosts = 0..99\nto = 100\nsize = 20000\nop = send\n"

static void alb_run_go__a_receive_for_every_message_under_way(void **state)
{
    small_run_go(&small, INCAST_OF_SENDS "[host]\ntransport = rc\ncongestion = none\n", false);
    assert_int_equal(sum_of(ALB_STAT_send_rnr_err), 0);
    small_run_end(&small);
    small_run_go(&small, INCAST_OF_SENDS "unreliable = yes\n[host]\ntransport = rc\ncongestion = none\n", false);
    assert_int_equal(small.run.tasks_failed, 0);
    small_run_end(&small);
}

static void alb_run_go__fewer_receives_than_messages(void **state)
{
    small_run_go(&small, INCAST_OF_SENDS "[host]\ntransport = rc\ncongestion = none\nreceives = 20\n", false);
    assert_int_equal(small.run.tasks_failed, 0);
    assert_true(sum_of(ALB_STAT_send_rnr_err) > 0);
    small_run_end(&small);
}

static void alb_run_go__a_send_queue_as_deep_as_depth(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 2\ndelay = 1ms\n[host]\ntransport = rc\ncongestion = none\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 64\nmessages = 1000\ndepth = 1000\n",
                 false);
    assert_true(alb_run_time(&small.run) < ALB_SIM_MS(5)); // all within one round trip
    small_run_end(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_run_drain__calculations_beyond_the_end_of_time),
        cmocka_unit_test(alb_run_drain__a_calculation_behind_a_late_message),
        cmocka_unit_test(alb_run_go__a_receive_for_every_message_under_way),
        cmocka_unit_test(alb_run_go__fewer_receives_than_messages),
        cmocka_unit_test(alb_run_go__a_send_queue_as_deep_as_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
