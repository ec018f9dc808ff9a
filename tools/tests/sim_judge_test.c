// SPDX-License-Identifier: BSD-2-Clause
// What runs come to: each verdict, by scenarios that have it.
#include "base/tests/test.h"
#include "tools/sim_judge.h"

#include <stdio.h>
#include <string.h>

static void judge(const char *text, const char *trace, struct sim_judgement *judgement)
{
    struct alb_complaint complaint = {0};
    struct sim_case of = {.data_count = 1, .data = {{.name = "t", .text = strdup(trace)}}};
    assert_true(alb_document_parse(&of.document, "drawn", text, strlen(text), &complaint));
    sim_judge_case(&of, judgement);
    sim_case_fini(&of);
}

static void assert_verdict(enum sim_verdict verdict, const char *why, const char *text, const char *trace)
{
    struct sim_judgement judgement;
    judge(text, trace, &judgement);
    if (judgement.verdict != verdict || !strstr(judgement.why, why))
        fail_msg("%s\nverdict %d, %s", text, judgement.verdict, judgement.why);
    assert_null(judgement.promise);
}

#define PAIR(more) \
    "[network]\nhosts = 2\n[host]\nreal_bytes = yes\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 5000\n" more

static void sim_judge_case__knows_each_end(void **state)
{
    // The receipt from any rank takes what the other one waits for.
    static const char stuck[] =
        "num_ranks 3\nrank 0 {\nrecv 8b from -1 tag -1\nrecv 8b from 1\n}\n"
        "rank 1 {\nsend 8b to 0\n}\nrank 2 {\na: calc 1000000\nb: send 8b to 0\nb requires a\n}\n";
    assert_verdict(SIM_GOOD, "all is done", PAIR(""), "");
    assert_verdict(SIM_IMPOSSIBLE, "drawn:12: ", PAIR("[fault]\nkind = death\ncables = h7-*\n"), "");
    assert_verdict(SIM_IMPOSSIBLE, "rounds: expected a collective", PAIR("rounds = 2\n"), "");
    assert_verdict(SIM_FAILED, "1 messages failed",
                   PAIR("timeout = 1\nretries = 1\n[fault]\nkind = death\ncables = h1-*\n"), "");
    assert_verdict(SIM_STUCK, "nothing happens any more", "[network]\nhosts = 3\n[workload]\nkind = goal\nfile = t\n",
                   stuck);
    assert_verdict(SIM_NEVER_ENDED, "0 of 1 tasks are done", PAIR("[scenario]\nend = 100ns\n"), "");
}

// Where switches drop, and nowhere else.
static void sim_judge_case__excuses_what_rc_gives_up(void **state)
{
    static const char text[] = "[network]\nhosts = 5\nrate = 1Gb/s\n[switch]\nport_buffer = 5000\n[host]\n"
                               "transport = rc\n[workload]\nkind = incast\nto = 1\n"
                               "size = 100000\ntimeout = 1\nretries = 0\nmessages = 20\ndepth = 8\n";
    assert_verdict(SIM_GOOD, "messages failed, which they may", text, "");
}

// Which a lost packet excuses, and nothing else.
static void sim_judge_run__excuses_what_uc_loses(void **state)
{
    static const char lost[] =
        PAIR("unreliable = yes\nmessages = 50\n[fault]\nkind = loss\ncables = h1-*\nvalue = 50%\n");
    static struct alb_scenario scenario;
    static struct alb_run run;
    const struct alb_run_options options = {.until = ALB_SIM_NEVER, .events_max = 1000000};
    struct alb_complaint complaint = {0};
    struct sim_judgement judgement;
    struct alb_document document;
    judge(lost, "", &judgement);
    assert_int_equal(judgement.verdict, SIM_GOOD);
    assert_true(alb_document_parse(&document, "drawn", PAIR("unreliable = yes\n"), strlen(PAIR("unreliable = yes\n")),
                                   &complaint));
    assert_true(alb_scenario_read(&scenario, &document, NULL, ".", &complaint));
    assert_true(alb_run_init(&run, &scenario, &complaint));
    alb_run_go(&run, &options);
    sim_judge_run(&run, &judgement);
    assert_int_equal(judgement.verdict, SIM_GOOD);
    run.state[0]++; // failed instead of done
    sim_judge_run(&run, &judgement);
    assert_int_equal(judgement.verdict, SIM_FAILED);
    run.is_at_rest = false;
    run.state[0]--;
    sim_judge_run(&run, &judgement);
    assert_int_equal(judgement.verdict, SIM_NEVER_ENDED);
    alb_run_violate(&run, "message %u arrived twice", 7);
    sim_judge_run(&run, &judgement);
    assert_int_equal(judgement.verdict, SIM_BROKEN);
    assert_string_equal(judgement.why, "message 7 arrived twice");
    assert_string_equal(judgement.promise, "message %u arrived twice");
    alb_run_fini(&run);
    alb_scenario_fini(&scenario);
    alb_document_fini(&document);
}

static void sim_fails_alike__only_by_one_promise(void **state)
{
    const struct sim_judgement twice = {.verdict = SIM_BROKEN, .promise = "request %u completed twice"};
    const struct sim_judgement wrong = {.verdict = SIM_BROKEN, .promise = "byte %u is wrong"};
    const struct sim_judgement failed = {.verdict = SIM_FAILED}, stuck = {.verdict = SIM_STUCK};
    struct sim_judgement again = twice;
    snprintf(again.why, sizeof(again.why), "request 7 completed twice");
    assert_true(sim_fails_alike(&twice, &again));
    assert_false(sim_fails_alike(&twice, &wrong));
    assert_false(sim_fails_alike(&twice, &failed));
    assert_false(sim_fails_alike(&failed, &stuck));
    assert_true(sim_fails_alike(&failed, &failed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_judge_case__knows_each_end),
        cmocka_unit_test(sim_judge_case__excuses_what_rc_gives_up),
        cmocka_unit_test(sim_judge_run__excuses_what_uc_loses),
        cmocka_unit_test(sim_fails_alike__only_by_one_promise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
