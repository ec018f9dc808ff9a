// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 of a packet that lies in pieces, by vectors, which are stored too if a copy is wanted. Who includes this file
// names the kernel (ALB_CRC32_KERNEL) and says before what its vectors can do:
//
//   VECTOR                                   bytes of one, VECTOR_WORDS its words of 32 bits
//   TARGET, PART                             attributes of functions for such a processor, and of parts of them
//   vector                                   the type
//   load(p), store(p, v)                     a whole one, anywhere
//   load_words(p, n), store_words(p, v, n)   its first n words (1 ... VECTOR_WORDS) alone; the others are zeros
//   first_words(a, b)                        these two words, behind them zeros
//   plus(a, b), with_bits(v, ones)           as polynomials, which is XOR; and OR
//   moved_out(v, n)                          its first n words as the last ones; zeros before them
//   moved_in(v, behind, n)                   the others, and behind them n words of behind
//   fold_into(v, by, sum)                    sum + the products of v's 64-bit halves by those of by, lane by lane
//   LANES_BY(high, low)                      each lane of 128 bits by these
//   X_TO_VECTOR, X_TO_VECTORS                such a pair for the bits of one vector, and of two
//   even_words(v), odd_words(v)              in 64 bits each
//   lanes_sum(v)                             the sum of its lanes
//
// A vector that stands d bits before another one adds as much to the CRC as its product by x^d mod P does in the place
// of that one (folding). Each 64-bit half of a 128-bit lane is multiplied by a constant of its own: the reflected
// x^(d + 32) and x^(d - 32) mod P, in 33 bits, which make up for the 64 bits between both and for the product's 32
// more. So one vector stands for all that has been read, until the last one is reduced to the CRC.
#include "wire/crc32_kernel.h"
#include "wire/crc32_reduce.h"

#include <string.h>

#define ONE 0x80000000u // the polynomial 1, reflected

// What the words of a vector are multiplied by, those with an even index and those with an odd one: x^(32 n), where n
// words are left from that one (included).
static vector powers_of_even, powers_of_odd;

// The bytes of a piece that are still to be read, and where they are copied to, or NULL.
struct piece {
    const uint8_t *from;
    uint8_t *to;
    size_t length; // a multiple of four
};

PART void pass(struct piece *piece, size_t words)
{
    piece->from += 4 * words;
    piece->length -= 4 * words;
    if (piece->to)
        piece->to += 4 * words;
}

PART vector take_vector(struct piece *piece)
{
    vector taken = load(piece->from);
    if (piece->to)
        store(piece->to, taken);
    pass(piece, VECTOR_WORDS);
    return taken;
}

// The first words (1 ... VECTOR_WORDS) of a piece, at the beginning of a vector. What comes behind them is anything.
PART vector take_words(struct piece *piece, size_t words)
{
    bool is_whole = piece->length >= VECTOR; // what comes behind the words is stored again
    vector taken = is_whole ? load(piece->from) : load_words(piece->from, words);
    if (piece->to && is_whole)
        store(piece->to, taken);
    else if (piece->to)
        store_words(piece->to, taken, words);
    pass(piece, words);
    return taken;
}

// That many words are added behind what has been read. What is pushed out of the vector by them is folded into it.
PART vector join(vector sum, vector behind, size_t words)
{
    return fold_into(moved_out(sum, words), LANES_BY(X_TO_VECTOR), moved_in(sum, behind, words));
}

// Whole vectors. Two sums, so that no product waits for the one before it; a vector that is left over when they are
// dealt out comes first.
PART vector take_vectors(vector sum, struct piece *piece)
{
    const vector by_one = LANES_BY(X_TO_VECTOR), by_two = LANES_BY(X_TO_VECTORS);
    if (piece->length % (2 * VECTOR) != 0)
        sum = fold_into(sum, by_one, take_vector(piece));
    if (piece->length == 0)
        return sum;
    vector a = first_words(0, 0);
    while (piece->length) {
        a = fold_into(a, by_two, take_vector(piece));
        sum = fold_into(sum, by_two, take_vector(piece));
    }
    return fold_into(a, by_one, sum);
}

// The CRC of one vector: each word times its own power of x, all independent of each other, and one reduction of the
// sum.
PART uint32_t finish(vector sum)
{
    vector products = fold_into(odd_words(sum), powers_of_odd, first_words(0, 0));
    products = fold_into(even_words(sum), powers_of_even, products);
    return ~alb_crc32_reduce(lanes_sum(products));
}

// The first piece: what has been before it is added to its first word.
PART vector begin(uint32_t crc, struct piece *piece, uint32_t ones)
{
    size_t words = (piece->length / 4 - 1) % VECTOR_WORDS + 1;
    vector first = take_words(piece, words);
    first = with_bits(plus(first, first_words(~crc, 0)), first_words(0, ones));
    return take_vectors(moved_out(first, words), piece); // zeros before change nothing
}

PART uint32_t read_pieces(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones, uint8_t *copy)
{
    struct piece piece = {.from = iov->iov_base, .to = copy, .length = ALB_MIN(iov->iov_len, (size_t)length)};
    uint32_t left = length - (uint32_t)piece.length;
    vector sum = begin(crc, &piece, ones);
    while (left) {
        iov++;
        piece.from = iov->iov_base;
        piece.length = ALB_MIN(iov->iov_len, (size_t)left);
        left -= (uint32_t)piece.length;
        size_t words = piece.length / 4 % VECTOR_WORDS;
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

TARGET uint32_t ALB_CRC32_KERNEL(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones, uint8_t *copy)
{
    if (!are_words(iov, length))
        return alb_crc32_pieces_plain(crc, iov, length, ones, copy);
    return copy ? read_pieces(crc, iov, length, ones, copy) : read_pieces(crc, iov, length, ones, NULL);
}

// On any processor, also on one without such vectors.
__attribute__((constructor(ALB_CRC32_INIT + 1))) static void init(void)
{
    uint64_t even[VECTOR_WORDS / 2], odd[VECTOR_WORDS / 2];
    for (uint32_t i = 0; i < VECTOR_WORDS / 2; i++) {
        even[i] = alb_crc32_change(ONE, VECTOR_WORDS - 2 * i);
        odd[i] = alb_crc32_change(ONE, VECTOR_WORDS - 2 * i - 1);
    }
    memcpy(&powers_of_even, even, sizeof(even));
    memcpy(&powers_of_odd, odd, sizeof(odd));
}
