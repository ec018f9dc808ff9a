// SPDX-License-Identifier: BSD-2-Clause
// UC and UD over the scripted network (InfiniBand specification, volume 1, 9.8; RoCEv2: annex A17; CSA:
// docs/PROTOCOL.md, section 10).
#include "world.h"

enum {
    KB = 1024,
    PAYLOAD_MAX = 1108, // of a CSA packet: 4 KB are four segments
    NONE = UINT32_MAX,
};

static bool is_csa(void)
{
    return strcmp(world_transport, "csa") == 0;
}

static void unreliable_options(struct options *options, enum alb_qp_type type)
{
    options_default(options);
    options->type = type;
    options->path_payload_max = PAYLOAD_MAX;
    options->pair.packet_bytes_max = 8192;
}

static struct world *world_of(enum alb_qp_type type)
{
    struct options options;
    unreliable_options(&options, type);
    return world_new(&options);
}

// ---- UC -------------------------------------------------------------------------------------------------------------

// Three SENDs of four packets, the n-th packet in trouble.
static void uc_message_lost(uint32_t nth, enum alb_sim_action action, uint32_t lost)
{
    struct world *w = world_of(ALB_QPT_UC);
    on_way_to_b(w, (struct alb_sim_rule){NTH(nth), .action = action, .amount = action == ALB_SIM_CORRUPT ? 200 : 0});
    for (uint32_t i = 0; i < 3; i++)
        receive(&w->b, 10 + i, 64 * KB + i * 4 * KB, 4 * KB);
    for (uint32_t i = 0; i < 3; i++)
        post(w, &w->a, (struct work){ALB_WR_SEND_WITH_IMM, i, i * 4 * KB, 4 * KB, .imm = i});
    run_idle(w);
    for (uint32_t i = 0; i < 3; i++)
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS); // the sender does not learn it
    uint32_t got = 0;
    for (uint32_t i = 0; i < 3; i++) {
        struct alb_wc wc;
        if (i == lost)
            continue;
        expect_wc_as(w->b.recv_cq, 10 + got, ALB_WC_SUCCESS, &wc); // the receive of the lost one serves the next
        assert_int_equal(wc.imm_data, i);
        assert_int_equal(wc.byte_len, 4 * KB);
        expect_copied(&w->a, i * 4 * KB, &w->b, 64 * KB + got++ * 4 * KB, 4 * KB);
    }
    expect_none(w->b.recv_cq);
    assert_true(w->b.log_count == 0 || is_csa()); // whose engines get to know each other
    world_free(w);
}

static void uc__a_lost_packet_loses_its_message_only(void **state)
{
    for (uint32_t n = 1; n <= 12; n++) {
        uc_message_lost(n, ALB_SIM_DROP, (n - 1) / 4);
        uc_message_lost(n, ALB_SIM_CORRUPT, (n - 1) / 4);
    }
}

static void uc__a_packet_twice_or_out_of_order_loses_its_message(void **state)
{
    // In CSA each segment says where in its message it belongs; only the last one must be that.
    uc_message_lost(2, ALB_SIM_DUPLICATE, is_csa() ? NONE : 0);
    uc_message_lost(6, ALB_SIM_SWAP, is_csa() ? NONE : 1);
    uc_message_lost(7, ALB_SIM_SWAP, 1);
    if (is_csa())
        uc_message_lost(8, ALB_SIM_SWAP, 1); // the next message has begun
    uc_message_lost(8, ALB_SIM_DUPLICATE, NONE);
}

static void uc__no_receive_loses_the_message(void **state)
{
    struct world *w = world_of(ALB_QPT_UC);
    post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 3 * KB});
    run_idle(w);
    receive(&w->b, 9, 64 * KB, 4 * KB);
    post(w, &w->a, (struct work){ALB_WR_SEND, 2, 8 * KB, 3 * KB});
    run_idle(w);
    expect_wc(w->b.recv_cq, 9, ALB_WC_SUCCESS);
    expect_none(w->b.recv_cq);
    expect_copied(&w->a, 8 * KB, &w->b, 64 * KB, 3 * KB);
    assert_int_equal(w->b.host->stats.dropped[ALB_DROP_NO_RECEIVE], 1);
    world_free(w);
}

static void uc__bad_key_is_dropped_and_the_queue_pair_lives(void **state)
{
    struct world *w = world_of(ALB_QPT_UC);
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 1, 0, 3 * KB, 64 * KB, .rkey = 1});
    post(w, &w->a, (struct work){ALB_WR_RDMA_WRITE, 2, 0, 3 * KB, 64 * KB});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 3 * KB);
    expect_state(&w->b, ALB_QPS_RTS);
    world_free(w);
}

static void uc__requests_it_does_not_know_are_refused(void **state)
{
    struct world *w = world_of(ALB_QPT_UC);
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_READ, ALB_WR_ATOMIC_CMP_AND_SWP,
                                                 ALB_WR_ATOMIC_FETCH_AND_ADD, ALB_WR_ATOMIC_WRITE,
                                                 ALB_WR_SEND_WITH_INV};
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++)
        assert_int_equal(post(w, &w->a, (struct work){opcodes[i], i, 0, 8, 0}), 22);
    world_free(w);
}

static void uc__local_error_stops_sends_only(void **state)
{
    struct world *w = world_of(ALB_QPT_UC);
    struct alb_sge bad = {(uintptr_t)w->a.memory, 64, 77};
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 1, 0, 8});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 2, .sge = &bad, .sge_count = 1});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, 3, 0, 8});
    receive(&w->b, 8, 64 * KB, 64);
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_LOC_PROT_ERR);
    expect_wc(w->a.cq, 3, ALB_WC_WR_FLUSH_ERR);
    expect_wc(w->b.recv_cq, 8, ALB_WC_SUCCESS);
    expect_state(&w->a, ALB_QPS_SQE);
    receive(&w->a, 9, 96 * KB, 64);
    post(w, &w->b, (struct work){ALB_WR_SEND, 4, 0, 8}); // it still receives
    run_idle(w);
    expect_wc(w->a.recv_cq, 9, ALB_WC_SUCCESS);
    struct alb_qp_attr attr = {.state = ALB_QPS_RTS};
    assert_int_equal(alb_qp_modify(w->a.qp, &attr, ALB_QP_STATE, 0), 0);
    receive(&w->b, 10, 64 * KB, 64);
    post(w, &w->a, (struct work){ALB_WR_SEND, 5, 0, 8});
    run_idle(w);
    expect_wc(w->a.cq, 5, ALB_WC_SUCCESS);
    expect_wc(w->b.recv_cq, 10, ALB_WC_SUCCESS);
    world_free(w);
}

// ---- UD -------------------------------------------------------------------------------------------------------------

static struct alb_ah *handle(struct world *w, struct end *end)
{
    struct alb_ah *ah;
    struct alb_av av = {
        .local = end->host->addr, .peer = peer_of(w, end)->host->addr, .hop_limit = 33, .traffic_class = 0x28};
    assert_int_equal(alb_ah_create(end->pd, &av, &ah), 0);
    return ah;
}

static void ud_delivery(bool is_ipv6)
{
    struct options options;
    unreliable_options(&options, ALB_QPT_UD);
    alb_sim_pair_config_default(&options.pair, is_ipv6);
    options.pair.packet_bytes_max = 8192;
    for (uint32_t side = 0; side < ALB_SIM_SIDES; side++)
        assert_int_equal(alb_engine_config_transport(&options.pair.host[side].engine, world_transport), 0);
    struct world *w = world_new(&options);
    uint8_t traffic_class = 0x28 | (is_csa() ? ALB_ECN_ECT0 : 0);
    struct alb_ah *ah = handle(w, &w->a);
    receive(&w->b, 9, 64 * KB, 40 + 1000);
    post(w, &w->a,
         (struct work){ALB_WR_SEND_WITH_IMM, 1, 0, 1000, .imm = 0xabcd, .ah = ah, .remote_qpn = alb_qp_number(w->b.qp),
                       .remote_qkey = 0x1234});
    alb_ah_destroy(ah); // the request keeps what it needs
    run_idle(w);
    struct alb_wc wc;
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc_as(w->b.recv_cq, 9, ALB_WC_SUCCESS, &wc);
    assert_int_equal(wc.byte_len, 1040);
    assert_int_equal(wc.flags, ALB_WC_GRH | ALB_WC_WITH_IMM);
    assert_int_equal(wc.imm_data, 0xabcd);
    assert_int_equal(wc.src_qpn, alb_qp_number(w->a.qp));
    expect_copied(&w->a, 0, &w->b, 64 * KB + 40, 1000);
    const uint8_t *grh = w->b.memory + 64 * KB;
    if (is_ipv6) {
        assert_int_equal(grh[0] << 4 | grh[1] >> 4, 0x600 | traffic_class);
        assert_int_equal(grh[1] & 0xf, 0);
        assert_int_equal(grh[7], 33);
        assert_memory_equal(grh + 8, w->a.host->addr.bytes, 16);
        assert_memory_equal(grh + 24, w->b.host->addr.bytes, 16);
    } else {
        assert_int_equal(grh[20], 0x45);
        assert_int_equal(grh[21], traffic_class);
        assert_int_equal(grh[28], 33);
        assert_memory_equal(grh + 32, w->a.host->addr.bytes + 12, 4);
        assert_memory_equal(grh + 36, w->b.host->addr.bytes + 12, 4);
    }
    world_free(w);
}

static void ud__delivers_with_the_network_header(void **state)
{
    ud_delivery(false);
    ud_delivery(true);
}

static void ud_dropped(uint32_t qkey, uint32_t receive_bytes, uint32_t bytes, enum alb_drop reason)
{
    struct world *w = world_of(ALB_QPT_UD);
    struct alb_ah *ah = handle(w, &w->a);
    if (receive_bytes)
        receive(&w->b, 9, 64 * KB, receive_bytes);
    post(w, &w->a,
         (struct work){ALB_WR_SEND, 1, 0, bytes, .ah = ah, .remote_qpn = alb_qp_number(w->b.qp), .remote_qkey = qkey});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_none(w->b.recv_cq);
    assert_int_equal(w->b.host->stats.dropped[reason], 1);
    expect_state(&w->b, ALB_QPS_RTS);
    alb_ah_destroy(ah);
    world_free(w);
}

static void ud__drops_by_reason(void **state)
{
    ud_dropped(0x1235, 1024, 100, ALB_DROP_BAD_QKEY);
    ud_dropped(0x1234, 0, 100, ALB_DROP_NO_RECEIVE);
    ud_dropped(0x1234, 139, 100, ALB_DROP_RECEIVE_TOO_SHORT);
}

static void ud__privileged_qkey_stands_for_its_own(void **state)
{
    struct world *w = world_of(ALB_QPT_UD);
    struct alb_ah *ah = handle(w, &w->a);
    receive(&w->b, 9, 64 * KB, KB);
    post(w, &w->a,
         (struct work){ALB_WR_SEND, 1, 0, 8, .ah = ah, .remote_qpn = alb_qp_number(w->b.qp),
                       .remote_qkey = 0x80000000u});
    run_idle(w);
    expect_wc(w->b.recv_cq, 9, ALB_WC_SUCCESS);
    alb_ah_destroy(ah);
    world_free(w);
}

static void ud__longer_than_a_packet_fails(void **state)
{
    struct world *w = world_of(ALB_QPT_UD);
    struct alb_ah *ah = handle(w, &w->a);
    post(w, &w->a, (struct work){ALB_WR_SEND, 1, 0, 4096, .ah = ah, .remote_qpn = 17, .remote_qkey = 0});
    post(w, &w->a, (struct work){ALB_WR_SEND, 2, 0, 4097, .ah = ah, .remote_qpn = 17, .remote_qkey = 0});
    run_idle(w);
    expect_wc(w->a.cq, 1, ALB_WC_SUCCESS);
    expect_wc(w->a.cq, 2, ALB_WC_LOC_LEN_ERR);
    expect_state(&w->a, ALB_QPS_SQE);
    alb_ah_destroy(ah);
    world_free(w);
}

// ---- pacing ---------------------------------------------------------------------------------------------------------

static void pacing__holds_unreliable_traffic_to_its_rate(void **state)
{
    struct options options;
    unreliable_options(&options, ALB_QPT_UC);
    options.send_wr_max = 1024;
    options.cq_entries = 1024;
    options.pair.host[ALB_SIM_A].engine.unreliable_bytes_per_s = 100000000; // 100 MB/s
    struct world *w = world_new(&options);
    for (uint32_t i = 0; i < 1000; i++)
        stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, i, 0, 4 * KB, 64 * KB});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    uint64_t bytes = 1000 * 4 * (KB + 64);
    alb_sim_time span = w->a.log[w->a.log_count - 1].at;
    // All but the bucket's own content (1 ms worth at most 100,000 bytes) and one burst take their time.
    assert_in_range(span / 1000000, (bytes - 110000) / 100, bytes / 100);
    for (uint32_t i = 0; i < 1000; i++)
        expect_wc(w->a.cq, i, ALB_WC_SUCCESS);
    world_free(w);
}

static int run(const char *transport)
{
    const struct CMUnitTest unreliable[] = {
        cmocka_unit_test(uc__a_lost_packet_loses_its_message_only),
        cmocka_unit_test(uc__a_packet_twice_or_out_of_order_loses_its_message),
        cmocka_unit_test(uc__no_receive_loses_the_message),
        cmocka_unit_test(uc__bad_key_is_dropped_and_the_queue_pair_lives),
        cmocka_unit_test(uc__requests_it_does_not_know_are_refused),
        cmocka_unit_test(uc__local_error_stops_sends_only),
        cmocka_unit_test(ud__delivers_with_the_network_header),
        cmocka_unit_test(ud__drops_by_reason),
        cmocka_unit_test(ud__privileged_qkey_stands_for_its_own),
        cmocka_unit_test(ud__longer_than_a_packet_fails),
        cmocka_unit_test(pacing__holds_unreliable_traffic_to_its_rate),
    };
    world_transport = transport;
    return cmocka_run_group_tests_name(transport, unreliable, NULL, NULL);
}

int main(void)
{
    return run("rc") + run("csa");
}
