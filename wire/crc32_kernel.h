// SPDX-License-Identifier: BSD-2-Clause
// One way to compute alb_crc32_pieces().
#pragma once

#include "wire/crc32.h"

typedef uint32_t alb_crc32_kernel(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones, uint8_t *copy);

alb_crc32_kernel alb_crc32_pieces_plain;
// By vectors, for processors that multiply them without carries (VPCLMULQDQ).
alb_crc32_kernel alb_crc32_pieces_avx2;
alb_crc32_kernel alb_crc32_pieces_avx512;

// Those that run on this machine, the slowest first; NULL behind the last.
alb_crc32_kernel *alb_crc32_kernel_here(uint32_t index);
