// SPDX-License-Identifier: BSD-2-Clause
// The last step of a CRC by multiplication: a sum of products without carries becomes 32 bits.
#pragma once

#include <stdint.h>

#ifdef __x86_64__
#include <immintrin.h>

// sum: of products of two reflected 32-bit polynomials each, in its low half, where bit 62 - i is the coefficient of
// x^i. Returns it modulo P: a Barrett reduction folds its upper degrees (the low word) back, quotient by x^64 / P,
// times P.
__attribute__((target("pclmul"))) static inline uint32_t alb_crc32_reduce(__m128i sum)
{
    const __m128i constants = _mm_set_epi64x(0x1db710641, 0x1f7011641); // P and x^64 / P, reflected, 33 bits
    sum = _mm_slli_epi64(sum, 1);
    __m128i low = _mm_and_si128(sum, _mm_cvtsi32_si128(-1));
    __m128i quotient = _mm_and_si128(_mm_clmulepi64_si128(low, constants, 0x00), _mm_cvtsi32_si128(-1));
    sum = _mm_xor_si128(sum, _mm_clmulepi64_si128(quotient, constants, 0x10));
    return (uint32_t)((uint64_t)_mm_cvtsi128_si64(sum) >> 32);
}
#endif
