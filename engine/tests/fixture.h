// SPDX-License-Identifier: BSD-2-Clause
// An engine on the heap for tests of its parts, with memory that can be made to run out and a batch for what it sends.
#pragma once

#include "base/tests/test.h"
#include "engine/impl.h"

#include <errno.h>
#include <string.h>

enum {
    FIXTURE_SEGMENTS = 64,
};

struct fixture {
    struct alb_engine *engine;
    struct alb_device_stats stats;
    size_t bytes_held;     // by the engine
    uint32_t refused_from; // the n-th request for memory from now on, and all behind it, fails; 0: none does
    struct alb_pd *pd;
    struct alb_cq *cq;
    struct alb_tx tx;
    struct alb_burst bursts[FIXTURE_SEGMENTS];
    struct alb_segment segments[FIXTURE_SEGMENTS];
    struct iovec iov[FIXTURE_SEGMENTS * 4];
    uint8_t bytes[FIXTURE_SEGMENTS * 64];
};

// A small configuration; statistics, memory and seed are set.
void fixture_config(struct fixture *f, struct alb_engine_config *config);
struct fixture *fixture_new(void);
struct fixture *fixture_new_with(void (*change)(struct alb_engine_config *config));
// Checks that everything was given back.
void fixture_free(struct fixture *f);

// cmocka's setup and teardown, *state is a struct fixture *.
int fixture_setup(void **state);
int fixture_teardown(void **state);

struct alb_qp *fixture_qp(struct fixture *f, enum alb_qp_type type);
// A region at the address itself; the first allows everything but binding.
struct alb_region *fixture_region(struct fixture *f, void *memory, uint64_t length);
struct alb_region *fixture_region_with(struct fixture *f, void *memory, uint64_t length, uint32_t access);

// alb_region_find_remote where only the memory is wanted.
enum alb_access_result fixture_find_remote(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
                                           uint32_t access, uint8_t **host);

#define FIXTURE_ACCESS_ALL \
    (ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ | ALB_ACCESS_REMOTE_ATOMIC)

#define FIXTURE_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
