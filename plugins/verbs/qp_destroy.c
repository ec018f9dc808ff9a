// SPDX-License-Identifier: BSD-2-Clause
// ibv_destroy_qp(3): the peer gets what it is owed before the queue pair goes.
#include "plugins/verbs/builder.h"

#include <stdlib.h>
#include <time.h>

// With all locks held.
static void destroy_in_engine(struct alb_door_qp *qp)
{
    if (qp->target) {
        alb_door_target_leave(qp);
    } else {
        int error = alb_qp_destroy(qp->engine_qp);
        alb_assert(error == 0);
    }
}

void alb_door_qp_destroy_engine(struct alb_door_qp *qp)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    struct alb_door_locks locks = alb_door_qp_poll_locks(&qp->ex.qp_base);
    alb_door_lock_with(context, &locks);
    destroy_in_engine(qp);
    alb_door_unlock_with(context, &locks);
}

// Programs destroy their queue pairs right after their last completion, while the peer may still wait for its
// acknowledgement: what is owed is sent first. Bounded, since a peer that has gone away answers nothing; and once
// waiting was in vain the next ones are not waited for, since a program that lost a peer may have thousands to destroy.
static const alb_time quiet_wait_ns = 100 * ALB_NS_PER_MS;
static const alb_time no_wait_ns = ALB_NS_PER_S;

static bool is_quiet(struct alb_door_qp *qp)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    alb_device_lock(context->device);
    enum alb_qp_state state = alb_qp_current_state(qp->engine_qp);
    bool is_quiet = state == ALB_QPS_RESET || state == ALB_QPS_INIT || alb_door_target_is_shared(qp) ||
                    alb_qp_is_quiet(qp->engine_qp);
    alb_door_unlock(context);
    return is_quiet;
}

static void announce_end(struct alb_door_qp *qp)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    alb_device_lock(context->device);
    if (!alb_door_target_is_shared(qp))
        alb_qp_farewell(qp->engine_qp);
    alb_door_unlock(context);
}

static void wait_quiet(struct alb_door_qp *qp)
{
    static const struct timespec pause = {.tv_nsec = 50 * 1000};
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    alb_time start = alb_device_now();
    while (!is_quiet(qp)) {
        alb_time now = alb_device_now();
        if (now < atomic_load(&context->no_wait_until))
            return;
        if (now - start >= quiet_wait_ns) {
            atomic_store(&context->no_wait_until, now + no_wait_ns);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

static uint32_t forget_events(struct alb_door_qp *qp)
{
    return alb_door_notices_forget(qp->ex.qp_base.context, qp->notices, ALB_DOOR_QP_NOTICES);
}

// With all locks held: nothing happens to it any more. One that others share goes on for them.
static void silence(struct alb_door_qp *qp)
{
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    if (!qp->target)
        alb_qp_modify(qp->engine_qp, &attr, ALB_QP_STATE, alb_device_now());
}

// Not before the events that were handed out have been acknowledged: until then their handlers may use the queue pair.
// That none of them is left is seen with the token held, without which no event is raised.
static void destroy_once_handled(struct alb_door_qp *qp)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
    struct alb_door_context *context = alb_door_context(outer->context);
    struct alb_door_locks locks = alb_door_qp_poll_locks(outer);
    for (bool is_handled = false; !is_handled;) {
        alb_door_lock_with(context, &locks);
        uint32_t delivered = forget_events(qp);
        is_handled = alb_door_is_acknowledged(&outer->mutex, &outer->events_completed, delivered);
        if (is_handled)
            destroy_in_engine(qp);
        else
            silence(qp);
        alb_door_unlock_with(context, &locks);
        alb_door_wait_acknowledged(&outer->mutex, &outer->cond, &outer->events_completed, delivered);
    }
}

static void free_qp(struct alb_door_qp *qp)
{
    struct ibv_qp *outer = &qp->ex.qp_base;
    alb_door_txn_destroy(qp);
    alb_door_builder_destroy(qp);
    if (outer->pd)
        alb_door_pd_put(outer->pd);
    alb_door_forget(alb_door_context(outer->context), &qp->link);
    pthread_mutex_destroy(&outer->mutex);
    pthread_cond_destroy(&outer->cond);
    free(qp);
}

int alb_door_qp_release(struct alb_door_qp *qp)
{
    alb_device_detach_all(alb_door_context(qp->ex.qp_base.context)->device, qp->engine_qp);
    announce_end(qp);
    wait_quiet(qp);
    alb_door_qp_destroy_engine(qp);
    forget_events(qp);
    free_qp(qp);
    return 0;
}

static bool is_in_a_group(struct alb_door_qp *qp)
{
    struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    struct alb_addr group;
    alb_device_lock(context->device);
    bool is_in = alb_qp_group(qp->engine_qp, &group);
    alb_door_unlock(context);
    return is_in;
}

// EBUSY while it is attached to a multicast group.
int ibv_destroy_qp(struct ibv_qp *outer)
{
    if (!outer)
        return alb_door_refuse(EINVAL);
    struct alb_door_qp *qp = alb_door_qp(outer);
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return 0;
    if (outer->qp_type == IBV_QPT_UD && is_in_a_group(qp))
        return alb_door_refuse(EBUSY);
    announce_end(qp);
    wait_quiet(qp);
    destroy_once_handled(qp);
    free_qp(qp);
    return 0;
}
