// SPDX-License-Identifier: BSD-2-Clause
// Transactions, levels, stages and tokens as programs use them. (The protocol itself is tested in virtual time.)
#include "txn_ends.h"

#include <stdlib.h>

// ---- transactions ---------------------------------------------------------------------------------------------------

static void txn__commits_all_of_it(void **state)
{
    struct ends e;
    set_up(&e, *state);
    fixture_post_recv(e.f, e.target, 50, 0, 0);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    add(&e, SECOND, BYTES);
    albdv_wr_txn_notify(e.dv, 99);
    uint64_t number = end(&e);
    struct ibv_wc wcs[2];
    for (int i = 0; i < 2; i++)
        wcs[i] = fixture_wait(e.f->cq);
    const struct ibv_wc *sent = &wcs[wcs[0].wr_id != 1], *notified = &wcs[wcs[0].wr_id == 1];
    assert_int_equal(sent->status, IBV_WC_SUCCESS);
    assert_int_equal(sent->opcode, IBV_WC_RDMA_WRITE);
    assert_int_equal(albdv_wc_reason(sent), ALBDV_OK);
    assert_int_equal(albdv_wc_number(sent), number);
    assert_int_equal(notified->wr_id, 50);
    assert_int_equal(notified->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(notified->imm_data, 99);
    assert_int_equal(albdv_wc_number(notified), 0);
    assert_true(is_written(&e, TARGET) && is_written(&e, SECOND));
    struct albdv_txn_status status = query(&e, number);
    assert_int_equal(status.state, ALBDV_TXN_COMMITTED);
    assert_int_equal(status.reason, ALBDV_OK);
    assert_int_equal(status.token.number, number);
    assert_true(status.token.initiator != 0 && status.token.keeper != 0);
    assert_string_equal(albdv_txn_state_str(status.state), "COMMITTED");
    struct albdv_stages stages;
    assert_int_equal(albdv_wc_stages(e.dv, sent, &stages, sizeof(stages)), 0);
    assert_memory_equal(&stages, &status.stages, sizeof(stages));
    assert_true(stages.submitted <= stages.placed && stages.placed <= stages.transmitted);
    assert_true(stages.transmitted <= stages.remote_placed && stages.remote_placed <= stages.visible);
    assert_true(stages.visible <= stages.agreed && stages.agreed < ALBDV_TIME_NEVER);
    assert_true(stages.submitted <= stages.delivered && stages.delivered < ALBDV_TIME_NEVER);
    tear_down(&e);
}

// The program's buffers are its own again when a setter has returned; each write has room for as much.
static void txn__of_inline_data(void **state)
{
    struct ends e;
    uint8_t bytes[64];
    set_up(&e, *state);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    memset(bytes, 1, sizeof(bytes));
    albdv_wr_txn_write(e.dv, e.f->mr->rkey, at(&e, TARGET));
    ibv_wr_set_inline_data(e.ex, bytes, sizeof(bytes));
    add(&e, SECOND, BYTES);
    albdv_wr_txn_write(e.dv, e.f->mr->rkey, at(&e, COUNTER));
    memset(bytes, 2, sizeof(bytes));
    const struct ibv_data_buf list[] = {{.addr = bytes, .length = 3}, {.addr = bytes, .length = 0}, {bytes + 3, 61}};
    ibv_wr_set_sge(e.ex, e.f->mr->lkey, at(&e, 0), 8); // the last word counts
    ibv_wr_set_inline_data_list(e.ex, 3, list);
    memset(bytes, 3, sizeof(bytes));
    end(&e);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    for (size_t i = 0; i < sizeof(bytes); i++)
        assert_true(e.f->memory[TARGET + i] == 1 && e.f->memory[COUNTER + i] == 2);
    assert_true(is_written(&e, SECOND));
    tear_down(&e);
}

static void txn__of_more_inline_data_than_there_is_room_for(void **state)
{
    struct ends e;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    set_up(&e, *state);
    assert_int_equal(ibv_query_qp(e.initiator, &attr, IBV_QP_CAP, &init), 0);
    for (uint32_t over = 0; over < 2; over++) {
        begin(&e, 1, ALBDV_COMMITTED, 0);
        for (int i = 0; i < 8; i++) {
            albdv_wr_txn_write(e.dv, e.f->mr->rkey, at(&e, TARGET));
            ibv_wr_set_inline_data(e.ex, e.f->memory, init.cap.max_inline_data + over);
        }
        albdv_wr_txn_end(e.dv);
        assert_int_equal(ibv_wr_complete(e.ex), over ? EINVAL : 0);
    }
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    tear_down(&e);
}

static void txn__is_flushed_once(void **state)
{
    struct ends e;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    set_up(&e, *state);
    assert_int_equal(ibv_modify_qp(e.initiator, &attr, IBV_QP_STATE), 0);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    add(&e, SECOND, BYTES);
    end(&e);
    struct ibv_wc wc = fixture_wait(e.f->cq);
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(albdv_wc_reason(&wc), ALBDV_PEER_GONE);
    assert_int_equal(ibv_poll_cq(e.f->cq, 1, &wc), 0);
    tear_down(&e);
}

static void txn__in_place(void **state)
{
    struct ends e;
    set_up(&e, *state);
    begin(&e, 1, ALBDV_COMMITTED, ALBDV_TXN_IN_PLACE);
    add(&e, TARGET, BYTES);
    end(&e);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    assert_true(is_written(&e, TARGET));
    tear_down(&e);
}

static void txn__reflected_comes_before_it_is_exposed(void **state)
{
    struct ends e;
    set_up(&e, *state);
    begin(&e, 1, ALBDV_REFLECTED, ALBDV_TXN_HOLD);
    add(&e, TARGET, BYTES);
    uint64_t number = end(&e);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    assert_false(is_written(&e, TARGET));
    assert_int_equal(query(&e, number).state, ALBDV_TXN_REFLECTING);
    assert_int_equal(albdv_decide_txn(e.dv, number, ALBDV_ASK), EINVAL);
    assert_int_equal(albdv_decide_txn(e.dv, number, ALBDV_COMMIT), 0);
    assert_int_equal(albdv_decide_txn(e.dv, number, ALBDV_ABORT), EALREADY);
    while (query(&e, number).state == ALBDV_TXN_REFLECTING)
        assert_int_equal(ibv_poll_cq(e.f->cq, 1, &(struct ibv_wc){0}), 0);
    assert_int_equal(query(&e, number).state, ALBDV_TXN_COMMITTED);
    assert_true(is_written(&e, TARGET));
    assert_int_equal(albdv_decide_txn(e.dv, number + 1, ALBDV_ABORT), ENOENT);
    tear_down(&e);
}

// Without a hold there is nothing to decide but to abort.
static void txn__is_told_to_commit_what_is_not_held(void **state)
{
    struct ends e;
    set_up(&e, *state);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    int error = albdv_decide_txn(e.dv, end(&e), ALBDV_COMMIT);
    assert_true(error == 0 || error == EALREADY);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    assert_true(is_written(&e, TARGET));
    tear_down(&e);
}

static void txn__held_and_aborted(void **state)
{
    struct ends e;
    set_up(&e, *state);
    begin(&e, 1, ALBDV_COMMITTED, ALBDV_TXN_HOLD);
    add(&e, TARGET, BYTES);
    uint64_t number = end(&e);
    while (query(&e, number).state == ALBDV_TXN_TENTATIVE)
        assert_int_equal(ibv_poll_cq(e.f->cq, 1, &(struct ibv_wc){0}), 0);
    assert_int_equal(albdv_decide_txn(e.dv, number, ALBDV_ABORT), 0);
    expect(&e, 1, IBV_WC_REM_ABORT_ERR, ALBDV_WITHDRAWN);
    assert_false(is_written(&e, TARGET));
    begin(&e, 2, ALBDV_COMMITTED, 0); // the queue pair is as good as before
    add(&e, TARGET, BYTES);
    end(&e);
    expect(&e, 2, IBV_WC_SUCCESS, ALBDV_OK);
    tear_down(&e);
}

static void txn__preconditions(void **state)
{
    struct ends e;
    set_up(&e, *state);
    uint64_t *counter = (uint64_t *)(void *)(e.f->memory + COUNTER);
    *counter = 0x1234;
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    albdv_wr_txn_compare(e.dv, e.f->mr->rkey, at(&e, COUNTER), 0x34, 0xff);
    end(&e);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    begin(&e, 2, ALBDV_COMMITTED, 0);
    add(&e, SECOND, BYTES);
    albdv_wr_txn_compare(e.dv, e.f->mr->rkey, at(&e, COUNTER), 0x35, 0xff);
    end(&e);
    expect(&e, 2, IBV_WC_REM_ABORT_ERR, ALBDV_PRECONDITION);
    assert_false(is_written(&e, SECOND));
    tear_down(&e);
}

static void txn__of_a_bad_key(void **state)
{
    struct ends e;
    set_up(&e, *state);
    const struct ibv_sge sge = fixture_sge(e.f, SOURCE, BYTES);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    albdv_wr_txn_write(e.dv, e.f->mr->rkey ^ 0x55, at(&e, TARGET));
    ibv_wr_set_sge_list(e.ex, 1, &sge);
    end(&e);
    expect(&e, 1, IBV_WC_REM_ABORT_ERR, ALBDV_ACCESS);
    assert_string_equal(albdv_reason_str((enum albdv_reason)99), "unknown");
    assert_string_equal(albdv_txn_state_str((enum albdv_txn_state)99), "unknown");
    tear_down(&e);
}

static void txn__lease_and_deadline(void **state)
{
    struct ends e;
    set_up(&e, *state);
    begin(&e, 1, ALBDV_COMMITTED, ALBDV_TXN_HOLD);
    add(&e, TARGET, BYTES);
    albdv_wr_txn_deadline(e.dv, WHILE_NS);
    end(&e);
    expect(&e, 1, IBV_WC_REM_ABORT_ERR, ALBDV_DEADLINE);
    begin(&e, 2, ALBDV_COMMITTED, ALBDV_TXN_HOLD);
    add(&e, TARGET, BYTES);
    albdv_wr_txn_lease(e.dv, WHILE_NS);
    end(&e);
    begin(&e, 3, ALBDV_COMMITTED, 0); // overlaps what is bound, for as long as it is
    add(&e, TARGET, BYTES);
    end(&e);
    expect(&e, 2, IBV_WC_REM_ABORT_ERR, ALBDV_LEASE);
    expect(&e, 3, IBV_WC_REM_ABORT_ERR, ALBDV_BUSY);
    assert_false(is_written(&e, TARGET));
    tear_down(&e);
}

static void reconcile(struct ends *e, uint64_t wr_id, const struct albdv_token *token, enum albdv_decision decision)
{
    ibv_wr_start(e->ex);
    e->ex->wr_id = wr_id;
    e->ex->wr_flags = IBV_SEND_SIGNALED;
    albdv_wr_reconcile(e->dv, token, decision);
    assert_int_equal(ibv_wr_complete(e->ex), 0);
}

// The first one is not decided, so that the target remembers what became of the second.
static void txn__of_another_queue_pair_is_reconciled(void **state)
{
    struct ends e, other;
    struct albdv_token tokens[2];
    set_up(&e, *state);
    begin(&e, 1, ALBDV_REFLECTED, ALBDV_TXN_HOLD);
    add(&e, SECOND, BYTES);
    tokens[0].number = end(&e);
    begin(&e, 2, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    tokens[1].number = end(&e);
    for (int i = 0; i < 2; i++) {
        expect(&e, 1 + (uint64_t)i, IBV_WC_SUCCESS, ALBDV_OK);
        tokens[i] = query(&e, tokens[i].number).token;
    }
    set_up(&other, *state);
    memset(other.f->memory + TARGET, 0x5a, BYTES);
    reconcile(&other, 10, &tokens[1], ALBDV_ASK);
    expect(&other, 10, IBV_WC_SUCCESS, ALBDV_OK);
    reconcile(&other, 11, &tokens[0], ALBDV_ABORT);
    expect(&other, 11, IBV_WC_REM_ABORT_ERR, ALBDV_WITHDRAWN);
    assert_false(is_written(&e, SECOND));
    tokens[1].number += 1; // there never was one
    reconcile(&other, 12, &tokens[1], ALBDV_COMMIT);
    struct ibv_wc wc = fixture_wait_for(other.f->cq, 12);
    assert_true(wc.status == IBV_WC_REM_ABORT_ERR || wc.status == IBV_WC_RESP_TIMEOUT_ERR);
    tokens[1].keeper++; // and a keeper that does not exist; another number, since the last answer may come twice
    tokens[1].number += 1;
    reconcile(&other, 13, &tokens[1], ALBDV_ASK);
    expect(&other, 13, IBV_WC_RESP_TIMEOUT_ERR, ALBDV_LOST);
    reconcile(&other, 14, &(struct albdv_token){0}, ALBDV_ASK); // no token, and no error of the call
    expect(&other, 14, IBV_WC_RESP_TIMEOUT_ERR, ALBDV_LOST);
    ibv_wr_start(other.ex);
    albdv_wr_reconcile(other.dv, NULL, ALBDV_ASK);
    assert_int_equal(ibv_wr_complete(other.ex), EINVAL);
    tear_down(&other);
    tear_down(&e);
}

static void txn__nonsense(void **state)
{
    struct ends e;
    set_up(&e, *state);
    begin(&e, 1, ALBDV_DELIVERED, 0);
    assert_int_equal(albdv_wr_txn_end(e.dv), 0);
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    begin(&e, 1, ALBDV_COMMITTED, 4);
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    begin(&e, 1, ALBDV_COMMITTED, 0); // writes nothing
    assert_int_equal(albdv_wr_txn_end(e.dv), 0);
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    begin(&e, 1, ALBDV_COMMITTED, 0); // nor does what only compares
    albdv_wr_txn_compare(e.dv, e.f->mr->rkey, at(&e, COUNTER), 0, UINT64_MAX);
    assert_int_equal(albdv_wr_txn_end(e.dv), 0);
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    ibv_wr_set_sge(e.ex, e.f->mr->lkey, at(&e, 0), 8); // of no write
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    ibv_wr_set_inline_data(e.ex, e.f->memory, 8); // of no write
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    albdv_wr_txn_write(e.dv, e.f->mr->rkey, at(&e, TARGET));
    ibv_wr_set_sge(e.ex, e.f->mr->lkey ^ 0x11, at(&e, 0), 8); // the digest cannot be taken
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    for (int i = 0; i < 65; i++)
        albdv_wr_txn_write(e.dv, e.f->mr->rkey, at(&e, TARGET));
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    ibv_wr_start(e.ex);
    albdv_wr_txn_write(e.dv, e.f->mr->rkey, at(&e, TARGET)); // of no transaction
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    ibv_wr_start(e.ex);
    ibv_wr_rdma_read(e.ex, e.f->mr->rkey, at(&e, TARGET));
    albdv_wr_set_level(e.dv, ALBDV_VISIBLE);
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    assert_true(albdv_wr_txn_end(e.dv) > 0);
    ibv_wr_abort(e.ex); // nothing of it is posted
    begin(&e, 2, ALBDV_COMMITTED, 0);
    add(&e, SECOND, BYTES);
    end(&e);
    assert_int_equal(fixture_wait(e.f->cq).wr_id, 2);
    assert_false(is_written(&e, TARGET));
    struct albdv_txn_status status;
    assert_int_equal(albdv_query_txn(e.dv, 1000, &status, sizeof(status)), ENOENT);
    assert_int_equal(albdv_query_txn(e.dv, 1, &status, 0), EINVAL);
    tear_down(&e);
}

// An older program asks for less, a newer one for more.
static void query__of_another_size(void **state)
{
    struct ends e;
    struct {
        struct albdv_txn_status status;
        uint8_t more[16];
    } newer;
    set_up(&e, *state);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    uint64_t number = end(&e);
    expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    memset(&newer, 0xff, sizeof(newer));
    assert_int_equal(albdv_query_txn(e.dv, number, &newer.status, sizeof(newer)), 0);
    assert_int_equal(newer.more[0], 0);
    assert_int_equal(newer.more[15], 0);
    memset(&newer, 0xff, sizeof(newer));
    assert_int_equal(albdv_query_txn(e.dv, number, &newer.status, 8), 0);
    assert_int_equal(newer.status.state, ALBDV_TXN_COMMITTED);
    assert_int_equal(newer.status.token.number, UINT64_MAX);
    tear_down(&e);
}

// ---- levels and stages of ordinary messages -------------------------------------------------------------------------

static void message__visible_and_with_stages(void **state)
{
    struct ends e;
    struct albdv_stages stages;
    set_up(&e, *state);
    ibv_wr_start(e.ex);
    e.ex->wr_id = 1;
    e.ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(e.ex, e.f->mr->rkey, at(&e, TARGET));
    ibv_wr_set_sge(e.ex, e.f->mr->lkey, at(&e, SOURCE), BYTES);
    albdv_wr_set_level(e.dv, ALBDV_VISIBLE);
    e.ex->wr_id = 2;
    ibv_wr_rdma_write(e.ex, e.f->mr->rkey, at(&e, SECOND));
    ibv_wr_set_sge(e.ex, e.f->mr->lkey, at(&e, SOURCE), BYTES);
    albdv_wr_set_stages(e.dv);
    e.ex->wr_id = 3;
    ibv_wr_rdma_write(e.ex, e.f->mr->rkey, at(&e, SECOND));
    ibv_wr_set_sge(e.ex, e.f->mr->lkey, at(&e, SOURCE), BYTES);
    assert_int_equal(ibv_wr_complete(e.ex), 0);
    struct ibv_wc visible = expect(&e, 1, IBV_WC_SUCCESS, ALBDV_OK);
    assert_true(is_written(&e, TARGET));
    struct ibv_wc staged = expect(&e, 2, IBV_WC_SUCCESS, ALBDV_OK);
    struct ibv_wc plain = expect(&e, 3, IBV_WC_SUCCESS, ALBDV_OK);
    assert_int_equal(albdv_wc_number(&plain), 0);
    assert_int_equal(albdv_wc_stages(e.dv, &plain, &stages, sizeof(stages)), EINVAL);
    assert_int_equal(albdv_wc_stages(e.dv, &staged, &stages, sizeof(stages)), 0);
    assert_true(stages.submitted <= stages.transmitted && stages.transmitted <= stages.delivered);
    assert_true(stages.delivered < ALBDV_TIME_NEVER);
    assert_int_equal(albdv_wc_stages(e.dv, &visible, &stages, sizeof(stages)), 0);
    assert_true(stages.remote_placed <= stages.visible && stages.visible < ALBDV_TIME_NEVER);
    tear_down(&e);
}

static void number__is_read_from_an_extended_queue(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq_init_attr_ex cq_init = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(f->context, &cq_init);
    assert_non_null(cq);
    struct ibv_qp_init_attr init = fixture_qp_init(f, IBV_QPT_RC);
    init.send_cq = ibv_cq_ex_to_cq(cq);
    struct ends e = {.f = f, .initiator = ibv_create_qp(f->pd, &init), .target = fixture_qp(f, IBV_QPT_RC)};
    const struct albdv_qp_attr attr = {.in_flight_max = 4};
    e.dv = albdv_extend_qp(e.initiator, &attr);
    assert_non_null(e.dv);
    e.ex = ibv_qp_to_qp_ex(e.initiator);
    fixture_connect(e.initiator, e.target);
    memset(f->memory + SOURCE, 0x77, BYTES);
    begin(&e, 1, ALBDV_COMMITTED, 0);
    add(&e, TARGET, BYTES);
    uint64_t number = end(&e);
    struct ibv_poll_cq_attr poll_attr = {0};
    while (ibv_start_poll(cq, &poll_attr) == ENOENT)
        ;
    assert_int_equal(cq->status, IBV_WC_SUCCESS);
    assert_int_equal(albdv_wc_read_number(cq), number);
    ibv_end_poll(cq);
    assert_int_equal(query(&e, number).state, ALBDV_TXN_COMMITTED);
    tear_down(&e);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

// ---- programs that know nothing of it -------------------------------------------------------------------------------

static void completions__mean_more(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    fixture_connect(a, b);
    memset(f->memory, 3, BYTES);
    fixture_post_recv(f, b, 5, 8192, BYTES);
    fixture_post_send(f, a, 1, 0, BYTES);
    struct ibv_wc wcs[2];
    for (int i = 0; i < 2; i++)
        wcs[i] = fixture_wait(f->cq);
    const struct ibv_wc *sent = &wcs[wcs[0].wr_id != 1];
    assert_int_equal(sent->status, IBV_WC_SUCCESS);
    assert_int_equal(sent->opcode, IBV_WC_SEND);
    assert_int_equal(albdv_wc_number(sent), 1); // the target was asked
    struct albdv_qp_ex *dv = albdv_extend_qp(a, NULL);
    struct albdv_stages stages;
    assert_non_null(dv);
    assert_int_equal(albdv_wc_stages(dv, sent, &stages, sizeof(stages)), 0);
    assert_true(stages.visible < ALBDV_TIME_NEVER);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

// Its numbers are the option's, whatever it asks for: but nonsense is nonsense.
static void extend__range_of_what_has_numbers_already(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    struct albdv_qp_attr attr = {.in_flight_max = 16385};
    assert_null(albdv_extend_qp(qp, &attr));
    assert_int_equal(errno, EINVAL);
    attr.in_flight_max = 0;
    assert_null(albdv_extend_qp(qp, &attr));
    assert_int_equal(errno, EINVAL);
    attr.in_flight_max = 16384;
    assert_non_null(albdv_extend_qp(qp, &attr));
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

// ---- memory that goes wrong (copy=100%) -----------------------------------------------------------------------------

static void write_to(struct ends *e, uint64_t wr_id, const struct ibv_mr *mr)
{
    const struct ibv_sge sge = fixture_sge(e->f, SOURCE, BYTES);
    begin(e, wr_id, ALBDV_COMMITTED, 0);
    albdv_wr_txn_write(e->dv, mr->rkey, (uintptr_t)mr->addr);
    ibv_wr_set_sge_list(e->ex, 1, &sge);
}

static void txn__poisons_what_stays_wrong(void **state)
{
    static _Alignas(4096) uint8_t memory[BYTES];
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct albdv_read read;
    struct ends e;
    set_up(&e, *state);
    struct ibv_mr *mr = ibv_reg_mr(e.f->pd, memory, sizeof(memory), access);
    assert_non_null(mr);
    struct albdv_region *region = albdv_create_region(mr, NULL);
    assert_non_null(region);
    assert_int_equal(albdv_read_begin(region, memory, BYTES, &read), 0);
    write_to(&e, 1, mr);
    uint64_t number = end(&e);
    expect(&e, 1, IBV_WC_REM_OP_ERR, ALBDV_COPY);
    assert_int_equal(query(&e, number).state, ALBDV_TXN_CORRUPT);
    assert_true(albdv_read_retry(&read)); // a reader learns it at its end, new readers and peers are kept out
    assert_true(albdv_region_is_poisoned(region));
    assert_true(albdv_read_begin(region, memory, BYTES, &read));
    write_to(&e, 2, mr);
    end(&e);
    expect(&e, 2, IBV_WC_REM_ABORT_ERR, ALBDV_ACCESS);
    assert_int_equal(ibv_dereg_mr(mr), 0); // until its program has put it right
    mr = ibv_reg_mr(e.f->pd, memory, sizeof(memory), access);
    assert_non_null(mr);
    region = albdv_create_region(mr, NULL);
    assert_non_null(region);
    assert_false(albdv_region_is_poisoned(region));
    assert_int_equal(albdv_read_begin(region, memory, BYTES, &read), 0);
    assert_int_equal(albdv_read_retry(&read), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    tear_down(&e);
}

int main(void)
{
    const struct CMUnitTest albedo_tests[] = {
        FIXTURE_TEST(txn__commits_all_of_it),
        FIXTURE_TEST(txn__of_inline_data),
        FIXTURE_TEST(txn__of_more_inline_data_than_there_is_room_for),
        FIXTURE_TEST(txn__is_flushed_once),
        FIXTURE_TEST(txn__in_place),
        FIXTURE_TEST(txn__reflected_comes_before_it_is_exposed),
        FIXTURE_TEST(txn__held_and_aborted),
        FIXTURE_TEST(txn__is_told_to_commit_what_is_not_held),
        FIXTURE_TEST(txn__preconditions),
        FIXTURE_TEST(txn__of_a_bad_key),
        FIXTURE_TEST(txn__lease_and_deadline),
        FIXTURE_TEST(txn__of_another_queue_pair_is_reconciled),
        FIXTURE_TEST(txn__nonsense),
        FIXTURE_TEST(query__of_another_size),
        FIXTURE_TEST(message__visible_and_with_stages),
        FIXTURE_TEST(number__is_read_from_an_extended_queue),
    };
    const struct CMUnitTest raised_tests[] = {FIXTURE_TEST(completions__mean_more),
                                              FIXTURE_TEST(extend__range_of_what_has_numbers_already)};
    const struct CMUnitTest corrupted_tests[] = {FIXTURE_TEST(txn__poisons_what_stays_wrong)};
    setenv("ALBEDO_DEVICES", "albedo0", 1);
    int failed = cmocka_run_group_tests_name("txn albedo0", albedo_tests, NULL, NULL);
    setenv("ALBEDO_COMPLETIONS", "visible", 1);
    failed += cmocka_run_group_tests_name("txn raised", raised_tests, NULL, NULL);
    unsetenv("ALBEDO_COMPLETIONS");
    setenv("ALBEDO_FAULTS", "copy=100%", 1);
    return failed + cmocka_run_group_tests_name("txn corrupted", corrupted_tests, NULL, NULL);
}
