// SPDX-License-Identifier: BSD-2-Clause
// What reports and answers do to requests. Side 0 asks, side 1's words are made by hand.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define MS  ALB_NS_PER_MS
#define ACK ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT)

enum { PATIENCE_MS = 134 }; // eight timeouts of 4.19 ms, four times as long as that each

static void send_and_lose(struct csa_pair *c)
{
    pair_send(c->pair, 0);
    while (pair_count(c->pair, 0))
        pair_lose(c->pair, 0);
}

// An answer of one segment to the request at that PSN offset.
static struct alb_csa_segment answer(struct csa_pair *c, uint8_t op, int32_t offset, int32_t request, uint32_t length)
{
    return (struct alb_csa_segment){
        .op = op,
        .flags = ALB_CSA_LAST,
        .dest_qpn = alb_qp_number(c->qps[0]),
        .psn = alb_psn_add(csa_pair_psn(0), offset),
        .request_psn = alb_psn_add(csa_pair_psn(0), request),
        .total_bytes = length,
        .payload_bytes = length,
        .original = 0x1122334455667788,
    };
}

static void arrive(struct csa_pair *c, const struct alb_csa_segment *segment, uint8_t value)
{
    csa_pair_arrive_segment(c, 1, segment, value);
}

// ---- reports --------------------------------------------------------------------------------------------------------

static void report__completes_in_order(void **state)
{
    struct csa_pair *c = *state;
    for (uint32_t i = 1; i <= 4; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, i == 2 ? 0 : ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    csa_pair_arrive_report(c, 1, 50, 3, 0, ACK);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS); // the second one says nothing
    csa_pair_expect_none(c, 0);
    csa_pair_arrive_report(c, 1, 51, 5, 0, ACK);
    csa_pair_expect(c, 0, 3, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 4, ALB_WC_SUCCESS);
    assert_true(alb_qp_is_quiet(c->qps[0]));
}

static void report__of_a_part_of_a_message_completes_nothing(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 3 * CSA_PAIR_SEGMENT);
    send_and_lose(c);
    csa_pair_arrive_report(c, 1, 50, 3, 0, ACK);
    csa_pair_expect_none(c, 0);
    csa_pair_arrive_report(c, 1, 51, 4, 0, ACK);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

static void refusal(uint8_t code, enum alb_wc_status status)
{
    struct csa_pair *c = csa_pair_new(NULL, NULL);
    struct alb_event event;
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 3, 0, 8);
    send_and_lose(c);
    csa_pair_arrive_report(c, 1, 50, 2, 0, ALB_AETH_SYNDROME_NAK(code));
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, status);
    csa_pair_expect(c, 0, 3, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_ERR);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_QP_FAILED, &event));
    assert_int_equal(event.failure.status, status);
    assert_int_equal(csa_pair_live(c, 0)->inflight_bytes, 0);
    csa_pair_free(c);
}

static void report__refuses(void **state)
{
    refusal(ALB_NAK_INVALID_REQUEST, ALB_WC_REM_INV_REQ_ERR);
    refusal(ALB_NAK_REMOTE_ACCESS_ERROR, ALB_WC_REM_ACCESS_ERR);
    refusal(ALB_NAK_REMOTE_OPERATIONAL_ERROR, ALB_WC_REM_OP_ERR);
    refusal(27, ALB_WC_BAD_RESP_ERR);
}

static void report__completion_queue_overruns(void **state)
{
    struct csa_pair *c = *state;
    struct alb_wc wc = {0};
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 2, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    while (alb_cq_push(c->pair->hosts[0].cq, &wc, false, c->pair->now))
        ;
    csa_pair_arrive_report(c, 1, 50, 3, 0, ACK);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_ERR);
    assert_int_equal(csa_pair_live(c, 0)->inflight_bytes, 0);
    struct alb_csa_segment segment = answer(c, ALB_CSA_READ_DATA, 0, 2, 8);
    arrive(c, &segment, 1);
    pair_pass(c->pair, 100 * MS);
}

// The queue overruns while an answer is being taken.
static void answer__completion_queue_overruns(void **state)
{
    struct csa_pair *c = *state;
    struct alb_wc wc = {0};
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 2, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    csa_pair_arrive_report(c, 1, 50, 3, 0, ACK);
    while (alb_cq_push(c->pair->hosts[0].cq, &wc, false, c->pair->now))
        ;
    struct alb_csa_segment segment = answer(c, ALB_CSA_READ_DATA, 1, 2, 8);
    arrive(c, &segment, 2); // waits
    segment = answer(c, ALB_CSA_READ_DATA, 0, 1, 8);
    arrive(c, &segment, 1);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_ERR);
    assert_int_equal(c->engines[0]->csa->waiting_bytes, 0);
    pair_settle(c->pair);
    pair_pass(c->pair, 100 * MS);
}

// ---- receiver not ready ---------------------------------------------------------------------------------------------

static void set_rnr(struct alb_qp_attr *attr, int side)
{
    attr->rnr_retry = 2;
    attr->min_rnr_timer = 20; // 10.24 ms
    attr->timeout = 0;
}

static void rnr__waits_then_asks_and_fails_after_its_retries(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_rnr);
    struct alb_event event;
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8);
    for (uint32_t i = 0; i < 2; i++) {
        pair_settle(c->pair);
        assert_true(c->csa[0]->is_waiting_rnr);
        pair_pass(c->pair, 10239999);
        assert_int_equal(pair_send(c->pair, 0), 0);
        pair_pass(c->pair, 1);
        assert_false(c->csa[0]->is_waiting_rnr);
    }
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_RNR_RETRY_EXC_ERR);
    csa_pair_expect(c, 0, 2, ALB_WC_WR_FLUSH_ERR);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_QP_FAILED, &event));
    assert_int_equal(event.failure.retries, 2);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_rcvd_rnr_err), 3);
    csa_pair_free(c);
}

// Reports that left before the question came are no answers to it, however many there are.
static void rnr__what_was_said_before_the_question_counts_nothing(void **state)
{
    const uint8_t rnr = ALB_AETH_SYNDROME_RNR(20);
    struct csa_pair *c = csa_pair_new(NULL, set_rnr);
    uint16_t number = 50;
    csa_pair_greet(c);
    csa_pair_live(c, 0)->rtt_min_ns = 30 * MS;
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    csa_pair_arrive_report(c, 1, number++, 1, 0, rnr);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(c->csa[0]->is_waiting_rnr);
        pair_pass(c->pair, 10240000);
        send_and_lose(c); // the question
        for (uint32_t said = 0; said < 5; said++) {
            pair_pass(c->pair, MS);
            csa_pair_arrive_report(c, 1, number++, 1, 0, rnr);
            assert_false(c->csa[0]->is_waiting_rnr);
        }
        pair_pass(c->pair, 25 * MS);
        csa_pair_expect_none(c, 0);
        csa_pair_arrive_report(c, 1, number++, 1, 0, rnr);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_RNR_RETRY_EXC_ERR);
    csa_pair_free(c);
}

// A network may be faster than it has been, and a simulated one may take no time.
static void rnr__an_answer_at_once_is_one(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_rnr);
    csa_pair_greet(c);
    csa_pair_live(c, 0)->rtt_min_ns = 30 * MS;
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    pair_pass(c->pair, 10240000);
    pair_settle(c->pair);
    assert_true(c->csa[0]->is_waiting_rnr);
    csa_pair_free(c);
}

// Of the message behind, which none has been asked for.
static void rnr__counts_at_once_after_progress(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_rnr);
    csa_pair_greet(c);
    csa_pair_live(c, 0)->rtt_min_ns = 30 * MS;
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_SEND, 2, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    csa_pair_arrive_report(c, 1, 50, 1, 0, ALB_AETH_SYNDROME_RNR(20));
    pair_pass(c->pair, 10240000);
    send_and_lose(c);
    csa_pair_arrive_report(c, 1, 51, 2, 0, ALB_AETH_SYNDROME_RNR(20));
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_true(c->csa[0]->is_waiting_rnr);
    csa_pair_free(c);
}

// The peer need not wait for its timer when the receive is there.
static void rnr__ends_with_the_receive(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_rnr);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_SEND, 2, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    assert_true(c->csa[0]->is_waiting_rnr);
    for (uint64_t i = 1; i <= 2; i++) {
        assert_int_equal(pair_receive(c->pair, c->qps[1], 10 + i, 0, 64), 0);
        pair_settle(c->pair); // no time passes
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
        csa_pair_expect(c, 1, 10 + i, ALB_WC_SUCCESS);
    }
    assert_false(c->csa[0]->is_waiting_rnr);
    pair_pass(c->pair, 100 * MS);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 3, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 3, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

// A bell costs a system call where a thread sleeps: one where a thread waits, and none else.
static void rnr__receives_ring_no_bell_while_nothing_waits(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_rnr);
    struct alb_sge sge = pair_sge(c->pair, 1, 0, 64);
    bool bell;
    csa_pair_greet(c);
    assert_int_equal(alb_qp_recv_post(c->qps[1], 1, &sge, 1, &bell), 0);
    assert_false(bell);
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_SEND, 2, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    assert_int_equal(alb_qp_recv_post(c->qps[1], 2, &sge, 1, &bell), 0);
    assert_true(bell);
    alb_engine_bell_ring(c->qps[1]);
    pair_settle(c->pair);
    assert_int_equal(alb_qp_recv_post(c->qps[1], 3, &sge, 1, &bell), 0);
    assert_false(bell);
    csa_pair_free(c);
}

static void rnr__progress_gives_the_retries_back(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_rnr);
    csa_pair_greet(c);
    for (uint32_t i = 0; i < 6; i++) {
        csa_pair_ask(c, ALB_WR_SEND, i, ALB_SEND_SIGNALED, 8);
        pair_settle(c->pair);
        assert_true(c->csa[0]->is_waiting_rnr);
        assert_int_equal(pair_receive(c->pair, c->qps[1], i, 4096, 8), 0);
        pair_pass(c->pair, 11 * MS);
        pair_settle(c->pair);
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
        csa_pair_expect(c, 1, i, ALB_WC_SUCCESS);
    }
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 0); // the peer holds what came
    csa_pair_free(c);
}

// ---- answers --------------------------------------------------------------------------------------------------------

static void answer__completes_when_it_is_whole_and_the_request_executed(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    struct alb_csa_segment segment = answer(c, ALB_CSA_READ_DATA, 0, 1, 8);
    arrive(c, &segment, 0x5a);
    csa_pair_expect_none(c, 0);
    csa_pair_arrive_report(c, 1, 50, 2, 0, ACK);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[0].memory, "\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a", 8);
    assert_int_equal(c->csa[0]->asked_open, 0);
    assert_int_equal(c->csa[0]->answered_open, 0);
}

static void answer__of_an_atomic(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_ATOMIC_FETCH_AND_ADD, 1, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    struct alb_csa_segment segment = answer(c, ALB_CSA_RESULT, 0, 1, 0);
    csa_pair_arrive_report(c, 1, 50, 2, 0, ACK);
    arrive(c, &segment, 0);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    uint64_t original;
    memcpy(&original, c->pair->hosts[0].memory, 8);
    assert_int_equal(original, segment.original);
}

static void bad_answer(const struct alb_csa_segment *change)
{
    struct csa_pair *c = csa_pair_new(NULL, NULL);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 16);
    csa_pair_ask(c, ALB_WR_ATOMIC_CMP_AND_SWP, 2, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    csa_pair_arrive_report(c, 1, 50, 3, 0, ACK);
    struct alb_csa_segment segment = answer(c, change->op, 0, (int32_t)change->request_psn, change->total_bytes);
    arrive(c, &segment, 9);
    csa_pair_expect(c, 0, 1, ALB_WC_BAD_RESP_ERR);
    csa_pair_expect(c, 0, 2, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(csa_pair_drops(c, 0, ALB_DROP_BAD_REQUEST), 1);
    csa_pair_free(c);
}

static void answer__that_does_not_fit_its_request(void **state)
{
    static const struct alb_csa_segment cases[] = {
        {.op = ALB_CSA_READ_DATA, .request_psn = 1, .total_bytes = 8},  // too short
        {.op = ALB_CSA_READ_DATA, .request_psn = 1, .total_bytes = 20}, // too long
        {.op = ALB_CSA_READ_DATA, .request_psn = 2, .total_bytes = 16}, // of the next one
        {.op = ALB_CSA_READ_DATA, .request_psn = 0, .total_bytes = 16}, // of the one before
        {.op = ALB_CSA_RESULT, .request_psn = 1},                       // of another kind
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++)
        bad_answer(&cases[i]);
}

static void answer__that_nobody_asked_for(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment = answer(c, ALB_CSA_READ_DATA, 0, 1, 8);
    arrive(c, &segment, 1);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_ERR);
}

static void set_one_at_a_time(struct alb_qp_attr *attr, int side)
{
    attr->max_rd_atomic = attr->max_dest_rd_atomic = 1;
}

// The peer may guess the PSN of a request that has not left.
static void answer__to_a_request_that_was_not_sent(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_one_at_a_time);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 2, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    assert_int_equal(c->csa[0]->requests.next, alb_psn_add(csa_pair_psn(0), 2));
    csa_pair_arrive_report(c, 1, 50, 2, 0, ACK);
    struct alb_csa_segment segment = answer(c, ALB_CSA_READ_DATA, 0, 1, 8);
    arrive(c, &segment, 1);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    segment = answer(c, ALB_CSA_READ_DATA, 1, 2, 8);
    arrive(c, &segment, 2);
    csa_pair_expect(c, 0, 2, ALB_WC_BAD_RESP_ERR);
    assert_int_equal(c->csa[0]->asked_open, 0);
    csa_pair_free(c);
}

// A key that is gone fails the READ, not what was executed before it.
static void answer__into_memory_that_is_gone(void **state)
{
    struct csa_pair *c = *state;
    static uint8_t memory[64];
    struct alb_region *mr;
    assert_int_equal(
        alb_mr_create(c->pair->hosts[0].pd, memory, sizeof(memory), (uintptr_t)memory, ALB_ACCESS_LOCAL_WRITE, &mr), 0);
    struct alb_sge sge = {.addr = (uintptr_t)memory, .length = 8, .lkey = alb_region_key(mr)};
    struct alb_send_wr wr = {
        .wr_id = 2,
        .opcode = ALB_WR_RDMA_READ,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
    };
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    send_and_lose(c);
    assert_int_equal(alb_mr_destroy(mr), 0);
    struct alb_csa_segment segment = answer(c, ALB_CSA_READ_DATA, 0, 2, 8);
    arrive(c, &segment, 1);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_LOC_PROT_ERR);
}

// ---- signs of life --------------------------------------------------------------------------------------------------

// Timeout code 10 and seven retries: eight times 4.194304 ms. Its local key was gone when it was to leave again, which
// it did not report. It had arrived, and is answered. What was sent before it completes first.
static void answer__to_a_request_that_has_failed_since(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, set_rnr);
    static uint8_t memory[8];
    struct alb_region *mr;
    csa_pair_greet(c);
    assert_int_equal(
        alb_mr_create(c->pair->hosts[0].pd, memory, sizeof(memory), (uintptr_t)memory, ALB_ACCESS_LOCAL_WRITE, &mr), 0);
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 8);
    struct alb_sge sge = {(uintptr_t)memory, sizeof(memory), alb_region_key(mr)};
    struct alb_send_wr wr = {
        .wr_id = 2,
        .opcode = ALB_WR_ATOMIC_WRITE,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
    };
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(alb_mr_destroy(mr), 0);
    pair_send(c->pair, 1);
    while (pair_count(c->pair, 1)) // both are held, and not acknowledged
        pair_lose(c->pair, 1);
    pair_pass(c->pair, 2 * MS);
    pair_send(c->pair, 0);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTS);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 3, 0, 64), 0);
    for (uint32_t i = 0; i < 20; i++) {
        pair_pass(c->pair, MS);
        pair_settle(c->pair);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_LOC_PROT_ERR);
    csa_pair_free(c);
}

static void life__ends_with_silence(void **state)
{
    struct csa_pair *c = *state;
    struct alb_event event;
    pair_pass(c->pair, 500 * MS); // nothing was owed meanwhile
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    for (uint32_t i = 0; i < PATIENCE_MS; i++) {
        pair_pass(c->pair, MS);
        send_and_lose(c);
        csa_pair_expect_none(c, 0);
    }
    pair_pass(c->pair, MS);
    csa_pair_expect(c, 0, 1, ALB_WC_RETRY_EXC_ERR);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_QP_FAILED, &event));
    assert_string_equal(event.failure.reason, "no sign of life");
    assert_int_equal(event.failure.silence_ns, 8ull * 4 * (4096 << 10));
    assert_int_equal(event.failure.retries, csa_pair_stat(c, 0, ALB_STAT_tail_probes));
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retry_exceeded_err), 1);
}

static void life__ends_as_soon_as_the_timeout_that_was_set_while_it_drains(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_qp_attr attr = {.state = ALB_QPS_SQD, .timeout = 1, .retry_cnt = 0};
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT, c->pair->now), 0);
    for (uint32_t i = 0; i < 10; i++) {
        pair_pass(c->pair, MS);
        send_and_lose(c);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_RETRY_EXC_ERR);
}

// The engines are not driven for so long.
static void stand_still(struct csa_pair *c, alb_time ns)
{
    c->pair->now += ns;
    pair_pass(c->pair, 0);
}

static void life__is_not_judged_by_who_was_away(void **state)
{
    struct csa_pair *c = *state;
    const uint32_t timeout_ms = 4; // not stretched
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    stand_still(c, 2 * PATIENCE_MS * MS); // nothing was asked meanwhile, nor received
    csa_pair_expect_none(c, 0);
    for (uint32_t i = 0; i < timeout_ms; i++) {
        send_and_lose(c);
        csa_pair_expect_none(c, 0);
        pair_pass(c->pair, MS);
    }
    send_and_lose(c);
    csa_pair_expect_none(c, 0);
    pair_pass(c->pair, MS); // it has had time to answer, and has not
    csa_pair_expect(c, 0, 1, ALB_WC_RETRY_EXC_ERR);
}

static void life__goes_on_for_who_was_away(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    stand_still(c, 2 * PATIENCE_MS * MS);
    for (uint32_t i = 0; i < 8; i++) {
        pair_pass(c->pair, MS / 2);
        pair_settle(c->pair);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

static void life__goes_on_while_the_peer_is_heard(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8);
    send_and_lose(c);
    for (uint32_t i = 0; i < 20; i++) {
        pair_pass(c->pair, 100 * MS);
        send_and_lose(c);
        csa_pair_arrive_report(c, 1, (uint8_t)(50 + i), 2, 0, ACK);
    }
    csa_pair_expect_none(c, 0);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(report__completes_in_order),
        CSA_GREETED_TEST(report__of_a_part_of_a_message_completes_nothing),
        cmocka_unit_test(report__refuses),
        CSA_GREETED_TEST(report__completion_queue_overruns),
        CSA_GREETED_TEST(answer__completion_queue_overruns),
        cmocka_unit_test(rnr__waits_then_asks_and_fails_after_its_retries),
        cmocka_unit_test(rnr__what_was_said_before_the_question_counts_nothing),
        cmocka_unit_test(rnr__an_answer_at_once_is_one),
        cmocka_unit_test(rnr__counts_at_once_after_progress),
        cmocka_unit_test(rnr__ends_with_the_receive),
        cmocka_unit_test(rnr__receives_ring_no_bell_while_nothing_waits),
        cmocka_unit_test(rnr__progress_gives_the_retries_back),
        CSA_GREETED_TEST(answer__completes_when_it_is_whole_and_the_request_executed),
        CSA_GREETED_TEST(answer__of_an_atomic),
        cmocka_unit_test(answer__that_does_not_fit_its_request),
        CSA_GREETED_TEST(answer__that_nobody_asked_for),
        cmocka_unit_test(answer__to_a_request_that_was_not_sent),
        CSA_GREETED_TEST(answer__into_memory_that_is_gone),
        cmocka_unit_test(answer__to_a_request_that_has_failed_since),
        CSA_GREETED_TEST(life__ends_with_silence),
        CSA_GREETED_TEST(life__ends_as_soon_as_the_timeout_that_was_set_while_it_drains),
        CSA_GREETED_TEST(life__is_not_judged_by_who_was_away),
        CSA_GREETED_TEST(life__goes_on_for_who_was_away),
        CSA_GREETED_TEST(life__goes_on_while_the_peer_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
