// SPDX-License-Identifier: BSD-2-Clause
#include "wire/opcode.h"

#include "base/tests/test.h"

#include <string.h>

static unsigned bytes_of_headers(unsigned headers)
{
    static const unsigned bytes[] = {8, 4, 16, 28, 4, 8, 4, 4, 16};
    unsigned sum = 12;
    for (unsigned i = 0; i < ALB_COUNT(bytes); i++)
        if (headers & 1u << i)
            sum += bytes[i];
    return sum;
}

static void opcode_info__is_consistent_for_every_opcode(void **state)
{
    static const char *const services[] = {
        [ALB_SERVICE_RC] = "RC ",   [ALB_SERVICE_UC] = "UC ",  [ALB_SERVICE_UD] = "UD ",
        [ALB_SERVICE_XRC] = "XRC ", [ALB_SERVICE_CNP] = "CNP",
    };
    unsigned known = 0;
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const struct alb_opcode_info *info = alb_opcode_info((uint8_t)opcode);
        if (!info)
            continue;
        known++;
        assert_int_equal(info->header_bytes, bytes_of_headers(info->headers));
        assert_memory_equal(info->name, services[info->service], 3);
        if (opcode == ALB_CNP)
            continue;

        // A packet asks or answers, has a place in its message, and is of one kind.
        unsigned kinds = ALB_OPCODE_SEND | ALB_OPCODE_WRITE | ALB_OPCODE_READ | ALB_OPCODE_ATOMIC |
                         ALB_OPCODE_ATOMIC_WRITE | ALB_OPCODE_ACK;
        assert_int_equal(__builtin_popcount(info->flags & (ALB_OPCODE_REQUEST | ALB_OPCODE_RESPONSE)), 1);
        assert_int_equal(__builtin_popcount(info->flags & kinds), 1);
        assert_true(!!(info->flags & ALB_OPCODE_MIDDLE) != !!(info->flags & ALB_OPCODE_ONLY));

        assert_int_equal(!!(info->flags & ALB_OPCODE_IMM), !!(info->headers & ALB_HEADER_IMM));
        assert_int_equal(!!(info->flags & ALB_OPCODE_INVALIDATE), !!(info->headers & ALB_HEADER_IETH));
        assert_int_equal(!!(info->headers & ALB_HEADER_DETH), info->service == ALB_SERVICE_UD);
        assert_int_equal(!!(info->headers & ALB_HEADER_XRCETH),
                         info->service == ALB_SERVICE_XRC && info->flags & ALB_OPCODE_REQUEST);
        // The service is the top three bits.
        static const unsigned service[] = {
            [ALB_SERVICE_RC] = 0, [ALB_SERVICE_UC] = 1, [ALB_SERVICE_UD] = 3, [ALB_SERVICE_XRC] = 5};
        assert_int_equal(opcode >> 5, service[info->service]);
    }
    assert_int_equal(known, 24 + 12 + 2 + 1 + 23);
}

static void opcode_info__says_where_receives_are_taken_and_completed(void **state)
{
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const struct alb_opcode_info *info = alb_opcode_info((uint8_t)opcode);
        if (!info)
            continue;
        bool send = info->flags & ALB_OPCODE_SEND;
        bool write_imm = info->flags & ALB_OPCODE_WRITE && info->flags & ALB_OPCODE_IMM;
        assert_int_equal(!!(info->flags & ALB_OPCODE_TAKES_RECEIVE),
                         write_imm || (send && info->flags & ALB_OPCODE_FIRST));
        assert_int_equal(!!(info->flags & ALB_OPCODE_ENDS_RECEIVE),
                         write_imm || (send && info->flags & ALB_OPCODE_LAST));
    }
}

static void opcode_info__knows_no_reserved_opcode(void **state)
{
    static const uint8_t reserved[] = {0x15, 0x18, 0x1f, 0x2c, 0x33, 0x40, 0x63, 0x66, 0x80, 0x82, 0xb5, 0xb8, 0xff};
    for (unsigned i = 0; i < ALB_COUNT(reserved); i++)
        assert_null(alb_opcode_info(reserved[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opcode_info__is_consistent_for_every_opcode),
        cmocka_unit_test(opcode_info__says_where_receives_are_taken_and_completed),
        cmocka_unit_test(opcode_info__knows_no_reserved_opcode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
