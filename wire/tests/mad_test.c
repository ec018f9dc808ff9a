// SPDX-License-Identifier: BSD-2-Clause
#include "wire/mad.h"

#include "base/tests/test.h"

#include <string.h>

static const uint8_t bytes[ALB_MAD_BYTES] = {
    0x01, 0x07, 0x02, 0x03, 0x12, 0x34, 0x56, 0x78, 0x01, 0x02, 0x03, 0x04,
    0x05, 0x06, 0x07, 0x08, 0x00, 0x10, 0x00, 0x00, 0xaa, 0xbb, 0xcc, 0xdd,
};

static void mad__every_field_has_its_place(void **state)
{
    struct alb_mad mad;
    assert_true(alb_mad_decode(bytes, sizeof(bytes), &mad));
    assert_int_equal(mad.management_class, ALB_MAD_CLASS_CM);
    assert_int_equal(mad.class_version, ALB_CM_CLASS_VERSION);
    assert_int_equal(mad.method, ALB_MAD_SEND);
    assert_int_equal(mad.status, 0x1234);
    assert_int_equal(mad.class_specific, 0x5678);
    assert_true(mad.transaction == 0x0102030405060708);
    assert_int_equal(mad.attribute, 0x10);
    assert_int_equal(mad.modifier, 0xaabbccdd);

    uint8_t encoded[ALB_MAD_HEADER_BYTES];
    memset(encoded, 0xff, sizeof(encoded));
    alb_mad_encode(&mad, encoded);
    assert_memory_equal(encoded, bytes, sizeof(encoded));
}

static void mad__of_another_length_or_version_is_none(void **state)
{
    struct alb_mad mad;
    uint8_t copy[ALB_MAD_BYTES + 4] = {0};
    memcpy(copy, bytes, sizeof(bytes));
    assert_false(alb_mad_decode(copy, ALB_MAD_BYTES - 4, &mad));
    assert_false(alb_mad_decode(copy, ALB_MAD_BYTES + 4, &mad));
    assert_false(alb_mad_decode(copy, 0, &mad));
    copy[0] = 2;
    assert_false(alb_mad_decode(copy, ALB_MAD_BYTES, &mad));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mad__every_field_has_its_place),
        cmocka_unit_test(mad__of_another_length_or_version_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
