// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/pair.h"

#include "base/tests/test.h"

static int setup(void **state)
{
    *state = pair_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    pair_free(*state);
    return 0;
}

static void use_csa(struct alb_engine_config *config)
{
    alb_engine_config_transport(config, "csa");
}

// Numbers of the connection before are none of a queue pair that was reset.
static void alb_qp_query__no_numbers_of_before_a_reset(void **state)
{
    static const enum alb_qp_type types[] = {ALB_QPT_RC, ALB_QPT_UC, ALB_QPT_UD};
    for (size_t i = 0; i < 2 * ALB_COUNT(types); i++) {
        struct pair *pair = pair_new(i % 2 ? use_csa : NULL);
        enum alb_qp_type type = types[i / 2];
        struct alb_qp *qps[2];
        struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
        struct alb_qp_init init;
        pair_connect(pair, type, qps, NULL);
        assert_int_equal(alb_qp_modify(qps[0], &attr, ALB_QP_STATE, pair->now), 0);
        attr = pair_attr(pair, 0, NULL);
        assert_int_equal(pair_move(pair, qps[0], ALB_QPS_INIT, &attr), 0);
        attr.state = ALB_QPS_ERR;
        assert_int_equal(alb_qp_modify(qps[0], &attr, ALB_QP_STATE, pair->now), 0);
        alb_qp_query(qps[0], &attr, &init);
        assert_int_equal(attr.sq_psn, 0);
        assert_int_equal(attr.rq_psn, 0);
        pair_free(pair);
    }
}

// Each attribute at its last good value and at its first bad one, with the move that needs it.
static void alb_qp_modify__ranges(void **state)
{
    struct pair *pair = *state;
    const struct {
        enum alb_qp_state to;
        size_t offset;
        size_t bytes;
        uint64_t good, bad;
    } rows[] = {
#define FIELD(field) offsetof(struct alb_qp_attr, field), sizeof(((struct alb_qp_attr *)0)->field)
        {ALB_QPS_INIT, FIELD(port), 1, 0},
        {ALB_QPS_INIT, FIELD(port), 1, 2},
        {ALB_QPS_INIT, FIELD(pkey_index), 0, 1},
        {ALB_QPS_INIT, FIELD(access), PAIR_ACCESS_ALL, 1 << 5},
        {ALB_QPS_INIT, FIELD(access), 0, 1u << 31},
        {ALB_QPS_RTR, FIELD(path_mtu_bytes), 256, 255},
        {ALB_QPS_RTR, FIELD(path_mtu_bytes), 4096, 8192},
        {ALB_QPS_RTR, FIELD(path_mtu_bytes), 2048, 1500},
        {ALB_QPS_RTR, FIELD(path_mtu_bytes), 512, 0},
        {ALB_QPS_RTR, FIELD(min_rnr_timer), 31, 32},
        {ALB_QPS_RTR, FIELD(max_dest_rd_atomic), 128, 129},
        {ALB_QPS_RTS, FIELD(timeout), 31, 32},
        {ALB_QPS_RTS, FIELD(retry_cnt), 7, 8},
        {ALB_QPS_RTS, FIELD(rnr_retry), 7, 8},
        {ALB_QPS_RTS, FIELD(max_rd_atomic), 128, 129},
#undef FIELD
    };
    for (size_t i = 0; i < ALB_COUNT(rows); i++) {
        struct alb_qp *qp = pair_qp(pair, 0, ALB_QPT_RC);
        struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
        if (rows[i].to > ALB_QPS_INIT)
            assert_int_equal(pair_move(pair, qp, rows[i].to - 1, &attr), 0);
        struct alb_qp_attr before = qp->attr;
        attr.state = rows[i].to;
        memcpy((uint8_t *)&attr + rows[i].offset, &rows[i].bad, rows[i].bytes);
        assert_int_equal(alb_qp_modify(qp, &attr, pair_mask(ALB_QPT_RC, rows[i].to), pair->now), EINVAL);
        assert_int_equal(alb_qp_current_state(qp), rows[i].to - 1);
        assert_memory_equal(&qp->attr, &before, sizeof(before));
        memcpy((uint8_t *)&attr + rows[i].offset, &rows[i].good, rows[i].bytes);
        assert_int_equal(alb_qp_modify(qp, &attr, pair_mask(ALB_QPT_RC, rows[i].to), pair->now), 0);
        assert_int_equal(alb_qp_destroy(qp), 0);
    }
}

static void small_mtu(struct alb_engine_config *config)
{
    config->mtu_max_bytes = 1400; // what an Ethernet leaves
}

static void alb_qp_modify__mtu_of_the_device(void **state)
{
    struct pair *pair = pair_new(small_mtu);
    struct alb_qp *qp = pair_qp(pair, 0, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    attr.path_mtu_bytes = 2048;
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTR, &attr), EINVAL);
    attr.state = ALB_QPS_RTR;
    attr.path_mtu_bytes = 1024;
    assert_int_equal(alb_qp_modify(qp, &attr, pair_mask(ALB_QPT_RC, ALB_QPS_RTR), pair->now), 0);
    pair_free(pair);
}

// Allowed by the table, and not offered by the device.
static void alb_qp_modify__what_the_device_does_not_offer(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = pair_qp(pair, 0, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    attr.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_STATE | ALB_QP_ALT_PATH, pair->now), EOPNOTSUPP);
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_STATE | ALB_QP_PATH_MIG_STATE, pair->now), EOPNOTSUPP);
}

static void alb_qp_modify__the_state_it_is_said_to_be_in(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = pair_qp(pair, 0, ALB_QPT_UD);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    attr.state = ALB_QPS_RTS;
    attr.cur_state = ALB_QPS_SQD;
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_STATE | ALB_QP_CUR_STATE, pair->now), EINVAL);
    attr.cur_state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_STATE | ALB_QP_CUR_STATE, pair->now), 0);
    attr.qkey = 77; // a change of attributes alone is a move from the state to itself
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_QKEY, pair->now), 0);
    assert_int_equal(qp->attr.qkey, 77);
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_AV, pair->now), EINVAL);
}

static void alb_qp_query__what_was_given(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = pair_qp(pair, 0, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL), got;
    struct alb_qp_init init;
    attr.dest_qpn = 0x1234567; // 24 bits count
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    alb_qp_query(qp, &got, &init);
    assert_int_equal(got.state, ALB_QPS_RTS);
    assert_int_equal(got.cur_state, ALB_QPS_RTS);
    assert_int_equal(got.access, attr.access);
    assert_int_equal(got.path_mtu_bytes, 1024);
    assert_int_equal(got.timeout, 10);
    assert_int_equal(got.max_rd_atomic, 4);
    assert_int_equal(got.dest_qpn, 0x234567);
    assert_memory_equal(&got.av.peer, &pair->hosts[1].addr, sizeof(struct alb_addr));
    assert_int_equal(init.type, ALB_QPT_RC);
    assert_ptr_equal(init.send_cq, pair->hosts[0].cq);
    assert_int_equal(init.qpn, alb_qp_number(qp));
    assert_int_equal(init.cap.send_wr_max, 16);
    struct alb_qp_attr reset = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(qp, &reset, ALB_QP_STATE, pair->now), 0);
    alb_qp_query(qp, &got, &init);
    assert_int_equal(got.state, ALB_QPS_RESET);
    assert_int_equal(got.path_mtu_bytes, 0);
}

static void alb_flow_from_av__ports(void **state)
{
    struct pair *pair = *state;
    struct alb_av av = pair_attr(pair, 0, NULL).av;
    struct alb_flow flow;
    alb_flow_from_av(&flow, &av, 0x051234);
    assert_int_equal(flow.peer.port, 4791);
    av.same_host = true;
    alb_flow_from_av(&flow, &av, 0x051234);
    assert_int_equal(flow.peer.port, 4791 + 5);
    assert_int_equal(flow.hop_limit, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_qp_modify__ranges, setup, teardown),
        cmocka_unit_test(alb_qp_modify__mtu_of_the_device),
        cmocka_unit_test_setup_teardown(alb_qp_modify__what_the_device_does_not_offer, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_modify__the_state_it_is_said_to_be_in, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_query__what_was_given, setup, teardown),
        cmocka_unit_test(alb_qp_query__no_numbers_of_before_a_reset),
        cmocka_unit_test_setup_teardown(alb_flow_from_av__ports, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
