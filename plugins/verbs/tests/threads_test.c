// SPDX-License-Identifier: BSD-2-Clause
// Verbs are thread-safe: 16 threads post to 64 queue pairs and poll 4 completion queues, all of them shared, while
// others come and go.
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 16, PAIRS = 32, QUEUES = 4, MESSAGES = 6000, CREDITS = 8 };

struct stage {
    struct fixture *f;
    struct ibv_cq *queues[QUEUES];
    struct ibv_qp *from[PAIRS], *to[PAIRS];
    _Atomic int inflight[PAIRS];
    _Atomic int posted, sends, recvs, failures;
};

// wr_id is the pair's index, for both ends.
static void post_one(struct stage *stage, uint64_t pair)
{
    struct ibv_sge sge = fixture_sge(stage->f, 0, 64);
    struct ibv_recv_wr recv = {.wr_id = pair, .sg_list = &sge, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.wr_id = pair,
                               .num_sge = 1,
                               .sg_list = &sge,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
                       *bad_send;
    char text[64] = "sixteen threads";
    sge.addr = (uintptr_t)stage->f->memory + 64 * pair; // no other thread's bytes
    if (ibv_post_recv(stage->to[pair], &recv, &bad_recv) != 0)
        stage->failures++;
    sge.addr = (uintptr_t)text;
    if (ibv_post_send(stage->from[pair], &send, &bad_send) != 0)
        stage->failures++;
}

static void poll_one(struct stage *stage, struct ibv_cq *queue)
{
    struct ibv_wc wc[4];
    int count = ibv_poll_cq(queue, 4, wc);
    for (int i = 0; i < count; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            stage->failures++;
        if (wc[i].opcode & IBV_WC_RECV) {
            stage->recvs++;
        } else {
            stage->inflight[wc[i].wr_id]--;
            stage->sends++;
        }
    }
}

static void *work(void *argument)
{
    struct stage *stage = argument;
    for (unsigned int turn = 0; stage->sends < MESSAGES || stage->recvs < MESSAGES; turn++) {
        unsigned int pair = (turn * 7 + (unsigned int)(uintptr_t)pthread_self() / 4096) % PAIRS;
        if (stage->inflight[pair]++ >= CREDITS)
            stage->inflight[pair]--;
        else if (stage->posted++ >= MESSAGES)
            stage->inflight[pair]--;
        else
            post_one(stage, pair);
        poll_one(stage, stage->queues[turn % QUEUES]);
        if (stage->failures)
            break;
    }
    return NULL;
}

// Objects come and go beside the traffic.
static void *churn(void *argument)
{
    struct stage *stage = argument;
    struct fixture *f = stage->f;
    while (stage->recvs < MESSAGES && !stage->failures) {
        struct ibv_cq *cq = ibv_create_cq(f->context, 16, NULL, NULL, 0);
        struct ibv_qp_init_attr init = fixture_qp_init(f, IBV_QPT_UD);
        init.send_cq = init.recv_cq = cq;
        struct ibv_qp *qp = ibv_create_qp(f->pd, &init);
        struct ibv_mr *mr = ibv_reg_mr(f->pd, f->memory, 4096, IBV_ACCESS_LOCAL_WRITE);
        if (!cq || !qp || !mr || ibv_dereg_mr(mr) || ibv_destroy_qp(qp) || ibv_resize_cq(cq, 32) || ibv_destroy_cq(cq))
            stage->failures++;
    }
    return NULL;
}

static void verbs__sixteen_threads(void **state)
{
    static struct stage stage;
    pthread_t threads[THREADS + 1];
    stage.f = *state;
    struct ibv_cq *plain = stage.f->cq;
    for (int i = 0; i < QUEUES; i++)
        assert_non_null(stage.queues[i] = ibv_create_cq(stage.f->context, 4096, NULL, NULL, 0));
    for (int i = 0; i < PAIRS; i++) {
        stage.f->cq = stage.queues[i % QUEUES];
        stage.from[i] = fixture_qp(stage.f, IBV_QPT_RC);
        stage.f->cq = stage.queues[(i + 1) % QUEUES];
        stage.to[i] = fixture_qp(stage.f, IBV_QPT_RC);
        fixture_connect(stage.from[i], stage.to[i]);
    }
    stage.f->cq = plain;

    assert_int_equal(pthread_create(&threads[THREADS], NULL, churn, &stage), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &stage), 0);
    for (int i = 0; i <= THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(stage.failures, 0);
    assert_int_equal(stage.sends, MESSAGES);
    assert_int_equal(stage.recvs, MESSAGES);

    for (int i = 0; i < PAIRS; i++) {
        assert_memory_equal(stage.f->memory + 64 * i, "sixteen threads", 15);
        assert_int_equal(ibv_destroy_qp(stage.from[i]), 0);
        assert_int_equal(ibv_destroy_qp(stage.to[i]), 0);
    }
    for (int i = 0; i < QUEUES; i++)
        assert_int_equal(ibv_destroy_cq(stage.queues[i]), 0);
}

// ---- one window, two threads ----------------------------------------------------------------------------------------

enum { BINDS = 100, ROUNDS = 8 };

struct binder {
    struct fixture *f;
    struct ibv_mw *mw;
    struct ibv_cq *cq;
    struct ibv_qp *qp, *peer;
    uint32_t rkey; // that a window of type 2 is to have
    int successes;
};

static void open_binder(struct fixture *f, struct binder *binder)
{
    struct ibv_cq *plain = f->cq;
    assert_non_null(f->cq = binder->cq = ibv_create_cq(f->context, 64, NULL, NULL, 0));
    binder->f = f;
    binder->qp = fixture_qp(f, IBV_QPT_RC);
    binder->peer = fixture_qp(f, IBV_QPT_RC);
    fixture_connect(binder->qp, binder->peer);
    f->cq = plain;
}

static void close_binder(struct binder *binder)
{
    assert_int_equal(ibv_destroy_qp(binder->qp), 0);
    assert_int_equal(ibv_destroy_qp(binder->peer), 0);
    assert_int_equal(ibv_destroy_cq(binder->cq), 0);
}

static struct ibv_mw_bind_info bound_range(const struct binder *binder)
{
    return (struct ibv_mw_bind_info){.mr = binder->f->mr,
                                     .addr = (uintptr_t)binder->f->memory,
                                     .length = 8,
                                     .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
}

static void *bind_type_1(void *argument)
{
    struct binder *binder = argument;
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = bound_range(binder)};
    for (int i = 0; i < BINDS && ibv_bind_mw(binder->qp, binder->mw, &bind) == 0; i++)
        binder->successes += fixture_wait(binder->cq).status == IBV_WC_SUCCESS;
    return NULL;
}

static void *bind_type_2(void *argument)
{
    struct binder *binder = argument;
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
                             .send_flags = IBV_SEND_SIGNALED,
                             .bind_mw = {binder->mw, binder->rkey, bound_range(binder)}},
                       *bad;
    if (ibv_post_send(binder->qp, &wr, &bad) == 0)
        binder->successes = fixture_wait(binder->cq).status == IBV_WC_SUCCESS;
    return NULL;
}

static void run_binders(struct binder *binders, struct ibv_mw *mw, void *(*bind)(void *))
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        binders[i].mw = mw;
        binders[i].successes = 0;
        binders[i].rkey = ibv_inc_rkey(mw->rkey);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, bind, &binders[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

// Each bind of type 1 gets a key of its own.
static void verbs__two_threads_bind_one_window(void **state)
{
    struct fixture *f = *state;
    struct binder binders[2];
    struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);
    uint32_t key = mw->rkey;
    for (int i = 0; i < 2; i++)
        open_binder(f, &binders[i]);
    run_binders(binders, mw, bind_type_1);
    assert_int_equal(binders[0].successes, BINDS);
    assert_int_equal(binders[1].successes, BINDS);
    for (int i = 0; i < 2 * BINDS; i++)
        key = ibv_inc_rkey(key);
    assert_int_equal(mw->rkey, key);
    for (int i = 0; i < 2; i++)
        close_binder(&binders[i]);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
}

// One of type 2 is bound on one queue pair; the other one gets an error.
static void verbs__two_queue_pairs_want_one_window(void **state)
{
    struct fixture *f = *state;
    struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2);
    for (int round = 0; round < ROUNDS; round++) {
        struct binder binders[2];
        for (int i = 0; i < 2; i++)
            open_binder(f, &binders[i]);
        run_binders(binders, mw, bind_type_2);
        assert_int_equal(binders[0].successes + binders[1].successes, 1);
        for (int i = 0; i < 2; i++)
            close_binder(&binders[i]); // which unbinds it
    }
    assert_int_equal(ibv_dealloc_mw(mw), 0);
}

// ---- one queue pair is asked and moved ------------------------------------------------------------------------------

static void *ask_and_move(void *qp)
{
    for (int i = 0; i < 200; i++) {
        struct ibv_qp_attr attr, error = {.qp_state = IBV_QPS_ERR};
        struct ibv_qp_init_attr init;
        if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) || (i == 100 && ibv_modify_qp(qp, &error, IBV_QP_STATE)))
            return qp;
    }
    return NULL;
}

static void verbs__two_threads_ask_and_move_one_queue_pair(void **state)
{
    struct ibv_qp *qp = fixture_qp(*state, IBV_QPT_RC), *peer = fixture_qp(*state, IBV_QPT_RC);
    pthread_t threads[2];
    void *failed;
    fixture_connect(qp, peer);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_and_move, qp), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(qp->state, IBV_QPS_ERR);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_qp(peer), 0);
}

// ---- threads that are cancelled -------------------------------------------------------------------------------------

struct cancelled {
    struct fixture *f;
    struct ibv_qp *from, *to;
    struct ibv_cq *cq;
    int fd;
    bool has_ended;
};

static void end_of_cancelled(struct cancelled *cancelled)
{
    cancelled->has_ended = true;
    pthread_testcancel();
}

// From now on the thread ends at the first call that is a cancellation point.
static void cancel_self(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(before, NULL);
}

static void *move_data(void *argument)
{
    struct cancelled *cancelled = argument;
    cancel_self();
    for (int i = 0; i < 300; i++) {
        struct ibv_wc wc;
        int completions = 0;
        assert_int_equal(ibv_req_notify_cq(cancelled->cq, 0), 0);
        fixture_post_recv(cancelled->f, cancelled->to, 1, 0, 64);
        fixture_post_send(cancelled->f, cancelled->from, 2, 64, 64);
        while (completions < 2)
            completions += ibv_poll_cq(cancelled->cq, 1, &wc);
    }
    end_of_cancelled(cancelled);
    return NULL;
}

static void *register_memory(void *argument)
{
    struct cancelled *cancelled = argument;
    struct fixture *f = cancelled->f;
    cancel_self();
    for (int i = 0; i < 100; i++) {
        struct ibv_mr *mr = ibv_reg_mr(f->pd, f->memory, 4096, IBV_ACCESS_LOCAL_WRITE);
        struct ibv_qp_init_attr init = fixture_qp_init(f, IBV_QPT_UD);
        struct ibv_qp *qp = ibv_create_qp(f->pd, &init);
        assert_true(mr && qp && ibv_dereg_mr(mr) == 0 && ibv_destroy_qp(qp) == 0);
    }
    end_of_cancelled(cancelled);
    return NULL;
}

static void *set_things_up(void *argument)
{
    struct cancelled *cancelled = argument;
    struct ibv_xrcd_init_attr init = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = cancelled->fd, .oflags = O_CREAT};
    cancel_self();
    struct ibv_context *context = ibv_open_device(cancelled->f->context->device);
    struct ibv_comp_channel *channel = context ? ibv_create_comp_channel(context) : NULL;
    struct ibv_xrcd *xrcd = channel ? ibv_open_xrcd(context, &init) : NULL;
    assert_true(xrcd && ibv_close_xrcd(xrcd) == 0 && ibv_destroy_comp_channel(channel) == 0);
    assert_int_equal(ibv_close_device(context), 0);
    end_of_cancelled(cancelled);
    return NULL;
}

static int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void run_cancelled(void *(*work_of)(void *), struct cancelled *cancelled)
{
    pthread_t thread;
    void *result;
    cancelled->has_ended = false;
    assert_int_equal(pthread_create(&thread, NULL, work_of, cancelled), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

// The driver holds the engine's token, which a thread that ended there would never release.
static void verbs__cancelled_threads_leave_the_device(void **state)
{
#ifdef __SANITIZE_ADDRESS__
    skip(); // it does not see a cancelled thread leave its functions, and takes their variables for still there
#endif
    struct fixture *f = *state;
    struct ibv_cq *plain = f->cq;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(f->context);
    struct ibv_cq *cq = ibv_create_cq(f->context, 64, NULL, channel, 0), *got;
    void *context;
    f->cq = cq;
    struct cancelled cancelled = {.f = f, .from = fixture_qp(f, IBV_QPT_RC), .to = fixture_qp(f, IBV_QPT_RC), .cq = cq};
    fixture_connect(cancelled.from, cancelled.to);
    run_cancelled(move_data, &cancelled);
    assert_true(cancelled.has_ended); // no call of the data path is a cancellation point
    run_cancelled(register_memory, &cancelled);
    run_cancelled(move_data, &cancelled);
    assert_true(cancelled.has_ended);
    assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
    ibv_ack_cq_events(cq, 1);
    assert_int_equal(ibv_destroy_qp(cancelled.from), 0);
    assert_int_equal(ibv_destroy_qp(cancelled.to), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    f->cq = plain;
}

static void verbs__cancelled_threads_leave_no_lock_and_no_descriptor(void **state)
{
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    FILE *file = tmpfile();
    assert_non_null(file);
    struct cancelled cancelled = {.f = *state, .fd = fileno(file)};
    int before = count_descriptors();
    run_cancelled(register_memory, &cancelled);
    assert_true(cancelled.has_ended);
    run_cancelled(set_things_up, &cancelled);
    assert_true(cancelled.has_ended);
    assert_int_equal(count_descriptors(), before);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(verbs__sixteen_threads),
        FIXTURE_TEST(verbs__two_threads_bind_one_window),
        FIXTURE_TEST(verbs__two_queue_pairs_want_one_window),
        FIXTURE_TEST(verbs__two_threads_ask_and_move_one_queue_pair),
        FIXTURE_TEST(verbs__cancelled_threads_leave_the_device),
        FIXTURE_TEST(verbs__cancelled_threads_leave_no_lock_and_no_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
