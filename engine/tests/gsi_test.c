// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/cm_pair.h"

static const struct alb_cm_message rtu = {.type = ALB_CM_RTU, .local_id = 1, .remote_id = 2};

static void send__is_a_datagram_to_queue_pair_1(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    assert_true(alb_gsi_send(cm_engine(cm, 0), &target.av, target.gsi_qpn, &rtu));
    assert_false(alb_engine_is_quiet(cm_engine(cm, 0)));
    assert_true(alb_gsi_send(cm_engine(cm, 0), &target.av, target.gsi_qpn, &rtu));
    pair_send(cm->pair, 0);
    assert_int_equal(pair_count(cm->pair, 0), 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct pair_packet *packet = pair_peek(cm->pair, 0, i);
        assert_int_equal(packet->roce.opcode, ALB_UD_SEND_ONLY);
        assert_int_equal(packet->roce.dest_qpn, ALB_GSI_QPN);
        assert_int_equal(packet->roce.src_qpn, ALB_GSI_QPN);
        assert_int_equal(packet->roce.qkey, ALB_GSI_QKEY);
        assert_int_equal(packet->roce.psn, i);
    }
    assert_true(alb_engine_is_quiet(cm_engine(cm, 0)));
    pair_deliver_all(cm->pair, 0);
}

static void send__within_a_host_goes_to_the_slot(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    target.av.same_host = true;
    cm_engine(cm, 0)->config.slot = 7;
    assert_true(alb_gsi_send(cm_engine(cm, 0), &target.av, 3 << 16 | ALB_GSI_QPN, &rtu));
    assert_int_equal(cm_engine(cm, 0)->cm->gsi.ring[0].flow.peer.port, ALB_ROCE_PORT + 3);
    pair_send(cm->pair, 0);
    const struct pair_packet *packet = pair_peek(cm->pair, 0, 0);
    assert_int_equal(packet->roce.dest_qpn, 3 << 16 | ALB_GSI_QPN);
    assert_int_equal(packet->roce.src_qpn, 7 << 16 | ALB_GSI_QPN);
    cm_engine(cm, 0)->config.slot = 0;
    cm_lose(cm, 0);
}

// A device of the other kind has queue pair 3, and its peers have slots wherever they are.
static void send__as_configured(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_engine *engine = cm_engine(cm, 0);
    struct alb_cm_target target = cm_target(cm, 0);
    target.av.peer_has_slots = true;
    engine->config.slot = 7;
    engine->config.gsi_index = ALB_GSI_ALBEDO_QPN;
    assert_true(alb_gsi_send(engine, &target.av, 3 << 16 | ALB_GSI_ALBEDO_QPN, &rtu));
    assert_int_equal(engine->cm->gsi.ring[0].flow.peer.port, ALB_ROCE_PORT + 3);
    pair_send(cm->pair, 0);
    const struct pair_packet *packet = pair_peek(cm->pair, 0, 0);
    assert_int_equal(packet->roce.dest_qpn, 3 << 16 | ALB_GSI_ALBEDO_QPN);
    assert_int_equal(packet->roce.src_qpn, 7 << 16 | ALB_GSI_ALBEDO_QPN);
    engine->config.slot = 0;
    engine->config.gsi_index = ALB_GSI_QPN;
    cm_lose(cm, 0);
}

static void send__a_full_ring_refuses_and_recovers(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    uint32_t capacity = cm_engine(cm, 0)->cm->gsi.capacity;
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < capacity; i++)
            assert_true(alb_gsi_send(cm_engine(cm, 0), &target.av, target.gsi_qpn, &rtu));
        assert_false(alb_gsi_send(cm_engine(cm, 0), &target.av, target.gsi_qpn, &rtu));
        uint32_t sent = 0, now;
        while ((now = pair_send(cm->pair, 0)) > 0)
            sent += now;
        assert_int_equal(sent, capacity);
        while (pair_count(cm->pair, 0))
            cm_lose(cm, 0);
    }
}

static void rx__drops_what_is_no_message(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_roce good = {.opcode = ALB_UD_SEND_ONLY,
                            .pkey = ALB_PKEY_DEFAULT,
                            .dest_qpn = ALB_GSI_QPN,
                            .qkey = ALB_GSI_QKEY,
                            .src_qpn = ALB_GSI_QPN},
                    bad;
    uint8_t bytes[ALB_MAD_BYTES];
    alb_cm_encode(&rtu, bytes);

    bad = good;
    bad.qkey = 0x11111111;
    pair_inject(cm->pair, 0, &bad, bytes, sizeof(bytes));
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_BAD_QKEY), 1);
    bad = good;
    bad.pkey = 0x1234;
    pair_inject(cm->pair, 0, &bad, bytes, sizeof(bytes));
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_BAD_PKEY), 1);
    bad = good;
    bad.opcode = ALB_RC_SEND_ONLY;
    pair_inject(cm->pair, 0, &bad, bytes, sizeof(bytes));
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_BAD_SERVICE), 1);
    bad = good;
    bad.dest_qpn = 1 << 16 | ALB_GSI_QPN;
    pair_inject(cm->pair, 0, &bad, bytes, sizeof(bytes));
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_UNKNOWN_QP), 1);
    pair_inject(cm->pair, 0, &good, bytes, sizeof(bytes) - 4);
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_BAD_REQUEST), 1);
    bytes[1] = 4; // performance management
    pair_inject(cm->pair, 0, &good, bytes, sizeof(bytes));
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_BAD_REQUEST), 2);
    alb_cm_encode(&rtu, bytes);
    pair_inject(cm->pair, 0, &good, bytes, sizeof(bytes));
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_STALE_RESPONSE), 1);
    cm_expect_nothing_sent(cm, 1);
}

static void rx__only_the_queue_pair_configured(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_roce roce = {.opcode = ALB_UD_SEND_ONLY,
                            .pkey = ALB_PKEY_DEFAULT,
                            .dest_qpn = ALB_GSI_ALBEDO_QPN,
                            .qkey = ALB_GSI_QKEY,
                            .src_qpn = ALB_GSI_ALBEDO_QPN};
    uint8_t bytes[ALB_MAD_BYTES];
    alb_cm_encode(&rtu, bytes);
    pair_inject(cm->pair, 0, &roce, bytes, sizeof(bytes));
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_UNKNOWN_QP), 1);
    cm_engine(cm, 1)->config.gsi_index = ALB_GSI_ALBEDO_QPN;
    pair_inject(cm->pair, 0, &roce, bytes, sizeof(bytes));
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_STALE_RESPONSE), 1);
    roce.dest_qpn = ALB_GSI_QPN;
    pair_inject(cm->pair, 0, &roce, bytes, sizeof(bytes));
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_UNKNOWN_QP), 2);
    cm_engine(cm, 1)->config.gsi_index = ALB_GSI_QPN;
}

static void rx__without_a_manager_there_is_no_queue_pair_1(void **state)
{
    struct pair *pair = pair_new(NULL);
    struct alb_roce roce = {.opcode = ALB_UD_SEND_ONLY, .pkey = ALB_PKEY_DEFAULT, .dest_qpn = ALB_GSI_QPN};
    uint8_t bytes[ALB_MAD_BYTES] = {0};
    pair_inject(pair, 0, &roce, bytes, sizeof(bytes));
    assert_int_equal(pair->hosts[1].stats.dropped[ALB_DROP_UNKNOWN_QP], 1);
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CM_TEST(send__is_a_datagram_to_queue_pair_1),
        CM_TEST(send__within_a_host_goes_to_the_slot),
        CM_TEST(send__as_configured),
        CM_TEST(rx__only_the_queue_pair_configured),
        CM_TEST(send__a_full_ring_refuses_and_recovers),
        CM_TEST(rx__drops_what_is_no_message),
        cmocka_unit_test(rx__without_a_manager_there_is_no_queue_pair_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
