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
    alb_time began = csa->requests.turn_began;
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

// Side 0 has a long message under way, and waits for the window.
static struct alb_stream_out *ask_for_much(struct csa_pair *c)
{
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 64 * 1024);
    assert_true(pair_send(c->pair, 0) > 2);
    assert_true(due(c) > c->pair->now);
    return &alb_csa_of(c->qps[0])->requests;
}

static void due__before_it_begins_by_its_length(void **state)
{
    struct csa_pair *c = pair_of_short();
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 64 * 1024);
    alb_stream_out_wake(&alb_csa_of(c->qps[0])->requests);
    assert_int_equal(due(c), c->pair->now + 64 * 1024);
    csa_pair_free(c);
}

static void due__a_request_for_an_answer_is_short(void **state)
{
    struct csa_pair *c = pair_of_short();
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 64 * 1024);
    alb_stream_out_wake(&alb_csa_of(c->qps[0])->requests);
    assert_int_equal(due(c), 0);
    csa_pair_free(c);
}

static void due__an_answer_like_any_message(void **state)
{
    struct csa_pair *c = pair_of_short();
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 64 * 1024);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_true(pair_send(c->pair, 1) > 0);
    struct alb_csa *csa = alb_csa_of(c->qps[1]);
    const struct alb_csa_answer *answer = alb_csa_find_answer(csa, csa->responses.next);
    uint32_t left = answer->packets - (uint32_t)alb_psn_diff(csa->responses.next, answer->first);
    assert_true(left > 0 && left < answer->packets);
    assert_int_equal(alb_csa_turn_due(csa_pair_live(c, 1), c->pair->now + 5000),
                     csa->responses.turn_began + left * answer->segment_bytes);
    csa_pair_free(c);
}

static void lose(struct alb_stream_out *out, alb_psn psn)
{
    alb_assoc_release(out->csa->assoc->live, alb_stream_out_mark_lost(out, psn));
    alb_stream_out_wake(out);
}

static uint32_t turn_segments; // that the association's next turn sends

static enum alb_build_result note_turn(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    enum alb_build_result result = alb_assoc_build(source, builder, now);
    turn_segments = builder->tx->segment_count;
    source->build = alb_assoc_build;
    return result;
}

static void take_turn_with_an_open_window(struct csa_pair *c)
{
    struct alb_assoc_live *live = csa_pair_live(c, 0);
    live->congestion.window_bytes = 1 << 20;
    turn_segments = UINT32_MAX;
    live->source.build = note_turn;
    pair_send(c->pair, 0);
}

// Its turn has been once.
static void due__what_was_lost_goes_at_once(void **state)
{
    struct csa_pair *c = pair_of_short();
    struct alb_stream_out *out = ask_for_much(c);
    uint32_t before = pair_count(c->pair, 0);
    lose(out, out->una);
    const struct alb_source *source = &csa_pair_live(c, 0)->source;
    assert_true(source->is_ready);
    assert_int_equal(source->due, 0);
    pair_send(c->pair, 0);
    struct csa_seen seen;
    csa_pair_look(c, 0, before, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.frames[0].segment.psn, out->una);
    assert_true(due(c) > c->pair->now);
    csa_pair_free(c);
}

static void turn__of_what_was_lost_is_its_alone(void **state)
{
    struct csa_pair *c = pair_of_short();
    struct alb_stream_out *out = ask_for_much(c);
    lose(out, out->una);
    take_turn_with_an_open_window(c);
    assert_int_equal(turn_segments, 1);
    csa_pair_free(c);
}

// Of another queue pair: it was woken, and has nothing to send.
static void turn__of_nothing_sends_nothing(void **state)
{
    struct csa_pair *c = pair_of_short();
    struct alb_qp *others[2];
    pair_connect(c->pair, ALB_QPT_RC, others, NULL);
    pair_settle(c->pair);
    const struct alb_stream_out *much = ask_for_much(c);
    alb_stream_out_wake(&alb_csa_of(others[0])->requests);
    assert_int_equal(csa_pair_live(c, 0)->source.due, 0);
    alb_psn next = much->next;
    csa_pair_live(c, 0)->congestion.window_bytes = 1 << 20;
    alb_assoc_release(csa_pair_live(c, 0), 0);
    take_turn_with_an_open_window(c);
    assert_int_equal(turn_segments, 0);
    assert_true(much->next != next); // its turn comes in the same round
    csa_pair_free(c);
}

static void due__a_probe_goes_at_once_while_it_is_one(void **state)
{
    struct csa_pair *c = pair_of_short();
    struct alb_stream_out *out = ask_for_much(c);
    out->probe_is_due = true;
    assert_int_equal(due(c), 0);
    out->probe_is_due = false;
    out->has_probe_psn = true;
    out->probe_psn = alb_psn_add(out->una, -1); // acknowledged meanwhile
    assert_true(due(c) > c->pair->now);
    assert_false(out->has_probe_psn);
    csa_pair_free(c);
}

// Whenever the engine was last called.
static void due__a_message_begins_when_it_is_posted(void **state)
{
    struct csa_pair *c = pair_of_short();
    c->pair->now += 20 * ALB_NS_PER_MS;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 64 * 1024);
    alb_engine_bells(c->engines[0], c->pair->now);
    assert_int_equal(alb_csa_of(c->qps[0])->requests.turn_began, c->pair->now);
    csa_pair_free(c);
}

// Though the association stands in the line with what is due later.
static void hurry__what_was_lost_does_not_wait_for_what_was_not(void **state)
{
    struct csa_pair *c = pair_of_short();
    struct alb_stream_out *out = ask_for_much(c);
    struct alb_source *source = &csa_pair_live(c, 0)->source;
    lose(out, out->una);
    source->due = c->pair->now + 1000000;
    lose(out, alb_psn_next(out->una));
    assert_int_equal(source->due, 0);
    csa_pair_free(c);
}

static void hurry__a_short_message_does_not_wait_for_a_long_one(void **state)
{
    struct csa_pair *c = pair_of_short();
    struct alb_qp *others[2];
    pair_connect(c->pair, ALB_QPT_RC, others, NULL);
    pair_settle(c->pair);
    struct alb_source *source = &csa_pair_live(c, 0)->source;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 64 * 1024);
    alb_stream_out_wake(&alb_csa_of(c->qps[0])->requests);
    assert_int_equal(source->due, c->pair->now + 64 * 1024);
    assert_int_equal(pair_ask(c->pair, others[0], ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 0, 1024), 0);
    alb_stream_out_wake(&alb_csa_of(others[0])->requests);
    assert_int_equal(source->due, 0);
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
    assert_ptr_equal(head(c), shorter);
    struct alb_list *line = &csa_pair_live(c, 0)->ready;
    alb_list_push_back(line, alb_list_pop(line));
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
    alb_csa_turn_hurry(live, c->pair->now);
    assert_int_equal(live->source.due, 0); // not made later
    assert_true(alb_csa_turn_is_over(live, c->pair->now));
    struct csa_seen seen;
    pair_send(c->pair, 0);
    csa_pair_look(c, 0, 0, &seen);
    for (uint32_t i = 0; i < seen.count; i++)
        assert_int_not_equal(seen.frames[i].type, ALB_CSA_REQUEST);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REPORT, NULL), 1);
    assert_true(csa_pair_count(c, 0, ALB_CSA_REQUEST, NULL) > 0); // its turn comes in the same round
    assert_false(alb_csa_turn_is_over(live, c->pair->now));
    csa_pair_free(c);
}

static void tell__elsewhere_data_goes_with_it(void **state)
{
    struct csa_pair *c = *state;
    ask_beside_data(c);
    assert_false(alb_csa_turn_is_over(csa_pair_live(c, 0), c->pair->now));
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
        cmocka_unit_test(due__before_it_begins_by_its_length),
        cmocka_unit_test(due__a_request_for_an_answer_is_short),
        cmocka_unit_test(due__an_answer_like_any_message),
        cmocka_unit_test(due__what_was_lost_goes_at_once),
        cmocka_unit_test(turn__of_what_was_lost_is_its_alone),
        cmocka_unit_test(turn__of_nothing_sends_nothing),
        cmocka_unit_test(due__a_probe_goes_at_once_while_it_is_one),
        cmocka_unit_test(due__a_message_begins_when_it_is_posted),
        cmocka_unit_test(hurry__what_was_lost_does_not_wait_for_what_was_not),
        cmocka_unit_test(hurry__a_short_message_does_not_wait_for_a_long_one),
        cmocka_unit_test(choose__of_two_queue_pairs_what_is_due_first),
        CSA_GREETED_TEST(choose__elsewhere_the_line_stays_as_it_is),
        cmocka_unit_test(tell__a_report_goes_at_once_and_alone),
        CSA_GREETED_TEST(tell__elsewhere_data_goes_with_it),
        CSA_GREETED_TEST(due__elsewhere_all_take_turns),
    };
    return cmocka_run_group_tests_name("csa_turn", tests, NULL, NULL);
}
