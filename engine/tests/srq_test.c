// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static union {
    struct alb_recv_wqe wqe;
    uint8_t bytes[sizeof(struct alb_recv_wqe) + ALB_MAX_SGE * sizeof(struct alb_sge)];
} taken;

static struct alb_srq *create(struct fixture *f, uint32_t wr_max, uint32_t limit)
{
    struct alb_srq *srq;
    assert_int_equal(alb_srq_create(f->pd, wr_max, 2, limit, f, &srq), 0);
    return srq;
}

static void post(struct alb_srq *srq, uint64_t wr_id)
{
    struct alb_sge sge[2] = {{.addr = wr_id, .length = 10}, {.addr = wr_id + 1, .length = 20}};
    assert_int_equal(alb_srq_post(srq, wr_id, sge, 2), 0);
}

static void take(struct alb_srq *srq, uint64_t wr_id)
{
    assert_true(alb_srq_take(srq, &taken.wqe));
    assert_int_equal(taken.wqe.wr_id, wr_id);
    assert_int_equal(taken.wqe.length, 30);
    assert_int_equal(taken.wqe.sge[1].addr, wr_id + 1);
}

static bool limit_event(struct fixture *f, struct alb_srq *srq)
{
    struct alb_event event;
    if (!alb_engine_event(f->engine, &event))
        return false;
    assert_int_equal(event.type, ALB_EVENT_SRQ_LIMIT_REACHED);
    assert_ptr_equal(event.srq, srq);
    assert_ptr_equal(event.user, f);
    return true;
}

static void srq_create__limits(void **state)
{
    struct fixture *f = *state;
    struct alb_srq *srq;
    const struct alb_engine_config *config = &f->engine->config;
    assert_int_equal(alb_srq_create(f->pd, 0, 1, 0, NULL, &srq), EINVAL);
    assert_int_equal(alb_srq_create(f->pd, config->srq_wr_max + 1, 1, 0, NULL, &srq), EINVAL);
    assert_int_equal(alb_srq_create(f->pd, 4, config->sge_max + 1, 0, NULL, &srq), EINVAL);
    assert_int_equal(alb_srq_create(f->pd, 4, 1, 5, NULL, &srq), EINVAL);
    for (uint32_t nth = 1; nth <= 2; nth++) {
        size_t held = f->bytes_held;
        f->refused_from = nth;
        assert_int_equal(alb_srq_create(f->pd, 4, 1, 0, NULL, &srq), ENOMEM);
        f->refused_from = 0;
        assert_int_equal(f->bytes_held, held);
    }
    f->engine->config.srq_max = 0;
    assert_int_equal(alb_srq_create(f->pd, 4, 1, 0, NULL, &srq), ENOMEM);
    assert_int_equal(f->pd->refs, 0);
    assert_int_equal(f->engine->srq_count, 0);
}

static void srq_query__what_it_got(void **state)
{
    struct fixture *f = *state;
    struct alb_srq *srq = create(f, 5, 3);
    uint32_t wr_max, sge_max, limit;
    alb_srq_query(srq, &wr_max, &sge_max, &limit);
    assert_int_equal(wr_max, 8);
    assert_int_equal(sge_max, 2);
    assert_int_equal(limit, 3);
    assert_int_equal(alb_srq_destroy(srq), 0);
}

static void srq_take__limit_fires_once_when_fewer_are_left(void **state)
{
    struct fixture *f = *state;
    struct alb_srq *srq = create(f, 8, 2);
    for (uint64_t i = 0; i < 5; i++)
        post(srq, i);
    take(srq, 0);
    take(srq, 1);
    take(srq, 2);
    assert_false(limit_event(f, srq)); // two are left: not below the limit
    take(srq, 3);
    assert_true(limit_event(f, srq));
    take(srq, 4);
    assert_false(limit_event(f, srq));
    assert_false(alb_srq_take(srq, &taken.wqe));
    assert_int_equal(alb_srq_modify(srq, 0, 1), 0);
    post(srq, 5);
    take(srq, 5);
    assert_true(limit_event(f, srq));
    assert_int_equal(alb_srq_destroy(srq), 0);
}

static void srq_modify__resizes_and_keeps_what_is_posted(void **state)
{
    struct fixture *f = *state;
    struct alb_srq *srq = create(f, 4, 0);
    uint32_t wr_max, sge_max, limit;
    for (uint64_t i = 0; i < 3; i++)
        post(srq, i);
    take(srq, 0);
    take(srq, 1);
    for (uint64_t i = 3; i < 6; i++)
        post(srq, i);
    assert_int_equal(alb_srq_post(srq, 6, NULL, 0), ENOMEM);
    assert_int_equal(alb_srq_modify(srq, 3, UINT32_MAX), EINVAL); // four are posted
    assert_int_equal(alb_srq_modify(srq, f->engine->config.srq_wr_max + 1, UINT32_MAX), EINVAL);
    assert_int_equal(alb_srq_modify(srq, 0, 5), EINVAL);
    f->refused_from = 1;
    assert_int_equal(alb_srq_modify(srq, 16, 5), ENOMEM);
    f->refused_from = 0;
    alb_srq_query(srq, &wr_max, &sge_max, &limit);
    assert_int_equal(wr_max, 4);
    assert_int_equal(limit, 0);
    assert_int_equal(alb_srq_modify(srq, 16, 5), 0);
    alb_srq_query(srq, &wr_max, &sge_max, &limit);
    assert_int_equal(wr_max, 16);
    assert_int_equal(limit, 5);
    assert_int_equal(alb_srq_modify(srq, 4, UINT32_MAX), EINVAL); // fewer than the limit that is armed
    for (uint64_t i = 6; i < 18; i++)
        post(srq, i);
    for (uint64_t i = 2; i < 18; i++)
        take(srq, i);
    assert_true(limit_event(f, srq));
    assert_int_equal(alb_srq_destroy(srq), 0);
}

static void srq_destroy__busy_while_attached(void **state)
{
    struct fixture *f = *state;
    struct alb_srq *srq = create(f, 4, 0);
    struct alb_qp *qp;
    struct alb_qp_init init = {
        .type = ALB_QPT_RC, .send_cq = f->cq, .recv_cq = f->cq, .srq = srq, .cap = {.send_wr_max = 1}};
    assert_int_equal(alb_qp_create(f->pd, &init, &qp), 0);
    assert_int_equal(alb_srq_destroy(srq), EBUSY);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(alb_srq_destroy(srq), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(srq_create__limits),
        FIXTURE_TEST(srq_query__what_it_got),
        FIXTURE_TEST(srq_take__limit_fires_once_when_fewer_are_left),
        FIXTURE_TEST(srq_modify__resizes_and_keeps_what_is_posted),
        FIXTURE_TEST(srq_destroy__busy_while_attached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
