// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static const struct alb_flow flow_a = {.peer = {.port = 4791}, .local = {.port = 0}, .path = 3, .traffic_class = 2};
static uint8_t payload[4096];

static void begin(struct alb_tx_builder *builder, const struct alb_flow *flow, uint32_t payload_bytes)
{
    struct alb_roce roce = {.opcode = ALB_RC_SEND_ONLY, .pkey = ALB_PKEY_DEFAULT, .dest_qpn = 0x123, .psn = 7};
    assert_true(alb_tx_has_room(builder, 1));
    alb_tx_begin(builder, flow, &roce, payload_bytes);
}

static void add(struct alb_tx_builder *builder, const struct alb_flow *flow, uint32_t payload_bytes)
{
    begin(builder, flow, payload_bytes);
    alb_tx_payload(builder, payload, payload_bytes);
    alb_tx_end(builder);
}

static struct fixture *start(void **state, struct alb_tx_builder *builder)
{
    struct fixture *f = *state;
    alb_tx_builder_init(builder, &f->tx);
    return f;
}

static void tx_end__segment_is_header_payload_trailer(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    memset(f->bytes, 0xee, sizeof(f->bytes));
    begin(&builder, &flow_a, 5);
    alb_tx_payload(&builder, payload, 2);
    alb_tx_payload(&builder, payload, 0);
    alb_tx_payload(&builder, payload + 9, 3);
    alb_tx_end(&builder);

    assert_int_equal(f->tx.segment_count, 1);
    assert_int_equal(f->segments[0].iov_first, 0);
    assert_int_equal(f->segments[0].iov_count, 4);
    assert_int_equal(f->segments[0].length, ALB_BTH_BYTES + 5 + 3 + ALB_ICRC_BYTES);
    assert_int_equal(f->iov[0].iov_len, ALB_BTH_BYTES);
    assert_ptr_equal(f->iov[1].iov_base, payload);
    assert_int_equal(f->iov[1].iov_len, 2);
    assert_ptr_equal(f->iov[2].iov_base, payload + 9);
    assert_int_equal(f->iov[2].iov_len, 3);
    assert_int_equal(f->iov[3].iov_len, 3 + ALB_ICRC_BYTES);
    static const uint8_t zeros[7];
    assert_memory_equal(f->iov[3].iov_base, zeros, 7);

    struct alb_roce roce;
    uint32_t offset, bytes;
    uint8_t packet[64];
    memset(packet, 0, sizeof(packet));
    memcpy(packet, f->iov[0].iov_base, f->iov[0].iov_len);
    assert_int_equal(alb_roce_decode(packet, ALB_BTH_BYTES + 8, &roce, &offset, &bytes), ALB_DROP_NONE);
    assert_int_equal(roce.pad, 3);
    assert_int_equal(roce.dest_qpn, 0x123);
    assert_int_equal(roce.psn, 7);
    assert_int_equal(bytes, 5);
}

static void tx_end__segments_of_a_batch_do_not_overlap(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    for (uint32_t i = 0; i < 8; i++)
        add(&builder, &flow_a, i);
    for (uint32_t i = 0; i < 8; i++) {
        const struct alb_segment *segment = &f->segments[i];
        const struct iovec *trailer = &f->iov[segment->iov_first + segment->iov_count - 1];
        uint8_t *end = (uint8_t *)trailer->iov_base + trailer->iov_len;
        assert_true(end <= f->bytes + f->tx.bytes_count);
        if (i < 7)
            assert_true(end <= (uint8_t *)f->iov[f->segments[i + 1].iov_first].iov_base);
    }
    assert_int_equal(f->tx.iov_count, f->segments[7].iov_first + f->segments[7].iov_count);
}

static void tx_begin__equal_segments_join(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    for (int i = 0; i < 3; i++)
        add(&builder, &flow_a, 1024);
    assert_int_equal(f->tx.burst_count, 1);
    assert_int_equal(f->bursts[0].segment_first, 0);
    assert_int_equal(f->bursts[0].segment_count, 3);
    assert_int_equal(f->bursts[0].segment_bytes, ALB_BTH_BYTES + 1024 + ALB_ICRC_BYTES);
    assert_int_equal(f->bursts[0].path, 3);
    assert_int_equal(f->bursts[0].traffic_class, 2);
    assert_int_equal(f->bursts[0].peer.port, 4791);
}

static void tx_begin__a_shorter_one_joins_and_closes(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    add(&builder, &flow_a, 1024);
    add(&builder, &flow_a, 100);
    add(&builder, &flow_a, 100);
    assert_int_equal(f->tx.burst_count, 2);
    assert_int_equal(f->bursts[0].segment_count, 2);
    assert_int_equal(f->bursts[1].segment_first, 2);
    assert_int_equal(f->bursts[1].segment_count, 1);
    assert_int_equal(f->bursts[1].segment_bytes, ALB_BTH_BYTES + 100 + ALB_ICRC_BYTES);
}

static void tx_begin__a_longer_one_does_not_join(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    add(&builder, &flow_a, 100);
    add(&builder, &flow_a, 104);
    assert_int_equal(f->tx.burst_count, 2);
}

static void tx_begin__another_flow_does_not_join(void **state)
{
    for (int i = 0; i < 5; i++) {
        struct alb_tx_builder builder;
        struct fixture *f = start(state, &builder);
        struct alb_flow other = flow_a;
        f->tx.burst_count = f->tx.segment_count = f->tx.iov_count = f->tx.bytes_count = 0;
        add(&builder, &flow_a, 64);
        other.peer.port += i == 0;
        other.local.addr.bytes[15] += i == 1;
        other.path += i == 2;
        other.traffic_class += i == 3;
        other.hop_limit += i == 4;
        add(&builder, &other, 64);
        assert_int_equal(f->tx.burst_count, 2);
        assert_memory_equal(&f->bursts[1].peer, &other.peer, sizeof(other.peer));
    }
}

// A burst is as changing as the most changing of its segments.
static void tx_payload_that_may_change__is_said_of_its_burst(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    add(&builder, &flow_a, 64);
    begin(&builder, &flow_a, 64);
    alb_tx_payload_that_may_change(&builder, payload, 64);
    alb_tx_end(&builder);
    add(&builder, &flow_a, 64);
    add(&builder, &flow_a, 128);
    assert_int_equal(f->tx.burst_count, 2);
    assert_true(f->bursts[0].may_change);
    assert_false(f->bursts[1].may_change);
}

static void tx_begin__burst_stays_within_its_limits(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    f->tx.burst_segments_max = 2;
    for (int i = 0; i < 5; i++)
        add(&builder, &flow_a, 64);
    assert_int_equal(f->tx.burst_count, 3);
    assert_int_equal(f->bursts[2].segment_count, 1);

    f->tx.burst_count = f->tx.segment_count = f->tx.iov_count = f->tx.bytes_count = 0;
    f->tx.burst_segments_max = 64;
    f->tx.burst_bytes_max = 3 * (ALB_BTH_BYTES + 64 + ALB_ICRC_BYTES) - 1;
    alb_tx_builder_init(&builder, &f->tx);
    for (int i = 0; i < 4; i++)
        add(&builder, &flow_a, 64);
    assert_int_equal(f->tx.burst_count, 2);
    assert_int_equal(f->bursts[0].segment_count, 2);
}

static void tx_burst_is_full__by_segments_and_by_bytes(void **state)
{
    const uint32_t length = ALB_BTH_BYTES + 64 + ALB_ICRC_BYTES;
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    f->tx.burst_segments_max = 2;
    assert_false(alb_tx_burst_is_full(&builder)); // there is none
    add(&builder, &flow_a, 64);
    assert_false(alb_tx_burst_is_full(&builder));
    f->tx.burst_bytes_max = 2 * length - 1;
    assert_true(alb_tx_burst_is_full(&builder));
    f->tx.burst_bytes_max = 2 * length;
    assert_false(alb_tx_burst_is_full(&builder));
    add(&builder, &flow_a, 64);
    assert_true(alb_tx_burst_is_full(&builder));
    f->tx.burst_segments_max = 3;
    f->tx.burst_bytes_max = 3 * length;
    assert_false(alb_tx_burst_is_full(&builder));
    add(&builder, &flow_a, 32); // a shorter one ends it
    assert_false(alb_tx_burst_is_full(&builder));
}

static void tx_begin__a_segment_given_up_leaves_no_trace(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    struct alb_flow other = flow_a;
    other.path = 9;
    begin(&builder, &other, 512);
    alb_tx_payload(&builder, payload, 100);
    assert_int_equal(f->tx.segment_count, 0);
    assert_int_equal(f->tx.burst_count, 0);
    add(&builder, &flow_a, 64);
    begin(&builder, &flow_a, 64);
    add(&builder, &flow_a, 64);
    assert_int_equal(f->tx.segment_count, 2);
    assert_int_equal(f->tx.burst_count, 1);
    assert_int_equal(f->bursts[0].path, 3);
    assert_int_equal(f->bursts[0].segment_count, 2);
    assert_int_equal(f->tx.iov_count, 6);
}

static void tx_has_room__asks_for_every_array(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    struct alb_tx whole = f->tx;
    assert_true(alb_tx_has_room(&builder, 1));
    f->tx.burst_capacity = 0;
    assert_false(alb_tx_has_room(&builder, 1));
    f->tx = whole;
    f->tx.segment_capacity = 0;
    assert_false(alb_tx_has_room(&builder, 1));
    f->tx = whole;
    f->tx.iov_capacity = 4;
    assert_true(alb_tx_has_room(&builder, 2));
    assert_false(alb_tx_has_room(&builder, 3));
    f->tx = whole;
    f->tx.bytes_capacity = ALB_ROCE_HEADER_MAX + 7;
    assert_false(alb_tx_has_room(&builder, 1));
    f->tx.bytes_capacity = ALB_ROCE_HEADER_MAX + 8;
    assert_true(alb_tx_has_room(&builder, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(tx_end__segment_is_header_payload_trailer),
        FIXTURE_TEST(tx_end__segments_of_a_batch_do_not_overlap),
        FIXTURE_TEST(tx_begin__equal_segments_join),
        FIXTURE_TEST(tx_begin__a_shorter_one_joins_and_closes),
        FIXTURE_TEST(tx_begin__a_longer_one_does_not_join),
        FIXTURE_TEST(tx_begin__another_flow_does_not_join),
        FIXTURE_TEST(tx_payload_that_may_change__is_said_of_its_burst),
        FIXTURE_TEST(tx_begin__burst_stays_within_its_limits),
        FIXTURE_TEST(tx_burst_is_full__by_segments_and_by_bytes),
        FIXTURE_TEST(tx_begin__a_segment_given_up_leaves_no_trace),
        FIXTURE_TEST(tx_has_room__asks_for_every_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
