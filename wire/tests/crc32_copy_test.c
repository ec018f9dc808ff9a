// SPDX-License-Identifier: BSD-2-Clause
// The source itself is included: a processor takes one of two ways through it, and both are tested.
#include "wire/crc32_copy.c"

#include "base/tests/test.h"

#include <string.h>

#define ROOM 8192
#define EDGE 64 // bytes beside a copy that must stay as they are

static uint8_t source[ROOM];

static void fill_source(void)
{
    uint32_t random = 3;
    for (uint32_t i = 0; i < ROOM; i++) {
        random = random * 1664525 + 1013904223;
        source[i] = (uint8_t)(random >> 24);
    }
}

// So many bytes from one place to another of a cache line: the CRC is that of these bytes, and nothing else is written.
static void expect_copy(uint32_t from, uint32_t to, uint32_t length)
{
    static uint8_t copy[ROOM + 4 * EDGE];
    uint8_t *start = copy + EDGE + to;
    uint32_t before = 0x1234567 * length;
    memset(copy, 0xa5, EDGE + to + length + EDGE);
    assert_int_equal(alb_crc32_copy(before, start, source + from, length), alb_crc32(before, source + from, length));
    assert_memory_equal(start, source + from, length);
    for (uint32_t i = 0; i < EDGE; i++) {
        assert_int_equal(copy[to + i], 0xa5);
        assert_int_equal(start[length + i], 0xa5);
    }
}

static void expect_copies(void)
{
    fill_source();
    for (uint32_t length = 0; length <= 2048; length++)
        expect_copy(0, 0, length);
    for (uint32_t place = 0; place < 64; place++) {
        expect_copy(place, 64 - place, 1396);
        expect_copy(7, place, 1024);
        expect_copy(place, 8, 259);
    }
    expect_copy(1, 2, ROOM - 1);
}

static void crc32_copy__is_a_copy_and_its_crc(void **state)
{
    expect_copies();
}

static void crc32_copy__the_portable_way_is_the_same(void **state)
{
    crc32_copy = copy_portable;
    expect_copies();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32_copy__is_a_copy_and_its_crc),
        cmocka_unit_test(crc32_copy__the_portable_way_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
