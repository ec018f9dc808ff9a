// SPDX-License-Identifier: BSD-2-Clause
#include "sim/huge.h"

#include "base/tests/test.h"
#include "sim/memory.h"

static void get__zeroed_lines_of_their_own(void **state)
{
    struct alb_sim_huge huge = {0};
    uint8_t *before = NULL;
    for (size_t bytes = 1; bytes < 1000; bytes += 37) {
        uint8_t *block = alb_sim_huge_get(&huge, bytes);
        assert_int_equal((uintptr_t)block % 64, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(block[i], 0);
        memset(block, 0xaa, bytes);
        if (before)
            assert_true(block > before);
        before = block;
    }
    assert_int_equal(huge.chunk_count, 1);
    alb_sim_huge_fini(&huge);
    assert_int_equal(huge.chunk_count, 0);
}

// What it gives is not written here, so it takes no memory.
static void get__has_an_end(void **state)
{
    struct alb_sim_huge huge = {0};
    assert_null(alb_sim_huge_get(&huge, ALB_SIM_HUGE_CHUNK_BYTES + 1));
    for (uint32_t i = 0; i < ALB_SIM_HUGE_CHUNKS; i++)
        assert_non_null(alb_sim_huge_get(&huge, ALB_SIM_HUGE_CHUNK_BYTES));
    assert_null(alb_sim_huge_get(&huge, 1));
    struct alb_sim_memory memory;
    alb_sim_memory_init(&memory);
    memory.huge = &huge;
    struct alb_memory interface = alb_sim_memory_interface(&memory);
    void *block = interface.get(interface.context, 100);
    assert_non_null(block);
    interface.put(interface.context, block, 100);
    alb_sim_huge_fini(&huge);
}

static void memory__counts_what_comes_from_there(void **state)
{
    struct alb_sim_huge huge = {0};
    struct alb_sim_memory memory;
    alb_sim_memory_init(&memory);
    memory.huge = &huge;
    struct alb_memory interface = alb_sim_memory_interface(&memory);
    uint8_t *block = interface.get(interface.context, 100);
    assert_int_equal((uintptr_t)block % 64, 0);
    assert_int_equal(huge.chunk_count, 1);
    assert_int_equal(memory.bytes, 100);
    memset(block, 0xaa, 100);
    interface.put(interface.context, block, 100);
    assert_int_equal(memory.blocks, 0);
    alb_sim_huge_fini(&huge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get__zeroed_lines_of_their_own),
        cmocka_unit_test(get__has_an_end),
        cmocka_unit_test(memory__counts_what_comes_from_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
