// SPDX-License-Identifier: BSD-2-Clause
// Partial completion as programs use it: messages over a UC that loses one packet in ten arrive whole, because what is
// missing is sent again and nothing else.
#include "albedo/albedodv.h"

#include "fixture.h"

#include <stdlib.h>

enum {
    BYTES = 512 * 1024,
    MESSAGES = 20,
    CHUNK = 16 * 1024,
    PATIENCE = 100000, // polls before the peer is asked
};

struct ends {
    struct fixture *f;
    uint8_t *memory; // what is written, and where
    struct ibv_mr *mr;
    struct ibv_qp *sender, *receiver;
    struct ibv_qp_ex *ex;
    struct albdv_qp_ex *dv;
};

static void set_up(struct ends *e, struct fixture *f)
{
    e->f = f;
    e->memory = calloc(2, BYTES);
    assert_non_null(e->memory);
    e->mr = ibv_reg_mr(f->pd, e->memory, 2 * BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(e->mr);
    e->sender = fixture_qp(f, IBV_QPT_UC);
    e->receiver = fixture_qp(f, IBV_QPT_UC);
    assert_null(ibv_qp_to_qp_ex(e->sender));
    e->dv = albdv_extend_qp(e->sender, NULL);
    assert_non_null(e->dv);
    e->ex = ibv_qp_to_qp_ex(e->sender);
    assert_ptr_equal(e->dv->qp, e->ex);
    assert_ptr_equal(albdv_qp_ex_from_ibv_qp_ex(e->ex), e->dv);
    assert_non_null(albdv_extend_qp(e->receiver, NULL));
    fixture_connect(e->sender, e->receiver);
}

static void tear_down(struct ends *e)
{
    assert_int_equal(ibv_destroy_qp(e->sender), 0);
    assert_int_equal(ibv_destroy_qp(e->receiver), 0);
    assert_int_equal(ibv_dereg_mr(e->mr), 0);
    free(e->memory);
}

// Both kinds of request have the same data. number 0: a new message, of which it returns the number.
static uint32_t post(struct ends *e, uint32_t number)
{
    const struct ibv_sge sge = {.addr = (uintptr_t)e->memory, .length = BYTES, .lkey = e->mr->lkey};
    uint64_t to = (uintptr_t)e->memory + BYTES;
    ibv_wr_start(e->ex);
    e->ex->wr_id = 1;
    e->ex->wr_flags = IBV_SEND_SIGNALED;
    if (number > 0) {
        albdv_wr_resend(e->dv, number, e->mr->rkey, to);
    } else {
        ibv_wr_rdma_write_imm(e->ex, e->mr->rkey, to, 4711);
        number = albdv_wr_set_partial(e->dv);
    }
    ibv_wr_set_sge_list(e->ex, 1, &sge);
    assert_int_equal(ibv_wr_complete(e->ex), 0);
    return number;
}

static struct albdv_partial look(struct ends *e, enum albdv_side side, uint32_t number, uint64_t *bitmap)
{
    struct albdv_partial partial = {.chunk_bytes = CHUNK};
    struct ibv_qp *qp = side == ALBDV_SENDING ? e->sender : e->receiver;
    int error = albdv_query_partial(qp, side, number, &partial, sizeof(partial), bitmap, 1);
    assert_true(error == 0 || error == ENOENT);
    return partial;
}

// Waits for news of the message, and asks for them if they are lost. True once the peer holds all of it.
static bool hear(struct ends *e, uint32_t number, uint32_t held_before)
{
    for (uint32_t i = 1;; i++) {
        struct albdv_partial told = look(e, ALBDV_SENDING, number, NULL);
        if (told.is_complete || told.held > held_before)
            return told.is_complete;
        if (i % PATIENCE == 0) // no progress: perhaps all that was sent is lost, too
            return false;
        if (i % (PATIENCE / 10) == 0)
            albdv_ask_partial(e->dv, number);
    }
}

static void partial__arrives_whole_by_what_is_missing(void **state)
{
    struct ends e;
    struct fixture *f = *state;
    uint32_t resends = 0, incomplete = 0;
    set_up(&e, f);
    for (uint32_t i = 1; i <= MESSAGES; i++) {
        memset(e.memory, (int)i, BYTES);
        fixture_post_recv(f, e.receiver, 100 + i, 0, 0);
        uint32_t number = post(&e, 0);
        assert_int_equal(number, i);
        while (!hear(&e, number, look(&e, ALBDV_SENDING, number, NULL).held)) {
            uint64_t bitmap = 0;
            struct albdv_partial came = look(&e, ALBDV_RECEIVING, number, &bitmap);
            incomplete += came.total_bytes > 0 && came.held < came.chunks;
            assert_int_equal(__builtin_popcountll(bitmap), came.held);
            post(&e, number);
            resends++;
        }
        assert_memory_equal(e.memory, e.memory + BYTES, BYTES);
        assert_true(look(&e, ALBDV_RECEIVING, number, NULL).is_complete);
        struct ibv_wc wc = fixture_wait_for(f->cq, 100 + i);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.imm_data, 4711);
    }
    assert_true(resends > 0); // or nothing was tested
    print_message("%u messages, %u times incomplete, %u resends\n", MESSAGES, incomplete, resends);
    tear_down(&e);
}

static void partial__is_of_writes(void **state)
{
    struct ends e;
    set_up(&e, *state);
    ibv_wr_start(e.ex);
    ibv_wr_send(e.ex);
    assert_int_equal(albdv_wr_set_partial(e.dv), 0);
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    ibv_wr_start(e.ex);
    assert_int_equal(albdv_wr_set_partial(e.dv), 0);
    assert_int_equal(ibv_wr_complete(e.ex), EINVAL);
    ibv_wr_start(e.ex);
    albdv_wr_txn(e.dv, ALBDV_COMMITTED, 0);
    assert_int_equal(ibv_wr_complete(e.ex), EOPNOTSUPP);
    assert_int_equal(albdv_ask_partial(e.dv, 7), ENOENT);
    assert_int_equal(albdv_ask_partial(NULL, 7), EINVAL);
    struct albdv_partial partial = {0};
    assert_int_equal(albdv_query_partial(e.sender, ALBDV_SENDING, 7, &partial, sizeof(partial), NULL, 0), ENOENT);
    assert_int_equal(albdv_query_partial(e.sender, 9, 7, &partial, sizeof(partial), NULL, 0), EINVAL);
    assert_int_equal(albdv_query_partial(e.sender, ALBDV_SENDING, 7, &partial, 4, NULL, 0), EINVAL);
    tear_down(&e);
}

static void extend__refusals(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *uc = fixture_qp(f, IBV_QPT_UC), *ud = fixture_qp(f, IBV_QPT_UD);
    struct albdv_qp_attr attr = {.in_flight_max = 0};
    assert_null(albdv_extend_qp(NULL, NULL));
    assert_int_equal(errno, EINVAL);
    assert_null(albdv_extend_qp(ud, NULL));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(albdv_extend_qp(uc, &attr));
    assert_int_equal(errno, EINVAL);
    attr.in_flight_max = 1u << 30;
    assert_null(albdv_extend_qp(uc, &attr));
    assert_int_equal(errno, EINVAL);
    attr = (struct albdv_qp_attr){.comp_mask = 1, .in_flight_max = 4};
    assert_null(albdv_extend_qp(uc, &attr));
    assert_int_equal(errno, EINVAL);
    attr.comp_mask = 0;
    assert_non_null(albdv_extend_qp(uc, &attr));
    assert_null(albdv_extend_qp(uc, &attr));
    assert_int_equal(errno, EALREADY);
    assert_int_equal(ibv_destroy_qp(uc), 0);
    assert_int_equal(ibv_destroy_qp(ud), 0);
}

static void extend__not_on_roce0(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *uc = fixture_qp(f, IBV_QPT_UC), *rc = fixture_qp(f, IBV_QPT_RC);
    assert_null(albdv_extend_qp(uc, NULL));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_null(albdv_extend_qp(rc, NULL));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_destroy_qp(uc), 0);
    assert_int_equal(ibv_destroy_qp(rc), 0);
}

int main(void)
{
    const struct CMUnitTest albedo_tests[] = {
        FIXTURE_TEST(partial__arrives_whole_by_what_is_missing),
        FIXTURE_TEST(partial__is_of_writes),
        FIXTURE_TEST(extend__refusals),
    };
    const struct CMUnitTest roce_tests[] = {FIXTURE_TEST(extend__not_on_roce0)};
    setenv("ALBEDO_DEVICES", "albedo0", 1);
    setenv("ALBEDO_FAULTS", "loss=10%", 1);
    int failed = cmocka_run_group_tests_name("partial albedo0", albedo_tests, NULL, NULL);
    setenv("ALBEDO_DEVICES", "roce0", 1);
    return failed + cmocka_run_group_tests_name("partial roce0", roce_tests, NULL, NULL);
}
