// SPDX-License-Identifier: BSD-2-Clause
#include "device/links.h"

#include "device/descriptor.h"
#include "device/syscalls.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

void alb_links_open(struct alb_links *links)
{
    const struct sockaddr_nl changes = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
    };
    links->fd = alb_descriptor_aside(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    if (links->fd >= 0 && (alb_descriptor_is_scarce(links->fd) ||
                           bind(links->fd, (const struct sockaddr *)&changes, sizeof(changes)) != 0))
        alb_links_close(links);
}

void alb_links_close(struct alb_links *links)
{
    if (links->fd >= 0)
        close(links->fd);
    links->fd = -1;
}

bool alb_links_took_news(struct alb_links *links)
{
    struct msghdr message = {.msg_iov = NULL}; // what it says is cut off
    bool has_news = false;
    if (links->fd < 0)
        return false;
    while (alb_sys_recvmsg(links->fd, &message) >= 0)
        has_news = true;
    return has_news || errno == ENOBUFS;
}
