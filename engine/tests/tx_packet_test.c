// SPDX-License-Identifier: BSD-2-Clause
// Packets of frames: what the batch holds of them, byte by byte.
#include "engine/tests/fixture.h"

enum {
    HEADER_BYTES = 20,
    FRAME_BYTES = 24,
    LONG_BYTES = 300, // referred to
    SHORT_BYTES = 30, // copied
    REF_BYTES = 256,  // room that a reference may need, if it is copied
    TRAILER_BYTES = 8,
};

static const struct alb_flow flow = {.peer = {.port = 4791}, .path = 3, .traffic_class = 2, .may_be_cut = true};
static uint8_t payload[4096];

static struct fixture *start(void **state, struct alb_tx_builder *builder)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 7 + 1);
    memset(f->bytes, 0xee, sizeof(f->bytes));
    f->tx.burst_count = f->tx.segment_count = f->tx.iov_count = f->tx.bytes_count = 0;
    alb_tx_builder_init(builder, &f->tx);
    return f;
}

static bool begin(struct alb_tx_builder *builder)
{
    uint8_t *header = alb_tx_packet_begin(builder, HEADER_BYTES);
    if (header)
        memset(header, 'h', HEADER_BYTES);
    return header;
}

static bool add_frame(struct alb_tx_builder *builder, uint32_t payload_bytes)
{
    uint8_t *frame = alb_tx_packet_bytes(builder, FRAME_BYTES, payload_bytes, payload_bytes > 0);
    if (!frame)
        return false;
    memset(frame, 'f', FRAME_BYTES);
    alb_tx_payload(builder, payload, payload_bytes);
    return true;
}

static bool add_packet(struct alb_tx_builder *builder, uint32_t payload_bytes)
{
    if (!begin(builder))
        return false;
    if (!add_frame(builder, payload_bytes)) {
        alb_tx_packet_cancel(builder);
        return false;
    }
    alb_tx_packet_end(builder, &flow);
    return true;
}

// All bytes of a segment, as they leave.
static uint32_t flatten(const struct fixture *f, uint32_t index, uint8_t *to)
{
    const struct alb_segment *segment = &f->segments[index];
    uint32_t length = 0;
    for (uint32_t i = 0; i < segment->iov_count; i++) {
        const struct iovec *piece = &f->iov[segment->iov_first + i];
        memcpy(to + length, piece->iov_base, piece->iov_len);
        length += (uint32_t)piece->iov_len;
    }
    return length;
}

static void expect_bytes(const uint8_t **at, const void *bytes, size_t length)
{
    assert_memory_equal(*at, bytes, length);
    *at += length;
}

static void expect_filled(const uint8_t **at, uint8_t byte, size_t length)
{
    for (size_t i = 0; i < length; i++)
        assert_int_equal(*(*at)++, byte);
}

static void packet__is_header_frames_and_trailer(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    uint8_t flat[2048];
    const uint8_t *at = flat;
    assert_true(begin(&builder));
    assert_true(add_frame(&builder, SHORT_BYTES));
    assert_true(add_frame(&builder, LONG_BYTES));
    assert_true(add_frame(&builder, 0));
    uint32_t length = alb_tx_packet_end(&builder, &flow);

    uint32_t bytes = HEADER_BYTES + 3 * FRAME_BYTES + SHORT_BYTES + LONG_BYTES, pad = -bytes & 3;
    assert_true(pad > 0);
    assert_int_equal(length, bytes + pad + ALB_ICRC_BYTES);
    assert_int_equal(f->tx.segment_count, 1);
    assert_int_equal(f->segments[0].length, length);
    assert_int_equal(flatten(f, 0, flat), length);
    expect_filled(&at, 'h', HEADER_BYTES);
    expect_filled(&at, 'f', FRAME_BYTES);
    expect_bytes(&at, payload, SHORT_BYTES);
    expect_filled(&at, 'f', FRAME_BYTES);
    expect_bytes(&at, payload, LONG_BYTES);
    expect_filled(&at, 'f', FRAME_BYTES);
    expect_filled(&at, 0, pad + ALB_ICRC_BYTES);

    assert_int_equal(f->segments[0].iov_count, 4); // what lies in one piece is one reference
    assert_ptr_equal(f->iov[1].iov_base, payload); // what is long is not copied
    assert_int_equal(f->iov[3].iov_len, pad + ALB_ICRC_BYTES);
    assert_int_equal(f->tx.iov_count, 4);
    assert_true((uint8_t *)f->iov[3].iov_base + f->iov[3].iov_len <= f->bytes + f->tx.bytes_count);
}

static void packets__of_one_size_join(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    uint8_t first[1024], second[1024];
    for (int i = 0; i < 3; i++)
        assert_true(add_packet(&builder, i < 2 ? LONG_BYTES : SHORT_BYTES));
    assert_true(add_packet(&builder, SHORT_BYTES)); // behind a shorter one there is no more
    assert_int_equal(f->tx.burst_count, 2);
    assert_int_equal(f->tx.segment_count, 4);
    assert_int_equal(f->bursts[0].segment_count, 3);
    assert_int_equal(f->bursts[0].segment_bytes, f->segments[0].length);
    assert_int_equal(f->bursts[0].path, 3);
    assert_true(f->bursts[0].may_be_cut);
    assert_int_equal(f->bursts[1].segment_first, 3);
    assert_int_equal(flatten(f, 0, first), flatten(f, 1, second));
    assert_memory_equal(first, second, f->segments[0].length);
}

static void packets__do_not_overlap(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    const uint8_t *past = f->bytes;
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(add_packet(&builder, SHORT_BYTES + i));
        const struct iovec *all = &f->iov[f->segments[i].iov_first], *trailer = &f->iov[f->tx.iov_count - 1];
        assert_true((const uint8_t *)all->iov_base >= past);
        assert_true((const uint8_t *)trailer->iov_base >= (const uint8_t *)all->iov_base + all->iov_len);
        past = (const uint8_t *)trailer->iov_base + trailer->iov_len;
        assert_true(past <= f->bytes + f->tx.bytes_count);
    }
}

static void packet__frame_taken_back(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    uint8_t with[1024], without[1024];
    for (uint32_t done = 0; done <= LONG_BYTES; done += LONG_BYTES / 3) {
        start(state, &builder);
        assert_true(begin(&builder));
        assert_true(add_frame(&builder, SHORT_BYTES));
        assert_non_null(alb_tx_packet_bytes(&builder, FRAME_BYTES, LONG_BYTES, 2));
        alb_tx_payload(&builder, payload, done);
        alb_tx_packet_undo(&builder);
        assert_true(add_frame(&builder, 0));
        alb_tx_packet_end(&builder, &flow);
        uint32_t length = flatten(f, 0, with);

        start(state, &builder);
        assert_true(begin(&builder));
        assert_true(add_frame(&builder, SHORT_BYTES));
        assert_true(add_frame(&builder, 0));
        alb_tx_packet_end(&builder, &flow);
        assert_int_equal(flatten(f, 0, without), length);
        assert_memory_equal(with, without, length);
    }
}

static void packet__cancelled_leaves_no_trace(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    assert_true(begin(&builder));
    assert_true(add_frame(&builder, LONG_BYTES));
    alb_tx_packet_cancel(&builder);
    assert_int_equal(f->tx.segment_count + f->tx.burst_count + f->tx.iov_count + f->tx.bytes_count, 0);
}

static void packet__takes_no_more_than_there_is(void **state)
{
    static const struct {
        uint32_t payload_bytes, room_bytes, iovs;
    } cases[] = {{0, 0, 3}, {SHORT_BYTES, SHORT_BYTES, 5}, {LONG_BYTES, REF_BYTES, 5}};
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        struct alb_tx_builder builder;
        struct fixture *f = start(state, &builder);
        const uint32_t iovs = f->tx.iov_capacity, frame_bytes = 100;
        const uint32_t bytes = HEADER_BYTES + frame_bytes + cases[i].room_bytes + TRAILER_BYTES;
        const uint32_t payload_bytes = cases[i].payload_bytes, refs = payload_bytes > 0;
        for (uint32_t lacking = 0; lacking < 2; lacking++) {
            start(state, &builder);
            f->tx.bytes_capacity = bytes - lacking;
            assert_true(begin(&builder));
            assert_int_equal(alb_tx_packet_bytes(&builder, frame_bytes, payload_bytes, refs) != NULL, !lacking);
            f->tx.bytes_capacity = sizeof(f->bytes);
        }
        for (uint32_t lacking = 0; lacking < 2 && refs > 0; lacking++) {
            start(state, &builder);
            f->tx.iov_capacity = cases[i].iovs - lacking;
            assert_true(begin(&builder));
            assert_int_equal(alb_tx_packet_bytes(&builder, frame_bytes, payload_bytes, refs) != NULL, !lacking);
            f->tx.iov_capacity = iovs;
        }
    }
}

// ---- one like the last ----------------------------------------------------------------------------------------------

static void repeat__is_like_the_last(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    uint8_t first[1024], second[1024];
    assert_true(add_packet(&builder, LONG_BYTES));
    assert_true(alb_tx_can_repeat(&builder, LONG_BYTES));
    uint8_t *header = alb_tx_repeat(&builder, payload + 1000);
    assert_non_null(header);
    assert_int_equal(f->tx.burst_count, 1);
    assert_int_equal(f->bursts[0].segment_count, 2);
    assert_int_equal(f->tx.segment_count, 2);
    assert_int_equal(f->tx.iov_count, 6);
    assert_ptr_equal(f->iov[3].iov_base, header);
    assert_ptr_equal(f->iov[4].iov_base, payload + 1000);
    uint32_t length = flatten(f, 0, first);
    assert_int_equal(flatten(f, 1, second), length);
    assert_int_equal(f->segments[1].length, length);
    memcpy(first + HEADER_BYTES + FRAME_BYTES, payload + 1000, LONG_BYTES);
    assert_memory_equal(first, second, length);
    uint8_t *first_end = (uint8_t *)f->iov[2].iov_base + f->iov[2].iov_len, *end = f->bytes + f->tx.bytes_count;
    assert_true(first_end <= header && (uint8_t *)f->iov[5].iov_base + f->iov[5].iov_len <= end);
}

static void repeat__only_of_one_reference_in_an_open_burst(void **state)
{
    struct alb_tx_builder builder;
    start(state, &builder);
    assert_false(alb_tx_can_repeat(&builder, LONG_BYTES)); // there is none
    assert_true(add_packet(&builder, LONG_BYTES));
    assert_false(alb_tx_can_repeat(&builder, LONG_BYTES - 4));
    assert_true(add_packet(&builder, LONG_BYTES - 4)); // shorter: ends the burst
    assert_false(alb_tx_can_repeat(&builder, LONG_BYTES - 4));

    start(state, &builder);
    assert_true(add_packet(&builder, SHORT_BYTES)); // copied
    assert_false(alb_tx_can_repeat(&builder, SHORT_BYTES));

    start(state, &builder);
    assert_true(begin(&builder));
    assert_true(add_frame(&builder, LONG_BYTES));
    assert_true(add_frame(&builder, 0)); // one more frame behind it
    alb_tx_packet_end(&builder, &flow);
    assert_false(alb_tx_can_repeat(&builder, LONG_BYTES));
}

static void repeat__ends_with_the_burst(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    f->tx.burst_segments_max = 3;
    assert_true(add_packet(&builder, LONG_BYTES));
    assert_non_null(alb_tx_repeat(&builder, payload));
    assert_non_null(alb_tx_repeat(&builder, payload));
    assert_null(alb_tx_repeat(&builder, payload));
    assert_int_equal(f->bursts[0].segment_count, 3);
}

// Whatever the batch has little of, as many packets fit as are built piece by piece.
static void repeat__batches_end_in_the_same_place(void **state)
{
    struct alb_tx_builder builder;
    struct fixture *f = start(state, &builder);
    const uint32_t iovs = f->tx.iov_capacity;
    f->tx.burst_segments_max = FIXTURE_SEGMENTS;
    f->tx.burst_bytes_max = 65000;
    for (uint32_t less = 0; less < 200; less++) {
        f->tx.iov_capacity = less < 100 ? 120 - less : iovs;
        f->tx.bytes_capacity = (uint32_t)sizeof(f->bytes) - (less < 100 ? 0 : 13 * less);
        uint32_t built = 0, repeated = 1;
        start(state, &builder);
        while (add_packet(&builder, LONG_BYTES))
            built++;
        start(state, &builder);
        assert_true(add_packet(&builder, LONG_BYTES));
        while (alb_tx_repeat(&builder, payload))
            repeated++;
        assert_int_equal(built, repeated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(packet__is_header_frames_and_trailer),
        FIXTURE_TEST(packets__of_one_size_join),
        FIXTURE_TEST(packets__do_not_overlap),
        FIXTURE_TEST(packet__frame_taken_back),
        FIXTURE_TEST(packet__cancelled_leaves_no_trace),
        FIXTURE_TEST(packet__takes_no_more_than_there_is),
        FIXTURE_TEST(repeat__is_like_the_last),
        FIXTURE_TEST(repeat__only_of_one_reference_in_an_open_burst),
        FIXTURE_TEST(repeat__ends_with_the_burst),
        FIXTURE_TEST(repeat__batches_end_in_the_same_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
