// SPDX-License-Identifier: BSD-2-Clause
// What ids of XRC need and a program did not bring: a domain, and a completion queue for the shared receive queue.
#include "plugins/rdmacm/door.h"

#include <fcntl.h>

static pthread_mutex_t domain_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_xrcd *domain;

struct ibv_xrcd *rdmacm_default_xrcd(void)
{
    struct ibv_xrcd_init_attr init = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_context *context = rdmacm_context();
    if (!context)
        return NULL;
    pthread_mutex_lock(&domain_lock);
    if (!domain)
        domain = ibv_open_xrcd(context, &init);
    struct ibv_xrcd *found = domain;
    pthread_mutex_unlock(&domain_lock);
    return found;
}

void rdmacm_xrcd_after_fork(void)
{
    domain = NULL;
    pthread_mutex_init(&domain_lock, NULL);
}

int rdmacm_srq_cq_create(struct rdmacm_id *id, uint32_t entries)
{
    id->srq_channel = ibv_create_comp_channel(id->id.verbs);
    if (!id->srq_channel)
        return errno;
    id->srq_cq = ibv_create_cq(id->id.verbs, (int)ALB_MAX(entries, 1u), &id->id, id->srq_channel, 0);
    if (!id->srq_cq) {
        int error = errno;
        rdmacm_srq_cq_destroy(id);
        return error;
    }
    id->id.recv_cq_channel = id->srq_channel;
    id->id.recv_cq = id->srq_cq;
    return 0;
}

void rdmacm_srq_cq_destroy(struct rdmacm_id *id)
{
    if (id->srq_cq && id->id.recv_cq == id->srq_cq) {
        id->id.recv_cq = NULL;
        id->id.recv_cq_channel = NULL;
    }
    if (id->srq_cq)
        ibv_destroy_cq(id->srq_cq);
    if (id->srq_channel)
        ibv_destroy_comp_channel(id->srq_channel);
    id->srq_cq = NULL;
    id->srq_channel = NULL;
}
