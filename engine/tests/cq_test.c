// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static bool push(struct alb_cq *cq, uint64_t wr_id, enum alb_wc_status status, bool solicited)
{
    struct alb_wc wc = {.wr_id = wr_id, .status = status};
    return alb_cq_push(cq, &wc, solicited, 77);
}

static uint64_t pop(struct alb_cq *cq)
{
    const struct alb_wc *wc = alb_cq_peek(cq);
    assert_non_null(wc);
    uint64_t wr_id = wc->wr_id;
    alb_cq_pop(cq);
    return wr_id;
}

static bool has_event(struct fixture *f, enum alb_event_type type)
{
    struct alb_event event;
    if (!alb_engine_event(f->engine, &event))
        return false;
    assert_int_equal(event.type, type);
    assert_ptr_equal(event.cq, f->cq);
    return true;
}

static void cq_push__comes_out_in_order(void **state)
{
    struct fixture *f = *state;
    uint64_t in = 0, out = 0;
    assert_null(alb_cq_peek(f->cq));
    assert_true(alb_cq_is_empty(f->cq));
    for (int round = 0; round < 10; round++) { // several times round the ring
        for (int i = 0; i < 13; i++)
            assert_true(push(f->cq, in++, ALB_WC_SUCCESS, false));
        assert_false(alb_cq_is_empty(f->cq));
        assert_int_equal(alb_cq_peek(f->cq)->timestamp, 77);
        for (int i = 0; i < 13; i++)
            assert_int_equal(pop(f->cq), out++);
        assert_null(alb_cq_peek(f->cq));
    }
}

// Until there is room again: then the next one is another.
static void cq_push__overrun_is_told_once(void **state)
{
    struct fixture *f = *state;
    for (uint32_t i = 0; i < alb_cq_entries(f->cq); i++)
        assert_true(push(f->cq, i, ALB_WC_SUCCESS, false));
    assert_false(alb_cq_is_overrun(f->cq));
    assert_false(push(f->cq, 99, ALB_WC_SUCCESS, false));
    assert_true(alb_cq_is_overrun(f->cq));
    assert_true(has_event(f, ALB_EVENT_CQ_ERR));
    assert_false(push(f->cq, 99, ALB_WC_SUCCESS, false));
    assert_false(has_event(f, ALB_EVENT_CQ_ERR));
    for (uint32_t i = 0; i < alb_cq_entries(f->cq); i++)
        assert_int_equal(pop(f->cq), i);
    for (uint32_t i = 0; i < alb_cq_entries(f->cq); i++)
        assert_true(push(f->cq, 100, ALB_WC_SUCCESS, false));
    assert_false(has_event(f, ALB_EVENT_CQ_ERR));
    assert_false(push(f->cq, 101, ALB_WC_SUCCESS, false));
    assert_true(has_event(f, ALB_EVENT_CQ_ERR));
    assert_false(push(f->cq, 101, ALB_WC_SUCCESS, false));
    assert_false(has_event(f, ALB_EVENT_CQ_ERR));
}

static void cq_arm__next_fires_once(void **state)
{
    struct fixture *f = *state;
    push(f->cq, 1, ALB_WC_SUCCESS, true);
    assert_false(has_event(f, ALB_EVENT_CQ_NOTIFY));
    pop(f->cq);
    assert_false(alb_cq_is_armed(f->cq));
    assert_false(alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT));
    assert_true(alb_cq_is_armed(f->cq));
    assert_false(has_event(f, ALB_EVENT_CQ_NOTIFY));
    push(f->cq, 2, ALB_WC_SUCCESS, false);
    assert_false(alb_cq_is_armed(f->cq));
    assert_true(has_event(f, ALB_EVENT_CQ_NOTIFY));
    push(f->cq, 3, ALB_WC_SUCCESS, false);
    assert_false(has_event(f, ALB_EVENT_CQ_NOTIFY));
}

static void cq_tell__of_what_is_there(void **state)
{
    struct fixture *f = *state;
    push(f->cq, 1, ALB_WC_SUCCESS, false);
    assert_true(alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT));
    assert_false(has_event(f, ALB_EVENT_CQ_NOTIFY));
    alb_cq_tell(f->cq);
    assert_true(has_event(f, ALB_EVENT_CQ_NOTIFY));
    alb_cq_tell(f->cq); // armed no more
    assert_false(has_event(f, ALB_EVENT_CQ_NOTIFY));
}

static void cq_tell__not_twice(void **state)
{
    struct fixture *f = *state;
    push(f->cq, 1, ALB_WC_SUCCESS, false);
    assert_true(alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT));
    push(f->cq, 2, ALB_WC_SUCCESS, false);
    assert_true(has_event(f, ALB_EVENT_CQ_NOTIFY));
    alb_cq_tell(f->cq);
    assert_false(has_event(f, ALB_EVENT_CQ_NOTIFY));
}

static void cq_arm__says_whether_one_is_there(void **state)
{
    struct fixture *f = *state;
    assert_false(alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT));
    push(f->cq, 1, ALB_WC_SUCCESS, false);
    assert_true(alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT));
    assert_false(alb_cq_arm(f->cq, ALB_CQ_ARM_SOLICITED));
    push(f->cq, 2, ALB_WC_SUCCESS, true);
    push(f->cq, 3, ALB_WC_SUCCESS, false);
    pop(f->cq);
    assert_true(alb_cq_arm(f->cq, ALB_CQ_ARM_SOLICITED));
    assert_int_equal(alb_cq_resize(f->cq, 64), 0);
    assert_true(alb_cq_arm(f->cq, ALB_CQ_ARM_SOLICITED));
    pop(f->cq);
    assert_false(alb_cq_arm(f->cq, ALB_CQ_ARM_SOLICITED));
    assert_true(alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT));
    pop(f->cq);
    assert_false(alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT));
    alb_cq_set_silent(f->cq);
    push(f->cq, 4, ALB_WC_SUCCESS, true);
    assert_false(alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT));
}

static void cq_arm__solicited_sleeps_through_others(void **state)
{
    struct fixture *f = *state;
    alb_cq_arm(f->cq, ALB_CQ_ARM_SOLICITED);
    push(f->cq, 1, ALB_WC_SUCCESS, false);
    assert_false(has_event(f, ALB_EVENT_CQ_NOTIFY));
    push(f->cq, 2, ALB_WC_SUCCESS, true);
    assert_true(has_event(f, ALB_EVENT_CQ_NOTIFY));
    alb_cq_arm(f->cq, ALB_CQ_ARM_SOLICITED);
    push(f->cq, 3, ALB_WC_WR_FLUSH_ERR, false);
    assert_true(has_event(f, ALB_EVENT_CQ_NOTIFY));
}

static void cq_arm__next_outranks_solicited(void **state)
{
    struct fixture *f = *state;
    alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT);
    alb_cq_arm(f->cq, ALB_CQ_ARM_SOLICITED);
    push(f->cq, 1, ALB_WC_SUCCESS, false);
    assert_true(has_event(f, ALB_EVENT_CQ_NOTIFY));
    alb_cq_arm(f->cq, ALB_CQ_ARM_SOLICITED);
    alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT);
    push(f->cq, 2, ALB_WC_SUCCESS, false);
    assert_true(has_event(f, ALB_EVENT_CQ_NOTIFY));
}

static void cq_set_silent__nothing_is_told(void **state)
{
    struct fixture *f = *state;
    alb_cq_set_silent(f->cq);
    alb_cq_arm(f->cq, ALB_CQ_ARM_NEXT);
    push(f->cq, 1, ALB_WC_WR_FLUSH_ERR, true);
    assert_false(has_event(f, ALB_EVENT_CQ_NOTIFY));
    assert_int_equal(alb_cq_peek(f->cq)->wr_id, 1);
    assert_false(alb_cq_is_armed(f->cq));
}

static void cq_create__limits(void **state)
{
    struct fixture *f = *state;
    struct alb_cq *cq;
    uint32_t max = f->engine->config.cqe_max;
    assert_int_equal(alb_cq_create(f->engine, 0, NULL, &cq), EINVAL);
    assert_int_equal(alb_cq_create(f->engine, max + 1, NULL, &cq), EINVAL);
    f->engine->config.cqe_max = 100; // not a power of two: rounding stops there
    assert_int_equal(alb_cq_create(f->engine, 70, NULL, &cq), 0);
    assert_int_equal(alb_cq_entries(cq), 100);
    assert_int_equal(alb_cq_destroy(cq), 0);
    f->engine->config.cq_max = 1;
    assert_int_equal(alb_cq_create(f->engine, 1, NULL, &cq), ENOMEM);
    f->engine->config.cq_max = 2;
    for (uint32_t nth = 1; nth <= 2; nth++) {
        size_t held = f->bytes_held;
        f->refused_from = nth;
        assert_int_equal(alb_cq_create(f->engine, 1, NULL, &cq), ENOMEM);
        f->refused_from = 0;
        assert_int_equal(f->bytes_held, held);
    }
    assert_int_equal(f->engine->cq_count, 1);
}

static void cq_destroy__busy_while_used(void **state)
{
    struct fixture *f = *state;
    struct alb_qp *qp = fixture_qp(f, ALB_QPT_RC);
    assert_int_equal(alb_cq_destroy(f->cq), EBUSY);
    assert_int_equal(alb_qp_destroy(qp), 0);
}

static void cq_resize__keeps_what_is_queued(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 12; i++)
        push(f->cq, 0, ALB_WC_SUCCESS, false);
    for (int i = 0; i < 12; i++)
        pop(f->cq);
    for (int i = 0; i < 9; i++) // wraps
        push(f->cq, 10 + i, ALB_WC_SUCCESS, false);
    assert_int_equal(alb_cq_resize(f->cq, 8), EINVAL);
    assert_int_equal(alb_cq_resize(f->cq, 0), EINVAL);
    assert_int_equal(alb_cq_resize(f->cq, f->engine->config.cqe_max + 1), EINVAL);
    f->refused_from = 1;
    assert_int_equal(alb_cq_resize(f->cq, 64), ENOMEM);
    f->refused_from = 0;
    assert_int_equal(alb_cq_entries(f->cq), 16);
    assert_int_equal(alb_cq_resize(f->cq, 33), 0);
    assert_int_equal(alb_cq_entries(f->cq), 64);
    push(f->cq, 19, ALB_WC_SUCCESS, false);
    for (int i = 0; i < 10; i++)
        assert_int_equal(pop(f->cq), 10 + i);
    assert_null(alb_cq_peek(f->cq));
}

static void cq_forget_qp__leaves_the_others_in_order(void **state)
{
    struct fixture *f = *state;
    struct alb_qp *a = fixture_qp(f, ALB_QPT_RC), *b = fixture_qp(f, ALB_QPT_RC);
    for (uint64_t i = 0; i < 8; i++) {
        struct alb_wc wc = {.wr_id = i, .qp = i % 3 == 0 ? a : b};
        assert_true(alb_cq_push(f->cq, &wc, false, 0));
    }
    alb_cq_forget_qp(f->cq, a);
    static const uint64_t left[] = {1, 2, 4, 5, 7};
    for (size_t i = 0; i < ALB_COUNT(left); i++)
        assert_int_equal(pop(f->cq), left[i]);
    assert_null(alb_cq_peek(f->cq));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(cq_push__comes_out_in_order),
        FIXTURE_TEST(cq_push__overrun_is_told_once),
        FIXTURE_TEST(cq_arm__next_fires_once),
        FIXTURE_TEST(cq_arm__solicited_sleeps_through_others),
        FIXTURE_TEST(cq_arm__says_whether_one_is_there),
        FIXTURE_TEST(cq_tell__of_what_is_there),
        FIXTURE_TEST(cq_tell__not_twice),
        FIXTURE_TEST(cq_arm__next_outranks_solicited),
        FIXTURE_TEST(cq_set_silent__nothing_is_told),
        FIXTURE_TEST(cq_create__limits),
        FIXTURE_TEST(cq_destroy__busy_while_used),
        FIXTURE_TEST(cq_resize__keeps_what_is_queued),
        FIXTURE_TEST(cq_forget_qp__leaves_the_others_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
