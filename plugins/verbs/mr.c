// SPDX-License-Identifier: BSD-2-Clause
// ibv_reg_mr(3), ibv_rereg_mr(3), ibv_dereg_mr.
#include "device/durable.h"
#include "plugins/verbs/door.h"

#include <stdbool.h>
#include <stdlib.h>

// Access flags as the engine's. ON_DEMAND is refused: the engine cannot mend a page fault. So is access by FLUSH, an
// operation that the device has not. HUGETLB speaks of on-demand memory only, and optional flags that are unknown may
// be ignored by definition (IBV_ACCESS_OPTIONAL_RANGE).
int alb_door_access(unsigned int flags, uint32_t *access)
{
    const unsigned int passed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                IBV_ACCESS_RELAXED_ORDERING;
    if (flags & (IBV_ACCESS_ON_DEMAND | ALB_DOOR_ACCESS_FLUSH))
        return EOPNOTSUPP;
    if (flags & ~(passed | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE))
        return EINVAL;
    *access = flags & passed;
    if (*access & (ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_ATOMIC) && !(*access & ALB_ACCESS_LOCAL_WRITE))
        return EINVAL;
    return 0;
}

// Nothing may be registered, as with a kernel (which refuses it where a page begins): its key is good for nothing else.
static int check_range(const void *address, size_t length, uint32_t access)
{
    if ((uintptr_t)address + length < length)
        return EINVAL;
    if (length == 0)
        return 0;
    return alb_door_check_mapped(address, length, access & ALB_ACCESS_LOCAL_WRITE);
}

static struct ibv_mr *publish(struct alb_door_mr *mr)
{
    mr->mr.handle = alb_door_remember(alb_door_context(mr->mr.context), ALB_DOOR_MR, &mr->link);
    alb_door_pd_get(mr->mr.pd);
    return &mr->mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned int flags)
{
    if (!pd)
        return alb_door_fail(EINVAL);
    struct alb_door_context *context = alb_door_context(pd->context);
    uint32_t access;
    int error = alb_door_access(flags, &access);
    if (!error)
        error = check_range(address, length, access);
    if (error)
        return alb_door_fail(error);
    struct alb_door_mr *mr = calloc(1, sizeof(*mr));
    if (!mr)
        return alb_door_fail(ENOMEM);
    error = alb_door_lock(context);
    if (!error) {
        error = alb_mr_create(alb_door_engine_pd(pd), address, length, iova, access, &mr->region);
        if (!error)
            alb_region_set_user(mr->region, mr);
        alb_door_unlock(context);
    }
    if (error) {
        free(mr);
        return alb_door_fail(error);
    }
    uint32_t key = alb_region_key(mr->region);
    mr->access = access;
    mr->mr =
        (struct ibv_mr){.context = pd->context, .pd = pd, .addr = address, .length = length, .lkey = key, .rkey = key};
    return publish(mr);
}

struct ibv_mr *alb_door_mr_from_durable(struct ibv_pd *pd, struct alb_durable *durable, uint32_t access)
{
    struct alb_device *device = alb_door_context(pd->context)->device;
    struct alb_door_mr *mr = calloc(1, sizeof(*mr));
    if (!mr)
        return NULL;
    mr->durable = durable;
    mr->region = alb_durable_region(durable);
    mr->access = access;
    alb_device_lock(device);
    alb_region_set_user(mr->region, mr);
    alb_device_unlock(device);
    uint32_t key = alb_region_key(mr->region);
    mr->mr = (struct ibv_mr){
        .context = pd->context,
        .pd = pd,
        .addr = alb_durable_address(durable),
        .length = alb_durable_length(durable),
        .lkey = key,
        .rkey = key,
    };
    return publish(mr);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, address, length, (uintptr_t)address, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, address, length, iova, (unsigned int)access);
}

static void set_region(struct alb_door_mr *mr, struct alb_region *region)
{
    struct alb_device *device = alb_door_context(mr->mr.context)->device;
    alb_device_lock(device); // proposals look for it
    mr->region = region;
    alb_device_unlock(device);
}

static int destroy_durable(struct alb_door_mr *mr)
{
    struct alb_region *region = mr->region;
    set_region(mr, NULL);
    int error = alb_durable_destroy(mr->durable);
    if (error)
        set_region(mr, region);
    return error;
}

// Once the region is gone another one may have its address: that must not be taken for this one.
static int destroy_region(struct alb_door_mr *mr)
{
    struct alb_device *device = alb_door_context(mr->mr.context)->device;
    if (mr->durable)
        return destroy_durable(mr);
    alb_device_lock(device);
    int error = alb_mr_destroy(mr->region);
    if (!error)
        mr->region = NULL;
    alb_device_unlock(device);
    return error;
}

int alb_door_mr_release(struct alb_door_mr *mr)
{
    struct alb_door_context *context = alb_door_context(mr->mr.context);
    if (alb_door_is_forked(context))
        return 0;
    int error = destroy_region(mr);
    if (error)
        return error;
    alb_door_checker_close(mr);
    alb_door_region_forget(mr);
    alb_door_pd_put(mr->mr.pd);
    alb_door_forget(context, &mr->link);
    free(mr);
    return 0;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    return alb_door_answer(mr ? alb_door_mr_release(alb_door_mr(mr)) : EINVAL);
}

// What ibv_rereg_mr is asked for, with everything that stays as it is.
struct change {
    struct ibv_pd *pd;
    void *address;
    size_t length;
    uint32_t access;
    bool moves;
};

static int plan_change(const struct alb_door_mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length,
                       int access, struct change *change)
{
    *change = (struct change){.pd = mr->mr.pd, .address = mr->mr.addr, .length = mr->mr.length, .access = mr->access};
    if (flags == 0 || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
        return EINVAL;
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        if (!pd || pd->context != mr->mr.context)
            return EINVAL;
        change->pd = pd;
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
        int error = alb_door_access((unsigned int)access, &change->access);
        if (error)
            return error;
    } else if (access) {
        return EINVAL;
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        if (!address || length == 0)
            return EINVAL;
        change->address = address;
        change->length = length;
        change->moves = true;
    }
    // New memory, or old memory that is to become writable.
    if (change->moves || change->access & ~mr->access & ALB_ACCESS_LOCAL_WRITE)
        return check_range(change->address, change->length, change->access);
    return 0;
}

static int apply_change(struct alb_door_mr *mr, const struct change *change)
{
    struct alb_door_context *context = alb_door_context(mr->mr.context);
    int error = alb_door_lock(context);
    if (error)
        return error;
    error = alb_mr_change(mr->region, alb_door_engine_pd(change->pd), change->moves ? change->address : NULL,
                          change->length, (uintptr_t)change->address, change->access);
    alb_door_unlock(context);
    return error;
}

// A refused change leaves the region as it was, which is what IBV_REREG_MR_ERR_INPUT means.
int ibv_rereg_mr(struct ibv_mr *outer, int flags, struct ibv_pd *pd, void *address, size_t length, int access)
{
    struct change change;
    struct alb_door_mr *mr = outer ? alb_door_mr(outer) : NULL;
    int error = mr && !mr->durable ? plan_change(mr, flags, pd, address, length, access, &change) : EINVAL;
    if (!error)
        error = apply_change(mr, &change);
    if (error) {
        errno = error;
        return IBV_REREG_MR_ERR_INPUT;
    }
    alb_door_pd_get(change.pd);
    alb_door_pd_put(outer->pd);
    outer->pd = change.pd;
    outer->addr = change.address;
    outer->length = change.length;
    outer->lkey = outer->rkey = alb_region_key(mr->region);
    mr->access = change.access;
    return 0;
}
