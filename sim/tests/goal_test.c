// SPDX-License-Identifier: BSD-2-Clause
// Traces: what is understood, and that what is not is said with its line and what was expected.
#include "base/tests/test.h"
#include "sim/goal.h"

#include <string.h>

static void alb_goal_parse__operations_and_what_they_require(void **state)
{
    static const char text[] = "// a trace\n"
                               "num_ranks 3\n"
                               "\n"
                               "rank 0 { /* the\n first */\n"
                               "l2 requires l1\n"
                               "l1: calc 1500 cpu 2\n"
                               "l2 : send 4096b to 1 tag 7 nic 0\n"
                               "l2 irequires l3\n"
                               "l3: recv 8 b from 2\r\n"
                               "}\n"
                               "rank 2 {\n"
                               "send 8b to 0\n"
                               "}\n"
                               "rank 1 {\n"
                               "recv 4096b from 0 tag 7\n"
                               "}";
    struct alb_schedule schedule;
    struct alb_complaint complaint = {0};
    if (!alb_goal_parse(&schedule, "t", "f", text, strlen(text), &complaint))
        fail_msg("%s", complaint.text);
    assert_int_equal(schedule.rank_count, 3);
    assert_int_equal(schedule.task_count, 5);
    const struct alb_task *tasks = schedule.tasks;
    assert_true(tasks[0].kind == ALB_TASK_CALC && tasks[0].at == ALB_SIM_NS(1500) && tasks[0].tag == 2);
    assert_true(tasks[1].kind == ALB_TASK_SEND && tasks[1].bytes == 4096 && tasks[1].peer == 1 && tasks[1].tag == 7);
    assert_true(tasks[2].kind == ALB_TASK_RECV && tasks[2].bytes == 8 && tasks[2].peer == 2 && tasks[2].tag == 0);
    assert_int_equal(tasks[1].waits, 2);
    assert_int_equal(tasks[1].line, 8);
    assert_int_equal(tasks[1].matched, 4);
    assert_int_equal(tasks[2].matched, 3);
    assert_true(schedule.edges[schedule.first_edge[2]].at_start);
    assert_string_equal(schedule.works[0].name, "t");
    alb_schedule_fini(&schedule);
}

// An iteration of training calculates for seconds.
static void alb_goal_parse__long_calculations(void **state)
{
    static const char text[] = "num_ranks 1\nrank 0 {\ncalc 3600000000000\ncalc 9000000000\n}\n";
    struct alb_schedule schedule;
    struct alb_complaint complaint = {0};
    assert_true(alb_goal_parse(&schedule, "t", "f", text, strlen(text), &complaint));
    assert_true(schedule.tasks[0].at == ALB_SIM_NS(3600000000000) && schedule.tasks[1].at == ALB_SIM_NS(9000000000));
    alb_schedule_fini(&schedule);
}

static void alb_goal_parse__any_rank_and_tag(void **state)
{
    static const char text[] = "num_ranks 2\nrank 0 {\nrecv 8b from -1 tag -1\n}\nrank 1 {\nsend 8b to 0 tag 3\n}\n";
    struct alb_schedule schedule;
    struct alb_complaint complaint = {0};
    assert_true(alb_goal_parse(&schedule, "t", "f", text, strlen(text), &complaint));
    assert_int_equal(schedule.tasks[0].peer, ALB_TASK_ANY);
    assert_int_equal(schedule.tasks[0].tag, ALB_TASK_ANY);
    alb_schedule_fini(&schedule);
}

static void alb_goal_parse__says_where_and_what_was_expected(void **state)
{
    static const struct {
        const char *text, *complaint;
    } bad[] = {
        {"", "f:1: expected \"num_ranks N\""},
        {"rank 0 {\n}", "f:1: expected \"num_ranks N\" before any rank"},
        {"num_ranks 0", "f:1: expected one rank at least"},
        {"num_ranks x", "f:1: found \"x\"; expected how many ranks there are, a whole number up to 1048576"},
        {"num_ranks 2\nnum_ranks 2", "f:2: expected \"num_ranks\" once"},
        {"num_ranks 2\nrank 2 {\n}", "f:2: found \"2\"; expected a rank, a whole number up to 1"},
        {"num_ranks 2\nrank 1 {\n}\nrank 1 {\n}", "f:4: rank 1 is there already; expected each once"},
        {"num_ranks 2\nrank 1 {\n\n", "f:4: rank 1, which begins in line 2, has no end; expected \"}\""},
        {"num_ranks 2\nrank 1 {\nsend 5b to 7\n}", "f:3: found \"7\"; expected a rank, a whole number up to 1"},
        {"num_ranks 2\nrank 1 {\nsend 5b to 1\n}", "f:3: rank 1 speaks to itself; expected another rank up to 1"},
        {"num_ranks 2\nrank 1 {\nsend 5b to -1\n}", "f:3: found \"-1\"; expected a rank, a whole number up to 1"},
        {"num_ranks 2\nrank 1 {\nsend 5 to 0\n}", "f:3: found \"to\"; expected \"b\""},
        {"num_ranks 2\nrank 1 {\nsend\n}", "f:3: the line ends; expected a size such as 4096b, below 2 GiB"},
        {"num_ranks 2\nrank 1 {\nsend 99999999999b to 0\n}",
         "f:3: found \"99999999999b\"; expected a size such as 4096b, below 2 GiB"},
        {"num_ranks 2\nrank 1 {\nl1: wait 5\n}", "f:3: found \"wait\"; expected \"send\", \"recv\" or \"calc\""},
        {"num_ranks 2\nrank 1 {\nl1 needs l2\n}",
         "f:3: found \"needs\"; expected \":\", \"requires\" or \"irequires\" behind a label"},
        {"num_ranks 2\nrank 1 {\nl1: calc 5\nl1 requires l2\n}",
         "f:4: rank 1 has no operation \"l2\"; expected the label of one"},
        {"num_ranks 2\nrank 1 {\nl1: calc 5\nl1: calc 5\n}",
         "f:4: label \"l1\" is there already, in line 3; expected each once in a rank"},
        {"num_ranks 2\nrank 1 {\ncalc 5 nic 1\n}", "f:3: found \"1\"; expected a network interface, of which hosts "
                                                   "have one, a whole number up to 0"},
        {"num_ranks 2\nrank 1 {\ncalc 5 tag 1\n}", "f:3: found \"tag\"; expected \"cpu\", \"nic\" or the end of the "
                                                   "line"},
        {"num_ranks 2\nrank 0 {\nrecv 5b from 1\n}", "f:3: rank 0 receives from rank 1 with tag 0, which has no such "
                                                     "send; expected as many sends as receipts"},
        {"num_ranks 2\nrank 1 {\nsend 5b to 0\n}\nrank 0 {\nrecv 6b from 1\n}",
         "f:3: rank 1 sends 5 bytes to rank 0, whose receipt in line 6 is of 6; expected one size for both"},
        {"num_ranks 2\nrank 1 {\nsend 5b to 0\n}", "f:3: rank 1 sends to rank 0 with tag 0, which has no such "
                                                   "receipt; expected as many sends as receipts"},
        {"num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}",
         "f:4: a calculation of rank 0 waits for itself in a cycle; expected an order in which all can be done"},
        {"num_ranks 1\nrank 0 {\na: calc 9223372036854000\nb: calc 776\n}",
         "f:4: found \"776\"; expected nanoseconds, of all calculations together, a whole number up to 775"},
        {"num_ranks 1 /* no end\n", "f:1: a comment has no end; expected \"*/\""},
        {"num_ranks 1\nrank 0 {\n\001\n}",
         "f:3: found no plain letter; expected a label: a letter, then letters, digits or \"_\", 31 at most"},
    };
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        struct alb_schedule schedule;
        struct alb_complaint complaint = {0};
        assert_false(alb_goal_parse(&schedule, "t", "f", bad[i].text, strlen(bad[i].text), &complaint));
        assert_string_equal(complaint.text, bad[i].complaint);
        assert_null(schedule.tasks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_goal_parse__operations_and_what_they_require),
        cmocka_unit_test(alb_goal_parse__long_calculations),
        cmocka_unit_test(alb_goal_parse__any_rank_and_tag),
        cmocka_unit_test(alb_goal_parse__says_where_and_what_was_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
