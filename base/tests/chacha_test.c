// SPDX-License-Identifier: BSD-2-Clause
// The block function against RFC 8439, and the generator's promises.
#include "base/chacha.h"
#include "base/tests/test.h"

#include <stdio.h>
#include <string.h>

static void check_block(const uint8_t key[32], uint32_t counter, const uint8_t nonce[12], const char *expected_hex)
{
    uint8_t block[ALB_CHACHA_BLOCK_BYTES];
    char hex[2 * sizeof(block) + 1];
    alb_chacha20_block(key, counter, nonce, block);
    for (size_t i = 0; i < sizeof(block); i++)
        snprintf(hex + 2 * i, 3, "%02x", block[i]);
    assert_string_equal(hex, expected_hex);
}

// RFC 8439, section 2.3.2.
static void alb_chacha20_block__rfc8439_example(void **state)
{
    static const uint8_t nonce[12] = {[3] = 0x09, [7] = 0x4a};
    uint8_t key[32];
    for (uint8_t i = 0; i < 32; i++)
        key[i] = i;
    check_block(key, 1, nonce,
                "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
                "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e");
}

// RFC 8439, appendix A.1, test vectors 1 to 5.
static void alb_chacha20_block__rfc8439_appendix(void **state)
{
    static const uint8_t zeros[32];
    static const uint8_t key_last_one[32] = {[31] = 1};
    static const uint8_t key_second_ff[32] = {[1] = 0xff};
    static const uint8_t nonce_last_two[12] = {[11] = 2};

    check_block(zeros, 0, zeros,
                "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
                "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586");
    check_block(zeros, 1, zeros,
                "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
                "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f");
    check_block(key_last_one, 1, zeros,
                "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
                "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0");
    check_block(key_second_ff, 2, zeros,
                "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
                "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096");
    check_block(zeros, 0, nonce_last_two,
                "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
                "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d");
}

static void alb_rng_fill__is_the_keystream_with_the_key_renewed(void **state)
{
    static const uint8_t nonce[12];
    uint8_t key[32] = {1, 2, 3};
    uint8_t expected[2 * 224], got[2 * 224];
    struct alb_rng rng;
    alb_rng_init(&rng, key);
    for (int refill = 0; refill < 2; refill++) {
        uint8_t blocks[256];
        for (uint32_t i = 0; i < 4; i++)
            alb_chacha20_block(key, i, nonce, blocks + 64 * i);
        memcpy(key, blocks, 32);
        memcpy(expected + 224 * refill, blocks + 32, 224);
    }
    alb_rng_fill(&rng, got, 1); // pieces of any size make one stream
    alb_rng_fill(&rng, got + 1, 300);
    alb_rng_fill(&rng, got + 301, 0);
    alb_rng_fill(&rng, got + 301, sizeof(got) - 301);
    assert_memory_equal(got, expected, sizeof(expected));
}

static void alb_rng_fill__erases_what_it_gave(void **state)
{
    static const uint8_t seed[32] = {9};
    static const uint8_t zeros[100];
    struct alb_rng rng;
    uint8_t got[100];
    alb_rng_init(&rng, seed);
    alb_rng_fill(&rng, got, sizeof(got));
    assert_memory_not_equal(got, zeros, sizeof(got));
    assert_memory_equal(rng.ready, zeros, sizeof(zeros));
    assert_memory_not_equal(rng.key, seed, sizeof(seed));
}

static void alb_rng_u32_u64__take_bytes_in_little_endian_order(void **state)
{
    static const uint8_t seed[32] = {5};
    struct alb_rng a, b;
    uint8_t bytes[12];
    alb_rng_init(&a, seed);
    alb_rng_init(&b, seed);
    alb_rng_fill(&a, bytes, sizeof(bytes));
    uint32_t low = alb_rng_u32(&b);
    uint64_t high = alb_rng_u64(&b);
    for (int i = 0; i < 4; i++)
        assert_int_equal(low >> 8 * i & 0xff, bytes[i]);
    for (int i = 0; i < 8; i++)
        assert_int_equal(high >> 8 * i & 0xff, bytes[4 + i]);
}

static void alb_rng_below__stays_below_and_is_even(void **state)
{
    static const uint8_t seed[32] = {6};
    static const uint32_t bounds[] = {1, 2, 3, 7, 1000, 0x80000001, UINT32_MAX};
    struct alb_rng rng;
    alb_rng_init(&rng, seed);
    for (size_t i = 0; i < ALB_COUNT(bounds); i++) {
        for (int k = 0; k < 1000; k++)
            assert_true(alb_rng_below(&rng, bounds[i]) < bounds[i]);
    }
    uint32_t counts[6] = {0};
    for (int k = 0; k < 60000; k++)
        counts[alb_rng_below(&rng, 6)]++;
    for (int k = 0; k < 6; k++)
        assert_in_range(counts[k], 9600, 10400); // 10,000 expected; the deviation's sigma is 91
}

// 3 * 2^30 does not divide 2^32: without drawing again, the lower two thirds would split 2:1 by residue.
static void alb_rng_below__large_bound_is_fair(void **state)
{
    static const uint8_t seed[32] = {7};
    struct alb_rng rng;
    uint32_t counts[3] = {0};
    alb_rng_init(&rng, seed);
    for (int k = 0; k < 30000; k++)
        counts[alb_rng_below(&rng, 3u << 30) % 3]++;
    for (int k = 0; k < 3; k++)
        assert_in_range(counts[k], 9600, 10400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_chacha20_block__rfc8439_example),
        cmocka_unit_test(alb_chacha20_block__rfc8439_appendix),
        cmocka_unit_test(alb_rng_fill__is_the_keystream_with_the_key_renewed),
        cmocka_unit_test(alb_rng_fill__erases_what_it_gave),
        cmocka_unit_test(alb_rng_u32_u64__take_bytes_in_little_endian_order),
        cmocka_unit_test(alb_rng_below__stays_below_and_is_even),
        cmocka_unit_test(alb_rng_below__large_bound_is_fair),
    };
    return cmocka_run_group_tests_name("chacha", tests, NULL, NULL);
}
