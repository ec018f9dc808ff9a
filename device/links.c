// SPDX-License-Identifier: BSD-2-Clause
#include "device/links.h"

#include "device/descriptor.h"
#include "device/syscalls.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES_MAX = 1024 }; // of one look: what is left is news again

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
    int count = 0;
    if (links->fd < 0)
        return false;
    errno = 0;
    // Where the program has closed the descriptor and has another file there, nothing is cut off.
    while (count < MESSAGES_MAX && alb_sys_recvmsg(links->fd, &message) >= 0 && message.msg_flags & MSG_TRUNC)
        count++;
    return count > 0 || errno == ENOBUFS;
}
