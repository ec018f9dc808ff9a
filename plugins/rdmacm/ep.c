// SPDX-License-Identifier: BSD-2-Clause
// Endpoints: an id with its queue pair in one call, and synchronous use; addresses by name; shared receive queues of
// ids.
#include "plugins/rdmacm/door.h"

#include <netdb.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

// ---- rdma_getaddrinfo(3) --------------------------------------------------------------------------------------------

static void fill_kind(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
    int space = hints ? hints->ai_port_space : 0, type = hints ? hints->ai_qp_type : 0;
    if (!space)
        space = type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
    info->ai_port_space = space;
    info->ai_qp_type = type ? type : space == RDMA_PS_UDP || space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

static int copy_address(struct sockaddr **to, socklen_t *to_length, const struct sockaddr *from, socklen_t length)
{
    if (length > sizeof(struct sockaddr_storage))
        return EAI_FAMILY;
    struct sockaddr_storage *room = calloc(1, sizeof(*room));
    if (!room)
        return EAI_MEMORY;
    memcpy(room, from, length);
    *to = (struct sockaddr *)room;
    *to_length = length;
    return 0;
}

static int fill_addresses(struct rdma_addrinfo *info, const struct addrinfo *found, const struct rdma_addrinfo *hints)
{
    bool is_passive = info->ai_flags & RAI_PASSIVE;
    info->ai_family = found->ai_family;
    int error = is_passive ? copy_address(&info->ai_src_addr, &info->ai_src_len, found->ai_addr, found->ai_addrlen)
                           : copy_address(&info->ai_dst_addr, &info->ai_dst_len, found->ai_addr, found->ai_addrlen);
    if (!error && !is_passive && hints && hints->ai_src_len && hints->ai_src_addr)
        error = copy_address(&info->ai_src_addr, &info->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
    if (!error && found->ai_canonname) {
        char **name = is_passive ? &info->ai_src_canonname : &info->ai_dst_canonname;
        *name = strdup(found->ai_canonname);
        error = *name ? 0 : EAI_MEMORY;
    }
    return error;
}

// Services are named by protocol. A kind of queue pair that does not go with the port space is what a kind of socket is
// that does not go with the protocol: EAI_SOCKTYPE (rdma_getaddrinfo(3) calls it EAI_QPTYPE).
static struct addrinfo question(const struct rdma_addrinfo *hints)
{
    int space = hints ? hints->ai_port_space : 0, type = hints ? hints->ai_qp_type : 0;
    bool is_udp = space == RDMA_PS_UDP || space == RDMA_PS_IPOIB;
    bool is_datagram = type ? type == IBV_QPT_UD : is_udp;
    return (struct addrinfo){
        .ai_socktype = is_datagram ? SOCK_DGRAM : SOCK_STREAM,
        .ai_protocol = is_udp                 ? IPPROTO_UDP
                       : space == RDMA_PS_TCP ? IPPROTO_TCP
                                              : 0,
    };
}

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints, struct addrinfo **found)
{
    enum { KNOWN = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY };
    int flags = hints ? hints->ai_flags : 0;
    struct addrinfo ask = question(hints);
    if (flags & ~KNOWN)
        return EAI_BADFLAGS;
    if (flags & RAI_PASSIVE)
        ask.ai_flags |= AI_PASSIVE;
    if (flags & RAI_NUMERICHOST)
        ask.ai_flags |= AI_NUMERICHOST;
    if (flags & RAI_FAMILY)
        ask.ai_family = hints->ai_family;
    if (!node && !service)
        return EAI_NONAME;
    return getaddrinfo(node, service, &ask, found);
}

// Without a name, what the hints hold is taken as it is.
static int take_hints(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
    int error = 0;
    info->ai_family = hints->ai_family;
    if (hints->ai_src_len && hints->ai_src_addr)
        error = copy_address(&info->ai_src_addr, &info->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
    if (!error && hints->ai_dst_len && hints->ai_dst_addr)
        error = copy_address(&info->ai_dst_addr, &info->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len);
    if (info->ai_src_addr && !info->ai_family)
        info->ai_family = info->ai_src_addr->sa_family;
    return error;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **out)
{
    struct addrinfo *found = NULL;
    struct rdma_addrinfo *info = calloc(1, sizeof(*info));
    if (!info)
        return EAI_MEMORY;
    info->ai_flags = hints ? hints->ai_flags : 0;
    fill_kind(info, hints);
    bool has_addresses = hints && (hints->ai_src_len || hints->ai_dst_len);
    int error = !node && !service && has_addresses ? take_hints(info, hints) : look_up(node, service, hints, &found);
    if (!error && found)
        error = fill_addresses(info, found, hints);
    if (found)
        freeaddrinfo(found);
    if (error) {
        rdma_freeaddrinfo(info);
        return error;
    }
    *out = info;
    return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *info)
{
    while (info) {
        struct rdma_addrinfo *next = info->ai_next;
        free(info->ai_src_addr);
        free(info->ai_dst_addr);
        free(info->ai_src_canonname);
        free(info->ai_dst_canonname);
        free(info->ai_route);
        free(info->ai_connect);
        free(info);
        info = next;
    }
}

// ---- endpoints ------------------------------------------------------------------------------------------------------

static int make_passive(struct rdmacm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
                        const struct ibv_qp_init_attr *attr)
{
    if (rdma_bind_addr(&id->id, res->ai_src_addr))
        return errno;
    if (!attr)
        return 0;
    id->ep_attr = malloc(sizeof(*attr));
    if (!id->ep_attr)
        return ENOMEM;
    *id->ep_attr = *attr;
    id->ep_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
    id->ep_pd = pd;
    return 0;
}

static int keep_data(struct rdmacm_id *id, const struct rdma_addrinfo *res)
{
    if (!res->ai_connect || res->ai_connect_len == 0)
        return 0;
    if (res->ai_connect_len > ALB_CM_PRIVATE_MAX)
        return EINVAL;
    id->ep_data = malloc(res->ai_connect_len);
    if (!id->ep_data)
        return ENOMEM;
    memcpy(id->ep_data, res->ai_connect, res->ai_connect_len);
    id->ep_data_bytes = (uint32_t)res->ai_connect_len;
    return 0;
}

static int make_active(struct rdmacm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
                       struct ibv_qp_init_attr *attr)
{
    enum { TIMEOUT_MS = 2000 };
    int error = keep_data(id, res);
    if (error)
        return error;
    if (rdma_resolve_addr(&id->id, res->ai_src_addr, res->ai_dst_addr, TIMEOUT_MS) ||
        rdma_resolve_route(&id->id, TIMEOUT_MS))
        return errno;
    if (!attr)
        return 0;
    attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
    return rdma_create_qp(&id->id, pd, attr) ? errno : 0;
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *outer;
    if (rdma_create_id(NULL, &outer, NULL, (enum rdma_port_space)res->ai_port_space))
        return -1;
    struct rdmacm_id *id = rdmacm_id(outer);
    outer->qp_type = (enum ibv_qp_type)res->ai_qp_type;
    int error = res->ai_flags & RAI_PASSIVE ? make_passive(id, res, pd, attr) : make_active(id, res, pd, attr);
    if (error) {
        rdma_destroy_ep(outer);
        return rdmacm_fail(error);
    }
    *out = outer;
    return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
    if (id->qp)
        rdma_destroy_qp(id);
    if (id->srq)
        rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

int rdma_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **out)
{
    struct rdmacm_id *id = rdmacm_id(listener);
    struct rdma_cm_event *event;
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (!id->is_sync || !id->is_listening)
        return rdmacm_fail(EINVAL);
    rdmacm_drop_kept(id);
    if (rdma_get_cm_event(listener->channel, &event))
        return -1;
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
        rdma_ack_cm_event(event);
        return rdmacm_fail(EINVAL);
    }
    struct rdma_cm_id *fresh = event->id;
    if (rdma_migrate_id(fresh, NULL)) {
        int error = errno;
        rdma_ack_cm_event(event);
        rdma_destroy_id(fresh);
        return rdmacm_fail(error);
    }
    rdmacm_keep(rdmacm_id(fresh), event); // until the program accepts, rejects or destroys it
    struct ibv_qp_init_attr attr = id->ep_attr ? *id->ep_attr : (struct ibv_qp_init_attr){0};
    if (id->ep_attr && rdma_create_qp(fresh, id->ep_pd, &attr)) {
        int error = errno;
        rdma_reject(fresh, NULL, 0);
        rdma_destroy_id(fresh);
        return rdmacm_fail(error);
    }
    *out = fresh;
    return 0;
}

// ---- shared receive queues ------------------------------------------------------------------------------------------

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq_init_attr_ex ex = {
        .srq_context = attr->srq_context,
        .attr = attr->attr,
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
        .pd = pd,
    };
    if (rdma_create_srq_ex(id, &ex))
        return -1;
    attr->attr = ex.attr;
    if (pd)
        id->pd = pd;
    return 0;
}

// What an XRC queue needs beside its protection domain; an errno.
static int complete_xrc(struct rdmacm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
        attr->xrcd = rdmacm_default_xrcd();
        if (!attr->xrcd)
            return errno;
    }
    if (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ && attr->cq)
        return 0;
    int error = rdmacm_srq_cq_create(id, attr->attr.max_wr);
    attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
    attr->cq = id->srq_cq;
    return error;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    if (rdmacm_is_forked(rdmacm_id(id)))
        return rdmacm_fail(ENODEV);
    if (!id->verbs || id->srq)
        return rdmacm_fail(EINVAL);
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
        attr->pd = id->pd;
    }
    bool is_xrc = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
    int error = is_xrc ? complete_xrc(rdmacm_id(id), attr) : 0;
    if (!error && !(id->srq = ibv_create_srq_ex(id->verbs, attr)))
        error = errno;
    if (error && is_xrc && attr->cq == rdmacm_id(id)->srq_cq)
        attr->cq = NULL; // the program may try again
    if (error)
        rdmacm_srq_cq_destroy(rdmacm_id(id));
    return rdmacm_result(error);
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
    if (id->srq)
        ibv_destroy_srq(id->srq);
    id->srq = NULL;
    rdmacm_srq_cq_destroy(rdmacm_id(id));
}
