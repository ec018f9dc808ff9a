// SPDX-License-Identifier: BSD-2-Clause
// Joining and leaving, interface by interface.
#include "device/groups.h"

#include "device/address.h"
#include "device/carrier.h"
#include "wire/datagram.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct alb_joined_group {
    struct alb_addr addr;
    uint32_t socket_count;
    struct alb_socket sockets[ALB_DEVICE_ADDRESSES_MAX];
};

void alb_groups_add_interface(struct alb_groups *groups, const struct alb_addr *addr, uint32_t ifindex)
{
    bool is_ipv4 = alb_addr_is_ipv4(addr);
    if (!is_ipv4 && alb_address_is_loopback(addr)) {
        groups->carrier_interface = ifindex;
        return;
    }
    uint32_t *interfaces = is_ipv4 ? groups->interfaces_ipv4 : groups->interfaces_ipv6;
    uint32_t *count = is_ipv4 ? &groups->ipv4_count : &groups->ipv6_count;
    for (uint32_t i = 0; i < *count; i++)
        if (interfaces[i] == ifindex)
            return;
    alb_assert(*count < ALB_DEVICE_ADDRESSES_MAX);
    interfaces[(*count)++] = ifindex;
}

static int open_on(struct alb_joined_group *joined, uint32_t ifindex, bool is_carried, int epoll_fd)
{
    struct alb_socket *sock = &joined->sockets[joined->socket_count];
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = sock};
    const struct alb_endpoint group = {.addr = joined->addr, .port = ALB_ROCE_PORT};
    int error = is_carried ? alb_carrier_open_group(sock, &joined->addr, ifindex)
                           : alb_socket_open_group(sock, &group, ifindex);
    if (error)
        return error;
    joined->socket_count++; // to be closed with the others, whatever comes
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, sock->fd, &event) != 0 ? errno : 0;
}

// Off the epoll instance first: a copy of the descriptor in a forked child would keep it there.
static void close_group(struct alb_joined_group *joined, int epoll_fd)
{
    for (uint32_t i = 0; i < joined->socket_count; i++) {
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, joined->sockets[i].fd, NULL);
        alb_socket_close(&joined->sockets[i]);
    }
    free(joined);
}

int alb_groups_join(struct alb_groups *groups, const struct alb_addr *group, int epoll_fd)
{
    bool is_ipv4 = alb_addr_is_ipv4(group);
    const uint32_t *interfaces = is_ipv4 ? groups->interfaces_ipv4 : groups->interfaces_ipv6;
    uint32_t count = is_ipv4 ? groups->ipv4_count : groups->ipv6_count;
    bool is_carried = !is_ipv4 && groups->carrier_interface;
    if (count == 0 && !is_carried)
        return ENETUNREACH;
    struct alb_joined_group *joined = groups->count < ALB_GROUPS_MAX ? calloc(1, sizeof(*joined)) : NULL;
    if (!joined)
        return ENOMEM;
    joined->addr = *group;
    int error = is_carried ? open_on(joined, groups->carrier_interface, true, epoll_fd) : 0;
    for (uint32_t i = 0; i < count && !error; i++)
        error = open_on(joined, interfaces[i], false, epoll_fd);
    if (error) {
        close_group(joined, epoll_fd);
        return error;
    }
    groups->joined[groups->count++] = joined;
    return 0;
}

bool alb_groups_leave(struct alb_groups *groups, const struct alb_addr *group, int epoll_fd)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        if (!alb_addr_equals(&groups->joined[i]->addr, group))
            continue;
        struct alb_joined_group *left = groups->joined[i];
        groups->joined[i] = groups->joined[--groups->count];
        close_group(left, epoll_fd);
        return true;
    }
    return false;
}

void alb_groups_leave_all(struct alb_groups *groups, int epoll_fd)
{
    while (groups->count > 0)
        close_group(groups->joined[--groups->count], epoll_fd);
}
