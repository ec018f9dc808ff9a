// SPDX-License-Identifier: BSD-2-Clause
// IPv6 multicast between the processes of a host. Linux sends no IPv6 multicast by its loopback interface (that has no
// route for it, and giving it one takes a privilege), but IPv4 multicast it does. So what goes from ::1 to a group is
// carried to an IPv4 group on the loopback interface that stands for it, behind a header that names the group; the ICRC
// and captures are those of the datagram inside.
//
// Trust. Nothing but a process of this host can send from 127/8, and it could send from ::1 as well. The port that the
// header claims may be forged by it, as the port of an IPv4 datagram may not: a datagram's source proves nothing
// (unreliable datagrams are admitted by their Q_Key), and nothing else in what comes this way is trusted.
#pragma once

#include "device/socket.h"

#include <sys/uio.h>

#define ALB_CARRIER_PORT         5047 // the first one behind those of process slots
#define ALB_CARRIER_HEADER_BYTES 28

// What a carried datagram's own headers said.
struct alb_carried {
    struct alb_addr group;
    uint16_t source_port; // of ::1
    uint8_t traffic_class;
    uint8_t hop_limit;
};

// True if a datagram from that address to that peer has to be carried.
bool alb_carrier_is_needed(const struct alb_addr *local, const struct alb_addr *peer);

// A socket to carry from, and one that hears what is carried to a group; socket->local is the group then. ifindex: of
// the loopback interface. Errors: those of alb_socket_open and alb_socket_open_group.
int alb_carrier_open(struct alb_socket *socket, uint32_t ifindex);
int alb_carrier_open_group(struct alb_socket *socket, const struct alb_addr *group, uint32_t ifindex);

// Sends one datagram; 0 or what sendmsg(2) says. iov is not changed.
int alb_carrier_send(const struct alb_socket *socket, const struct alb_carried *carried, const struct iovec *iov,
                     uint32_t iov_count);

void alb_carrier_encode(const struct alb_carried *carried, uint8_t out[ALB_CARRIER_HEADER_BYTES]);
// False if what came from that peer is not a datagram carried to that group.
bool alb_carrier_decode(const struct alb_endpoint *peer, const struct alb_addr *group, const uint8_t *bytes,
                        uint32_t length, struct alb_carried *carried);
