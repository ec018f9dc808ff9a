// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static void event_raise__oldest_first(void **state)
{
    struct fixture *f = *state;
    struct alb_event event;
    struct alb_qp *qp = fixture_qp(f, ALB_QPT_RC);
    assert_false(alb_engine_event(f->engine, &event));
    qp->user = &event;
    qp->failure = (struct alb_qp_failure){.last_psn = 5, .reason = "no acknowledgement"};
    alb_event_raise(f->engine, &qp->event, ALB_EVENT_QP_FAILED);
    alb_event_raise(f->engine, &f->cq->event, ALB_EVENT_CQ_ERR);
    alb_event_raise(f->engine, &qp->event, ALB_EVENT_QP_FATAL);
    alb_event_raise(f->engine, &qp->event, ALB_EVENT_QP_FAILED);

    assert_true(alb_engine_event(f->engine, &event));
    assert_int_equal(event.type, ALB_EVENT_QP_FATAL);
    assert_true(alb_engine_event(f->engine, &event));
    assert_int_equal(event.type, ALB_EVENT_QP_FAILED);
    assert_ptr_equal(event.qp, qp);
    assert_null(event.cq);
    assert_ptr_equal(event.user, &event);
    assert_int_equal(event.failure.last_psn, 5);
    assert_string_equal(event.failure.reason, "no acknowledgement");
    assert_true(alb_engine_event(f->engine, &event));
    assert_int_equal(event.type, ALB_EVENT_CQ_ERR);
    assert_ptr_equal(event.cq, f->cq);
    assert_null(event.qp);
    assert_false(alb_engine_event(f->engine, &event));
}

static void event_raise__again_after_it_was_taken(void **state)
{
    struct fixture *f = *state;
    struct alb_event event;
    for (int i = 0; i < 3; i++) {
        alb_event_raise(f->engine, &f->cq->event, ALB_EVENT_CQ_NOTIFY);
        assert_true(alb_engine_event(f->engine, &event));
        assert_int_equal(event.type, ALB_EVENT_CQ_NOTIFY);
        assert_false(alb_engine_event(f->engine, &event));
    }
}

static void event_node_fini__events_end_with_their_owner(void **state)
{
    struct fixture *f = *state;
    struct alb_event event;
    struct alb_srq *srq;
    assert_int_equal(alb_srq_create(f->pd, 4, 1, 0, f, &srq), 0);
    alb_event_raise(f->engine, &srq->event, ALB_EVENT_SRQ_ERR);
    alb_event_raise(f->engine, &f->cq->event, ALB_EVENT_CQ_NOTIFY);
    assert_int_equal(alb_srq_destroy(srq), 0);
    assert_true(alb_engine_event(f->engine, &event));
    assert_int_equal(event.type, ALB_EVENT_CQ_NOTIFY);
    assert_false(alb_engine_event(f->engine, &event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(event_raise__oldest_first),
        FIXTURE_TEST(event_raise__again_after_it_was_taken),
        FIXTURE_TEST(event_node_fini__events_end_with_their_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
