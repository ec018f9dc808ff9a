// SPDX-License-Identifier: BSD-2-Clause
// When a transaction reached its stages, by a target whose clock is another one. Here both hosts have the same, so that
// what is turned from one into the other can be compared with the truth.
#include "engine/tests/reflect_pair.h"

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

// What a side has sent takes so long to arrive.
static void carry(struct csa_pair *c, int side, alb_time ns)
{
    assert_true(pair_send(c->pair, side) > 0);
    pair_pass(c->pair, ns);
    pair_deliver_all(c->pair, side);
}

// A transaction whose packets take so long there and back, COMMIT as long as it says; the true times of its stages.
static struct alb_stages run_with(struct csa_pair *c, alb_time there, alb_time back, alb_time commit,
                                  struct alb_stages *truth)
{
    struct reflect_made made;
    struct alb_txn_status status;
    reflect_pair_make(c, &made, 1, 0, 500);
    made.wr.submitted = c->pair->now;
    truth->transmitted = c->pair->now;
    uint64_t number = reflect_pair_post(c, &made);
    carry(c, 0, there);
    truth->remote_placed = c->pair->now;
    carry(c, 1, back); // bound
    truth->delivered = c->pair->now;
    carry(c, 0, commit);
    truth->visible = truth->agreed = c->pair->now;
    carry(c, 1, back); // done
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_int_equal(alb_qp_txn_query(c->qps[0], number, &status), 0);
    return status.stages;
}

static struct alb_stages run(struct csa_pair *c, alb_time there, alb_time back, struct alb_stages *truth)
{
    return run_with(c, there, back, there, truth);
}

static void expect_within(uint64_t said, uint64_t truth, uint64_t error_ns)
{
    assert_in_range(said, truth - error_ns, truth + error_ns);
}

static void expect_true(const struct alb_stages *said, const struct alb_stages *truth)
{
    assert_int_equal(said->transmitted, truth->transmitted);
    assert_int_equal(said->delivered, truth->delivered);
    expect_within(said->remote_placed, truth->remote_placed, said->clock_error_ns);
    expect_within(said->visible, truth->visible, said->clock_error_ns);
    expect_within(said->agreed, truth->agreed, said->clock_error_ns);
    assert_true(said->transmitted <= said->remote_placed && said->remote_placed <= said->delivered);
    assert_true(said->delivered <= said->visible && said->visible <= said->agreed);
}

static void stages__of_a_transaction(void **state)
{
    struct csa_pair *c = *state;
    struct alb_stages truth, said = run(c, 100, 100, &truth);
    expect_true(&said, &truth);
    assert_int_equal(said.remote_placed, truth.remote_placed); // as the ways there and back are the same
    assert_int_equal(said.visible, truth.visible);
    assert_int_equal(said.clock_error_ns, 100);
}

// The first one, whose first packets take a hundred times as long as all others: the clock is off by half of that.
static void stages__in_order_while_the_clock_is_hardly_known(void **state)
{
    struct csa_pair *c = *state;
    struct alb_stages truth, said = run_with(c, 10000, 100, 100, &truth);
    expect_true(&said, &truth);
}

// Who was late once knows less than before, and not something else.
static void stages__of_answers_that_were_late(void **state)
{
    static const alb_time ways[][2] = {{10 * US, 10 * US}, {10 * US, 5 * MS}, {5 * MS, 10 * US}, {5 * MS, 5 * MS}};
    struct csa_pair *c = *state;
    for (uint32_t i = 0; i < ALB_COUNT(ways); i++) {
        struct alb_stages truth, said = run(c, ways[i][0], ways[i][1], &truth);
        expect_true(&said, &truth);
        assert_in_range(said.clock_error_ns, 10 * US, 30 * US); // by the first, and what clocks may have drifted since
    }
}

// Neither way is taken to be half of both.
static void stages__over_ways_of_unequal_length(void **state)
{
    struct csa_pair *c = *state;
    for (uint32_t i = 0; i < 3; i++) {
        struct alb_stages truth, said = run(c, 900 * US, 100 * US, &truth);
        expect_true(&said, &truth);
    }
}

// As that of a host that was suspended, which the target's seems to have been here.
static void stages__after_a_clock_was_set(void **state)
{
    struct csa_pair *c = *state;
    struct alb_reflect_clock *clock = &c->csa[0]->reflect_out->clock;
    struct alb_stages truth, said;
    run(c, 10 * US, 10 * US, &truth);
    clock->least += 3600 * ALB_NS_PER_S;
    said = run(c, 10 * US, 10 * US, &truth);
    expect_true(&said, &truth);
}

// A target that contradicts itself teaches nothing.
static void stages__of_a_target_that_lies(void **state)
{
    struct csa_pair *c = *state;
    struct alb_reflect_out *out = c->csa[0]->reflect_out;
    struct alb_stages truth;
    run(c, 10 * US, 10 * US, &truth);
    const struct alb_reflect_clock before = out->clock;
    struct alb_txn_out txn = *alb_txn_out_at(out, 1);
    const struct alb_csa_verdict lie = {.now = c->pair->now + 9 * MS, .placed_at = 1, .visible_at = 1, .decided_at = 1};
    alb_txn_out_note_stages(&txn, &lie, c->pair->now);
    assert_int_equal(out->clock.least, before.least);
    assert_int_equal(out->clock.span_ns, before.span_ns);
    assert_in_range(txn.stages.remote_placed, txn.stages.transmitted, txn.stages.delivered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(stages__of_a_transaction),
        REFLECT_PAIR_TEST(stages__in_order_while_the_clock_is_hardly_known),
        REFLECT_PAIR_TEST(stages__of_answers_that_were_late),
        REFLECT_PAIR_TEST(stages__over_ways_of_unequal_length),
        REFLECT_PAIR_TEST(stages__after_a_clock_was_set),
        REFLECT_PAIR_TEST(stages__of_a_target_that_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
