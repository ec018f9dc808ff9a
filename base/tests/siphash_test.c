// SPDX-License-Identifier: BSD-2-Clause
// SipHash-1-3 against another implementation, and the part that the key plays.
#include "base/siphash.h"
#include "base/tests/test.h"

#include <string.h>

// CPython 3.11 hashes bytes objects with SipHash-1-3, under a key of zeros when PYTHONHASHSEED=0: the unsigned form of
// hash(b"a") and so on.
static void alb_siphash13__known_answers(void **state)
{
    static const struct alb_siphash_key zero;
    static const struct {
        const char *text;
        uint64_t hash;
    } known[] = {
        {"a", 0x407448d2b89b1813},       {"ab", 0x555508cbc6add439},       {"abc", 0xc03bc3a0042630f2},
        {"abcdefg", 0x6db12aae9070f506}, {"abcdefgh", 0x3f7b849c0b8e35ea}, {"abcdefghijklmno", 0x1fd27a29b0e9dc7a},
    };
    for (size_t i = 0; i < ALB_COUNT(known); i++)
        assert_int_equal(alb_siphash13(&zero, known[i].text, strlen(known[i].text)), known[i].hash);
    char z[100];
    memset(z, 'z', sizeof(z));
    assert_int_equal(alb_siphash13(&zero, z, sizeof(z)), 0x91af7922dfbf706b);
}

// The empty message under the key 00 01 ... 0f, as SipHash's authors use it in their own vectors.
static void alb_siphash13__key_words_are_little_endian(void **state)
{
    static const struct alb_siphash_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
    assert_int_equal(alb_siphash13(&key, "", 0), 0xabac0158050fc4dc);
}

static void alb_siphash13__every_bit_of_the_key_matters(void **state)
{
    static const struct alb_siphash_key zero;
    uint64_t plain = alb_siphash13(&zero, "abc", 3);
    for (int bit = 0; bit < 128; bit++) {
        struct alb_siphash_key key = {{0}};
        key.words[bit / 64] = 1ull << bit % 64;
        assert_int_not_equal(alb_siphash13(&key, "abc", 3), plain);
    }
}

static void alb_siphash13__length_matters(void **state)
{
    static const struct alb_siphash_key zero;
    static const uint8_t zeros[32];
    for (size_t a = 0; a < sizeof(zeros); a++) {
        for (size_t b = 0; b < a; b++)
            assert_int_not_equal(alb_siphash13(&zero, zeros, a), alb_siphash13(&zero, zeros, b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_siphash13__known_answers),
        cmocka_unit_test(alb_siphash13__key_words_are_little_endian),
        cmocka_unit_test(alb_siphash13__every_bit_of_the_key_matters),
        cmocka_unit_test(alb_siphash13__length_matters),
    };
    return cmocka_run_group_tests_name("siphash", tests, NULL, NULL);
}
