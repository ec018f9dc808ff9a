// SPDX-License-Identifier: BSD-2-Clause
// XRC as a program uses it: domains behind files, shared receive queues by number, both halves of a connection.
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct xrc {
    struct ibv_xrcd *xrcd;
    struct ibv_srq *srq;
    struct ibv_qp *sender, *receiver;
    uint32_t number;
};

static struct ibv_xrcd *open_domain(struct ibv_context *context, int fd, int oflags)
{
    struct ibv_xrcd_init_attr init = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};
    return ibv_open_xrcd(context, &init);
}

static struct ibv_srq_init_attr_ex srq_init(struct fixture *f, struct ibv_xrcd *xrcd)
{
    return (struct ibv_srq_init_attr_ex){
        .srq_context = f,
        .attr = {.max_wr = 16, .max_sge = 2},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = f->pd,
        .xrcd = xrcd,
        .cq = f->cq,
    };
}

static struct ibv_qp *create_receiver(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
    struct ibv_qp_init_attr_ex init = {
        .qp_context = xrcd, .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    return ibv_create_qp_ex(context, &init);
}

static void connect(struct fixture *f, struct xrc *x)
{
    x->xrcd = open_domain(f->context, -1, O_CREAT);
    assert_non_null(x->xrcd);
    struct ibv_srq_init_attr_ex init = srq_init(f, x->xrcd);
    x->srq = ibv_create_srq_ex(f->context, &init);
    assert_non_null(x->srq);
    assert_int_equal(ibv_get_srq_num(x->srq, &x->number), 0);
    x->receiver = create_receiver(f->context, x->xrcd);
    assert_non_null(x->receiver);
    x->sender = fixture_qp(f, IBV_QPT_XRC_SEND);
    fixture_connect(x->sender, x->receiver);
}

static void disconnect(struct xrc *x)
{
    assert_int_equal(ibv_destroy_qp(x->sender), 0);
    assert_int_equal(ibv_destroy_qp(x->receiver), 0);
    assert_int_equal(ibv_destroy_srq(x->srq), 0);
    assert_int_equal(ibv_close_xrcd(x->xrcd), 0);
}

static void receive(struct fixture *f, struct xrc *x, uint64_t wr_id, size_t offset)
{
    struct ibv_sge sge = fixture_sge(f, offset, 4096);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    assert_int_equal(ibv_post_srq_recv(x->srq, &wr, &bad), 0);
}

static struct ibv_send_wr send_wr(struct ibv_sge *sge, uint32_t number)
{
    return (struct ibv_send_wr){
        .wr_id = 1,
        .sg_list = sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .qp_type.xrc.remote_srqn = number,
    };
}

// ---- domains --------------------------------------------------------------------------------------------------------

static int open_file(char path[32])
{
    strcpy(path, "/tmp/albedo-xrc-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    return fd;
}

static void open_xrcd__files(void **state)
{
    struct fixture *f = *state;
    char path[32], other_path[32];
    int fd = open_file(path), other = open_file(other_path), again = open(path, O_RDONLY);
    errno = 0;
    assert_null(open_domain(f->context, fd, 0));
    assert_int_equal(errno, EAGAIN);
    struct ibv_xrcd *first = open_domain(f->context, fd, O_CREAT | O_EXCL);
    assert_non_null(first);
    assert_ptr_equal(first->context, f->context);
    assert_null(open_domain(f->context, again, O_CREAT | O_EXCL));
    assert_int_equal(errno, EINVAL);
    struct ibv_xrcd *second = open_domain(f->context, again, 0);
    assert_non_null(second);
    assert_null(open_domain(f->context, other, 0));
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(ibv_close_xrcd(first), 0);
    first = open_domain(f->context, fd, 0); // the second handle keeps it
    assert_non_null(first);
    assert_int_equal(ibv_close_xrcd(first), 0);
    assert_int_equal(ibv_close_xrcd(second), 0);
    assert_null(open_domain(f->context, fd, 0));
    unlink(path);
    unlink(other_path);
    close(fd);
    close(again);
    close(other);
}

static int open_nameless_file(void)
{
    char path[32];
    int fd = open_file(path);
    unlink(path);
    return fd;
}

// A file system gives its inode's number to another file as soon as nobody has it.
static void open_xrcd__file_goes_while_its_domain_stays(void **state)
{
    enum { FILES = 64 };
    struct fixture *f = *state;
    int fds[FILES], fd = open_nameless_file();
    struct ibv_xrcd *xrcd = open_domain(f->context, fd, O_CREAT | O_EXCL);
    assert_non_null(xrcd);
    close(fd);
    for (int i = 0; i < FILES; i++) {
        fds[i] = open_nameless_file();
        errno = 0;
        assert_null(open_domain(f->context, fds[i], 0));
        assert_int_equal(errno, EAGAIN);
    }
    for (int i = 0; i < FILES; i++)
        close(fds[i]);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

// Closing any descriptor of a file drops the locks that the process has on it (fcntl(2)).
static void close_xrcd__leaves_the_files_locks(void **state)
{
    struct fixture *f = *state;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int status, fd = open_nameless_file();
    assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
    struct ibv_xrcd *xrcd = open_domain(f->context, fd, O_CREAT);
    assert_non_null(xrcd);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type != F_WRLCK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(fd);
}

static void open_xrcd__refusals(void **state)
{
    struct fixture *f = *state;
    struct ibv_xrcd_init_attr init = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1, .oflags = O_CREAT};
    assert_null(ibv_open_xrcd(f->context, &init));
    assert_int_equal(errno, EINVAL);
    assert_null(open_domain(f->context, 987654, O_CREAT));
    assert_int_equal(errno, EBADF);
    assert_null(open_domain(f->context, -1, O_CREAT | O_TRUNC));
    assert_int_equal(errno, EOPNOTSUPP);
    init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS | IBV_XRCD_INIT_ATTR_RESERVED;
    assert_null(ibv_open_xrcd(f->context, &init));
    assert_int_equal(errno, EOPNOTSUPP);
}

static void open_xrcd__without_a_file_is_private(void **state)
{
    struct fixture *f = *state;
    struct xrc x, y;
    connect(f, &x);
    connect(f, &y);
    struct ibv_sge sge = fixture_sge(f, 0, 100);
    struct ibv_send_wr wr = send_wr(&sge, y.number), *bad;
    assert_int_equal(ibv_post_send(x.sender, &wr, &bad), 0);
    assert_int_equal(fixture_wait(f->cq).status, IBV_WC_REM_INV_REQ_ERR);
    disconnect(&x);
    disconnect(&y);
}

static void close_xrcd__belongings_keep_it(void **state)
{
    struct fixture *f = *state;
    struct ibv_xrcd *xrcd = open_domain(f->context, -1, O_CREAT);
    struct ibv_srq_init_attr_ex init = srq_init(f, xrcd);
    struct ibv_srq *srq = ibv_create_srq_ex(f->context, &init);
    struct ibv_qp *qp = create_receiver(f->context, xrcd);
    assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
    assert_int_equal(ibv_destroy_cq(f->cq), EBUSY);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void close_device__with_everything_left(void **state)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *contexts[2] = {ibv_open_device(list[0]), ibv_open_device(list[0])};
    char path[32];
    int fd = open_file(path);
    struct ibv_xrcd *first = open_domain(contexts[0], fd, O_CREAT), *second = open_domain(contexts[1], fd, 0);
    struct ibv_qp *qp = create_receiver(contexts[0], first);
    struct ibv_qp_open_attr open = {
        .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
        .qp_num = qp->qp_num,
        .xrcd = second,
        .qp_type = IBV_QPT_XRC_RECV,
    };
    struct ibv_qp *handle = ibv_open_qp(contexts[1], &open);
    assert_non_null(handle);
    assert_int_equal(ibv_close_device(contexts[0]), 0);
    fixture_to_init(handle); // still there
    assert_int_equal(ibv_close_device(contexts[1]), 0);
    ibv_free_device_list(list);
    unlink(path);
    close(fd);
}

// ---- shared receive queues ------------------------------------------------------------------------------------------

static void assert_no_srq(struct fixture *f, struct ibv_srq_init_attr_ex init, int error)
{
    errno = 0;
    assert_null(ibv_create_srq_ex(f->context, &init));
    assert_int_equal(errno, error);
}

static void create_srq_ex__what_xrc_needs(void **state)
{
    struct fixture *f = *state;
    struct ibv_xrcd *xrcd = open_domain(f->context, -1, O_CREAT);
    struct ibv_srq_init_attr_ex good = srq_init(f, xrcd), init;
    for (uint32_t bit = IBV_SRQ_INIT_ATTR_PD; bit <= IBV_SRQ_INIT_ATTR_CQ; bit <<= 1) {
        init = good;
        init.comp_mask &= ~bit;
        assert_no_srq(f, init, EINVAL);
    }
    init = good;
    init.xrcd = NULL;
    assert_no_srq(f, init, EINVAL);
    init = good;
    init.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
    assert_no_srq(f, init, EOPNOTSUPP);
    init = good;
    init.attr.max_wr = 0;
    assert_no_srq(f, init, EINVAL);
    init = good;
    init.srq_type = IBV_SRQT_BASIC; // which has neither domain nor completion queue
    assert_no_srq(f, init, EINVAL);

    struct ibv_srq_init_attr plain_init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *plain = ibv_create_srq(f->pd, &plain_init);
    uint32_t number;
    assert_int_equal(ibv_get_srq_num(plain, &number), EINVAL);
    assert_int_equal(ibv_destroy_srq(plain), 0);

    struct ibv_srq *srq = ibv_create_srq_ex(f->context, &good);
    struct ibv_srq_attr attr;
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.max_wr, good.attr.max_wr);
    assert_ptr_equal(srq->srq_context, f);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

// ---- queue pairs ----------------------------------------------------------------------------------------------------

static void create_qp__halves(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = f->pd};
    assert_null(ibv_create_qp_ex(f->context, &init));
    assert_int_equal(errno, EINVAL);
    struct ibv_qp_init_attr plain = fixture_qp_init(f, IBV_QPT_XRC_RECV);
    assert_null(ibv_create_qp(f->pd, &plain));
    assert_int_equal(errno, EINVAL);
    struct xrc x;
    connect(f, &x);
    assert_null(x.receiver->pd);
    assert_null(x.receiver->send_cq);
    assert_null(x.sender->recv_cq);
    assert_ptr_equal(x.sender->pd, f->pd);
    struct ibv_sge sge = fixture_sge(f, 0, 10);
    struct ibv_send_wr wr = send_wr(&sge, x.number), *bad;
    assert_int_equal(ibv_post_send(x.receiver, &wr, &bad), EINVAL);
    struct ibv_recv_wr recv_wr = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
    assert_int_equal(ibv_post_recv(x.sender, &recv_wr, &bad_recv), EINVAL);
    disconnect(&x);
}

static void query__knows_xrc(void **state)
{
    struct fixture *f = *state;
    struct ibv_device_attr attr;
    assert_int_equal(ibv_query_device(f->context, &attr), 0);
    assert_true(attr.device_cap_flags & IBV_DEVICE_XRC);
}

static void expect_message(struct fixture *f, struct xrc *x, uint64_t wr_id)
{
    bool is_sent = false, is_received = false;
    while (!is_sent || !is_received) {
        struct ibv_wc wc = fixture_wait(f->cq);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        if (wc.qp_num == x->receiver->qp_num) {
            assert_int_equal(wc.wr_id, wr_id);
            assert_int_equal(wc.opcode, IBV_WC_RECV);
            assert_int_equal(wc.src_qp, x->sender->qp_num);
            is_received = true;
        } else {
            is_sent = true;
        }
    }
}

static void post_send__names_the_queue(void **state)
{
    struct fixture *f = *state;
    struct xrc x;
    connect(f, &x);
    receive(f, &x, 5, 8192);
    memcpy(f->memory, "albedo", 6);
    struct ibv_sge sge = fixture_sge(f, 0, 3000);
    struct ibv_send_wr wr = send_wr(&sge, x.number), *bad;
    assert_int_equal(ibv_post_send(x.sender, &wr, &bad), 0);
    expect_message(f, &x, 5);
    assert_memory_equal(f->memory + 8192, "albedo", 6);
    disconnect(&x);
}

static void wr_set_xrc_srqn__names_the_queue(void **state)
{
    struct fixture *f = *state;
    struct xrc x;
    connect(f, &x);
    assert_int_equal(ibv_destroy_qp(x.sender), 0);
    struct ibv_qp_ex *ex = fixture_qp_ex(f, IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND);
    x.sender = &ex->qp_base;
    assert_int_equal(ibv_destroy_qp(x.receiver), 0);
    x.receiver = create_receiver(f->context, x.xrcd);
    fixture_connect(x.sender, x.receiver);
    receive(f, &x, 6, 8192);
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    ibv_wr_set_sge(ex, f->mr->lkey, (uintptr_t)f->memory, 100);
    ibv_wr_set_xrc_srqn(ex, x.number);
    assert_int_equal(ibv_wr_complete(ex), 0);
    expect_message(f, &x, 6);
    disconnect(&x);
}

static void create_qp_ex__operations(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp_init_attr_ex init = {
        .send_cq = f->cq,
        .cap = {.max_send_wr = 4, .max_send_sge = 1},
        .qp_type = IBV_QPT_XRC_SEND,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = f->pd,
        .send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE, // has no opcode in XRC
    };
    assert_null(ibv_create_qp_ex(f->context, &init));
    assert_int_equal(errno, EOPNOTSUPP);
    init.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_BIND_MW;
    struct ibv_qp *qp = ibv_create_qp_ex(f->context, &init);
    assert_non_null(qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

// ---- several handles ------------------------------------------------------------------------------------------------

static struct ibv_qp_open_attr open_attr(struct xrc *x)
{
    return (struct ibv_qp_open_attr){
        .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
        .qp_num = x->receiver->qp_num,
        .xrcd = x->xrcd,
        .qp_context = x,
        .qp_type = IBV_QPT_XRC_RECV,
    };
}

static void open_qp__refusals(void **state)
{
    struct fixture *f = *state;
    struct xrc x, y;
    connect(f, &x);
    connect(f, &y);
    struct ibv_qp_open_attr good = open_attr(&x), attr;
#define REFUSED(error)                               \
    do {                                             \
        errno = 0;                                   \
        assert_null(ibv_open_qp(f->context, &attr)); \
        assert_int_equal(errno, error);              \
    } while (0)
    attr = good;
    attr.comp_mask &= ~(uint32_t)IBV_QP_OPEN_ATTR_NUM;
    REFUSED(EINVAL);
    attr = good;
    attr.qp_num = x.sender->qp_num;
    REFUSED(EINVAL);
    attr = good;
    attr.qp_num = y.receiver->qp_num; // of another domain
    REFUSED(EINVAL);
    attr = good;
    attr.qp_type = IBV_QPT_RC;
    REFUSED(EINVAL);
    attr = good;
    attr.comp_mask |= IBV_QP_OPEN_ATTR_RESERVED;
    REFUSED(EOPNOTSUPP);
    disconnect(&x);
    disconnect(&y);
}

static void open_qp__outlives_who_created_it(void **state)
{
    struct fixture *f = *state;
    struct xrc x;
    connect(f, &x);
    struct ibv_qp_open_attr attr = open_attr(&x);
    struct ibv_qp *handle = ibv_open_qp(f->context, &attr);
    assert_non_null(handle);
    assert_int_equal(handle->qp_num, x.receiver->qp_num);
    assert_int_equal(handle->state, IBV_QPS_RTS);
    assert_ptr_equal(handle->qp_context, &x);
    assert_int_equal(ibv_destroy_qp(x.receiver), 0);
    x.receiver = handle;
    receive(f, &x, 7, 8192);
    struct ibv_sge sge = fixture_sge(f, 0, 100);
    struct ibv_send_wr wr = send_wr(&sge, x.number), *bad;
    assert_int_equal(ibv_post_send(x.sender, &wr, &bad), 0);
    expect_message(f, &x, 7);
    disconnect(&x);
}

static void open_qp__every_handle_hears_of_errors(void **state)
{
    struct fixture *f = *state;
    struct xrc x;
    connect(f, &x);
    struct ibv_qp_open_attr attr = open_attr(&x);
    struct ibv_qp *handle = ibv_open_qp(f->context, &attr);
    struct ibv_sge sge = fixture_sge(f, 0, 100);
    struct ibv_send_wr wr = send_wr(&sge, x.number ^ 1), *bad;
    assert_int_equal(ibv_post_send(x.sender, &wr, &bad), 0);
    assert_int_equal(fixture_wait(f->cq).status, IBV_WC_REM_INV_REQ_ERR);
    bool has_heard[2] = {false, false};
    while (!has_heard[0] || !has_heard[1]) {
        struct ibv_async_event event;
        assert_int_equal(ibv_get_async_event(f->context, &event), 0);
        if (event.event_type == IBV_EVENT_QP_REQ_ERR) {
            assert_true(event.element.qp == handle || event.element.qp == x.receiver);
            has_heard[event.element.qp == handle] = true;
        }
        ibv_ack_async_event(&event);
    }
    assert_int_equal(ibv_destroy_qp(handle), 0);
    disconnect(&x);
}

struct opener {
    struct ibv_context *context;
    struct ibv_qp_open_attr attr;
    _Atomic bool stops;
};

static void *open_and_destroy(void *argument)
{
    struct opener *opener = argument;
    while (!opener->stops) {
        struct ibv_qp *handle = ibv_open_qp(opener->context, &opener->attr);
        if (handle)
            ibv_destroy_qp(handle);
    }
    return NULL;
}

// Takes events until the receiver's has come. What they are of is there, from the first one on.
static void take_events(struct fixture *f, const struct xrc *x)
{
    for (bool has_heard = false; !has_heard;) {
        struct ibv_async_event event;
        struct ibv_qp_init_attr init;
        struct ibv_qp_attr attr;
        assert_int_equal(ibv_get_async_event(f->context, &event), 0);
        has_heard = event.element.qp == x->receiver && event.event_type == IBV_EVENT_QP_REQ_ERR;
        assert_int_equal(event.element.qp->qp_num, x->receiver->qp_num);
        assert_int_equal(ibv_query_qp(event.element.qp, &attr, IBV_QP_STATE, &init), 0);
        ibv_ack_async_event(&event);
    }
}

static void open_qp__while_events_come(void **state)
{
    enum { ROUNDS = 200 };
    struct fixture *f = *state;
    struct xrc x;
    connect(f, &x);
    struct opener opener = {.context = f->context, .attr = open_attr(&x)};
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_sge sge = fixture_sge(f, 0, 100);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, open_and_destroy, &opener), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_send_wr wr = send_wr(&sge, x.number ^ 1), *bad;
        assert_int_equal(ibv_post_send(x.sender, &wr, &bad), 0);
        assert_int_equal(fixture_wait(f->cq).status, IBV_WC_REM_INV_REQ_ERR);
        take_events(f, &x);
        assert_int_equal(ibv_modify_qp(x.sender, &reset, IBV_QP_STATE), 0);
        assert_int_equal(ibv_modify_qp(x.receiver, &reset, IBV_QP_STATE), 0);
        fixture_connect(x.sender, x.receiver);
    }
    opener.stops = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    disconnect(&x);
}

static void *open_and_close(void *argument)
{
    struct opener *opener = argument;
    while (!opener->stops)
        ibv_close_xrcd(open_domain(opener->context, -1, O_CREAT));
    return NULL;
}

// Whatever a thread does that the child has not.
static void fork__child_opens_domains_of_its_own(void **state)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); // the one cannot follow such a child, the other's allocator is not guarded at a fork
#endif
    enum { CHILDREN = 10, HUNG_S = 10 };
    struct fixture *f = *state;
    struct opener opener = {.context = f->context};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, open_and_close, &opener), 0);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            alarm(HUNG_S);
            bool is_refused = !open_domain(f->context, -1, O_CREAT) && errno == ENODEV;
            struct ibv_context *own = ibv_open_device(f->context->device);
            struct ibv_xrcd *xrcd = own ? open_domain(own, -1, O_CREAT) : NULL;
            _exit(is_refused && xrcd && ibv_close_xrcd(xrcd) == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    opener.stops = true;
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(open_xrcd__files),
        FIXTURE_TEST(open_xrcd__file_goes_while_its_domain_stays),
        FIXTURE_TEST(close_xrcd__leaves_the_files_locks),
        FIXTURE_TEST(open_xrcd__refusals),
        FIXTURE_TEST(open_xrcd__without_a_file_is_private),
        FIXTURE_TEST(close_xrcd__belongings_keep_it),
        cmocka_unit_test(close_device__with_everything_left),
        FIXTURE_TEST(create_srq_ex__what_xrc_needs),
        FIXTURE_TEST(create_qp__halves),
        FIXTURE_TEST(query__knows_xrc),
        FIXTURE_TEST(post_send__names_the_queue),
        FIXTURE_TEST(wr_set_xrc_srqn__names_the_queue),
        FIXTURE_TEST(create_qp_ex__operations),
        FIXTURE_TEST(open_qp__refusals),
        FIXTURE_TEST(open_qp__outlives_who_created_it),
        FIXTURE_TEST(open_qp__every_handle_hears_of_errors),
        FIXTURE_TEST(open_qp__while_events_come),
        FIXTURE_TEST(fork__child_opens_domains_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
