// SPDX-License-Identifier: BSD-2-Clause
// Workloads: which host sends how much to which, and when.
#include "base/tests/test.h"
#include "sim/workload.h"

#include <string.h>

enum {
    HOSTS = 8,
};

static const uint64_t rate = 100000000000; // bits per second

static bool make(struct alb_schedule *schedule, const char *text, struct alb_complaint *complaint)
{
    static struct alb_scenario scenario;
    struct alb_document document;
    if (!alb_document_parse(&document, "f", text, strlen(text), complaint))
        return false;
    bool is_good = alb_scenario_read(&scenario, &document, NULL, "scenarios", complaint);
    alb_document_fini(&document);
    if (!is_good)
        return false;
    is_good = alb_workload_schedule(schedule, &scenario, HOSTS, rate, complaint);
    alb_scenario_fini(&scenario);
    return is_good;
}

static void make_good(struct alb_schedule *schedule, const char *text)
{
    struct alb_complaint complaint = {0};
    if (!make(schedule, text, &complaint))
        fail_msg("%s", complaint.text);
}

static void alb_workload_schedule__permutation(void **state)
{
    struct alb_schedule schedule;
    make_good(&schedule, "[workload]\nkind = permutation\nsize = 2e6\nmessages = 3\ndepth = 2\ngap = 1us\nstart = 5us");
    uint32_t senders = 0, receivers = 0;
    assert_int_equal(schedule.task_count, 3 * HOSTS);
    for (uint32_t i = 0; i < schedule.task_count; i++) {
        const struct alb_task *task = &schedule.tasks[i];
        assert_int_equal(task->bytes, 2000000);
        assert_int_not_equal(task->rank, task->peer);
        assert_int_equal(task->waits, i % 3 == 2);
        assert_int_equal(task->at, ALB_SIM_US(5 + i / 3));
        senders |= 1u << task->rank;
        receivers |= 1u << task->peer;
    }
    assert_int_equal(senders, (1 << HOSTS) - 1);
    assert_int_equal(receivers, (1 << HOSTS) - 1);
    alb_schedule_fini(&schedule);
}

static void alb_workload_schedule__incast_and_all_to_all(void **state)
{
    struct alb_schedule schedule;
    make_good(&schedule, "[workload]\nkind = incast\nsize = 1M\nto = 3\nqueue_pairs = 4\ntimeout = 9\nop = send");
    assert_int_equal(schedule.task_count, HOSTS - 1);
    for (uint32_t i = 0; i < schedule.task_count; i++)
        assert_int_equal(schedule.tasks[i].peer, 3);
    assert_int_equal(schedule.works[0].queue_pairs, 4);
    assert_int_equal(schedule.works[0].timeout, 9);
    assert_int_equal(schedule.works[0].op, ALB_WORK_SEND);
    alb_schedule_fini(&schedule);
    make_good(&schedule, "[workload]\nkind = all-to-all\nhosts = 1..3\nsize = 1M");
    assert_int_equal(schedule.task_count, 6);
    assert_int_equal(schedule.works[0].rank_count, 3);
    alb_schedule_fini(&schedule);
}

// However many messages a flow has.
static void alb_workload_schedule__poisson_with_messages(void **state)
{
    struct alb_schedule schedule;
    uint64_t bytes = 0;
    make_good(&schedule, "[workload]\nkind = poisson\nload = 50%\nsize = 50K\nmessages = 4\nend = 50ms");
    for (uint32_t i = 0; i < schedule.task_count; i++)
        bytes += schedule.tasks[i].bytes;
    uint64_t expected = rate / 8 / 20 / 2 * HOSTS; // 50 ms at half the rate
    assert_in_range(bytes, expected * 9 / 10, expected * 11 / 10);
    alb_schedule_fini(&schedule);
}

// As much is sent as the load says, between all hosts alike.
static void alb_workload_schedule__poisson(void **state)
{
    struct alb_schedule schedule, again;
    static const char text[] = "[workload]\nkind = poisson\nload = 50%\nsizes = sizes/fbhadoop.txt\nend = 50ms";
    uint64_t bytes = 0, by_host[HOSTS] = {0};
    alb_sim_time before = 0;
    make_good(&schedule, text);
    for (uint32_t i = 0; i < schedule.task_count; i++) {
        const struct alb_task *task = &schedule.tasks[i];
        assert_int_not_equal(task->rank, task->peer);
        assert_true(task->at >= before && task->at <= ALB_SIM_MS(50));
        before = task->at;
        bytes += task->bytes;
        by_host[task->rank]++;
    }
    uint64_t expected = rate / 8 / 20 / 2 * HOSTS; // 50 ms at half the rate
    assert_in_range(bytes, expected * 9 / 10, expected * 11 / 10);
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_in_range(by_host[i], schedule.task_count / HOSTS * 9 / 10, schedule.task_count / HOSTS * 11 / 10);
    make_good(&again, text);
    assert_int_equal(again.task_count, schedule.task_count);
    for (uint32_t i = 0; i < again.task_count; i++)
        assert_true(again.tasks[i].at == schedule.tasks[i].at && again.tasks[i].bytes == schedule.tasks[i].bytes);
    alb_schedule_fini(&schedule);
    alb_schedule_fini(&again);
}

static void alb_workload_schedule__several(void **state)
{
    struct alb_schedule schedule;
    make_good(&schedule, "[workload a]\nkind = pairs\nhosts = 0..1\nto = 2\nsize = 10\n"
                         "[workload b]\nkind = all-gather\nsize = 800\n");
    assert_int_equal(schedule.work_count, 2);
    assert_string_equal(schedule.works[0].name, "a");
    assert_int_equal(schedule.works[0].task_count, 2);
    assert_true(schedule.works[1].is_collective);
    assert_int_equal(schedule.works[1].task_count, 2 * 7 * HOSTS);
    alb_schedule_fini(&schedule);
}

static void alb_workload_schedule__says_what_was_expected(void **state)
{
    static const struct {
        const char *text, *complaint;
    } bad[] = {
        {"[workload]\nkind = permutation\nhosts = 3,3,3,4\nsize = 1\n",
         "f:3: hosts: host 3 is there twice; expected each once"},
        {"[workload]\nkind = incast\nto = 1,2,1\nsize = 1\n", "f:3: to: host 1 is there twice; expected each once"},
        {"[workload]\nkind = permutation\nsize = 1\nhosts = 9",
         "f:4: \"9\" is no list of hosts; expected all, or numbers and ranges such as 0..7 or 0..62/2 with commas "
         "between, below 8, no more of them than there are hosts, no step beyond its range"},
        {"[workload]\nkind = permutation\nsize = 1\nhosts = 3", "f:4: one host alone; expected two at least"},
        {"[workload]\nkind = pairs\nsize = 1\nhosts = 3\nto = 3",
         "f:5: a host sends to itself; expected another one in to"},
        {"[workload]\nkind = permutation\nsize = 3G",
         "f:3: a message is larger than a queue pair carries; expected up to 2 GiB"},
        {"[workload]\nkind = permutation\nsizes = none.txt",
         "f:3: scenarios/none.txt: No such file or directory; expected a file of up to 1 GiB"},
        {"[workload]\nkind = poisson\nload = 1e-9\nsize = 2G\nflows = 9",
         "f:3: flows would begin less often than every 1000 s, or more often than each picosecond; expected another "
         "load or size"},
        {"[workload]\nkind = all-to-all\nsize = 1\nmessages = 600000",
         "f:4: too many messages; expected 33,554,432 at most in all"},
        {"[workload]\nkind = incast\nsize = 1\nto = all\nmessages = 9000000",
         "f:5: too many messages; expected 33,554,432 at most in all"},
        {"[workload]\nkind = permutation\nsize = 1\nstart = 9223372036854775ns\ngap = 9223372036854775ns",
         "f:5: the last message would begin after more than 106 days; expected a shorter gap or an earlier start"},
        {"[workload]\nkind = all-reduce-ring\nsize = 1M\nthink = 1000000s\nrounds = 100",
         "f:4: all rounds would take more than 106 days; expected to think for less, fewer rounds or an earlier start"},
        {"[workload]\nkind = poisson\nload = 1e-6\nsize = 1M\nflows = 9\nstart = 9223372036854775ns",
         "f:3: a flow would begin after more than 106 days; expected another load, fewer flows or an earlier start"},
        {"[workload]\nkind = incast\nhosts = 0\nto = 1..5\nsize = 1K\ngap = 4611686s",
         "f:6: the last message would begin after more than 106 days; expected a shorter gap or an earlier start"},
        {"[workload]\nkind = incast\nhosts = 0\nto = 1..5\nsize = 1K\nmessages = 9000000",
         "f:6: too many messages; expected 33,554,432 at most in all"},
    };
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        struct alb_schedule schedule;
        struct alb_complaint complaint = {0};
        assert_false(make(&schedule, bad[i].text, &complaint));
        assert_string_equal(complaint.text, bad[i].complaint);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_workload_schedule__permutation),
        cmocka_unit_test(alb_workload_schedule__incast_and_all_to_all),
        cmocka_unit_test(alb_workload_schedule__poisson),
        cmocka_unit_test(alb_workload_schedule__poisson_with_messages),
        cmocka_unit_test(alb_workload_schedule__several),
        cmocka_unit_test(alb_workload_schedule__says_what_was_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
