// SPDX-License-Identifier: BSD-2-Clause
// The account of an engine's memory, and an engine that gets none.
#include "sim/memory.h"

#include "base/tests/test.h"
#include "sim/fetch.h"
#include "world.h"

#include <errno.h>
#include <stdlib.h>

static void get__counts_and_zeroes(void **state)
{
    struct alb_sim_memory memory;
    alb_sim_memory_init(&memory);
    struct alb_memory interface = alb_sim_memory_interface(&memory);
    uint8_t *block = interface.get(interface.context, 100);
    assert_int_equal((uintptr_t)block % 64, 0);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(block[i], 0);
    assert_int_equal(memory.blocks, 1);
    assert_int_equal(memory.bytes, 100);
    assert_int_equal(memory.data_path_calls, 0);
    memory.is_data_path = true;
    interface.put(interface.context, block, 100);
    assert_int_equal(memory.data_path_calls, 1);
    assert_int_equal(memory.blocks, 0);
    assert_int_equal(memory.bytes_peak, 100);
}

// Of a size that is no multiple of a huge page; a sanitizer looks at what is asked for.
static void big__is_aligned(void **state)
{
    static const size_t sizes[] = {1, 100, 4096, (2 << 20) + 1};
    for (size_t i = 0; i < ALB_COUNT(sizes); i++) {
        uint8_t *block = alb_sim_big(sizes[i]);
        assert_int_equal((uintptr_t)block % (sizes[i] > 2 << 20 ? 2 << 20 : 64), 0);
        block[0] = block[sizes[i] - 1] = 1;
        free(block);
    }
    alb_sim_fetch(NULL, 2);
}

static void get__fails_when_told(void **state)
{
    struct alb_sim_memory memory;
    alb_sim_memory_init(&memory);
    struct alb_memory interface = alb_sim_memory_interface(&memory);
    memory.fail_after = 1;
    void *block = interface.get(interface.context, 1);
    assert_non_null(block);
    assert_null(interface.get(interface.context, 1));
    interface.put(interface.context, block, 1);
}

// Each call that needs memory, without any, then with a little more each time: ENOMEM and nothing kept, until it
// succeeds.
static void every_object__survives_having_no_memory(void **state)
{
    struct options options;
    options_default(&options);
    options.is_unconnected = true;
    struct world *w = world_new(&options);
    struct alb_sim_memory *memory = &w->a.host->memory;
    struct alb_engine *engine = w->a.host->engine;
    for (uint32_t object = 0; object < 8; object++) {
        int error = ENOMEM;
        for (uint64_t n = 0; error; n++) {
            void *made = NULL;
            uint64_t bytes = memory->bytes;
            struct alb_qp_init init = {
                .type = ALB_QPT_RC, .send_cq = w->a.cq, .recv_cq = w->a.cq, .cap = {4, 4, 2, 2, 16}};
            struct alb_av av = {.local = w->a.host->addr, .peer = w->b.host->addr};
            memory->fail_after = n;
            switch (object) {
            case 0:
                error = alb_pd_create(engine, (struct alb_pd **)&made);
                break;
            case 1:
                error = alb_cq_create(engine, 10, NULL, (struct alb_cq **)&made);
                break;
            case 2:
                error = alb_mr_create(w->a.pd, w->a.memory, 10, 0, 0, (struct alb_region **)&made);
                break;
            case 3:
                error = alb_mw_create(w->a.pd, ALB_MW_TYPE_2, (struct alb_region **)&made);
                break;
            case 4:
                error = alb_srq_create(w->a.pd, 4, 2, 0, NULL, (struct alb_srq **)&made);
                break;
            case 5:
                error = alb_ah_create(w->a.pd, &av, (struct alb_ah **)&made);
                break;
            default:
                init.type = object == 6 ? ALB_QPT_RC : ALB_QPT_UD;
                error = alb_qp_create(w->a.pd, &init, (struct alb_qp **)&made);
                break;
            }
            memory->fail_after = UINT64_MAX;
            assert_true(error == 0 || error == ENOMEM);
            assert_true(n > 0 || error == ENOMEM);
            if (error) {
                assert_int_equal(memory->bytes, bytes);
                continue;
            }
            int ended = object == 0   ? alb_pd_destroy(made)
                        : object == 1 ? alb_cq_destroy(made)
                        : object == 2 ? alb_mr_destroy(made)
                        : object == 3 ? alb_mw_destroy(made)
                        : object == 4 ? alb_srq_destroy(made)
                        : object == 5 ? alb_ah_destroy(made)
                                      : alb_qp_destroy(made);
            assert_int_equal(ended, 0);
            assert_int_equal(memory->bytes, bytes);
        }
    }
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get__counts_and_zeroes),
        cmocka_unit_test(big__is_aligned),
        cmocka_unit_test(get__fails_when_told),
        cmocka_unit_test(every_object__survives_having_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
