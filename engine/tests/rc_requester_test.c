// SPDX-License-Identifier: BSD-2-Clause
#include "engine/rc.h"

#include "engine/tests/pair_expect.h"

enum {
    MTU = 1024,
};

static void ask(struct pair_qps *c, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t flags, uint32_t length)
{
    assert_int_equal(pair_ask(c->pair, c->qps[0], opcode, wr_id, flags, 0, length), 0);
}

static const struct alb_roce *sent(const struct pair_qps *c, uint32_t index)
{
    return &pair_peek(c->pair, 0, index)->roce;
}

static int move(struct pair_qps *c, enum alb_qp_state to)
{
    struct alb_qp_attr attr = {.state = to, .en_sqd_async_notify = true};
    uint32_t mask = ALB_QP_STATE | (to == ALB_QPS_SQD ? ALB_QP_EN_SQD_ASYNC_NOTIFY : 0);
    return alb_qp_modify(c->qps[0], &attr, mask, c->pair->now);
}

static void requester__packets_of_a_write(void **state)
{
    struct pair_qps *c = *state;
    static const uint8_t opcodes[] = {ALB_RC_WRITE_FIRST, ALB_RC_WRITE_MIDDLE, ALB_RC_WRITE_LAST};
    ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 2 * MTU + 9);
    assert_int_equal(pair_send(c->pair, 0), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(sent(c, i)->opcode, opcodes[i]);
        assert_int_equal(sent(c, i)->psn, PAIR_PSN + i);
        assert_int_equal(sent(c, i)->ackreq, i == 2);
        assert_int_equal(sent(c, i)->dest_qpn, alb_qp_number(c->qps[1]));
    }
    assert_int_equal(sent(c, 0)->length, 2 * MTU + 9);
    assert_int_equal(pair_peek(c->pair, 0, 2)->payload_bytes, 9);
    assert_int_equal(sent(c, 2)->pad, 3);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[1].memory, c->pair->hosts[0].memory, 2 * MTU + 9);
}

// Numbers run on from request to request and wrap; a READ takes as many as it has answers.
static void requester__numbers(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 0, 3 * MTU);
    ask(c, ALB_WR_RDMA_READ, 2, 0, 5 * MTU);
    ask(c, ALB_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 8);
    ask(c, ALB_WR_ATOMIC_WRITE, 4, 0, 8);
    ask(c, ALB_WR_RDMA_WRITE, 5, 0, 0);
    assert_int_equal(pair_send(c->pair, 0), 7);
    static const uint32_t psns[] = {0, 1, 2, 3, 8, 9, 10};
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(sent(c, i)->psn, (PAIR_PSN + psns[i]) & 0xffffff);
    assert_int_equal(sent(c, 3)->opcode, ALB_RC_READ_REQUEST);
    assert_int_equal(sent(c, 3)->length, 5 * MTU);
    assert_int_equal(sent(c, 4)->opcode, ALB_RC_FETCH_ADD);
    assert_int_equal(sent(c, 4)->swap_add, 1);
    assert_int_equal(sent(c, 5)->opcode, ALB_RC_ATOMIC_WRITE);
    assert_int_equal(sent(c, 5)->length, 8);
    assert_int_equal(sent(c, 6)->opcode, ALB_RC_WRITE_ONLY);
}

static void keep_a_trace(struct alb_engine_config *config)
{
    config->trace_records = 64;
}

// The bytes of a packet in the trace are its payload, not what it takes of the window.
static void requester__bytes_in_the_trace(void **state)
{
    struct pair_qps c = {.pair = pair_new(keep_a_trace)};
    pair_connect(c.pair, ALB_QPT_RC, c.qps, NULL);
    ask(&c, ALB_WR_RDMA_WRITE, 1, 0, 4 * MTU + 9);
    ask(&c, ALB_WR_RDMA_READ, 2, 0, 5 * MTU);
    ask(&c, ALB_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 8);
    ask(&c, ALB_WR_ATOMIC_WRITE, 4, 0, 8);
    assert_int_equal(pair_send(c.pair, 0), 8);
    static const uint32_t bytes[] = {MTU, MTU, MTU, MTU, 9, 0, 0, 8};
    struct alb_trace_record record;
    for (uint32_t i = 0; i < ALB_COUNT(bytes);) {
        assert_true(alb_engine_trace(c.pair->hosts[0].engine, &record));
        if (record.kind != ALB_TRACE_send)
            continue;
        assert_int_equal(record.b, bytes[i]);
        i++;
    }
    pair_free(c.pair);
}

// A fenced request waits for READs and atomics before it, and for nothing else (10.8.3.3).
static void requester__fence(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 8);
    ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8);
    ask(c, ALB_WR_RDMA_WRITE, 3, ALB_SEND_SIGNALED | ALB_SEND_FENCE, 8);
    assert_int_equal(pair_send(c->pair, 0), 2);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_deliver(c->pair, 1); // the answer to the READ
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_settle(c->pair);
    for (uint64_t i = 1; i <= 3; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
    ask(c, ALB_WR_RDMA_WRITE, 4, ALB_SEND_SIGNALED, 8);
    ask(c, ALB_WR_RDMA_WRITE, 5, ALB_SEND_SIGNALED | ALB_SEND_FENCE, 8);
    assert_int_equal(pair_send(c->pair, 0), 2);
}

static void requester__max_rd_atomic_bounds_what_is_outstanding(void **state)
{
    struct pair_qps *c = *state;
    for (uint64_t i = 0; i < 7; i++)
        ask(c, i % 2 ? ALB_WR_RDMA_READ : ALB_WR_ATOMIC_CMP_AND_SWP, i, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_send(c->pair, 0), 4);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_deliver(c->pair, 1);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_settle(c->pair);
    for (uint64_t i = 0; i < 7; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
}

static void no_reads(struct alb_qp_attr *attr, int side)
{
    attr->max_rd_atomic = 0;
}

static void requester__no_reads_agreed(void **state)
{
    struct pair_qps *c = *state;
    pair_connect(c->pair, ALB_QPT_RC, c->qps, no_reads);
    ask(c, ALB_WR_RDMA_READ, 1, 0, 8);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_LOC_QP_OP_ERR);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_ERR);
}

// Whatever there is to send, no more is in flight than the window toward the peer.
static void requester__window(void **state)
{
    struct pair_qps *c = *state;
    struct alb_peer *peer = c->qps[0]->peer;
    ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 200 * MTU);
    uint32_t count = pair_send(c->pair, 0);
    assert_in_range(count, 50, (64 << 10) / (MTU + 64));
    assert_true(peer->inflight_bytes <= peer->congestion.window_bytes);
    assert_true(sent(c, count - 1)->ackreq); // a sender that is held back has asked
    for (int round = 0; round < 1000 && alb_rc_of(c->qps[0])->una != alb_psn_add(PAIR_PSN, 200); round++) {
        pair_deliver(c->pair, 0);
        pair_send(c->pair, 1);
        pair_deliver_all(c->pair, 1);
        pair_send(c->pair, 0);
        assert_true(peer->inflight_bytes <= peer->congestion.window_bytes);
    }
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(peer->inflight_bytes, 0);
    assert_int_equal(c->pair->hosts[0].stats.sum.counter[ALB_STAT_retransmitted_pkts], 0);
}

// The answers of READs count too, so a long one is asked for in pieces.
static void requester__reads_in_pieces(void **state)
{
    struct pair_qps *c = *state;
    struct alb_peer *peer = c->qps[0]->peer;
    ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 200 * MTU);
    uint32_t end = PAIR_PSN;
    while (alb_rc_of(c->qps[0])->una != alb_psn_add(PAIR_PSN, 200)) {
        uint32_t count = pair_send(c->pair, 0);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(sent(c, i)->psn, end & 0xffffff);
            assert_int_equal(sent(c, i)->va, pair_va(c->pair, 1, (end - PAIR_PSN) * MTU));
            assert_true(sent(c, i)->length <= 64 << 10);
            end += sent(c, i)->length / MTU;
        }
        assert_true(peer->inflight_bytes <= peer->congestion.window_bytes);
        pair_deliver_all(c->pair, 0);
        assert_true(pair_send(c->pair, 1) > 0);
        pair_deliver_all(c->pair, 1);
    }
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[0].memory, c->pair->hosts[1].memory, 200 * MTU);
    assert_int_equal(peer->inflight_bytes, 0);
}

// A piece that is asked for again begins where answers are missing and ends where it ended: a request that reached
// beyond what the peer has granted would never be answered.
// Others may take the room of each packet that is acknowledged.
static void requester__a_read_that_has_waited_goes_with_room_for_a_packet(void **state)
{
    struct pair_qps *c = *state;
    struct alb_engine *engine = c->pair->hosts[0].engine;
    struct alb_peer *peer = c->qps[0]->peer;
    uint32_t others = peer->congestion.window_bytes - 2000;
    alb_peer_charge(peer, others);
    ask(c, ALB_WR_RDMA_READ, 7, ALB_SEND_SIGNALED, 8000);
    assert_int_equal(pair_send(c->pair, 0), 0);
    alb_peer_release(engine, peer, 1);
    assert_int_equal(pair_send(c->pair, 0), 1);
    alb_peer_release(engine, peer, others - 1);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 7, ALB_WC_SUCCESS);
}

static void requester__read_pieces_keep_their_ends(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 200 * MTU);
    assert_true(pair_send(c->pair, 0) > 1);
    uint32_t first = sent(c, 0)->length / MTU;
    assert_true(first > 10);
    pair_deliver(c->pair, 0);
    while (pair_count(c->pair, 0) > 0)
        pair_lose(c->pair, 0); // what was asked for behind it
    assert_int_equal(pair_send(c->pair, 1), first);
    for (uint32_t i = 0; i < first - 5; i++)
        pair_deliver(c->pair, 1);
    pair_lose(c->pair, 1);
    pair_deliver(c->pair, 1); // shows that an answer is missing
    assert_true(pair_send(c->pair, 0) >= 1);
    assert_int_equal(sent(c, 0)->psn, alb_psn_add(PAIR_PSN, (int32_t)first - 5));
    assert_int_equal(sent(c, 0)->length, 5 * MTU);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[0].memory, c->pair->hosts[1].memory, 200 * MTU);
    assert_int_equal(c->qps[0]->peer->inflight_bytes, 0);
}

// Two READs, asked for in one piece each; half of the first one's answers arrive. The room in the window is now another
// one.
static void requester__reads_are_asked_for_again_one_by_one(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 10 * MTU);
    ask(c, ALB_WR_RDMA_READ, 2, ALB_SEND_SIGNALED, 10 * MTU);
    assert_int_equal(pair_send(c->pair, 0), 2);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(pair_send(c->pair, 1), 20);
    for (int i = 0; i < 5; i++)
        pair_deliver(c->pair, 1);
    pair_lose(c->pair, 1);
    pair_deliver(c->pair, 1); // shows the gap
    assert_int_equal(pair_send(c->pair, 0), 2);
    assert_int_equal(sent(c, 0)->psn, (PAIR_PSN + 5) & 0xffffff);
    assert_int_equal(sent(c, 0)->length, 5 * MTU);
    assert_int_equal(sent(c, 1)->psn, (PAIR_PSN + 10) & 0xffffff);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
    assert_int_equal(c->pair->hosts[0].stats.sum.counter[ALB_STAT_implied_nak_seq_err], 14);
}

// The end of an unsignaled request is not waited for: the acknowledgement of a later one does for it.
static void requester__asks_once_for_many(void **state)
{
    struct pair_qps *c = *state;
    for (uint64_t i = 0; i < 8; i++)
        ask(c, ALB_WR_RDMA_WRITE, i, i == 7 ? ALB_SEND_SIGNALED : 0, 64);
    assert_int_equal(pair_send(c->pair, 0), 8);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(sent(c, i)->ackreq, i == 7);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 7, ALB_WC_SUCCESS);
}

static struct alb_send_wr bind_of(struct pair_qps *c, struct alb_region *mw)
{
    return (struct alb_send_wr){
        .wr_id = 2,
        .opcode = ALB_WR_BIND_MW,
        .flags = ALB_SEND_SIGNALED,
        .bind = {mw, c->pair->hosts[0].mr, pair_va(c->pair, 0, 0), 64, ALB_ACCESS_REMOTE_READ, alb_region_key(mw)},
    };
}

// What stands behind it may send nothing: then nothing else would ask.
static void requester__asks_before_a_local_operation(void **state)
{
    struct pair_qps *c = *state;
    struct alb_region *mw;
    assert_int_equal(alb_mw_create(c->pair->hosts[0].pd, ALB_MW_TYPE_2, &mw), 0);
    struct alb_send_wr bind = bind_of(c, mw);
    ask(c, ALB_WR_RDMA_WRITE, 1, 0, 64);
    assert_int_equal(pair_post(c->pair, c->qps[0], &bind), 0);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
    assert_true(alb_qp_is_quiet(c->qps[0]));
}

static void requester__asks_before_a_request_that_fails(void **state)
{
    struct pair_qps *c = *state;
    struct alb_sge sge = {.addr = 8, .length = 8, .lkey = 999};
    struct alb_send_wr bad = {.wr_id = 2, .opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    ask(c, ALB_WR_RDMA_WRITE, 1, 0, 64);
    assert_int_equal(pair_post(c->pair, c->qps[0], &bad), 0);
    ask(c, ALB_WR_RDMA_WRITE, 3, 0, 64);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_expect_none(c->pair, 0); // it is known to be bad, but its turn to complete has not come
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 2, ALB_WC_LOC_PROT_ERR);
    pair_expect(c->pair, 0, 3, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_ERR);
}

static void connect_large_queues(struct pair_qps *c, struct alb_qp *qps[2],
                                 void (*change)(struct alb_qp_attr *attr, int side))
{
    for (int side = 0; side < 2; side++) {
        struct alb_qp_init init = {.type = ALB_QPT_RC, .cap = {.send_wr_max = 128, .send_sge_max = 1}};
        qps[side] = pair_qp_with(c->pair, side, &init);
    }
    for (int side = 0; side < 2; side++) {
        struct alb_qp_attr attr = pair_attr(c->pair, side, qps[!side]);
        if (change)
            change(&attr, side);
        assert_int_equal(pair_move(c->pair, qps[side], ALB_QPS_RTS, &attr), 0);
    }
}

// The queue is drained just when its turn had ended, and the request that would have asked does not begin any more.
// The second one was good when the first one's last packet left without a question, and is not when its turn comes.
static void requester__asks_again_before_a_request_whose_memory_goes(void **state)
{
    struct pair_qps *c = *state;
    struct pair_host *host = &c->pair->hosts[0];
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(host->pd, host->memory, 64, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &mr), 0);
    struct alb_sge sge = {.addr = (uintptr_t)host->memory, .length = 64, .lkey = alb_region_key(mr)};
    struct alb_send_wr next = {.wr_id = 2, .opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 1, 0, 0, 64), 0);
    assert_int_equal(pair_post(c->pair, c->qps[0], &next), 0);
    host->tx.segment_capacity = 1;
    alb_engine_bells(host->engine, c->pair->now);
    pair_send_batch(c->pair, 0);
    host->tx.segment_capacity = PAIR_SEGMENTS;
    assert_int_equal(pair_count(c->pair, 0), 1);
    assert_false(sent(c, 0)->ackreq);
    assert_int_equal(alb_mr_destroy(mr), 0);
    pair_settle(c->pair); // no time passes: no timer helps
    pair_expect(c->pair, 0, 2, ALB_WC_LOC_PROT_ERR);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
}

static void requester__asks_when_it_drains(void **state)
{
    struct pair_qps *c = *state;
    struct alb_event event;
    struct pair_host *host = &c->pair->hosts[0];
    struct alb_qp *other[2];
    connect_large_queues(c, c->qps, NULL);
    pair_connect(c->pair, ALB_QPT_RC, other, NULL);
    for (uint64_t i = 0; i < 64; i++)
        ask(c, ALB_WR_RDMA_WRITE, i, 0, 8);
    ask(c, ALB_WR_RDMA_WRITE, 64, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_ask(c->pair, other[0], ALB_WR_RDMA_WRITE, 99, 0, 0, 8 * MTU), 0);
    alb_engine_bells(host->engine, c->pair->now);
    host->tx.segment_capacity = 65; // a burst of the one, and the other fills the batch
    assert_true(alb_engine_tx(host->engine, &host->tx, c->pair->now) > 0);
    host->tx.segment_capacity = PAIR_SEGMENTS;
    assert_int_equal(alb_rc_of(c->qps[0])->started, 64);
    assert_int_equal(move(c, ALB_QPS_SQD), 0);
    assert_false(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    pair_settle(c->pair);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    assert_int_equal(move(c, ALB_QPS_RTS), 0);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 64, ALB_WC_SUCCESS);
}

// A message of which packets have been sent is finished in SQD, one behind it does not begin.
static void requester__drains(void **state)
{
    struct pair_qps *c = *state;
    struct alb_event event;
    ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 150 * MTU);
    ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    assert_int_equal(move(c, ALB_QPS_SQD), 0);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect_none(c->pair, 0);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    pair_settle(c->pair);
    assert_false(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event)); // once
    assert_int_equal(move(c, ALB_QPS_RTS), 0);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
}

static void requester__drained_at_once_if_idle(void **state)
{
    struct pair_qps *c = *state;
    struct alb_event event;
    assert_int_equal(move(c, ALB_QPS_SQD), 0);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    ask(c, ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 8); // may be posted, and waits
    pair_settle(c->pair);
    pair_expect_none(c->pair, 0);
}

// The event is an attribute of the move, not of the queue pair.
static void requester__drained__is_asked_for_each_time(void **state)
{
    struct pair_qps *c = *state;
    struct alb_event event;
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD};
    assert_int_equal(move(c, ALB_QPS_SQD), 0);
    assert_true(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
    assert_int_equal(move(c, ALB_QPS_RTS), 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    pair_settle(c->pair);
    assert_false(pair_event(c->pair, 0, ALB_EVENT_SQ_DRAINED, &event));
}

static void small_mtu(struct alb_qp_attr *attr, int side)
{
    attr->path_mtu_bytes = 256;
}

// Old and new packets could no longer be distinguished.
static void requester__message_of_half_the_numbers(void **state)
{
    struct pair_qps *c = *state;
    struct alb_region *mr;
    struct pair_host *host = &c->pair->hosts[0];
    pair_connect(c->pair, ALB_QPT_RC, c->qps, small_mtu);
    assert_int_equal(alb_mr_create(host->pd, host->memory, ALB_MAX_MESSAGE, 0, 0, &mr), 0);
    struct alb_sge sge = {.addr = 0, .length = ALB_MAX_MESSAGE, .lkey = alb_region_key(mr)};
    struct alb_send_wr wr = {.wr_id = 1, .opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    assert_int_equal(pair_send(c->pair, 0), 0);
    pair_expect(c->pair, 0, 1, ALB_WC_LOC_LEN_ERR);
}

static void requester__sends_again_from_the_oldest_unacknowledged(void **state)
{
    struct pair_qps *c = *state;
    for (uint64_t i = 0; i < 6; i++)
        ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, MTU);
    assert_int_equal(pair_send(c->pair, 0), 6);
    pair_deliver(c->pair, 0);
    pair_deliver(c->pair, 0);
    pair_lose(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    assert_int_equal(pair_send(c->pair, 0), 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(sent(c, i)->psn, (PAIR_PSN + 2 + i) & 0xffffff);
    assert_int_equal(c->pair->hosts[0].stats.sum.counter[ALB_STAT_retransmitted_pkts], 4);
    pair_settle(c->pair);
    for (uint64_t i = 0; i < 6; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
    assert_int_equal(c->qps[0]->peer->inflight_bytes, 0);
}

// A key goes while its request waits to be sent again, with others behind it in flight: nothing that belongs to neither
// is sent, and the request ends for what is wrong with it.
static void requester__a_key_that_goes_before_its_request_goes_again(void **state)
{
    struct pair_qps *c = *state;
    struct pair_host *host = &c->pair->hosts[0];
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(host->pd, host->memory, 65536, 0, 0, &mr), 0);
    struct alb_sge sge = {.addr = 0, .length = 2 * MTU, .lkey = alb_region_key(mr)};
    struct alb_send_wr wr = {
        .wr_id = 1,
        .opcode = ALB_WR_RDMA_WRITE,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
    };
    ask(c, ALB_WR_RDMA_WRITE, 0, 0, 64);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    ask(c, ALB_WR_RDMA_WRITE, 2, 0, 64);
    ask(c, ALB_WR_RDMA_READ, 3, 0, 64);
    assert_int_equal(pair_send(c->pair, 0), 5);
    while (pair_count(c->pair, 0) > 0)
        pair_lose(c->pair, 0);
    assert_int_equal(alb_mr_destroy(mr), 0);
    pair_pass(c->pair, 6 * ALB_NS_PER_MS);
    assert_int_equal(pair_send(c->pair, 0), 2);
    assert_int_equal(sent(c, 0)->psn, PAIR_PSN);
    assert_int_equal(sent(c, 1)->psn, PAIR_PSN); // once more, to ask
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_LOC_PROT_ERR);
    pair_expect(c->pair, 0, 2, ALB_WC_WR_FLUSH_ERR);
    pair_expect(c->pair, 0, 3, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
}

static void large_mtu(struct alb_qp_attr *attr, int side)
{
    attr->path_mtu_bytes = 4096;
}

// Queue pairs to one endpoint share its window. Here it fills with small packets that need no acknowledgement yet,
// until a large one has no room in any of them.
static void requester__many_share_a_window_and_none_is_stuck(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp *many[15][2];
    for (int i = 0; i < 15; i++) {
        connect_large_queues(c, many[i], large_mtu);
        for (int k = 0; k < 64; k++)
            assert_int_equal(pair_ask(c->pair, many[i][0], ALB_WR_RDMA_WRITE, 1, 0, 0, 1), 0);
        assert_int_equal(pair_ask(c->pair, many[i][0], ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 0, 4096), 0);
    }
    pair_settle(c->pair); // no time passes: no timer helps
    for (int i = 0; i < 15; i++)
        pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
    assert_int_equal(many[0][0]->peer->inflight_bytes, 0);
}

// The same where a lost packet has halved it: what had room before has left, and nobody has asked yet.
static void requester__many_share_a_window_that_shrinks(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp *many[16][2];
    for (int i = 0; i < 16; i++) {
        connect_large_queues(c, many[i], large_mtu);
        for (int k = 0; k < 24; k++)
            assert_int_equal(
                pair_ask(c->pair, many[i][0], ALB_WR_RDMA_WRITE, 1, k == 23 ? ALB_SEND_SIGNALED : 0, 0, 16384), 0);
    }
    for (int round = 0; round < 12; round++) {
        pair_send(c->pair, 0);
        if (round == 5)
            pair_lose(c->pair, 0);
        pair_deliver_all(c->pair, 0);
        pair_send(c->pair, 1);
        pair_deliver_all(c->pair, 1);
    }
    pair_settle(c->pair); // no time passes: no timer helps
    for (int i = 0; i < 16; i++)
        pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(many[0][0]->peer->inflight_bytes, 0);
    assert_int_equal(many[0][0]->peer->unasked_bytes, 0);
}

// What nobody asks about is not acknowledged: all together leave most of the window to what is.
static void requester__many_share_what_of_a_window_needs_no_question(void **state)
{
    struct pair_qps *c = *state;
    struct alb_qp *many[16][2];
    for (int i = 0; i < 16; i++) {
        connect_large_queues(c, many[i], NULL);
        assert_int_equal(pair_ask(c->pair, many[i][0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 200 * MTU), 0);
    }
    const struct alb_peer *peer = many[0][0]->peer;
    while (pair_send(c->pair, 0) > 0) {
        assert_true(peer->unasked_bytes <= peer->congestion.window_bytes / 2);
        pair_deliver_all(c->pair, 0);
        pair_send(c->pair, 1);
        pair_deliver_all(c->pair, 1);
    }
    for (int i = 0; i < 16; i++)
        pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(peer->unasked_bytes, 0);
    assert_int_equal(peer->unasked_qps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_RC_TEST(requester__packets_of_a_write),
        PAIR_RC_TEST(requester__numbers),
        cmocka_unit_test(requester__bytes_in_the_trace),
        PAIR_RC_TEST(requester__fence),
        PAIR_RC_TEST(requester__max_rd_atomic_bounds_what_is_outstanding),
        PAIR_RC_TEST(requester__no_reads_agreed),
        PAIR_RC_TEST(requester__window),
        PAIR_RC_TEST(requester__reads_in_pieces),
        PAIR_RC_TEST(requester__a_read_that_has_waited_goes_with_room_for_a_packet),
        PAIR_RC_TEST(requester__read_pieces_keep_their_ends),
        PAIR_RC_TEST(requester__reads_are_asked_for_again_one_by_one),
        PAIR_RC_TEST(requester__asks_once_for_many),
        PAIR_RC_TEST(requester__asks_before_a_local_operation),
        PAIR_RC_TEST(requester__asks_before_a_request_that_fails),
        PAIR_RC_TEST(requester__asks_again_before_a_request_whose_memory_goes),
        PAIR_RC_TEST(requester__asks_when_it_drains),
        PAIR_RC_TEST(requester__drains),
        PAIR_RC_TEST(requester__drained_at_once_if_idle),
        PAIR_RC_TEST(requester__drained__is_asked_for_each_time),
        PAIR_RC_TEST(requester__message_of_half_the_numbers),
        PAIR_RC_TEST(requester__sends_again_from_the_oldest_unacknowledged),
        PAIR_RC_TEST(requester__a_key_that_goes_before_its_request_goes_again),
        PAIR_RC_TEST(requester__many_share_a_window_and_none_is_stuck),
        PAIR_RC_TEST(requester__many_share_a_window_that_shrinks),
        PAIR_RC_TEST(requester__many_share_what_of_a_window_needs_no_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
