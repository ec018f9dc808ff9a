// SPDX-License-Identifier: BSD-2-Clause
// What the engine throws away before a queue pair's delivery layer has looked at it in earnest, and how that is
// counted.
#include "engine/tests/pair.h"

#include "base/tests/test.h"

#include <stdlib.h>

struct context {
    struct pair *pair;
    struct alb_qp *qps[2];
    struct alb_roce roce; // a WRITE of nothing that side 1 takes from side 0
};

static int setup(void **state)
{
    struct context *c = calloc(1, sizeof(*c));
    c->pair = pair_new(NULL);
    pair_connect(c->pair, ALB_QPT_RC, c->qps, NULL);
    c->roce = (struct alb_roce){
        .opcode = ALB_RC_WRITE_ONLY, .pkey = 0xffff, .dest_qpn = alb_qp_number(c->qps[1]), .psn = PAIR_PSN};
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct context *c = *state;
    pair_free(c->pair);
    free(c);
    return 0;
}

static uint64_t dropped(const struct context *c, enum alb_drop reason)
{
    return c->pair->hosts[1].stats.dropped[reason];
}

static uint64_t dropped_in_all(const struct context *c)
{
    uint64_t sum = 0;
    for (int i = 0; i < ALB_DROP_COUNT; i++)
        sum += dropped(c, i);
    return sum;
}

// Side 1 receives the packet and drops it for that reason (NONE: takes it), counting nothing else.
static void expect(struct context *c, const struct alb_roce *roce, enum alb_drop reason)
{
    uint64_t before = dropped_in_all(c);
    uint64_t of_reason = dropped(c, reason);
    pair_inject(c->pair, 0, roce, NULL, 0);
    assert_int_equal(dropped_in_all(c) - before, reason != ALB_DROP_NONE);
    assert_int_equal(dropped(c, reason) - of_reason, reason != ALB_DROP_NONE);
}

static void alb_engine_rx__takes_what_fits(void **state)
{
    struct context *c = *state;
    expect(c, &c->roce, ALB_DROP_NONE);
    assert_int_equal(c->pair->hosts[1].stats.sum.counter[ALB_STAT_rcvd_pkts], 1);
    assert_int_equal(c->pair->hosts[1].stats.sum.counter[ALB_STAT_rcvd_bytes], 12 + 16 + ALB_ICRC_BYTES);
}

static void receive_bytes(struct context *c, const void *bytes, uint32_t length)
{
    // On the heap at its exact size, so that a sanitizer sees a byte read beyond it.
    uint8_t *copy = malloc(length ? length : 1);
    if (length)
        memcpy(copy, bytes, length);
    struct alb_datagram datagram = {
        .peer = {c->pair->hosts[0].addr, 1}, .local = {c->pair->hosts[1].addr, 4791}, .bytes = copy, .length = length};
    alb_engine_rx(c->pair->hosts[1].engine, &datagram, 1, c->pair->now);
    free(copy);
}

static void alb_engine_rx__truncated_at_every_length(void **state)
{
    struct context *c = *state;
    uint8_t bytes[ALB_ROCE_HEADER_MAX];
    uint32_t whole = alb_roce_encode(&c->roce, bytes);
    for (uint32_t length = 0; length < whole; length++)
        receive_bytes(c, bytes, length);
    assert_int_equal(dropped(c, ALB_DROP_TRUNCATED), whole);
    receive_bytes(c, bytes, whole);
    assert_int_equal(dropped_in_all(c), whole);
}

static void alb_engine_rx__bad_bytes(void **state)
{
    struct context *c = *state;
    uint8_t bytes[64] = {0};
    uint32_t length = alb_roce_encode(&c->roce, bytes);
    bytes[1] |= 1; // version
    receive_bytes(c, bytes, length);
    assert_int_equal(dropped(c, ALB_DROP_BAD_VERSION), 1);
    bytes[1] = 3 << 4; // three bytes of pad, and no payload
    receive_bytes(c, bytes, length);
    assert_int_equal(dropped(c, ALB_DROP_BAD_LENGTH), 1);
    bytes[1] = 0;
    receive_bytes(c, bytes, length + 1);
    assert_int_equal(dropped(c, ALB_DROP_BAD_LENGTH), 2);
    bytes[0] = 0x1f;
    receive_bytes(c, bytes, length);
    assert_int_equal(dropped(c, ALB_DROP_UNKNOWN_OPCODE), 1);
    assert_int_equal(dropped_in_all(c), 4);
}

static void alb_engine_rx__queue_pairs_that_are_not_there(void **state)
{
    struct context *c = *state;
    struct alb_roce roce = c->roce;
    roce.dest_qpn ^= 1;
    expect(c, &roce, ALB_DROP_UNKNOWN_QP);
    roce.dest_qpn = alb_qp_number(c->qps[1]) | 0x010000; // another process slot
    expect(c, &roce, ALB_DROP_UNKNOWN_QP);
    roce.dest_qpn = 0xffff; // beyond the table
    expect(c, &roce, ALB_DROP_UNKNOWN_QP);
    roce.dest_qpn = 0xffffff;
    expect(c, &roce, ALB_DROP_UNKNOWN_QP);
    roce.dest_qpn = 1;
    expect(c, &roce, ALB_DROP_UNKNOWN_QP);
}

static void alb_engine_rx__partition_keys(void **state)
{
    struct context *c = *state;
    struct alb_roce roce = c->roce;
    roce.pkey = 0x7ffe;
    expect(c, &roce, ALB_DROP_BAD_PKEY);
    roce.pkey = 0;
    expect(c, &roce, ALB_DROP_BAD_PKEY);
    roce.pkey = 0x7fff; // a limited member of the default partition
    expect(c, &roce, ALB_DROP_NONE);
}

static void alb_engine_rx__services(void **state)
{
    static const uint8_t others[] = {ALB_UC_WRITE_ONLY, ALB_UD_SEND_ONLY, ALB_XRC_WRITE_ONLY};
    struct context *c = *state;
    for (size_t i = 0; i < ALB_COUNT(others); i++) {
        struct alb_roce roce = c->roce;
        roce.opcode = others[i];
        expect(c, &roce, ALB_DROP_BAD_SERVICE);
    }
}

static void alb_engine_rx__states(void **state)
{
    struct context *c = *state;
    struct alb_qp *qp = pair_qp(c->pair, 1, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, c->qps[0]);
    struct alb_roce roce = c->roce;
    roce.dest_qpn = alb_qp_number(qp);
    expect(c, &roce, ALB_DROP_WRONG_QP_STATE);
    for (enum alb_qp_state next = ALB_QPS_INIT; next <= ALB_QPS_ERR; next++) {
        if (next == ALB_QPS_SQE) // not of a reliable one
            continue;
        attr.state = next;
        assert_int_equal(alb_qp_modify(qp, &attr, pair_mask(ALB_QPT_RC, next), c->pair->now), 0);
        bool takes = next == ALB_QPS_RTR || next == ALB_QPS_RTS || next == ALB_QPS_SQD;
        expect(c, &roce, takes ? ALB_DROP_NONE : ALB_DROP_WRONG_QP_STATE);
        roce.psn = alb_psn_add(roce.psn, takes);
    }
}

static void alb_engine_rx__only_the_connected_addresses(void **state)
{
    struct context *c = *state;
    struct pair_host *hosts = c->pair->hosts;
    const uint32_t *of_qp = c->qps[1]->stats->dropped;
    struct alb_addr real = hosts[0].addr;
    hosts[0].addr.bytes[15]++;
    expect(c, &c->roce, ALB_DROP_WRONG_PEER);
    hosts[0].addr = real;
    real = hosts[1].addr;
    hosts[1].addr.bytes[15]++;
    expect(c, &c->roce, ALB_DROP_WRONG_LOCAL);
    hosts[1].addr = real;
    assert_int_equal(of_qp[ALB_DROP_WRONG_PEER], 1);
    assert_int_equal(of_qp[ALB_DROP_WRONG_LOCAL], 1);
    expect(c, &c->roce, ALB_DROP_NONE);
}

static void alb_engine_rx__the_first_packet_establishes(void **state)
{
    struct context *c = *state;
    struct alb_event event;
    struct alb_qp *qp = pair_qp(c->pair, 1, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, c->qps[0]);
    assert_int_equal(pair_move(c->pair, qp, ALB_QPS_RTR, &attr), 0);
    assert_false(pair_event(c->pair, 1, ALB_EVENT_COMM_EST, &event));
    struct alb_roce roce = c->roce;
    roce.dest_qpn = alb_qp_number(qp);
    expect(c, &roce, ALB_DROP_NONE);
    assert_true(pair_event(c->pair, 1, ALB_EVENT_COMM_EST, &event));
    assert_ptr_equal(event.qp, qp);
    roce.psn = alb_psn_next(roce.psn);
    expect(c, &roce, ALB_DROP_NONE);
    assert_false(pair_event(c->pair, 1, ALB_EVENT_COMM_EST, &event));
}

static void alb_engine_rx__several_at_once(void **state)
{
    struct context *c = *state;
    uint8_t bytes[3][ALB_ROCE_HEADER_MAX];
    struct alb_datagram datagrams[3];
    for (uint32_t i = 0; i < 3; i++) {
        c->roce.psn = alb_psn_add(PAIR_PSN, (int32_t)i);
        datagrams[i] = (struct alb_datagram){
            .peer = {c->pair->hosts[0].addr, 1},
            .local = {c->pair->hosts[1].addr, 4791},
            .bytes = bytes[i],
            .length = alb_roce_encode(&c->roce, bytes[i]),
        };
    }
    datagrams[1].length = 11; // one bad packet does not hurt its neighbours
    alb_engine_rx(c->pair->hosts[1].engine, datagrams, 3, c->pair->now);
    assert_int_equal(dropped(c, ALB_DROP_TRUNCATED), 1);
    assert_int_equal(dropped(c, ALB_DROP_OUT_OF_SEQUENCE), 1);
    assert_int_equal(dropped_in_all(c), 2);
}

static void alb_engine_rx__marks_are_counted(void **state)
{
    struct context *c = *state;
    uint8_t bytes[ALB_ROCE_HEADER_MAX];
    for (uint8_t ecn = 0; ecn < 4; ecn++) {
        struct alb_datagram datagram = {
            .peer = {c->pair->hosts[0].addr, 1},
            .local = {c->pair->hosts[1].addr, 4791},
            .traffic_class = (uint8_t)(0x40 | ecn),
            .bytes = bytes,
            .length = alb_roce_encode(&c->roce, bytes),
        };
        alb_engine_rx(c->pair->hosts[1].engine, &datagram, 1, c->pair->now);
    }
    assert_int_equal(c->pair->hosts[1].stats.sum.counter[ALB_STAT_ecn_marked_pkts], 1);
}

static void trace(struct alb_engine_config *config)
{
    config->trace_records = 16;
}

// A packet too short to name a queue pair is not blamed on the one before it.
static void alb_engine_rx__traces_a_drop_with_what_is_known(void **state)
{
    struct pair *pair = pair_new(trace);
    struct alb_roce roce = {.opcode = ALB_RC_ACK, .pkey = 0xffff, .dest_qpn = 77, .psn = 88};
    uint8_t bytes[ALB_ROCE_HEADER_MAX];
    struct alb_datagram datagrams[2];
    for (uint32_t i = 0; i < 2; i++)
        datagrams[i] = (struct alb_datagram){.bytes = bytes, .length = alb_roce_encode(&roce, bytes)};
    datagrams[1].length = 11;
    alb_engine_rx(pair->hosts[0].engine, datagrams, 2, pair->now);
    struct alb_trace_record record;
    assert_true(alb_engine_trace(pair->hosts[0].engine, &record));
    assert_int_equal(record.qpn, 77);
    assert_int_equal(record.psn, 88);
    assert_true(alb_engine_trace(pair->hosts[0].engine, &record));
    assert_int_equal(record.qpn, 0);
    assert_int_equal(record.psn, 0);
    pair_free(pair);
}

static void alb_engine_count_drop__counts(void **state)
{
    struct context *c = *state;
    alb_engine_count_drop(c->pair->hosts[1].engine, ALB_DROP_BAD_ICRC);
    alb_engine_count_drop(c->pair->hosts[1].engine, ALB_DROP_BAD_ICRC);
    assert_int_equal(dropped(c, ALB_DROP_BAD_ICRC), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_engine_rx__takes_what_fits, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__truncated_at_every_length, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__bad_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__queue_pairs_that_are_not_there, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__partition_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__services, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__states, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__only_the_connected_addresses, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__the_first_packet_establishes, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__several_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__marks_are_counted, setup, teardown),
        cmocka_unit_test(alb_engine_rx__traces_a_drop_with_what_is_known),
        cmocka_unit_test_setup_teardown(alb_engine_count_drop__counts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
