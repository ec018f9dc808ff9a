// SPDX-License-Identifier: BSD-2-Clause
// Ordinary messages that ask for more than an acknowledgement.
#include "engine/tests/reflect_pair.h"

static void post(struct csa_pair *c, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t length, uint8_t level,
                 bool wants_stages)
{
    const struct alb_sge sge = pair_sge(c->pair, 0, 0, length);
    const struct alb_send_wr wr = {
        .wr_id = wr_id,
        .opcode = opcode,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = length > 0,
        .remote_addr = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
        .level = level,
        .wants_stages = wants_stages,
        .submitted = c->pair->now,
    };
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
}

// What was not answered is asked about, and that is answered.
static void ask_again(struct csa_pair *c)
{
    for (uint32_t i = 0; i < 20; i++) {
        pair_pass(c->pair, ALB_NS_PER_MS);
        pair_settle(c->pair);
    }
}

static void visible__of_every_message_that_places(void **state)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_RDMA_WRITE_WITH_IMM, ALB_WR_SEND,
                                                 ALB_WR_SEND_WITH_IMM};
    struct csa_pair *c = *state;
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++) {
        for (uint32_t length = 0; length <= 5000; length += 2500) {
            if (opcodes[i] != ALB_WR_RDMA_WRITE)
                assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 0, 8192), 0);
            post(c, opcodes[i], 9, length, ALB_LEVEL_VISIBLE, false);
            pair_settle(c->pair);
            reflect_pair_expect(c, 9, ALB_TXN_OK);
            assert_true(reflect_pair_is_exposed(c, 0, length));
        }
    }
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_txn_applied), 0); // none of them is a transaction
}

static void visible__waits_for_the_verdict(void **state)
{
    struct csa_pair *c = *state;
    post(c, ALB_WR_RDMA_WRITE, 1, 100, ALB_LEVEL_VISIBLE, false);
    reflect_pair_lose(c, 1, ALB_CSA_VERDICT);
    csa_pair_expect_none(c, 0);
    ask_again(c);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
}

// Without a record the verdict is said once.
static void visible__where_there_is_no_memory_for_transactions(void **state)
{
    struct csa_pair *c = *state;
    reflect_pair_fill_staging(c);
    post(c, ALB_WR_RDMA_WRITE, 1, 100, ALB_LEVEL_VISIBLE, false);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
}

// What was said once is not known to who asks.
static void visible__lost_where_there_is_no_memory_for_transactions(void **state)
{
    struct csa_pair *c = *state;
    reflect_pair_fill_staging(c);
    post(c, ALB_WR_RDMA_WRITE, 1, 100, ALB_LEVEL_VISIBLE, false);
    reflect_pair_lose(c, 1, ALB_CSA_VERDICT);
    ask_again(c);
    reflect_pair_expect(c, 1, ALB_TXN_LOST);
}

static void visible__wrong_bytes_are_no_success(void **state)
{
    struct csa_pair *c = *state;
    post(c, ALB_WR_RDMA_WRITE, 1, 100, ALB_LEVEL_VISIBLE, false);
    c->pair->hosts[0].memory[50] ^= 1; // read by the transport after the post
    pair_settle(c->pair);
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_REM_OP_ERR); // not aborted: they are in the target's memory
    assert_int_equal(wc.vendor_err, ALB_TXN_DIGEST);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTS);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_digest_mismatches), 1);
}

static void visible__order_of_completions_is_kept(void **state)
{
    struct csa_pair *c = *state;
    post(c, ALB_WR_RDMA_WRITE, 1, 100, ALB_LEVEL_VISIBLE, false);
    post(c, ALB_WR_RDMA_WRITE, 2, 100, ALB_LEVEL_DELIVERED, false);
    reflect_pair_lose(c, 1, ALB_CSA_VERDICT);
    csa_pair_expect_none(c, 0);
    ask_again(c);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    reflect_pair_expect(c, 2, ALB_TXN_OK);
}

static void stages__are_in_order(void **state)
{
    struct csa_pair *c = *state;
    struct alb_txn_status status;
    struct alb_wc wc;
    pair_pass(c->pair, 1000);
    post(c, ALB_WR_RDMA_WRITE, 1, 5000, ALB_LEVEL_DELIVERED, true);
    pair_pass(c->pair, 10);
    pair_send(c->pair, 0);
    pair_pass(c->pair, 100);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_pass(c->pair, 100);
    pair_deliver_all(c->pair, 1);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.imm_data, 1); // its number
    assert_int_equal(alb_qp_txn_query(c->qps[0], 1, &status), 0);
    const struct alb_stages *stages = &status.stages;
    assert_int_equal(stages->submitted, c->pair->now - 210);
    assert_int_equal(stages->placed, c->pair->now - 200);
    assert_int_equal(stages->transmitted, c->pair->now - 200);
    assert_int_equal(stages->delivered, c->pair->now);
    assert_true(stages->remote_placed != ALB_TIME_NEVER && stages->visible >= stages->remote_placed);
    assert_true(stages->agreed >= stages->visible);
    uint64_t counted = 0;
    for (uint32_t gap = 0; gap < ALB_STAGE_GAPS; gap++)
        for (uint32_t i = 0; i < 64; i++)
            counted += c->pair->hosts[0].stats.stage_gaps[gap][i];
    assert_int_equal(counted, ALB_STAGE_GAPS);
}

// Its number has been executed, and the target knows nothing else of it. The first verdict says so much alone.
static void lose_verdict(struct csa_pair *c)
{
    struct alb_reflect_out *out = c->csa[0]->reflect_out;
    struct alb_csa_verdict verdict = {.state = ALB_CSA_VERDICT_PENDING, .id = {out->initiator, 1}};
    reflect_pair_lose(c, 1, ALB_CSA_VERDICT);
    alb_reflect_out_verdict(out, &verdict, c->pair->now);
    csa_pair_expect_none(c, 0);
}

static void expect_delivered_only(struct csa_pair *c)
{
    struct alb_txn_status status;
    assert_int_equal(alb_qp_txn_query(c->qps[0], 1, &status), 0);
    assert_int_equal(status.state, ALB_TXN_COMMITTED);
    assert_int_equal(status.reason, ALB_TXN_OK);
    assert_true(status.stages.transmitted != ALB_TIME_NEVER && status.stages.delivered != ALB_TIME_NEVER);
    assert_true(status.stages.remote_placed == ALB_TIME_NEVER && status.stages.visible == ALB_TIME_NEVER &&
                status.stages.agreed == ALB_TIME_NEVER);
}

// It was acknowledged, which is all that its completion says; that its times are not known is no failure.
static void stages__that_the_target_does_not_know(void **state)
{
    struct csa_pair *c = *state;
    reflect_pair_fill_staging(c);
    post(c, ALB_WR_RDMA_WRITE, 1, 100, ALB_LEVEL_DELIVERED, true);
    lose_verdict(c);
    ask_again(c);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    expect_delivered_only(c);
}

static void expect_failure(struct csa_pair *c, enum alb_txn_reason reason)
{
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    struct alb_wc wc;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.vendor_err, reason);
}

static void failure__of_what_waits_for_its_stages_alone(void **state)
{
    struct csa_pair *c = *state;
    post(c, ALB_WR_RDMA_WRITE, 1, 100, ALB_LEVEL_DELIVERED, true);
    lose_verdict(c);
    expect_failure(c, ALB_TXN_OK);
    expect_delivered_only(c);
}

// Nothing keeps a message that has left from its place: it is not called aborted.
static void failure__before_the_verdict_leaves_the_outcome_unknown(void **state)
{
    struct csa_pair *c = *state;
    post(c, ALB_WR_RDMA_WRITE, 1, 100, ALB_LEVEL_VISIBLE, false);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_true(reflect_pair_is_exposed(c, 0, 100));
    expect_failure(c, ALB_TXN_LOST);
    assert_int_equal(reflect_pair_state(c, 1), ALB_TXN_UNKNOWN);
}

// It waits for its turn to leave, or has not begun.
static void failure__of_a_message_that_has_not_left(void **state)
{
    struct csa_pair *c = *state;
    struct alb_wc wc;
    post(c, ALB_WR_RDMA_WRITE, 1, CSA_PAIR_WINDOW * CSA_PAIR_SEGMENT, ALB_LEVEL_VISIBLE, false);
    post(c, ALB_WR_RDMA_WRITE, 2, 100, ALB_LEVEL_VISIBLE, false);
    pair_send(c->pair, 0);
    expect_failure(c, ALB_TXN_LOST);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.vendor_err, ALB_TXN_PEER_GONE);
    assert_int_equal(reflect_pair_state(c, 2), ALB_TXN_ABORTED);
}

static void post__refuses_what_has_no_level(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_sge sge = pair_sge(c->pair, 0, 0, 8);
    struct alb_send_wr wr = {.opcode = ALB_WR_RDMA_READ,
                             .sge = &sge,
                             .sge_count = 1,
                             .remote_addr = pair_va(c->pair, 1, 0),
                             .rkey = alb_region_key(c->pair->hosts[1].mr),
                             .level = ALB_LEVEL_VISIBLE};
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), EINVAL);
    wr.opcode = ALB_WR_RDMA_WRITE;
    wr.level = ALB_LEVEL_COMMITTED; // of a transaction
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), EINVAL);
    wr.level = ALB_LEVEL_VISIBLE;
    assert_int_equal(pair_post(c->pair, c->qps[1], &wr), EINVAL); // not enabled
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
}

// A message is never bound: a peer that says so lies, and may say anything afterwards.
static void verdict__that_a_message_cannot_have(void **state)
{
    struct csa_pair *c = *state;
    struct alb_reflect_out *out = c->csa[0]->reflect_out;
    post(c, ALB_WR_RDMA_WRITE, 1, 100, ALB_LEVEL_VISIBLE, false);
    reflect_pair_lose(c, 1, ALB_CSA_VERDICT);
    struct alb_csa_verdict verdict = {.state = ALB_CSA_VERDICT_REFLECTED, .id = {out->initiator, 1}};
    alb_reflect_out_verdict(out, &verdict, c->pair->now);
    assert_int_equal(reflect_pair_state(c, 1), ALB_TXN_TENTATIVE);
    verdict.state = ALB_CSA_VERDICT_UNKNOWN;
    alb_reflect_out_verdict(out, &verdict, c->pair->now);
    reflect_pair_expect(c, 1, ALB_TXN_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(visible__of_every_message_that_places),
        REFLECT_PAIR_TEST(visible__waits_for_the_verdict),
        REFLECT_PAIR_TEST(visible__where_there_is_no_memory_for_transactions),
        REFLECT_PAIR_TEST(visible__lost_where_there_is_no_memory_for_transactions),
        REFLECT_PAIR_TEST(visible__wrong_bytes_are_no_success),
        REFLECT_PAIR_TEST(visible__order_of_completions_is_kept),
        REFLECT_PAIR_TEST(stages__are_in_order),
        REFLECT_PAIR_TEST(stages__that_the_target_does_not_know),
        REFLECT_PAIR_TEST(failure__of_what_waits_for_its_stages_alone),
        REFLECT_PAIR_TEST(failure__before_the_verdict_leaves_the_outcome_unknown),
        REFLECT_PAIR_TEST(failure__of_a_message_that_has_not_left),
        REFLECT_PAIR_TEST(post__refuses_what_has_no_level),
        REFLECT_PAIR_TEST(verdict__that_a_message_cannot_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
