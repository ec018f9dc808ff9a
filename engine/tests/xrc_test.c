// SPDX-License-Identifier: BSD-2-Clause
// XRC from end to end: side 0 asks by an XRC_SEND queue pair, side 1 executes by an XRC_RECV one, with two shared
// receive queues of one domain (in protection domains of their own) and one of another domain.
#include "engine/xrc.h"

#include "engine/tests/pair.h"

#include "base/tests/test.h"

#include <stdlib.h>

enum {
    MTU = 1024,
    QUEUES = 3,
    FOREIGN = 2, // the queue of the other domain
};

struct context {
    struct pair *pair;
    struct alb_qp *sender, *receiver;
    struct alb_xrcd *xrcds[2];
    struct alb_pd *pds[QUEUES];
    struct alb_cq *cqs[QUEUES];
    struct alb_srq *srqs[QUEUES];
    struct alb_region *mrs[QUEUES]; // all of side 1's memory, each in the protection domain of its queue
};

static void make_queue(struct context *c, int i)
{
    struct pair_host *host = &c->pair->hosts[1];
    struct alb_xrcd *xrcd = c->xrcds[i == FOREIGN];
    assert_int_equal(alb_pd_create(host->engine, &c->pds[i]), 0);
    assert_int_equal(alb_cq_create(host->engine, 16, NULL, &c->cqs[i]), 0);
    assert_int_equal(alb_srq_create_xrc(c->pds[i], xrcd, c->cqs[i], 8, 2, 0, c, &c->srqs[i]), 0);
    assert_int_equal(
        alb_mr_create(c->pds[i], host->memory, PAIR_MEMORY_BYTES, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &c->mrs[i]),
        0);
}

static struct alb_qp *make_receiver(struct context *c)
{
    struct alb_qp_init init = {.type = ALB_QPT_XRC_RECV, .xrcd = c->xrcds[0]};
    return pair_qp_with(c->pair, 1, &init);
}

static void connect(struct context *c, struct alb_qp *sender, struct alb_qp *receiver)
{
    struct alb_qp_attr to = pair_attr(c->pair, 0, receiver), from = pair_attr(c->pair, 1, sender);
    assert_int_equal(pair_move(c->pair, sender, ALB_QPS_RTS, &to), 0);
    assert_int_equal(pair_move(c->pair, receiver, ALB_QPS_RTS, &from), 0);
}

static int setup(void **state)
{
    struct context *c = calloc(1, sizeof(*c));
    c->pair = pair_new(NULL);
    pair_fill(c->pair);
    for (int i = 0; i < 2; i++)
        assert_int_equal(alb_xrcd_create(c->pair->hosts[1].engine, &c->xrcds[i]), 0);
    for (int i = 0; i < QUEUES; i++)
        make_queue(c, i);
    c->sender = pair_qp(c->pair, 0, ALB_QPT_XRC_SEND);
    c->receiver = make_receiver(c);
    connect(c, c->sender, c->receiver);
    *state = c;
    return 0;
}

static void drop_queue(struct context *c, int i)
{
    if (c->srqs[i])
        assert_int_equal(alb_srq_destroy(c->srqs[i]), 0);
    c->srqs[i] = NULL;
}

static int teardown(void **state)
{
    struct context *c = *state;
    struct alb_engine *engine = c->pair->hosts[1].engine;
    for (uint32_t i = 0; i < engine->config.qp_max; i++)
        if (engine->qps[i])
            alb_qp_destroy(engine->qps[i]);
    for (int i = 0; i < QUEUES; i++) {
        drop_queue(c, i);
        assert_int_equal(alb_mr_destroy(c->mrs[i]), 0);
        assert_int_equal(alb_cq_destroy(c->cqs[i]), 0);
        assert_int_equal(alb_pd_destroy(c->pds[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(alb_xrcd_destroy(c->xrcds[i]), 0);
    pair_free(c->pair);
    free(c);
    return 0;
}

static uint32_t number(const struct context *c, int queue)
{
    return alb_srq_number(c->srqs[queue]);
}

static void receive(struct context *c, int queue, uint64_t wr_id, uint32_t offset, uint32_t length)
{
    struct alb_sge sge = {pair_va(c->pair, 1, offset), length, alb_region_key(c->mrs[queue])};
    assert_int_equal(alb_srq_post(c->srqs[queue], wr_id, &sge, 1), 0);
}

// As pair_ask, to a shared receive queue named by number, with the keys of queue's protection domain.
static int ask(struct context *c, enum alb_wr_opcode opcode, int queue, uint32_t srqn, uint32_t offset, uint32_t length)
{
    struct alb_sge sge = pair_sge(c->pair, 0, offset, length);
    struct alb_send_wr wr = {
        .wr_id = 77,
        .opcode = opcode,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .imm_data = 0x1234,
        .remote_addr = pair_va(c->pair, 1, offset),
        .rkey = alb_region_key(c->mrs[queue]),
        .compare_add = 1,
        .swap = 2,
        .remote_srqn = srqn,
    };
    return pair_post(c->pair, c->sender, &wr);
}

static void expect_sent(struct context *c, enum alb_wc_status status)
{
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 77);
    assert_int_equal(wc.status, status);
}

static void expect_received(struct context *c, int queue, uint64_t wr_id, enum alb_wc_status status, struct alb_wc *wc)
{
    const struct alb_wc *oldest = alb_cq_peek(c->cqs[queue]);
    assert_non_null(oldest);
    *wc = *oldest;
    alb_cq_pop(c->cqs[queue]);
    assert_int_equal(wc->wr_id, wr_id);
    assert_int_equal(wc->status, status);
    assert_int_equal(wc->qpn, alb_qp_number(c->receiver));
    assert_null(wc->qp);
}

static bool is_same(const struct context *c, uint32_t to, uint32_t from, uint32_t length)
{
    return memcmp(c->pair->hosts[1].memory + to, c->pair->hosts[0].memory + from, length) == 0;
}

// A request as it stands on the wire, of our own making.
static struct alb_roce request(const struct context *c, uint8_t opcode, int32_t psn_offset, uint32_t srqn)
{
    return (struct alb_roce){
        .opcode = opcode,
        .pkey = 0xffff,
        .dest_qpn = alb_qp_number(c->receiver),
        .psn = alb_psn_add(PAIR_PSN, psn_offset),
        .xrc_srqn = srqn,
        .va = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->mrs[0]),
        .length = 8,
    };
}

static const uint8_t payload[MTU] = {1, 2, 3, 4};

static void expect_nak(struct context *c, int32_t psn_offset, enum alb_nak nak)
{
    pair_send(c->pair, 1);
    struct pair_packet *packet = pair_peek(c->pair, 1, pair_count(c->pair, 1) - 1);
    assert_non_null(packet);
    assert_int_equal(packet->roce.opcode, ALB_XRC_ACK);
    assert_int_equal(packet->roce.psn, alb_psn_add(PAIR_PSN, psn_offset));
    assert_int_equal(packet->roce.syndrome, ALB_AETH_SYNDROME_NAK(nak));
}

// ---- domains and numbers --------------------------------------------------------------------------------------------

static void alb_xrcd__belongings_keep_it(void **state)
{
    struct context *c = *state;
    struct alb_qp *other = make_receiver(c);
    assert_int_equal(alb_xrcd_destroy(c->xrcds[0]), EBUSY);
    alb_qp_destroy(c->receiver);
    alb_qp_destroy(other);
    c->receiver = NULL;
    assert_int_equal(alb_xrcd_destroy(c->xrcds[0]), EBUSY);
    assert_int_equal(alb_cq_destroy(c->cqs[0]), EBUSY);
    assert_int_equal(alb_pd_destroy(c->pds[0]), EBUSY);
    drop_queue(c, 0);
    drop_queue(c, 1);
    assert_int_equal(alb_xrcd_destroy(c->xrcds[0]), 0);
    assert_int_equal(alb_xrcd_create(c->pair->hosts[1].engine, &c->xrcds[0]), 0);
}

static void alb_xrcd_create__limits(void **state)
{
    struct context *c = *state;
    struct pair_host *host = &c->pair->hosts[1];
    struct alb_xrcd *xrcd;
    host->refused_from = 1;
    assert_int_equal(alb_xrcd_create(host->engine, &xrcd), ENOMEM);
    host->refused_from = 0;
    host->engine->config.xrcd_max = 2;
    assert_int_equal(alb_xrcd_create(host->engine, &xrcd), ENOMEM);
}

static void alb_srq_create_xrc__numbers(void **state)
{
    struct context *c = *state;
    struct alb_srq *plain;
    assert_int_equal(alb_srq_create(c->pds[0], 4, 1, 0, NULL, &plain), 0);
    assert_int_equal(alb_srq_number(plain), 0);
    assert_int_equal(alb_srq_destroy(plain), 0);
    for (int i = 0; i < QUEUES; i++) {
        assert_int_not_equal(number(c, i) & 0xffff, 0);
        assert_int_equal(number(c, i) >> 16, c->pair->hosts[1].engine->config.slot);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(number(c, i), number(c, k));
    }
}

static void alb_srq_create_xrc__out_of_memory_changes_nothing(void **state)
{
    struct context *c = *state;
    struct pair_host *host = &c->pair->hosts[0]; // has no table of numbers yet
    struct alb_xrcd *xrcd;
    struct alb_srq *srq;
    assert_int_equal(alb_xrcd_create(host->engine, &xrcd), 0);
    size_t held = host->bytes_held;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        host->refused_from = nth;
        assert_int_equal(alb_srq_create_xrc(host->pd, xrcd, host->cq, 4, 1, 0, NULL, &srq), ENOMEM);
        host->refused_from = 0;
        assert_int_equal(host->bytes_held, held);
    }
    assert_int_equal(alb_srq_create_xrc(host->pd, xrcd, host->cq, 0, 1, 0, NULL, &srq), EINVAL);
    assert_int_equal(host->bytes_held, held);
    assert_int_equal(alb_xrcd_destroy(xrcd), 0);
}

static void few_queues(struct alb_engine_config *config)
{
    config->srq_max = 3;
}

static void alb_srq_create_xrc__every_number_is_given_once(void **state)
{
    struct pair *pair = pair_new(few_queues);
    struct pair_host *host = &pair->hosts[0];
    struct alb_xrcd *xrcd;
    struct alb_srq *srqs[4];
    assert_int_equal(alb_xrcd_create(host->engine, &xrcd), 0);
    uint32_t seen = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(alb_srq_create_xrc(host->pd, xrcd, host->cq, 4, 1, 0, NULL, &srqs[i]), 0);
        seen |= 1u << alb_srq_number(srqs[i]);
    }
    assert_int_equal(seen, 1u << 1 | 1u << 2 | 1u << 3);
    assert_int_equal(alb_srq_create_xrc(host->pd, xrcd, host->cq, 4, 1, 0, NULL, &srqs[3]), ENOMEM);
    for (int i = 0; i < 3; i++)
        assert_int_equal(alb_srq_destroy(srqs[i]), 0);
    assert_int_equal(alb_xrcd_destroy(xrcd), 0);
    pair_free(pair);
}

// ---- queue pairs ----------------------------------------------------------------------------------------------------

static void alb_qp_create__halves(void **state)
{
    struct context *c = *state;
    struct alb_qp *qp;
    struct alb_qp_init init = {.type = ALB_QPT_XRC_RECV};
    assert_int_equal(alb_qp_create(NULL, &init, &qp), EINVAL);
    assert_int_equal(alb_qp_create(c->pds[0], &init, &qp), EINVAL);
    init.type = ALB_QPT_XRC_SEND;
    assert_int_equal(alb_qp_create(c->pds[0], &init, &qp), EINVAL); // no completion queue
    assert_int_equal(alb_qp_create(NULL, &init, &qp), EINVAL);
    init = (struct alb_qp_init){
        .type = ALB_QPT_RC, .send_cq = c->cqs[0], .recv_cq = c->cqs[0], .srq = c->srqs[0]}; // which peers name
    assert_int_equal(alb_qp_create(c->pds[0], &init, &qp), EINVAL);

    struct alb_qp_attr attr;
    alb_qp_query(c->receiver, &attr, &init);
    assert_int_equal(init.type, ALB_QPT_XRC_RECV);
    assert_ptr_equal(init.xrcd, c->xrcds[0]);
    assert_null(init.send_cq);
    assert_int_equal(init.cap.send_wr_max, 0);
    alb_qp_query(c->sender, &attr, &init);
    assert_null(init.recv_cq);
    assert_int_equal(init.cap.recv_wr_max, 0);
    assert_int_equal(init.cap.send_wr_max, 16);
}

static void alb_qp_post__each_half_takes_its_own(void **state)
{
    struct context *c = *state;
    struct alb_sge sge = pair_sge(c->pair, 1, 0, 8);
    struct alb_send_wr wr = {.opcode = ALB_WR_SEND};
    bool bell;
    assert_int_equal(alb_qp_send_stage(c->receiver, &wr), EINVAL);
    assert_int_equal(alb_qp_recv_post(c->receiver, 1, &sge, 1, &bell), EINVAL);
    assert_int_equal(alb_qp_recv_post(c->sender, 1, &sge, 1, &bell), EINVAL);
    assert_int_equal(ask(c, ALB_WR_ATOMIC_WRITE, 0, number(c, 0), 0, 8), EINVAL);
}

static void alb_qp_destroy__receives_stay(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 0, 5, 0, 100);
    assert_int_equal(ask(c, ALB_WR_SEND, 0, number(c, 0), 500, 10), 0);
    pair_settle(c->pair);
    alb_qpn qpn = alb_qp_number(c->receiver);
    alb_qp_destroy(c->receiver);
    const struct alb_wc *oldest = alb_cq_peek(c->cqs[0]);
    assert_non_null(oldest);
    wc = *oldest;
    assert_int_equal(wc.qpn, qpn);
    c->receiver = NULL;
}

// ---- messages -------------------------------------------------------------------------------------------------------

static void send__goes_to_the_queue_that_it_names(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 0, 5, 0, 3000);
    receive(c, 1, 6, 8192, 3000);
    assert_int_equal(ask(c, ALB_WR_SEND, 0, number(c, 1), 20000, 2500), 0);
    assert_int_equal(ask(c, ALB_WR_SEND_WITH_IMM, 0, number(c, 0), 30000, 100), 0);
    pair_settle(c->pair);
    expect_sent(c, ALB_WC_SUCCESS);
    expect_sent(c, ALB_WC_SUCCESS);
    expect_received(c, 1, 6, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.byte_len, 2500);
    assert_int_equal(wc.src_qpn, alb_qp_number(c->sender));
    assert_true(is_same(c, 8192, 20000, 2500));
    expect_received(c, 0, 5, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.imm_data, 0x1234);
    assert_int_equal(wc.flags, ALB_WC_WITH_IMM);
    assert_true(is_same(c, 0, 30000, 100));
}

static void requests__are_executed_and_named_on_the_wire(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    uint64_t *word = (uint64_t *)(c->pair->hosts[1].memory + 65536);
    *word = 1;
    receive(c, 0, 5, 0, 0);
    assert_int_equal(ask(c, ALB_WR_RDMA_WRITE, 0, number(c, 0), 4096, 3000), 0);
    assert_int_equal(ask(c, ALB_WR_RDMA_WRITE_WITH_IMM, 0, number(c, 0), 8192, 100), 0);
    assert_int_equal(ask(c, ALB_WR_ATOMIC_CMP_AND_SWP, 0, number(c, 0), 65536, 8), 0);
    assert_int_equal(ask(c, ALB_WR_ATOMIC_FETCH_AND_ADD, 0, number(c, 0), 65536, 8), 0);
    assert_int_equal(ask(c, ALB_WR_RDMA_READ, 0, number(c, 0), 131072, 5000), 0);
    pair_send(c->pair, 0);
    assert_true(pair_count(c->pair, 0) >= 6);
    for (uint32_t i = 0; i < pair_count(c->pair, 0); i++) {
        const struct alb_roce *roce = &pair_peek(c->pair, 0, i)->roce;
        assert_int_equal(alb_opcode_info(roce->opcode)->service, ALB_SERVICE_XRC);
        assert_int_equal(roce->xrc_srqn, number(c, 0));
    }
    pair_settle(c->pair);
    for (int i = 0; i < 5; i++)
        expect_sent(c, ALB_WC_SUCCESS);
    expect_received(c, 0, 5, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.opcode, ALB_WC_RECV_RDMA_WITH_IMM);
    assert_true(is_same(c, 4096, 4096, 3000));
    assert_true(is_same(c, 8192, 8192, 100));
    assert_int_equal(*word, 3);
    assert_true(is_same(c, 131072, 131072, 5000));
}

static void requests__survive_loss(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 0, 5, 0, 5000);
    assert_int_equal(ask(c, ALB_WR_SEND, 0, number(c, 0), 20000, 5000), 0);
    assert_int_equal(ask(c, ALB_WR_RDMA_READ, 0, number(c, 0), 131072, 5000), 0);
    pair_send(c->pair, 0);
    pair_deliver(c->pair, 0);
    pair_lose(c->pair, 0);
    pair_settle(c->pair);
    pair_pass(c->pair, 100 * ALB_NS_PER_MS);
    pair_settle(c->pair);
    expect_sent(c, ALB_WC_SUCCESS);
    expect_sent(c, ALB_WC_SUCCESS);
    expect_received(c, 0, 5, ALB_WC_SUCCESS, &wc);
    assert_true(is_same(c, 0, 20000, 5000));
    assert_true(is_same(c, 131072, 131072, 5000));
}

static void read__that_comes_again_is_answered_again(void **state)
{
    struct context *c = *state;
    assert_int_equal(ask(c, ALB_WR_RDMA_READ, 0, number(c, 0), 131072, 3000), 0);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    while (pair_count(c->pair, 1) > 0)
        pair_lose(c->pair, 1);
    pair_pass(c->pair, 100 * ALB_NS_PER_MS);
    pair_settle(c->pair);
    expect_sent(c, ALB_WC_SUCCESS);
    assert_true(is_same(c, 131072, 131072, 3000));
}

static void send__waits_for_a_receive(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 1, 6, 0, 100); // of another queue
    assert_int_equal(ask(c, ALB_WR_SEND, 0, number(c, 0), 500, 10), 0);
    pair_settle(c->pair);
    assert_false(pair_poll(c->pair, 0, &wc));
    receive(c, 0, 5, 4096, 100);
    pair_pass(c->pair, 100 * ALB_NS_PER_MS);
    pair_settle(c->pair);
    expect_sent(c, ALB_WC_SUCCESS);
    expect_received(c, 0, 5, ALB_WC_SUCCESS, &wc);
    assert_null(alb_cq_peek(c->cqs[1]));
}

static void two_queue_pairs__share_a_queue(void **state)
{
    struct context *c = *state;
    struct alb_qp *first = c->sender, *second = pair_qp(c->pair, 0, ALB_QPT_XRC_SEND);
    struct alb_qp *receivers[2] = {c->receiver, make_receiver(c)};
    struct alb_wc wc;
    connect(c, second, receivers[1]);
    receive(c, 0, 5, 0, 100);
    receive(c, 0, 6, 4096, 100);
    assert_int_equal(ask(c, ALB_WR_SEND, 0, number(c, 0), 500, 10), 0);
    pair_settle(c->pair);
    c->sender = second;
    assert_int_equal(ask(c, ALB_WR_SEND, 0, number(c, 0), 600, 20), 0);
    pair_settle(c->pair);
    expect_received(c, 0, 5, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.src_qpn, alb_qp_number(first));
    c->receiver = receivers[1];
    expect_received(c, 0, 6, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.src_qpn, alb_qp_number(second));
}

// ---- refusals -------------------------------------------------------------------------------------------------------

static void expect_refused(struct context *c, uint32_t srqn)
{
    struct alb_event event;
    assert_int_equal(ask(c, ALB_WR_SEND, 0, srqn, 500, 10), 0);
    pair_settle(c->pair);
    expect_sent(c, ALB_WC_REM_INV_REQ_ERR);
    assert_int_equal(alb_qp_current_state(c->receiver), ALB_QPS_ERR);
    assert_int_equal(alb_qp_current_state(c->sender), ALB_QPS_ERR);
    assert_true(pair_event(c->pair, 1, ALB_EVENT_QP_REQ_ERR, &event));
    assert_ptr_equal(event.qp, c->receiver);
}

static void send__to_a_queue_of_another_domain(void **state)
{
    struct context *c = *state;
    receive(c, FOREIGN, 5, 0, 100);
    expect_refused(c, number(c, FOREIGN));
    assert_null(alb_cq_peek(c->cqs[FOREIGN]));
}

static void send__to_number_0(void **state)
{
    expect_refused(*state, 0);
}

static void send__to_a_number_beyond_the_table(void **state)
{
    expect_refused(*state, 0xffff);
}

static void send__to_a_number_of_another_process(void **state)
{
    struct context *c = *state;
    expect_refused(c, number(c, 0) ^ 0x10000);
}

static void send__without_any_queue_left(void **state)
{
    struct context *c = *state;
    uint32_t gone = number(c, 0);
    for (int i = 0; i < QUEUES; i++)
        drop_queue(c, i);
    expect_refused(c, gone);
}

static void write__with_a_key_of_another_protection_domain(void **state)
{
    struct context *c = *state;
    pair_fill(c->pair);
    assert_int_equal(ask(c, ALB_WR_RDMA_WRITE, 1, number(c, 1), 4096, 100), 0);
    pair_settle(c->pair);
    expect_sent(c, ALB_WC_SUCCESS);
    assert_true(is_same(c, 4096, 4096, 100));
    assert_int_equal(ask(c, ALB_WR_RDMA_WRITE, 0, number(c, 1), 8192, 100), 0);
    pair_settle(c->pair);
    expect_sent(c, ALB_WC_REM_ACCESS_ERR);
    assert_false(is_same(c, 8192, 8192, 100));
}

static void message__that_changes_its_queue(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 0, 5, 0, 3000);
    receive(c, 1, 6, 8192, 3000);
    struct alb_roce first = request(c, ALB_XRC_SEND_FIRST, 0, number(c, 0));
    struct alb_roce last = request(c, ALB_XRC_SEND_LAST, 1, number(c, 1));
    pair_inject(c->pair, 0, &first, payload, MTU);
    pair_inject(c->pair, 0, &last, payload, 8);
    expect_nak(c, 1, ALB_NAK_INVALID_REQUEST);
    expect_received(c, 0, 5, ALB_WC_REM_INV_REQ_ERR, &wc);
    assert_null(alb_cq_peek(c->cqs[1]));
}

static void message__whose_queue_goes(void **state)
{
    struct context *c = *state;
    receive(c, 0, 5, 0, 3000);
    uint32_t gone = number(c, 0);
    struct alb_roce first = request(c, ALB_XRC_SEND_FIRST, 0, gone);
    struct alb_roce last = request(c, ALB_XRC_SEND_LAST, 1, gone);
    pair_inject(c->pair, 0, &first, payload, MTU);
    drop_queue(c, 0);
    pair_inject(c->pair, 0, &last, payload, 8);
    expect_nak(c, 1, ALB_NAK_INVALID_REQUEST);
    assert_null(alb_cq_peek(c->cqs[0]));
}

static void message__whose_queue_goes_and_comes_again_by_the_same_number(void **state)
{
    struct context *c = *state;
    receive(c, 0, 5, 0, 3000);
    struct alb_roce first = request(c, ALB_XRC_SEND_FIRST, 0, number(c, 0));
    pair_inject(c->pair, 0, &first, payload, MTU);
    drop_queue(c, 0);
    c->pair->hosts[1].engine->xrc_srqs[first.xrc_srqn & 0xffff] = c->srqs[1]; // as if it had drawn that number
    struct alb_roce last = request(c, ALB_XRC_SEND_LAST, 1, first.xrc_srqn);
    pair_inject(c->pair, 0, &last, payload, 8);
    expect_nak(c, 1, ALB_NAK_INVALID_REQUEST);
    c->pair->hosts[1].engine->xrc_srqs[first.xrc_srqn & 0xffff] = NULL;
}

static void read__whose_queue_goes_before_the_answer(void **state)
{
    struct context *c = *state;
    assert_int_equal(ask(c, ALB_WR_RDMA_READ, 0, number(c, 0), 4096, 100), 0);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    drop_queue(c, 0);
    pair_settle(c->pair);
    expect_sent(c, ALB_WC_REM_ACCESS_ERR);
}

// The answer to a READ with keys of one queue is built while a message to another is coming in.
static void read__answered_in_the_middle_of_a_message(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 1, 6, 8192, 3000);
    struct alb_roce read = request(c, ALB_XRC_READ_REQUEST, 0, number(c, 0));
    struct alb_roce first = request(c, ALB_XRC_SEND_FIRST, 1, number(c, 1));
    struct alb_roce last = request(c, ALB_XRC_SEND_LAST, 2, number(c, 1));
    pair_inject(c->pair, 0, &read, NULL, 0);
    pair_inject(c->pair, 0, &first, payload, MTU);
    pair_send(c->pair, 1);
    assert_int_equal(pair_peek(c->pair, 1, 0)->roce.opcode, ALB_XRC_READ_RESPONSE_ONLY);
    pair_inject(c->pair, 0, &last, payload, 8);
    expect_received(c, 1, 6, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.byte_len, MTU + 8);
}

static void error__flushes_the_receive_in_use_and_no_other(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    struct alb_event event;
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    receive(c, 0, 5, 0, 3000);
    receive(c, 0, 6, 4096, 3000);
    struct alb_roce first = request(c, ALB_XRC_SEND_FIRST, 0, number(c, 0));
    pair_inject(c->pair, 0, &first, payload, MTU);
    assert_int_equal(alb_qp_modify(c->receiver, &attr, ALB_QP_STATE, c->pair->now), 0);
    expect_received(c, 0, 5, ALB_WC_WR_FLUSH_ERR, &wc);
    assert_null(alb_cq_peek(c->cqs[0]));
    assert_false(pair_event(c->pair, 1, ALB_EVENT_QP_LAST_WQE_REACHED, &event));
    assert_int_equal(alb_recv_queue_count(&c->srqs[0]->queue), 1);
}

static uint64_t dropped(const struct context *c, int side)
{
    return c->pair->hosts[side].stats.dropped[ALB_DROP_BAD_SERVICE];
}

static void packets__of_the_wrong_half_or_service(void **state)
{
    struct context *c = *state;
    struct alb_roce roce = request(c, ALB_XRC_ACK, 0, 0);
    pair_inject(c->pair, 0, &roce, NULL, 0);
    assert_int_equal(dropped(c, 1), 1);
    roce = request(c, ALB_RC_WRITE_ONLY, 0, 0);
    pair_inject(c->pair, 0, &roce, payload, 8);
    assert_int_equal(dropped(c, 1), 2);
    roce = request(c, ALB_XRC_WRITE_ONLY, 0, number(c, 0));
    roce.dest_qpn = alb_qp_number(c->sender);
    pair_inject(c->pair, 1, &roce, payload, 8);
    assert_int_equal(dropped(c, 0), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(alb_xrcd__belongings_keep_it),
        TEST(alb_xrcd_create__limits),
        TEST(alb_srq_create_xrc__numbers),
        TEST(alb_srq_create_xrc__out_of_memory_changes_nothing),
        cmocka_unit_test(alb_srq_create_xrc__every_number_is_given_once),
        TEST(alb_qp_create__halves),
        TEST(alb_qp_post__each_half_takes_its_own),
        TEST(alb_qp_destroy__receives_stay),
        TEST(send__goes_to_the_queue_that_it_names),
        TEST(requests__are_executed_and_named_on_the_wire),
        TEST(requests__survive_loss),
        TEST(read__that_comes_again_is_answered_again),
        TEST(send__waits_for_a_receive),
        TEST(two_queue_pairs__share_a_queue),
        TEST(send__to_a_queue_of_another_domain),
        TEST(send__to_number_0),
        TEST(send__to_a_number_beyond_the_table),
        TEST(send__to_a_number_of_another_process),
        TEST(send__without_any_queue_left),
        TEST(write__with_a_key_of_another_protection_domain),
        TEST(message__that_changes_its_queue),
        TEST(message__whose_queue_goes),
        TEST(message__whose_queue_goes_and_comes_again_by_the_same_number),
        TEST(read__whose_queue_goes_before_the_answer),
        TEST(read__answered_in_the_middle_of_a_message),
        TEST(error__flushes_the_receive_in_use_and_no_other),
        TEST(packets__of_the_wrong_half_or_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
