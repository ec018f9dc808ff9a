// SPDX-License-Identifier: BSD-2-Clause
// Running a CRC-32 backwards.
//
// A word w that stands n words before the end of a message (itself included) adds w * x^(32 n) mod P to the CRC. So the
// word that explains a difference is difference * x^(-32 n) mod P: one multiplication in GF(2)[x] / P by a constant
// from a table. All polynomials are reflected: bit 31 - i is the coefficient of x^i.
#include "wire/crc32.h"

#define POLYNOMIAL 0xedb88320u // without x^32
#define ONE        0x80000000u

static uint32_t times_x(uint32_t a)
{
    return a >> 1 ^ (a & 1 ? POLYNOMIAL : 0);
}

static uint32_t over_x(uint32_t a)
{
    return a & ONE ? (a ^ POLYNOMIAL) << 1 | 1 : a << 1;
}

// a * b mod P, for any processor.
static uint32_t multiply_portable(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a; a <<= 1) {
        product ^= a & ONE ? b : 0;
        b = times_x(b);
    }
    return product;
}

static uint32_t (*multiply)(uint32_t a, uint32_t b) = multiply_portable;

#ifdef __x86_64__
#include <immintrin.h>

// The same with carry-less multiplication. The product of two reflected 32-bit polynomials is short of one place in 64
// bits; then a Barrett reduction folds its upper degrees (the low word) back: quotient by x^64 / P, times P.
__attribute__((target("pclmul"))) static uint32_t multiply_pclmul(uint32_t a, uint32_t b)
{
    const __m128i constants = _mm_set_epi64x(0x1db710641, 0x1f7011641); // P and x^64 / P, both reflected, 33 bits
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0x00);
    uint64_t r = (uint64_t)_mm_cvtsi128_si64(product) << 1;
    __m128i quotient = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)r), constants, 0x00);
    quotient = _mm_cvtsi32_si128(_mm_cvtsi128_si32(quotient));
    uint64_t multiple = (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(quotient, constants, 0x10));
    return (uint32_t)((r ^ multiple) >> 32);
}
#endif

static uint32_t x_to_minus_32n[ALB_CRC32_WORDS_MAX + 1];

// A few microseconds when the program starts; read only from then on.
__attribute__((constructor)) static void init(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("pclmul"))
        multiply = multiply_pclmul;
#endif
    uint32_t step = ONE;
    for (unsigned i = 0; i < 32; i++)
        step = over_x(step);
    x_to_minus_32n[0] = ONE;
    for (unsigned n = 1; n <= ALB_CRC32_WORDS_MAX; n++)
        x_to_minus_32n[n] = multiply(x_to_minus_32n[n - 1], step);
}

uint32_t alb_crc32_word_for(uint32_t difference, uint32_t words)
{
    alb_assert(words >= 1 && words <= ALB_CRC32_WORDS_MAX);
    return multiply(difference, x_to_minus_32n[words]);
}
