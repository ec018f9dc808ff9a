// SPDX-License-Identifier: BSD-2-Clause
#include "wire/crc32_kernel.h"

#include "base/tests/test.h"

#include <string.h>
#include <sys/mman.h>

#define ROOM   8192
#define EDGE   64 // bytes beside a copy that must stay as they are
#define PIECES 4
#define ONES   0xff00ff5au

static uint8_t source[ROOM];
static alb_crc32_kernel *kernel; // the one that is tested

static void fill_source(void)
{
    uint32_t random = 3;
    for (uint32_t i = 0; i < ROOM; i++) {
        random = random * 1664525 + 1013904223;
        source[i] = (uint8_t)(random >> 24);
    }
}

// The same bytes in one piece, with the bits set.
static uint32_t crc_of(uint32_t before, const struct iovec *iov, uint32_t length)
{
    static uint8_t bytes[ROOM];
    uint32_t second;
    for (uint32_t at = 0; at < length; iov++) {
        size_t part = ALB_MIN(iov->iov_len, (size_t)(length - at));
        memcpy(bytes + at, iov->iov_base, part);
        at += (uint32_t)part;
    }
    memcpy(&second, bytes + 4, sizeof(second));
    second |= ONES;
    memcpy(bytes + 4, &second, sizeof(second));
    return alb_crc32(before, bytes, length);
}

// Copied to this place of a cache line, and not copied: the CRC is that of these bytes, and nothing else is written.
static void expect_pieces(const struct iovec *iov, uint32_t length, uint32_t to)
{
    static uint8_t copy[ROOM + 4 * EDGE];
    uint8_t *start = copy + EDGE + to;
    uint32_t before = 0x1234567 * length;
    uint32_t expected = crc_of(before, iov, length);
    memset(copy, 0xa5, EDGE + to + length + EDGE);
    assert_int_equal(kernel(before, iov, length, ONES, NULL), expected);
    assert_int_equal(kernel(before, iov, length, ONES, start), expected);
    for (uint32_t at = 0; at < length; iov++) {
        size_t part = ALB_MIN(iov->iov_len, (size_t)(length - at));
        assert_memory_equal(start + at, iov->iov_base, part);
        at += (uint32_t)part;
    }
    for (uint32_t i = 0; i < EDGE; i++) {
        assert_int_equal(copy[to + i], 0xa5);
        assert_int_equal(start[length + i], 0xa5);
    }
}

static void expect_one(uint32_t from, uint32_t to, uint32_t length)
{
    const struct iovec iov = {source + from, ROOM - from}; // what follows length is not looked at
    expect_pieces(&iov, length, to);
}

// A header, payload, and a trailer of which only the pad is covered.
static void expect_packet(uint32_t header, uint32_t payload, uint32_t pad)
{
    const struct iovec iov[PIECES] = {
        {source, header}, {source + 2048 + header, payload}, {source + 1024, 0}, {source + 1001, pad + 4}};
    expect_pieces(iov, header + payload + pad, payload % 64);
}

static void expect_all(void)
{
    fill_source();
    for (uint32_t length = 8; length <= 2048; length++)
        expect_one(0, 0, length);
    for (uint32_t place = 0; place < 64; place++) {
        expect_one(place, 64 - place, 1396);
        expect_one(7, place, 1024);
        expect_one(place, 8, 259);
    }
    expect_one(1, 2, ROOM - 1);
    for (uint32_t header = 8; header <= 132; header += 4)
        for (uint32_t payload = 0; payload <= 700; payload += payload < 140 ? 1 : 27)
            expect_packet(header, payload, -payload & 3);
    expect_packet(9, 100, 3); // no header that there is, but words are shared between pieces
    const struct iovec many[PIECES] = {{source, 64}, {source + 9, 256}, {source + 900, 4}, {source + 700, 1000}};
    expect_pieces(many, 64 + 256 + 4 + 1000, 1);
}

#define PAGES_BYTES (4 * 4096)

// Memory between pages that may not be touched; its end.
static uint8_t *guarded(void)
{
    uint8_t *all = mmap(NULL, 3 * PAGES_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(all, MAP_FAILED);
    assert_int_equal(mprotect(all + PAGES_BYTES, PAGES_BYTES, PROT_READ | PROT_WRITE), 0);
    return all + 2 * PAGES_BYTES;
}

static uint32_t draw(uint32_t n)
{
    static uint32_t random = 9;
    random = random * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)random * n >> 32);
}

// Pieces of any length at the beginning or the end of what may be touched: nothing beyond them is, nor beyond the copy.
static void expect_nothing_beyond(void)
{
    uint8_t *ends[PIECES], *copy_end = guarded();
    for (uint32_t i = 0; i < PIECES; i++) {
        ends[i] = guarded();
        memcpy(ends[i] - PAGES_BYTES, source, ROOM);
        memcpy(ends[i] - ROOM, source, ROOM);
    }
    for (uint32_t round = 0; round < 20000; round++) {
        struct iovec iov[PIECES];
        uint32_t length = 0, count = 1 + draw(PIECES);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t bytes = draw(draw(3) ? 200 : 2000) & (draw(8) ? ~3u : ~0u);
            bytes = i == 0 ? ALB_MAX(bytes, 8u) : bytes;
            iov[i] = (struct iovec){draw(2) ? ends[i] - bytes : ends[i] - PAGES_BYTES, bytes};
            length += bytes;
        }
        uint8_t *copy = draw(2) ? copy_end - length : copy_end - PAGES_BYTES;
        uint32_t expected = crc_of(round, iov, length);
        assert_int_equal(kernel(round, iov, length, ONES, NULL), expected);
        assert_int_equal(kernel(round, iov, length, ONES, copy), expected);
    }
    munmap(copy_end - 2 * PAGES_BYTES, 3 * PAGES_BYTES);
    for (uint32_t i = 0; i < PIECES; i++)
        munmap(ends[i] - 2 * PAGES_BYTES, 3 * PAGES_BYTES);
}

static void crc32_pieces__is_the_crc_of_all_and_a_copy(void **state)
{
    kernel = alb_crc32_pieces;
    expect_all();
    expect_nothing_beyond();
}

static void crc32_pieces__is_the_same_by_each_kernel(void **state)
{
    for (uint32_t i = 0; (kernel = alb_crc32_kernel_here(i)); i++) {
        expect_all();
        expect_nothing_beyond();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32_pieces__is_the_crc_of_all_and_a_copy),
        cmocka_unit_test(crc32_pieces__is_the_same_by_each_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
