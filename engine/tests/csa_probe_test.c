// SPDX-License-Identifier: BSD-2-Clause
// Silence. No round-trip time has been measured here, so one of a millisecond is assumed, and the policy "csa" acts
// after one and three eighths of it.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define US         ALB_NS_PER_US
#define MS         ALB_NS_PER_MS
#define SILENCE_NS (1375 * US)

static void lose_all(struct csa_pair *c, int side)
{
    pair_send(c->pair, side);
    while (pair_count(c->pair, side) > 0)
        pair_lose(c->pair, side);
}

static void set_timeout(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 0;       // wait for ever
    attr->min_rnr_timer = 0; // 655 ms
}

static struct csa_pair *patient(void)
{
    struct csa_pair *c = csa_pair_new(NULL, set_timeout);
    csa_pair_greet(c);
    return c;
}

static void probe__sends_the_newest_segment_again(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 3 * CSA_PAIR_SEGMENT);
    lose_all(c, 0);
    pair_pass(c->pair, SILENCE_NS - 1);
    assert_int_equal(pair_send(c->pair, 0), 0);
    pair_pass(c->pair, 1);
    assert_int_equal(pair_send(c->pair, 0), 1);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REQUEST, &frame), 1);
    assert_int_equal(frame.segment.index, 2);
    assert_int_equal(frame.segment.flags, ALB_CSA_LAST | ALB_CSA_PROBING | ALB_CSA_REPORT_NOW);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_tail_probes), 1);
    // Its report shows that the others are lost.
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[0].memory, c->pair->hosts[1].memory, 3 * CSA_PAIR_SEGMENT);
}

// A link takes a batch at a time. Nothing of the first asks for a report.
static void send_a_batch_of_many(struct csa_pair *c)
{
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 40 * CSA_PAIR_SEGMENT);
    alb_engine_bells(c->engines[0], c->pair->now);
    c->pair->hosts[0].tx.segment_capacity = 4;
    assert_int_equal(pair_send_batch(c->pair, 0), 4);
}

// The rest waits for longer than silence.
static void probe__asks_before_what_is_new(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    csa_pair_greet(c);
    send_a_batch_of_many(c);
    uint32_t sent = alb_stream_out_count(&c->csa[0]->requests);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(pair_send(c->pair, 1), 0);
    pair_pass(c->pair, SILENCE_NS);
    assert_true(pair_send_batch(c->pair, 0) > 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_PROBE, &frame), 1);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REQUEST, &frame),
                     alb_stream_out_count(&c->csa[0]->requests) - sent); // nothing goes again
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 0);
}

// But if that is not answered either something may be lost.
static void probe__asks_once_before_what_is_new(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    csa_pair_greet(c);
    send_a_batch_of_many(c);
    while (pair_count(c->pair, 0) > 0)
        pair_lose(c->pair, 0);
    pair_pass(c->pair, SILENCE_NS);
    pair_pass(c->pair, 2 * SILENCE_NS); // the link has taken nothing meanwhile
    assert_true(pair_send_batch(c->pair, 0) > 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_PROBE, &frame), 1);
    csa_pair_count(c, 0, ALB_CSA_REQUEST, &frame);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 1);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

// Who has never been heard answers the first message only.
static void probe__the_first_message_though_more_follows(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    send_a_batch_of_many(c);
    while (pair_count(c->pair, 0) > 0)
        pair_lose(c->pair, 0);
    pair_pass(c->pair, SILENCE_NS);
    assert_true(pair_send_batch(c->pair, 0) > 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_PROBE, NULL), 0);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 1);
    assert_true(csa_pair_count(c, 0, ALB_CSA_REQUEST, &frame) > 0);
}

static void use_a_trace(struct alb_engine_config *config)
{
    config->trace_records = 64;
}

// The next record of that kind.
static struct alb_trace_record traced(struct csa_pair *c, enum alb_trace_kind kind)
{
    struct alb_trace_record record;
    do
        assert_true(alb_engine_trace(c->engines[0], &record));
    while (record.kind != kind);
    return record;
}

// The peer's answers end, though the first of them never came: nobody waits for it any more.
static void probe__of_answers_to_who_is_in_error(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    struct csa_made made;
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 3 * CSA_PAIR_SEGMENT);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    lose_all(c, 1);
    csa_pair_arrive_report(c, 1, 1000, 1, 0, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_ACCESS_ERROR));
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_ERR);
    const struct alb_csa_probe probe = {
        .dest_qpn = alb_qp_number(c->qps[0]), .is_response = true, .next = c->csa[1]->responses.next};
    csa_pair_make(c, 1, &made);
    csa_pair_add_probe(&made, &probe);
    csa_pair_arrive(c, 1, &made);
    pair_send(c->pair, 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REPORT, &frame), 1);
    assert_true(frame.report.is_response);
    assert_int_equal(frame.report.cumulative, probe.next);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(alb_stream_out_count(&c->csa[1]->responses), 0);
}

static void silence__is_in_the_trace_and_so_is_the_report_that_ends_it(void **state)
{
    struct csa_pair *c = csa_pair_new(use_a_trace, NULL);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    lose_all(c, 0);
    pair_pass(c->pair, SILENCE_NS);
    pair_settle(c->pair);
    traced(c, ALB_TRACE_report); // of the greeting
    struct alb_trace_record record = traced(c, ALB_TRACE_silence);
    assert_int_equal(record.a, 0);
    assert_int_equal(record.b, MS);
    record = traced(c, ALB_TRACE_report);
    assert_int_equal(record.psn, alb_psn_add(csa_pair_psn(0), 2));
    csa_pair_free(c);
}

static void probe__waits_twice_as_long_each_time(void **state)
{
    struct csa_pair *c = patient();
    alb_mtu_set_route(c->engines[0], c->csa[0]->assoc, 512); // so little that the path MTU is not suspected
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    lose_all(c, 0);
    for (uint32_t i = 0; i < 4; i++) {
        pair_pass(c->pair, (SILENCE_NS << i) - 1);
        assert_int_equal(pair_send(c->pair, 0), 0);
        pair_pass(c->pair, 1);
        assert_int_equal(pair_send(c->pair, 0), 1);
        lose_all(c, 0);
    }
    assert_int_equal(c->csa[0]->requests.probes, 4);
    pair_pass(c->pair, SILENCE_NS << 4);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(c->csa[0]->requests.probes, 0);
    csa_pair_free(c);
}

static void probe__newest_and_oldest_take_turns(void **state)
{
    struct csa_pair *c = patient();
    struct alb_csa_frame frame;
    alb_mtu_set_route(c->engines[0], c->csa[0]->assoc, 512); // so little that the path MTU is not suspected
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 3 * 256);
    lose_all(c, 0);
    uint32_t newest = (uint32_t)alb_stream_out_count(&c->csa[0]->requests) - 1;
    assert_true(newest > 0);
    for (uint32_t i = 0; i < 4; i++) {
        pair_pass(c->pair, SILENCE_NS << i);
        pair_send(c->pair, 0);
        assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REQUEST, &frame), 1);
        assert_int_equal(frame.segment.index, i % 2 ? 0 : newest);
        while (pair_count(c->pair, 0) > 0)
            pair_lose(c->pair, 0);
    }
    csa_pair_free(c);
}

static void probe__none_while_nothing_is_owed(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    pair_pass(c->pair, 100 * MS);
    assert_int_equal(pair_send(c->pair, 0), 0);
    assert_int_equal(pair_send(c->pair, 1), 0);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_tail_probes), 0);
}

// All of a request is acknowledged, and its answer does not come: there is nothing to send again.
static void probe__is_bare_when_only_an_answer_is_missing(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    csa_pair_arrive_report(c, 1, 100, 2, 0, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    lose_all(c, 1);
    assert_int_equal(c->csa[0]->requests.una, c->csa[0]->requests.next);
    assert_int_equal(c->csa[0]->asked_open, 1);
    pair_pass(c->pair, SILENCE_NS);
    pair_send(c->pair, 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_PROBE, &frame), 1);
    assert_int_equal(frame.probe.next, c->csa[0]->requests.next);
    assert_false(frame.probe.is_response);
    assert_int_equal(frame.probe.dest_qpn, alb_qp_number(c->qps[1]));
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

// Before anything came from the peer, it knows us by the first message only.
static void probe__the_oldest_segment_to_who_was_never_heard(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_frame frame;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, 0, 8);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8);
    lose_all(c, 0);
    pair_pass(c->pair, SILENCE_NS);
    pair_send(c->pair, 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REQUEST, &frame), 1);
    assert_int_equal(frame.segment.psn, csa_pair_psn(0));
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
}

// What the peer asks of us says nothing about what we have sent.
static void probe__is_not_put_off_by_what_the_peer_sends(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    lose_all(c, 0);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_WRITE, i, 0, 4096, 8), 0);
        pair_settle(c->pair);
        pair_pass(c->pair, 200 * US);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

// A responder need not fail in time, so its probes end. When the requester is heard again they begin again.
static void probe__of_answers_resumes_when_the_peer_is_heard(void **state)
{
    struct csa_pair *c = patient();
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 2 * CSA_PAIR_ANSWER_SEGMENT);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    for (uint32_t i = 0; i < 200; i++) { // a partition
        lose_all(c, 1);
        lose_all(c, 0);
        pair_pass(c->pair, 100 * MS);
    }
    assert_true(csa_pair_stat(c, 1, ALB_STAT_tail_probes) >= 10);
    for (uint32_t i = 0; i < 100; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 50 * MS);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

// The peer may post its receives only when it has what it asked for.
static void probe__of_answers_does_not_wait_for_a_receive(void **state)
{
    struct csa_pair *c = patient();
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    assert_true(c->csa[0]->is_waiting_rnr);
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_READ, 2, ALB_SEND_SIGNALED, 4096, 8), 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    lose_all(c, 0); // the answer
    for (uint32_t i = 0; i < 40; i++) {
        pair_pass(c->pair, 2 * MS);
        pair_settle(c->pair);
    }
    csa_pair_expect(c, 1, 2, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

static void use_small_window(struct alb_engine_config *config)
{
    config->window_start_bytes = config->window_min_bytes = config->window_max_bytes = 4 * CSA_PAIR_CHARGE;
}

// The window shrinks below what is under way, and all of that is lost: nothing opens it but an answer.
static void probe__passes_a_closed_window(void **state)
{
    struct csa_pair *c = csa_pair_new(use_small_window, NULL);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8 * CSA_PAIR_SEGMENT);
    lose_all(c, 0);
    assert_int_equal(alb_stream_out_count(&c->csa[0]->requests), 4);
    csa_pair_live(c, 0)->congestion.window_bytes = CSA_PAIR_CHARGE;
    pair_pass(c->pair, SILENCE_NS);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

static void wait_long(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 20;
}

static void use_go_back_n(struct alb_engine_config *config)
{
    config->loss = "go-back-n";
}

static void use_small_window_and_fixed(struct alb_engine_config *config)
{
    use_small_window(config);
    config->loss = "fixed";
}

// Its peer is gone. The window is not its own: others go on.
static void leave_the_window(void (*change)(struct alb_engine_config *config))
{
    struct csa_pair *c = csa_pair_new(change, wait_long);
    struct alb_qp *others[2];
    csa_pair_greet(c);
    pair_connect(c->pair, ALB_QPT_RC, others, NULL);
    pair_settle(c->pair);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8 * CSA_PAIR_SEGMENT);
    lose_all(c, 0);
    assert_int_equal(pair_ask(c->pair, others[0], ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8192, 8 * 1024), 0);
    for (uint32_t i = 0; i < 15; i++) {
        pair_pass(c->pair, MS);
        pair_send(c->pair, 0);
        for (uint32_t left = pair_count(c->pair, 0); left > 0; left--) {
            struct csa_seen seen;
            csa_pair_look(c, 0, 0, &seen);
            if (seen.frames[0].type == ALB_CSA_REQUEST && seen.frames[0].segment.dest_qpn == alb_qp_number(c->qps[1]))
                pair_lose(c->pair, 0);
            else
                pair_deliver(c->pair, 0);
        }
        pair_send(c->pair, 1);
        pair_deliver_all(c->pair, 1);
    }
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
    assert_int_equal(alb_stream_out_count(&c->csa[0]->requests), 4); // nothing new of it has left
    assert_int_equal(csa_pair_live(c, 0)->inflight_bytes, 0);
    // When it is heard again all of it goes on.
    for (uint32_t i = 0; i < 20; i++) {
        pair_pass(c->pair, 5 * MS);
        pair_settle(c->pair);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(c->csa[0]->requests.inflight_bytes, 0);
    csa_pair_free(c);
}

static void silence__leaves_the_window_to_others(void **state)
{
    leave_the_window(use_small_window);
}

// Also where all goes again at first.
static void silence__leaves_the_window_to_others_with_timeouts(void **state)
{
    leave_the_window(use_small_window_and_fixed);
}

// A second queue pair's message, beside one of the pair's; both are lost or late.
static struct csa_pair *two_silent(struct alb_qp *others[2])
{
    struct csa_pair *c = csa_pair_new(NULL, set_timeout);
    csa_pair_greet(c);
    pair_connect(c->pair, ALB_QPT_RC, others, NULL);
    pair_settle(c->pair);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 2 * CSA_PAIR_SEGMENT);
    assert_int_equal(pair_ask(c->pair, others[0], ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8192, 1024), 0);
    return c;
}

static void silence__of_all_streams_is_asked_about_once(void **state)
{
    struct alb_qp *others[2];
    struct csa_pair *c = two_silent(others);
    pair_send(c->pair, 0);
    pair_pass(c->pair, 2 * SILENCE_NS);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 1);
    csa_pair_free(c);
}

// The answer to the one probe shows that the peer is there: the other stream asks, too.
static void silence__of_all_streams_that_lost_something(void **state)
{
    struct alb_qp *others[2];
    struct csa_pair *c = two_silent(others);
    lose_all(c, 0);
    for (uint32_t i = 0; i < 3; i++) {
        pair_pass(c->pair, SILENCE_NS);
        pair_settle(c->pair);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_tail_probes), 2);
    csa_pair_free(c);
}

static void use_slow_start(struct alb_engine_config *config)
{
    config->congestion = "window";
    config->window_start_bytes = 4 * CSA_PAIR_CHARGE;
}

// It is only farther away than was thought. Of the four that left one has gone again since, and counts for nothing.
static void silence__that_ends_widens_the_window_by_what_has_arrived(void **state)
{
    struct csa_pair *c = csa_pair_new(use_slow_start, set_timeout);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8 * CSA_PAIR_SEGMENT);
    uint32_t window_bytes = csa_pair_live(c, 0)->congestion.window_bytes;
    assert_int_equal(pair_send(c->pair, 0), 4);
    pair_pass(c->pair, SILENCE_NS);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_pass(c->pair, 2 * SILENCE_NS);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_pass(c->pair, 4 * SILENCE_NS);
    assert_int_equal(pair_send(c->pair, 0), 1);
    assert_int_equal(csa_pair_live(c, 0)->inflight_bytes, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    assert_int_equal(csa_pair_live(c, 0)->congestion.window_bytes, window_bytes + 3 * CSA_PAIR_CHARGE);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

static void use_irn(struct alb_engine_config *config)
{
    config->loss = "irn";
}

// The segment that is lost can not go again, since its key is gone; its request ends when the one before it has. That
// one is held by the peer, and must be asked for.
static void ask_behind_a_failure(void (*change)(struct alb_engine_config *config))
{
    struct csa_pair *c = csa_pair_new(change, set_timeout);
    static uint8_t memory[8];
    struct alb_region *mr;
    csa_pair_greet(c);
    assert_int_equal(
        alb_mr_create(c->pair->hosts[0].pd, memory, sizeof(memory), (uintptr_t)memory, ALB_ACCESS_LOCAL_WRITE, &mr), 0);
    struct alb_sge sge = {.addr = (uintptr_t)memory, .length = 8, .lkey = alb_region_key(mr)};
    struct alb_send_wr wr = {
        .wr_id = 2, .opcode = ALB_WR_SEND, .flags = ALB_SEND_SIGNALED, .sge = &sge, .sge_count = 1};
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    lose_all(c, 1);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    lose_all(c, 0);
    csa_pair_arrive_report(c, 1, c->csa[1]->in_requests.report_number, 1, 1,
                           ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR)); // the one that was lost, in other words
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 3, 8192, 64), 0);
    for (uint32_t i = 0; i < 30; i++) {
        pair_pass(c->pair, MS);
        pair_settle(c->pair);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_LOC_PROT_ERR);
    csa_pair_free(c);
}

static void probe__where_the_segment_can_not_go_again(void **state)
{
    ask_behind_a_failure(NULL);
    ask_behind_a_failure(use_irn);
    ask_behind_a_failure(use_go_back_n);
}

static void use_window_of_one(struct alb_engine_config *config)
{
    config->window_start_bytes = config->window_min_bytes = config->window_max_bytes = CSA_PAIR_CHARGE;
    config->loss = "fixed";
}

// Of two answers the window holds one. When both are given up nothing takes the one that is held back for a new one.
static void silence__ends_answers_that_the_window_held_back(void **state)
{
    struct csa_pair *c = csa_pair_new(use_window_of_one, set_timeout);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, CSA_PAIR_ANSWER_SEGMENT);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 2, ALB_SEND_SIGNALED, CSA_PAIR_ANSWER_SEGMENT);
    pair_settle(c->pair);
    pair_send(c->pair, 0);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 3, ALB_SEND_SIGNALED, 2 * CSA_PAIR_ANSWER_SEGMENT);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    uint32_t last = 0;
    for (uint32_t i = 0; i < 100; i++) { // the requester is gone
        lose_all(c, 0);
        last = pair_send(c->pair, 1);
        lose_all(c, 1);
        pair_pass(c->pair, 1000 * MS);
    }
    assert_int_equal(last, 0);
    assert_true(alb_csa_has_given_up_answers(c->csa[1]));
    assert_true(alb_engine_is_quiet(c->engines[1]));
    for (uint32_t i = 0; i < 100; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 50 * MS);
    }
    for (uint64_t i = 1; i <= 3; i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

static void silence__of_other_policies_sends_all_again(void **state)
{
    struct csa_pair *c = csa_pair_new(use_go_back_n, NULL);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 3 * CSA_PAIR_SEGMENT);
    lose_all(c, 0);
    pair_pass(c->pair, 3 * MS + 125 * US); // three round trips, and the margin
    assert_int_equal(pair_send(c->pair, 0), 3);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_local_ack_timeout_err), 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 3);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

static void use_interval(struct alb_engine_config *config)
{
    config->loss = "fixed:interval=5ms";
}

// What went again is lost, too, and the peer says in between that it still misses it.
static void silence__of_one_interval_is_no_longer_if_the_peer_is_heard(void **state)
{
    struct csa_pair *c = csa_pair_new(use_interval, set_timeout);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 2 * CSA_PAIR_SEGMENT);
    lose_all(c, 0);
    pair_pass(c->pair, 5 * MS);
    assert_int_equal(pair_send(c->pair, 0), 2);
    while (pair_count(c->pair, 0) > 0)
        pair_lose(c->pair, 0);
    pair_pass(c->pair, MS);
    csa_pair_arrive_report(c, 1, 50, 1, 0, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    pair_pass(c->pair, 4 * MS - 1);
    assert_int_equal(pair_send(c->pair, 0), 0);
    pair_pass(c->pair, 1);
    assert_true(pair_send(c->pair, 0) > 0);
    assert_int_equal(c->csa[0]->requests.probes, 2);
    csa_pair_free(c);
}

static void use_four_paths(struct alb_engine_config *config)
{
    config->path = "adaptive";
    config->path_max = 4;
}

// Its thread waited for a processor: all that was sent has come, and is answered one after the other.
static void silence__of_a_peer_that_was_halted_loses_nothing(void **state)
{
    struct csa_pair *c = csa_pair_new(use_four_paths, set_timeout);
    csa_pair_greet(c);
    for (uint32_t i = 0; i < 8; i++) {
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 2 * CSA_PAIR_SEGMENT);
        pair_send(c->pair, 0);
    }
    assert_int_equal(csa_pair_live(c, 0)->paths->waiting, 4);
    for (uint32_t i = 0; i < 4; i++) {
        pair_pass(c->pair, SILENCE_NS << i);
        assert_int_equal(pair_send(c->pair, 0), 1);
    }
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_tail_probes), 4);
    while (pair_count(c->pair, 0) > 0) {
        pair_deliver(c->pair, 0);
        pair_pass(c->pair, 10 * US);
        pair_send(c->pair, 1);
        pair_deliver_all(c->pair, 1);
        pair_send(c->pair, 0);
    }
    pair_settle(c->pair);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 4);
    for (uint32_t i = 0; i < 8; i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(probe__sends_the_newest_segment_again),
        CSA_PAIR_TEST(probe__asks_before_what_is_new),
        CSA_PAIR_TEST(probe__asks_once_before_what_is_new),
        CSA_PAIR_TEST(probe__the_first_message_though_more_follows),
        CSA_PAIR_TEST(probe__waits_twice_as_long_each_time),
        CSA_PAIR_TEST(probe__newest_and_oldest_take_turns),
        CSA_PAIR_TEST(probe__none_while_nothing_is_owed),
        CSA_PAIR_TEST(probe__is_bare_when_only_an_answer_is_missing),
        CSA_PAIR_TEST(probe__the_oldest_segment_to_who_was_never_heard),
        CSA_PAIR_TEST(probe__is_not_put_off_by_what_the_peer_sends),
        cmocka_unit_test(probe__of_answers_resumes_when_the_peer_is_heard),
        cmocka_unit_test(probe__of_answers_does_not_wait_for_a_receive),
        CSA_PAIR_TEST(probe__of_answers_to_who_is_in_error),
        cmocka_unit_test(probe__passes_a_closed_window),
        cmocka_unit_test(probe__where_the_segment_can_not_go_again),
        cmocka_unit_test(silence__is_in_the_trace_and_so_is_the_report_that_ends_it),
        cmocka_unit_test(silence__of_a_peer_that_was_halted_loses_nothing),
        cmocka_unit_test(silence__leaves_the_window_to_others),
        cmocka_unit_test(silence__leaves_the_window_to_others_with_timeouts),
        cmocka_unit_test(silence__of_all_streams_is_asked_about_once),
        cmocka_unit_test(silence__of_all_streams_that_lost_something),
        cmocka_unit_test(silence__that_ends_widens_the_window_by_what_has_arrived),
        cmocka_unit_test(silence__ends_answers_that_the_window_held_back),
        cmocka_unit_test(silence__of_other_policies_sends_all_again),
        cmocka_unit_test(silence__of_one_interval_is_no_longer_if_the_peer_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
