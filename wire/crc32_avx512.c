// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 of pieces by vectors of 512 bits.
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define ALB_CRC32_KERNEL alb_crc32_pieces_avx512
#define TARGET           __attribute__((target("avx512f,vpclmulqdq,pclmul")))
#define PART             TARGET __attribute__((always_inline)) static inline
#define VECTOR           64
#define VECTOR_WORDS     16
#define X_TO_VECTOR      0x1c6e41596, 0x154442bd4
#define X_TO_VECTORS     0x14a7fe880, 0x1e88ef372

#define LANES_BY_(high, low) _mm512_set_epi64(high, low, high, low, high, low, high, low)
#define LANES_BY(x_to_d)     LANES_BY_(x_to_d)

typedef __m512i vector;

PART vector load(const uint8_t *from)
{
    return _mm512_loadu_si512(from);
}

PART void store(uint8_t *to, vector v)
{
    _mm512_storeu_si512(to, v);
}

PART __mmask16 first(size_t words)
{
    return (__mmask16)((1u << words) - 1);
}

PART vector load_words(const uint8_t *from, size_t words)
{
    return _mm512_maskz_loadu_epi32(first(words), from);
}

PART void store_words(uint8_t *to, vector v, size_t words)
{
    _mm512_mask_storeu_epi32(to, first(words), v);
}

PART vector first_words(uint32_t a, uint32_t b)
{
    return _mm512_zextsi128_si512(_mm_set_epi32(0, 0, (int)b, (int)a));
}

PART vector plus(vector a, vector b)
{
    return _mm512_xor_si512(a, b);
}

PART vector with_bits(vector v, vector ones)
{
    return _mm512_or_si512(v, ones);
}

// Which words a vector consists of when it has gone on by so many.
PART __m512i places_from(size_t words)
{
    const __m512i places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_add_epi32(places, _mm512_set1_epi32((int)words));
}

PART vector moved_out(vector v, size_t words)
{
    __mmask16 last = (__mmask16)(UINT16_MAX << (VECTOR_WORDS - words));
    return _mm512_maskz_permutexvar_epi32(last, places_from(words), v);
}

PART vector moved_in(vector v, vector behind, size_t words)
{
    return _mm512_permutex2var_epi32(v, places_from(words), behind);
}

PART vector fold_into(vector v, vector by, vector sum)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, by, 0x00), _mm512_clmulepi64_epi128(v, by, 0x11), sum,
                                     0x96);
}

PART vector even_words(vector v)
{
    return _mm512_and_si512(v, _mm512_set1_epi64(UINT32_MAX));
}

PART vector odd_words(vector v)
{
    return _mm512_srli_epi64(v, 32);
}

PART __m128i lanes_sum(vector v)
{
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

#include "wire/crc32_body.h"
