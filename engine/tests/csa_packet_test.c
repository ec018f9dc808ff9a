// SPDX-License-Identifier: BSD-2-Clause
// A packet that is being filled while a queue pair that has segments in it comes to its end.
#include "engine/tests/pair.h"

#include "base/tests/test.h"

static void transport_csa(struct alb_engine_config *config)
{
    assert_int_equal(alb_engine_config_transport(config, "csa"), 0);
    config->txn_staging_bytes = 256 << 10;
    config->path = "single";
    config->congestion = "fixed";
}

// The answer to a READ is in the packet already when the queue pair's own next request turns out to be wrong.
static void csa_packet__a_queue_pair_fails_while_its_packet_is_open(void **state)
{
    struct pair *pair = pair_new(transport_csa);
    struct alb_qp *qps[2];
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    assert_int_equal(pair_ask(pair, qps[0], ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 0, 64), 0);
    pair_send(pair, 0);
    pair_send(pair, 1); // nothing: what it sends first from now on is the answer
    pair_deliver_all(pair, 0);

    struct alb_sge sge = pair_sge(pair, 1, 0, 64);
    sge.lkey ^= 1;
    const struct alb_send_wr wrong = {
        .wr_id = 2, .opcode = ALB_WR_RDMA_WRITE, .flags = ALB_SEND_SIGNALED, .sge = &sge, .sge_count = 1};
    assert_int_equal(pair_post(pair, qps[1], &wrong), 0);
    assert_true(pair_send(pair, 1) > 0);
    assert_int_equal(alb_qp_current_state(qps[1]), ALB_QPS_ERR);
    struct alb_wc wc;
    assert_true(pair_poll(pair, 1, &wc));
    assert_int_equal(wc.status, ALB_WC_LOC_PROT_ERR);

    // What had been sent is not in flight any more, on its path neither, and what arrives of it is good.
    const struct alb_csa *csa = alb_csa_of(qps[1]);
    assert_int_equal(csa->assoc->live->inflight_bytes, 0);
    assert_int_equal(alb_path_load(csa->assoc->live->paths, 0)->inflight_bytes, 0);
    pair_deliver_all(pair, 1);
    assert_true(pair_poll(pair, 0, &wc));
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csa_packet__a_queue_pair_fails_while_its_packet_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
