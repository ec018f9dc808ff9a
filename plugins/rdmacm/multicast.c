// SPDX-License-Identifier: BSD-2-Clause
// Multicast groups of ids: rdma_join_multicast(3), rdma_leave_multicast(3). There is no subnet administrator to ask: a
// group is an IP multicast address, and attaching a queue pair to it receives it. So a join is answered at once; its
// event carries how to send to the group, and the id's queue pair is attached when that event is taken.
#include "plugins/rdmacm/door.h"

#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>

struct rdmacm_multicast {
    struct alb_list link; // in the id's list, which is changed with both of the id's locks
    struct rdmacm_id *id;
    struct alb_addr group;
    bool sends_only;
    bool is_attached; // the id's queue pair, by this join
    bool is_leaving;  // a thread that leaves it has found it
    bool is_handled;  // its event has been taken and acted on, or dropped
};

// The group that a socket address names: an IP multicast address, or that same address as the GID that it is.
static bool group_of(const struct sockaddr *sockaddr, struct alb_addr *group)
{
    uint16_t port;
    if (!sockaddr)
        return false;
    if (sockaddr->sa_family == AF_IB)
        memcpy(group->bytes, &((const struct sockaddr_ib *)(const void *)sockaddr)->sib_addr, sizeof(group->bytes));
    else if (!rdmacm_get_sockaddr(sockaddr, group, &port))
        return false;
    return alb_addr_is_multicast(group); // so zero, which asks an administrator to choose one, is not
}

// How datagrams to the group are addressed.
static struct rdma_ud_param ud_param(const struct rdmacm_id *id, const struct alb_addr *group, void *context)
{
    struct rdma_ud_param param = {
        .private_data = context,
        .ah_attr = {.is_global = 1,
                    .port_num = RDMACM_PORT,
                    .grh = {.sgid_index = (uint8_t)id->gid_index,
                            .hop_limit = RDMACM_HOP_LIMIT,
                            .traffic_class = id->tos}},
        .qp_num = ALB_MULTICAST_QPN,
        .qkey = id->qkey ? id->qkey : RDMA_UDP_QKEY,
    };
    memcpy(param.ah_attr.grh.dgid.raw, group->bytes, sizeof(group->bytes));
    return param;
}

static void remember(struct rdmacm_multicast *multicast)
{
    struct rdmacm_id *id = multicast->id;
    int cancel = rdmacm_qp_lock(id);
    pthread_mutex_lock(&id->lock);
    alb_list_push_back(&id->multicasts, &multicast->link);
    pthread_mutex_unlock(&id->lock);
    rdmacm_qp_unlock(id, cancel);
}

static int join(struct rdmacm_id *id, const struct alb_addr *group, bool sends_only, void *context)
{
    struct alb_av av;
    if (rdmacm_is_forked(id))
        return ENODEV;
    if (!id->id.verbs || rdmacm_is_begun(id) || id->id.qp_type != IBV_QPT_UD)
        return EINVAL;
    int error = rdmacm_channel_error(id);
    if (!error)
        error = alb_device_resolve(rdmacm_device(), id->gid_index, group, &av);
    if (error)
        return error;
    struct rdmacm_multicast *multicast = calloc(1, sizeof(*multicast));
    struct rdmacm_event *event = calloc(1, sizeof(*event));
    if (!multicast || !event) {
        free(multicast);
        free(event);
        return ENOMEM;
    }
    *multicast = (struct rdmacm_multicast){.id = id, .group = *group, .sends_only = sends_only};
    event->multicast = multicast;
    event->event = (struct rdma_cm_event){
        .id = &id->id, .event = RDMA_CM_EVENT_MULTICAST_JOIN, .param.ud = ud_param(id, group, context)};
    remember(multicast);
    rdmacm_lock();
    rdmacm_post(id, event);
    rdmacm_unlock();
    return rdmacm_complete(id);
}

int rdma_join_multicast(struct rdma_cm_id *outer, struct sockaddr *addr, void *context)
{
    struct alb_addr group;
    return rdmacm_result(group_of(addr, &group) ? join(rdmacm_id(outer), &group, false, context) : EINVAL);
}

int rdma_join_multicast_ex(struct rdma_cm_id *outer, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
    const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    struct alb_addr group;
    if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
        return rdmacm_fail(ENOTSUP);
    if ((attr->comp_mask & needed) != needed || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED ||
        !group_of(attr->addr, &group))
        return rdmacm_fail(EINVAL);
    bool sends_only = attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
    return rdmacm_result(join(rdmacm_id(outer), &group, sends_only, context));
}

// ---- attaching ------------------------------------------------------------------------------------------------------

static const union ibv_gid *gid_of(const struct rdmacm_multicast *multicast)
{
    return (const union ibv_gid *)(const void *)&multicast->group;
}

static void settle(struct rdmacm_multicast *multicast, bool is_attached)
{
    struct rdmacm_id *id = multicast->id;
    pthread_mutex_lock(&id->lock);
    multicast->is_attached = is_attached;
    multicast->is_handled = true;
    pthread_cond_broadcast(&id->acknowledged);
    pthread_mutex_unlock(&id->lock);
}

void rdmacm_on_join_unheard(struct rdmacm_multicast *multicast)
{
    settle(multicast, false);
}

void rdmacm_on_join(struct rdmacm_event *event)
{
    struct rdmacm_multicast *multicast = event->multicast;
    struct rdmacm_id *id = multicast->id;
    int cancel = rdmacm_qp_lock(id);
    bool attaches = id->id.qp && !multicast->sends_only;
    int error = attaches ? ibv_attach_mcast(id->id.qp, gid_of(multicast), 0) : 0;
    settle(multicast, attaches && !error);
    rdmacm_qp_unlock(id, cancel);
    if (error) {
        event->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
        event->event.status = -error;
    }
}

// True if another join of the id holds its queue pair in the same group. With the id's lock.
static bool is_held_by_another(const struct rdmacm_multicast *multicast)
{
    ALB_LIST_FOR_EACH (&multicast->id->multicasts, node) {
        const struct rdmacm_multicast *other = ALB_LIST_ENTRY(node, struct rdmacm_multicast, link);
        if (other != multicast && other->is_attached && alb_addr_equals(&other->group, &multicast->group))
            return true;
    }
    return false;
}

// With the lock of the id's queue pair.
static void detach(struct rdmacm_multicast *multicast)
{
    struct rdmacm_id *id = multicast->id;
    pthread_mutex_lock(&id->lock);
    bool is_last = multicast->is_attached && !is_held_by_another(multicast);
    multicast->is_attached = false;
    pthread_mutex_unlock(&id->lock);
    if (is_last && id->id.qp)
        ibv_detach_mcast(id->id.qp, gid_of(multicast), 0);
}

void rdmacm_multicast_detach(struct rdmacm_id *id)
{
    ALB_LIST_FOR_EACH (&id->multicasts, node)
        detach(ALB_LIST_ENTRY(node, struct rdmacm_multicast, link));
}

// ---- leaving --------------------------------------------------------------------------------------------------------

// It stays in the list until it is detached, where who destroys the queue pair looks.
static struct rdmacm_multicast *find(struct rdmacm_id *id, const struct alb_addr *group)
{
    struct rdmacm_multicast *found = NULL;
    pthread_mutex_lock(&id->lock);
    ALB_LIST_FOR_EACH (&id->multicasts, node) {
        struct rdmacm_multicast *multicast = ALB_LIST_ENTRY(node, struct rdmacm_multicast, link);
        if (!found && !multicast->is_leaving && alb_addr_equals(&multicast->group, group))
            found = multicast;
    }
    if (found)
        found->is_leaving = true;
    pthread_mutex_unlock(&id->lock);
    return found;
}

// Takes back the event of a join if it was not taken yet, else waits until its taker is done with the join.
static void take_back(struct rdmacm_multicast *multicast)
{
    struct rdmacm_id *id = multicast->id;
    struct alb_list taken, *node;
    alb_list_init(&taken);
    rdmacm_lock();
    rdmacm_take_events(id, multicast, &taken);
    rdmacm_unlock();
    bool was_untaken = !alb_list_is_empty(&taken);
    while ((node = alb_list_pop(&taken)))
        free(ALB_LIST_ENTRY(node, struct rdmacm_event, link));
    pthread_mutex_lock(&id->lock);
    while (!was_untaken && !multicast->is_handled)
        pthread_cond_wait(&id->acknowledged, &id->lock);
    pthread_mutex_unlock(&id->lock);
}

static void leave(struct rdmacm_multicast *multicast)
{
    struct rdmacm_id *id = multicast->id;
    int cancel = rdmacm_qp_lock(id);
    detach(multicast);
    pthread_mutex_lock(&id->lock);
    alb_list_remove(&multicast->link);
    pthread_mutex_unlock(&id->lock);
    rdmacm_qp_unlock(id, cancel);
    free(multicast);
}

int rdma_leave_multicast(struct rdma_cm_id *outer, struct sockaddr *addr)
{
    struct alb_addr group;
    if (rdmacm_is_forked(rdmacm_id(outer)))
        return rdmacm_fail(ENODEV);
    if (!group_of(addr, &group))
        return rdmacm_fail(EINVAL);
    struct rdmacm_multicast *multicast = find(rdmacm_id(outer), &group);
    if (!multicast)
        return rdmacm_fail(EADDRNOTAVAIL);
    take_back(multicast);
    leave(multicast);
    return 0;
}

void rdmacm_multicast_leave_all(struct rdmacm_id *id)
{
    struct alb_list *node;
    int cancel = rdmacm_qp_lock(id);
    rdmacm_multicast_detach(id);
    rdmacm_qp_unlock(id, cancel);
    while ((node = alb_list_pop(&id->multicasts)))
        free(ALB_LIST_ENTRY(node, struct rdmacm_multicast, link));
}
