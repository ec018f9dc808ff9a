// SPDX-License-Identifier: BSD-2-Clause
// Every kernel against libxxhash and against the others, however the input is cut.
#include "base/digest_kernel.h"
#include "base/prng.h"
#include "base/tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    LENGTHS = 4096,
    LARGE = 300000,
};

static uint8_t bytes[LARGE];

static int fill(void **state)
{
    struct alb_prng prng;
    alb_prng_init(&prng, 7);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)alb_prng_u64(&prng);
    return 0;
}

static struct alb_digest expected(const void *at, size_t length)
{
    XXH128_hash_t hash = XXH3_128bits(at, length);
    return (struct alb_digest){hash.low64, hash.high64};
}

static void check(const struct alb_digest_kernel *kernel, struct alb_digest got, const void *at, size_t length,
                  size_t cut)
{
    struct alb_digest want = expected(at, length);
    if (!alb_digest_is_equal(&got, &want))
        fail_msg("%s: %zu bytes, cut at %zu", kernel->name, length, cut);
}

// Of nothing, and of one letter.
static void alb_digest__known_answers(void **state)
{
    struct alb_digest empty = alb_digest_of("", 0), a = alb_digest_of("a", 1);
    assert_true(empty.high == 0x99aa06d3014798d8 && empty.low == 0x6001c324468d497f);
    assert_true(a.high == 0xa96faf705af16834 && a.low == 0xe6c632b61e964e1f);
}

static void alb_digest_kernel__equal_at_every_length(void **state)
{
    const struct alb_digest_kernel *kernel;
    for (uint32_t i = 0; (kernel = alb_digest_kernel(i)); i++)
        for (size_t length = 0; length <= LENGTHS; length++) {
            const uint8_t *at = bytes + length % 67; // aligned and not
            check(kernel, kernel->of(at, length), at, length, 0);
        }
}

static struct alb_digest in_two(const struct alb_digest_kernel *kernel, const uint8_t *at, size_t length, size_t cut)
{
    struct alb_digest_state state;
    memset(&state, 0xa5, sizeof(state)); // what was there before does not matter
    kernel->begin(&state);
    kernel->add(&state, at, cut);
    kernel->add(&state, at + cut, length - cut);
    return kernel->end(&state);
}

// All cuts of lengths around each of the places where the algorithm changes, and some cuts of every length.
static void alb_digest_kernel__equal_at_every_cut(void **state)
{
    static const size_t turns[] = {0,   1,   16,  17,   128,  129,  240,  241,  255,
                                   256, 257, 512, 1023, 1024, 1025, 1088, 2049, 4096};
    const struct alb_digest_kernel *kernel;
    for (uint32_t i = 0; (kernel = alb_digest_kernel(i)); i++) {
        for (size_t t = 0; t < ALB_COUNT(turns); t++)
            for (size_t cut = 0; cut <= turns[t]; cut++)
                check(kernel, in_two(kernel, bytes, turns[t], cut), bytes, turns[t], cut);
        for (size_t length = 0; length <= LENGTHS; length++)
            for (size_t cut = length % 97; cut <= length; cut += 97)
                check(kernel, in_two(kernel, bytes + 3, length, cut), bytes + 3, length, cut);
    }
}

static void alb_digest_kernel__equal_in_many_pieces(void **state)
{
    const struct alb_digest_kernel *kernel;
    struct alb_prng prng;
    alb_prng_init(&prng, 1);
    for (uint32_t i = 0; (kernel = alb_digest_kernel(i)); i++)
        for (uint32_t round = 0; round < 200; round++) {
            struct alb_digest_state digest;
            size_t length = alb_prng_below(&prng, LARGE), done = 0;
            uint64_t piece_max = 1ull << alb_prng_below(&prng, 18);
            kernel->begin(&digest);
            while (done < length) {
                size_t piece = ALB_MIN(alb_prng_below(&prng, piece_max + 1), length - done);
                kernel->add(&digest, bytes + done, piece);
                done += piece;
                if (piece_max > LARGE / 10 && round % 4 == 0) // a look in between changes nothing
                    check(kernel, kernel->end(&digest), bytes, done, piece);
            }
            check(kernel, kernel->end(&digest), bytes, length, piece_max);
        }
}

// One kernel may go on with what another has begun.
static void alb_digest_kernel__states_are_the_same(void **state)
{
    const struct alb_digest_kernel *first, *second;
    for (uint32_t i = 0; (first = alb_digest_kernel(i)); i++)
        for (uint32_t k = 0; (second = alb_digest_kernel(k)); k++) {
            struct alb_digest_state digest;
            first->begin(&digest);
            first->add(&digest, bytes, 5000);
            second->add(&digest, bytes + 5000, 7001);
            check(second, second->end(&digest), bytes, 12001, 5000);
        }
}

static void alb_digest__is_that_of_the_kernels(void **state)
{
    struct alb_digest_state digest;
    alb_digest_begin(&digest);
    alb_digest_add(&digest, bytes, 1000);
    alb_digest_add(&digest, NULL, 0);
    alb_digest_add(&digest, bytes + 1000, LARGE - 1000);
    check(alb_digest_kernel(0), alb_digest_end(&digest), bytes, LARGE, 1000);
    check(alb_digest_kernel(0), alb_digest_of(bytes, LARGE), bytes, LARGE, 0);
}

static void alb_digest__every_bit_matters(void **state)
{
    uint8_t copy[304];
    struct alb_digest plain = alb_digest_of(bytes, sizeof(copy));
    memcpy(copy, bytes, sizeof(copy));
    for (size_t bit = 0; bit < 8 * sizeof(copy); bit++) {
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct alb_digest other = alb_digest_of(copy, sizeof(copy));
        assert_false(alb_digest_is_equal(&plain, &other));
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_digest__known_answers),
        cmocka_unit_test(alb_digest_kernel__equal_at_every_length),
        cmocka_unit_test(alb_digest_kernel__equal_at_every_cut),
        cmocka_unit_test(alb_digest_kernel__equal_in_many_pieces),
        cmocka_unit_test(alb_digest_kernel__states_are_the_same),
        cmocka_unit_test(alb_digest__is_that_of_the_kernels),
        cmocka_unit_test(alb_digest__every_bit_matters),
    };
    return cmocka_run_group_tests_name("digest", tests, fill, NULL);
}
