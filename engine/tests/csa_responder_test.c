// SPDX-License-Identifier: BSD-2-Clause
// The execution of requests: in order, once, or refused. Side 0 asks by hand, side 1 executes.
#include "base/corruption.h"
#include "base/prng.h"
#include "engine/region_claim.h"
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

static struct alb_csa_segment ask(struct csa_pair *c, uint8_t op, int32_t offset)
{
    bool has_payload = op <= ALB_CSA_WRITE_IMM || op == ALB_CSA_ATOMIC_WRITE;
    struct alb_csa_segment segment = csa_pair_write(c, 0, offset, 0, 8, has_payload ? 8 : 0, ALB_CSA_LAST);
    segment.op = op;
    segment.acked = c->csa[1]->responses.una;
    return segment;
}

static void arrive(struct csa_pair *c, const struct alb_csa_segment *segment)
{
    csa_pair_arrive_segment(c, 0, segment, 0x5a);
}

static uint64_t word(struct csa_pair *c)
{
    uint64_t value;
    memcpy(&value, c->pair->hosts[1].memory, sizeof(value));
    return value;
}

static void set_word(struct csa_pair *c, uint64_t value)
{
    memcpy(c->pair->hosts[1].memory, &value, sizeof(value));
}

static void send__into_the_posted_receive(void **state)
{
    static const uint8_t ops[] = {ALB_CSA_SEND, ALB_CSA_SEND_IMM, ALB_CSA_WRITE_IMM};
    struct csa_pair *c = *state;
    struct alb_wc wc;
    for (uint32_t i = 0; i < ALB_COUNT(ops); i++) {
        assert_int_equal(pair_receive(c->pair, c->qps[1], i, 8192 + 64 * i, 64), 0);
        struct alb_csa_segment segment = ask(c, ops[i], 1 + (int32_t)i);
        segment.imm_be = 0x99;
        segment.recv_number = i;
        arrive(c, &segment);
        assert_true(pair_poll(c->pair, 1, &wc));
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.byte_len, 8);
        assert_int_equal(wc.opcode, ops[i] == ALB_CSA_WRITE_IMM ? ALB_WC_RECV_RDMA_WITH_IMM : ALB_WC_RECV);
        assert_int_equal(wc.flags & ALB_WC_WITH_IMM, ops[i] == ALB_CSA_SEND ? 0 : ALB_WC_WITH_IMM);
        if (ops[i] != ALB_CSA_WRITE_IMM)
            assert_int_equal(c->pair->hosts[1].memory[8192 + 64 * i], 0x5a);
    }
}

static void atomic__once_however_often_it_comes(void **state)
{
    struct csa_pair *c = *state;
    set_word(c, 40);
    struct alb_csa_segment segment = ask(c, ALB_CSA_FETCH_ADD, 1);
    segment.operand = 2;
    for (uint32_t i = 0; i < 5; i++)
        arrive(c, &segment);
    assert_int_equal(word(c), 42);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_DUPLICATE), 4);
    segment = ask(c, ALB_CSA_CMP_SWAP, 2);
    segment.compare = 42;
    segment.operand = 7;
    arrive(c, &segment);
    assert_int_equal(word(c), 7);
    segment = ask(c, ALB_CSA_CMP_SWAP, 3);
    segment.compare = 42;
    segment.operand = 9;
    arrive(c, &segment);
    assert_int_equal(word(c), 7);
    segment = ask(c, ALB_CSA_ATOMIC_WRITE, 4);
    arrive(c, &segment);
    assert_int_equal(word(c), 0x5a5a5a5a5a5a5a5a);
    assert_int_equal(c->csa[1]->answer_count, 4);
}

// Answers that are on their way take all numbers by which old and new can be distinguished. What waits for that has
// done nothing yet.
static void atomic__no_room_for_its_answer__is_executed_once_and_later(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa *csa = c->csa[1];
    alb_psn answer_psn = csa->answer_psn;
    set_word(c, 40);
    struct alb_csa_segment segment = ask(c, ALB_CSA_FETCH_ADD, 1);
    segment.operand = 2;
    csa->answer_psn = alb_psn_add(csa->responses.una, ALB_PSN_MASK / 2);
    arrive(c, &segment);
    assert_true(csa->in_requests.waits_rnr);
    assert_int_equal(word(c), 40);
    csa->answer_psn = answer_psn;
    alb_stream_in_retry(&csa->in_requests, c->pair->now);
    assert_int_equal(word(c), 42);
    assert_int_equal(csa->answer_count, 1);
}

// What is refused: its syndrome, the event, and as what the packet counts.
static void refuse(const struct alb_csa_segment *change, uint8_t code, enum alb_event_type type, enum alb_drop drop)
{
    struct csa_pair *c = csa_pair_new(NULL, NULL);
    struct alb_csa_frame frame;
    struct alb_event event;
    csa_pair_greet(c);
    uint64_t before = word(c);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 8192, 4), 0);
    struct alb_csa_segment segment = ask(c, change->op, 1);
    segment.rkey ^= change->rkey;
    segment.va += change->va;
    segment.invalidate_rkey = change->invalidate_rkey;
    arrive(c, &segment);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(csa_pair_drops(c, 1, drop), 1);
    assert_int_equal(word(c), before);
    assert_true(pair_event(c->pair, 1, type, &event));
    pair_send(c->pair, 1);
    assert_true(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame) > 0);
    assert_int_equal(frame.report.syndrome, ALB_AETH_SYNDROME_NAK(code));
    assert_int_equal(frame.report.cumulative, alb_psn_add(csa_pair_psn(0), 1));
    arrive(c, &segment); // it says so again
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame), 2);
    csa_pair_free(c);
}

static void refuse__what_may_not_be(void **state)
{
    static const struct {
        struct alb_csa_segment segment;
        uint8_t code;
        enum alb_event_type type;
        enum alb_drop drop;
    } cases[] = {
        {{.op = ALB_CSA_WRITE, .rkey = 0x100}, ALB_NAK_REMOTE_ACCESS_ERROR, ALB_EVENT_QP_ACCESS_ERR, ALB_DROP_ACCESS},
        {{.op = ALB_CSA_WRITE, .va = PAIR_MEMORY_BYTES - 7},
         ALB_NAK_REMOTE_ACCESS_ERROR,
         ALB_EVENT_QP_ACCESS_ERR,
         ALB_DROP_ACCESS},
        {{.op = ALB_CSA_READ, .rkey = 0x100}, ALB_NAK_REMOTE_ACCESS_ERROR, ALB_EVENT_QP_ACCESS_ERR, ALB_DROP_ACCESS},
        {{.op = ALB_CSA_FETCH_ADD, .rkey = 0x100},
         ALB_NAK_REMOTE_ACCESS_ERROR,
         ALB_EVENT_QP_ACCESS_ERR,
         ALB_DROP_ACCESS},
        {{.op = ALB_CSA_CMP_SWAP, .va = 4}, ALB_NAK_INVALID_REQUEST, ALB_EVENT_QP_REQ_ERR, ALB_DROP_BAD_REQUEST},
        {{.op = ALB_CSA_SEND}, ALB_NAK_INVALID_REQUEST, ALB_EVENT_QP_REQ_ERR, ALB_DROP_RECEIVE_TOO_SHORT},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++)
        refuse(&cases[i].segment, cases[i].code, cases[i].type, cases[i].drop);
}

// Four were agreed; the requester says in each which answers it holds.
// With one segment, as on the other device: there the last packet of several names no memory.
static void refuse__ends_the_receive_of_an_immediate(void **state)
{
    struct csa_pair *c = *state;
    struct alb_wc wc;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 7, 8192, 64), 0);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 8, 8192, 64), 0);
    struct alb_csa_segment segment = ask(c, ALB_CSA_WRITE_IMM, 1);
    segment.rkey ^= 0x100;
    arrive(c, &segment);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.wr_id, 7);
    assert_int_equal(wc.status, ALB_WC_LOC_ACCESS_ERR);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.wr_id, 8);
    assert_int_equal(wc.status, ALB_WC_WR_FLUSH_ERR);
}

static void refuse__more_answers_than_were_agreed(void **state)
{
    struct csa_pair *c = *state;
    for (int32_t i = 1; i <= 4; i++) {
        struct alb_csa_segment segment = ask(c, ALB_CSA_READ, i);
        arrive(c, &segment);
    }
    pair_send(c->pair, 1);
    struct alb_csa_segment segment = ask(c, ALB_CSA_READ, 5);
    segment.acked = alb_psn_add(csa_pair_psn(0), 1); // holds the first answer: there is room
    arrive(c, &segment);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
    segment = ask(c, ALB_CSA_FETCH_ADD, 6);
    uint64_t before = word(c);
    segment.operand = 1;
    arrive(c, &segment);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(word(c), before); // nothing was executed
}

static void end__completion_queue_overruns(void **state)
{
    struct csa_pair *c = *state;
    struct alb_wc wc = {0};
    struct alb_csa_frame frame;
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(pair_receive(c->pair, c->qps[1], i, 8192, 64), 0);
    struct alb_csa_segment later = ask(c, ALB_CSA_SEND, 2), first = ask(c, ALB_CSA_SEND, 1);
    later.recv_number = 1;
    arrive(c, &later);
    while (alb_cq_push(c->pair->hosts[1].cq, &wc, false, c->pair->now))
        ;
    arrive(c, &first);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame), 1);
    assert_int_equal(frame.report.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_OPERATIONAL_ERROR));
    assert_int_equal(frame.report.cumulative, first.psn);
    pair_pass(c->pair, 100 * ALB_NS_PER_MS);
}

// The error is sent once the peer has the answers to what it asked before.
static void end__completion_queue_overruns_behind_a_read(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, NULL);
    struct alb_wc wc = {0};
    csa_pair_greet(c);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 8192, 64), 0);
    while (alb_cq_push(c->pair->hosts[1].cq, &wc, false, c->pair->now))
        ;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 64);
    csa_pair_ask(c, ALB_WR_SEND, 2, ALB_SEND_SIGNALED, 8);
    for (uint32_t i = 0; i < 20; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, ALB_NS_PER_MS);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_REM_OP_ERR);
    csa_pair_free(c);
}

// Which receive a message takes is what its number says, or the peer is wrong.
static void refuse__a_receive_number_that_contradicts(void **state)
{
    static const uint8_t ops[] = {ALB_CSA_SEND, ALB_CSA_SEND_IMM, ALB_CSA_WRITE_IMM};
    for (uint32_t i = 0; i < ALB_COUNT(ops); i++) {
        struct csa_pair *c = csa_pair_new(NULL, NULL);
        struct alb_csa_frame frame;
        csa_pair_greet(c);
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(pair_receive(c->pair, c->qps[1], k, 8192, 64), 0);
        struct alb_csa_segment first = ask(c, ALB_CSA_SEND, 1), second = ask(c, ops[i], 2);
        arrive(c, &first);
        csa_pair_expect(c, 1, 0, ALB_WC_SUCCESS);
        second.recv_number = i; // 0 and 2 are wrong
        if (i == 1)
            second.recv_number = 3;
        arrive(c, &second);
        assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
        pair_send(c->pair, 1);
        assert_true(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame) > 0);
        assert_int_equal(frame.report.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_INVALID_REQUEST));
        csa_pair_free(c);
    }
}

// Its segments say the same, each of them.
static void refuse__segments_that_count_receives_differently(void **state)
{
    struct csa_pair *c = *state;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 8192, 4096), 0);
    struct alb_csa_segment segment = csa_pair_write(c, 0, 1, 0, 1500, 1000, 0);
    segment.op = ALB_CSA_SEND;
    arrive(c, &segment);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
    segment = csa_pair_write(c, 0, 2, 1, 1500, 500, ALB_CSA_LAST);
    segment.op = ALB_CSA_SEND;
    segment.recv_number = 7;
    arrive(c, &segment);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    csa_pair_expect(c, 1, 1, ALB_WC_REM_INV_REQ_ERR);
}

// ---- memory that a transaction has ----------------------------------------------------------------------------------

static const char transaction;

static void claim(struct csa_pair *c, struct alb_claim *it, uint32_t offset)
{
    alb_claim_init(it, &transaction, NULL);
    assert_true(alb_region_claim(c->pair->hosts[1].mr, it, pair_va(c->pair, 1, offset), 8));
}

static void atomic__waits_for_a_transaction_and_is_executed_once(void **state)
{
    static const uint8_t ops[] = {ALB_CSA_CMP_SWAP, ALB_CSA_FETCH_ADD, ALB_CSA_ATOMIC_WRITE};
    struct csa_pair *c = *state;
    struct alb_claim it;
    for (uint32_t i = 0; i < ALB_COUNT(ops); i++) {
        struct alb_csa_segment segment = ask(c, ops[i], 1 + (int32_t)i);
        segment.operand = segment.compare = 7;
        set_word(c, 7);
        claim(c, &it, 0);
        arrive(c, &segment);
        arrive(c, &segment);
        assert_int_equal(word(c), 7);
        assert_int_equal(c->csa[1]->answer_count, i);
        assert_int_equal(c->csa[1]->in_requests.cumulative, segment.psn);
        alb_region_unclaim(&it);
        arrive(c, &segment);
        arrive(c, &segment);
        assert_int_equal(word(c), ops[i] == ALB_CSA_CMP_SWAP    ? 7
                                  : ops[i] == ALB_CSA_FETCH_ADD ? 14
                                                                : 0x5a5a5a5a5a5a5a5a);
        assert_int_equal(c->csa[1]->answer_count, i + 1);
        assert_int_equal(c->csa[1]->in_requests.cumulative, alb_psn_next(segment.psn));
    }
}

static void never_give_up(struct alb_qp_attr *attr, int side)
{
    attr->rnr_retry = 7;
    attr->min_rnr_timer = 5; // 60 us
    attr->timeout = 0;
}

// A peer whose requests meet claims waits, and its requests are executed in order.
static void claims__hold_requests_up_and_nothing_else(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, never_give_up);
    struct alb_claim it;
    csa_pair_greet(c);
    memset(c->pair->hosts[1].memory, 0, 16);
    claim(c, &it, 0);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 4096, 3000), 0);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_ATOMIC_FETCH_AND_ADD, 2, ALB_SEND_SIGNALED, 0, 8), 0);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_READ, 3, ALB_SEND_SIGNALED, 0, 8), 0);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 4, ALB_SEND_SIGNALED, 0, 8), 0);
    for (uint32_t i = 0; i < 100; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 100 * ALB_NS_PER_US);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS); // was not in the way
    csa_pair_expect_none(c, 0);
    assert_int_equal(word(c), 0);
    alb_region_unclaim(&it);
    pair_pass(c->pair, 100 * ALB_NS_PER_US);
    pair_settle(c->pair);
    for (uint32_t i = 2; i <= 4; i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 0);
    csa_pair_free(c);
}

// Claims come and go in the way of WRITEs and atomics, and one packet in four is lost: each addition counts once, and
// every WRITE is whole before the one behind it begins.
static void claims__with_losses(void **state)
{
    enum { REQUESTS = 1000, BYTES = 3000, CLAIMS = 5 };
    struct csa_pair *c = csa_pair_new(NULL, never_give_up);
    struct alb_claim claims[CLAIMS];
    struct alb_prng prng;
    uint32_t asked = 0, done = 0, added = 0;
    uint64_t waited;
    csa_pair_greet(c);
    alb_prng_init(&prng, 3);
    set_word(c, 0);
    for (uint32_t i = 0; i < CLAIMS; i++)
        alb_claim_init(&claims[i], &transaction, NULL);
    for (uint32_t round = 0; round < 200000 && done < REQUESTS; round++) {
        struct alb_claim *it = &claims[round % CLAIMS];
        uint64_t offset = alb_prng_below(&prng, BYTES);
        struct alb_wc wc;
        if (it->region)
            alb_region_unclaim(it);
        else if (alb_prng_below(&prng, 2))
            assert_true(alb_region_claim(c->pair->hosts[1].mr, it, pair_va(c->pair, 1, (uint32_t)offset), 1));
        for (; asked < REQUESTS && asked - done < 8; asked++) {
            bool is_write = alb_prng_below(&prng, 3) > 0;
            memset(c->pair->hosts[0].memory + 16384 * (1 + asked % 8), (int)asked, BYTES);
            struct alb_sge sge = pair_sge(c->pair, 0, is_write ? 16384 * (1 + asked % 8) : 8192, is_write ? BYTES : 8);
            struct alb_send_wr wr = {
                .wr_id = asked,
                .opcode = is_write ? ALB_WR_RDMA_WRITE : ALB_WR_ATOMIC_FETCH_AND_ADD,
                .flags = ALB_SEND_SIGNALED,
                .sge = &sge,
                .sge_count = 1,
                .remote_addr = pair_va(c->pair, 1, is_write ? 8 : 0),
                .rkey = alb_region_key(c->pair->hosts[1].mr),
                .compare_add = 1,
            };
            assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
            added += !is_write;
        }
        pair_exchange(c->pair, &prng, 4);
        pair_pass(c->pair, 30 * ALB_NS_PER_US);
        while (pair_poll(c->pair, 0, &wc)) {
            assert_int_equal(wc.status, ALB_WC_SUCCESS);
            assert_int_equal(wc.wr_id, done++);
        }
    }
    waited = csa_pair_stat(c, 1, ALB_STAT_send_rnr_err);
    assert_int_equal(done, REQUESTS);
    assert_true(waited > 50);
    assert_int_equal(word(c), added);
    for (uint32_t i = 1; i < BYTES; i++)
        assert_int_equal(c->pair->hosts[1].memory[8 + i], c->pair->hosts[1].memory[8]);
    for (uint32_t i = 0; i < CLAIMS; i++)
        alb_region_unclaim(&claims[i]);
    csa_pair_free(c);
}

// ---- refusals -------------------------------------------------------------------------------------------------------

static void be_deaf(struct csa_pair *c, uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i += 5) {
        for (int side = 0; side < 2; side++) {
            pair_send(c->pair, side);
            while (pair_count(c->pair, side))
                pair_lose(c->pair, side);
        }
        pair_pass(c->pair, 5 * ALB_NS_PER_MS);
    }
}

// The network is gone for so long that nothing is tried any more to bring the answer, but the requester still asks.
static void refusal__is_not_said_before_answers_that_were_given_up(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, never_give_up);
    csa_pair_greet(c);
    set_word(c, 1);
    struct alb_sge sge = pair_sge(c->pair, 0, 4096, 8);
    struct alb_send_wr wr = {
        .wr_id = 2,
        .opcode = ALB_WR_RDMA_WRITE,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(c->pair, 1, 64),
        .rkey = alb_region_key(c->pair->hosts[1].mr) ^ 1,
    };
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_ATOMIC_FETCH_AND_ADD, 1, ALB_SEND_SIGNALED, 0, 8), 0);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    for (uint32_t i = 0; i < 1000 && !alb_csa_has_given_up_answers(c->csa[1]); i++)
        be_deaf(c, 10);
    assert_true(alb_csa_has_given_up_answers(c->csa[1]));
    be_deaf(c, 10); // the last question leaves, too
    csa_pair_expect_none(c, 0);
    for (uint32_t i = 0; i < 1000 && alb_qp_current_state(c->qps[0]) == ALB_QPS_RTS; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 5 * ALB_NS_PER_MS);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_REM_ACCESS_ERR);
    csa_pair_free(c);
}

// ---- corruption on demand -------------------------------------------------------------------------------------------

// This is what reflection is for: every CRC is right, every completion says success, and the bytes are wrong.
static void corruption__is_not_noticed_by_what_is_delivered(void **state)
{
    static const struct {
        enum alb_corrupt place;
        int side;
    } cases[] = {
        {ALB_CORRUPT_SOURCE, 0},   {ALB_CORRUPT_READ, 0},  {ALB_CORRUPT_PACKET, 1},
        {ALB_CORRUPT_MISPLACE, 1}, {ALB_CORRUPT_STALE, 1},
    };
    static struct alb_corruption corruption;
    struct csa_pair *c = *state;
    uint8_t meant[3000];
    for (uint32_t i = 0; i < ALB_COUNT(cases); i++) {
        struct alb_corruption_spec spec = {{0}};
        uint64_t counts[ALB_CORRUPT_PLACES] = {0};
        spec.chance[cases[i].place] = 1000000000;
        alb_corruption_init(&corruption, &spec, i, counts);
        pair_fill(c->pair);
        memcpy(meant, c->pair->hosts[0].memory, sizeof(meant));
        c->engines[cases[i].side]->config.corruption = &corruption;
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, sizeof(meant));
        pair_settle(c->pair);
        c->engines[cases[i].side]->config.corruption = NULL;
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
        assert_memory_not_equal(c->pair->hosts[1].memory, meant, sizeof(meant));
        assert_int_equal(counts[cases[i].place], cases[i].place == ALB_CORRUPT_SOURCE ? 1 : 3);
        bool is_source_wrong = memcmp(c->pair->hosts[0].memory, meant, sizeof(meant)) != 0;
        assert_int_equal(is_source_wrong, cases[i].place == ALB_CORRUPT_SOURCE);
    }
    for (int side = 0; side < 2; side++)
        assert_int_equal(csa_pair_drops(c, side, ALB_DROP_BAD_ICRC), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(send__into_the_posted_receive),
        CSA_GREETED_TEST(atomic__once_however_often_it_comes),
        CSA_GREETED_TEST(atomic__no_room_for_its_answer__is_executed_once_and_later),
        cmocka_unit_test(refuse__what_may_not_be),
        CSA_GREETED_TEST(refuse__ends_the_receive_of_an_immediate),
        CSA_GREETED_TEST(refuse__more_answers_than_were_agreed),
        CSA_GREETED_TEST(end__completion_queue_overruns),
        cmocka_unit_test(end__completion_queue_overruns_behind_a_read),
        cmocka_unit_test(refuse__a_receive_number_that_contradicts),
        CSA_GREETED_TEST(refuse__segments_that_count_receives_differently),
        CSA_GREETED_TEST(atomic__waits_for_a_transaction_and_is_executed_once),
        cmocka_unit_test(claims__hold_requests_up_and_nothing_else),
        cmocka_unit_test(claims__with_losses),
        cmocka_unit_test(refusal__is_not_said_before_answers_that_were_given_up),
        CSA_GREETED_TEST(corruption__is_not_noticed_by_what_is_delivered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
