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

static const enum alb_qp_type types[] = {ALB_QPT_RC, ALB_QPT_UC, ALB_QPT_UD};

static struct alb_qp_init small_init(const struct pair *pair, enum alb_qp_type type)
{
    return (struct alb_qp_init){
        .type = type,
        .send_cq = pair->hosts[0].cq,
        .recv_cq = pair->hosts[0].cq,
        .cap = {.send_wr_max = 1, .recv_wr_max = 1, .send_sge_max = 1, .recv_sge_max = 1},
    };
}

static void few(struct alb_engine_config *config)
{
    config->send_wr_max = 100;
    config->recv_wr_max = 50;
    config->sge_max = 3;
    config->inline_max_bytes = 99;
}

static void alb_qp_create__limits(void **state)
{
    struct pair *pair = pair_new(few);
    const struct {
        struct alb_qp_cap cap;
        int error;
    } rows[] = {
        {{0, 0, 0, 0, 0}, 0},      {{100, 50, 3, 3, 99}, 0},  {{101, 0, 0, 0, 0}, EINVAL}, {{0, 51, 0, 0, 0}, EINVAL},
        {{0, 0, 4, 0, 0}, EINVAL}, {{0, 0, 0, 4, 0}, EINVAL}, {{0, 0, 0, 0, 100}, EINVAL},
    };
    for (size_t i = 0; i < ALB_COUNT(rows); i++) {
        struct alb_qp_init init = small_init(pair, ALB_QPT_RC);
        struct alb_qp *qp;
        init.cap = rows[i].cap;
        assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &qp), rows[i].error);
        if (rows[i].error)
            continue;
        assert_true(init.cap.send_wr_max >= rows[i].cap.send_wr_max); // what it got, never less than was asked for
        assert_true(init.cap.recv_wr_max >= rows[i].cap.recv_wr_max);
        assert_int_equal(alb_qp_destroy(qp), 0);
    }
    pair_free(pair);
}

static void alb_qp_create__types_and_queues(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp;
    struct alb_qp_init init = small_init(pair, 8);
    assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &qp), EOPNOTSUPP);
    init = small_init(pair, ALB_QPT_RC);
    init.send_cq = NULL;
    assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &qp), EINVAL);
    init = small_init(pair, ALB_QPT_RC);
    init.recv_cq = NULL;
    assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &qp), EINVAL);
}

// Numbers are of this process's slot, never reserved, never twice, and do not follow each other.
static void slot_seven(struct alb_engine_config *config)
{
    config->slot = 7;
}

static void alb_qp_create__numbers(void **state)
{
    struct pair *pair = pair_new(slot_seven);
    bool is_used[128] = {false};
    uint32_t last = 0, steps = 0;
    for (int i = 0; i < 128 - ALB_QPN_RESERVED; i++) {
        struct alb_qp *qp = pair_qp(pair, 0, types[i % 3]);
        uint32_t index = alb_qp_number(qp) & 0xffff;
        assert_int_equal(alb_qp_number(qp) >> 16, 7);
        assert_in_range(index, ALB_QPN_RESERVED, 127);
        assert_false(is_used[index]);
        is_used[index] = true;
        steps += i > 0 && index == last + 1;
        last = index;
        assert_ptr_equal(alb_engine_find_qp(pair->hosts[0].engine, alb_qp_number(qp)), qp);
    }
    assert_true(steps < 40);
    struct alb_qp_init init = small_init(pair, ALB_QPT_RC);
    struct alb_qp *qp;
    assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &qp), ENOMEM);
    pair_free(pair);
}

static void alb_qp_create__a_number_of_choice(void **state)
{
    struct pair *pair = pair_new(slot_seven);
    struct alb_qp *qp, *second;
    struct alb_qp_init init = small_init(pair, ALB_QPT_UD);
    init.qpn = 7 << 16 | 1; // that of the general services
    assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &qp), 0);
    assert_int_equal(alb_qp_number(qp), 7 << 16 | 1);
    assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &second), EADDRINUSE);
    init.qpn = 6 << 16 | 50;
    assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &second), EADDRINUSE);
    init.qpn = 7 << 16 | 128;
    assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &second), EADDRINUSE);
    for (int i = 0; i < 128 - ALB_QPN_RESERVED; i++) // a reserved one takes the place of none
        pair_qp(pair, 0, ALB_QPT_RC);
    pair_free(pair);
}

static void full_table(struct alb_engine_config *config)
{
    config->slot = 255;
    config->qp_max = 65536;
}

static void alb_qp_create__never_the_multicast_number(void **state)
{
    struct pair *pair = pair_new(full_table);
    struct alb_qp *qp;
    struct alb_qp_init init = small_init(pair, ALB_QPT_UD);
    init.cap = (struct alb_qp_cap){0};
    init.qpn = 0xffffff;
    assert_int_equal(alb_qp_create(pair->hosts[0].pd, &init, &qp), EADDRINUSE);
    pair_free(pair);
}

static void alb_qp_create__no_memory(void **state)
{
    struct pair *pair = *state;
    struct pair_host *host = &pair->hosts[0];
    for (size_t t = 0; t < ALB_COUNT(types); t++) {
        size_t held = host->bytes_held;
        struct alb_qp *qp;
        int error = ENOMEM;
        for (uint64_t i = 1; error; i++) {
            struct alb_qp_init init = small_init(pair, types[t]);
            assert_true(i < 20);
            host->refused_from = i;
            error = alb_qp_create(host->pd, &init, &qp);
            host->refused_from = 0;
            if (error)
                assert_int_equal(error, ENOMEM);
            if (error)
                assert_int_equal(host->bytes_held, held);
        }
        assert_int_equal(alb_qp_destroy(qp), 0);
        assert_int_equal(host->bytes_held, held);
    }
}

static void alb_qp_create__holds_what_it_uses(void **state)
{
    struct pair *pair = *state;
    struct pair_host *host = &pair->hosts[0];
    struct alb_pd *pd;
    struct alb_cq *send_cq, *recv_cq;
    struct alb_srq *srq;
    struct alb_qp *qp;
    assert_int_equal(alb_pd_create(host->engine, &pd), 0);
    assert_int_equal(alb_cq_create(host->engine, 4, NULL, &send_cq), 0);
    assert_int_equal(alb_cq_create(host->engine, 4, NULL, &recv_cq), 0);
    assert_int_equal(alb_srq_create(host->pd, 4, 1, 0, NULL, &srq), 0);
    struct alb_qp_init init = {.type = ALB_QPT_RC, .send_cq = send_cq, .recv_cq = recv_cq, .srq = srq};
    assert_int_equal(alb_qp_create(pd, &init, &qp), 0);
    assert_int_equal(alb_pd_destroy(pd), EBUSY);
    assert_int_equal(alb_cq_destroy(send_cq), EBUSY);
    assert_int_equal(alb_cq_destroy(recv_cq), EBUSY);
    assert_int_equal(alb_srq_destroy(srq), EBUSY);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(alb_srq_destroy(srq), 0);
    assert_int_equal(alb_cq_destroy(recv_cq), 0);
    assert_int_equal(alb_cq_destroy(send_cq), 0);
    assert_int_equal(alb_pd_destroy(pd), 0);
}

static struct alb_qp_stats shared_stats[128];

static void share_stats(struct alb_engine_config *config)
{
    config->qp_stats = shared_stats;
}

// A reader of the driver's memory sees a queue pair's number, its state, and when it has gone.
static void alb_qp_create__counters_where_the_driver_wants_them(void **state)
{
    struct pair *pair = pair_new(share_stats);
    struct alb_qp *qp = pair_qp(pair, 0, ALB_QPT_RC);
    struct alb_qp_stats *stats = &shared_stats[alb_qp_number(qp) & 0xffff];
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    attr.dest_qpn = 99;
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    assert_int_equal(stats->qpn, alb_qp_number(qp));
    assert_int_equal(stats->type, ALB_QPT_RC);
    assert_int_equal(stats->state, ALB_QPS_RTS);
    assert_int_equal(stats->dest_qpn, 99);
    assert_int_equal(stats->path_mtu_bytes, 1024);
    assert_memory_equal(stats->peer, pair->hosts[1].addr.bytes, 16);
    assert_int_equal(pair_ask(pair, qp, ALB_WR_RDMA_WRITE, 1, 0, 0, 8), 0);
    pair_send(pair, 0);
    assert_int_equal(stats->stats.counter[ALB_STAT_sent_pkts], 1);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(stats->qpn, 0);
    pair_free(pair);
}

static void at_least_10_ms(struct alb_engine_config *config)
{
    config->ack_timeout_min_ns = 10 * ALB_NS_PER_MS;
}

static void alb_qp_ack_timeout_ns__is_from_one_to_four_times_what_was_asked_for(void **state)
{
    struct pair *pair = pair_new(at_least_10_ms);
    struct alb_qp *qp = pair_qp(pair, 0, ALB_QPT_RC);
    const struct {
        uint8_t timeout;
        alb_time ns[3]; // stretched by 1, 2, 4
    } rows[] = {
        {0, {ALB_TIME_NEVER, ALB_TIME_NEVER, ALB_TIME_NEVER}},
        {1, {10000000, 20000000, 40000000}},
        {13, {33554432, 67108864, 134217728}},
        {14, {67108864, 134217728, 268435456}},
        {15, {134217728, 268435456, 268435456}},
        {16, {268435456, 268435456, 268435456}},
        {31, {4096ull << 31, 4096ull << 31, 4096ull << 31}},
    };
    for (size_t i = 0; i < ALB_COUNT(rows); i++) {
        qp->attr.timeout = rows[i].timeout;
        for (uint32_t doublings = 0; doublings < 3; doublings++)
            assert_int_equal(alb_qp_ack_timeout_ns(qp, 1u << doublings), rows[i].ns[doublings]);
    }
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_qp_create__limits),
        cmocka_unit_test_setup_teardown(alb_qp_create__types_and_queues, setup, teardown),
        cmocka_unit_test(alb_qp_create__numbers),
        cmocka_unit_test(alb_qp_create__a_number_of_choice),
        cmocka_unit_test(alb_qp_create__never_the_multicast_number),
        cmocka_unit_test_setup_teardown(alb_qp_create__no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_create__holds_what_it_uses, setup, teardown),
        cmocka_unit_test(alb_qp_create__counters_where_the_driver_wants_them),
        cmocka_unit_test(alb_qp_ack_timeout_ns__is_from_one_to_four_times_what_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
