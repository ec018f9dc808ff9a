// SPDX-License-Identifier: BSD-2-Clause
// The target's side of the decision: leases, questions, regions that go, notifications, and what it says of what it
// does not know.
#include "engine/tests/reflect_pair.h"

static uint64_t hold(struct csa_pair *c, uint64_t wr_id, uint64_t lease_ns)
{
    struct reflect_made made;
    reflect_pair_make(c, &made, wr_id, 0, 64);
    made.wr.hold = true;
    made.wr.lease_ns = lease_ns;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    return number;
}

static void lease__ends_what_is_not_decided(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = hold(c, 1, 10 * ALB_NS_PER_MS);
    pair_pass(c->pair, 9 * ALB_NS_PER_MS);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_REFLECTING);
    pair_pass(c->pair, 2 * ALB_NS_PER_MS);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_ABORTED);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_txn_expired), 1);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_LEASE);
}

static void lease__whose_end_was_not_heard_is_asked_about(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = hold(c, 1, 10 * ALB_NS_PER_MS);
    pair_pass(c->pair, 11 * ALB_NS_PER_MS);
    pair_send(c->pair, 1);
    pair_lose(c->pair, 1);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_REFLECTING);
    for (uint32_t i = 0; i < 10; i++) {
        pair_pass(c->pair, ALB_NS_PER_MS);
        pair_settle(c->pair);
    }
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
    reflect_pair_expect(c, 1, ALB_TXN_LEASE);
}

static void lease__that_never_ends_is_not_asked_about(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = hold(c, 1, UINT64_MAX);
    pair_pass(c->pair, ALB_NS_PER_S / 2);
    assert_int_equal(pair_send(c->pair, 0), 0);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_REFLECTING);
}

static void lease__commit_that_comes_after_it_is_answered_aborted(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = hold(c, 1, 10 * ALB_NS_PER_MS);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, true, c->pair->now), 0);
    reflect_pair_lose(c, 0, ALB_CSA_TXN);
    struct alb_txn_in *txn = reflect_pair_record(c, number);
    alb_txn_in_abort(txn, ALB_TXN_LEASE, c->pair->now);
    pair_send(c->pair, 1);
    while (pair_count(c->pair, 1))
        pair_lose(c->pair, 1);
    pair_pass(c->pair, 5 * ALB_NS_PER_MS);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_LEASE);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
}

static void lease__no_longer_than_the_target_allows(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = hold(c, 1, 1000 * ALB_NS_PER_S);
    assert_int_equal(reflect_pair_record(c, number)->lease_ns, c->engines[1]->config.txn_lease_ns_max);
}

static void commit__twice_is_once(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = hold(c, 1, 0);
    const struct alb_csa_txn command = {.command = ALB_CSA_TXN_COMMIT,
                                        .id = {c->csa[0]->reflect_out->initiator, number}};
    alb_reflect_in_command(c->csa[1], &command, c->pair->now);
    assert_true(reflect_pair_is_exposed(c, 0, 64));
    c->pair->hosts[1].memory[0] ^= 0xff; // its program goes on
    alb_reflect_in_command(c->csa[1], &command, c->pair->now);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
    const struct alb_csa_txn abort = {.command = ALB_CSA_TXN_ABORT, .id = command.id};
    alb_reflect_in_command(c->csa[1], &abort, c->pair->now);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_COMMITTED);
}

static void region__deregistered_ends_what_is_bound(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_region *mr;
    struct pair_host *host = &c->pair->hosts[1];
    assert_int_equal(alb_mr_create(host->pd, host->memory, 4096, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &mr), 0);
    reflect_pair_make(c, &made, 1, 0, 64);
    made.writes[0].rkey = alb_region_key(mr);
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_int_equal(alb_mr_destroy(mr), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_REGION_GONE);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
}

static void region__deregistered_while_parts_come(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_region *mr;
    struct pair_host *host = &c->pair->hosts[1];
    for (uint32_t in_place = 0; in_place < 2; in_place++) {
        assert_int_equal(alb_mr_create(host->pd, host->memory, 8192, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &mr), 0);
        reflect_pair_make(c, &made, 1, 0, 5000);
        made.writes[0].rkey = alb_region_key(mr);
        made.wr.in_place = in_place;
        reflect_pair_post(c, &made);
        pair_send(c->pair, 0);
        pair_deliver(c->pair, 0);
        assert_int_equal(alb_mr_destroy(mr), 0);
        pair_settle(c->pair);
        reflect_pair_expect(c, 1, in_place ? ALB_TXN_REGION_GONE : ALB_TXN_ACCESS);
        assert_false(reflect_pair_is_exposed(c, 0, 64));
    }
}

// ---- notifications --------------------------------------------------------------------------------------------------

static void notify__completes_a_receive_when_it_is_exposed(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 5, 0, 0), 0);
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.notify = true;
    made.wr.imm_data = 0x01020304;
    reflect_pair_post(c, &made);
    reflect_pair_lose(c, 0, ALB_CSA_TXN);
    assert_false(pair_poll(c->pair, 1, &wc));
    pair_pass(c->pair, 5 * ALB_NS_PER_MS);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.wr_id, 5);
    assert_int_equal(wc.opcode, ALB_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.byte_len, 64);
    assert_int_equal(wc.imm_data, 0x01020304);
    assert_int_equal(wc.flags, ALB_WC_WITH_IMM);
}

static void notify__waits_for_a_receive(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    for (uint32_t i = 0; i < 3; i++) {
        reflect_pair_make(c, &made, i, 0, 64);
        made.wr.notify = true;
        made.wr.imm_data = i;
        reflect_pair_post(c, &made);
        pair_settle(c->pair);
        reflect_pair_expect(c, i, ALB_TXN_OK); // which does not wait
    }
    assert_false(pair_poll(c->pair, 1, &wc));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(pair_receive(c->pair, c->qps[1], i, 0, 0), 0);
    pair_pass(c->pair, 2 * ALB_NS_PER_MS);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(pair_poll(c->pair, 1, &wc));
        assert_int_equal(wc.imm_data, i);
    }
}

static void notify__does_not_take_the_receive_of_a_message_that_comes(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    uint64_t number = hold(c, 1, 0);
    (void)number;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 65536, 5000), 0);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, 0), 0);
    reflect_pair_make(c, &made, 2, 1000, 64);
    made.wr.notify = true;
    reflect_pair_post(c, &made);
    csa_pair_ask(c, ALB_WR_SEND, 3, ALB_SEND_SIGNALED, 5000);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 1, &wc));
    bool is_send_first = wc.opcode == ALB_WC_RECV;
    assert_int_equal(wc.wr_id, 1);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.opcode, is_send_first ? ALB_WC_RECV_RDMA_WITH_IMM : ALB_WC_RECV);
}

// Its bytes have been placed where its receive is, before its turn.
static void notify__does_not_take_the_receive_of_a_message_placed_early(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_region *mr;
    struct alb_wc wc;
    struct pair_host *host = &c->pair->hosts[1];
    assert_int_equal(alb_mr_create(host->pd, host->memory, PAIR_MEMORY_BYTES, (uintptr_t)host->memory,
                                   PAIR_ACCESS_ALL | ALB_ACCESS_RELAXED_ORDERING, &mr),
                     0);
    for (uint32_t i = 0; i < 2; i++) {
        struct alb_sge sge = pair_sge(c->pair, 1, 65536 + i * 8192, 5000);
        sge.lkey = alb_region_key(mr);
        bool bell;
        assert_int_equal(alb_qp_recv_post(c->qps[1], i, &sge, 1, &bell), 0);
    }
    reflect_pair_make(c, &made, 1, 20000, 64);
    made.wr.notify = true;
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    csa_pair_ask(c, ALB_WR_SEND, 2, ALB_SEND_SIGNALED, 5000);
    pair_send(c->pair, 0);
    while (pair_count(c->pair, 0) > 1)
        pair_lose(c->pair, 0);
    pair_deliver(c->pair, 0);
    const struct alb_csa_txn command = {.command = ALB_CSA_TXN_COMMIT,
                                        .id = {c->csa[0]->reflect_out->initiator, number}};
    alb_reflect_in_command(c->csa[1], &command, c->pair->now);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, true, c->pair->now), 0);
    pair_pass(c->pair, 5 * ALB_NS_PER_MS);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.opcode, ALB_WC_RECV);
    assert_int_equal(wc.wr_id, 0);
    assert_memory_equal(host->memory + 65536, c->pair->hosts[0].memory, 5000);
    pair_pass(c->pair, 5 * ALB_NS_PER_MS);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.opcode, ALB_WC_RECV_RDMA_WITH_IMM);
}

static void notify__looks_less_and_less_often_and_hears_of_a_receive(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    reflect_pair_make(c, &made, 1, 0, 8);
    made.wr.notify = true;
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    uint32_t looks = 0;
    for (alb_time end = c->pair->now + ALB_NS_PER_S; c->pair->now < end; looks++)
        pair_pass(c->pair, alb_engine_deadline(c->engines[1]) - c->pair->now);
    assert_in_range(looks, 8, 50);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 0, 0), 0);
    pair_settle(c->pair); // at this very moment
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.opcode, ALB_WC_RECV_RDMA_WITH_IMM);
}

static void notify__more_than_there_is_room_for(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_wc wc;
    for (uint32_t i = 0; i <= ALB_REFLECT_NOTICES; i++) {
        reflect_pair_make(c, &made, i, 0, 8);
        made.wr.notify = true;
        reflect_pair_post(c, &made);
        pair_settle(c->pair);
        reflect_pair_expect(c, i, i < ALB_REFLECT_NOTICES ? ALB_TXN_OK : ALB_TXN_BUSY);
    }
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 0, 0), 0);
    pair_pass(c->pair, 2 * ALB_NS_PER_MS);
    assert_true(pair_poll(c->pair, 1, &wc));
    reflect_pair_make(c, &made, 99, 0, 8);
    made.wr.notify = true;
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 99, ALB_TXN_OK);
}

// ---- questions ------------------------------------------------------------------------------------------------------

// Another queue pair of the same two hosts asks about a transaction.
static void ask(struct csa_pair *c, struct alb_qp *qps[2], const struct alb_txn_token *token,
                enum alb_txn_decision decision, uint64_t wr_id)
{
    assert_int_equal(alb_qp_txn_reconcile_stage(qps[0], wr_id, ALB_SEND_SIGNALED, token, decision), 0);
    alb_qp_send_commit(qps[0]);
    alb_engine_bell_ring(qps[0]);
    pair_settle(c->pair);
}

static void successor(struct csa_pair *c, struct alb_qp *qps[2])
{
    pair_connect(c->pair, ALB_QPT_RC, qps, NULL);
    assert_int_equal(alb_qp_txn_enable(qps[0], 4), 0);
}

static struct alb_txn_token token_of(struct csa_pair *c, uint64_t number)
{
    struct alb_txn_status status;
    assert_int_equal(alb_qp_txn_query(c->qps[0], number, &status), 0);
    return status.token;
}

static void fail_side(struct csa_pair *c, int side)
{
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    struct alb_wc wc;
    assert_int_equal(alb_qp_modify(c->qps[side], &attr, ALB_QP_STATE, c->pair->now), 0);
    while (pair_poll(c->pair, side, &wc))
        ;
}

static void new_life__of_the_initiator_ends_what_is_bound(void **state)
{
    struct csa_pair *c = *state;
    uint64_t number = hold(c, 1, 0);
    alb_assoc_restart(c->engines[1], c->csa[1]->assoc, c->csa[1]->bound_epoch + 1);
    fail_side(c, 1);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_ABORTED);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
}

static void reconcile__bound_one_is_decided_by_another_queue_pair(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qps[2];
    struct alb_wc wc;
    uint64_t number = hold(c, 1, 0);
    struct alb_txn_token token = token_of(c, number);
    assert_true(token.keeper == c->engines[1]->reflect->keeper);
    fail_side(c, 0);
    fail_side(c, 1);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_REFLECTING);
    successor(c, qps);
    ask(c, qps, &token, ALB_TXN_COMMIT, 9);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 9);
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    assert_true(reflect_pair_is_exposed(c, 0, 64));
}

// The queue pair that it was posted on lives, and hears of it, too.
static void reconcile__tells_the_owner_what_another_has_decided(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qps[2];
    struct alb_wc wc;
    uint64_t number = hold(c, 1, 0);
    struct alb_txn_token token = token_of(c, number);
    successor(c, qps);
    ask(c, qps, &token, ALB_TXN_ABORT, 9);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.vendor_err, ALB_TXN_WITHDRAWN);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 9);
    assert_int_equal(wc.vendor_err, ALB_TXN_WITHDRAWN);

    number = hold(c, 2, 0);
    token = token_of(c, number);
    ask(c, qps, &token, ALB_TXN_COMMIT, 9);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_COMMITTED);
    reflect_pair_expect(c, 2, ALB_TXN_OK);
    reflect_pair_expect(c, 9, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 0, 64));
    // Questions are none.
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_txn_aborted), 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_txn_committed), 1);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_txn_withdrawn), 1);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_txn_refused), 0); // it was bound
}

// What it withdraws too late is committed, and said to be.
static void reconcile__commits_what_its_owner_is_about_to_withdraw(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qps[2];
    uint64_t number = hold(c, 1, 0);
    struct alb_txn_token token = token_of(c, number);
    successor(c, qps);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, false, c->pair->now), 0);
    reflect_pair_lose(c, 0, ALB_CSA_TXN);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTING);
    ask(c, qps, &token, ALB_TXN_COMMIT, 9);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_COMMITTED);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    reflect_pair_expect(c, 9, ALB_TXN_OK);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_txn_aborted), 0);
}

static void reconcile__what_was_committed_stays_so(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qps[2];
    struct alb_wc wc;
    uint64_t number = hold(c, 1, 0);
    struct alb_txn_token token = token_of(c, number);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, true, c->pair->now), 0);
    reflect_pair_lose(c, 1, ALB_CSA_VERDICT);
    fail_side(c, 0);
    fail_side(c, 1);
    successor(c, qps);
    ask(c, qps, &token, ALB_TXN_ABORT, 9);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
}

static void reconcile__bound_one_that_nobody_decides_ends_with_its_lease(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qps[2];
    struct alb_wc wc;
    uint64_t number = hold(c, 1, 50 * ALB_NS_PER_MS);
    struct alb_txn_token token = token_of(c, number);
    fail_side(c, 0);
    fail_side(c, 1);
    successor(c, qps);
    ask(c, qps, &token, ALB_TXN_ASK, 9);
    assert_false(pair_poll(c->pair, 0, &wc));
    for (uint32_t i = 0; i < 120; i++) {
        pair_pass(c->pair, ALB_NS_PER_MS);
        pair_settle(c->pair);
    }
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.vendor_err, ALB_TXN_LEASE);
    assert_int_equal(wc.status, ALB_WC_REM_ABORT_ERR);
}

static void reconcile__what_the_initiator_had_passed_is_not_known(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qps[2];
    struct alb_wc wc;
    struct reflect_made made;
    uint64_t number = hold(c, 1, 0);
    struct alb_txn_token token = token_of(c, number);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, true, c->pair->now), 0);
    pair_settle(c->pair);
    for (uint32_t i = 0; i < 2; i++) { // L moves on, and says so
        reflect_pair_make(c, &made, 2, 1000, 8);
        reflect_pair_post(c, &made);
        pair_settle(c->pair);
    }
    assert_null(reflect_pair_record(c, number));
    fail_side(c, 0);
    successor(c, qps);
    ask(c, qps, &token, ALB_TXN_ASK, 9);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_RESP_TIMEOUT_ERR); // never "aborted": it was not
    assert_int_equal(wc.vendor_err, ALB_TXN_LOST);
}

static void reconcile__never_proposed_to_this_keeper_is_aborted(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qps[2];
    struct alb_wc wc;
    uint64_t number = hold(c, 1, 0);
    struct alb_txn_token token = token_of(c, number);
    token.id.number = number + 5;
    successor(c, qps);
    ask(c, qps, &token, ALB_TXN_ASK, 9);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_REM_ABORT_ERR);
    token.keeper++;
    ask(c, qps, &token, ALB_TXN_ASK, 10);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.vendor_err, ALB_TXN_LOST);
    token.keeper--;
    token.id.initiator++;
    ask(c, qps, &token, ALB_TXN_ASK, 11);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.vendor_err, ALB_TXN_LOST);
}

// A record under another keeper is not what the token names: it is neither reported nor decided.
static void reconcile__by_a_token_with_another_keeper(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qps[2];
    struct alb_wc wc;
    uint64_t number = hold(c, 1, 0);
    struct alb_txn_token token = token_of(c, number);
    successor(c, qps);
    token.keeper++;
    ask(c, qps, &token, ALB_TXN_ABORT, 9);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.vendor_err, ALB_TXN_LOST);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_REFLECTING);
    token.keeper = 0; // asked for none, any keeper of the record answers
    ask(c, qps, &token, ALB_TXN_ABORT, 10);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_REM_ABORT_ERR);
}

// Two questions about one transaction at a time, one without a keeper: "unknown" is the answer to that one only.
static void reconcile__each_question_has_its_own_answer(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qps[2];
    struct alb_wc wc;
    uint64_t number = hold(c, 1, 0);
    struct alb_txn_token token = token_of(c, number), nameless;
    token.id.number = number + 5; // never proposed
    nameless = (struct alb_txn_token){.id = token.id};
    successor(c, qps);
    assert_int_equal(alb_qp_txn_reconcile_stage(qps[0], 9, ALB_SEND_SIGNALED, &token, ALB_TXN_ASK), 0);
    assert_int_equal(alb_qp_txn_reconcile_stage(qps[0], 10, ALB_SEND_SIGNALED, &nameless, ALB_TXN_ASK), 0);
    alb_qp_send_commit(qps[0]);
    alb_engine_bell_ring(qps[0]);
    const struct alb_csa_verdict unknown = {
        .state = ALB_CSA_VERDICT_UNKNOWN,
        .reason = ALB_TXN_LOST,
        .id = {.initiator = token.id.initiator, .number = token.id.number},
    };
    pair_send(c->pair, 0);
    alb_reflect_out_verdict(alb_csa_of(qps[0])->reflect_out, &unknown, c->pair->now);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 9);
    assert_int_equal(wc.status, ALB_WC_REM_ABORT_ERR);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 10);
    assert_int_equal(wc.vendor_err, ALB_TXN_LOST);
}

// So many answers wait to be sent; who has got none asks again.
static void reconcile__more_questions_than_answers_may_wait(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_txn command = {.command = ALB_CSA_TXN_ASK, .id = {.initiator = 77}};
    hold(c, 1, 0);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < ALB_REFLECT_STRAYS + 5; i++) {
            command.id.number++;
            alb_reflect_in_command(c->csa[1], &command, c->pair->now);
        }
        assert_false(alb_reflect_in_is_quiet(c->csa[1]->reflect_in));
        pair_send(c->pair, 1);
        assert_int_equal(csa_pair_count(c, 1, ALB_CSA_VERDICT, NULL), ALB_REFLECT_STRAYS);
        assert_true(alb_reflect_in_is_quiet(c->csa[1]->reflect_in));
        pair_deliver_all(c->pair, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(lease__ends_what_is_not_decided),
        REFLECT_PAIR_TEST(lease__whose_end_was_not_heard_is_asked_about),
        REFLECT_PAIR_TEST(lease__that_never_ends_is_not_asked_about),
        REFLECT_PAIR_TEST(new_life__of_the_initiator_ends_what_is_bound),
        REFLECT_PAIR_TEST(lease__commit_that_comes_after_it_is_answered_aborted),
        REFLECT_PAIR_TEST(lease__no_longer_than_the_target_allows),
        REFLECT_PAIR_TEST(commit__twice_is_once),
        REFLECT_PAIR_TEST(region__deregistered_ends_what_is_bound),
        REFLECT_PAIR_TEST(region__deregistered_while_parts_come),
        REFLECT_PAIR_TEST(notify__completes_a_receive_when_it_is_exposed),
        REFLECT_PAIR_TEST(notify__waits_for_a_receive),
        REFLECT_PAIR_TEST(notify__does_not_take_the_receive_of_a_message_that_comes),
        REFLECT_PAIR_TEST(notify__looks_less_and_less_often_and_hears_of_a_receive),
        REFLECT_PAIR_TEST(notify__more_than_there_is_room_for),
        REFLECT_PAIR_TEST(reconcile__bound_one_is_decided_by_another_queue_pair),
        REFLECT_PAIR_TEST(reconcile__tells_the_owner_what_another_has_decided),
        REFLECT_PAIR_TEST(reconcile__commits_what_its_owner_is_about_to_withdraw),
        REFLECT_PAIR_TEST(reconcile__what_was_committed_stays_so),
        REFLECT_PAIR_TEST(reconcile__bound_one_that_nobody_decides_ends_with_its_lease),
        REFLECT_PAIR_TEST(reconcile__what_the_initiator_had_passed_is_not_known),
        REFLECT_PAIR_TEST(reconcile__never_proposed_to_this_keeper_is_aborted),
        REFLECT_PAIR_TEST(reconcile__by_a_token_with_another_keeper),
        REFLECT_PAIR_TEST(reconcile__each_question_has_its_own_answer),
        REFLECT_PAIR_TEST(reconcile__more_questions_than_answers_may_wait),
        REFLECT_PAIR_TEST(notify__does_not_take_the_receive_of_a_message_placed_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
