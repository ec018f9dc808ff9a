// SPDX-License-Identifier: BSD-2-Clause
#include "device/carrier.h"

#include "device/address.h"
#include "device/syscalls.h"
#include "engine/verbs.h"
#include "wire/datagram.h"

#include <errno.h>
#include <string.h>

// Mark (4), version (1), traffic class (1), hop limit (1), zero (1), group (16), source port (2, network order), zero
// (2).
static const uint8_t mark[4] = {0xff, 'A', 'L', 'M'};
#define VERSION 1

#define IOV_MAX_OF_SEGMENT (ALB_MAX_SGE + 2) // header, payload, trailer

static const struct alb_addr ipv6_loopback = {.bytes = {[15] = 1}};

bool alb_carrier_is_needed(const struct alb_addr *local, const struct alb_addr *peer)
{
    return peer->bytes[0] == 0xff && alb_addr_equals(local, &ipv6_loopback);
}

// The IPv4 group that stands for an IPv6 one. Several may share it: the header tells them apart.
static struct alb_endpoint carrier_of(const struct alb_addr *group)
{
    const uint8_t ipv4[4] = {239, group->bytes[13], group->bytes[14], group->bytes[15]};
    return (struct alb_endpoint){.addr = alb_addr_from_ipv4(ipv4), .port = ALB_CARRIER_PORT};
}

int alb_carrier_open(struct alb_socket *sock, uint32_t ifindex)
{
    const struct alb_endpoint local = {.addr = alb_addr_from_ipv4((const uint8_t[]){127, 0, 0, 1})};
    int error = alb_socket_open(sock, &local);
    if (!error)
        alb_socket_set_multicast_interface(sock, ifindex);
    return error;
}

int alb_carrier_open_group(struct alb_socket *sock, const struct alb_addr *group, uint32_t ifindex)
{
    const struct alb_endpoint carrier = carrier_of(group);
    int error = alb_socket_open_group(sock, &carrier, ifindex);
    if (error)
        return error;
    sock->local = (struct alb_endpoint){.addr = *group, .port = ALB_ROCE_PORT};
    sock->is_carrier = true;
    return 0;
}

int alb_carrier_send(const struct alb_socket *sock, const struct alb_carried *carried, const struct iovec *iov,
                     uint32_t iov_count)
{
    uint8_t header[ALB_CARRIER_HEADER_BYTES];
    struct iovec all[1 + IOV_MAX_OF_SEGMENT] = {{.iov_base = header, .iov_len = sizeof(header)}};
    const struct alb_endpoint carrier = carrier_of(&carried->group);
    union alb_sockaddr name;
    alb_assert(iov_count <= IOV_MAX_OF_SEGMENT);
    memcpy(all + 1, iov, iov_count * sizeof(*iov));
    alb_carrier_encode(carried, header);
    const struct msghdr message = {
        .msg_name = &name,
        .msg_namelen = alb_sockaddr_encode(&carrier, &name),
        .msg_iov = all,
        .msg_iovlen = 1 + iov_count,
    };
    return alb_sys_sendmsg(sock->fd, &message) >= 0 ? 0 : errno;
}

void alb_carrier_encode(const struct alb_carried *carried, uint8_t out[ALB_CARRIER_HEADER_BYTES])
{
    memset(out, 0, ALB_CARRIER_HEADER_BYTES);
    memcpy(out, mark, sizeof(mark));
    out[4] = VERSION;
    out[5] = carried->traffic_class;
    out[6] = carried->hop_limit;
    memcpy(out + 8, carried->group.bytes, 16);
    out[24] = (uint8_t)(carried->source_port >> 8);
    out[25] = (uint8_t)carried->source_port;
}

bool alb_carrier_decode(const struct alb_endpoint *peer, const struct alb_addr *group, const uint8_t *bytes,
                        uint32_t length, struct alb_carried *carried)
{
    if (!alb_addr_is_ipv4(&peer->addr) || !alb_address_is_loopback(&peer->addr))
        return false;
    if (length <= ALB_CARRIER_HEADER_BYTES || memcmp(bytes, mark, sizeof(mark)) != 0 || bytes[4] != VERSION ||
        memcmp(bytes + 8, group->bytes, 16) != 0)
        return false;
    *carried = (struct alb_carried){
        .group = *group,
        .source_port = (uint16_t)(bytes[24] << 8 | bytes[25]),
        .traffic_class = bytes[5],
        .hop_limit = bytes[6],
    };
    return true;
}
