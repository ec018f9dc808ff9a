// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/pair.h"

#include "base/tests/test.h"

#include <pthread.h>
#include <sched.h>

static int setup(void **state)
{
    *state = pair_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    pair_free(*state);
    return 0;
}

// A queue pair whose bell tells when it is answered: its delivery layer is one of the test's own.
struct ringer {
    struct alb_qp *qp;
    uint32_t answers;
    uint32_t order; // of its last answer among all
};

static struct ringer ringers[16];
static uint32_t answered;

static void note_work(struct alb_qp *qp, alb_time now)
{
    struct ringer *ringer = alb_qp_user(qp);
    ringer->answers++;
    ringer->order = ++answered;
}

static struct alb_delivery_ops noting_ops;

static void make_ringers(struct pair *pair, uint32_t count)
{
    noting_ops = alb_rc_ops;
    noting_ops.work = note_work;
    answered = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct alb_qp_init init = {.type = ALB_QPT_RC, .user = &ringers[i]};
        struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
        struct alb_qp *qp = pair_qp_with(pair, 0, &init);
        assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
        alb_engine_tick(qp->engine, pair->now);
        qp->delivery = &noting_ops;
        ringers[i] = (struct ringer){.qp = qp};
    }
}

static void alb_engine_bells__answers_in_the_order_of_ringing(void **state)
{
    struct pair *pair = *state;
    make_ringers(pair, 4);
    for (uint32_t i = 0; i < 4; i++)
        alb_engine_bell_ring(ringers[(i + 2) % 4].qp);
    alb_engine_bells(ringers[0].qp->engine, pair->now);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(ringers[(i + 2) % 4].order, i + 1);
}

static void alb_engine_bells__once_however_often_it_rang(void **state)
{
    struct pair *pair = *state;
    struct alb_engine *engine = pair->hosts[0].engine;
    make_ringers(pair, 1);
    assert_false(alb_engine_bell_is_rung(engine));
    for (int i = 0; i < 5; i++)
        alb_engine_bell_ring(ringers[0].qp);
    assert_true(alb_engine_bell_is_rung(engine));
    alb_engine_bells(engine, pair->now);
    assert_false(alb_engine_bell_is_rung(engine));
    assert_int_equal(ringers[0].answers, 1);
    alb_engine_bells(engine, pair->now);
    assert_int_equal(ringers[0].answers, 1);
    alb_engine_bell_ring(ringers[0].qp);
    alb_engine_bells(engine, pair->now);
    assert_int_equal(ringers[0].answers, 2);
}

static void alb_engine_bells__in_reset_there_is_nothing_to_do(void **state)
{
    struct pair *pair = *state;
    make_ringers(pair, 1);
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(ringers[0].qp, &attr, ALB_QP_STATE, pair->now), 0);
    alb_engine_bell_ring(ringers[0].qp);
    alb_engine_bells(pair->hosts[0].engine, pair->now);
    assert_int_equal(ringers[0].answers, 0);
}

static void alb_qp_destroy__takes_the_bell_along(void **state)
{
    struct pair *pair = *state;
    make_ringers(pair, 3);
    for (uint32_t i = 0; i < 3; i++)
        alb_engine_bell_ring(ringers[i].qp);
    ringers[1].qp->delivery = &alb_rc_ops;
    assert_int_equal(alb_qp_destroy(ringers[1].qp), 0);
    alb_engine_bells(pair->hosts[0].engine, pair->now);
    assert_int_equal(ringers[0].answers, 1);
    assert_int_equal(ringers[2].answers, 1);
}

// Each of these threads posts to a queue pair of its own and rings it; the holder answers meanwhile. Work that was
// noted before a ring is seen by the answer to it: no post is ever left behind.
enum {
    POSTERS = 8,
    POSTS = 20000,
};

static _Atomic uint32_t posted[POSTERS];
static uint32_t seen[POSTERS];

static void note_posted(struct alb_qp *qp, alb_time now)
{
    struct ringer *ringer = alb_qp_user(qp);
    seen[ringer - ringers] = atomic_load_explicit(&posted[ringer - ringers], memory_order_relaxed);
}

static void *post(void *argument)
{
    struct ringer *ringer = argument;
    for (uint32_t i = 1; i <= POSTS; i++) {
        atomic_store_explicit(&posted[ringer - ringers], i, memory_order_relaxed);
        alb_engine_bell_ring(ringer->qp);
    }
    return NULL;
}

static bool all_is_seen(void)
{
    for (int i = 0; i < POSTERS; i++)
        if (seen[i] != POSTS)
            return false;
    return true;
}

static void alb_engine_bell_ring__from_many_threads_loses_nothing(void **state)
{
    struct pair *pair = *state;
    struct alb_engine *engine = pair->hosts[0].engine;
    pthread_t threads[POSTERS];
    make_ringers(pair, POSTERS);
    noting_ops.work = note_posted;
    for (int i = 0; i < POSTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post, &ringers[i]), 0);
    while (!all_is_seen()) { // would never end if a ring were lost
        if (!alb_engine_bell_is_rung(engine))
            sched_yield();
        alb_engine_bells(engine, pair->now);
    }
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_engine_bells__answers_in_the_order_of_ringing, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_bells__once_however_often_it_rang, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_bells__in_reset_there_is_nothing_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_destroy__takes_the_bell_along, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_bell_ring__from_many_threads_loses_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
