// SPDX-License-Identifier: BSD-2-Clause
// Memory regions, and the checks between a key and memory (InfiniBand specification, volume 1, 10.6.3 and 9.7.4.1.5).
#include "engine/region.h"

#include "engine/impl.h"
#include "engine/region_claim.h"
#include "engine/region_table.h"

#include <errno.h>

static bool access_is_valid(uint32_t access)
{
    const uint32_t known = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ |
                           ALB_ACCESS_REMOTE_ATOMIC | ALB_ACCESS_MW_BIND | ALB_ACCESS_ZERO_BASED |
                           ALB_ACCESS_RELAXED_ORDERING;
    bool is_changed_from_afar = access & (ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_ATOMIC);
    return !(access & ~known) && (!is_changed_from_afar || access & ALB_ACCESS_LOCAL_WRITE);
}

static bool range_is_valid(const void *address, uint64_t length, uint64_t iova)
{
    return (address || length == 0) && (uintptr_t)address + length >= length && iova + length >= length;
}

int alb_mr_create(struct alb_pd *pd, void *address, uint64_t length, uint64_t iova, uint32_t access,
                  struct alb_region **out)
{
    struct alb_engine *engine = pd->engine;
    if (access & ALB_ACCESS_ZERO_BASED)
        iova = 0;
    if (!access_is_valid(access) || !range_is_valid(address, length, iova))
        return EINVAL;
    struct alb_region *mr = alb_engine_get_memory(engine, sizeof(*mr));
    if (!mr)
        return ENOMEM;
    mr->engine = engine;
    mr->pd = pd;
    mr->kind = ALB_REGION_MR;
    mr->access = access;
    mr->is_valid = true;
    mr->iova = iova;
    mr->length = length;
    mr->host = address;
    alb_list_init(&mr->of_qp);
    alb_list_init(&mr->claims);
    int error = alb_region_table_add(engine, mr);
    if (error) {
        alb_engine_put_memory(engine, mr, sizeof(*mr));
        return error;
    }
    pd->refs++;
    *out = mr;
    return 0;
}

int alb_mr_change(struct alb_region *mr, struct alb_pd *pd, void *address, uint64_t length, uint64_t iova,
                  uint32_t access)
{
    if (mr->kind != ALB_REGION_MR)
        return EINVAL;
    if (access == UINT32_MAX)
        access = mr->access;
    if (!address) {
        address = mr->host;
        length = mr->length;
        iova = mr->iova;
    }
    if (access & ALB_ACCESS_ZERO_BASED)
        iova = 0;
    if (!access_is_valid(access) || !range_is_valid(address, length, iova))
        return EINVAL;
    bool is_elsewhere = address != mr->host || length != mr->length;
    if (mr->window_count > 0 || (is_elsewhere && mr->versions))
        return EBUSY;
    alb_region_claims_are_gone(mr);
    if (pd && pd != mr->pd) {
        mr->pd->refs--;
        pd->refs++;
        mr->pd = pd;
    }
    mr->access = access;
    mr->host = address;
    mr->length = length;
    mr->iova = iova;
    return 0;
}

int alb_mr_destroy(struct alb_region *mr)
{
    struct alb_engine *engine = mr->engine;
    if (mr->kind != ALB_REGION_MR)
        return EINVAL;
    if (mr->window_count > 0)
        return EBUSY;
    alb_region_claims_are_gone(mr);
    alb_reflect_leave_journal(mr);
    alb_region_table_remove(mr);
    mr->pd->refs--;
    alb_engine_put_memory(engine, mr, sizeof(*mr));
    return 0;
}

uint32_t alb_region_key(const struct alb_region *region)
{
    return atomic_load_explicit(&region->key, memory_order_relaxed);
}

void alb_region_set_user(struct alb_region *region, void *user)
{
    region->user = user;
}

void *alb_region_user(const struct alb_region *region)
{
    return region->user;
}

void alb_region_poison(struct alb_region *region)
{
    atomic_store_explicit(&alb_region_root(region)->is_poisoned, true, memory_order_relaxed);
}

bool alb_region_is_poisoned(const struct alb_region *region)
{
    const struct alb_region *root = region->parent ? region->parent : region;
    return atomic_load_explicit(&root->is_poisoned, memory_order_relaxed);
}

static enum alb_access_result locate(const struct alb_region *region, uint64_t va, uint64_t length, uint32_t access,
                                     uint8_t **host)
{
    uint64_t offset = va - region->iova;
    if (va < region->iova || offset > region->length || length > region->length - offset)
        return ALB_ACCESS_BAD_BOUNDS;
    if ((region->access & access) != access)
        return ALB_ACCESS_BAD_RIGHTS;
    if (alb_region_is_poisoned(region))
        return ALB_ACCESS_POISONED;
    *host = region->host + offset;
    return ALB_ACCESS_OK;
}

enum alb_access_result alb_region_local(struct alb_engine *engine, const struct alb_pd *pd, uint32_t lkey, uint64_t va,
                                        uint64_t length, uint32_t access, uint8_t **host)
{
    *host = NULL;
    if (length == 0)
        return ALB_ACCESS_OK;
    const struct alb_region *region = alb_region_table_find(engine, lkey);
    if (!region || region->kind != ALB_REGION_MR || region->pd != pd)
        return ALB_ACCESS_BAD_KEY;
    return locate(region, va, length, access, host);
}

enum alb_access_result alb_region_find_remote(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
                                              uint32_t access, struct alb_region **out, uint8_t **host)
{
    *host = NULL;
    *out = NULL;
    if (length == 0)
        return ALB_ACCESS_OK;
    struct alb_region *region = alb_region_table_find(qp->engine, rkey);
    if (!region || !region->is_valid || region->pd != qp->keys_pd || (region->qp && region->qp != qp))
        return ALB_ACCESS_BAD_KEY;
    *out = region;
    return locate(region, va, length, access, host);
}
