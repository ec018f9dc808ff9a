// SPDX-License-Identifier: BSD-2-Clause
// Memory windows: rights to a part of a region that work requests give and take back (InfiniBand specification, volume
// 1, 10.6.6.2 and 11.2.7). Type 1 can be bound again at any time and is bound to a protection domain; type 2 (here 2B)
// belongs to the queue pair it was bound on and must be invalidated before it is bound again.
#include "engine/impl.h"
#include "engine/region_claim.h"
#include "engine/region_table.h"

#include <errno.h>

int alb_mw_create(struct alb_pd *pd, enum alb_mw_type type, struct alb_region **out)
{
    struct alb_engine *engine = pd->engine;
    if (type != ALB_MW_TYPE_1 && type != ALB_MW_TYPE_2)
        return EINVAL;
    struct alb_region *mw = alb_engine_get_memory(engine, sizeof(*mw));
    if (!mw)
        return ENOMEM;
    mw->engine = engine;
    mw->pd = pd;
    mw->kind = ALB_REGION_MW;
    mw->mw_type = type;
    alb_list_init(&mw->of_qp);
    alb_list_init(&mw->claims);
    int error = alb_region_table_add(engine, mw);
    if (error) {
        alb_engine_put_memory(engine, mw, sizeof(*mw));
        return error;
    }
    pd->refs++;
    *out = mw;
    return 0;
}

static void unbind(struct alb_region *mw)
{
    alb_region_claims_are_gone(mw);
    if (mw->parent)
        mw->parent->window_count--;
    mw->parent = NULL;
    mw->is_valid = false;
    mw->qp = NULL;
    alb_list_remove(&mw->of_qp);
}

int alb_mw_destroy(struct alb_region *mw)
{
    struct alb_engine *engine = mw->engine;
    if (mw->kind != ALB_REGION_MW)
        return EINVAL;
    unbind(mw);
    alb_region_table_remove(mw);
    mw->pd->refs--;
    alb_engine_put_memory(engine, mw, sizeof(*mw));
    return 0;
}

// What the window may open: part of a region that lets windows be bound, and nothing that the region's own process may
// not do.
static bool range_is_allowed(const struct alb_mw_bind *bind)
{
    const uint32_t grantable =
        ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ | ALB_ACCESS_REMOTE_ATOMIC | ALB_ACCESS_ZERO_BASED;
    const struct alb_region *mr = bind->mr;
    if (!mr || mr->kind != ALB_REGION_MR || mr->pd != bind->mw->pd)
        return false;
    if (!(mr->access & ALB_ACCESS_MW_BIND) || bind->access & ~grantable)
        return false;
    if (bind->access & (ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_ATOMIC) && !(mr->access & ALB_ACCESS_LOCAL_WRITE))
        return false;
    uint64_t offset = bind->addr - mr->iova;
    return bind->addr >= mr->iova && offset <= mr->length && bind->length <= mr->length - offset;
}

static bool is_allowed(const struct alb_qp *qp, const struct alb_mw_bind *bind, uint32_t key)
{
    const struct alb_region *mw = bind->mw;
    if (!mw || mw->kind != ALB_REGION_MW || mw->pd != qp->pd || qp->type == ALB_QPT_UD)
        return false;
    if ((key ^ mw->key) >> 8 != 0)
        return false;
    if (mw->mw_type == ALB_MW_TYPE_1) // never zero-based; without a length only unbound
        return !(bind->access & ALB_ACCESS_ZERO_BASED) && (bind->length == 0 || range_is_allowed(bind));
    return !mw->is_valid && bind->length > 0 && range_is_allowed(bind);
}

// Of type 2 the request says the low byte, and drivers take no more of it: programs give keys of which the rest is any.
static uint32_t key_after(const struct alb_mw_bind *bind)
{
    const struct alb_region *mw = bind->mw;
    if (mw && mw->mw_type == ALB_MW_TYPE_1 && bind->rkey == 0)
        return (mw->key & ~0xffu) | (uint8_t)(mw->key + 1);
    if (mw && mw->mw_type == ALB_MW_TYPE_2)
        return (mw->key & ~0xffu) | (uint8_t)bind->rkey;
    return bind->rkey;
}

enum alb_wc_status alb_mw_bind(struct alb_qp *qp, const struct alb_mw_bind *bind)
{
    uint32_t key = key_after(bind);
    if (!is_allowed(qp, bind, key))
        return ALB_WC_MW_BIND_ERR;
    struct alb_region *mw = bind->mw;
    unbind(mw);
    atomic_store_explicit(&mw->key, key, memory_order_relaxed);
    if (bind->length == 0)
        return ALB_WC_SUCCESS;
    mw->access = bind->access;
    mw->iova = bind->access & ALB_ACCESS_ZERO_BASED ? 0 : bind->addr;
    mw->length = bind->length;
    mw->host = bind->mr->host + (bind->addr - bind->mr->iova);
    mw->parent = bind->mr;
    mw->parent->window_count++;
    mw->is_valid = true;
    if (mw->mw_type == ALB_MW_TYPE_2) {
        mw->qp = qp;
        alb_list_push_back(&qp->windows, &mw->of_qp);
    }
    return ALB_WC_SUCCESS;
}

// A window of type 2 that is bound on qp, or NULL: nothing else can be invalidated (regions are not, without fast
// registration).
static struct alb_region *find_invalidatable(struct alb_qp *qp, uint32_t rkey)
{
    struct alb_region *region = alb_region_table_find(qp->engine, rkey);
    return region && region->is_valid && region->qp == qp ? region : NULL;
}

enum alb_wc_status alb_region_invalidate_local(struct alb_qp *qp, uint32_t rkey)
{
    struct alb_region *mw = find_invalidatable(qp, rkey);
    if (!mw)
        return ALB_WC_MW_BIND_ERR; // the one code for errors of memory management operations
    unbind(mw);
    return ALB_WC_SUCCESS;
}

bool alb_region_invalidate_remote(struct alb_qp *qp, uint32_t rkey)
{
    struct alb_region *mw = find_invalidatable(qp, rkey);
    if (mw)
        unbind(mw);
    return mw != NULL;
}

void alb_region_release_qp(struct alb_qp *qp)
{
    ALB_LIST_FOR_EACH (&qp->windows, node)
        unbind(ALB_LIST_ENTRY(node, struct alb_region, of_qp));
}
