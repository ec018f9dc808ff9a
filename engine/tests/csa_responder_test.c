// SPDX-License-Identifier: BSD-2-Clause
// The execution of requests: in order, once, or refused. Side 0 asks by hand, side 1 executes.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

static int greeted(void **state)
{
    csa_pair_setup(state);
    csa_pair_greet(*state); // offset 0 is done
    return 0;
}
#define GREETED_TEST(test) cmocka_unit_test_setup_teardown(test, greeted, csa_pair_teardown)

static void end(struct csa_pair *c)
{
    void *state = c;
    csa_pair_teardown(&state);
}

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

// What is refused: its syndrome, and the event.
static void refuse(const struct alb_csa_segment *change, uint8_t code, enum alb_event_type type)
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
    assert_int_equal(word(c), before);
    assert_true(pair_event(c->pair, 1, type, &event));
    pair_send(c->pair, 1);
    assert_true(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame) > 0);
    assert_int_equal(frame.report.syndrome, ALB_AETH_SYNDROME_NAK(code));
    assert_int_equal(frame.report.cumulative, alb_psn_add(csa_pair_psn(0), 1));
    arrive(c, &segment); // it says so again
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame), 2);
    end(c);
}

static void refuse__what_may_not_be(void **state)
{
    static const struct {
        struct alb_csa_segment segment;
        uint8_t code;
        enum alb_event_type type;
    } cases[] = {
        {{.op = ALB_CSA_WRITE, .rkey = 0x100}, ALB_NAK_REMOTE_ACCESS_ERROR, ALB_EVENT_QP_ACCESS_ERR},
        {{.op = ALB_CSA_WRITE, .va = PAIR_MEMORY_BYTES - 7}, ALB_NAK_REMOTE_ACCESS_ERROR, ALB_EVENT_QP_ACCESS_ERR},
        {{.op = ALB_CSA_READ, .rkey = 0x100}, ALB_NAK_REMOTE_ACCESS_ERROR, ALB_EVENT_QP_ACCESS_ERR},
        {{.op = ALB_CSA_FETCH_ADD, .rkey = 0x100}, ALB_NAK_REMOTE_ACCESS_ERROR, ALB_EVENT_QP_ACCESS_ERR},
        {{.op = ALB_CSA_CMP_SWAP, .va = 4}, ALB_NAK_INVALID_REQUEST, ALB_EVENT_QP_REQ_ERR},
        {{.op = ALB_CSA_SEND}, ALB_NAK_INVALID_REQUEST, ALB_EVENT_QP_REQ_ERR}, // longer than the receive
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++)
        refuse(&cases[i].segment, cases[i].code, cases[i].type);
}

// Four were agreed; the requester says in each which answers it holds.
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
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(pair_receive(c->pair, c->qps[1], i, 8192, 64), 0);
    struct alb_csa_segment later = ask(c, ALB_CSA_SEND, 2), first = ask(c, ALB_CSA_SEND, 1);
    arrive(c, &later);
    while (alb_cq_push(c->pair->hosts[1].cq, &wc, false, c->pair->now))
        ;
    arrive(c, &first);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(c->engines[1]->csa->waiting_bytes, 0);
    pair_send(c->pair, 1);
    pair_pass(c->pair, 100 * ALB_NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GREETED_TEST(send__into_the_posted_receive),  GREETED_TEST(atomic__once_however_often_it_comes),
        cmocka_unit_test(refuse__what_may_not_be),    GREETED_TEST(refuse__more_answers_than_were_agreed),
        GREETED_TEST(end__completion_queue_overruns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
