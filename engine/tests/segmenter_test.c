// SPDX-License-Identifier: BSD-2-Clause
#include "engine/segmenter.h"

#include "base/tests/test.h"

#include <string.h>

static void alb_segmenter_packets__rounds_up_and_sends_one_for_nothing(void **state)
{
    assert_int_equal(alb_segmenter_packets(0, 1024), 1);
    assert_int_equal(alb_segmenter_packets(1, 1024), 1);
    assert_int_equal(alb_segmenter_packets(1024, 1024), 1);
    assert_int_equal(alb_segmenter_packets(1025, 1024), 2);
    assert_int_equal(alb_segmenter_packets(UINT32_MAX, 4096), 1u << 20);
    assert_int_equal(alb_segmenter_packets(1u << 31, 256), 1u << 23);
}

static void alb_segmenter_bytes__within_and_beyond_the_message(void **state)
{
    assert_int_equal(alb_segmenter_bytes(0, 1024, 0, 1), 0);
    assert_int_equal(alb_segmenter_bytes(2500, 1024, 0, 1), 1024);
    assert_int_equal(alb_segmenter_bytes(2500, 1024, 2, 1), 452);
    assert_int_equal(alb_segmenter_bytes(2500, 1024, 1, 2), 1476);
    assert_int_equal(alb_segmenter_bytes(2500, 1024, 0, 3), 2500);
    assert_int_equal(alb_segmenter_bytes(2500, 1024, 3, 1), 0);
    assert_int_equal(alb_segmenter_bytes(2500, 1024, 2, 100), 452);
    assert_int_equal(alb_segmenter_bytes(UINT32_MAX, 4096, (1u << 20) - 1, 1), 4095);
}

struct want {
    enum alb_wr_opcode operation;
    uint8_t first, middle, last, only;
};

// Relative to the service's "SEND First".
static const struct want wants[] = {
    {ALB_WR_SEND, 0x00, 0x01, 0x02, 0x04},          {ALB_WR_SEND_WITH_IMM, 0x00, 0x01, 0x03, 0x05},
    {ALB_WR_RDMA_WRITE, 0x06, 0x07, 0x08, 0x0a},    {ALB_WR_RDMA_WRITE_WITH_IMM, 0x06, 0x07, 0x09, 0x0b},
    {ALB_WR_SEND_WITH_INV, 0x00, 0x01, 0x16, 0x17},
};

static struct alb_roce header(enum alb_wr_opcode operation, uint8_t base, uint32_t packets, uint32_t k, uint8_t flags)
{
    struct alb_qp qp = {.attr.dest_qpn = 0x20304};
    struct alb_send_wqe wqe = {
        .opcode = (uint8_t)operation,
        .flags = flags,
        .packets = packets,
        .length = 5000,
        .imm_data = 0x01020304,
        .invalidate_rkey = 0x77,
        .remote_addr = 0x123456789,
        .rkey = 0x99,
    };
    struct alb_roce roce;
    alb_segmenter_header(&qp, &wqe, base, k, &roce);
    return roce;
}

static void alb_segmenter_header__opcode_by_operation_and_place(void **state)
{
    for (size_t i = 0; i < ALB_COUNT(wants); i++) {
        const struct want *want = &wants[i];
        for (uint32_t base = 0; base <= 0x20; base += 0x20) {
            assert_int_equal(header(want->operation, (uint8_t)base, 1, 0, 0).opcode, base + want->only);
            assert_int_equal(header(want->operation, (uint8_t)base, 2, 0, 0).opcode, base + want->first);
            assert_int_equal(header(want->operation, (uint8_t)base, 2, 1, 0).opcode, base + want->last);
            assert_int_equal(header(want->operation, (uint8_t)base, 4, 0, 0).opcode, base + want->first);
            assert_int_equal(header(want->operation, (uint8_t)base, 4, 1, 0).opcode, base + want->middle);
            assert_int_equal(header(want->operation, (uint8_t)base, 4, 2, 0).opcode, base + want->middle);
            assert_int_equal(header(want->operation, (uint8_t)base, 4, 3, 0).opcode, base + want->last);
        }
    }
}

static void alb_segmenter_header__carries_what_the_request_says(void **state)
{
    struct alb_roce roce = header(ALB_WR_RDMA_WRITE_WITH_IMM, 0, 1, 0, 0);
    assert_int_equal(roce.dest_qpn, 0x20304);
    assert_int_equal(roce.pkey, 0xffff);
    assert_int_equal(roce.va, 0x123456789);
    assert_int_equal(roce.rkey, 0x99);
    assert_int_equal(roce.length, 5000);
    assert_int_equal(roce.imm_be, 0x01020304);
    assert_int_equal(header(ALB_WR_SEND_WITH_INV, 0, 1, 0, 0).invalidate_rkey, 0x77);
}

// The solicited event bit stands in the last packet of what ends a receive at the target, and nowhere else (9.2.3).
static void alb_segmenter_header__solicited_in_the_last_packet_that_tells_the_target(void **state)
{
    for (size_t i = 0; i < ALB_COUNT(wants); i++) {
        bool tells_target = wants[i].operation != ALB_WR_RDMA_WRITE;
        assert_false(header(wants[i].operation, 0, 3, 0, ALB_SEND_SOLICITED).solicited);
        assert_false(header(wants[i].operation, 0, 3, 1, ALB_SEND_SOLICITED).solicited);
        assert_int_equal(header(wants[i].operation, 0, 3, 2, ALB_SEND_SOLICITED).solicited, tells_target);
        assert_int_equal(header(wants[i].operation, 0, 1, 0, ALB_SEND_SOLICITED).solicited, tells_target);
        assert_false(header(wants[i].operation, 0, 1, 0, ALB_SEND_SIGNALED).solicited);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_segmenter_packets__rounds_up_and_sends_one_for_nothing),
        cmocka_unit_test(alb_segmenter_bytes__within_and_beyond_the_message),
        cmocka_unit_test(alb_segmenter_header__opcode_by_operation_and_place),
        cmocka_unit_test(alb_segmenter_header__carries_what_the_request_says),
        cmocka_unit_test(alb_segmenter_header__solicited_in_the_last_packet_that_tells_the_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
