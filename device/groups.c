// SPDX-License-Identifier: BSD-2-Clause
// Joining and leaving, interface by interface.
#include "device/groups.h"

#include "device/address.h"
#include "device/carrier.h"
#include "device/syscalls.h"
#include "wire/datagram.h"

#include <errno.h>
#include <stdlib.h>

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

void alb_groups_forget_interfaces(struct alb_groups *groups)
{
    groups->ipv4_count = groups->ipv6_count = 0;
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
    return alb_sys_epoll_control(epoll_fd, EPOLL_CTL_ADD, sock->fd, &event) != 0 ? errno : 0;
}

static bool is_carried(const struct alb_groups *groups, const struct alb_addr *group)
{
    return !alb_addr_is_ipv4(group) && groups->carrier_interface;
}

static int open_all(const struct alb_groups *groups, struct alb_joined_group *joined, int epoll_fd)
{
    bool is_ipv4 = alb_addr_is_ipv4(&joined->addr);
    const uint32_t *interfaces = is_ipv4 ? groups->interfaces_ipv4 : groups->interfaces_ipv6;
    uint32_t count = is_ipv4 ? groups->ipv4_count : groups->ipv6_count;
    int error = 0;
    if (is_carried(groups, &joined->addr))
        error = open_on(joined, groups->carrier_interface, true, epoll_fd);
    for (uint32_t i = 0; i < count && !error; i++)
        error = open_on(joined, interfaces[i], false, epoll_fd);
    return error;
}

// Off the epoll instance first: a copy of the descriptor in a forked child would keep it there.
static void close_all(struct alb_joined_group *joined, int epoll_fd)
{
    for (uint32_t i = 0; i < joined->socket_count; i++) {
        alb_sys_epoll_control(epoll_fd, EPOLL_CTL_DEL, joined->sockets[i].fd, NULL);
        alb_socket_close(&joined->sockets[i]);
    }
    joined->socket_count = 0;
}

static void close_group(struct alb_joined_group *joined, int epoll_fd)
{
    close_all(joined, epoll_fd);
    free(joined);
}

int alb_groups_join(struct alb_groups *groups, const struct alb_addr *group, int epoll_fd)
{
    uint32_t count = alb_addr_is_ipv4(group) ? groups->ipv4_count : groups->ipv6_count;
    if (count == 0 && !is_carried(groups, group))
        return ENETUNREACH;
    struct alb_joined_group *joined = groups->count < ALB_GROUPS_MAX ? calloc(1, sizeof(*joined)) : NULL;
    if (!joined)
        return ENOMEM;
    joined->addr = *group;
    int error = open_all(groups, joined, epoll_fd);
    if (error) {
        close_group(joined, epoll_fd);
        return error;
    }
    groups->joined[groups->count++] = joined;
    return 0;
}

int alb_groups_join_again(struct alb_groups *groups, int epoll_fd)
{
    int error = 0;
    for (uint32_t i = 0; i < groups->count; i++) {
        close_all(groups->joined[i], epoll_fd);
        int refused = open_all(groups, groups->joined[i], epoll_fd);
        error = refused ? refused : error;
    }
    return error;
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
