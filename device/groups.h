// SPDX-License-Identifier: BSD-2-Clause
// The multicast groups that a device receives from. RoCEv2 multicast is IP multicast to UDP port 4791, so the kernel
// carries it: every process of a host that has joined a group on an interface gets a copy of what is sent there, the
// sender too, and of what comes in from other hosts. That asks for neither a route nor a privilege, and holds on the
// loopback interface as well, over IPv4; for IPv6 there see device/carrier.h. Nothing is copied by us, and only members
// are sent anything.
//
// A group takes one socket for each interface that carries an address of its family, bound to the group's address: it
// hears that group on that interface and nothing else.
#pragma once

#include "device/device.h"
#include "device/socket.h"

#define ALB_GROUPS_MAX 256 // each one file descriptor per interface

struct alb_joined_group;

struct alb_groups {
    uint32_t interfaces_ipv4[ALB_DEVICE_ADDRESSES_MAX], ipv4_count; // indexes, each once
    uint32_t interfaces_ipv6[ALB_DEVICE_ADDRESSES_MAX], ipv6_count;
    // The one with ::1, where what is sent to IPv6 groups is carried (device/carrier.h); 0: none.
    uint32_t carrier_interface;
    struct alb_joined_group *joined[ALB_GROUPS_MAX];
    uint32_t count;
};

// An address of the device, and the interface that carries it.
void alb_groups_add_interface(struct alb_groups *groups, const struct alb_addr *addr, uint32_t ifindex);
// All of them but the one with ::1.
void alb_groups_forget_interfaces(struct alb_groups *groups);

// Begins to receive what is sent to a group; its sockets are added to an epoll instance with themselves as data.
// ENETUNREACH: the device has no address of that family; ENOMEM, EMFILE, ENOBUFS: a limit; EPERM: IPv6 before
// Linux 5.7.
int alb_groups_join(struct alb_groups *groups, const struct alb_addr *group, int epoll_fd);
// The same for all that have been joined: an interface that is made anew is a member of none. An error is that of one
// of them, which is not heard everywhere then.
int alb_groups_join_again(struct alb_groups *groups, int epoll_fd);
// Returns true if it had been joined. Its sockets are gone then.
bool alb_groups_leave(struct alb_groups *groups, const struct alb_addr *group, int epoll_fd);
void alb_groups_leave_all(struct alb_groups *groups, int epoll_fd);
