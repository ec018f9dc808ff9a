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
        CSA_GREETED_TEST(due__elsewhere_all_take_turns),
    };
    return cmocka_run_group_tests_name("csa_turn", tests, NULL, NULL);
}
