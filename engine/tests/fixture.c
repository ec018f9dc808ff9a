// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

#include <stdlib.h>

static void *get(void *context, size_t bytes)
{
    struct fixture *f = context;
    if (f->refused_from == 1)
        return NULL;
    if (f->refused_from > 1)
        f->refused_from--;
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    f->bytes_held += bytes;
    return memory;
}

static void put(void *context, void *memory, size_t bytes)
{
    struct fixture *f = context;
    assert_true(bytes <= f->bytes_held);
    f->bytes_held -= bytes;
    free(memory);
}

void fixture_config(struct fixture *f, struct alb_engine_config *config)
{
    alb_engine_config_default(config);
    config->memory = (struct alb_memory){.get = get, .put = put, .context = f};
    config->stats = &f->stats;
    config->qp_max = 64;
    config->region_max = 64;
    config->peer_max = 8;
    memset(config->seed, 7, sizeof(config->seed));
}

struct fixture *fixture_new_with(void (*change)(struct alb_engine_config *config))
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct alb_engine_config config;
    assert_non_null(f);
    fixture_config(f, &config);
    if (change)
        change(&config);
    assert_int_equal(alb_engine_create(&config, &f->engine), 0);
    assert_int_equal(alb_pd_create(f->engine, &f->pd), 0);
    assert_int_equal(alb_cq_create(f->engine, 16, NULL, &f->cq), 0);
    f->tx = (struct alb_tx){
        .bursts = f->bursts,
        .segments = f->segments,
        .iov = f->iov,
        .bytes = f->bytes,
        .burst_capacity = ALB_COUNT(f->bursts),
        .segment_capacity = ALB_COUNT(f->segments),
        .iov_capacity = ALB_COUNT(f->iov),
        .bytes_capacity = sizeof(f->bytes),
        .burst_segments_max = 64,
        .burst_bytes_max = 65000,
    };
    return f;
}

struct fixture *fixture_new(void)
{
    return fixture_new_with(NULL);
}

void fixture_free(struct fixture *f)
{
    struct alb_engine *engine = f->engine;
    for (uint32_t i = 0; i < engine->config.qp_max; i++)
        if (engine->qps[i])
            assert_int_equal(alb_qp_destroy(engine->qps[i]), 0);
    for (int windows = 1; windows >= 0; windows--)
        for (uint32_t i = 0; i < engine->region_table_size; i++) {
            struct alb_region *region = engine->regions[i];
            if (region && windows == (region->kind == ALB_REGION_MW))
                assert_int_equal(windows ? alb_mw_destroy(region) : alb_mr_destroy(region), 0);
        }
    assert_int_equal(alb_cq_destroy(f->cq), 0);
    assert_int_equal(alb_pd_destroy(f->pd), 0);
    alb_engine_destroy(engine);
    assert_int_equal(f->bytes_held, 0);
    free(f);
}

int fixture_setup(void **state)
{
    *state = fixture_new();
    return 0;
}

int fixture_teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

struct alb_qp *fixture_qp(struct fixture *f, enum alb_qp_type type)
{
    struct alb_qp *qp;
    struct alb_qp_init init = {
        .type = type,
        .send_cq = f->cq,
        .recv_cq = f->cq,
        .cap = {.send_wr_max = 8, .recv_wr_max = 8, .send_sge_max = 4, .recv_sge_max = 4, .inline_max_bytes = 64},
    };
    assert_int_equal(alb_qp_create(f->pd, &init, &qp), 0);
    qp->attr.access = FIXTURE_ACCESS_ALL;
    return qp;
}

struct alb_region *fixture_region_with(struct fixture *f, void *memory, uint64_t length, uint32_t access)
{
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(f->pd, memory, length, (uintptr_t)memory, access, &mr), 0);
    return mr;
}

struct alb_region *fixture_region(struct fixture *f, void *memory, uint64_t length)
{
    return fixture_region_with(f, memory, length, FIXTURE_ACCESS_ALL);
}

enum alb_access_result fixture_find_remote(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
                                           uint32_t access, uint8_t **host)
{
    struct alb_region *region;
    return alb_region_find_remote(qp, rkey, va, length, access, &region, host);
}
