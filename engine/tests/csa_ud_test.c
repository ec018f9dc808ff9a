// SPDX-License-Identifier: BSD-2-Clause
// UD over CSA: datagrams in frames, taken from any sender that has the queue key, without state for it.
#include "engine/csa_loose.h"

#include "engine/tests/csa_pair.h"

static struct pair *pair;
static struct alb_qp *qps[2];
static struct alb_ah *ah, *group;

#define QKEY 0x11111111 // pair_attr's

static void transport_csa(struct alb_engine_config *config)
{
    assert_int_equal(alb_engine_config_transport(config, "csa"), 0);
    config->txn_staging_bytes = 256 << 10;
}

static int set_up(void **state)
{
    pair = pair_new(transport_csa);
    pair_fill(pair);
    pair_connect(pair, ALB_QPT_UD, qps, NULL);
    struct alb_av av = {.local = pair->hosts[0].addr,
                        .peer = pair->hosts[1].addr,
                        .hop_limit = 33,
                        .traffic_class = 0x48,
                        .path_payload_max = 1472};
    assert_int_equal(alb_ah_create(pair->hosts[0].pd, &av, &ah), 0);
    assert_true(alb_addr_parse("239.1.2.3", &av.peer));
    assert_int_equal(alb_ah_create(pair->hosts[0].pd, &av, &group), 0);
    return 0;
}

static int tear_down(void **state)
{
    assert_int_equal(alb_ah_destroy(ah), 0);
    assert_int_equal(alb_ah_destroy(group), 0);
    pair_free(pair);
    return 0;
}

static void post(struct alb_ah *to, alb_qpn qpn, uint32_t length)
{
    struct alb_sge sge = pair_sge(pair, 0, 0, length);
    const struct alb_send_wr wr = {
        .wr_id = length,
        .opcode = ALB_WR_SEND_WITH_IMM,
        .flags = ALB_SEND_SIGNALED | ALB_SEND_SOLICITED,
        .sge = &sge,
        .sge_count = 1,
        .imm_data = 0x4321,
        .ah = to,
        .remote_qpn = qpn,
        .remote_qkey = QKEY,
    };
    assert_int_equal(pair_post(pair, qps[0], &wr), 0);
}

static void expect_receive(uint64_t wr_id, uint32_t length)
{
    struct alb_wc wc;
    assert_true(pair_poll(pair, 1, &wc));
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 40 + length);
    assert_int_equal(wc.flags, ALB_WC_GRH | ALB_WC_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x4321);
    assert_int_equal(wc.src_qpn, alb_qp_number(qps[0]));
    assert_int_equal(wc.sl, 0xA);
}

// Ten small ones in one packet, of which nothing is kept.
static void small_ones__share_a_packet(void **state)
{
    struct alb_csa_header header;
    struct alb_csa_cursor cursor;
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(pair_receive(pair, qps[1], i, 1000 * i, 40 + 100), 0);
        post(ah, alb_qp_number(qps[1]), 90 + i);
    }
    assert_int_equal(pair_send(pair, 0), 1);
    const struct alb_datagram *datagram = &pair_peek(pair, 0, 0)->datagram;
    assert_int_equal(datagram->traffic_class, 0x48 | ALB_ECN_ECT0);
    assert_int_equal(datagram->hop_limit, 33);
    assert_int_equal(alb_csa_decode(datagram->bytes, datagram->length, &header, &cursor), ALB_DROP_NONE);
    assert_int_equal(header.path, 255);
    pair_settle(pair);
    for (uint32_t i = 0; i < 10; i++) {
        expect_receive(i, 90 + i);
        assert_memory_equal(pair->hosts[1].memory + 1000 * i + 40, pair->hosts[0].memory, 90 + i);
    }
    for (int side = 0; side < 2; side++)
        assert_int_equal(pair->hosts[side].engine->csa->assoc_count, 0);
}

// What does not fit any more is the next packet's; what fits none goes alone.
static void long_ones__keep_to_what_the_path_carries(void **state)
{
    for (uint32_t i = 0; i < 4; i++)
        post(ah, alb_qp_number(qps[1]), 600);
    post(ah, alb_qp_number(qps[1]), 4096);
    post(ah, alb_qp_number(qps[1]), 8);
    assert_int_equal(pair_send(pair, 0), 4);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(pair_peek(pair, 0, i)->datagram.length <= 1472 - ALB_ICRC_BYTES);
    assert_true(pair_peek(pair, 0, 2)->datagram.length > 4096);
}

// Where there is an association whose peer is known, its packets are used.
static void between_peers__packets_are_counted(void **state)
{
    struct alb_qp *rc[2];
    struct alb_csa_header header;
    struct alb_csa_cursor cursor;
    struct alb_wc wc;
    pair_connect(pair, ALB_QPT_RC, rc, NULL);
    assert_int_equal(pair_ask(pair, rc[0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 8), 0);
    pair_settle(pair);
    assert_true(pair_poll(pair, 0, &wc));
    struct alb_assoc_live *live = alb_csa_of(rc[0])->assoc->live;
    assert_int_equal(pair_receive(pair, qps[1], 9, 0, 40 + 100), 0);
    post(ah, alb_qp_number(qps[1]), 100);
    assert_int_equal(pair_send(pair, 0), 1);
    const struct alb_datagram *datagram = &pair_peek(pair, 0, 0)->datagram;
    assert_int_equal(alb_csa_decode(datagram->bytes, datagram->length, &header, &cursor), ALB_DROP_NONE);
    assert_true(header.path < live->paths->count);
    assert_int_equal(alb_psn_next(header.sequence), live->paths->path[header.path].next);
    assert_int_equal(header.destination_epoch, alb_assoc_epoch(pair->hosts[1].engine->csa, alb_csa_of(rc[1])->assoc));
    pair_settle(pair);
    expect_receive(9, 100);
}

// A stranger's frames other than datagrams are nothing to us.
static void strangers__are_heard_for_datagrams_only(void **state)
{
    uint8_t bytes[256] = {0};
    const struct alb_csa_header header = {.source_epoch = 77, .path = 255};
    const struct alb_csa_segment datagram = {.op = ALB_CSA_SEND_IMM,
                                             .imm_be = 0x4321,
                                             .dest_qpn = alb_qp_number(qps[1]),
                                             .qkey = QKEY,
                                             .payload_bytes = 4,
                                             .src_qpn = alb_qp_number(qps[0])};
    uint32_t at = ALB_CSA_OUTER_BYTES;
    alb_csa_encode(&header, bytes);
    at += alb_csa_encode_ping(0, bytes + at);
    at += alb_csa_encode_cnp(bytes + at);
    at += alb_csa_encode_hello(NULL, bytes + at);
    at += alb_csa_encode_segment(ALB_CSA_DATAGRAM, &datagram, bytes + at) + 4;
    const struct alb_datagram from = {.peer = {pair->hosts[0].addr, 4000},
                                      .local = {pair->hosts[1].addr, ALB_ROCE_PORT},
                                      .bytes = bytes,
                                      .length = at};
    assert_int_equal(pair_receive(pair, qps[1], 9, 0, 44), 0);
    alb_engine_rx(pair->hosts[1].engine, &from, 1, pair->now);
    expect_receive(9, 4);
    assert_int_equal(pair->hosts[1].stats.dropped[ALB_DROP_NOT_PROVEN], 3);
    assert_int_equal(pair_send(pair, 1), 0);
}

static void groups__get_a_packet_of_roce(void **state)
{
    const struct alb_addr *addr = &alb_ah_av(group)->peer;
    assert_int_equal(alb_qp_attach(qps[1], addr), 0);
    assert_int_equal(pair_receive(pair, qps[1], 9, 0, 40 + 100), 0);
    post(ah, alb_qp_number(qps[1]), 8);
    post(group, ALB_MULTICAST_QPN, 100);
    post(ah, alb_qp_number(qps[1]), 8);
    assert_int_equal(pair_send(pair, 0), 3);
    const struct pair_packet *packet = pair_peek(pair, 0, 1);
    assert_int_equal(packet->roce.opcode, ALB_UD_SEND_ONLY_IMM);
    assert_int_equal(packet->roce.dest_qpn, ALB_MULTICAST_QPN);
    pair_lose(pair, 0);
    pair_deliver(pair, 0);
    pair_lose(pair, 0);
    expect_receive(9, 100);
    assert_int_equal(alb_qp_detach(qps[1], addr), 0);
    pair_settle(pair);
}

static void packets_of_roce_to_one__are_dropped(void **state)
{
    const struct alb_roce roce = {
        .opcode = ALB_UD_SEND_ONLY, .pkey = ALB_PKEY_DEFAULT, .dest_qpn = alb_qp_number(qps[1]), .qkey = QKEY};
    pair_inject(pair, 0, &roce, "abcd", 4);
    assert_int_equal(pair->hosts[1].stats.dropped[ALB_DROP_BAD_SERVICE], 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(small_ones__share_a_packet),         CASE(long_ones__keep_to_what_the_path_carries),
        CASE(between_peers__packets_are_counted), CASE(strangers__are_heard_for_datagrams_only),
        CASE(groups__get_a_packet_of_roce),       CASE(packets_of_roce_to_one__are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
