// SPDX-License-Identifier: BSD-2-Clause
// Addresses: programs' sockaddr, the device's GIDs, and what an id knows of its own and its peer's.
#include "plugins/rdmacm/door.h"

#include "device/address.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

void rdmacm_set_sockaddr(struct sockaddr_storage *out, const struct alb_addr *addr, uint16_t port)
{
    memset(out, 0, sizeof(*out));
    if (alb_addr_is_ipv4(addr)) {
        struct sockaddr_in *in = (struct sockaddr_in *)out;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, addr->bytes + 12, 4);
        return;
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, addr->bytes, 16);
}

bool rdmacm_get_sockaddr(const struct sockaddr *sockaddr, struct alb_addr *addr, uint16_t *port)
{
    if (sockaddr->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)sockaddr;
        uint8_t bytes[4];
        memcpy(bytes, &in->sin_addr, sizeof(bytes));
        *addr = alb_addr_from_ipv4(bytes);
        *port = ntohs(in->sin_port);
        return true;
    }
    if (sockaddr->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sockaddr;
    memcpy(addr->bytes, &in6->sin6_addr, 16);
    *port = ntohs(in6->sin6_port);
    return true;
}

uint16_t rdmacm_port(const struct sockaddr_storage *storage)
{
    struct alb_addr addr;
    uint16_t port;
    return rdmacm_get_sockaddr((const struct sockaddr *)storage, &addr, &port) ? port : 0;
}

const struct alb_addr rdmacm_any, rdmacm_any_ipv4 = {{[10] = 0xff, [11] = 0xff}};

bool rdmacm_is_any(const struct alb_addr *addr)
{
    return alb_addr_equals(addr, &rdmacm_any) || alb_addr_equals(addr, &rdmacm_any_ipv4);
}

int rdmacm_find_gid(const struct alb_addr *addr, uint32_t *index)
{
    struct alb_address_info info;
    const struct alb_addr *gid;
    for (uint32_t i = 0; (gid = alb_device_gid(rdmacm_device(), i)); i++)
        if (alb_addr_equals(gid, addr)) {
            *index = i;
            return 0;
        }
    int error = alb_address_find(addr, &info);
    return error ? error : ENODEV;
}

int rdmacm_attach(struct rdmacm_id *id, const struct alb_addr *local, uint16_t port)
{
    int error = rdmacm_find_gid(local, &id->gid_index);
    if (error)
        return error;
    id->id.verbs = rdmacm_context();
    id->id.port_num = RDMACM_PORT;
    id->is_any = false;
    rdmacm_set_sockaddr(&id->id.route.addr.src_storage, local, port);
    memcpy(id->id.route.addr.addr.ibaddr.sgid.raw, local->bytes, 16);
    id->id.route.addr.addr.ibaddr.pkey = htons(ALB_PKEY_DEFAULT);
    if (!id->id.pd)
        id->id.pd = rdmacm_default_pd();
    return 0;
}

int rdmacm_learn_av(struct rdmacm_id *id, const struct alb_addr *local, const struct alb_addr *peer)
{
    int error = rdmacm_attach(id, local, rdmacm_port(&id->id.route.addr.src_storage));
    if (!error)
        error = alb_device_resolve(rdmacm_device(), id->gid_index, peer, &id->av);
    id->av.traffic_class = id->tos;
    id->av.hop_limit = RDMACM_HOP_LIMIT;
    memcpy(id->id.route.addr.addr.ibaddr.dgid.raw, peer->bytes, 16);
    return error;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return htons(rdmacm_port(&id->route.addr.src_storage));
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return htons(rdmacm_port(&id->route.addr.dst_storage));
}
