// SPDX-License-Identifier: BSD-2-Clause
// Two queue pairs of the fixture, of which one sends transactions to the other.
#pragma once

#include "albedo/albedodv.h"

#include "fixture.h"

#define LONG_NS (30 * 1000000000ull) // a lease that ends no test

enum {
    SOURCE = 0,      // offsets in the fixture's memory
    TARGET = 16384,  // two ranges to be written
    SECOND = 24576,  //
    COUNTER = 32768, // a word to be compared
    BYTES = 4096,
    WHILE_NS = 1000 * 1000 * 1000, // leases and deadlines that end, but not before what is meant on a busy machine
};

struct ends {
    struct fixture *f;
    struct ibv_qp *initiator, *target;
    struct ibv_qp_ex *ex;
    struct albdv_qp_ex *dv;
};

static inline void set_up(struct ends *e, struct fixture *f)
{
    *e = (struct ends){.f = f, .initiator = fixture_qp(f, IBV_QPT_RC), .target = fixture_qp(f, IBV_QPT_RC)};
    e->dv = albdv_extend_qp(e->initiator, NULL);
    assert_non_null(e->dv);
    e->ex = ibv_qp_to_qp_ex(e->initiator);
    fixture_connect(e->initiator, e->target);
    memset(f->memory, 0, FIXTURE_BYTES);
    memset(f->memory + SOURCE, 0x5a, BYTES);
}

static inline void tear_down(struct ends *e)
{
    assert_int_equal(ibv_destroy_qp(e->initiator), 0);
    assert_int_equal(ibv_destroy_qp(e->target), 0);
}

static inline uint64_t at(const struct ends *e, size_t offset)
{
    return (uintptr_t)e->f->memory + offset;
}

static inline void begin(struct ends *e, uint64_t wr_id, enum albdv_level level, uint32_t flags)
{
    ibv_wr_start(e->ex);
    e->ex->wr_id = wr_id;
    e->ex->wr_flags = IBV_SEND_SIGNALED;
    albdv_wr_txn(e->dv, level, flags);
    albdv_wr_txn_lease(e->dv, LONG_NS);
}

static inline void add(struct ends *e, size_t offset, uint32_t length)
{
    const struct ibv_sge sge = fixture_sge(e->f, SOURCE, length);
    albdv_wr_txn_write(e->dv, e->f->mr->rkey, at(e, offset));
    ibv_wr_set_sge_list(e->ex, 1, &sge);
}

static inline uint64_t end(struct ends *e)
{
    uint64_t number = albdv_wr_txn_end(e->dv);
    assert_int_equal(ibv_wr_complete(e->ex), 0);
    assert_true(number > 0);
    return number;
}

static inline bool is_written(const struct ends *e, size_t offset)
{
    return memcmp(e->f->memory + offset, e->f->memory + SOURCE, BYTES) == 0;
}

static inline struct ibv_wc expect(struct ends *e, uint64_t wr_id, enum ibv_wc_status status, enum albdv_reason reason)
{
    struct ibv_wc wc = fixture_wait_for(e->f->cq, wr_id);
    assert_int_equal(wc.status, status);
    assert_int_equal(albdv_wc_reason(&wc), reason);
    return wc;
}

static inline struct albdv_txn_status query(struct ends *e, uint64_t number)
{
    struct albdv_txn_status status;
    assert_int_equal(albdv_query_txn(e->dv, number, &status, sizeof(status)), 0);
    return status;
}
