// SPDX-License-Identifier: BSD-2-Clause
// What answers to READs and atomics do to the requests in flight, and what is done about those that are missing.
#include "engine/tests/rc_completer.h"

static void completer__reads_and_atomics(void **state)
{
    struct pair_qps *c = *state;
    uint64_t *theirs = (uint64_t *)(c->pair->hosts[1].memory);
    uint64_t *ours = (uint64_t *)(c->pair->hosts[0].memory);
    *theirs = 41;
    ask(c, ALB_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(*ours, 41);
    assert_int_equal(*theirs, 42);
    ask(c, ALB_WR_ATOMIC_CMP_AND_SWP, 2, 8); // 42 is not 1
    pair_settle(c->pair);
    assert_int_equal(*ours, 42);
    assert_int_equal(*theirs, 42);
    *theirs = 1;
    ask(c, ALB_WR_ATOMIC_CMP_AND_SWP, 3, 8);
    pair_settle(c->pair);
    assert_int_equal(*ours, 1);
    assert_int_equal(*theirs, 2);
    *ours = 99;
    ask(c, ALB_WR_ATOMIC_WRITE, 4, 8);
    pair_settle(c->pair);
    assert_int_equal(*ours, 99);
    assert_int_equal(*theirs, 99);
    ask(c, ALB_WR_RDMA_READ, 5, 3 * MTU + 1);
    pair_settle(c->pair);
    assert_memory_equal(ours, theirs, 3 * MTU + 1);
    ask(c, ALB_WR_RDMA_READ, 6, 0);
    pair_settle(c->pair);
    for (uint64_t i = 2; i <= 6; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
    assert_int_equal(counted(c, ALB_STAT_rdma_atomics), 4);
    assert_int_equal(counted(c, ALB_STAT_rdma_reads), 2);
}

// An answer acknowledges all requests before it.
static void completer__answers_acknowledge(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    ask(c, ALB_WR_RDMA_READ, 2, 8);
    pair_send(c->pair, 0);
    struct alb_roce roce = response(c, ALB_RC_READ_RESPONSE_ONLY, 1, ACK);
    pair_inject(c->pair, 1, &roce, "12345678", 8);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[0].memory, "12345678", 8);
}

// The acknowledgement of what came behind a READ shows that its answer was lost: it is asked for again without waiting.
static void completer__an_answer_is_missing(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_READ, 1, 8);
    ask(c, ALB_WR_RDMA_WRITE, 2, 8);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(pair_send(c->pair, 1), 2);
    pair_lose(c->pair, 1);
    pair_deliver(c->pair, 1);
    pair_expect_none(c->pair, 0);
    assert_int_equal(counted(c, ALB_STAT_implied_nak_seq_err), 1);
    assert_int_equal(pair_send(c->pair, 0), 2);
    assert_int_equal(pair_peek(c->pair, 0, 0)->roce.opcode, ALB_RC_READ_REQUEST);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect(c->pair, 0, 2, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[0].memory, c->pair->hosts[1].memory, 8);
}

// Each gap is acted on once, and so is the next one.
static void completer__answers_are_missing_again_and_again(void **state)
{
    struct pair_qps *c = *state;
    const uint8_t bytes[8] = {0};
    for (uint64_t i = 0; i < 4; i++)
        ask(c, ALB_WR_RDMA_READ, i, 8);
    for (int32_t i = 0; i < 4; i += 2) {
        pair_send(c->pair, 0);
        lose_all(c, 0);
        struct alb_roce late = response(c, ALB_RC_READ_RESPONSE_ONLY, i, ACK);
        struct alb_roce early = response(c, ALB_RC_READ_RESPONSE_ONLY, i + 1, ACK);
        pair_inject(c->pair, 1, &early, bytes, sizeof(bytes));
        pair_inject(c->pair, 1, &early, bytes, sizeof(bytes));
        assert_int_equal(counted(c, ALB_STAT_implied_nak_seq_err), i + 2);
        assert_int_equal(pair_send(c->pair, 0), 4 - i);
        lose_all(c, 0);
        pair_inject(c->pair, 1, &late, bytes, sizeof(bytes));
        pair_inject(c->pair, 1, &early, bytes, sizeof(bytes));
    }
    for (uint64_t i = 0; i < 4; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
}

// What is to be asked for again was answered before it was.
static void completer__an_answer_comes_just_before_it_is_asked_for_again(void **state)
{
    struct pair_qps *c = *state;
    for (uint64_t i = 0; i < 3; i++)
        ask(c, ALB_WR_RDMA_READ, i, 8);
    pair_send(c->pair, 0);
    lose_all(c, 0);
    pair_pass(c->pair, TIMEOUT_NS);
    assert_int_equal(counted(c, ALB_STAT_local_ack_timeout_err), 1);
    struct alb_roce late = response(c, ALB_RC_READ_RESPONSE_ONLY, 0, ACK);
    pair_inject(c->pair, 1, &late, "12345678", 8);
    pair_expect(c->pair, 0, 0, ALB_WC_SUCCESS);
    assert_int_equal(pair_send(c->pair, 0), 2);
    lose_all(c, 0);
    for (int32_t i = 1; i < 3; i++) {
        struct alb_roce roce = response(c, ALB_RC_READ_RESPONSE_ONLY, i, ACK);
        pair_inject(c->pair, 1, &roce, "12345678", 8);
        pair_expect(c->pair, 0, (uint64_t)i, ALB_WC_SUCCESS);
    }
}

static void completer__an_answer_comes_twice(void **state)
{
    struct pair_qps *c = *state;
    ask(c, ALB_WR_RDMA_READ, 1, 2 * MTU);
    pair_send(c->pair, 0);
    struct alb_roce roce = response(c, ALB_RC_READ_RESPONSE_FIRST, 0, ACK);
    uint8_t bytes[MTU];
    memset(bytes, 1, MTU);
    pair_inject(c->pair, 1, &roce, bytes, MTU);
    memset(bytes, 2, MTU);
    pair_inject(c->pair, 1, &roce, bytes, MTU); // is not placed again
    assert_int_equal(c->pair->hosts[0].memory[0], 1);
    assert_int_equal(dropped(c, ALB_DROP_STALE_RESPONSE), 1);
}

// An answer of another kind or length than its request asks for touches nothing.
static void completer__answers_that_do_not_fit(void **state)
{
    struct pair_qps *c = *state;
    uint8_t bytes[2 * MTU];
    memset(bytes, 0xcc, sizeof(bytes));
    ask(c, ALB_WR_RDMA_READ, 1, 2 * MTU - 3);
    ask(c, ALB_WR_ATOMIC_FETCH_AND_ADD, 2, 8);
    ask(c, ALB_WR_ATOMIC_WRITE, 3, 8);
    ask(c, ALB_WR_RDMA_WRITE, 4, 8);
    pair_send(c->pair, 0);
    uint8_t before[8];
    memcpy(before, c->pair->hosts[0].memory, 8);
    const struct {
        uint8_t opcode;
        int32_t psn_offset;
        uint32_t bytes;
    } rows[] = {
        {ALB_RC_READ_RESPONSE_FIRST, 0, MTU - 4},
        {ALB_RC_READ_RESPONSE_FIRST, 0, MTU + 4},
        {ALB_RC_READ_RESPONSE_LAST, 1, MTU},
        {ALB_RC_READ_RESPONSE_ONLY, 2, 8},
        {ALB_RC_READ_RESPONSE_ONLY, 3, 8},
        {ALB_RC_READ_RESPONSE_ONLY, 4, 8},
        {ALB_RC_ATOMIC_ACK, 0, 0},
        {ALB_RC_ATOMIC_ACK, 3, 0},
        {ALB_RC_ATOMIC_ACK, 4, 0},
    };
    for (size_t i = 0; i < ALB_COUNT(rows); i++) {
        struct alb_roce roce = response(c, rows[i].opcode, rows[i].psn_offset, ACK);
        pair_inject(c->pair, 1, &roce, bytes, rows[i].bytes);
        assert_int_equal(dropped(c, ALB_DROP_BAD_RESPONSE), i + 1);
    }
    assert_memory_equal(c->pair->hosts[0].memory, before, 8);
    pair_expect_none(c->pair, 0);
    lose_all(c, 0);
    pair_pass(c->pair, TIMEOUT_NS);
    pair_settle(c->pair);
    for (uint64_t i = 1; i <= 4; i++)
        pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
}

static void completer__nowhere_to_put_the_answer(void **state)
{
    struct pair_qps *c = *state;
    struct alb_region *mr;
    struct pair_host *host = &c->pair->hosts[0];
    assert_int_equal(alb_mr_create(host->pd, host->memory, 65536, 0, ALB_ACCESS_LOCAL_WRITE, &mr), 0);
    struct alb_sge sge = {.addr = 0, .length = 8, .lkey = alb_region_key(mr)};
    struct alb_send_wr wr = {
        .wr_id = 2,
        .opcode = ALB_WR_RDMA_READ,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
    };
    ask(c, ALB_WR_RDMA_WRITE, 1, 8);
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    ask(c, ALB_WR_RDMA_WRITE, 3, 8);
    pair_send(c->pair, 0);
    assert_int_equal(alb_mr_destroy(mr), 0);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect(c->pair, 0, 2, ALB_WC_LOC_PROT_ERR);
    pair_expect(c->pair, 0, 3, ALB_WC_WR_FLUSH_ERR);
    assert_int_equal(c->qps[0]->peer->inflight_bytes, 0);
}

// READs, atomics and WRITEs in one queue with every packet of either side lost once: all come to their end, in order.
static void completer__every_packet_lost_once(void **state)
{
    struct pair_qps *c = *state;
    for (uint32_t lost = 0; lost < 24; lost++) {
        uint32_t seen = 0;
        pair_connect(c->pair, ALB_QPT_RC, c->qps, NULL);
        uint64_t *word = (uint64_t *)(c->pair->hosts[1].memory + 8192);
        *word = 0;
        assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 0, 3 * MTU), 0);
        assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_ATOMIC_FETCH_AND_ADD, 2, ALB_SEND_SIGNALED, 8192, 8), 0);
        assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 3, ALB_SEND_SIGNALED, 4096, 3 * MTU), 0);
        assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_READ, 4, ALB_SEND_SIGNALED, 16384, 2 * MTU), 0);
        assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_ATOMIC_FETCH_AND_ADD, 5, ALB_SEND_SIGNALED, 8192, 8), 0);
        for (int round = 0; round < 40; round++) {
            if (pair_send(c->pair, 0) + pair_send(c->pair, 1) == 0)
                pair_pass(c->pair, TIMEOUT_NS);
            for (int side = 0; side < 2; side++)
                while (pair_count(c->pair, side) > 0)
                    seen++ == lost ? pair_lose(c->pair, side) : pair_deliver(c->pair, side);
        }
        for (uint64_t i = 1; i <= 5; i++)
            pair_expect(c->pair, 0, i, ALB_WC_SUCCESS);
        assert_int_equal(*word, 2); // executed once each
        assert_int_equal(c->qps[0]->peer->inflight_bytes, 0);
        assert_memory_equal(c->pair->hosts[0].memory, c->pair->hosts[1].memory, 3 * MTU);
        assert_true(alb_qp_is_quiet(c->qps[0]) && alb_qp_is_quiet(c->qps[1]));
        pair_fill(c->pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_RC_TEST(completer__reads_and_atomics),
        PAIR_RC_TEST(completer__answers_acknowledge),
        PAIR_RC_TEST(completer__an_answer_is_missing),
        PAIR_RC_TEST(completer__answers_are_missing_again_and_again),
        PAIR_RC_TEST(completer__an_answer_comes_just_before_it_is_asked_for_again),
        PAIR_RC_TEST(completer__an_answer_comes_twice),
        PAIR_RC_TEST(completer__answers_that_do_not_fit),
        PAIR_RC_TEST(completer__nowhere_to_put_the_answer),
        PAIR_RC_TEST(completer__every_packet_lost_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
