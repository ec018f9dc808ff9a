// SPDX-License-Identifier: BSD-2-Clause
// Unreliable datagram service: addresses, keys and the network header in front of what arrives.
#include "engine/tests/pair.h"
#include "engine/tests/pair_expect.h"

#include "base/tests/test.h"

#include <stdlib.h>

struct context {
    struct pair *pair;
    struct alb_qp *qps[2];
    struct alb_ah *ah;
};

static int setup(void **state)
{
    struct context *c = calloc(1, sizeof(*c));
    c->pair = pair_new(NULL);
    pair_connect(c->pair, ALB_QPT_UD, c->qps, NULL);
    struct alb_av av = {
        .local = c->pair->hosts[0].addr, .peer = c->pair->hosts[1].addr, .hop_limit = 33, .traffic_class = 0x48};
    assert_int_equal(alb_ah_create(c->pair->hosts[0].pd, &av, &c->ah), 0);
    for (uint32_t i = 0; i < PAIR_MEMORY_BYTES; i++)
        c->pair->hosts[0].memory[i] = (uint8_t)(i * 13 + 5);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct context *c = *state;
    assert_int_equal(alb_ah_destroy(c->ah), 0);
    pair_free(c->pair);
    free(c);
    return 0;
}

static void post_with(struct context *c, enum alb_wr_opcode opcode, uint32_t length, uint32_t qkey)
{
    struct alb_sge sge = pair_sge(c->pair, 0, 0, length);
    struct alb_send_wr wr = {
        .wr_id = length,
        .opcode = opcode,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .imm_data = 0x4321,
        .ah = c->ah,
        .remote_qpn = alb_qp_number(c->qps[1]),
        .remote_qkey = qkey,
    };
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
}

static void post(struct context *c, uint32_t length)
{
    post_with(c, ALB_WR_SEND, length, 0x11111111);
}

static uint64_t dropped(const struct context *c, enum alb_drop reason)
{
    return c->pair->hosts[1].stats.dropped[reason];
}

static void ud__arrives_behind_forty_bytes(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 9, 0, 40 + 100), 0);
    post_with(c, ALB_WR_SEND_WITH_IMM, 100, 0x11111111);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    assert_int_equal(wc.opcode, ALB_WC_RECV);
    assert_int_equal(wc.byte_len, 140);
    assert_int_equal(wc.flags, ALB_WC_GRH | ALB_WC_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x4321);
    assert_int_equal(wc.src_qpn, alb_qp_number(c->qps[0]));
    assert_memory_equal(c->pair->hosts[1].memory + 40, c->pair->hosts[0].memory, 100);
}

// An IPv4 header in the last 20 of the 40 bytes, its checksum right, so that a program can answer to its addresses.
static void ud__ipv4_header(void **state)
{
    struct context *c = *state;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 9, 0, 140), 0);
    memset(c->pair->hosts[1].memory, 0xee, 40);
    post(c, 100);
    pair_settle(c->pair);
    const uint8_t *ip = c->pair->hosts[1].memory + 20;
    for (int i = 0; i < 20; i++)
        assert_int_equal(c->pair->hosts[1].memory[i], 0);
    assert_int_equal(ip[0], 0x45);
    assert_int_equal(ip[1], 0x48);
    assert_int_equal(ip[2] << 8 | ip[3], 20 + 8 + 12 + 8 + 100 + 4);
    assert_int_equal(ip[8], 33);
    assert_int_equal(ip[9], 17);
    assert_memory_equal(ip + 12, ((uint8_t[]){10, 0, 0, 1}), 4);
    assert_memory_equal(ip + 16, ((uint8_t[]){10, 0, 0, 2}), 4);
    uint32_t sum = 0;
    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.sl, 0xA);
}

static void ud__ipv6_header(void **state)
{
    struct context *c = *state;
    struct alb_addr local, peer;
    assert_true(alb_addr_parse("fd99::1", &local));
    assert_true(alb_addr_parse("fd99::2", &peer));
    c->pair->hosts[0].addr = local;
    c->pair->hosts[1].addr = peer;
    c->ah->av.local = local;
    c->ah->av.peer = peer;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 9, 0, 140), 0);
    post(c, 100);
    pair_settle(c->pair);
    const uint8_t *ip = c->pair->hosts[1].memory;
    assert_int_equal(ip[0], 0x64); // version 6, traffic class 0x48
    assert_int_equal(ip[1], 0x80);
    assert_int_equal(ip[4] << 8 | ip[5], 8 + 12 + 8 + 100 + 4);
    assert_int_equal(ip[6], 17);
    assert_int_equal(ip[7], 33);
    assert_memory_equal(ip + 8, local.bytes, 16);
    assert_memory_equal(ip + 24, peer.bytes, 16);
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.sl, 0x9);
}

static void ud__numbers_begin_where_the_program_says(void **state)
{
    struct context *c = *state;
    struct alb_qp_attr attr = pair_attr(c->pair, 0, NULL);
    struct alb_qp_init init;
    attr.sq_psn = 1000;
    c->qps[0] = pair_qp(c->pair, 0, ALB_QPT_UD);
    assert_int_equal(pair_move(c->pair, c->qps[0], ALB_QPS_RTS, &attr), 0);
    alb_qp_query(c->qps[0], &attr, &init);
    assert_int_equal(attr.sq_psn, 1000);
    post(c, 8);
    post(c, 8);
    assert_int_equal(pair_send(c->pair, 0), 2);
    assert_int_equal(pair_peek(c->pair, 0, 0)->roce.psn, 1000);
    assert_int_equal(pair_peek(c->pair, 0, 1)->roce.psn, 1001);
    alb_qp_query(c->qps[0], &attr, &init);
    assert_int_equal(attr.sq_psn, 1002);
}

static void ud__q_keys(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 9, 0, 140), 0);
    post_with(c, ALB_WR_SEND, 8, 0x11111112);
    pair_settle(c->pair);
    assert_int_equal(dropped(c, ALB_DROP_BAD_QKEY), 1);
    assert_false(pair_poll(c->pair, 1, &wc));
    post_with(c, ALB_WR_SEND, 8, 0x80000000); // stands for the sender's own
    assert_int_equal(pair_send(c->pair, 0), 1);
    assert_int_equal(pair_peek(c->pair, 0, 0)->roce.qkey, 0x11111111);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 1, &wc));
}

static void ud__one_packet_a_message(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 9, 0, 40 + 4096), 0);
    post(c, 4096);
    assert_int_equal(pair_send(c->pair, 0), 1);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.byte_len, 4136);
    assert_true(pair_poll(c->pair, 0, &wc));
    post(c, 4097);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_LOC_LEN_ERR);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_SQE);
}

static void ud__no_receive_and_too_short_a_one(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    post(c, 8);
    pair_settle(c->pair);
    assert_int_equal(dropped(c, ALB_DROP_NO_RECEIVE), 1);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 9, 0, 40 + 7), 0);
    post(c, 8);
    pair_settle(c->pair);
    assert_int_equal(dropped(c, ALB_DROP_RECEIVE_TOO_SHORT), 1);
    post(c, 7);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.byte_len, 47);
}

// What is too long for it takes nothing from the other queue pairs of a shared queue.
static void ud__too_short_a_receive_stays_in_the_shared_queue(void **state)
{
    struct context *c = *state;
    struct pair_host *host = &c->pair->hosts[1];
    struct alb_srq *srq;
    struct alb_qp *qps[2];
    struct alb_sge sge = pair_sge(c->pair, 1, 0, 40 + 7);
    assert_int_equal(alb_srq_create(host->pd, 4, 1, 0, NULL, &srq), 0);
    assert_int_equal(alb_srq_post(srq, 5, &sge, 1), 0);
    for (int i = 0; i < 2; i++) {
        struct alb_qp_init init = {.type = ALB_QPT_UD, .srq = srq};
        struct alb_qp_attr attr = pair_attr(c->pair, 1, NULL);
        qps[i] = pair_qp_with(c->pair, 1, &init);
        assert_int_equal(pair_move(c->pair, qps[i], ALB_QPS_RTS, &attr), 0);
    }
    c->qps[1] = qps[0];
    post(c, 8);
    pair_settle(c->pair);
    assert_int_equal(dropped(c, ALB_DROP_RECEIVE_TOO_SHORT), 1);
    assert_int_equal(alb_recv_queue_count(&srq->queue), 1);
    c->qps[1] = qps[1];
    post(c, 7);
    pair_settle(c->pair);
    pair_expect(c->pair, 1, 5, ALB_WC_SUCCESS);
    for (int i = 0; i < 2; i++)
        assert_int_equal(alb_qp_destroy(qps[i]), 0);
    assert_int_equal(alb_srq_destroy(srq), 0);
}

static void ud__a_broken_receive_is_an_error_of_ours(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    struct alb_sge sge = {.addr = 8, .length = 64, .lkey = 12345};
    bool bell;
    assert_int_equal(alb_qp_recv_post(c->qps[1], 1, &sge, 1, &bell), 0);
    post(c, 8);
    pair_settle(c->pair);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.status, ALB_WC_LOC_PROT_ERR);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
}

static void ud__anybody_who_knows_the_key(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    struct alb_roce roce = {
        .opcode = ALB_UD_SEND_ONLY,
        .pkey = 0xffff,
        .dest_qpn = alb_qp_number(c->qps[1]),
        .psn = 5,
        .qkey = 0x11111111,
        .src_qpn = 0x7777,
    };
    assert_int_equal(pair_receive(c->pair, c->qps[1], 9, 0, 140), 0);
    c->pair->hosts[0].addr.bytes[15] = 99;
    pair_inject(c->pair, 0, &roce, "hi", 2);
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.src_qpn, 0x7777);
    assert_int_equal(c->pair->hosts[1].memory[20 + 15], 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ud__arrives_behind_forty_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(ud__ipv4_header, setup, teardown),
        cmocka_unit_test_setup_teardown(ud__ipv6_header, setup, teardown),
        cmocka_unit_test_setup_teardown(ud__numbers_begin_where_the_program_says, setup, teardown),
        cmocka_unit_test_setup_teardown(ud__q_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(ud__one_packet_a_message, setup, teardown),
        cmocka_unit_test_setup_teardown(ud__no_receive_and_too_short_a_one, setup, teardown),
        cmocka_unit_test_setup_teardown(ud__too_short_a_receive_stays_in_the_shared_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(ud__a_broken_receive_is_an_error_of_ours, setup, teardown),
        cmocka_unit_test_setup_teardown(ud__anybody_who_knows_the_key, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
