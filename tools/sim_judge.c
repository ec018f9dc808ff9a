// SPDX-License-Identifier: BSD-2-Clause
#include "tools/sim_judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- cases ----------------------------------------------------------------------------------------------------------

void sim_case_copy(struct sim_case *copy, const struct sim_case *from)
{
    *copy = *from;
    alb_document_copy(&copy->document, &from->document);
    for (uint32_t i = 0; i < copy->data_count; i++) {
        copy->data[i].text = strdup(from->data[i].text);
        alb_assert(copy->data[i].text);
    }
}

void sim_case_fini(struct sim_case *of)
{
    alb_document_fini(&of->document);
    for (uint32_t i = 0; i < of->data_count; i++)
        free(of->data[i].text);
    of->data_count = 0;
}

// ---- judgement ------------------------------------------------------------------------------------------------------

__attribute__((format(printf, 3, 4))) static void say(struct sim_judgement *judgement, enum sim_verdict verdict,
                                                      const char *format, ...)
{
    va_list arguments;
    *judgement = (struct sim_judgement){.verdict = verdict};
    va_start(arguments, format);
    vsnprintf(judgement->why, SIM_WHY_MAX, format, arguments);
    va_end(arguments);
}

static uint64_t count_failed(const struct alb_run *run, bool is_unreliable)
{
    uint64_t failed = 0;
    for (uint32_t i = 0; i < run->schedule.task_count; i++)
        failed += alb_run_task_failed(run, i) &&
                  run->schedule.works[run->schedule.tasks[i].work].is_unreliable == is_unreliable;
    return failed;
}

// What goes by UC is lost with a packet, or when another one overtakes it.
static bool may_lose_unreliable(const struct alb_run *run)
{
    struct alb_cluster_totals totals;
    alb_cluster_totals(run->cluster, &totals);
    return totals.lost || totals.dropped || totals.trimmed || run->scenario->fault_count > 0 ||
           run->scenario->switches.spread == ALB_SPREAD_SPRAY;
}

// RoCEv2 sends so often and no more: where switches drop, a queue pair may rightly come to its end, and what waits for
// its messages never begins.
static bool may_exhaust_retries(const struct alb_run *run)
{
    struct alb_cluster_totals totals;
    alb_cluster_totals(run->cluster, &totals);
    return run->scenario->host.transport == 0 && totals.dropped > 0;
}

void sim_judge_run(const struct alb_run *run, struct sim_judgement *judgement)
{
    static const char *const ends[] = {"", "nothing happens any more", "100 s have passed", "the events are used up"};
    uint64_t failed = count_failed(run, false), lost = count_failed(run, true);
    if (run->violation[0]) {
        say(judgement, SIM_BROKEN, "%s", run->violation);
        judgement->promise = run->promise;
    } else if (failed > 0 && !may_exhaust_retries(run)) {
        say(judgement, SIM_FAILED, "%" PRIu64 " messages failed", failed);
    } else if (lost > 0 && !may_lose_unreliable(run)) {
        say(judgement, SIM_FAILED, "%" PRIu64 " messages by UC are lost, though no packet is", lost);
    } else if (run->end != ALB_RUN_DONE && !(run->end == ALB_RUN_STUCK && failed > 0)) {
        say(judgement, run->end == ALB_RUN_STUCK ? SIM_STUCK : SIM_NEVER_ENDED,
            "it does not end: %s, and %" PRIu64 " of %" PRIu32 " tasks are done", ends[run->end], run->tasks_done,
            run->schedule.task_count);
    } else if (run->models && !run->is_at_rest) {
        say(judgement, SIM_NEVER_ENDED, "all is done, but it does not come to rest");
    } else if (failed > 0) {
        say(judgement, SIM_GOOD, "%" PRIu64 " messages failed, which they may", failed);
    } else {
        say(judgement, SIM_GOOD, "all is done");
    }
}

void sim_judge_case(const struct sim_case *of, struct sim_judgement *judgement)
{
    static struct alb_scenario scenario;
    static struct alb_run run;
    const struct alb_run_options options = {.until = ALB_SIM_S(SIM_JUDGED_SECONDS), .events_max = SIM_JUDGED_EVENTS};
    struct alb_complaint complaint = {0};
    bool is_scenario = alb_scenario_read(&scenario, &of->document, NULL, ".", &complaint);
    scenario.data = of->data;
    scenario.data_count = of->data_count;
    // What albedo sim would refuse is none, so that it takes what is left of a case that was shrunk.
    bool has_effect = is_scenario && alb_scenario_keys_have_effect(&scenario, &of->document, NULL, &complaint);
    bool is_run = has_effect && alb_run_init(&run, &scenario, &complaint);
    if (is_run) {
        alb_run_go(&run, &options);
        sim_judge_run(&run, judgement);
        alb_run_fini(&run);
    } else {
        say(judgement, SIM_IMPOSSIBLE, "%s", complaint.text);
    }
    if (is_scenario)
        alb_scenario_fini(&scenario);
}

bool sim_fails_alike(const struct sim_judgement *a, const struct sim_judgement *b)
{
    bool has_promises = a->promise && b->promise;
    return a->verdict == b->verdict && (has_promises ? strcmp(a->promise, b->promise) == 0 : a->promise == b->promise);
}
