// SPDX-License-Identifier: BSD-2-Clause
// From the send queue to segments: what they say, and which may leave.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>
#include <sys/mman.h>

static void request(struct csa_pair *c, uint32_t index, struct alb_csa_segment *segment)
{
    struct alb_csa_frame frame;
    csa_pair_frame(c, 0, ALB_CSA_REQUEST, index, &frame);
    *segment = frame.segment;
}

static uint32_t requests(struct csa_pair *c)
{
    pair_send(c->pair, 0);
    return csa_pair_count(c, 0, ALB_CSA_REQUEST, NULL);
}

// ---- what a segment says --------------------------------------------------------------------------------------------

static void segment__of_every_operation(void **state)
{
    static const struct {
        enum alb_wr_opcode opcode;
        uint8_t op;
        uint32_t payload, total;
        bool has_memory, has_imm;
    } cases[] = {
        {ALB_WR_SEND, ALB_CSA_SEND, 8, 8, false, false},
        {ALB_WR_SEND_WITH_IMM, ALB_CSA_SEND_IMM, 8, 8, false, true},
        {ALB_WR_RDMA_WRITE, ALB_CSA_WRITE, 8, 8, true, false},
        {ALB_WR_RDMA_WRITE_WITH_IMM, ALB_CSA_WRITE_IMM, 8, 8, true, true},
        {ALB_WR_RDMA_READ, ALB_CSA_READ, 0, 8, true, false},
        {ALB_WR_ATOMIC_CMP_AND_SWP, ALB_CSA_CMP_SWAP, 0, 8, true, false},
        {ALB_WR_ATOMIC_FETCH_AND_ADD, ALB_CSA_FETCH_ADD, 0, 8, true, false},
        {ALB_WR_ATOMIC_WRITE, ALB_CSA_ATOMIC_WRITE, 8, 8, true, false},
    };
    struct csa_pair *c = *state;
    for (uint32_t i = 0; i < ALB_COUNT(cases); i++)
        csa_pair_ask(c, cases[i].opcode, i, ALB_SEND_SIGNALED, 8);
    assert_int_equal(requests(c), ALB_COUNT(cases));
    uint32_t receives = 0;
    for (uint32_t i = 0; i < ALB_COUNT(cases); i++) {
        struct alb_csa_segment segment;
        request(c, i, &segment);
        assert_int_equal(segment.op, cases[i].op);
        assert_int_equal(segment.dest_qpn, alb_qp_number(c->qps[1]));
        assert_int_equal(segment.psn, alb_psn_add(csa_pair_psn(0), 1 + (int32_t)i));
        assert_int_equal(segment.index, 0);
        assert_int_equal(segment.payload_bytes, cases[i].payload);
        assert_int_equal(segment.total_bytes, cases[i].total);
        assert_true(segment.flags & ALB_CSA_LAST);
        assert_false(segment.flags & ALB_CSA_XRC);
        if (cases[i].has_memory) {
            assert_int_equal(segment.va, pair_va(c->pair, 1, 0));
            assert_int_equal(segment.rkey, alb_region_key(c->pair->hosts[1].mr));
        }
        if (cases[i].has_imm)
            assert_int_equal(segment.imm_be, 0x1234);
        if (cases[i].op <= ALB_CSA_SEND_INV || cases[i].op == ALB_CSA_WRITE_IMM)
            assert_int_equal(segment.recv_number, receives++);
        if (cases[i].op == ALB_CSA_CMP_SWAP)
            assert_true(segment.compare == 1 && segment.operand == 2);
        if (cases[i].op == ALB_CSA_FETCH_ADD)
            assert_true(segment.compare == 0 && segment.operand == 1);
        if (cases[i].payload)
            assert_memory_equal(segment.payload, c->pair->hosts[0].memory, 8);
    }
}

static void segment__of_long_messages(void **state)
{
    static const uint32_t lengths[] = {0, 1, CSA_PAIR_SEGMENT, CSA_PAIR_SEGMENT + 1, 3 * CSA_PAIR_SEGMENT};
    struct csa_pair *c = *state;
    for (uint32_t i = 0; i < ALB_COUNT(lengths); i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, lengths[i]);
    uint32_t count = requests(c), k = 0;
    for (uint32_t i = 0; i < ALB_COUNT(lengths); i++) {
        uint32_t packets = lengths[i] ? (lengths[i] + CSA_PAIR_SEGMENT - 1) / CSA_PAIR_SEGMENT : 1;
        for (uint32_t index = 0; index < packets; index++) {
            struct alb_csa_segment segment;
            request(c, k++, &segment);
            bool is_last = index == packets - 1;
            assert_int_equal(segment.index, index);
            assert_int_equal(segment.total_bytes, lengths[i]);
            assert_int_equal(segment.payload_bytes, is_last ? lengths[i] - index * CSA_PAIR_SEGMENT : CSA_PAIR_SEGMENT);
            assert_int_equal(!(segment.flags & ALB_CSA_LAST), !is_last);
            assert_int_equal(segment.va, pair_va(c->pair, 1, 0)); // of the message's first byte in each
        }
    }
    assert_int_equal(k, count);
    pair_settle(c->pair);
    for (uint32_t i = 0; i < ALB_COUNT(lengths); i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
}

static void segment__solicited_only_where_a_receive_is_used(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment;
    csa_pair_ask(c, ALB_WR_SEND, 1, ALB_SEND_SOLICITED, CSA_PAIR_ANSWER_SEGMENT + 4);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SOLICITED, 8);
    assert_int_equal(requests(c), 3);
    request(c, 0, &segment);
    assert_false(segment.flags & ALB_CSA_SOLICITED);
    request(c, 1, &segment);
    assert_true(segment.flags & ALB_CSA_SOLICITED); // of the last segment
    request(c, 2, &segment);
    assert_false(segment.flags & ALB_CSA_SOLICITED);
}

static void segment__inline_is_taken_when_posted(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment;
    uint8_t before[32];
    memcpy(before, c->pair->hosts[0].memory, sizeof(before));
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED | ALB_SEND_INLINE, sizeof(before));
    memset(c->pair->hosts[0].memory, 0, sizeof(before));
    assert_int_equal(requests(c), 1);
    request(c, 0, &segment);
    assert_memory_equal(segment.payload, before, sizeof(before));
}

// ---- when a report is asked for -------------------------------------------------------------------------------------

static void report_now__where_a_completion_waits_and_at_the_end(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment;
    for (uint32_t i = 0; i < 6; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, i == 2 ? ALB_SEND_SIGNALED : 0, 8);
    assert_int_equal(requests(c), 6);
    for (uint32_t i = 0; i < 6; i++) {
        request(c, i, &segment);
        assert_int_equal(!!(segment.flags & ALB_CSA_REPORT_NOW), i == 2 || i == 5);
    }
}

static void report_now__before_what_can_not_follow(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, 0, 8);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, 0, 8);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 3, ALB_SEND_FENCE, 8);
    assert_int_equal(requests(c), 2);
    request(c, 1, &segment);
    assert_true(segment.flags & ALB_CSA_REPORT_NOW);
}

// Often enough that the window does not close for want of one.
static void report_now__within_a_long_message(void **state)
{
    struct csa_pair *c = *state;
    uint32_t asked = 0;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 2 * CSA_PAIR_WINDOW * CSA_PAIR_SEGMENT / 2);
    uint32_t count = requests(c);
    for (uint32_t i = 0; i < count; i++) {
        struct alb_csa_segment segment;
        request(c, i, &segment);
        asked += !!(segment.flags & ALB_CSA_REPORT_NOW);
    }
    assert_in_range(asked, 4, 8);
}

// ---- which may leave ------------------------------------------------------------------------------------------------

// Behind the last one that the peer has room for, which may not have asked.
static void report_now__where_no_more_may_leave(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_out(c)->room = 3;
    for (uint32_t i = 0; i < 8; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, i == 7 ? ALB_SEND_SIGNALED : 0, 8);
    pair_send(c->pair, 0);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_REQUEST, NULL), 3);
    assert_int_equal(csa_pair_count(c, 0, ALB_CSA_PROBE, NULL), 1);
    pair_settle(c->pair); // no time passes
    csa_pair_expect(c, 0, 7, ALB_WC_SUCCESS);
}

static void limits(struct alb_qp_attr *attr, int side)
{
    attr->max_rd_atomic = attr->max_dest_rd_atomic = 2;
}

static void limit__of_requests_that_want_an_answer(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, limits);
    csa_pair_greet(c);
    for (uint32_t i = 0; i < 5; i++)
        csa_pair_ask(c, i % 2 ? ALB_WR_ATOMIC_FETCH_AND_ADD : ALB_WR_RDMA_READ, i, ALB_SEND_SIGNALED, 8);
    assert_int_equal(requests(c), 2);
    pair_settle(c->pair);
    for (uint32_t i = 0; i < 5; i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
    assert_int_equal(c->csa[0]->asked_open, 0);
    csa_pair_free(c);
}

static void allow_none(struct alb_qp_attr *attr, int side)
{
    attr->max_rd_atomic = 0;
}

static void limit__of_none(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, allow_none);
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 2, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 3, ALB_SEND_SIGNALED, 8);
    assert_int_equal(requests(c), 1);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_LOC_QP_OP_ERR);
    csa_pair_expect(c, 0, 3, ALB_WC_WR_FLUSH_ERR);
    csa_pair_free(c);
}

static void fence__waits_for_answers(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED | ALB_SEND_FENCE, 8);
    assert_int_equal(requests(c), 1);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    assert_int_equal(requests(c), 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
}

// A READ's answer does not come, and everything behind it is executed: as many numbers as tell old from new begin with
// the READ's, however few of them are unacknowledged.
static void limit__of_numbers_behind_what_is_not_answered(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8);
    assert_int_equal(requests(c), 1);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    while (pair_count(c->pair, 1))
        pair_lose(c->pair, 1);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair); // its report is one about the READ, too
    csa_pair_skip(c, ALB_PSN_MASK / 2 - 5);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 3, 0, 3 * CSA_PAIR_SEGMENT);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 4, ALB_SEND_SIGNALED, 2 * CSA_PAIR_SEGMENT);
    assert_int_equal(requests(c), 3);
    request(c, 2, &segment);
    assert_true(segment.flags & ALB_CSA_REPORT_NOW); // nothing follows for now
    pair_settle(c->pair);
    assert_int_equal(alb_stream_out_count(csa_pair_out(c)), 0);
    csa_pair_expect_none(c, 0);
    for (uint32_t i = 0; i < 20; i++) {
        pair_pass(c->pair, ALB_NS_PER_MS);
        pair_settle(c->pair);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 4, ALB_WC_SUCCESS);
}

// ---- what fails before it leaves ------------------------------------------------------------------------------------

static void key__that_is_wrong_fails_in_order(void **state)
{
    struct csa_pair *c = *state;
    struct alb_sge sge = pair_sge(c->pair, 0, 0, 8);
    sge.lkey ^= 0x100;
    const struct alb_send_wr wr = {
        .wr_id = 2, .opcode = ALB_WR_RDMA_WRITE, .flags = ALB_SEND_SIGNALED, .sge = &sge, .sge_count = 1};
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 3, ALB_SEND_SIGNALED, 8);
    assert_int_equal(requests(c), 1);
    csa_pair_expect_none(c, 0); // what left before it completes first
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_LOC_PROT_ERR);
    csa_pair_expect(c, 0, 3, ALB_WC_WR_FLUSH_ERR);
}

// The key goes while its message is under way, and the end of what stands before it is lost.
static void key__that_goes_leaves_those_before_it_to_complete(void **state)
{
    struct csa_pair *c = *state;
    static uint8_t memory[64];
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(c->pair->hosts[0].pd, memory, sizeof(memory), (uintptr_t)memory, 0, &mr), 0);
    struct alb_sge sge = {.addr = (uintptr_t)memory, .length = 8, .lkey = alb_region_key(mr)};
    const struct alb_send_wr wr = {
        .wr_id = 2,
        .opcode = ALB_WR_RDMA_WRITE,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
    };
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    assert_int_equal(requests(c), 2);
    while (pair_count(c->pair, 0))
        pair_lose(c->pair, 0);
    assert_int_equal(alb_mr_destroy(mr), 0);
    for (uint32_t i = 0; i < 8; i++) {
        pair_pass(c->pair, 2 * ALB_NS_PER_MS);
        pair_settle(c->pair);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_LOC_PROT_ERR);
}

static void local__takes_its_turn(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_send_wr bad = {
        .wr_id = 2, .opcode = ALB_WR_LOCAL_INV, .flags = ALB_SEND_SIGNALED, .invalidate_rkey = 0x77777777};
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_post(c->pair, c->qps[0], &bad), 0);
    assert_int_equal(requests(c), 1);
    csa_pair_expect_none(c, 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 2);
    assert_int_not_equal(wc.status, ALB_WC_SUCCESS);
}

// ---- more segments than a message may have --------------------------------------------------------------------------

#define LONG (1u << 31)

// Memory that is not touched.
static struct alb_region *make_long(struct csa_pair *c, int side)
{
    struct alb_region *mr;
    void *memory = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(alb_mr_create(c->pair->hosts[side].pd, memory, LONG, (uintptr_t)memory, PAIR_ACCESS_ALL, &mr), 0);
    return mr;
}

static void free_long(struct alb_region *mr)
{
    void *memory = mr->host;
    assert_int_equal(alb_mr_destroy(mr), 0);
    munmap(memory, LONG);
}

static void request__of_too_many_segments_is_refused_at_once(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_region *local = make_long(c, 0);
    struct alb_sge sge = {.addr = local->iova, .length = LONG, .lkey = alb_region_key(local)};
    struct alb_send_wr wr = {
        .wr_id = 2,
        .opcode = ALB_WR_RDMA_WRITE,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
    };
    alb_mtu_set_route(c->engines[0], c->csa[0]->assoc, 512);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_LOC_LEN_ERR);
    free_long(local);
}

static struct alb_csa_segment ask_long(struct csa_pair *c, const struct alb_region *mr, int32_t offset)
{
    struct alb_csa_segment segment = csa_pair_write(c, 0, offset, 0, LONG, 0, ALB_CSA_LAST);
    segment.op = ALB_CSA_READ;
    segment.va = mr->iova;
    segment.rkey = alb_region_key(mr);
    segment.acked = csa_pair_psn(0);
    return segment;
}

static void answer__of_too_many_segments_is_refused(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_region *mr = make_long(c, 1);
    alb_mtu_set_route(c->engines[1], c->csa[1]->assoc, 512);
    struct alb_csa_segment segment = ask_long(c, mr, 1);
    csa_pair_arrive_segment(c, 0, &segment, 0);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(c->csa[1]->in_requests.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_INVALID_REQUEST));
    free_long(mr);
}

// Half the numbers must tell old from new.
static void allow_many_answers(struct alb_qp_attr *attr, int side)
{
    attr->max_dest_rd_atomic = 8;
}

static int with_many_answers(void **state)
{
    *state = csa_pair_new(NULL, allow_many_answers);
    return 0;
}

static void answer__waits_where_those_before_it_have_all_numbers(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_region *mr = make_long(c, 1); // two million segments each
    for (int32_t i = 1; i <= 4; i++) {
        struct alb_csa_segment segment = ask_long(c, mr, i);
        csa_pair_arrive_segment(c, 0, &segment, 0);
        assert_int_equal(c->csa[1]->answer_count, i);
    }
    alb_mtu_set_route(c->engines[1], c->csa[1]->assoc, 640); // and now more
    struct alb_csa_segment acked = ask_long(c, mr, 5);
    acked.total_bytes = LONG / 2;
    csa_pair_arrive_segment(c, 0, &acked, 0);
    assert_int_equal(c->csa[1]->answer_count, 4);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
    assert_true(alb_psn_diff(c->csa[1]->answer_psn, c->csa[1]->responses.una) > 0);
    alb_csa_stop_answering(c->csa[1]);
    free_long(mr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(request__of_too_many_segments_is_refused_at_once),
        CSA_PAIR_TEST(answer__of_too_many_segments_is_refused),
        cmocka_unit_test_setup_teardown(answer__waits_where_those_before_it_have_all_numbers, with_many_answers,
                                        csa_pair_teardown),
        CSA_GREETED_TEST(segment__of_every_operation),
        CSA_GREETED_TEST(segment__of_long_messages),
        CSA_GREETED_TEST(segment__solicited_only_where_a_receive_is_used),
        CSA_GREETED_TEST(segment__inline_is_taken_when_posted),
        CSA_GREETED_TEST(report_now__where_a_completion_waits_and_at_the_end),
        CSA_GREETED_TEST(report_now__before_what_can_not_follow),
        CSA_GREETED_TEST(report_now__within_a_long_message),
        CSA_GREETED_TEST(report_now__where_no_more_may_leave),
        cmocka_unit_test(limit__of_requests_that_want_an_answer),
        cmocka_unit_test(limit__of_none),
        CSA_GREETED_TEST(limit__of_numbers_behind_what_is_not_answered),
        CSA_GREETED_TEST(fence__waits_for_answers),
        CSA_GREETED_TEST(key__that_is_wrong_fails_in_order),
        CSA_GREETED_TEST(key__that_goes_leaves_those_before_it_to_complete),
        CSA_GREETED_TEST(local__takes_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
