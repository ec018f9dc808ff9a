// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 as in IEEE 802.3 (reflected polynomial 0xedb88320, ones before and after), and its inverse.
#pragma once

#include "base/types.h"

#include <sys/uio.h>

#define ALB_CRC32_SHORT_WORDS 32

// Priority of the constructor behind which these functions may be called.
#define ALB_CRC32_INIT 201

// The longest distance, in words of four bytes, that alb_crc32_word_for() can look back.
#define ALB_CRC32_WORDS_MAX 1088

// Goes on with a CRC (0 to begin with) over bytes more.
uint32_t alb_crc32(uint32_t crc, const void *bytes, size_t length);

// alb_crc32() over count words (1 ... ALB_CRC32_SHORT_WORDS) as they lie in memory. Several times as fast as
// alb_crc32() for bytes this few, and at ease with words that have just been stored.
uint32_t alb_crc32_short(uint32_t crc, const uint32_t *words, uint32_t count);
// The same of count words (2 ... ALB_CRC32_SHORT_WORDS) that lie anywhere; the second is taken with the bits of ones
// set.
uint32_t alb_crc32_short_masked(uint32_t crc, const uint8_t *bytes, uint32_t count, uint32_t ones);

// The same over the first length bytes of iov, at least 8 of them in the first piece. They are copied as they are, if
// copy is not NULL, to where they overlap nothing: the CRC is that of the copy, whatever happens to them meanwhile.
uint32_t alb_crc32_pieces(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones, uint8_t *copy);

// By how much the CRC of a message changes when one of its aligned words changes by difference. words counts from that
// word (included) to the end of the message, 1 ... ALB_CRC32_SHORT_WORDS.
uint32_t alb_crc32_change(uint32_t difference, uint32_t words);

// Which change of one aligned word of a message changes its CRC by difference. words counts from that word (included)
// to the end of the message, 1 ... ALB_CRC32_WORDS_MAX. The word is as a little-endian load gives it. Always exactly
// one does.
uint32_t alb_crc32_word_for(uint32_t difference, uint32_t words);
