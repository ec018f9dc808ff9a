// SPDX-License-Identifier: BSD-2-Clause
// albdv_region(3): regions with version words, and regions that are files.
#include "engine/region.h"
#include "base/log.h"
#include "device/durable.h"
#include "plugins/verbs/door.h"
#include "plugins/verbs/dv.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { LINE = 64 }; // bytes; also the smallest stride

struct alb_door_region {
    struct albdv_region region;
    void *own_words; // NULL: the program's
};

// ---- version words --------------------------------------------------------------------------------------------------

static uint64_t stride_of(const struct ibv_mr *mr, const struct albdv_region_attr *attr)
{
    return attr && attr->stride ? attr->stride : mr->length;
}

static struct alb_door_region *make(struct ibv_mr *mr, const struct albdv_region_attr *attr)
{
    struct alb_door_region *made = calloc(1, sizeof(*made));
    if (!made)
        return NULL;
    made->region =
        (struct albdv_region){.mr = mr, .address = mr->addr, .length = mr->length, .stride = stride_of(mr, attr)};
    if (attr && attr->comp_mask & ALBDV_REGION_ATTR_WORDS) {
        made->region.words = attr->words;
        return made;
    }
    size_t count = mr->length / made->region.stride + (mr->length % made->region.stride != 0);
    size_t bytes = (count * sizeof(uint64_t) + LINE - 1) / LINE * LINE;
    made->own_words = aligned_alloc(LINE, bytes);
    if (!made->own_words) {
        free(made);
        return NULL;
    }
    memset(made->own_words, 0, bytes);
    made->region.words = made->own_words;
    return made;
}

void alb_door_say_refused(const struct alb_door_context *context, const char *call, int error)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    bool is_device = error == EOPNOTSUPP && !alb_door_has_reflection(context);
    if (is_device && alb_log_is_shown(ALB_LOG_WARNING) && !atomic_flag_test_and_set(&said))
        alb_log(ALB_LOG_WARNING,
                "%s: only albedo0 has this, and the program has opened %s: start it by "
                "`albedo run --device albedo0 --`",
                call, ibv_get_device_name(context->verbs.context.device));
}

static void discard(struct alb_door_region *region)
{
    free(region->own_words);
    free(region);
}

static int set_words(struct alb_door_mr *mr, const struct albdv_region *region)
{
    struct alb_door_context *context = alb_door_context(mr->mr.context);
    int error = alb_door_lock(context);
    if (error)
        return error;
    error = region ? alb_mr_set_versions(mr->region, (_Atomic uint64_t *)region->words, region->stride)
                   : alb_mr_set_versions(mr->region, NULL, 0);
    alb_door_unlock(context);
    return error;
}

struct albdv_region *alb_door_create_region(struct ibv_mr *outer, const struct albdv_region_attr *attr)
{
    struct alb_door_mr *mr = alb_door_mr(outer);
    bool has_words = attr && attr->comp_mask & ALBDV_REGION_ATTR_WORDS;
    uint64_t stride = stride_of(outer, attr);
    bool is_stride = outer->length > 0 && (stride == outer->length || stride >= LINE);
    if (!is_stride || (attr && (attr->comp_mask & ~(uint64_t)ALBDV_REGION_ATTR_WORDS || (has_words && !attr->words))))
        return alb_door_fail(EINVAL);
    if (mr->transactional)
        return alb_door_fail(EBUSY);
    struct alb_door_region *made = make(outer, attr);
    int error = made ? set_words(mr, &made->region) : ENOMEM;
    if (error) {
        if (made)
            discard(made);
        alb_door_say_refused(alb_door_context(outer->context), "albdv_create_region", error);
        return alb_door_fail(error);
    }
    mr->transactional = made;
    return &made->region;
}

int alb_door_destroy_region(struct albdv_region *region)
{
    struct alb_door_mr *mr = alb_door_mr(region->mr);
    if (alb_door_is_forked(alb_door_context(region->mr->context)))
        return 0;
    int error = set_words(mr, NULL);
    if (!error)
        alb_door_region_forget(mr);
    return error;
}

// The engine's region knows the words no more.
void alb_door_region_forget(struct alb_door_mr *mr)
{
    if (mr->transactional)
        discard(mr->transactional);
    mr->transactional = NULL;
}

int alb_door_region_is_poisoned(const struct albdv_region *region)
{
    struct alb_door_context *context = alb_door_context(region->mr->context);
    if (alb_door_lock(context))
        return 0;
    bool is_poisoned = alb_region_is_poisoned(alb_door_mr(region->mr)->region);
    alb_door_unlock(context);
    return is_poisoned;
}

// ---- files ----------------------------------------------------------------------------------------------------------

struct ibv_mr *alb_door_reg_durable(struct ibv_pd *pd, const char *path, size_t length, int access, uint32_t flags)
{
    const struct alb_door_context *context = alb_door_context(pd->context);
    struct alb_durable *durable;
    uint32_t engine_access;
    int error = alb_door_access((unsigned int)access, &engine_access);
    if (flags & ~(uint32_t)(ALBDV_DURABLE_PAGE_CACHE | ALBDV_DURABLE_ONLY_NAME))
        error = EINVAL;
    if (!error && !alb_door_has_reflection(context))
        error = EOPNOTSUPP;
    if (!error && alb_door_is_forked(context))
        error = ENODEV;
    alb_door_say_refused(context, "albdv_reg_durable", error);
    if (error)
        return alb_door_fail(error);
    const struct alb_durable_init init = {
        .path = path,
        .length = length,
        .access = engine_access,
        .page_cache = flags & ALBDV_DURABLE_PAGE_CACHE,
        .only_name = flags & ALBDV_DURABLE_ONLY_NAME,
    };
    error = alb_durable_create(context->device, alb_door_engine_pd(pd), &init, &durable);
    if (error)
        return alb_door_fail(error);
    struct ibv_mr *mr = alb_door_mr_from_durable(pd, durable, engine_access);
    if (!mr) {
        alb_durable_destroy(durable);
        return alb_door_fail(ENOMEM);
    }
    return mr;
}
