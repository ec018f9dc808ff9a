// SPDX-License-Identifier: BSD-2-Clause
// A failing scenario made shorter, with failures of our own making.
#include "base/tests/test.h"
#include "tools/sim_shrink.h"

#include <stdio.h>
#include <string.h>

static const char drawn[] = "[network]\nhosts = 4\nrate = 1Gb/s\n"
                            "[host]\nloss = irn\n"
                            "[workload]\nfile = t.goal\n"
                            "[fault a]\nkind = death\nat = 5us\nuntil = 9us\nway = up\n"
                            "[fault b]\nkind = loss\nat = 1us\nuntil = 2us\n";

static const char trace[] = "num_ranks 2\nrank 0 {\ns0: send 8b to 1 // 0\ns1: send 8b to 1 // 1\n"
                            "s1 requires s0 // waits\n}\nrank 1 {\nrecv 8b from 0 // 0\nrecv 8b from 0 // 1\n}\n";

static void make(struct sim_case *of)
{
    struct alb_complaint complaint = {0};
    *of = (struct sim_case){.data_count = 1, .data = {{.name = "t.goal", .text = strdup(trace)}}};
    assert_non_null(of->data[0].text);
    assert_true(alb_document_parse(&of->document, "drawn", drawn, strlen(drawn), &complaint));
}

static bool has(const struct sim_case *of, const char *section, const char *name, const char *key)
{
    return alb_document_find(&of->document, section, name, key) != NULL;
}

static void judge_as(struct sim_judgement *judgement, enum sim_verdict verdict, const char *promise)
{
    *judgement = (struct sim_judgement){.verdict = verdict, .promise = promise};
}

// Wrong bytes need irn; without a rate something else fails, which may not count.
static void judge_irn(const struct sim_case *of, struct sim_judgement *judgement)
{
    if (!has(of, "network", "", "rate"))
        judge_as(judgement, SIM_FAILED, NULL);
    else
        judge_as(judgement, has(of, "host", "", "loss") ? SIM_BROKEN : SIM_GOOD, "a byte is wrong");
    snprintf(judgement->why, SIM_WHY_MAX, "%u entries", of->document.count);
}

static void sim_shrink__keeps_what_the_same_failure_needs(void **state)
{
    struct sim_judgement judgement;
    struct sim_case of;
    make(&of);
    judge_irn(&of, &judgement);
    sim_shrink(&of, &judgement, judge_irn);
    assert_int_equal(of.document.count, 5);
    assert_true(has(&of, "network", "", "hosts")); // without them there are more
    assert_true(has(&of, "network", "", "rate"));
    assert_true(has(&of, "host", "", "loss"));
    assert_string_equal(judgement.why, "5 entries");
    sim_case_fini(&of);
}

// Without irn another promise is broken.
static void judge_promise(const struct sim_case *of, struct sim_judgement *judgement)
{
    judge_as(judgement, SIM_BROKEN, has(of, "host", "", "loss") ? "request %u completed twice" : "byte %u is wrong");
}

static void sim_shrink__keeps_to_one_promise(void **state)
{
    struct sim_judgement judgement;
    struct sim_case of;
    make(&of);
    judge_promise(&of, &judgement);
    sim_shrink(&of, &judgement, judge_promise);
    assert_int_equal(of.document.count, 4);
    assert_true(has(&of, "host", "", "loss"));
    assert_string_equal(judgement.promise, "request %u completed twice");
    sim_case_fini(&of);
}

// Fails for as long as there is the first fault, whatever it says.
static void judge_fault(const struct sim_case *of, struct sim_judgement *judgement)
{
    judge_as(judgement, has(of, "fault", "a", "") ? SIM_FAILED : SIM_GOOD, NULL);
}

static void sim_shrink__leaves_a_fault_its_times(void **state)
{
    struct sim_judgement judgement;
    struct sim_case of;
    make(&of);
    judge_fault(&of, &judgement);
    sim_shrink(&of, &judgement, judge_fault);
    assert_int_equal(of.document.count, 5); // its section, too, and the network's hosts
    assert_true(has(&of, "fault", "a", "at"));
    assert_true(has(&of, "fault", "a", "until"));
    sim_case_fini(&of);
}

// Fails for as long as the trace has its second message, both ends of it.
static void judge_trace(const struct sim_case *of, struct sim_judgement *judgement)
{
    const char *text = of->data[0].text;
    bool is_there = strstr(text, "s1: send") && strstr(text, "from 0 // 1") && has(of, "workload", "", "file");
    judge_as(judgement, is_there ? SIM_STUCK : SIM_GOOD, NULL);
}

static void sim_shrink__shortens_data_files(void **state)
{
    struct sim_judgement judgement;
    struct sim_case of;
    make(&of);
    judge_trace(&of, &judgement);
    sim_shrink(&of, &judgement, judge_trace);
    assert_string_equal(of.data[0].text, "num_ranks 2\nrank 0 {\ns1: send 8b to 1 // 1\n}\nrank 1 {\n"
                                         "recv 8b from 0 // 1\n}\n");
    sim_case_fini(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_shrink__keeps_what_the_same_failure_needs),
        cmocka_unit_test(sim_shrink__keeps_to_one_promise),
        cmocka_unit_test(sim_shrink__leaves_a_fault_its_times),
        cmocka_unit_test(sim_shrink__shortens_data_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
