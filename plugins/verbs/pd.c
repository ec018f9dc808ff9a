// SPDX-License-Identifier: BSD-2-Clause
// ibv_alloc_pd(3), ibv_alloc_td(3), ibv_alloc_parent_domain(3).
//
// A thread domain promises that one thread uses what is created in it; the promise is not used, since an uncontended
// lock costs little beside a datagram. A parent domain is its protection domain by another name.
#include "plugins/verbs/door.h"

#include <stdlib.h>

static struct ibv_pd *finish_pd(struct ibv_context *context, struct alb_door_pd *pd)
{
    enum alb_door_kind kind = pd->base ? ALB_DOOR_PARENT_DOMAIN : ALB_DOOR_PD;
    pd->pd.context = context;
    pd->pd.handle = alb_door_remember(alb_door_context(context), kind, &pd->link);
    return &pd->pd;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *outer)
{
    if (!outer)
        return alb_door_fail(EINVAL);
    struct alb_door_context *context = alb_door_context(outer);
    struct alb_door_pd *pd = calloc(1, sizeof(*pd));
    if (!pd)
        return alb_door_fail(ENOMEM);
    int error = alb_door_lock(context);
    if (!error) {
        error = alb_pd_create(context->engine, &pd->engine_pd);
        alb_door_unlock(context);
    }
    if (error) {
        free(pd);
        return alb_door_fail(error);
    }
    return finish_pd(outer, pd);
}

int alb_door_pd_release(struct alb_door_pd *pd)
{
    struct alb_door_context *context = alb_door_context(pd->pd.context);
    if (alb_door_is_forked(context))
        return 0;
    if (!pd->base) {
        alb_device_lock(context->device);
        int error = alb_pd_destroy(pd->engine_pd);
        alb_door_unlock(context);
        if (error)
            return error;
    }
    if (pd->base)
        alb_door_pd_put(&pd->base->pd);
    if (pd->td)
        atomic_fetch_sub(&pd->td->refs, 1);
    alb_door_forget(context, &pd->link);
    free(pd);
    return 0;
}

int ibv_dealloc_pd(struct ibv_pd *outer)
{
    if (!outer)
        return alb_door_refuse(EINVAL);
    struct alb_door_pd *pd = alb_door_pd(outer);
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return 0;
    return alb_door_answer(atomic_load(&pd->refs) > 0 ? EBUSY : alb_door_pd_release(pd));
}

static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    if (!attr || attr->comp_mask)
        return alb_door_fail(EINVAL);
    if (alb_door_is_forked(alb_door_context(context)))
        return alb_door_fail(ENODEV);
    struct alb_door_td *td = calloc(1, sizeof(*td));
    if (!td)
        return alb_door_fail(ENOMEM);
    td->td.context = context;
    alb_door_remember(alb_door_context(context), ALB_DOOR_TD, &td->link);
    return &td->td;
}

int alb_door_td_release(struct alb_door_td *td)
{
    if (alb_door_is_forked(alb_door_context(td->td.context)))
        return 0;
    alb_door_forget(alb_door_context(td->td.context), &td->link);
    free(td);
    return 0;
}

static int dealloc_td(struct ibv_td *outer)
{
    struct alb_door_td *td = ALB_CONTAINER_OF(outer, struct alb_door_td, td);
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return 0;
    return atomic_load(&td->refs) > 0 ? alb_door_refuse(EBUSY) : alb_door_td_release(td);
}

// EOPNOTSUPP: custom allocators. Queues live in the engine's memory, which is no single object's.
static int check_parent_domain(const struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
    if (!attr || !attr->pd || attr->pd->context != context || alb_door_pd(attr->pd)->base)
        return EINVAL;
    if (attr->td && attr->td->context != context)
        return EINVAL;
    if (alb_door_is_forked(alb_door_context(attr->pd->context)))
        return ENODEV;
    if (attr->comp_mask & ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
        return EOPNOTSUPP;
    return 0;
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
    int error = check_parent_domain(context, attr);
    if (error)
        return alb_door_fail(error);
    struct alb_door_pd *pd = calloc(1, sizeof(*pd));
    if (!pd)
        return alb_door_fail(ENOMEM);
    pd->base = alb_door_pd(attr->pd);
    pd->engine_pd = pd->base->engine_pd;
    alb_door_pd_get(attr->pd);
    if (attr->td) {
        pd->td = ALB_CONTAINER_OF(attr->td, struct alb_door_td, td);
        atomic_fetch_add(&pd->td->refs, 1);
    }
    return finish_pd(context, pd);
}

void alb_door_fill_pd(struct verbs_context *verbs)
{
    verbs->alloc_td = alloc_td;
    verbs->dealloc_td = dealloc_td;
    verbs->alloc_parent_domain = alloc_parent_domain;
}
