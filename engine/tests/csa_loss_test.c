// SPDX-License-Identifier: BSD-2-Clause
// The loss policies: their names and parameters, and what each takes for lost.
#include "engine/csa_loss.h"

#include "base/tests/test.h"

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

static struct alb_csa_loss parsed(const char *text)
{
    struct alb_csa_loss loss;
    assert_true(alb_csa_loss_parse(text, &loss));
    return loss;
}

static void parse__names_and_their_defaults(void **state)
{
    static const char *const names[] = {"csa", "go-back-n", "irn", "fixed", "sleek"};
    for (size_t i = 0; i < ALB_COUNT(names); i++)
        assert_string_equal(parsed(names[i]).ops->name, names[i]);
    assert_int_equal(parsed("irn").low_ns, 100 * US);
    assert_int_equal(parsed("irn").high_ns, 320 * US);
    assert_int_equal(parsed("irn").few, 3);
    assert_int_equal(parsed("fixed").interval_ns, 200 * US);
    assert_int_equal(parsed("sleek").threshold, 5);
    assert_int_equal(parsed("go-back-n").timeout_ns, 0);
}

static void parse__parameters(void **state)
{
    struct alb_csa_loss loss = parsed("irn:low=50us,high=2ms,few=7");
    assert_int_equal(loss.low_ns, 50 * US);
    assert_int_equal(loss.high_ns, 2 * MS);
    assert_int_equal(loss.few, 7);
    assert_int_equal(parsed("go-back-n:timeout=4ms").timeout_ns, 4 * MS);
    assert_int_equal(parsed("fixed:interval=1ms").interval_ns, MS);
    assert_int_equal(parsed("sleek:threshold=9").threshold, 9);
}

static void parse__refuses(void **state)
{
    static const char *const texts[] = {
        "",
        "CSA",
        "csa:",
        "csa:low=1us",
        "csa ",
        "irn:",
        "irn:low",
        "irn:low=",
        "irn:low=1us,",
        "irn:few=x",
        "irn:few=2000000",
        "irn:interval=3us",
        "fixed:interval=10",
        "fixed:interval=20s",
        "sleek:threshold=0",
        "irn:low=1us,,few=3",
        "irn:low=1us,low=2us",
        "irn:low=2ms,high=1ms",
        "irn:low=321us",
        "irn:=3",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "irn:few=0000000000000000000000000000000000000000000000000000000003",
    };
    struct alb_csa_loss loss;
    for (size_t i = 0; i < ALB_COUNT(texts); i++)
        assert_false(alb_csa_loss_parse(texts[i], &loss));
    assert_false(alb_csa_loss_parse(NULL, &loss));
}

static bool is_lost(const char *name, struct alb_loss_segment segment, struct alb_loss_sending sending)
{
    struct alb_csa_loss loss = parsed(name);
    sending.rtt_ns = 100 * US;
    sending.margin_ns = 20 * US;
    return loss.ops->is_lost(&loss, &segment, &sending);
}

#define SEGMENT(...)          \
    (struct alb_loss_segment) \
    {                         \
        __VA_ARGS__           \
    }
#define SENDING(...)          \
    (struct alb_loss_sending) \
    {                         \
        __VA_ARGS__           \
    }
#define ANY                   \
    (struct alb_loss_sending) \
    {                         \
        0                     \
    }

// What is settled is lost whatever else is known; the rest only after a report that was waited for.
static void csa__settled_or_overdue(void **state)
{
    assert_true(is_lost("csa", SEGMENT(.is_settled = true), ANY));
    assert_false(is_lost("csa", SEGMENT(.age_ns = 10 * MS, .behind = 100), ANY));
    assert_true(is_lost("csa", SEGMENT(.age_ns = 10 * MS), SENDING(.is_overdue = true)));
    assert_false(is_lost("csa", SEGMENT(.age_ns = 100 * US), SENDING(.is_overdue = true)));
    assert_false(is_lost("csa", SEGMENT(.age_ns = MS, .path_rtt_ns = 2 * MS), SENDING(.is_overdue = true)));
}

// By as much as its path may be longer, a quarter of a round trip and the margin, where paths are many.
static void csa__overtaken_by_those_of_other_paths(void **state)
{
    const struct alb_loss_sending many = {.has_many_paths = true};
    assert_true(is_lost("csa", SEGMENT(.overtaken_ns = 46 * US), many));
    assert_false(is_lost("csa", SEGMENT(.overtaken_ns = 45 * US), many));
    assert_false(is_lost("csa", SEGMENT(.overtaken_ns = MS), ANY));
    assert_false(is_lost("csa", SEGMENT(.behind = 1000), many));
    assert_true(is_lost("csa", SEGMENT(.overtaken_ns = 86 * US, .path_rtt_min_ns = 60 * US), many));
    assert_false(is_lost("csa", SEGMENT(.overtaken_ns = 85 * US, .path_rtt_min_ns = 60 * US), many));
    assert_false(
        is_lost("csa", SEGMENT(.overtaken_ns = 120 * US, .path_rtt_ns = 150 * US, .path_rtt_min_ns = 50 * US), many));
    assert_false(
        is_lost("csa", SEGMENT(.overtaken_ns = 45 * US, .path_rtt_min_ns = MS), many)); // it has become shorter
}

// What is left of all there is to send has a copy of it sent, once, when it is half as late again as most; whatever its
// own path takes.
static void csa__the_end_does_not_wait_for_a_late_path(void **state)
{
    const struct alb_loss_sending end = {.tail_rtt_ns = 20 * US};
    const struct alb_loss_sending asked = {.tail_rtt_ns = 20 * US, .is_overdue = true};
    assert_true(is_lost("csa", SEGMENT(.age_ns = 31 * US, .path_rtt_ns = MS), end));
    assert_true(is_lost("csa", SEGMENT(.age_ns = 31 * US, .path_rtt_ns = MS), asked));
    assert_false(is_lost("csa", SEGMENT(.age_ns = 30 * US, .path_rtt_ns = MS), end));
    assert_false(is_lost("csa", SEGMENT(.age_ns = 300 * US, .path_rtt_ns = MS, .was_resent = true), end));
    assert_false(is_lost("csa", SEGMENT(.age_ns = 300 * US, .path_rtt_ns = MS), ANY));
}

static void go_back_n__by_a_nak_once_a_round_trip(void **state)
{
    assert_false(is_lost("go-back-n", SEGMENT(.age_ns = 10 * MS, .is_settled = true, .behind = 9), ANY));
    assert_true(is_lost("go-back-n", SEGMENT(.age_ns = US), SENDING(.is_nak = true)));
    assert_false(is_lost("go-back-n", SEGMENT(.age_ns = 99 * US, .was_resent = true), SENDING(.is_nak = true)));
    assert_true(is_lost("go-back-n", SEGMENT(.age_ns = 100 * US, .was_resent = true), SENDING(.is_nak = true)));
    assert_true(parsed("go-back-n").ops->goes_back);
    assert_false(parsed("go-back-n").ops->takes_early);
}

static void irn__overtaken_once(void **state)
{
    assert_false(is_lost("irn", SEGMENT(.age_ns = 10 * MS, .is_settled = true), ANY));
    assert_true(is_lost("irn", SEGMENT(.behind = 1), ANY));
    assert_false(is_lost("irn", SEGMENT(.behind = 9, .was_resent = true), ANY));
    assert_false(is_lost("irn:threshold=3", SEGMENT(.behind = 2), ANY));
    assert_true(is_lost("irn:threshold=3", SEGMENT(.behind = 3), ANY));
}

static void fixed__by_age_alone(void **state)
{
    assert_false(is_lost("fixed", SEGMENT(.age_ns = 200 * US - 1, .behind = 9, .is_settled = true), ANY));
    assert_true(is_lost("fixed", SEGMENT(.age_ns = 200 * US), ANY));
}

static void sleek__overtaken_by_so_many(void **state)
{
    assert_false(is_lost("sleek", SEGMENT(.behind = 4), ANY));
    assert_true(is_lost("sleek", SEGMENT(.behind = 5), ANY));
    assert_true(is_lost("sleek", SEGMENT(.behind = 1), SENDING(.answers_probe = true)));
    assert_false(is_lost("sleek", SEGMENT(.behind = 0), SENDING(.answers_probe = true)));
    assert_false(is_lost("sleek", SEGMENT(.behind = 9, .was_resent = true, .age_ns = 99 * US), ANY));
    assert_true(is_lost("sleek", SEGMENT(.behind = 9, .was_resent = true, .age_ns = 100 * US), ANY));
}

static alb_time silence(const char *text, uint32_t flying)
{
    const struct alb_loss_sending sending = {.rtt_ns = 100 * US, .margin_ns = 20 * US, .flying = flying};
    struct alb_csa_loss loss = parsed(text);
    return loss.ops->silence_ns(&loss, &sending);
}

static void silence__of_each(void **state)
{
    assert_int_equal(silence("csa", 9), 137500); // a round trip of 100 us, a quarter, and an eighth at most
    assert_int_equal(silence("go-back-n", 9), 320 * US);
    assert_int_equal(silence("go-back-n:timeout=4ms", 9), 4 * MS);
    assert_int_equal(silence("irn", 3), 100 * US);
    assert_int_equal(silence("irn", 4), 320 * US);
    assert_int_equal(silence("fixed", 9), 200 * US);
    assert_int_equal(silence("sleek", 9), 170 * US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse__names_and_their_defaults),
        cmocka_unit_test(parse__parameters),
        cmocka_unit_test(parse__refuses),
        cmocka_unit_test(csa__settled_or_overdue),
        cmocka_unit_test(csa__overtaken_by_those_of_other_paths),
        cmocka_unit_test(csa__the_end_does_not_wait_for_a_late_path),
        cmocka_unit_test(go_back_n__by_a_nak_once_a_round_trip),
        cmocka_unit_test(irn__overtaken_once),
        cmocka_unit_test(fixed__by_age_alone),
        cmocka_unit_test(sleek__overtaken_by_so_many),
        cmocka_unit_test(silence__of_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
