// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 forwards, by ISA-L or (short ones) by multiplication, and backwards.
//
// Backwards: a word w that stands n words before the end of a message (itself included) adds w * x^(32 n) mod P to the
// CRC. So the word that explains a difference is difference * x^(-32 n) mod P: one multiplication in GF(2)[x] / P by a
// constant from a table. All polynomials are reflected: bit 31 - i is the coefficient of x^i.
#include "wire/crc32.h"
#include "wire/crc32_reduce.h"

#include <isa-l/crc.h>
#include <string.h>

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

static uint32_t x_to_32n[ALB_CRC32_SHORT_WORDS + 1];
static uint32_t x_to_minus_32n[ALB_CRC32_WORDS_MAX + 1];

static uint32_t short_portable(uint32_t crc, const uint32_t *words, uint32_t count)
{
    return alb_crc32(crc, words, 4 * (size_t)count);
}

static uint32_t short_masked_portable(uint32_t crc, const uint8_t *bytes, uint32_t count, uint32_t ones)
{
    uint32_t words[ALB_CRC32_SHORT_WORDS];
    memcpy(words, bytes, 4 * (size_t)count);
    words[1] |= ones;
    return short_portable(crc, words, count);
}

static uint32_t (*multiply)(uint32_t a, uint32_t b) = multiply_portable;
static uint32_t (*crc32_short)(uint32_t crc, const uint32_t *words, uint32_t count) = short_portable;
static uint32_t (*crc32_short_masked)(uint32_t crc, const uint8_t *bytes, uint32_t count,
                                      uint32_t ones) = short_masked_portable;

#ifdef __x86_64__
#define TARGET __attribute__((target("pclmul")))

// Two reflected 32-bit polynomials, multiplied without carries: the product's bit 62 - i is the coefficient of x^i.
TARGET static inline __m128i carryless(uint32_t a, uint32_t b)
{
    return _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0x00);
}

TARGET static uint32_t multiply_pclmul(uint32_t a, uint32_t b)
{
    return alb_crc32_reduce(carryless(a, b));
}

// Each word times its own power of x, all independent of each other, and one reduction for the sum.
TARGET static uint32_t short_pclmul(uint32_t crc, const uint32_t *words, uint32_t count)
{
    __m128i sum = carryless(~crc ^ words[0], x_to_32n[count]);
    for (uint32_t i = 1; i < count; i++)
        sum = _mm_xor_si128(sum, carryless(words[i], x_to_32n[count - i]));
    return ~alb_crc32_reduce(sum);
}

static inline uint32_t word_at(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

TARGET static uint32_t short_masked_pclmul(uint32_t crc, const uint8_t *bytes, uint32_t count, uint32_t ones)
{
    const uint32_t *power = &x_to_32n[count];
    __m128i sum = carryless(~crc ^ word_at(bytes), *power--);
    sum = _mm_xor_si128(sum, carryless(word_at(bytes + 4) | ones, *power--));
    for (const uint8_t *end = bytes + 4 * (size_t)count, *p = bytes + 8; p != end; p += 4)
        sum = _mm_xor_si128(sum, carryless(word_at(p), *power--));
    return ~alb_crc32_reduce(sum);
}
#endif

#ifdef __x86_64__
// ISA-L 2.30's AVX-512 code leaves the upper halves of the vector registers dirty, and the next SSE instruction,
// wherever it is, pays for that: 44 ns became 190 ns for a packet of 1 KiB on a Xeon of 2023.
static bool must_clean_registers;

static inline void clean_registers(void)
{
    if (must_clean_registers)
        __asm__ volatile("vzeroupper" ::
                             : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                               "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#else
static inline void clean_registers(void)
{
}
#endif

uint32_t alb_crc32(uint32_t crc, const void *bytes, size_t length)
{
    crc = crc32_gzip_refl(crc, bytes, length);
    clean_registers();
    return crc;
}

// powers[n] = factor^n.
static void fill_powers(uint32_t *powers, uint32_t last, uint32_t factor)
{
    powers[0] = ONE;
    for (uint32_t n = 1; n <= last; n++)
        powers[n] = multiply(powers[n - 1], factor);
}

// A few microseconds when the program starts; read only from then on.
__attribute__((constructor(ALB_CRC32_INIT))) static void init(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("pclmul")) {
        multiply = multiply_pclmul;
        crc32_short = short_pclmul;
        crc32_short_masked = short_masked_pclmul;
    }
    must_clean_registers = __builtin_cpu_supports("avx");
#endif
    uint32_t x_to_32 = ONE, x_to_minus_32 = ONE;
    for (unsigned i = 0; i < 32; i++) {
        x_to_32 = times_x(x_to_32);
        x_to_minus_32 = over_x(x_to_minus_32);
    }
    fill_powers(x_to_32n, ALB_CRC32_SHORT_WORDS, x_to_32);
    fill_powers(x_to_minus_32n, ALB_CRC32_WORDS_MAX, x_to_minus_32);
}

uint32_t alb_crc32_short(uint32_t crc, const uint32_t *words, uint32_t count)
{
    alb_assert(count >= 1 && count <= ALB_CRC32_SHORT_WORDS);
    return crc32_short(crc, words, count);
}

uint32_t alb_crc32_short_masked(uint32_t crc, const uint8_t *bytes, uint32_t count, uint32_t ones)
{
    alb_assert(count >= 2 && count <= ALB_CRC32_SHORT_WORDS);
    return crc32_short_masked(crc, bytes, count, ones);
}

uint32_t alb_crc32_change(uint32_t difference, uint32_t words)
{
    alb_assert(words >= 1 && words <= ALB_CRC32_SHORT_WORDS);
    return multiply(difference, x_to_32n[words]);
}

uint32_t alb_crc32_word_for(uint32_t difference, uint32_t words)
{
    alb_assert(words >= 1 && words <= ALB_CRC32_WORDS_MAX);
    return multiply(difference, x_to_minus_32n[words]);
}
