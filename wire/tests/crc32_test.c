// SPDX-License-Identifier: BSD-2-Clause
// The source itself is included: a processor takes one of two ways through it, and both are tested.
#include "wire/crc32.c"

#include "base/tests/test.h"

#include <string.h>

static void crc32__has_the_check_value_of_the_standard(void **state)
{
    assert_int_equal(alb_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(alb_crc32(alb_crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
}

static void crc32_short__is_the_same_for_every_length(void **state)
{
    uint32_t words[ALB_CRC32_SHORT_WORDS];
    uint32_t random = 5;
    for (uint32_t count = 1; count <= ALB_CRC32_SHORT_WORDS; count++) {
        for (uint32_t i = 0; i < count; i++)
            words[i] = random = random * 1664525 + 1013904223;
        assert_int_equal(alb_crc32_short(0, words, count), alb_crc32(0, words, 4 * count));
        assert_int_equal(alb_crc32_short(random, words, count), alb_crc32(random, words, 4 * count));
    }
}

// At any address, with bits of the second word set.
static void crc32_short_masked__is_the_same_as_of_the_words(void **state)
{
    uint8_t bytes[4 * ALB_CRC32_SHORT_WORDS + 1];
    for (uint32_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (uint32_t count = 2; count <= ALB_CRC32_SHORT_WORDS; count++) {
        uint32_t words[ALB_CRC32_SHORT_WORDS];
        memcpy(words, bytes + 1, 4 * count);
        words[1] |= 0xff0000ffu;
        uint32_t expected = alb_crc32(77, words, 4 * count);
        assert_int_equal(alb_crc32_short_masked(77, bytes + 1, count, 0xff0000ffu), expected);
        assert_int_equal(short_masked_portable(77, bytes + 1, count, 0xff0000ffu), expected);
    }
}

static void crc32__the_portable_way_agrees_with_this_processors(void **state)
{
    uint32_t words[ALB_CRC32_SHORT_WORDS];
    uint32_t random = 11;
    for (unsigned round = 0; round < 1000; round++) {
        for (uint32_t i = 0; i < ALB_COUNT(words); i++)
            words[i] = random = random * 1664525 + 1013904223;
        assert_int_equal(multiply_portable(words[0], words[1]), multiply(words[0], words[1]));
        uint32_t count = 1 + round % ALB_CRC32_SHORT_WORDS;
        assert_int_equal(short_portable(round, words, count), crc32_short(round, words, count));
    }
    assert_int_equal(multiply_portable(ONE, 0x12345678), 0x12345678);
    assert_int_equal(multiply_portable(times_x(ONE), over_x(ONE)), ONE);
}

static void crc32_change__is_what_another_word_makes_of_the_crc(void **state)
{
    uint32_t words[ALB_CRC32_SHORT_WORDS] = {1, 2, 3};
    uint32_t before = alb_crc32(0, words, sizeof(words)), difference = 0x12345678;
    for (uint32_t from_end = 1; from_end <= ALB_CRC32_SHORT_WORDS; from_end++) {
        uint32_t *word = &words[ALB_CRC32_SHORT_WORDS - from_end];
        *word ^= difference;
        assert_int_equal(alb_crc32_change(difference, from_end), before ^ alb_crc32(0, words, sizeof(words)));
        *word ^= difference;
    }
}

// The definition itself: change one word and ask which change explains the new CRC.
static void crc32_word_for__finds_the_change_at_every_distance(void **state)
{
    static uint8_t message[4 * ALB_CRC32_WORDS_MAX];
    uint32_t random = 7;
    for (unsigned i = 0; i < sizeof(message); i++)
        message[i] = (uint8_t)(i * 37);
    uint32_t before = alb_crc32(0, message, sizeof(message));

    for (uint32_t words = 1; words <= ALB_CRC32_WORDS_MAX; words++) {
        uint8_t *place = message + sizeof(message) - 4 * words;
        uint32_t original, changed;
        random = random * 1664525 + 1013904223;
        memcpy(&original, place, 4);
        changed = original ^ random;
        memcpy(place, &changed, 4);
        uint32_t difference = before ^ alb_crc32(0, message, sizeof(message));
        memcpy(place, &original, 4);
        assert_int_equal(alb_crc32_word_for(difference, words), random);
    }
    assert_int_equal(alb_crc32_word_for(0, 17), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32__has_the_check_value_of_the_standard),
        cmocka_unit_test(crc32__the_portable_way_agrees_with_this_processors),
        cmocka_unit_test(crc32_short__is_the_same_for_every_length),
        cmocka_unit_test(crc32_short_masked__is_the_same_as_of_the_words),
        cmocka_unit_test(crc32_change__is_what_another_word_makes_of_the_crc),
        cmocka_unit_test(crc32_word_for__finds_the_change_at_every_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
