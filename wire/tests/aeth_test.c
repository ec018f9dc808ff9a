// SPDX-License-Identifier: BSD-2-Clause
#include "wire/aeth.h"

#include "base/tests/test.h"

static void aeth__syndromes_split_into_class_and_value(void **state)
{
    assert_int_equal(ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT), 0x1f);
    assert_int_equal(ALB_AETH_SYNDROME_RNR(12), 0x2c);
    assert_int_equal(ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR), 0x60);
    assert_int_equal(ALB_AETH_SYNDROME_NAK(ALB_NAK_REMOTE_OPERATIONAL_ERROR), 0x63);

    assert_int_equal(alb_aeth_class(0x1f), ALB_AETH_ACK);
    assert_int_equal(alb_aeth_value(0x1f), 31);
    assert_int_equal(alb_aeth_class(0x2c), ALB_AETH_RNR);
    assert_int_equal(alb_aeth_value(0x2c), 12);
    assert_int_equal(alb_aeth_class(0x62), ALB_AETH_NAK);
    assert_int_equal(alb_aeth_class(0x40), ALB_AETH_RESERVED);
    assert_int_equal(alb_aeth_class(0xe1), ALB_AETH_NAK); // bit 7 is not looked at
}

static void aeth_name__has_one_for_every_syndrome(void **state)
{
    assert_string_equal(alb_aeth_name(0x1f), "ack");
    assert_string_equal(alb_aeth_name(0x2c), "rnr_nak");
    assert_string_equal(alb_aeth_name(0x60), "nak_psn_sequence_error");
    assert_string_equal(alb_aeth_name(0x64), "nak_invalid_rd_request");
    assert_string_equal(alb_aeth_name(0x65), "nak_reserved");
    assert_string_equal(alb_aeth_name(0x40), "reserved");
    for (unsigned syndrome = 0; syndrome < 256; syndrome++)
        assert_non_null(alb_aeth_name((uint8_t)syndrome));
}

// The whole of table 45 of the specification, in hundredths of a millisecond.
static void rnr_timer__is_the_table_of_the_specification(void **state)
{
    static const double milliseconds[32] = {
        655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,   0.32,
        0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24,  15.36,
        20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
    };
    for (unsigned code = 0; code < 32; code++)
        assert_int_equal(alb_rnr_timer_ns((uint8_t)code), (uint64_t)(milliseconds[code] * 1e6 + 0.5));
    assert_int_equal(alb_rnr_timer_ns(32 + 12), alb_rnr_timer_ns(12));
}

static void ack_timeout__doubles_from_8_us_and_0_is_never(void **state)
{
    assert_int_equal(alb_ack_timeout_ns(0), ALB_TIME_NEVER);
    assert_int_equal(alb_ack_timeout_ns(1), 8192);
    assert_int_equal(alb_ack_timeout_ns(14), 67108864);
    assert_int_equal(alb_ack_timeout_ns(31), 4096ull << 31);
}

static void mtu__codes_and_bytes(void **state)
{
    static const uint32_t bytes[] = {0, 256, 512, 1024, 2048, 4096, 0};
    for (unsigned code = 0; code < ALB_COUNT(bytes); code++)
        assert_int_equal(alb_mtu_bytes(code), bytes[code]);
    for (unsigned code = 1; code <= 5; code++) {
        assert_int_equal(alb_mtu_code(bytes[code]), code);
        assert_int_equal(alb_mtu_code(bytes[code] - 1), code - 1);
    }
    assert_int_equal(alb_mtu_code(UINT32_MAX), 5);
    assert_int_equal(alb_mtu_code(1500 - 60), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aeth__syndromes_split_into_class_and_value),
        cmocka_unit_test(aeth_name__has_one_for_every_syndrome),
        cmocka_unit_test(rnr_timer__is_the_table_of_the_specification),
        cmocka_unit_test(ack_timeout__doubles_from_8_us_and_0_is_never),
        cmocka_unit_test(mtu__codes_and_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
