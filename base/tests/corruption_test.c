// SPDX-License-Identifier: BSD-2-Clause
#include "base/corruption.h"
#include "base/tests/test.h"

#include <string.h>

enum { ROUNDS = 20000 };

static uint64_t counts[ALB_CORRUPT_PLACES];
static struct alb_corruption corruption;

static struct alb_corruption *striking(enum alb_corrupt place, uint32_t chance)
{
    struct alb_corruption_spec spec = {{0}};
    spec.chance[place] = chance;
    memset(counts, 0, sizeof(counts));
    alb_corruption_init(&corruption, &spec, 9, counts);
    return &corruption;
}

static uint32_t bits_that_differ(const uint8_t *a, const uint8_t *b, size_t length)
{
    uint32_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += (uint32_t)__builtin_popcount(a[i] ^ b[i]);
    return count;
}

static void corrupt__nothing_without_it(void **state)
{
    uint8_t bytes[8] = {1, 2, 3}, copy[8] = {1, 2, 3};
    alb_corrupt(NULL, ALB_CORRUPT_COPY, bytes, 8);
    assert_memory_equal(bytes, copy, 8);
    assert_ptr_equal(alb_corrupt_read(NULL, bytes, 8), bytes);
    assert_ptr_equal(alb_corrupt_aim(NULL, bytes + 1, 2, bytes, 8), bytes + 1);
}

static void corrupt__flips_one_bit_anywhere(void **state)
{
    struct alb_corruption *c = striking(ALB_CORRUPT_STAGE, 1000000000);
    uint8_t ever[5] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        static const uint8_t plain[5] = {0xaa, 0x55, 0, 0xff, 1};
        uint8_t bytes[5];
        memcpy(bytes, plain, 5);
        alb_corrupt(c, ALB_CORRUPT_COPY, bytes, 5); // another place
        alb_corrupt(c, ALB_CORRUPT_STAGE, bytes, 0);
        assert_memory_equal(bytes, plain, 5);
        alb_corrupt(c, ALB_CORRUPT_STAGE, bytes, 5);
        assert_int_equal(bits_that_differ(bytes, plain, 5), 1);
        for (int k = 0; k < 5; k++)
            ever[k] |= bytes[k] ^ plain[k];
    }
    for (int k = 0; k < 5; k++)
        assert_int_equal(ever[k], 0xff);
    assert_int_equal(counts[ALB_CORRUPT_STAGE], ROUNDS);
    assert_int_equal(counts[ALB_CORRUPT_COPY], 0);
}

static void corrupt__as_often_as_asked_for(void **state)
{
    struct alb_corruption *c = striking(ALB_CORRUPT_PACKET, 100000000);
    uint8_t byte = 0;
    uint32_t changed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t before = byte;
        alb_corrupt(c, ALB_CORRUPT_PACKET, &byte, 1);
        changed += byte != before;
    }
    assert_int_equal(counts[ALB_CORRUPT_PACKET], changed);
    assert_in_range(changed, ROUNDS / 10 - 200, ROUNDS / 10 + 200);
}

static void corrupt__the_same_with_the_same_seed(void **state)
{
    uint8_t first[64] = {0}, second[64] = {0};
    for (int round = 0; round < 2; round++) {
        struct alb_corruption *c = striking(ALB_CORRUPT_COPY, 500000000);
        for (int i = 0; i < 100; i++)
            alb_corrupt(c, ALB_CORRUPT_COPY, round ? second : first, 64);
    }
    assert_memory_equal(first, second, 64);
    assert_true(counts[ALB_CORRUPT_COPY] > 20);
}

static void read__leaves_the_memory_right(void **state)
{
    struct alb_corruption *c = striking(ALB_CORRUPT_READ, 1000000000);
    static uint8_t bytes[ALB_CORRUPT_PIECE_BYTES + 1], plain[sizeof(bytes)];
    const uint8_t *read[ALB_CORRUPT_PIECES];
    for (int i = 0; i < ALB_CORRUPT_PIECES; i++)
        read[i] = alb_corrupt_read(c, bytes, 100);
    for (int i = 0; i < ALB_CORRUPT_PIECES; i++)
        assert_int_equal(bits_that_differ(read[i], plain, 100), 1);
    assert_memory_equal(bytes, plain, sizeof(bytes));
    assert_int_equal(bits_that_differ(alb_corrupt_read(c, bytes, sizeof(bytes) - 1), plain, sizeof(bytes) - 1), 1);
    assert_ptr_equal(alb_corrupt_read(c, bytes, sizeof(bytes)), bytes);
    assert_ptr_equal(alb_corrupt_read(c, bytes, 0), bytes);
    assert_int_equal(counts[ALB_CORRUPT_READ], ALB_CORRUPT_PIECES + 1);
}

static void aim__misses_within_the_memory(void **state)
{
    struct alb_corruption *c = striking(ALB_CORRUPT_MISPLACE, 1000000000);
    uint8_t memory[20];
    bool hit[20] = {false};
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t *at = alb_corrupt_aim(c, memory + 7, 4, memory, sizeof(memory));
        assert_true(at >= memory && at + 4 <= memory + sizeof(memory));
        hit[at - memory] = true;
    }
    for (int i = 0; i <= 16; i++)
        assert_int_equal(hit[i], i != 7);
    assert_ptr_equal(alb_corrupt_aim(c, memory, 20, memory, 20), memory); // nowhere else to go
    assert_int_equal(counts[ALB_CORRUPT_MISPLACE], ROUNDS);
}

static void aim__nowhere(void **state)
{
    struct alb_corruption *c = striking(ALB_CORRUPT_STALE, 1000000000);
    uint8_t memory[8];
    assert_null(alb_corrupt_aim(c, memory, 4, memory, 8));
    assert_ptr_equal(alb_corrupt_aim(c, memory, 0, memory, 8), memory);
    assert_int_equal(counts[ALB_CORRUPT_STALE], 1);
}

static void spec__is_none(void **state)
{
    struct alb_corruption_spec spec = {{0}};
    assert_true(alb_corruption_spec_is_none(&spec));
    for (int i = 0; i < ALB_CORRUPT_PLACES; i++) {
        spec = (struct alb_corruption_spec){{0}};
        spec.chance[i] = 1;
        assert_false(alb_corruption_spec_is_none(&spec));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corrupt__nothing_without_it),
        cmocka_unit_test(corrupt__flips_one_bit_anywhere),
        cmocka_unit_test(corrupt__as_often_as_asked_for),
        cmocka_unit_test(corrupt__the_same_with_the_same_seed),
        cmocka_unit_test(read__leaves_the_memory_right),
        cmocka_unit_test(aim__misses_within_the_memory),
        cmocka_unit_test(aim__nowhere),
        cmocka_unit_test(spec__is_none),
    };
    return cmocka_run_group_tests_name("corruption", tests, NULL, NULL);
}
