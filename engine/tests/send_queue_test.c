// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static struct alb_send_queue queue;

static void send_queue_init__slots_hold_entries_and_inline_data(void **state)
{
    struct fixture *f = *state;
    static const struct alb_qp_cap caps[] = {
        {.send_wr_max = 5, .send_sge_max = 30, .inline_max_bytes = 8},
        {.send_wr_max = 5, .send_sge_max = 1, .inline_max_bytes = 500},
        {.send_wr_max = 1},
    };
    for (size_t i = 0; i < ALB_COUNT(caps); i++) {
        size_t held = f->bytes_held;
        assert_int_equal(alb_send_queue_init(f->engine, &queue, &caps[i]), 0);
        assert_true(queue.capacity >= caps[i].send_wr_max);
        assert_int_equal(queue.capacity & (queue.capacity - 1), 0);
        assert_int_equal(queue.sge_max, caps[i].send_sge_max);
        assert_int_equal(queue.inline_max_bytes, ALB_MAX(caps[i].inline_max_bytes, 16u));
        for (uint32_t k = 0; k < queue.capacity; k++) { // fills all that a request may use; a sanitizer would object
            struct alb_send_wqe *wqe = alb_send_queue_at(&queue, k);
            memset(wqe, (int)k, sizeof(*wqe));
            memset(wqe->inline_data, (int)k, queue.inline_max_bytes);
            memset(wqe->sge, (int)k, caps[i].send_sge_max * sizeof(struct alb_sge));
        }
        for (uint32_t k = 0; k < queue.capacity; k++) {
            assert_int_equal(alb_send_queue_at(&queue, k)->opcode, k);
            assert_ptr_equal(alb_send_queue_at(&queue, k + queue.capacity), alb_send_queue_at(&queue, k));
        }
        alb_send_queue_fini(f->engine, &queue);
        assert_int_equal(f->bytes_held, held);
    }
}

static void send_queue_init__of_nothing(void **state)
{
    struct fixture *f = *state;
    struct alb_qp_cap cap = {0};
    assert_int_equal(alb_send_queue_init(f->engine, &queue, &cap), 0);
    assert_int_equal(queue.capacity, 0);
    alb_send_queue_fini(f->engine, &queue);
    cap.send_wr_max = 1;
    f->refused_from = 1;
    assert_int_equal(alb_send_queue_init(f->engine, &queue, &cap), ENOMEM);
    f->refused_from = 0;
    alb_send_queue_fini(f->engine, &queue);
}

static void send_queue_clear__is_empty(void **state)
{
    struct fixture *f = *state;
    struct alb_qp_cap cap = {.send_wr_max = 4};
    assert_int_equal(alb_send_queue_init(f->engine, &queue, &cap), 0);
    queue.staged = 3;
    atomic_store(&queue.tail, 2);
    atomic_store(&queue.head, 1);
    alb_send_queue_clear(&queue);
    assert_int_equal(queue.staged, 0);
    assert_int_equal(atomic_load(&queue.tail), 0);
    assert_int_equal(atomic_load(&queue.head), 0);
    alb_send_queue_fini(f->engine, &queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(send_queue_init__slots_hold_entries_and_inline_data),
        FIXTURE_TEST(send_queue_init__of_nothing),
        FIXTURE_TEST(send_queue_clear__is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
