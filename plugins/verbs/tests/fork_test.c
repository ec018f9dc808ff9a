// SPDX-License-Identifier: BSD-2-Clause
// What a forked child may do with what it has inherited.
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// AddressSanitizer's allocator, unlike libc's, cannot be used in a child that was forked while another thread was
// inside it, and a thread allocates while it starts. The device's sleeps when it has started and has nothing to do.
static void await_rest(void)
{
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    for (struct dirent *entry; (entry = readdir(threads));) {
        pid_t thread = (pid_t)atoi(entry->d_name);
        while (thread > 0 && thread != gettid() && fixture_thread_state(thread) != 'S')
            sched_yield();
    }
    closedir(threads);
}

// A child that would wait for ever ends.
static void begin_child(void)
{
    enum { LIMIT_S = 20 };
    alarm(LIMIT_S);
}

static void expect_success(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static bool post_is_refused(struct ibv_qp *qp)
{
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
    struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;
    return ibv_post_send(qp, &send, &bad_send) == ENODEV && bad_send == &send &&
           ibv_post_recv(qp, &recv, &bad_recv) == ENODEV && bad_recv == &recv;
}

static bool poll_is_refused(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    return ibv_poll_cq(cq, 1, &wc) == -ENODEV && ibv_req_notify_cq(cq, 0) == ENODEV;
}

static bool srq_is_refused(struct ibv_srq *srq)
{
    struct ibv_recv_wr recv = {.wr_id = 1}, *bad = NULL;
    return ibv_post_srq_recv(srq, &recv, &bad) == ENODEV && bad == &recv;
}

static bool bind_is_refused(struct ibv_qp *qp, struct ibv_mw *mw)
{
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
    return ibv_bind_mw(qp, mw, &bind) == ENODEV;
}

static bool batch_is_refused(struct ibv_qp_ex *qp)
{
    ibv_wr_start(qp);
    ibv_wr_send(qp);
    ibv_wr_set_inline_data(qp, "child", 5);
    bool is_refused = ibv_wr_complete(qp) == ENODEV;
    ibv_wr_start(qp);
    ibv_wr_abort(qp);
    return is_refused;
}

static bool extended_poll_is_refused(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    return ibv_start_poll(cq, &attr) == ENODEV;
}

// The thread that forks is in the midst of posting and of polling, as any thread of the parent may be: the child has
// locks that nobody will release.
static void fork__child_posts_and_polls_in_vain(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq_init_attr_ex cq_init = {.cqe = 16};
    struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_cq *plain = f->cq;
    struct ibv_cq_ex *cq = ibv_create_cq_ex(f->context, &cq_init);
    struct ibv_srq *srq = ibv_create_srq(f->pd, &srq_init);
    struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);
    assert_true(cq && srq && mw);
    f->cq = ibv_cq_ex_to_cq(cq);
    struct ibv_qp_ex *qp = fixture_qp_ex(f, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
    struct ibv_qp *peer = fixture_qp(f, IBV_QPT_RC);
    fixture_connect(&qp->qp_base, peer);
    fixture_post_recv(f, peer, 1, 0, 100);
    fixture_post_send(f, &qp->qp_base, 2, 1000, 100);
    while (ibv_start_poll(cq, &attr) == ENOENT)
        ;
    ibv_wr_start(qp);
    ibv_wr_send(qp);
    await_rest();
    pid_t child = fork();
    if (child == 0) {
        begin_child();
        _exit(!post_is_refused(&qp->qp_base) + 2 * !poll_is_refused(f->cq) + 4 * !srq_is_refused(srq) +
              8 * !bind_is_refused(peer, mw) + 16 * !batch_is_refused(qp) + 32 * !extended_poll_is_refused(cq));
    }
    expect_success(child);
    ibv_wr_abort(qp);
    ibv_end_poll(cq);
    fixture_wait(f->cq); // the other of the two
    assert_int_equal(ibv_destroy_qp(&qp->qp_base), 0);
    assert_int_equal(ibv_destroy_qp(peer), 0);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    f->cq = plain;
}

// What it opens itself is another device, whose objects are its own; its child has nothing of that, either.
static void fork__child_has_a_device_of_its_own(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow a child that starts threads
#endif
    struct fixture *f = *state;
    struct ibv_wc wc;
    await_rest();
    pid_t child = fork();
    if (child == 0) {
        void *of_child = NULL;
        begin_child();
        fixture_setup(&of_child);
        struct fixture *own = of_child;
        if (!poll_is_refused(f->cq) || ibv_poll_cq(own->cq, 1, &wc) != 0)
            _exit(1);
        await_rest();
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(!poll_is_refused(f->cq) || !poll_is_refused(own->cq));
        int status = 1;
        waitpid(grandchild, &status, 0);
        _exit(status != 0 || fixture_teardown(&of_child) != 0);
    }
    expect_success(child);
    assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
}

// A child that was forked may end its copies as it likes and touches nothing.
static void fork__child_destroys_quietly(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    await_rest();
    pid_t child = fork();
    if (child == 0) {
        struct ibv_qp_init_attr init = fixture_qp_init(f, IBV_QPT_RC);
        int wrong = ibv_destroy_qp(qp) != 0 || ibv_create_qp(f->pd, &init) != NULL || errno != ENODEV ||
                    ibv_alloc_pd(f->context) != NULL || ibv_dereg_mr(f->mr) != 0 || ibv_destroy_cq(f->cq) != 0;
        int fd = f->context->async_fd;
        wrong |= ibv_close_device(f->context) != 0 || fcntl(fd, F_GETFD) != -1 || ibv_close_device(f->context) != 0;
        _exit(wrong);
    }
    expect_success(child);
    struct ibv_qp *other = fixture_qp(f, IBV_QPT_RC); // the parent goes on
    fixture_connect(qp, other);
    fixture_post_recv(f, other, 1, 0, 100);
    fixture_post_send(f, qp, 2, 1000, 100);
    assert_int_equal(fixture_wait_for(f->cq, 1).status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_qp(other), 0);
}

// What is used is no exception: nothing of the child's would be destroyed.
static void fork__child_destroys_what_is_used(void **state)
{
    struct fixture *f = *state;
    struct ibv_td_init_attr td_init = {0};
    struct ibv_td *td = ibv_alloc_td(f->context, &td_init);
    struct ibv_parent_domain_init_attr parent_init = {.pd = f->pd, .td = td};
    struct ibv_pd *parent = ibv_alloc_parent_domain(f->context, &parent_init);
    struct ibv_xrcd_init_attr xrcd_init = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(f->context, &xrcd_init);
    struct ibv_qp_init_attr_ex qp_init = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_qp *qp = ibv_create_qp_ex(f->context, &qp_init);
    assert_true(td && parent && xrcd && qp);
    await_rest();
    pid_t child = fork();
    if (child == 0) {
        begin_child();
        _exit((ibv_dealloc_td(td) != 0) + 2 * (ibv_dealloc_pd(f->pd) != 0) + 4 * (ibv_close_xrcd(xrcd) != 0) +
              8 * (ibv_dealloc_pd(parent) != 0));
    }
    expect_success(child);
    assert_int_equal(ibv_close_xrcd(xrcd), EBUSY); // the parent's are as they were
    assert_int_equal(ibv_dealloc_td(td), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
}

static void fork_init__always_ready(void **state)
{
    assert_int_equal(ibv_fork_init(), 0);
    assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(fork__child_posts_and_polls_in_vain), FIXTURE_TEST(fork__child_has_a_device_of_its_own),
        FIXTURE_TEST(fork__child_destroys_quietly),        FIXTURE_TEST(fork__child_destroys_what_is_used),
        cmocka_unit_test(fork_init__always_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
