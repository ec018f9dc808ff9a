// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static void assert_refused(struct fixture *f, int entries, struct ibv_comp_channel *channel, int vector)
{
    errno = 0;
    assert_null(ibv_create_cq(f->context, entries, NULL, channel, vector));
    assert_int_equal(errno, EINVAL);
}

static void create_cq__arguments(void **state)
{
    struct fixture *f = *state;
    struct ibv_device_attr attr;
    assert_int_equal(ibv_query_device(f->context, &attr), 0);
    struct ibv_cq *cq = ibv_create_cq(f->context, 10, f, NULL, f->context->num_comp_vectors - 1);
    assert_true(cq->cqe >= 10);
    assert_ptr_equal(cq->cq_context, f);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_refused(f, 0, NULL, 0);
    assert_refused(f, -1, NULL, 0);
    assert_refused(f, attr.max_cqe + 1, NULL, 0);
    assert_refused(f, 10, NULL, -1);
    assert_refused(f, 10, NULL, f->context->num_comp_vectors);
    assert_null(ibv_create_cq(NULL, 10, NULL, NULL, 0));
    assert_int_equal(ibv_destroy_cq(NULL), EINVAL);
}

static void destroy_cq__in_use(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    assert_int_equal(ibv_destroy_cq(f->cq), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void poll_cq__several_at_once(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_wc wc[8];
    fixture_connect(a, b);
    assert_int_equal(ibv_poll_cq(f->cq, 8, wc), 0);
    assert_int_equal(ibv_poll_cq(f->cq, 0, wc), 0);
    assert_true(ibv_poll_cq(f->cq, -1, wc) < 0);
    for (uint64_t i = 0; i < 4; i++)
        fixture_post_recv(f, b, 100 + i, 4096 + i * 100, 100);
    for (uint64_t i = 0; i < 4; i++)
        fixture_post_send(f, a, 200 + i, i * 100, 50);
    int sends = 0, recvs = 0;
    while (sends + recvs < 8) {
        int count = ibv_poll_cq(f->cq, 8, wc);
        assert_in_range(count, 0, 8);
        for (int i = 0; i < count; i++) {
            assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
            if (wc[i].opcode & IBV_WC_RECV) {
                assert_int_equal(wc[i].wr_id, 100 + recvs++); // in order
                assert_int_equal(wc[i].qp_num, b->qp_num);
                assert_int_equal(wc[i].byte_len, 50);
            } else {
                assert_int_equal(wc[i].wr_id, 200 + sends++);
                assert_int_equal(wc[i].qp_num, a->qp_num);
            }
        }
    }
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void resize_cq__keeps_what_is_queued(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    fixture_connect(a, b);
    fixture_post_recv(f, b, 1, 4096, 100);
    fixture_post_recv(f, b, 2, 4196, 100);
    fixture_post_send(f, a, 3, 0, 10);
    fixture_post_send(f, a, 4, 0, 10);
    // Until all four are there; the queue cannot say how many it holds, so ask it to shrink below.
    while (ibv_resize_cq(f->cq, 3) == 0)
        ;
    assert_int_equal(ibv_resize_cq(f->cq, 3), EINVAL);
    assert_int_equal(ibv_resize_cq(f->cq, 200), 0);
    assert_true(f->cq->cqe >= 200);
    assert_int_equal(ibv_resize_cq(f->cq, 0), EINVAL);
    assert_int_equal(ibv_resize_cq(f->cq, -5), EINVAL);
    assert_int_equal(ibv_resize_cq(NULL, 5), EINVAL);
    uint64_t seen = 0;
    for (int i = 0; i < 4; i++)
        seen |= 1u << fixture_wait(f->cq).wr_id;
    assert_int_equal(seen, 0x1e);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

// A poller's requests may wait for its next poll; the room they will need is not given up meanwhile.
static void resize_cq__counts_what_was_posted(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_UC), *b = fixture_qp(f, IBV_QPT_UC);
    struct ibv_wc wc;
    fixture_connect(a, b);
    for (int round = 0; round < 20; round++) {
        assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
        for (uint64_t i = 0; i < 5; i++)
            fixture_post_send(f, a, i, 0, 10);
        assert_int_equal(ibv_resize_cq(f->cq, 1), EINVAL);
        for (uint64_t i = 0; i < 5; i++)
            assert_int_equal(fixture_wait(f->cq).wr_id, i);
    }
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void destroy_qp__takes_its_completions(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc;
    fixture_connect(a, b);
    fixture_post_recv(f, a, 1, 0, 10);
    fixture_post_recv(f, b, 2, 0, 10);
    assert_int_equal(ibv_modify_qp(a, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_modify_qp(b, &attr, IBV_QP_STATE), 0); // two flushed receives are queued
    assert_int_equal(ibv_destroy_qp(a), 0);
    wc = fixture_wait(f->cq);
    assert_int_equal(wc.wr_id, 2);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

// ---- extended -------------------------------------------------------------------------------------------------------

static struct ibv_cq_ex *create_ex(struct fixture *f, uint64_t flags)
{
    struct ibv_cq_init_attr_ex init = {.cqe = 32, .wc_flags = flags};
    return ibv_create_cq_ex(f->context, &init);
}

static void cq_ex__iterates_with_timestamps(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq *plain = f->cq;
    struct ibv_cq_ex *ex = create_ex(f, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                            IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
    struct ibv_poll_cq_attr attr = {0};
    assert_non_null(ex);
    f->cq = ibv_cq_ex_to_cq(ex);
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    fixture_connect(a, b);
    assert_int_equal(ibv_start_poll(ex, &attr), ENOENT);
    attr.comp_mask = 1;
    assert_int_equal(ibv_start_poll(ex, &attr), EINVAL);
    attr.comp_mask = 0;
    for (uint64_t i = 0; i < 3; i++)
        fixture_post_recv(f, b, i, 4096, 100);
    for (uint64_t i = 0; i < 3; i++)
        fixture_post_send(f, a, 10 + i, 0, 64);
    uint64_t seen = 0, last = 0, distance = 0;
    for (int count = 0; count < 6;) {
        int error = ibv_start_poll(ex, &attr);
        if (error == ENOENT)
            continue;
        assert_int_equal(error, 0);
        do {
            assert_int_equal(ex->status, IBV_WC_SUCCESS);
            seen |= 1u << ex->wr_id;
            bool is_recv = ex->wr_id < 10;
            assert_int_equal(ibv_wc_read_opcode(ex), is_recv ? IBV_WC_RECV : IBV_WC_SEND);
            assert_int_equal(ibv_wc_read_qp_num(ex), is_recv ? b->qp_num : a->qp_num);
            if (is_recv)
                assert_int_equal(ibv_wc_read_byte_len(ex), 64);
            assert_int_equal(ibv_wc_read_wc_flags(ex), 0);
            assert_int_equal(ibv_wc_read_vendor_err(ex), 0);
            assert_int_equal(ibv_wc_read_slid(ex), 0);
            uint64_t now = ibv_wc_read_completion_ts(ex);
            assert_true(now >= last);
            uint64_t wall = ibv_wc_read_completion_wallclock_ns(ex);
            assert_true(wall > 1000000000ull * 1000000000ull);    // after 2001
            assert_true(distance == 0 || wall - now == distance); // else it might run backwards
            distance = wall - now;
            last = now;
            count++;
        } while (ibv_next_poll(ex) == 0);
        ibv_end_poll(ex);
    }
    assert_int_equal(seen, 0x1c07);
    assert_true(last > 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    f->cq = plain;
}

// What was read before ibv_end_poll is consumed, even if nothing came after it.
static void cq_ex__end_poll_consumes(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq *plain = f->cq;
    struct ibv_cq_ex *ex = create_ex(f, 0);
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_ERR};
    f->cq = ibv_cq_ex_to_cq(ex);
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    assert_null(ex->read_completion_ts); // not asked for
    assert_null(ex->read_byte_len);
    fixture_to_init(qp);
    fixture_post_recv(f, qp, 1, 0, 1);
    fixture_post_recv(f, qp, 2, 0, 1);
    assert_int_equal(ibv_modify_qp(qp, &qp_attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_start_poll(ex, &attr), 0);
    assert_int_equal(ex->wr_id, 1);
    assert_int_equal(ex->status, IBV_WC_WR_FLUSH_ERR);
    ibv_end_poll(ex);
    assert_int_equal(ibv_start_poll(ex, &attr), 0);
    assert_int_equal(ex->wr_id, 2);
    assert_int_equal(ibv_next_poll(ex), ENOENT);
    ibv_end_poll(ex);
    assert_int_equal(ibv_start_poll(ex, &attr), ENOENT);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    f->cq = plain;
}

// ibv_rc_pingpong -t has one place, and posts while it looks at the completion of the request before.
static void cq_ex__a_shown_completion_has_given_its_place_back(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq *plain = f->cq;
    struct ibv_cq_ex *ex = create_ex(f, 0);
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    f->cq = ibv_cq_ex_to_cq(ex);
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    fixture_to_init(qp);
    fixture_to_rtr(qp, qp->qp_num);
    fixture_to_rts(qp);
    assert_int_equal(ibv_modify_qp(qp, &qp_attr, IBV_QP_STATE), 0); // what is posted is flushed
    int error;
    while ((error = ibv_post_send(qp, &wr, &bad)) == 0)
        wr.wr_id++;
    assert_int_equal(error, ENOMEM);
    while ((error = ibv_start_poll(ex, &attr)) == ENOENT)
        ;
    assert_int_equal(error, 0);
    assert_int_equal(ex->wr_id, 0);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), ENOMEM);
    while ((error = ibv_next_poll(ex)) == ENOENT) // it may have been posted when the first one had been flushed
        ;
    assert_int_equal(error, 0);
    assert_int_equal(ex->wr_id, 1);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    ibv_end_poll(ex);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    f->cq = plain;
}

// ---- verbs between ibv_start_poll and ibv_end_poll
// ---------------------------------------------------------------------------------------------------------------------

struct other {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    int error;
};

static void *resizes(void *argument)
{
    struct other *other = argument;
    other->error = ibv_resize_cq(other->cq, 100);
    return NULL;
}

static void *resets(void *argument)
{
    struct other *other = argument;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    other->error = ibv_modify_qp(other->qp, &attr, IBV_QP_STATE);
    return NULL;
}

static void *destroys(void *argument)
{
    struct other *other = argument;
    other->error = ibv_destroy_qp(other->qp);
    return NULL;
}

// A thread that looks at a completion calls verbs that need the whole device, and posts, while another thread wants
// the queue to itself.
static void cq_ex__verbs_while_another_thread_waits_for_the_queue(void **state)
{
    static void *(*const others[])(void *) = {resizes, resets, destroys};
    struct fixture *f = *state;
    struct ibv_cq *plain = f->cq;
    struct ibv_cq_ex *ex = create_ex(f, 0);
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_ERR};
    f->cq = ibv_cq_ex_to_cq(ex);
    struct ibv_qp *failed = fixture_qp(f, IBV_QPT_RC);
    fixture_to_init(failed);
    for (int i = 0; i < 3; i++)
        fixture_post_recv(f, failed, 1, 0, 1);
    assert_int_equal(ibv_modify_qp(failed, &qp_attr, IBV_QP_STATE), 0);
    struct other other = {.cq = f->cq, .qp = fixture_qp(f, IBV_QPT_RC), .error = -1};
    fixture_to_init(other.qp);
    alarm(60); // a deadlock ends the test
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        assert_int_equal(ibv_start_poll(ex, &attr), 0);
        assert_int_equal(pthread_create(&thread, NULL, others[i], &other), 0);
        usleep(20 * 1000); // so that it waits
        struct ibv_mr *mr = ibv_reg_mr(f->pd, f->memory, 4096, IBV_ACCESS_LOCAL_WRITE);
        assert_non_null(mr);
        assert_int_equal(ibv_dereg_mr(mr), 0);
        if (i == 1)
            fixture_post_recv(f, other.qp, 2, 0, 1);
        ibv_end_poll(ex);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(other.error, 0);
    }
    alarm(0);
    assert_int_equal(ibv_destroy_qp(failed), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    f->cq = plain;
}

static void *polls(void *argument)
{
    struct other *other = argument;
    struct ibv_wc wc[8];
    other->error = ibv_poll_cq(other->cq, 8, wc);
    return NULL;
}

// A queue pair in error with so many receives, numbered from wr_id on, that have been flushed.
static struct ibv_qp *flushed_qp(struct fixture *f, uint64_t wr_id, int count)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    fixture_to_init(qp);
    for (int i = 0; i < count; i++)
        fixture_post_recv(f, qp, wr_id + (uint64_t)i, 0, 1);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    return qp;
}

// The thread that looks at a completion has the queue to itself already. What it takes away is not shown any more, and
// the rest goes on belonging to it until ibv_end_poll.
static void use_verbs_in_a_batch(struct fixture *f, struct ibv_cq_ex *ex)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_qp *a = flushed_qp(f, 10, 2), *b = flushed_qp(f, 20, 2), *c = flushed_qp(f, 30, 2);
    struct other other = {.cq = f->cq, .error = -1};
    uint32_t a_number = a->qp_num;
    pthread_t thread;
    alarm(60); // a deadlock ends the test
    assert_int_equal(ibv_start_poll(ex, &attr), 0);
    assert_int_equal(ex->wr_id, 10);
    assert_int_equal(ibv_resize_cq(f->cq, 100), 0);
    assert_int_equal(ibv_modify_qp(a, &reset, IBV_QP_STATE), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_wc_read_qp_num(ex), a_number);
    assert_int_equal(ibv_next_poll(ex), 0);
    assert_int_equal(ex->wr_id, 20);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(pthread_create(&thread, NULL, polls, &other), 0);
    usleep(20 * 1000); // so that it waits
    assert_int_equal(ibv_next_poll(ex), 0);
    assert_int_equal(ex->wr_id, 30);
    assert_int_equal(ibv_next_poll(ex), 0);
    assert_int_equal(ex->wr_id, 31);
    assert_int_equal(ibv_next_poll(ex), ENOENT);
    ibv_end_poll(ex);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(other.error, 0);
    assert_int_equal(ibv_destroy_qp(c), 0);
    alarm(0);
}

static void cq_ex__verbs_by_the_thread_that_looks(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq *plain = f->cq;
    for (uint32_t flags = 0; flags <= IBV_CREATE_CQ_ATTR_SINGLE_THREADED; flags++) {
        struct ibv_cq_init_attr_ex init = {
            .cqe = 32,
            .wc_flags = IBV_WC_EX_WITH_QP_NUM,
            .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
            .flags = flags,
        };
        struct ibv_cq_ex *ex = ibv_create_cq_ex(f->context, &init);
        assert_non_null(ex);
        f->cq = ibv_cq_ex_to_cq(ex);
        use_verbs_in_a_batch(f, ex);
        assert_int_equal(ibv_destroy_cq(f->cq), 0);
    }
    f->cq = plain;
}

static void assert_ex_refused(struct fixture *f, struct ibv_cq_init_attr_ex init, int error)
{
    errno = 0;
    assert_null(ibv_create_cq_ex(f->context, &init));
    assert_int_equal(errno, error);
}

static void create_cq_ex__arguments(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq_init_attr_ex init = {.cqe = 8};
    struct ibv_parent_domain_init_attr parent_attr = {.pd = f->pd};
    struct ibv_pd *parent = ibv_alloc_parent_domain(f->context, &parent_attr);

    assert_ex_refused(f, (struct ibv_cq_init_attr_ex){.cqe = 0}, EINVAL);
    assert_ex_refused(f, (struct ibv_cq_init_attr_ex){.cqe = UINT32_MAX}, EINVAL);
    assert_ex_refused(f, (struct ibv_cq_init_attr_ex){.cqe = 8, .comp_vector = UINT32_MAX}, EINVAL);
    assert_ex_refused(f, (struct ibv_cq_init_attr_ex){.cqe = 8, .comp_mask = 1 << 7}, EINVAL);
    assert_ex_refused(f, (struct ibv_cq_init_attr_ex){.cqe = 8, .wc_flags = IBV_WC_EX_WITH_CVLAN}, EOPNOTSUPP);
    assert_ex_refused(f, (struct ibv_cq_init_attr_ex){.cqe = 8, .wc_flags = IBV_WC_EX_WITH_TM_INFO}, EOPNOTSUPP);
    assert_ex_refused(f, (struct ibv_cq_init_attr_ex){.cqe = 8, .wc_flags = 1ull << 40}, EOPNOTSUPP);
    init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    init.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    assert_ex_refused(f, init, EOPNOTSUPP);
    init.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    init.parent_domain = f->pd; // not a parent domain
    assert_ex_refused(f, init, EINVAL);

    init.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD | IBV_CQ_INIT_ATTR_MASK_FLAGS;
    init.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    init.parent_domain = parent;
    struct ibv_cq_ex *ex = ibv_create_cq_ex(f->context, &init);
    assert_non_null(ex);
    assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(create_cq__arguments),
        FIXTURE_TEST(destroy_cq__in_use),
        FIXTURE_TEST(poll_cq__several_at_once),
        FIXTURE_TEST(resize_cq__keeps_what_is_queued),
        FIXTURE_TEST(resize_cq__counts_what_was_posted),
        FIXTURE_TEST(destroy_qp__takes_its_completions),
        FIXTURE_TEST(cq_ex__iterates_with_timestamps),
        FIXTURE_TEST(cq_ex__end_poll_consumes),
        FIXTURE_TEST(cq_ex__a_shown_completion_has_given_its_place_back),
        FIXTURE_TEST(cq_ex__verbs_while_another_thread_waits_for_the_queue),
        FIXTURE_TEST(cq_ex__verbs_by_the_thread_that_looks),
        FIXTURE_TEST(create_cq_ex__arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
