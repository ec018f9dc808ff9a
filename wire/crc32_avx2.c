// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 of pieces by vectors of 256 bits.
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define ALB_CRC32_KERNEL alb_crc32_pieces_avx2
#define TARGET           __attribute__((target("avx2,vpclmulqdq,pclmul")))
#define PART             TARGET __attribute__((always_inline)) static inline
#define VECTOR           32
#define VECTOR_WORDS     8
#define X_TO_VECTOR      0x15a546366, 0x0f1da05aa
#define X_TO_VECTORS     0x1c6e41596, 0x154442bd4

#define LANES_BY_(high, low) _mm256_set_epi64x(high, low, high, low)
#define LANES_BY(x_to_d)     LANES_BY_(x_to_d)

typedef __m256i vector;

PART vector load(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i_u *)from);
}

PART void store(uint8_t *to, vector v)
{
    _mm256_storeu_si256((__m256i_u *)to, v);
}

PART __m256i places(void)
{
    return _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
}

PART __m256i first(size_t words)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)words), places());
}

PART vector load_words(const uint8_t *from, size_t words)
{
    return _mm256_maskload_epi32((const int *)from, first(words));
}

PART void store_words(uint8_t *to, vector v, size_t words)
{
    _mm256_maskstore_epi32((int *)to, first(words), v);
}

PART vector first_words(uint32_t a, uint32_t b)
{
    return _mm256_zextsi128_si256(_mm_set_epi32(0, 0, (int)b, (int)a));
}

PART vector plus(vector a, vector b)
{
    return _mm256_xor_si256(a, b);
}

PART vector with_bits(vector v, vector ones)
{
    return _mm256_or_si256(v, ones);
}

// Those that go out at one end come in at the other.
PART vector turned(vector v, size_t words)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_add_epi32(places(), _mm256_set1_epi32((int)words)));
}

PART vector moved_out(vector v, size_t words)
{
    return _mm256_andnot_si256(first(VECTOR_WORDS - words), turned(v, words));
}

PART vector moved_in(vector v, vector behind, size_t words)
{
    return _mm256_blendv_epi8(turned(behind, words), turned(v, words), first(VECTOR_WORDS - words));
}

PART vector fold_into(vector v, vector by, vector sum)
{
    return plus(_mm256_clmulepi64_epi128(v, by, 0x00), plus(_mm256_clmulepi64_epi128(v, by, 0x11), sum));
}

PART vector even_words(vector v)
{
    return _mm256_and_si256(v, _mm256_set1_epi64x(UINT32_MAX));
}

PART vector odd_words(vector v)
{
    return _mm256_srli_epi64(v, 32);
}

PART __m128i lanes_sum(vector v)
{
    return _mm_xor_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

#include "wire/crc32_body.h"
