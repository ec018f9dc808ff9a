// SPDX-License-Identifier: BSD-2-Clause
// The life of a queue pair of csa: attributes, states, and what it leaves behind.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define MS ALB_NS_PER_MS

static int move(struct csa_pair *c, int side, enum alb_qp_state state)
{
    struct alb_qp_attr attr = {.state = state};
    return alb_qp_modify(c->qps[side], &attr, ALB_QP_STATE, c->pair->now);
}

// Another address of the peer, while draining.
static int move_peer(struct csa_pair *c, int side)
{
    struct alb_qp_attr attr = pair_attr(c->pair, side, c->qps[!side]);
    attr.av.peer = alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, 50});
    return alb_qp_modify(c->qps[side], &attr, ALB_QP_AV, c->pair->now);
}

// ---- attributes -----------------------------------------------------------------------------------------------------

static void modify__connects_to_the_engine_of_the_slot(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qp = pair_qp(c->pair, 0, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(c->pair, 0, c->qps[1]);
    attr.dest_qpn = 0x070011;
    attr.av.path_payload_max = 1003;
    assert_int_equal(pair_move(c->pair, qp, ALB_QPS_RTR, &attr), 0);
    const struct alb_csa *csa = alb_csa_of(qp);
    assert_int_equal(csa->assoc->slot, 7);
    assert_int_equal(csa->assoc->payload_max, 1000);
    assert_int_equal(csa->assoc->refs, 1);
    assert_int_equal(c->engines[0]->csa->assoc_count, 2);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(c->engines[0]->csa->assoc_count, 1);
}

static void modify__the_table_of_associations_is_full(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *qp = NULL;
    for (uint32_t i = 1; i <= 8; i++) {
        qp = pair_qp(c->pair, 0, ALB_QPT_RC);
        struct alb_qp_attr attr = pair_attr(c->pair, 0, c->qps[1]);
        attr.dest_qpn = i << 16 | 0x11;
        assert_int_equal(pair_move(c->pair, qp, ALB_QPS_RTR, &attr), i < 8 ? 0 : ENOMEM);
    }
    assert_int_equal(alb_qp_current_state(qp), ALB_QPS_INIT);
    assert_int_equal(qp->attr.dest_qpn, 0);
}

static void modify__the_address_stays_while_something_is_under_way(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    assert_int_equal(move(c, 0, ALB_QPS_SQD), 0);
    assert_int_equal(move_peer(c, 0), EBUSY);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(move_peer(c, 0), 0);
    assert_true(alb_addr_equals(&c->csa[0]->assoc->peer, &c->qps[0]->attr.av.peer));
}

// With the address stays what was to be changed with it.
static void modify__that_fails_changes_no_capacity(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp_attr attr = pair_attr(c->pair, 0, c->qps[1]);
    const struct alb_csa_answer *answers = c->csa[0]->answers;
    uint32_t capacity = c->csa[0]->answer_capacity;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    assert_int_equal(move(c, 0, ALB_QPS_SQD), 0);
    attr.av.peer = alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, 50});
    attr.max_dest_rd_atomic = 1;
    const uint32_t mask = ALB_QP_AV | ALB_QP_MAX_DEST_RD_ATOMIC;
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, mask, c->pair->now), EBUSY);
    assert_ptr_equal(c->csa[0]->answers, answers);
    assert_int_equal(c->csa[0]->answer_capacity, capacity);
    pair_settle(c->pair);
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, mask, c->pair->now), 0);
    assert_int_equal(c->csa[0]->answer_capacity, 1);
}

static void modify__the_address_stays_while_an_answer_is_owed(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1); // the answer is in flight
    assert_int_equal(move(c, 1, ALB_QPS_SQD), 0);
    assert_int_equal(move_peer(c, 1), EBUSY);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

// What waits for its turn, and what is missing, stand in lists of the association that is left.
static void modify__leaves_nothing_with_the_former_address(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 3, 0, 8, 8, ALB_CSA_LAST | ALB_CSA_REPORT_NOW);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    assert_true(alb_stream_in_misses(&c->csa[1]->in_requests));
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 8), 0);
    alb_engine_bells(c->engines[1], c->pair->now); // in line, and not sent
    assert_int_equal(move(c, 1, ALB_QPS_SQD), 0);
    assert_int_equal(move_peer(c, 1), 0);
    assert_int_equal(c->engines[1]->csa->assoc_count, 1);
    assert_int_equal(move(c, 1, ALB_QPS_RTS), 0);
    pair_send(c->pair, 1);
    pair_pass(c->pair, 100 * MS);
}

// Epochs are of two addresses: those by which the peer was known say nothing of it at its new one.
static void modify__goes_on_between_other_addresses(void **state)
{
    struct csa_pair *c = *state;
    for (int side = 0; side < 2; side++) {
        c->pair->hosts[side].addr = alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, (uint8_t)(50 + side)});
        assert_int_equal(move(c, side, ALB_QPS_SQD), 0);
    }
    for (int side = 0; side < 2; side++) {
        struct alb_qp_attr attr = pair_attr(c->pair, side, c->qps[!side]);
        assert_int_equal(alb_qp_modify(c->qps[side], &attr, ALB_QP_AV, c->pair->now), 0);
        assert_int_equal(move(c, side, ALB_QPS_RTS), 0);
    }
    for (int side = 0; side < 2; side++) {
        assert_int_equal(pair_ask(c->pair, c->qps[side], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 8), 0);
        pair_settle(c->pair); // the first time there is a cookie, by which it goes again
        pair_pass(c->pair, 10 * MS);
        pair_settle(c->pair);
        csa_pair_expect(c, side, 1, ALB_WC_SUCCESS);
        assert_int_equal(csa_pair_drops(c, side, ALB_DROP_BAD_EPOCH), 0);
    }
}

static void modify__the_same_address_changes_nothing(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 1, 0, 8, 8, ALB_CSA_LAST | ALB_CSA_REPORT_NOW);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    struct alb_assoc *assoc = c->csa[1]->assoc;
    assert_int_equal(move(c, 1, ALB_QPS_SQD), 0);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, c->qps[0]);
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_AV, c->pair->now), 0);
    assert_ptr_equal(c->csa[1]->assoc, assoc);
    assert_int_equal(assoc->refs, 1);
    assert_int_equal(pair_send(c->pair, 1), 1); // the report is not forgotten
}

// ---- states ---------------------------------------------------------------------------------------------------------

static void reset__in_the_middle_of_everything(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 5 * CSA_PAIR_SEGMENT);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 2, ALB_SEND_SIGNALED, 5 * CSA_PAIR_SEGMENT);
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_READ, 3, ALB_SEND_SIGNALED, 0, 5 * CSA_PAIR_SEGMENT), 0);
    pair_send(c->pair, 0);
    pair_send(c->pair, 1);
    pair_lose(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_deliver_all(c->pair, 1);
    pair_send(c->pair, 0);
    struct alb_assoc_live *live = csa_pair_live(c, 0);
    assert_true(live->inflight_bytes > 0);
    struct alb_assoc *assoc = c->csa[0]->assoc;
    assoc->refs++; // stays, to be looked at
    assert_int_equal(move(c, 0, ALB_QPS_RESET), 0);
    assert_int_equal(live->inflight_bytes, 0);
    assert_int_equal(alb_path_load(live->paths, 0)->inflight_bytes, 0);
    assert_true(alb_list_is_empty(&live->ready) && alb_list_is_empty(&live->waiting));
    assert_true(alb_list_is_empty(&live->reports) && alb_list_is_empty(&live->open));
    alb_assoc_put(c->engines[0], assoc);
    assert_int_equal(alb_buddy_used(&c->engines[0]->csa->pool), 0);
    assert_int_equal(c->engines[0]->csa->assoc_count, 0);
    csa_pair_expect_none(c, 0);
}

static void error__flushes_and_frees_the_window(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 5 * CSA_PAIR_SEGMENT);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 2, 0, 8);
    pair_send(c->pair, 0);
    assert_true(csa_pair_live(c, 0)->inflight_bytes > 0);
    assert_int_equal(move(c, 0, ALB_QPS_ERR), 0);
    assert_int_equal(csa_pair_live(c, 0)->inflight_bytes, 0);
    assert_int_equal(alb_path_load(csa_pair_live(c, 0)->paths, 0)->inflight_bytes, 0);
    csa_pair_expect(c, 0, 1, ALB_WC_WR_FLUSH_ERR);
    csa_pair_expect(c, 0, 2, ALB_WC_WR_FLUSH_ERR);
    pair_pass(c->pair, 1000 * MS);
    csa_pair_expect_none(c, 0);
}

static void drained__when_all_that_was_started_has_ended(void **state)
{
    struct csa_pair *c = *state;
    struct alb_event event;
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD, .en_sqd_async_notify = true};
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, 0, 8);
    csa_pair_ask(c, ALB_WR_RDMA_READ, 2, 0, 3000);
    pair_send(c->pair, 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE | ALB_QP_EN_SQD_ASYNC_NOTIFY, c->pair->now), 0);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 3, ALB_SEND_SIGNALED, 8); // waits for RTS
    assert_false(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    assert_false(alb_qp_is_quiet(c->qps[0]));
    pair_settle(c->pair);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    csa_pair_expect_none(c, 0);
    assert_int_equal(move(c, 0, ALB_QPS_RTS), 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 3, ALB_WC_SUCCESS);
    assert_true(alb_qp_is_quiet(c->qps[0]));
}

static void query__tells_where_the_streams_are(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp_attr attr;
    struct alb_qp_init init;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, 0, 3 * CSA_PAIR_SEGMENT);
    pair_settle(c->pair);
    alb_qp_query(c->qps[0], &attr, &init);
    assert_int_equal(attr.sq_psn, alb_psn_add(csa_pair_psn(0), 4));
    alb_qp_query(c->qps[1], &attr, &init);
    assert_int_equal(attr.rq_psn, alb_psn_add(csa_pair_psn(0), 4));
}

// A queue pair that ends reports three times what it holds, since it cannot be asked later.
// What is missing is watched again once what waited for a receive has been taken.
static void receive__that_was_waited_for_leaves_what_is_missing_watched(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_stream_in *in = &c->csa[1]->in_requests;
    for (uint32_t i = 0; i < 2; i++) { // between them one is missing
        struct alb_csa_segment segment = csa_pair_write(c, 0, 1 + 2 * (int32_t)i, 0, 8, 8, ALB_CSA_LAST);
        segment.op = i == 0 ? ALB_CSA_SEND : ALB_CSA_WRITE;
        csa_pair_arrive_segment(c, 0, &segment, 1);
    }
    assert_true(in->waits_rnr);
    assert_false(alb_list_is_linked(&in->open_link));
    assert_int_equal(pair_receive(c->pair, c->qps[1], 7, 64, 8), 0);
    alb_engine_bells(c->engines[1], c->pair->now);
    csa_pair_expect(c, 1, 7, ALB_WC_SUCCESS);
    assert_true(alb_stream_in_misses(in));
    assert_true(alb_list_is_linked(&in->open_link));
    assert_true(alb_timer_is_armed(&in->tail_timer.timer));
}

static void farewell__is_said_three_times(void **state)
{
    struct csa_pair *c = *state;
    pair_settle(c->pair);
    alb_qp_farewell(c->qps[1]);
    assert_false(alb_qp_is_quiet(c->qps[1]));
    assert_int_equal(pair_send(c->pair, 1), 3);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, NULL), 3);
    assert_true(alb_qp_is_quiet(c->qps[1]));
    pair_settle(c->pair);
}

static void memory__runs_out_anywhere(void **state)
{
    struct csa_pair *c = *state;
    struct pair_host *host = &c->pair->hosts[0];
    struct alb_qp_init init = {.type = ALB_QPT_RC, .send_cq = host->cq, .recv_cq = host->cq, .cap = {.send_wr_max = 4}};
    struct alb_qp *qp;
    size_t held = host->bytes_held;
    for (uint64_t n = 1;; n++) {
        host->refused_from = n;
        int error = alb_qp_create(host->pd, &init, &qp);
        host->refused_from = 0;
        if (!error)
            break;
        assert_int_equal(error, ENOMEM);
        assert_int_equal(host->bytes_held, held);
        assert_true(n < 20);
    }
    struct alb_qp_attr attr = pair_attr(c->pair, 0, c->qps[1]);
    host->refused_from = 1; // the ring of answers
    assert_int_equal(pair_move(c->pair, qp, ALB_QPS_RTR, &attr), ENOMEM);
    host->refused_from = 0;
    assert_int_equal(alb_qp_current_state(qp), ALB_QPS_INIT);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(host->bytes_held, held);
}

// What it needs in flight is taken when there is something to send, and not when it might be.
static void connect__wakes_no_association(void **state)
{
    struct csa_pair *c = *state;
    for (int side = 0; side < 2; side++) {
        assert_int_equal(alb_qp_current_state(c->qps[side]), ALB_QPS_RTS);
        assert_null(csa_pair_live(c, side));
        assert_int_equal(alb_buddy_used(&c->engines[side]->csa->pool), 0);
        assert_true(alb_engine_deadline(c->engines[side]) == ALB_TIME_NEVER);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(connect__wakes_no_association),
        CSA_GREETED_TEST(modify__connects_to_the_engine_of_the_slot),
        CSA_GREETED_TEST(modify__the_table_of_associations_is_full),
        CSA_GREETED_TEST(modify__the_address_stays_while_something_is_under_way),
        CSA_GREETED_TEST(modify__that_fails_changes_no_capacity),
        CSA_GREETED_TEST(modify__the_address_stays_while_an_answer_is_owed),
        CSA_GREETED_TEST(modify__leaves_nothing_with_the_former_address),
        CSA_GREETED_TEST(modify__goes_on_between_other_addresses),
        CSA_GREETED_TEST(modify__the_same_address_changes_nothing),
        CSA_GREETED_TEST(reset__in_the_middle_of_everything),
        CSA_GREETED_TEST(error__flushes_and_frees_the_window),
        CSA_GREETED_TEST(drained__when_all_that_was_started_has_ended),
        CSA_GREETED_TEST(query__tells_where_the_streams_are),
        CSA_GREETED_TEST(receive__that_was_waited_for_leaves_what_is_missing_watched),
        CSA_GREETED_TEST(farewell__is_said_three_times),
        CSA_GREETED_TEST(memory__runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
