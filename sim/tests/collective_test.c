// SPDX-License-Identifier: BSD-2-Clause
// Collectives: an abstract run of each schedule, in which data is a set of ranks, must leave every rank with what the
// collective is for; and as few bytes as it should are sent.
#include "base/tests/test.h"
#include "sim/collective.h"

#include <stdlib.h>
#include <string.h>

enum {
    RANKS_MAX = 9,
};

static void make(struct alb_schedule *schedule, enum alb_collective kind, uint32_t n, uint64_t bytes, uint32_t pieces,
                 uint32_t rounds)
{
    static uint32_t ranks[RANKS_MAX];
    for (uint32_t i = 0; i < n; i++)
        ranks[i] = n - 1 - i; // not in the order of their numbers
    struct alb_collective_config config = {
        .kind = kind, .ranks = ranks, .rank_count = n, .bytes = bytes, .pieces = pieces, .rounds = rounds, .think = 5};
    struct alb_complaint complaint = {0};
    alb_schedule_init(schedule, n);
    alb_collective_add(schedule, "c", &config);
    if (!alb_schedule_seal(schedule, "f", &complaint))
        fail_msg("%s", complaint.text);
}

// Carries a schedule out: what each rank knows grows by what the sender knew when it sent. Sends know only what the
// edges to them guarantee, so that a missing edge shows as missing knowledge.
static void run(const struct alb_schedule *schedule, uint32_t *known)
{
    uint32_t n = schedule->task_count, count = 0;
    uint32_t *waits = calloc(n, sizeof(*waits)), *ready = calloc(n, sizeof(*ready)), *knows = calloc(n, sizeof(*knows));
    for (uint32_t i = 0; i < n; i++) {
        waits[i] = schedule->tasks[i].waits + (schedule->tasks[i].kind == ALB_TASK_RECV);
        knows[i] = 1u << schedule->tasks[i].rank;
        if (waits[i] == 0)
            ready[count++] = i;
    }
    for (uint32_t done = 0; done < count; done++) {
        uint32_t i = ready[done];
        known[schedule->tasks[i].rank] |= knows[i];
        for (uint32_t e = schedule->first_edge[i]; e <= schedule->first_edge[i + 1]; e++) {
            bool is_message = e == schedule->first_edge[i + 1];
            if (is_message && schedule->tasks[i].kind != ALB_TASK_SEND)
                break;
            uint32_t to = is_message ? schedule->tasks[i].matched : schedule->edges[e].to;
            knows[to] |= knows[i];
            if (--waits[to] == 0)
                ready[count++] = to;
        }
    }
    assert_int_equal(count, n);
    free(waits);
    free(ready);
    free(knows);
}

static uint64_t sent_bytes(const struct alb_schedule *schedule, uint32_t rank)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < schedule->task_count; i++)
        if (schedule->tasks[i].kind == ALB_TASK_SEND && schedule->tasks[i].rank == rank)
            bytes += schedule->tasks[i].bytes;
    return bytes;
}

static void assert_all_know_all(enum alb_collective kind, uint32_t n, uint32_t pieces, uint32_t rounds)
{
    struct alb_schedule schedule;
    uint32_t known[RANKS_MAX] = {0};
    make(&schedule, kind, n, 1000, pieces, rounds);
    run(&schedule, known);
    for (uint32_t rank = 0; rank < n; rank++)
        if (known[rank] != (1u << n) - 1)
            fail_msg("collective %u of %u: rank %u knows %x", kind, n, rank, known[rank]);
    alb_schedule_fini(&schedule);
}

static void alb_collective_add__everybody_gets_everything(void **state)
{
    for (uint32_t n = 2; n <= RANKS_MAX; n++)
        for (enum alb_collective kind = 0; kind < ALB_COLLECTIVES; kind++)
            for (uint32_t rounds = 1; rounds <= 2; rounds++)
                assert_all_know_all(kind, n, 3, rounds);
}

static void alb_collective_add__sends_no_more_than_it_must(void **state)
{
    struct alb_schedule schedule;
    make(&schedule, ALB_COLLECTIVE_ALL_REDUCE_RING, 8, 8000, 1, 1);
    for (uint32_t rank = 0; rank < 8; rank++)
        assert_int_equal(sent_bytes(&schedule, rank), 14 * 1000);
    assert_int_equal(schedule.works[0].steps, 14);
    alb_schedule_fini(&schedule);
    make(&schedule, ALB_COLLECTIVE_ALL_GATHER, 8, 8000, 1, 1);
    assert_int_equal(sent_bytes(&schedule, 3), 7 * 1000);
    alb_schedule_fini(&schedule);
    make(&schedule, ALB_COLLECTIVE_ALL_TO_ALL, 8, 8000, 1, 2);
    assert_int_equal(sent_bytes(&schedule, 3), 2 * 7 * 1000);
    assert_int_equal(schedule.works[0].steps, 14);
    alb_schedule_fini(&schedule);
    make(&schedule, ALB_COLLECTIVE_ALL_REDUCE_TREE, 7, 1000, 4, 1);
    assert_int_equal(sent_bytes(&schedule, 0), 1000);     // a leaf (ranks are reversed): once up
    assert_int_equal(sent_bytes(&schedule, 6), 2 * 1000); // the root: once to each child
    assert_int_equal(sent_bytes(&schedule, 5), 3 * 1000); // between: up, and to each child
    alb_schedule_fini(&schedule);
}

static void alb_collective_add__thinks_before_each_send_that_waits(void **state)
{
    for (enum alb_collective kind = 0; kind < ALB_COLLECTIVES; kind++) {
        struct alb_schedule schedule;
        make(&schedule, kind, RANKS_MAX, 1000, 3, 2);
        for (uint32_t i = 0; i < schedule.task_count; i++) {
            if (schedule.tasks[i].kind != ALB_TASK_RECV)
                continue;
            for (uint32_t e = schedule.first_edge[i]; e < schedule.first_edge[i + 1]; e++)
                if (schedule.tasks[schedule.edges[e].to].kind == ALB_TASK_SEND)
                    fail_msg("collective %u: task %u is sent at once", kind, schedule.edges[e].to);
        }
        alb_schedule_fini(&schedule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_collective_add__everybody_gets_everything),
        cmocka_unit_test(alb_collective_add__sends_no_more_than_it_must),
        cmocka_unit_test(alb_collective_add__thinks_before_each_send_that_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
