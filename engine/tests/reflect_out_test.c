// SPDX-License-Identifier: BSD-2-Clause
// The initiator: what its completions say, and that it repeats what was not answered.
#include "engine/tests/reflect_pair.h"

static void commit__exposes_and_says_so(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 64, 300);
    uint64_t number = reflect_pair_post(c, &made);
    assert_false(reflect_pair_is_exposed(c, 64, 300));
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    csa_pair_expect_none(c, 0);
    assert_true(reflect_pair_is_exposed(c, 64, 300));
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_COMMITTED);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_txn_committed), 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_rdma_writes), 1); // what ends it is none
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_txn_applied), 1);
}

static void commit__of_several_ranges_longer_than_packets(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 5000);
    reflect_pair_add(c, &made, 8192, 1);
    reflect_pair_add(c, &made, 10000, 0);
    reflect_pair_add(c, &made, 20001, 3333);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 0, 5000));
    assert_true(reflect_pair_is_exposed(c, 8192, 1));
    assert_true(reflect_pair_is_exposed(c, 20001, 3333));
    assert_false(reflect_pair_is_exposed(c, 5000, 8));
}

static void commit__many_in_flight(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < REFLECT_PAIR_IN_FLIGHT; i++) {
            reflect_pair_make(c, &made, i, 1000 * i, 500);
            reflect_pair_post(c, &made);
        }
        uint64_t number;
        assert_int_equal(alb_qp_txn_stage(c->qps[0], &made.wr, &number), ENOMEM);
        pair_settle(c->pair);
        for (uint32_t i = 0; i < REFLECT_PAIR_IN_FLIGHT; i++)
            reflect_pair_expect(c, i, ALB_TXN_OK);
    }
    assert_int_equal(alb_map_count(c->engines[1]->reflect->records), REFLECT_PAIR_IN_FLIGHT); // the low-water mark rode
}

static void commit__nothing_is_exposed_before(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 100);
    uint64_t number = reflect_pair_post(c, &made);
    reflect_pair_lose(c, 0, ALB_CSA_TXN); // the COMMIT
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_REFLECTING);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_REFLECTING);
    assert_false(reflect_pair_is_exposed(c, 0, 100));
    csa_pair_expect_none(c, 0);
    pair_pass(c->pair, 5 * ALB_NS_PER_MS); // said again
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 0, 100));
}

static void verdict__lost_is_asked_for(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 100);
    reflect_pair_post(c, &made);
    for (uint32_t i = 0; i < 2; i++) { // REFLECTED, then COMMITTED
        reflect_pair_lose(c, 1, ALB_CSA_VERDICT);
        csa_pair_expect_none(c, 0);
        pair_pass(c->pair, 5 * ALB_NS_PER_MS);
    }
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_txn_applied), 1);
}

static void reflected__completes_before_it_is_exposed(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 100);
    made.wr.level = ALB_LEVEL_REFLECTED;
    uint64_t number = reflect_pair_post(c, &made);
    reflect_pair_lose(c, 0, ALB_CSA_TXN);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_false(reflect_pair_is_exposed(c, 0, 100));
    pair_pass(c->pair, 5 * ALB_NS_PER_MS);
    pair_settle(c->pair);
    assert_true(reflect_pair_is_exposed(c, 0, 100));
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_COMMITTED);
    csa_pair_expect_none(c, 0);
    for (uint32_t i = 0; i < ALB_STAGE_GAPS; i++) { // those behind its completion, too, and each once
        uint64_t counted = 0;
        for (uint32_t k = 0; k < 64; k++)
            counted += c->pair->hosts[0].stats.stage_gaps[i][k];
        assert_int_equal(counted, 1);
    }
}

static void hold__waits_for_the_program(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    uint64_t numbers[2];
    for (uint32_t i = 0; i < 2; i++) {
        reflect_pair_make(c, &made, i, 1000 * i, 100);
        made.wr.level = ALB_LEVEL_REFLECTED;
        made.wr.hold = true;
        numbers[i] = reflect_pair_post(c, &made);
    }
    pair_settle(c->pair);
    reflect_pair_expect(c, 0, ALB_TXN_OK);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_int_equal(reflect_pair_record(c, numbers[0])->state, ALB_TXN_REFLECTING);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], numbers[0], true, c->pair->now), 0);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], numbers[0], false, c->pair->now), EALREADY);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], numbers[1], false, c->pair->now), 0);
    pair_settle(c->pair);
    assert_int_equal(reflect_pair_state(c, numbers[0]), ALB_TXN_COMMITTED);
    assert_int_equal(reflect_pair_state(c, numbers[1]), ALB_TXN_ABORTED);
    assert_true(reflect_pair_is_exposed(c, 0, 100));
    assert_false(reflect_pair_is_exposed(c, 1000, 100));
    assert_int_equal(alb_qp_txn_decide(c->qps[0], 99, true, c->pair->now), ENOENT);
}

// Posted, but the engine has not come to it.
static uint64_t post_silently(struct csa_pair *c, uint64_t wr_id, bool holds)
{
    struct reflect_made made;
    uint64_t number;
    reflect_pair_make(c, &made, wr_id, 1000 * wr_id, 100);
    made.wr.hold = holds;
    assert_int_equal(alb_qp_txn_stage(c->qps[0], &made.wr, &number), 0);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_IDLE);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, false, c->pair->now), ENOENT); // it may be taken back
    alb_qp_send_commit(c->qps[0]);
    return number;
}

// Whoever asks for a decision waits at the head of the send queue, and what is behind goes on as long as there are
// numbers that tell old from new. The rest goes on when it is decided.
static void hold__leaves_half_the_numbers_to_what_is_behind(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 8192, 100);
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    csa_pair_skip(c, ALB_PSN_MASK / 2 - 3);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 2 * CSA_PAIR_SEGMENT);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 3, ALB_SEND_SIGNALED, 2 * CSA_PAIR_SEGMENT);
    pair_settle(c->pair);
    assert_int_equal(c->csa[0]->started, atomic_load(&c->qps[0]->sq.tail) - 1);
    assert_int_equal(alb_stream_out_count(csa_pair_out(c)), 0);
    csa_pair_expect_none(c, 0);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, true, c->pair->now), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 3, ALB_WC_SUCCESS);
}

static void decide__before_it_has_begun(void **state)
{
    struct csa_pair *c = *state;
    uint64_t unwanted = post_silently(c, 1, false), kept = post_silently(c, 2, true);
    assert_int_equal(reflect_pair_state(c, unwanted), ALB_TXN_TENTATIVE);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], unwanted, false, c->pair->now), 0);
    assert_int_equal(reflect_pair_state(c, unwanted), ALB_TXN_ABORTING);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], unwanted, true, c->pair->now), EALREADY);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], kept, true, c->pair->now), 0);
    alb_engine_bell_ring(c->qps[0]);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_WITHDRAWN);
    reflect_pair_expect(c, 2, ALB_TXN_OK);
    assert_int_equal(reflect_pair_state(c, unwanted), ALB_TXN_ABORTED);
    assert_int_equal(reflect_pair_state(c, kept), ALB_TXN_COMMITTED);
    assert_false(reflect_pair_is_exposed(c, 1000, 100));
    assert_true(reflect_pair_is_exposed(c, 2000, 100));
}

static void decide__what_will_not_begin_any_more(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = post_silently(c, 1, true);
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, false, c->pair->now), EALREADY);
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.vendor_err, ALB_TXN_PEER_GONE);
}

static int move_peer(struct csa_pair *c, int side)
{
    struct alb_qp_attr attr = pair_attr(c->pair, side, c->qps[!side]);
    attr.av.peer = alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, 50});
    return alb_qp_modify(c->qps[side], &attr, ALB_QP_AV, c->pair->now);
}

// Commands and verdicts wait in the line of the association that they are for.
static void address__stays_until_all_is_decided_and_said(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_qp_attr drained = {.state = ALB_QPS_SQD};
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 100);
    made.wr.level = ALB_LEVEL_REFLECTED;
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    for (int side = 0; side < 2; side++)
        assert_int_equal(alb_qp_modify(c->qps[side], &drained, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, false, c->pair->now), 0);
    assert_int_equal(move_peer(c, 0), EBUSY);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(move_peer(c, 1), EBUSY); // the verdict has not left
    pair_settle(c->pair);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
    assert_int_equal(move_peer(c, 0), 0);
    assert_int_equal(move_peer(c, 1), 0);
}

// The verdict comes while COMMIT stands in that line to be repeated. All is decided then, and the line is left: in
// another one the next command goes.
static void address__leaves_no_answered_command_behind(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp_attr attr = pair_attr(c->pair, 0, c->qps[1]);
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 100);
    uint64_t number = reflect_pair_post(c, &made);
    while (reflect_pair_state(c, number) != ALB_TXN_REFLECTING) {
        pair_send(c->pair, 0);
        pair_deliver_all(c->pair, 0);
        pair_send(c->pair, 1);
        pair_deliver_all(c->pair, 1);
    }
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_pass(c->pair, 20 * ALB_NS_PER_MS);
    assert_true(alb_list_is_linked(&c->csa[0]->reflect_out->source.link));
    pair_deliver_all(c->pair, 1);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    attr.state = ALB_QPS_SQD;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(move_peer(c, 0), 0);
    assert_false(alb_list_is_linked(&c->csa[0]->reflect_out->source.link));
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_AV, c->pair->now), 0);
    attr.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    reflect_pair_make(c, &made, 2, 200, 100);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 2, ALB_TXN_OK);
}

static void deadline__aborts_what_is_not_decided(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 100);
    made.wr.hold = true;
    made.wr.deadline_ns = 10 * ALB_NS_PER_MS;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    csa_pair_expect_none(c, 0);
    pair_pass(c->pair, 9 * ALB_NS_PER_MS);
    pair_settle(c->pair);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_REFLECTING);
    pair_pass(c->pair, 2 * ALB_NS_PER_MS);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_DEADLINE);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_ABORTED);
    assert_false(reflect_pair_is_exposed(c, 0, 100));
}

static void deadline__beyond_all_time_is_none(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    pair_pass(c->pair, ALB_NS_PER_MS);
    reflect_pair_make(c, &made, 1, 0, 100);
    made.wr.deadline_ns = UINT64_MAX;
    made.wr.lease_ns = UINT64_MAX;
    uint64_t number = reflect_pair_post(c, &made);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(reflect_pair_record(c, number)->lease_ns, c->engines[1]->config.txn_lease_ns_max);
    pair_pass(c->pair, ALB_NS_PER_MS);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
}

static void failure__before_commit_is_an_abort(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    reflect_pair_make(c, &made, 1, 0, 100);
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.vendor_err, ALB_TXN_PEER_GONE);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
    const struct alb_reflect_out *out = c->csa[0]->reflect_out;
    assert_int_equal(atomic_load(&out->ended), out->begun); // its place is free
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_txn_aborted), 1);
}

static void failure__after_commit_leaves_doubt(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    reflect_pair_make(c, &made, 1, 0, 100);
    uint64_t number = reflect_pair_post(c, &made);
    reflect_pair_lose(c, 0, ALB_CSA_TXN); // the decision
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.vendor_err, ALB_TXN_LOST);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_IN_DOUBT);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_txn_in_doubt), 1);
}

// The queue pair may be gone before the association sends next.
static void failure__leaves_no_command_to_send(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 100);
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, true, c->pair->now), 0);
    assert_false(alb_list_is_empty(&csa_pair_live(c, 0)->reflections));
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_true(alb_list_is_empty(&csa_pair_live(c, 0)->reflections));
}

// What had ended, and only waited for its turn to be reported, has not been aborted.
static void failure__of_one_leaves_the_next_one_committed(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    reflect_pair_make(c, &made, 1, 0, 100);
    made.wr.hold = true;
    reflect_pair_post(c, &made);
    reflect_pair_make(c, &made, 2, 1000, 100);
    uint64_t second = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    csa_pair_expect_none(c, 0);
    assert_int_equal(reflect_pair_state(c, second), ALB_TXN_COMMITTED);
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.vendor_err, ALB_TXN_PEER_GONE);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 2);
    assert_int_equal(wc.status, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.vendor_err, ALB_TXN_OK);
}

static void silence__fails_the_queue_pair(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    reflect_pair_make(c, &made, 1, 0, 100);
    uint64_t number = reflect_pair_post(c, &made);
    reflect_pair_lose(c, 0, ALB_CSA_TXN); // the COMMIT, and everything behind it
    for (uint32_t i = 0; i < 1000 && alb_qp_current_state(c->qps[0]) == ALB_QPS_RTS; i++) {
        pair_pass(c->pair, 10 * ALB_NS_PER_MS);
        pair_send(c->pair, 0);
        while (pair_count(c->pair, 0))
            pair_lose(c->pair, 0);
    }
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_RETRY_EXC_ERR);
    assert_int_equal(wc.vendor_err, ALB_TXN_LOST);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_IN_DOUBT);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_txn_in_doubt), 1);
}

// The oldest request is a part, which has no completion of its own: its transaction's says why.
static void silence__from_the_first_part_on(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    for (uint32_t i = 1; i <= 2; i++) {
        reflect_pair_make(c, &made, i, 0, 100);
        reflect_pair_add(c, &made, 1000, 100);
        reflect_pair_post(c, &made);
    }
    for (uint32_t i = 0; i < 1000 && alb_qp_current_state(c->qps[0]) == ALB_QPS_RTS; i++) {
        pair_send(c->pair, 0);
        while (pair_count(c->pair, 0))
            pair_lose(c->pair, 0);
        pair_pass(c->pair, 10 * ALB_NS_PER_MS);
    }
    for (uint32_t i = 1; i <= 2; i++) {
        assert_true(pair_poll(c->pair, 0, &wc));
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.status, i == 1 ? ALB_WC_RETRY_EXC_ERR : ALB_WC_WR_FLUSH_ERR);
        assert_int_equal(wc.vendor_err, ALB_TXN_PEER_GONE);
    }
    csa_pair_expect_none(c, 0);
}

static void verdict__of_nobody_changes_nothing(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 100);
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    struct alb_reflect_out *out = c->csa[0]->reflect_out;
    struct alb_csa_verdict verdict = {.state = ALB_CSA_VERDICT_COMMITTED, .id = {out->initiator, number}};
    alb_reflect_out_verdict(out, &verdict, c->pair->now); // COMMIT was not said, and the digest is another
    verdict.id.number++;
    alb_reflect_out_verdict(out, &verdict, c->pair->now);
    verdict.id.initiator++;
    alb_reflect_out_verdict(out, &verdict, c->pair->now);
    struct alb_wc wc;
    assert_true(!pair_poll(c->pair, 0, &wc) || wc.status != ALB_WC_SUCCESS);
}

// It was not asked for before the proposal was executed; its place in the ring is needed until then.
static void verdict__of_ignorance_before_anybody_has_asked(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 100);
    uint64_t number = reflect_pair_post(c, &made);
    pair_send(c->pair, 0);
    struct alb_reflect_out *out = c->csa[0]->reflect_out;
    const struct alb_csa_verdict verdict = {.state = ALB_CSA_VERDICT_UNKNOWN, .id = {out->initiator, number}};
    alb_reflect_out_verdict(out, &verdict, c->pair->now);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_TENTATIVE);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
}

// COMMIT was never decided: whatever the target has forgotten, it has not exposed it. "Lost" is what is in doubt.
static void verdict__of_ignorance_about_what_was_not_decided(void **state)
{
    struct csa_pair *c = *state;
    struct alb_reflect_out *out = c->csa[0]->reflect_out;
    struct reflect_made made;
    struct alb_wc wc;
    reflect_pair_make(c, &made, 1, 0, 100);
    uint64_t number = reflect_pair_post(c, &made);
    reflect_pair_lose(c, 1, ALB_CSA_VERDICT);
    struct alb_csa_verdict verdict = {.state = ALB_CSA_VERDICT_PENDING, .id = {out->initiator, number}};
    alb_reflect_out_verdict(out, &verdict, c->pair->now); // the proposal was executed
    verdict.state = ALB_CSA_VERDICT_UNKNOWN;
    verdict.reason = ALB_TXN_LOST;
    alb_reflect_out_verdict(out, &verdict, c->pair->now);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_REM_ABORT_ERR);
    assert_int_equal(wc.vendor_err, ALB_TXN_PEER_GONE);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
}

// ---- what is pending ------------------------------------------------------------------------------------------------

#define PENDING_NS (10 * ALB_NS_PER_S)

static void patient(struct alb_qp_attr *attr, int side)
{
    attr->timeout = 18; // 1 s, and that eight times
}

static int patient_setup(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, patient);
    assert_int_equal(alb_qp_txn_enable(c->qps[0], REFLECT_PAIR_IN_FLIGHT), 0);
    *state = c;
    return 0;
}
#define PATIENT_TEST(test) cmocka_unit_test_setup_teardown(test, patient_setup, csa_pair_teardown)

// Its program is asked, and thinks.
static uint64_t propose(struct csa_pair *c, uint64_t lease_ns, struct alb_proposal *proposal)
{
    struct reflect_made made;
    assert_int_equal(alb_mr_set_checked(c->pair->hosts[1].mr, true, NULL), 0);
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.lease_ns = lease_ns;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_true(alb_engine_proposal(c->engines[1], proposal));
    return number;
}

// Time passes, and every question is answered; how many there were.
static uint32_t count_questions(struct csa_pair *c, alb_time ns)
{
    uint32_t count = 0;
    for (alb_time end = c->pair->now + ns; c->pair->now < end; pair_pass(c->pair, ALB_NS_PER_MS / 4)) {
        pair_send(c->pair, 0);
        count += csa_pair_count(c, 0, ALB_CSA_TXN, NULL);
        pair_settle(c->pair);
    }
    return count;
}

// The program accepts, and the initiator hears of it without asking.
static void expect_told_at_once(struct csa_pair *c, const struct alb_proposal *proposal)
{
    assert_int_equal(alb_engine_proposal_answer(c->engines[1], &proposal->id, true, c->pair->now), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
}

// Twice as long between two questions each time, up to 100 ms. What is decided is said at once.
static void pending__is_asked_about_less_and_less_often(void **state)
{
    struct csa_pair *c = *state;
    struct alb_proposal proposal;
    propose(c, 2 * PENDING_NS, &proposal);
    uint32_t count = count_questions(c, PENDING_NS);
    assert_in_range(count, PENDING_NS / (100 * ALB_NS_PER_MS) - 1, PENDING_NS / (100 * ALB_NS_PER_MS) + 10);
    expect_told_at_once(c, &proposal);
}

// A verdict that was lost is asked for while there is time to decide.
static void pending__is_asked_about_within_its_lease(void **state)
{
    struct csa_pair *c = *state;
    struct alb_proposal proposal;
    const alb_time lease_ns = 200 * ALB_NS_PER_MS;
    propose(c, lease_ns, &proposal);
    assert_in_range(count_questions(c, lease_ns / 2), 3, 12);
    assert_int_equal(alb_engine_proposal_answer(c->engines[1], &proposal.id, true, c->pair->now), 0);
    reflect_pair_lose(c, 1, ALB_CSA_VERDICT);
    count_questions(c, lease_ns / 4);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
}

// Answers to questions are the only sign of life there is: there must be some before patience ends.
static void pending__is_asked_about_within_the_patience_of_the_queue_pair(void **state)
{
    struct csa_pair *c = *state;
    struct alb_proposal proposal;
    propose(c, 2 * ALB_NS_PER_S, &proposal); // timeouts of 4 ms: 33 ms of silence are too long
    assert_in_range(count_questions(c, ALB_NS_PER_S), 50, 200);
    expect_told_at_once(c, &proposal);
}

// A transaction that is bound does not end by being asked about.
static void pending__question_of_another_is_repeated_less_and_less_often(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_txn_status status;
    struct alb_qp *qps[2];
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.hold = true;
    made.wr.lease_ns = 2 * PENDING_NS;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_int_equal(alb_qp_txn_query(c->qps[0], number, &status), 0);
    pair_connect(c->pair, ALB_QPT_RC, qps, patient);
    assert_int_equal(alb_qp_txn_enable(qps[0], REFLECT_PAIR_IN_FLIGHT), 0);
    assert_int_equal(alb_qp_txn_reconcile_stage(qps[0], 2, ALB_SEND_SIGNALED, &status.token, ALB_TXN_ASK), 0);
    alb_qp_send_commit(qps[0]);
    alb_engine_bell_ring(qps[0]);
    assert_in_range(count_questions(c, PENDING_NS), PENDING_NS / (100 * ALB_NS_PER_MS) - 1,
                    PENDING_NS / (100 * ALB_NS_PER_MS) + 10);
}

// Questions that nobody hears.
static uint32_t count_unheard(struct csa_pair *c, alb_time ns)
{
    uint32_t count = 0;
    for (alb_time end = c->pair->now + ns; c->pair->now < end; pair_pass(c->pair, ALB_NS_PER_MS)) {
        pair_send(c->pair, 0);
        count += csa_pair_count(c, 0, ALB_CSA_TXN, NULL);
        while (pair_count(c->pair, 0))
            pair_lose(c->pair, 0);
    }
    return count;
}

// However long a program would hold it: no target does so for longer, and one that has died says nothing.
static void hold__is_asked_about_after_the_longest_lease(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    c->engines[0]->config.txn_lease_ns_max = PENDING_NS;
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.hold = true;
    made.wr.lease_ns = UINT64_MAX;
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_int_equal(count_unheard(c, PENDING_NS - 50 * ALB_NS_PER_MS), 0);
    assert_true(count_unheard(c, 100 * ALB_NS_PER_MS) > 0);
}

static void hold__is_asked_about_less_and_less_often_then(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.hold = true;
    made.wr.lease_ns = ALB_NS_PER_S;
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_int_equal(count_unheard(c, ALB_NS_PER_S - 50 * ALB_NS_PER_MS), 0);
    assert_in_range(count_unheard(c, 2 * ALB_NS_PER_S), 18, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(commit__exposes_and_says_so),
        REFLECT_PAIR_TEST(commit__of_several_ranges_longer_than_packets),
        REFLECT_PAIR_TEST(commit__many_in_flight),
        REFLECT_PAIR_TEST(commit__nothing_is_exposed_before),
        REFLECT_PAIR_TEST(verdict__lost_is_asked_for),
        REFLECT_PAIR_TEST(reflected__completes_before_it_is_exposed),
        REFLECT_PAIR_TEST(hold__waits_for_the_program),
        REFLECT_PAIR_TEST(hold__leaves_half_the_numbers_to_what_is_behind),
        REFLECT_PAIR_TEST(decide__before_it_has_begun),
        REFLECT_PAIR_TEST(decide__what_will_not_begin_any_more),
        REFLECT_PAIR_TEST(address__stays_until_all_is_decided_and_said),
        REFLECT_PAIR_TEST(address__leaves_no_answered_command_behind),
        REFLECT_PAIR_TEST(deadline__aborts_what_is_not_decided),
        REFLECT_PAIR_TEST(deadline__beyond_all_time_is_none),
        REFLECT_PAIR_TEST(failure__before_commit_is_an_abort),
        REFLECT_PAIR_TEST(failure__after_commit_leaves_doubt),
        REFLECT_PAIR_TEST(failure__leaves_no_command_to_send),
        REFLECT_PAIR_TEST(failure__of_one_leaves_the_next_one_committed),
        REFLECT_PAIR_TEST(silence__fails_the_queue_pair),
        REFLECT_PAIR_TEST(silence__from_the_first_part_on),
        REFLECT_PAIR_TEST(verdict__of_nobody_changes_nothing),
        REFLECT_PAIR_TEST(verdict__of_ignorance_before_anybody_has_asked),
        REFLECT_PAIR_TEST(verdict__of_ignorance_about_what_was_not_decided),
        PATIENT_TEST(pending__is_asked_about_less_and_less_often),
        PATIENT_TEST(pending__is_asked_about_within_its_lease),
        PATIENT_TEST(hold__is_asked_about_after_the_longest_lease),
        PATIENT_TEST(hold__is_asked_about_less_and_less_often_then),
        REFLECT_PAIR_TEST(pending__is_asked_about_within_the_patience_of_the_queue_pair),
        PATIENT_TEST(pending__question_of_another_is_repeated_less_and_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
