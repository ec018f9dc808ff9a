// SPDX-License-Identifier: BSD-2-Clause
// Blocks that do not overlap, are aligned and come back as the whole arena, for arenas of odd sizes too; what is not in
// use is not touched; a block given back twice stops the process.
#include "base/buddy.h"
#include "base/prng.h"
#include "base/tests/child.h"
#include "base/tests/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct alb_buddy buddy;
    char *arena;
    void *bookkeeping;
    size_t arena_bytes, bookkeeping_bytes;
};

static void *map(size_t bytes)
{
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(address, MAP_FAILED);
    madvise(address, bytes, MADV_NOHUGEPAGE); // a test counts pages
    return address;
}

static void start(struct fixture *f, size_t arena_bytes)
{
    f->arena_bytes = arena_bytes;
    f->bookkeeping_bytes = alb_buddy_bookkeeping_bytes(arena_bytes);
    f->arena = map(arena_bytes + 1); // some arenas are empty
    f->bookkeeping = map(f->bookkeeping_bytes + 1);
    alb_buddy_init(&f->buddy, f->arena, arena_bytes, f->bookkeeping);
}

static void stop(struct fixture *f)
{
    munmap(f->arena, f->arena_bytes + 1);
    munmap(f->bookkeeping, f->bookkeeping_bytes + 1);
}

static void alb_buddy_get__takes_the_lowest_block_that_fits(void **state)
{
    struct fixture f;
    start(&f, 4096);
    assert_ptr_equal(alb_buddy_get(&f.buddy, 1), f.arena);
    assert_ptr_equal(alb_buddy_get(&f.buddy, 65), f.arena + 128);
    assert_ptr_equal(alb_buddy_get(&f.buddy, 64), f.arena + 64);
    assert_ptr_equal(alb_buddy_get(&f.buddy, 1024), f.arena + 1024);
    assert_int_equal(alb_buddy_used(&f.buddy), 64 + 128 + 64 + 1024);
    assert_ptr_equal(alb_buddy_get(&f.buddy, 2048), f.arena + 2048);
    assert_null(alb_buddy_get(&f.buddy, 1024)); // 768 bytes are free, in two blocks
    alb_buddy_put(&f.buddy, f.arena + 128, 65);
    assert_null(alb_buddy_get(&f.buddy, 1024));
    assert_int_equal(alb_buddy_used(&f.buddy), 64 + 64 + 1024 + 2048);
    stop(&f);
}

static void alb_buddy_get__whole_arena_or_nothing(void **state)
{
    struct fixture f;
    start(&f, 1 << 20);
    assert_null(alb_buddy_get(&f.buddy, (1 << 20) + 1));
    assert_null(alb_buddy_get(&f.buddy, SIZE_MAX));
    assert_ptr_equal(alb_buddy_get(&f.buddy, (1 << 20)), f.arena);
    assert_null(alb_buddy_get(&f.buddy, 1));
    alb_buddy_put(&f.buddy, f.arena, 1 << 20);
    assert_ptr_equal(alb_buddy_get(&f.buddy, (1 << 19) + 1), f.arena);
    stop(&f);
}

static void alb_buddy_get__an_arena_of_any_size_is_used_whole(void **state)
{
    for (size_t units = 0; units < 300; units++) {
        struct fixture f;
        start(&f, units * 64 + units % 64);
        bool is_taken[300] = {0};
        for (size_t i = 0; i < units; i++) {
            size_t offset = (size_t)((char *)alb_buddy_get(&f.buddy, 64) - f.arena);
            assert_int_equal(offset % 64, 0);
            assert_true(offset / 64 < units && !is_taken[offset / 64]);
            is_taken[offset / 64] = true;
        }
        assert_null(alb_buddy_get(&f.buddy, 64));
        for (size_t i = 0; i < units; i += 2)
            alb_buddy_put(&f.buddy, f.arena + i * 64, 64);
        for (size_t i = 1; i < units; i += 2)
            alb_buddy_put(&f.buddy, f.arena + i * 64, 64);
        size_t largest = 64;
        while (largest * 2 <= units * 64)
            largest *= 2;
        assert_int_equal(alb_buddy_get(&f.buddy, largest) != NULL, units > 0);
        stop(&f);
    }
}

static void alb_buddy_block_bytes__what_is_no_larger_together_fits_in_any_order(void **state)
{
    uint64_t random = 1;
    for (uint32_t round = 0; round < 2000; round++) {
        struct fixture f;
        start(&f, 64 * (1 + round % 1500));
        size_t left = 64 * (1 + round % 1500);
        for (uint32_t attempt = 0; attempt < 200; attempt++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            size_t bytes = 1 + (random >> 33) % (64u << (random >> 60));
            size_t block = alb_buddy_block_bytes(bytes);
            assert_true(block >= bytes && (block == 64 || block < 2 * bytes));
            assert_int_equal(alb_buddy_get(&f.buddy, bytes) != NULL, block <= left);
            left -= block <= left ? block : 0;
        }
        stop(&f);
    }
}

enum { ARENA_BYTES = 300000, BLOCKS = 400 };

struct block {
    unsigned char *address;
    size_t bytes;
};

static void fill_block(const struct block *block, uint64_t tag)
{
    memset(block->address, (int)tag, block->bytes);
}

static void assert_intact(const struct block *block, uint64_t tag)
{
    for (size_t i = 0; i < block->bytes; i++)
        assert_int_equal(block->address[i], (unsigned char)tag);
}

static size_t size_of_block(size_t bytes)
{
    size_t size = 64;
    while (size < bytes)
        size *= 2;
    return size;
}

// Fails only when no aligned stretch of the arena is free.
static bool has_room(const struct block blocks[BLOCKS], const char *arena, size_t size)
{
    for (size_t from = 0; from + size <= ARENA_BYTES / 64 * 64; from += size) {
        bool is_clear = true;
        for (size_t i = 0; i < BLOCKS && is_clear; i++) {
            size_t offset = blocks[i].address ? (size_t)((char *)blocks[i].address - arena) : 0;
            is_clear = !blocks[i].address || offset >= from + size || offset + size_of_block(blocks[i].bytes) <= from;
        }
        if (is_clear)
            return true;
    }
    return false;
}

static void alb_buddy__agrees_with_a_model(void **state)
{
    struct fixture f;
    start(&f, ARENA_BYTES);
    struct block blocks[BLOCKS] = {0};
    struct alb_prng prng;
    alb_prng_init(&prng, 1);
    size_t used = 0;
    uint32_t refused = 0;
    for (uint32_t round = 0; round < 30000; round++) {
        size_t i = alb_prng_below(&prng, BLOCKS);
        if (blocks[i].address) {
            assert_intact(&blocks[i], i);
            alb_buddy_put(&f.buddy, blocks[i].address, blocks[i].bytes);
            used -= size_of_block(blocks[i].bytes);
            blocks[i].address = NULL;
        } else {
            size_t bytes = 1 + alb_prng_below(&prng, 64u << alb_prng_below(&prng, 9));
            unsigned char *address = alb_buddy_get(&f.buddy, bytes);
            if (!address) {
                assert_false(has_room(blocks, f.arena, size_of_block(bytes)));
                refused++;
                continue;
            }
            blocks[i] = (struct block){address, bytes};
            assert_in_range(address - (unsigned char *)f.arena, 0, ARENA_BYTES - bytes);
            assert_int_equal((size_t)(address - (unsigned char *)f.arena) % size_of_block(bytes), 0);
            fill_block(&blocks[i], i);
            used += size_of_block(bytes);
        }
        assert_int_equal(alb_buddy_used(&f.buddy), used);
    }
    assert_in_range(refused, 100, 20000);
    for (size_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].address)
            alb_buddy_put(&f.buddy, blocks[i].address, blocks[i].bytes);
    }
    assert_int_equal(alb_buddy_used(&f.buddy), 0);
    assert_ptr_equal(alb_buddy_get(&f.buddy, 262144), f.arena); // all halves have been joined
    assert_ptr_equal(alb_buddy_get(&f.buddy, 32768), f.arena + 262144);
    stop(&f);
}

// Pages that are in memory.
static size_t touched_pages(void *address, size_t bytes)
{
    size_t pages = (bytes + 4095) / 4096, count = 0;
    unsigned char *in_memory = malloc(pages);
    assert_non_null(in_memory);
    assert_int_equal(mincore(address, bytes, in_memory), 0);
    for (size_t i = 0; i < pages; i++)
        count += in_memory[i] & 1;
    free(in_memory);
    return count;
}

static void alb_buddy__touches_what_is_used(void **state)
{
    struct fixture f;
    start(&f, 1ull << 30);
    assert_in_range(f.bookkeeping_bytes, 1, (1ull << 30) / 240);
    assert_true(touched_pages(f.bookkeeping, f.bookkeeping_bytes) <= 1);
    for (uint32_t i = 0; i < 1000; i++)
        assert_non_null(alb_buddy_get(&f.buddy, 64 + i % 3 * 100));
    assert_int_equal(touched_pages(f.arena, f.arena_bytes), 0);           // its owner has not written yet
    assert_true(touched_pages(f.bookkeeping, f.bookkeeping_bytes) <= 24); // one for each size
    assert_true((size_t)((char *)alb_buddy_get(&f.buddy, 64) - f.arena) < 1000 * 300);
    stop(&f);
}

struct misuse {
    struct fixture *fixture;
    int wrong;
};

static void give_back(void *argument)
{
    struct fixture *f = ((struct misuse *)argument)->fixture;
    int wrong = ((struct misuse *)argument)->wrong;
    char *block = alb_buddy_get(&f->buddy, 256);
    char *other = alb_buddy_get(&f->buddy, 64);
    alb_buddy_put(&f->buddy, block, 256);
    if (wrong == 1)
        alb_buddy_put(&f->buddy, block, 256); // twice
    if (wrong == 2)
        alb_buddy_put(&f->buddy, block + 64, 64); // a part of what is free
    if (wrong == 3)
        alb_buddy_put(&f->buddy, other + 1, 64); // not where a block begins
    if (wrong == 4)
        alb_buddy_put(&f->buddy, f->arena + f->arena_bytes, 64); // not ours
}

static void alb_buddy_put__what_is_not_taken_is_a_bug(void **state)
{
    for (int wrong = 0; wrong <= 4; wrong++) {
        struct fixture f;
        start(&f, 4096);
        struct misuse misuse = {&f, wrong};
        char text[4096];
        int status = child_run(give_back, &misuse, text, sizeof(text));
        assert_int_equal(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, wrong > 0);
        stop(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_buddy_get__takes_the_lowest_block_that_fits),
        cmocka_unit_test(alb_buddy_get__whole_arena_or_nothing),
        cmocka_unit_test(alb_buddy_get__an_arena_of_any_size_is_used_whole),
        cmocka_unit_test(alb_buddy_block_bytes__what_is_no_larger_together_fits_in_any_order),
        cmocka_unit_test(alb_buddy__agrees_with_a_model),
        cmocka_unit_test(alb_buddy__touches_what_is_used),
        cmocka_unit_test(alb_buddy_put__what_is_not_taken_is_a_bug),
    };
    return cmocka_run_group_tests_name("buddy", tests, NULL, NULL);
}
