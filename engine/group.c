// SPDX-License-Identifier: BSD-2-Clause
// The table of multicast groups. It takes memory only while a queue pair is attached to one, so that an engine without
// multicast pays nothing for it.
#include "engine/group.h"

#include "engine/impl.h"

#include <errno.h>

static size_t table_bytes(const struct alb_engine *engine)
{
    return sizeof(struct alb_map) + alb_map_bytes(engine->config.group_max, sizeof(struct alb_addr));
}

static int init_table(struct alb_engine *engine)
{
    struct alb_siphash_key hash_key;
    if (engine->groups)
        return 0;
    if (engine->config.group_max == 0)
        return ENOMEM;
    engine->groups = alb_engine_get_memory(engine, table_bytes(engine));
    if (!engine->groups)
        return ENOMEM;
    alb_rng_fill(&engine->rng, &hash_key, sizeof(hash_key));
    alb_map_init_zeroed(engine->groups, engine->config.group_max, sizeof(struct alb_addr), engine->groups + 1,
                        &hash_key);
    return 0;
}

static void drop_table_if_empty(struct alb_engine *engine)
{
    if (!engine->groups || alb_map_count(engine->groups) > 0)
        return;
    alb_engine_put_memory(engine, engine->groups, table_bytes(engine));
    engine->groups = NULL;
}

const struct alb_group *alb_group_find(const struct alb_engine *engine, const struct alb_addr *addr)
{
    return engine->groups ? alb_map_find_pointer(engine->groups, addr) : NULL;
}

bool alb_engine_has_group(const struct alb_engine *engine, const struct alb_addr *addr)
{
    return alb_group_find(engine, addr) != NULL;
}

static struct alb_group *open_group(struct alb_engine *engine, const struct alb_addr *addr)
{
    struct alb_group *group = alb_map_find_pointer(engine->groups, addr);
    if (group)
        return group;
    group = alb_engine_get_memory(engine, sizeof(*group));
    if (!group)
        return NULL;
    group->addr = *addr;
    alb_list_init(&group->members);
    if (alb_map_insert(engine->groups, addr, (uintptr_t)group) == ALB_MAP_FULL) {
        alb_engine_put_memory(engine, group, sizeof(*group));
        return NULL;
    }
    return group;
}

static void close_if_empty(struct alb_engine *engine, struct alb_group *group)
{
    if (group->member_count > 0)
        return;
    alb_map_remove(engine->groups, &group->addr, NULL);
    alb_engine_put_memory(engine, group, sizeof(*group));
}

static struct alb_membership *find_membership(const struct alb_qp *qp, const struct alb_addr *addr)
{
    ALB_LIST_FOR_EACH (&qp->groups, node) {
        struct alb_membership *membership = ALB_LIST_ENTRY(node, struct alb_membership, in_qp);
        if (alb_addr_equals(&membership->group->addr, addr))
            return membership;
    }
    return NULL;
}

static int enter(struct alb_qp *qp, struct alb_group *group)
{
    struct alb_engine *engine = qp->engine;
    struct alb_membership *membership = NULL;
    if (group->member_count < engine->config.group_qp_max)
        membership = alb_engine_get_memory(engine, sizeof(*membership));
    if (!membership)
        return ENOMEM;
    membership->group = group;
    membership->qp = qp;
    alb_list_push_back(&group->members, &membership->in_group);
    alb_list_push_back(&qp->groups, &membership->in_qp);
    group->member_count++;
    return 0;
}

int alb_qp_attach(struct alb_qp *qp, const struct alb_addr *addr)
{
    if (qp->type != ALB_QPT_UD || !alb_addr_is_multicast(addr))
        return EINVAL;
    if (find_membership(qp, addr))
        return 0;
    int error = init_table(qp->engine);
    if (error)
        return error;
    struct alb_group *group = open_group(qp->engine, addr);
    error = group ? enter(qp, group) : ENOMEM;
    if (group)
        close_if_empty(qp->engine, group);
    drop_table_if_empty(qp->engine);
    return error;
}

int alb_qp_detach(struct alb_qp *qp, const struct alb_addr *addr)
{
    struct alb_membership *membership = find_membership(qp, addr);
    if (!membership)
        return EINVAL;
    struct alb_group *group = membership->group;
    alb_list_remove(&membership->in_group);
    alb_list_remove(&membership->in_qp);
    alb_engine_put_memory(qp->engine, membership, sizeof(*membership));
    group->member_count--;
    close_if_empty(qp->engine, group);
    drop_table_if_empty(qp->engine);
    return 0;
}

bool alb_qp_group(const struct alb_qp *qp, struct alb_addr *addr)
{
    if (alb_list_is_empty(&qp->groups))
        return false;
    *addr = ALB_LIST_ENTRY(qp->groups.next, struct alb_membership, in_qp)->group->addr;
    return true;
}
