// SPDX-License-Identifier: BSD-2-Clause
// When what an association has to send is due, where a sender prefers the short ones.
#include "engine/tests/csa_pair.h"

enum {
    AGING = 1000000000, // bytes per second: one in a nanosecond
};

static void prefer_short(struct alb_engine_config *config)
{
    config->credit = "shortest";
    config->credit_aging_bytes_per_s = AGING;
    config->window_start_bytes = config->window_max_bytes = 16 * 1024;
}

static struct csa_pair *pair_of_short(void)
{
    struct csa_pair *c = csa_pair_new(prefer_short, NULL);
    csa_pair_greet(c);
    return c;
}

static alb_time due(const struct csa_pair *c)
{
    return alb_csa_turn_due(csa_pair_live(c, 0), c->pair->now);
}

static uint32_t segment_bytes(const struct csa_pair *c)
{
    const struct alb_csa *csa = alb_csa_of(c->qps[0]);
    return alb_csa_wqe(csa, csa->cursor)->segment_bytes;
}

static void due__nothing_to_send_is_due_at_once(void **state)
{
    struct csa_pair *c = pair_of_short();
    assert_int_equal(due(c), 0);
    csa_pair_free(c);
}

static void due__when_what_is_left_would_have_gone(void **state)
{
    struct csa_pair *c = pair_of_short();
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 64 * 1024);
    struct alb_csa *csa = alb_csa_of(c->qps[0]);
    assert_true(pair_send(c->pair, 0) > 0); // as much as the first window holds
    const struct alb_send_wqe *wqe = alb_csa_wqe(csa, csa->cursor);
    uint32_t left = wqe->packets - (uint32_t)alb_psn_diff(csa->requests.next, wqe->first_psn);
    alb_time began = csa->turn_began;
    assert_true(left > 0 && left < wqe->packets);
    assert_int_equal(began, c->pair->now);
    assert_int_equal(due(c), began + left * segment_bytes(c));
    c->pair->now += 5000;
    assert_int_equal(due(c), began + left * segment_bytes(c)); // as long as it waits
    csa_pair_free(c);
}

// No more than a first window is left.
static void due__what_is_short_goes_at_once(void **state)
{
    struct csa_pair *c = pair_of_short();
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 24 * 1024);
    assert_true(pair_send(c->pair, 0) > 0);
    assert_false(alb_list_is_empty(&csa_pair_live(c, 0)->waiting)); // for the window
    assert_int_equal(due(c), 0);
    csa_pair_free(c);
}

static const struct alb_csa *head(const struct csa_pair *c)
{
    return ALB_LIST_ENTRY(csa_pair_live(c, 0)->ready.next, struct alb_stream_out, link)->csa;
}

// Two messages to one peer, by a queue pair each, the longer one first; both wait for the window, which then opens.
static const struct alb_csa *ask_of_two(struct csa_pair *c)
{
    struct alb_qp *others[2];
    pair_connect(c->pair, ALB_QPT_RC, others, NULL);
    pair_settle(c->pair);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 64 * 1024);
    assert_int_equal(pair_ask(c->pair, others[0], ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 0, 32 * 1024), 0);
    assert_true(pair_send(c->pair, 0) > 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    return alb_csa_of(others[0]);
}

static void choose__of_two_queue_pairs_what_is_due_first(void **state)
{
    struct csa_pair *c = pair_of_short();
    const struct alb_csa *shorter = ask_of_two(c);
    assert_ptr_equal(head(c), alb_csa_of(c->qps[0]));
    alb_csa_turn_choose(csa_pair_live(c, 0), c->pair->now);
    assert_ptr_equal(head(c), shorter);
    csa_pair_free(c);
}

static void choose__elsewhere_the_line_stays_as_it_is(void **state)
{
    struct csa_pair *c = *state;
    ask_of_two(c);
    alb_csa_turn_choose(csa_pair_live(c, 0), c->pair->now);
    assert_ptr_equal(head(c), alb_csa_of(c->qps[0]));
}

// Side 0 has a message under way, of which much is left, and the window is open; then side 1 asks for a report.
static void ask_beside_data(struct csa_pair *c)
{
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 64 * 1024);
    assert_true(pair_send(c->pair, 0) > 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    struct alb_csa_segment segment = csa_pair_write(c, 1, 1, 0, 8, 8, ALB_CSA_LAST | ALB_CSA_REPORT_NOW);
    csa_pair_arrive_segment(c, 1, &segment, 1);
}

// A report is not late because data is, nor does data go before its time because a report does.
static void tell__a_report_goes_at_once_and_alone(void **state)
{
    struct csa_pair *c = pair_of_short();
    ask_beside_data(c);
    struct alb_assoc_live *live = csa_pair_live(c, 0);
    assert_true(due(c) > 0);
    assert_int_equal(live->source.due, 0);
    assert_true(alb_csa_turn_only_tells(live, c->pair->now));
    struct csa_seen seen;
    pair_send(c->pair, 0);
    csa_pair_look(c, 0, 0, &seen);
    for (uint32_t i = 0; i < seen.count; i++)
        assert_int_not_equal(seen.frames[i].type, ALB_CSA_REQUEST);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REPORT, NULL), 1);
    assert_true(csa_pair_count(c, 0, ALB_CSA_REQUEST, NULL) > 0); // its turn comes in the same round
    assert_false(alb_csa_turn_only_tells(live, c->pair->now));
    csa_pair_free(c);
}

static void tell__elsewhere_data_goes_with_it(void **state)
{
    struct csa_pair *c = *state;
    ask_beside_data(c);
    assert_false(alb_csa_turn_only_tells(csa_pair_live(c, 0), c->pair->now));
}

static void due__elsewhere_all_take_turns(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 64 * 1024);
    assert_true(pair_send(c->pair, 0) > 0);
    assert_int_equal(due(c), 0);
    assert_int_equal(c->qps[0]->engine->scheduler.compared, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(due__nothing_to_send_is_due_at_once),
        cmocka_unit_test(due__when_what_is_left_would_have_gone),
        cmocka_unit_test(due__what_is_short_goes_at_once),
        cmocka_unit_test(choose__of_two_queue_pairs_what_is_due_first),
        CSA_GREETED_TEST(choose__elsewhere_the_line_stays_as_it_is),
        cmocka_unit_test(tell__a_report_goes_at_once_and_alone),
        CSA_GREETED_TEST(tell__elsewhere_data_goes_with_it),
        CSA_GREETED_TEST(due__elsewhere_all_take_turns),
    };
    return cmocka_run_group_tests_name("csa_turn", tests, NULL, NULL);
}
