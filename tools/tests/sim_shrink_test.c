// SPDX-License-Identifier: BSD-2-Clause
// A failing scenario made shorter, with failures of our own making.
#include "base/tests/test.h"
#include "tools/sim_shrink.h"

#include <stdio.h>
#include <string.h>

static const char drawn[] = "[network]\nhosts = 4\nrate = 1Gb/s\n"
                            "[host]\nloss = irn\n"
                            "[fault a]\nkind = death\nat = 5us\nuntil = 9us\nway = up\n"
                            "[fault b]\nkind = loss\nat = 1us\nuntil = 2us\n";

static void parse(struct alb_document *document)
{
    struct alb_complaint complaint = {0};
    assert_true(alb_document_parse(document, "drawn", drawn, strlen(drawn), &complaint));
}

static bool has(const struct alb_document *document, const char *section, const char *name, const char *key)
{
    return alb_document_find(document, section, name, key) != NULL;
}

// Wrong bytes need irn; without a rate something else fails, which may not count.
static enum sim_verdict judge_irn(const struct alb_document *document, char why[SIM_WHY_MAX])
{
    snprintf(why, SIM_WHY_MAX, "%u entries", document->count);
    if (!has(document, "network", "", "rate"))
        return SIM_FAILED;
    return has(document, "host", "", "loss") ? SIM_BROKEN : SIM_GOOD;
}

static void sim_shrink__keeps_what_the_same_failure_needs(void **state)
{
    struct alb_document document;
    char why[SIM_WHY_MAX] = "";
    parse(&document);
    sim_shrink(&document, SIM_BROKEN, why, judge_irn);
    assert_int_equal(document.count, 4);
    assert_true(has(&document, "network", "", "rate"));
    assert_true(has(&document, "host", "", "loss"));
    assert_string_equal(why, "4 entries");
    alb_document_fini(&document);
}

// Fails for as long as there is the first fault, whatever it says.
static enum sim_verdict judge_fault(const struct alb_document *document, char why[SIM_WHY_MAX])
{
    snprintf(why, SIM_WHY_MAX, "it is there");
    return has(document, "fault", "a", "") ? SIM_FAILED : SIM_GOOD;
}

static void sim_shrink__leaves_a_fault_its_times(void **state)
{
    struct alb_document document;
    char why[SIM_WHY_MAX] = "";
    parse(&document);
    sim_shrink(&document, SIM_FAILED, why, judge_fault);
    assert_int_equal(document.count, 3); // its section, too
    assert_true(has(&document, "fault", "a", "at"));
    assert_true(has(&document, "fault", "a", "until"));
    alb_document_fini(&document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_shrink__keeps_what_the_same_failure_needs),
        cmocka_unit_test(sim_shrink__leaves_a_fault_its_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
