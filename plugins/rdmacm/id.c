// SPDX-License-Identifier: BSD-2-Clause
// Ids: life, options, and what there is to ask.
#include "plugins/rdmacm/door.h"

#include "plugins/verbs/bridge.h"

#include <stdlib.h>
#include <string.h>

// ---- life -----------------------------------------------------------------------------------------------------------

struct rdmacm_id *rdmacm_id_new(struct rdmacm_channel *channel, void *context, enum rdma_port_space ps,
                                enum ibv_qp_type type)
{
    struct rdmacm_id *id = calloc(1, sizeof(*id));
    if (!id)
        return NULL;
    id->is_sync = !channel;
    if (!channel && !(channel = rdmacm_channel_create())) {
        int error = errno;
        free(id);
        errno = error;
        return NULL;
    }
    id->device = rdmacm_device();
    alb_list_init(&id->link);
    rdmacm_channel_join(channel, id);
    id->id.context = context;
    id->id.ps = ps;
    id->id.qp_type = type;
    id->claim.fd = -1;
    id->retry_count = id->rnr_retry_count = 7;
    pthread_mutex_init(&id->qp_lock, NULL);
    pthread_mutex_init(&id->lock, NULL);
    pthread_cond_init(&id->acknowledged, NULL);
    alb_list_init(&id->multicasts);
    alb_list_init(&id->reserve);
    return id;
}

static bool is_known_space(enum rdma_port_space ps)
{
    return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context, enum rdma_port_space ps)
{
    if (!rdmacm_context())
        return -1;
    if (!is_known_space(ps))
        return rdmacm_fail(EINVAL);
    if (channel && rdmacm_channel_is_forked(rdmacm_channel(channel)))
        return rdmacm_fail(ENODEV);
    struct rdmacm_id *id = rdmacm_id_new(channel ? rdmacm_channel(channel) : NULL, context, ps,
                                         ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC);
    if (!id)
        return -1;
    *out = &id->id;
    return 0;
}

bool rdmacm_is_begun(const struct rdmacm_id *id)
{
    rdmacm_lock();
    bool is = id->cm != NULL;
    rdmacm_unlock();
    return is;
}

void rdmacm_id_free(struct rdmacm_id *id)
{
    albedo_bridge_claim_end(&id->claim);
    if (id->is_sync)
        rdma_destroy_event_channel(id->id.channel);
    rdmacm_channel_leave(id);
    pthread_cond_destroy(&id->acknowledged);
    pthread_mutex_destroy(&id->lock);
    pthread_mutex_destroy(&id->qp_lock);
    rdmacm_event_unreserve(id);
    free(id->ep_attr);
    free(id->ep_data);
    free(id);
}

// It neither listens nor is connected any more, and what was not heard of it will not be.
static void end(struct rdmacm_id *id)
{
    rdmacm_lock();
    if (id->cm)
        alb_cm_id_destroy(id->cm, alb_device_now());
    id->cm = NULL;
    rdmacm_unlock();
    rdmacm_drop_kept(id);
    rdmacm_forget_events(id);
}

// For the events that threads have taken. False: there were none.
static bool wait_for_acknowledgements(struct rdmacm_id *id)
{
    pthread_mutex_lock(&id->lock);
    bool waits = id->completed != id->taken;
    while (id->completed != id->taken)
        pthread_cond_wait(&id->acknowledged, &id->lock);
    pthread_mutex_unlock(&id->lock);
    return waits;
}

int rdma_destroy_id(struct rdma_cm_id *outer)
{
    if (!outer)
        return rdmacm_fail(EINVAL);
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return 0;
    do
        end(id);
    while (wait_for_acknowledgements(id)); // who had one may have begun something with the id before
    rdmacm_multicast_leave_all(id);
    rdmacm_id_free(id);
    return 0;
}

// ---- small questions ------------------------------------------------------------------------------------------------

struct ibv_context **rdma_get_devices(int *count)
{
    struct ibv_context **list = calloc(2, sizeof(struct ibv_context *));
    if (!list)
        return NULL;
    list[0] = rdmacm_context();
    if (count)
        *count = list[0] ? 1 : 0;
    return list;
}

void rdma_free_devices(struct ibv_context **list)
{
    free(list);
}

static int set_number(const void *value, size_t length, uint8_t *out, bool *is_set)
{
    if (length != 1)
        return EINVAL;
    if (!value)
        return EFAULT;
    *out = *(const uint8_t *)value;
    if (is_set)
        *is_set = true;
    return 0;
}

static int set_flag(const void *value, size_t length, bool *out)
{
    int number;
    if (length != sizeof(number))
        return EINVAL;
    if (!value)
        return EFAULT;
    memcpy(&number, value, sizeof(number));
    *out = number != 0;
    return 0;
}

// As the kernel has it: any that does not listen may become reusable, and none that has a place may cease to be.
static int set_reusable(struct rdmacm_id *id, const void *value, size_t length)
{
    bool is_reusable, is_idle = !id->is_bound && !id->is_resolved && !rdmacm_is_begun(id);
    int error = set_flag(value, length, &is_reusable);
    if (error)
        return error;
    if (is_reusable ? id->is_listening : !is_idle)
        return EINVAL;
    id->is_reusable = is_reusable;
    if (is_reusable)
        albedo_bridge_claim_end(&id->claim);
    return 0;
}

static int set_one_family(struct rdmacm_id *id, const void *value, size_t length)
{
    bool is_one_family;
    int error = set_flag(value, length, &is_one_family);
    if (error)
        return error;
    return id->is_resolved || rdmacm_is_begun(id) ? EINVAL : rdmacm_set_one_family(id, is_one_family);
}

int rdma_set_option(struct rdma_cm_id *outer, int level, int name, void *value, size_t length)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (level == RDMA_OPTION_IB) // path records come from a subnet's administrator, and there is no subnet
        return rdmacm_fail(EOPNOTSUPP);
    if (level != RDMA_OPTION_ID)
        return rdmacm_fail(ENOSYS);
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        return rdmacm_result(set_number(value, length, &id->tos, NULL));
    case RDMA_OPTION_ID_REUSEADDR:
        return rdmacm_result(set_reusable(id, value, length));
    case RDMA_OPTION_ID_AFONLY:
        return rdmacm_result(set_one_family(id, value, length));
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        return rdmacm_result(length == 1 && value && *(uint8_t *)value >= 32
                                 ? EINVAL
                                 : set_number(value, length, &id->ack_timeout, &id->has_ack_timeout));
    default:
        return rdmacm_fail(ENOSYS);
    }
}

// With the token held.
static void move(struct rdmacm_id *id, struct rdmacm_channel *to, struct alb_list *events)
{
    rdmacm_take_events(id, NULL, events);
    rdmacm_channel_leave(id);
    rdmacm_channel_join(to, id);
}

int rdma_migrate_id(struct rdma_cm_id *outer, struct rdma_event_channel *to)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    struct rdmacm_channel *from = rdmacm_channel(outer->channel);
    if (rdmacm_is_forked(id) || (to && rdmacm_channel_is_forked(rdmacm_channel(to))))
        return rdmacm_fail(ENODEV);
    struct rdmacm_channel *target = to ? rdmacm_channel(to) : rdmacm_channel_create();
    struct alb_list moved;
    if (!target)
        return -1;
    rdmacm_drop_kept(id);
    pthread_mutex_lock(&id->lock);
    while (id->completed != id->taken)
        pthread_cond_wait(&id->acknowledged, &id->lock);
    pthread_mutex_unlock(&id->lock);
    alb_list_init(&moved);
    rdmacm_lock(); // nothing is posted meanwhile
    bool was_sync = id->is_sync;
    move(id, target, &moved);
    id->is_sync = !to;
    struct alb_list *node;
    while ((node = alb_list_pop(&moved))) {
        struct rdmacm_event *event = ALB_LIST_ENTRY(node, struct rdmacm_event, link);
        if (event->fresh)
            move(event->fresh, target, &moved);
        rdmacm_post(event->id, event);
    }
    rdmacm_unlock();
    if (was_sync)
        rdma_destroy_event_channel(&from->channel);
    return 0;
}
