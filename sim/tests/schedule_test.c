// SPDX-License-Identifier: BSD-2-Clause
// Schedules: what is matched, what waits for what, and that what can't end is refused with its line.
#include "base/tests/test.h"
#include "sim/schedule.h"

static void seal(struct alb_schedule *schedule)
{
    struct alb_complaint complaint = {0};
    if (!alb_schedule_seal(schedule, "f", &complaint))
        fail_msg("%s", complaint.text);
}

static void alb_schedule_seal__matches_in_order(void **state)
{
    struct alb_schedule schedule;
    alb_schedule_init(&schedule, 3);
    alb_schedule_begin(&schedule, "a");
    uint32_t late = alb_schedule_send(&schedule, 0, 1, 10, 5, 0);
    uint32_t later = alb_schedule_send(&schedule, 0, 1, 20, 5, 0);
    uint32_t other = alb_schedule_send(&schedule, 0, 1, 30, 4, 0);
    uint32_t unheard = alb_schedule_send(&schedule, 2, 1, 30, ALB_TASK_UNHEARD, 0);
    uint32_t a = alb_schedule_recv(&schedule, 1, 0, 30, 4);
    uint32_t b = alb_schedule_recv(&schedule, 1, 0, 10, 5);
    uint32_t c = alb_schedule_recv(&schedule, 1, 0, 20, 5);
    alb_schedule_begin(&schedule, "b"); // the same ranks and tag, apart
    uint32_t send = alb_schedule_send(&schedule, 0, 1, 10, 5, 0);
    uint32_t recv = alb_schedule_recv(&schedule, 1, 0, 10, 5);
    alb_schedule_require(&schedule, send, late, false);
    alb_schedule_require(&schedule, send, other, true);
    alb_schedule_require(&schedule, later, other, true);
    seal(&schedule);
    assert_int_equal(schedule.tasks[late].matched, b);
    assert_int_equal(schedule.tasks[later].matched, c);
    assert_int_equal(schedule.tasks[other].matched, a);
    assert_int_equal(schedule.tasks[c].matched, later);
    assert_int_equal(schedule.tasks[send].matched, recv);
    assert_int_equal(schedule.tasks[unheard].matched, ALB_TASK_NONE);
    assert_int_equal(schedule.tasks[send].waits, 2);
    assert_int_equal(schedule.first_edge[other + 1] - schedule.first_edge[other], 2);
    assert_int_equal(schedule.edges[schedule.first_edge[other]].to, send);
    assert_true(schedule.edges[schedule.first_edge[other]].at_start);
    assert_int_equal(schedule.first_edge[schedule.task_count], 3);
    assert_int_equal(schedule.works[0].task_count, 7);
    alb_schedule_fini(&schedule);
}

static void assert_refused(struct alb_schedule *schedule, const char *expected)
{
    struct alb_complaint complaint = {0};
    assert_false(alb_schedule_seal(schedule, "f", &complaint));
    assert_string_equal(complaint.text, expected);
    alb_schedule_fini(schedule);
}

static void alb_schedule_seal__refuses_what_is_not_matched(void **state)
{
    struct alb_schedule schedule;
    alb_schedule_init(&schedule, 3);
    alb_schedule_begin(&schedule, "a");
    uint32_t send = alb_schedule_send(&schedule, 0, 1, 10, 5, 0);
    schedule.tasks[send].line = 7;
    assert_refused(&schedule, "f:7: rank 0 sends to rank 1 with tag 5, which has no such receipt; expected as many "
                              "sends as receipts");
    alb_schedule_init(&schedule, 3);
    alb_schedule_begin(&schedule, "a");
    alb_schedule_send(&schedule, 0, 1, 10, 5, 0);
    alb_schedule_recv(&schedule, 1, 0, 10, 5);
    uint32_t recv = alb_schedule_recv(&schedule, 1, 0, 10, 5);
    schedule.tasks[recv].line = 9;
    assert_refused(&schedule, "f:9: rank 1 receives from rank 0 with tag 5, which has no such send; expected as many "
                              "sends as receipts");
}

static void alb_schedule_seal__refuses_a_cycle(void **state)
{
    struct alb_schedule schedule;
    alb_schedule_init(&schedule, 2);
    alb_schedule_begin(&schedule, "a");
    uint32_t first = alb_schedule_calc(&schedule, 0, 1, 0), second = alb_schedule_calc(&schedule, 0, 1, 0);
    uint32_t third = alb_schedule_calc(&schedule, 0, 1, 0);
    schedule.tasks[second].line = schedule.tasks[first].line = 3;
    schedule.tasks[third].line = 8; // behind the cycle, not on it
    alb_schedule_require(&schedule, first, second, true);
    alb_schedule_require(&schedule, second, first, false);
    alb_schedule_require(&schedule, third, second, false);
    assert_refused(&schedule, "f:3: a calculation of rank 0 waits for itself in a cycle; expected an order in which "
                              "all can be done");
}

// Receipts that are posted before what they exchange is sent, on both sides.
static void alb_schedule_seal__takes_what_waits_for_a_receipt_to_begin(void **state)
{
    struct alb_schedule schedule;
    alb_schedule_init(&schedule, 2);
    alb_schedule_begin(&schedule, "a");
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t recv = alb_schedule_recv(&schedule, rank, 1 - rank, 10, 0);
        alb_schedule_require(&schedule, alb_schedule_send(&schedule, rank, 1 - rank, 10, 0, 0), recv, true);
    }
    seal(&schedule);
    alb_schedule_fini(&schedule);
}

// Two ranks that each receive before they send.
static void alb_schedule_seal__refuses_a_cycle_through_messages(void **state)
{
    struct alb_schedule schedule;
    alb_schedule_init(&schedule, 2);
    alb_schedule_begin(&schedule, "a");
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t recv = alb_schedule_recv(&schedule, rank, 1 - rank, 10, 0);
        uint32_t send = alb_schedule_send(&schedule, rank, 1 - rank, 10, 0, 0);
        alb_schedule_require(&schedule, send, recv, false);
        schedule.tasks[send].line = schedule.tasks[recv].line = 4;
    }
    struct alb_complaint complaint = {0};
    assert_false(alb_schedule_seal(&schedule, "f", &complaint));
    assert_memory_equal(complaint.text, "f:4: a ", 7);
    alb_schedule_fini(&schedule);
}

static void alb_schedule_seal__leaves_wildcards_to_the_run(void **state)
{
    struct alb_schedule schedule;
    alb_schedule_init(&schedule, 2);
    alb_schedule_begin(&schedule, "a");
    uint32_t send = alb_schedule_send(&schedule, 0, 1, 10, 3, 0);
    alb_schedule_recv(&schedule, 1, ALB_TASK_ANY, 10, ALB_TASK_ANY);
    seal(&schedule);
    assert_int_equal(schedule.tasks[send].matched, ALB_TASK_NONE);
    alb_schedule_fini(&schedule);
}

// Who sends which of them is not known, but how many there are.
static void alb_schedule_seal__counts_beside_wildcards(void **state)
{
    for (uint32_t more = 0; more < 2; more++) {
        struct alb_schedule schedule;
        struct alb_complaint complaint = {0};
        alb_schedule_init(&schedule, 3);
        alb_schedule_begin(&schedule, "a");
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t send = alb_schedule_send(&schedule, 0, 1 + (i && !more), 10, 0, 0);
            schedule.tasks[send].line = 4;
        }
        for (uint32_t i = 0; i < 1 + 2 * more; i++) {
            uint32_t recv = alb_schedule_recv(&schedule, 1, ALB_TASK_ANY, 10, ALB_TASK_ANY);
            schedule.tasks[recv].line = 5;
        }
        assert_false(alb_schedule_seal(&schedule, "f", &complaint));
        assert_string_equal(
            complaint.text,
            more ? "f:5: rank 1 has more receipts than are sent to it; expected as many sends as receipts"
                 : "f:4: rank 2 has fewer receipts than are sent to it; expected as many sends as "
                   "receipts");
        alb_schedule_fini(&schedule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_schedule_seal__matches_in_order),
        cmocka_unit_test(alb_schedule_seal__refuses_what_is_not_matched),
        cmocka_unit_test(alb_schedule_seal__refuses_a_cycle),
        cmocka_unit_test(alb_schedule_seal__takes_what_waits_for_a_receipt_to_begin),
        cmocka_unit_test(alb_schedule_seal__refuses_a_cycle_through_messages),
        cmocka_unit_test(alb_schedule_seal__leaves_wildcards_to_the_run),
        cmocka_unit_test(alb_schedule_seal__counts_beside_wildcards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
