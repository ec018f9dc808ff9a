// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

enum {
    SGE_MAX = 3,
};

static struct alb_recv_queue queue;
static union {
    struct alb_recv_wqe wqe;
    uint8_t bytes[sizeof(struct alb_recv_wqe) + SGE_MAX * sizeof(struct alb_sge)];
} taken;

static int post(uint64_t wr_id, uint32_t sge_count)
{
    struct alb_sge sge[SGE_MAX + 1];
    for (uint32_t i = 0; i < ALB_COUNT(sge); i++)
        sge[i] = (struct alb_sge){.addr = wr_id * 100 + i, .length = UINT32_MAX - i, .lkey = i};
    return alb_recv_queue_post(&queue, wr_id, sge, sge_count);
}

static void recv_queue_take__gives_what_was_posted(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(alb_recv_queue_init(f->engine, &queue, 3, SGE_MAX), 0);
    assert_int_equal(queue.capacity, 4);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(post(i, 3), 0);
        assert_int_equal(post(i + 1000, 0), 0);
        assert_int_equal(alb_recv_queue_count(&queue), 2);
        assert_true(alb_recv_queue_take(&queue, &taken.wqe));
        assert_int_equal(taken.wqe.wr_id, i);
        assert_int_equal(taken.wqe.sge_count, 3);
        assert_true(taken.wqe.length == ALB_MAX_MESSAGE); // its entries have more than any message
        for (uint32_t k = 0; k < 3; k++) {
            assert_int_equal(taken.wqe.sge[k].addr, i * 100 + k);
            assert_int_equal(taken.wqe.sge[k].lkey, k);
        }
        assert_true(alb_recv_queue_take(&queue, &taken.wqe));
        assert_int_equal(taken.wqe.wr_id, i + 1000);
        assert_int_equal(taken.wqe.length, 0);
        assert_false(alb_recv_queue_take(&queue, &taken.wqe));
    }
    alb_recv_queue_fini(f->engine, &queue);
}

static void recv_queue_peek__shows_what_will_be_taken(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(alb_recv_queue_init(f->engine, &queue, 4, SGE_MAX), 0);
    for (uint64_t i = 0; i < 10; i++) { // round the ring
        assert_null(alb_recv_queue_peek(&queue, 0));
        for (uint64_t k = 0; k < 3; k++)
            assert_int_equal(post(10 * i + k, 2), 0);
        for (uint32_t k = 0; k < 3; k++) {
            const struct alb_recv_wqe *wqe = alb_recv_queue_peek(&queue, k);
            assert_non_null(wqe);
            assert_int_equal(wqe->wr_id, 10 * i + k);
            assert_int_equal(wqe->sge_count, 2);
        }
        assert_null(alb_recv_queue_peek(&queue, 3));
        assert_null(alb_recv_queue_peek(&queue, UINT32_MAX));
        for (uint32_t k = 0; k < 3; k++)
            assert_true(alb_recv_queue_take(&queue, &taken.wqe));
    }
    alb_recv_queue_fini(f->engine, &queue);
}

static void recv_queue_post__limits(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(alb_recv_queue_init(f->engine, &queue, 2, SGE_MAX), 0);
    assert_int_equal(post(1, SGE_MAX + 1), EINVAL);
    assert_int_equal(alb_recv_queue_count(&queue), 0);
    assert_int_equal(post(1, 1), 0);
    assert_int_equal(post(2, 1), 0);
    assert_int_equal(post(3, 1), ENOMEM);
    assert_true(alb_recv_queue_take(&queue, &taken.wqe));
    assert_int_equal(post(3, 1), 0);
    alb_recv_queue_fini(f->engine, &queue);
}

static void recv_queue_init__of_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(alb_recv_queue_init(f->engine, &queue, 0, 0), 0);
    assert_int_equal(post(1, 0), ENOMEM);
    assert_false(alb_recv_queue_take(&queue, &taken.wqe));
    alb_recv_queue_fini(f->engine, &queue);
    f->refused_from = 1;
    assert_int_equal(alb_recv_queue_init(f->engine, &queue, 1, 1), ENOMEM);
    f->refused_from = 0;
    alb_recv_queue_fini(f->engine, &queue);
}

static void recv_queue_clear__forgets_all(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(alb_recv_queue_init(f->engine, &queue, 4, SGE_MAX), 0);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(post(i, 1), 0);
    alb_recv_queue_clear(&queue);
    assert_int_equal(alb_recv_queue_count(&queue), 0);
    assert_false(alb_recv_queue_take(&queue, &taken.wqe));
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(post(50 + i, 1), 0);
    assert_true(alb_recv_queue_take(&queue, &taken.wqe));
    assert_int_equal(taken.wqe.wr_id, 50);
    alb_recv_queue_fini(f->engine, &queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(recv_queue_take__gives_what_was_posted),
        FIXTURE_TEST(recv_queue_peek__shows_what_will_be_taken),
        FIXTURE_TEST(recv_queue_post__limits),
        FIXTURE_TEST(recv_queue_init__of_nothing),
        FIXTURE_TEST(recv_queue_clear__forgets_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
