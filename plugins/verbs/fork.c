// SPDX-License-Identifier: BSD-2-Clause
// ibv_fork_init(3) and friends. The device is memory of this process, not pages that hardware writes to: a fork copies
// it like anything else, nothing needs protection from copy-on-write, and the child simply never drives the copy
// (alb_device_is_forked).
//
// Posting and polling look at no device before they take their locks, which threads of the parent may have held for
// ever: in a child, the tables of the contexts that it has inherited lead elsewhere. What has a place in each object
// instead of the context's tables asks (ibv_wr_start, ibv_start_poll).
#include "plugins/verbs/door.h"

int ibv_dontfork_range(void *base, size_t size); // exported, but in no public header
int ibv_dofork_range(void *base, size_t size);

static struct {
    pthread_mutex_t mutex;
    struct alb_list contexts;
} opened = {.mutex = PTHREAD_MUTEX_INITIALIZER, .contexts = {&opened.contexts, &opened.contexts}};

void alb_door_fork_add(struct alb_door_context *context)
{
    pthread_mutex_lock(&opened.mutex);
    alb_list_push_back(&opened.contexts, &context->link);
    pthread_mutex_unlock(&opened.mutex);
}

void alb_door_fork_remove(struct alb_door_context *context)
{
    pthread_mutex_lock(&opened.mutex);
    alb_list_remove(&context->link);
    pthread_mutex_unlock(&opened.mutex);
}

void alb_door_for_each_context(void (*visit)(struct alb_door_context *context, void *argument), void *argument)
{
    pthread_mutex_lock(&opened.mutex);
    ALB_LIST_FOR_EACH (&opened.contexts, node)
        visit(ALB_LIST_ENTRY(node, struct alb_door_context, link), argument);
    pthread_mutex_unlock(&opened.mutex);
}

// ---- what a child gets ----------------------------------------------------------------------------------------------

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
    (void)qp;
    if (bad_wr)
        *bad_wr = wr;
    return ENODEV;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    (void)qp;
    if (bad_wr)
        *bad_wr = wr;
    return ENODEV;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
    (void)srq;
    if (bad_wr)
        *bad_wr = wr;
    return ENODEV;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    (void)qp;
    (void)mw;
    (void)bind;
    return ENODEV;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
    (void)cq;
    (void)count;
    (void)wc;
    return -ENODEV;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    (void)cq;
    (void)solicited_only;
    return ENODEV;
}

static void refuse_all(struct alb_door_context *context)
{
    struct ibv_context_ops *ops = &context->verbs.context.ops;
    ops->post_send = post_send;
    ops->post_recv = post_recv;
    ops->post_srq_recv = post_srq_recv;
    ops->bind_mw = bind_mw;
    ops->poll_cq = poll_cq;
    ops->req_notify_cq = req_notify_cq;
}

// ---- hooks ----------------------------------------------------------------------------------------------------------

static void before_fork(void)
{
    pthread_mutex_lock(&opened.mutex);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&opened.mutex);
}

// A child has nothing of what its parent's contexts share. Its mutexes may have been held by threads that it has not,
// so they begin anew.
static void after_fork_in_child(void)
{
    ALB_LIST_FOR_EACH (&opened.contexts, node)
        refuse_all(ALB_LIST_ENTRY(node, struct alb_door_context, link));
    alb_list_init(&opened.contexts);
    pthread_mutex_init(&opened.mutex, NULL);
    alb_door_domains_after_fork();
    alb_door_proposals_after_fork();
}

// Before any of them can be held. Its only error is ENOMEM, and then a child is as it would be without.
__attribute__((constructor)) static void install_hook(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

int ibv_fork_init(void)
{
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}
