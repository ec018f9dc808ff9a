// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 of a packet that lies in pieces, by vectors of 512 bits, which are stored too if a copy is wanted; elsewhere
// piece by piece, the short ones gathered first, since a call of the CRC function costs as much as a few hundred bytes
// of it.
//
// A vector that stands d bits before another one adds as much to the CRC as its product by x^d mod P does in the place
// of that one (folding). Each 64-bit half of a 128-bit lane is multiplied by a constant of its own: the reflected
// x^(d + 32) and x^(d - 32) mod P, in 33 bits, which make up for the 64 bits between both and for the product's 32
// more. So one vector stands for all that has been read, until the last one is reduced to the CRC.
#include "wire/crc32.h"
#include "wire/crc32_reduce.h"

#include <string.h>

#define GATHERED_MAX 72 // bytes of leading pieces that join in one short CRC
_Static_assert(GATHERED_MAX / 4 <= ALB_CRC32_SHORT_WORDS, "it is one short CRC");

// A place among the bytes of a packet.
struct cursor {
    const struct iovec *iov;
    size_t skip;   // bytes of *iov that are behind us
    uint32_t left; // bytes to the end of the packet
};

// Copies the leading pieces that are short, and the first two words in any case. Returns the bytes copied.
static uint32_t gather_short(struct cursor *at, uint8_t *to)
{
    uint32_t copied = 0;
    while (at->left) {
        size_t part = ALB_MIN(at->iov->iov_len, (size_t)at->left);
        if (part > GATHERED_MAX - copied)
            break;
        memcpy(to + copied, at->iov->iov_base, part);
        copied += (uint32_t)part;
        at->left -= (uint32_t)part;
        at->iov++;
    }
    if (copied == 0) {
        copied = 8;
        memcpy(to, at->iov->iov_base, copied);
        at->left -= copied;
        at->skip = copied;
    }
    return copied;
}

static uint32_t crc32_rest(uint32_t crc, struct cursor *at, uint8_t *copy)
{
    for (; at->left; at->iov++, at->skip = 0) {
        uint32_t part = (uint32_t)ALB_MIN(at->iov->iov_len - at->skip, (size_t)at->left);
        const uint8_t *bytes = (const uint8_t *)at->iov->iov_base + at->skip;
        at->left -= part;
        if (part == 0)
            continue;
        if (copy) {
            memcpy(copy, bytes, part);
            bytes = copy; // which is in the cache
            copy += part;
        }
        crc = alb_crc32(crc, bytes, part);
    }
    return crc;
}

static uint32_t pieces_portable(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones, uint8_t *copy)
{
    struct cursor at = {.iov = iov, .left = length};
    uint32_t head[GATHERED_MAX / 4];
    uint32_t gathered = gather_short(&at, (uint8_t *)head);
    if (copy) {
        memcpy(copy, head, gathered);
        copy += gathered;
    }
    head[1] |= ones;
    crc = alb_crc32_short(crc, head, gathered / 4);
    if (gathered % 4)
        crc = alb_crc32(crc, (uint8_t *)head + (gathered & ~3u), gathered % 4);
    return crc32_rest(crc, &at, copy);
}

static uint32_t (*crc32_pieces)(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones,
                                uint8_t *copy) = pieces_portable;

#ifdef __x86_64__
#define TARGET __attribute__((target("avx512f,vpclmulqdq,pclmul")))
#define PART   TARGET __attribute__((always_inline)) static inline
#define VECTOR 64
#define WORDS  (VECTOR / 4)
#define ONE    0x80000000u // the polynomial 1, reflected

#define X_TO_1024 0x14a7fe880, 0x1e88ef372
#define X_TO_512  0x1c6e41596, 0x154442bd4

// What the words of a vector are multiplied by, those with an even index and those with an odd one: x^(32 n), where n
// words are left from that one (included).
static _Alignas(64) uint64_t powers_of_even[WORDS / 2], powers_of_odd[WORDS / 2];

#define LANES_BY_(high, low) _mm512_set_epi64(high, low, high, low, high, low, high, low)
#define LANES_BY(x_to_d)     LANES_BY_(x_to_d) // each lane by the same constants

// The product, to be added to what stands that many bits behind; and that, too.
PART __m512i fold_into(__m512i vector, __m512i by, __m512i sum)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(vector, by, 0x00),
                                     _mm512_clmulepi64_epi128(vector, by, 0x11), sum, 0x96);
}

// The bytes of a piece that are still to be read, and where they are copied to, or NULL.
struct piece {
    const uint8_t *from;
    uint8_t *to;
    size_t length; // a multiple of four
};

PART __m512i take_vector(struct piece *piece)
{
    __m512i vector = _mm512_loadu_si512(piece->from);
    piece->from += VECTOR;
    piece->length -= VECTOR;
    if (piece->to) {
        _mm512_storeu_si512(piece->to, vector);
        piece->to += VECTOR;
    }
    return vector;
}

// The first words (1 ... WORDS) of a piece, at the beginning of a vector. What comes behind them is anything.
PART __m512i take_words(struct piece *piece, size_t words)
{
    __mmask16 mask = piece->length < VECTOR ? (__mmask16)((1u << words) - 1) : UINT16_MAX;
    __m512i vector = _mm512_maskz_loadu_epi32(mask, piece->from);
    piece->from += 4 * words;
    piece->length -= 4 * words;
    if (piece->to) {
        _mm512_mask_storeu_epi32(piece->to, mask, vector); // and what comes behind them is stored again
        piece->to += 4 * words;
    }
    return vector;
}

// Which words a vector consists of when it has gone on by so many.
PART __m512i places_from(size_t words)
{
    const __m512i places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_add_epi32(places, _mm512_set1_epi32((int)words));
}

PART __mmask16 last_lanes(size_t words)
{
    return (__mmask16)(UINT16_MAX << (WORDS - words));
}

// That many words are added behind what has been read. What is pushed out of the vector by them is folded into it.
PART __m512i join(__m512i sum, __m512i behind, size_t words)
{
    __m512i from = places_from(words);
    __m512i out = _mm512_maskz_permutexvar_epi32(last_lanes(words), from, sum);
    return fold_into(out, LANES_BY(X_TO_512), _mm512_permutex2var_epi32(sum, from, behind));
}

// Whole vectors. Two sums, so that no product waits for the one before it; a vector that is left over when they are
// dealt out comes first.
PART __m512i take_vectors(__m512i sum, struct piece *piece)
{
    const __m512i by_512 = LANES_BY(X_TO_512), by_1024 = LANES_BY(X_TO_1024);
    if (piece->length % (2 * VECTOR) != 0)
        sum = fold_into(sum, by_512, take_vector(piece));
    if (piece->length == 0)
        return sum;
    __m512i a = _mm512_setzero_si512();
    while (piece->length) {
        a = fold_into(a, by_1024, take_vector(piece));
        sum = fold_into(sum, by_1024, take_vector(piece));
    }
    return fold_into(a, by_512, sum);
}

// The CRC of 512 bits: each word times its own power of x, all independent of each other, and one reduction of the sum.
PART uint32_t finish(__m512i sum)
{
    const __m512i by_even = _mm512_load_si512(powers_of_even), by_odd = _mm512_load_si512(powers_of_odd);
    __m512i even = _mm512_and_si512(sum, _mm512_set1_epi64(UINT32_MAX)), odd = _mm512_srli_epi64(sum, 32);
    __m512i products = fold_into(even, by_even, fold_into(odd, by_odd, _mm512_setzero_si512()));
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(products), _mm512_extracti64x4_epi64(products, 1));
    return ~alb_crc32_reduce(_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

// The first piece: what has been before it is added to its first word.
PART __m512i begin(uint32_t crc, struct piece *piece, uint32_t ones)
{
    size_t words = (piece->length / 4 - 1) % WORDS + 1;
    __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc));
    __m512i masked = _mm512_zextsi128_si512(_mm_set_epi32(0, 0, (int)ones, 0));
    __m512i first = take_words(piece, words);
    first = _mm512_ternarylogic_epi64(first, before, masked, 0xbe);                       // (first ^ before) | masked
    first = _mm512_maskz_permutexvar_epi32(last_lanes(words), places_from(words), first); // zeros before change nothing
    return take_vectors(first, piece);
}

PART uint32_t read_pieces(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones, uint8_t *copy)
{
    struct piece piece = {.from = iov->iov_base, .to = copy, .length = ALB_MIN(iov->iov_len, (size_t)length)};
    uint32_t left = length - (uint32_t)piece.length;
    __m512i sum = begin(crc, &piece, ones);
    while (left) {
        iov++;
        piece.from = iov->iov_base;
        piece.length = ALB_MIN(iov->iov_len, (size_t)left);
        left -= (uint32_t)piece.length;
        size_t words = piece.length / 4 % WORDS;
        if (words)
            sum = join(sum, take_words(&piece, words), words);
        sum = take_vectors(sum, &piece);
    }
    return finish(sum);
}

// Each piece is of whole words, and the first two are read together.
static bool are_words(const struct iovec *iov, uint32_t length)
{
    bool is_second_apart = iov->iov_len < length ? iov->iov_len % VECTOR == 4 : length % VECTOR == 4;
    if (length % 4 != 0 || is_second_apart)
        return false;
    for (uint32_t at = 0; at < length; iov++) {
        if (at + iov->iov_len < length && iov->iov_len % 4 != 0)
            return false;
        at += (uint32_t)ALB_MIN(iov->iov_len, (size_t)(length - at));
    }
    return true;
}

TARGET static uint32_t pieces_by_vectors(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones,
                                         uint8_t *copy)
{
    if (!are_words(iov, length))
        return pieces_portable(crc, iov, length, ones, copy);
    return copy ? read_pieces(crc, iov, length, ones, copy) : read_pieces(crc, iov, length, ones, NULL);
}

__attribute__((constructor)) static void init(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul"))
        crc32_pieces = pieces_by_vectors;
    for (uint32_t i = 0; i < WORDS / 2; i++) {
        powers_of_even[i] = alb_crc32_change(ONE, WORDS - 2 * i);
        powers_of_odd[i] = alb_crc32_change(ONE, WORDS - 2 * i - 1);
    }
}
#endif

uint32_t alb_crc32_pieces(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones, uint8_t *copy)
{
    alb_assert(length >= 8 && iov->iov_len >= 8);
    return crc32_pieces(crc, iov, length, ones, copy);
}
