// SPDX-License-Identifier: BSD-2-Clause
// CRC-32 of a packet that lies in pieces: which kernel computes it on this machine, and the one for any: piece by
// piece, the short ones gathered first, since a call of the CRC function costs as much as a few hundred bytes of it.
#include "wire/crc32_kernel.h"

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

uint32_t alb_crc32_pieces_plain(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones, uint8_t *copy)
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

alb_crc32_kernel *alb_crc32_kernel_here(uint32_t index)
{
    alb_crc32_kernel *kernels[3];
    uint32_t count = 0;
    kernels[count++] = alb_crc32_pieces_plain;
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("vpclmulqdq")) {
        if (__builtin_cpu_supports("avx2"))
            kernels[count++] = alb_crc32_pieces_avx2;
        if (__builtin_cpu_supports("avx512f"))
            kernels[count++] = alb_crc32_pieces_avx512;
    }
#endif
    return index < count ? kernels[index] : NULL;
}

static alb_crc32_kernel *best = alb_crc32_pieces_plain;

__attribute__((constructor)) static void init(void)
{
    alb_crc32_kernel *kernel;
    for (uint32_t i = 0; (kernel = alb_crc32_kernel_here(i)); i++)
        best = kernel;
}

uint32_t alb_crc32_pieces(uint32_t crc, const struct iovec *iov, uint32_t length, uint32_t ones, uint8_t *copy)
{
    alb_assert(length >= 8 && iov->iov_len >= 8);
    return best(crc, iov, length, ones, copy);
}
