// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 of bytes that are copied at the same time, by vectors of 512 bits; elsewhere a copy, and then the CRC of it,
// which is in the cache.
//
// A vector that stands d bits before another one adds as much to the CRC as its product by x^d mod P does in the place
// of that one (folding). Each 64-bit half of a 128-bit lane is multiplied by a constant of its own: the reflected
// x^(d + 32) and x^(d - 32) mod P, in 33 bits, which make up for the 64 bits between both and for the product's 32
// more.
#include "wire/crc32.h"

#include <string.h>

static uint32_t copy_portable(uint32_t crc, uint8_t *to, const uint8_t *from, size_t length)
{
    memcpy(to, from, length);
    return alb_crc32(crc, to, length);
}

static uint32_t (*crc32_copy)(uint32_t crc, uint8_t *to, const uint8_t *from, size_t length) = copy_portable;

#ifdef __x86_64__
#include <immintrin.h>

#define TARGET     __attribute__((target("avx512f,avx512bw,vpclmulqdq,pclmul")))
#define VECTOR     64
#define LENGTH_MIN 128 // below that a copy, and the CRC of it, are faster

#define X_TO_2048 0x1322d1430, 0x11542778a
#define X_TO_1536 0x12e958ac4, 0x1821d8bc0
#define X_TO_1024 0x14a7fe880, 0x1e88ef372
#define X_TO_512  0x1c6e41596, 0x154442bd4
#define X_TO_384  0x174359406, 0x03db1ecdc
#define X_TO_256  0x15a546366, 0x0f1da05aa
#define X_TO_128  0x0ccaa009e, 0x1751997d0

#define LANES_BY_(high, low) _mm512_set_epi64(high, low, high, low, high, low, high, low)
#define LANES_BY(x_to_d)     LANES_BY_(x_to_d) // each lane by the same constants

TARGET static inline __m512i add(__m512i a, __m512i b, __m512i c)
{
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

// The product, to be added to what stands that many bits behind; and that, too.
TARGET static inline __m512i fold_into(__m512i vector, __m512i by, __m512i sum)
{
    return add(_mm512_clmulepi64_epi128(vector, by, 0x00), _mm512_clmulepi64_epi128(vector, by, 0x11), sum);
}

TARGET static inline __m512i copy_vector(uint8_t *to, const uint8_t *from)
{
    __m512i vector = _mm512_loadu_si512(from);
    _mm512_storeu_si512(to, vector);
    return vector;
}

// The first bytes (a multiple of four up to a vector) at the end of a vector, behind zeros, which change nothing. What
// has been before them is added to the first of them.
TARGET static inline __m512i copy_first(uint32_t crc, uint8_t *to, const uint8_t *from, size_t length)
{
    size_t zeros = VECTOR - length;
    __mmask64 mask = ~0ull << zeros;
    __m512i vector = _mm512_maskz_loadu_epi8(mask, from - zeros);
    _mm512_mask_storeu_epi8(to - zeros, mask, vector);
    return _mm512_xor_si512(vector, _mm512_maskz_set1_epi32((__mmask16)(1u << zeros / 4), (int)~crc));
}

// The CRC of 512 bits.
TARGET static uint32_t finish(__m512i sum)
{
    const __m512i by = _mm512_set_epi64(0, 0, X_TO_128, X_TO_256, X_TO_384);
    __m512i folded = fold_into(sum, by, _mm512_setzero_si512());
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(folded), _mm512_extracti64x4_epi64(folded, 1));
    __m128i last = _mm512_extracti32x4_epi32(sum, 3);
    last = _mm_xor_si128(last, _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
    uint32_t words[4];
    _mm_storeu_si128((__m128i *)words, last);
    return alb_crc32_short(UINT32_MAX, words, ALB_COUNT(words)); // the ones that it begins with are in the first vector
}

// length: a multiple of four. Four sums, so that no product waits for the one before it; the vectors that are left over
// when they are dealt out come first.
TARGET static uint32_t copy_words(uint32_t crc, uint8_t *to, const uint8_t *from, size_t length)
{
    size_t first = (length - 1) % VECTOR + 1;
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = copy_first(crc, to, from, first);
    size_t at = first;
    for (; (length - at) % (4 * VECTOR) != 0; at += VECTOR) {
        a = b;
        b = c;
        c = d;
        d = copy_vector(to + at, from + at);
    }
    const __m512i by = LANES_BY(X_TO_2048);
    for (; at < length; at += 4 * VECTOR) {
        a = fold_into(a, by, copy_vector(to + at, from + at));
        b = fold_into(b, by, copy_vector(to + at + VECTOR, from + at + VECTOR));
        c = fold_into(c, by, copy_vector(to + at + 2 * VECTOR, from + at + 2 * VECTOR));
        d = fold_into(d, by, copy_vector(to + at + 3 * VECTOR, from + at + 3 * VECTOR));
    }
    c = fold_into(c, LANES_BY(X_TO_512), d);
    return finish(fold_into(a, LANES_BY(X_TO_1536), fold_into(b, LANES_BY(X_TO_1024), c)));
}

static uint32_t copy_vectors(uint32_t crc, uint8_t *to, const uint8_t *from, size_t length)
{
    if (length < LENGTH_MIN)
        return copy_portable(crc, to, from, length);
    size_t words = length & ~(size_t)3;
    crc = copy_words(crc, to, from, words);
    return words == length ? crc : copy_portable(crc, to + words, from + words, length - words);
}

__attribute__((constructor)) static void init(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul"))
        crc32_copy = copy_vectors;
}
#endif

uint32_t alb_crc32_copy(uint32_t crc, void *to, const void *from, size_t length)
{
    return crc32_copy(crc, to, from, length);
}
