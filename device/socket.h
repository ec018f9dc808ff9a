// SPDX-License-Identifier: BSD-2-Clause
// Unprivileged UDP sockets, set up for RoCEv2.
#pragma once

#include "base/addr.h"
#include "wire/icrc.h"

#include <sys/socket.h>

// Of one datagram, or one burst: a multiple of four that fits an IPv4 packet and an IPv6 one.
#define ALB_UDP_PAYLOAD_MAX 65484

union alb_sockaddr {
    struct sockaddr any;
    struct sockaddr_storage storage; // room for whatever the kernel writes
};

struct alb_socket {
    int fd;
    struct alb_endpoint local;
    uint32_t rx_batch;      // messages to ask for next time
    bool rx_was_full;       // as many came as were asked for, so that there may be more
    alb_time empty_at;      // when nothing was left in it, last time that this was seen
    uint8_t hop_limit;      // of datagrams that do not carry their own
    uint8_t hop_limit_last; // what the last one asked for
    uint8_t traffic_class;  // as hop_limit
    uint8_t traffic_class_last;
    bool gso_works;         // the kernel cuts bursts for us
    bool only_sends;        // so that it may be connected to a peer
    uint16_t segment_bytes; // into which the kernel cuts what says nothing of it; 0: it is not cut
    uint16_t segment_bytes_last;
    uint8_t segment_bytes_times; // in a row
    uint8_t peer_times;          // likewise
    struct alb_endpoint peer;    // that it is connected to; port 0: none
    struct alb_endpoint peer_last;
    struct alb_icrc_flow flow; // that was sealed last
    bool is_group;             // bound to a multicast group: what comes in there is for this process alone
    bool is_carrier;           // and carried there (device/carrier.h)
    uint32_t overflow_seen;    // the socket's own count of datagrams lost to a full receive buffer, as last reported
};

// Binds an endpoint that is not in use (address reuse stays off: a port is a claim). The socket does not block, forbids
// fragmentation, takes coalesced bursts, reports traffic class, hop limit and lost datagrams, and has as much buffer as
// an unprivileged process gets. Errors: those of socket(2) and bind(2).
int alb_socket_open(struct alb_socket *socket, const struct alb_endpoint *local);
// The same, also while the host does not have the address: datagrams come once it has it again.
int alb_socket_open_absent(struct alb_socket *socket, const struct alb_endpoint *local);

// A socket that only sends, from an address and whatever port the kernel gives; what comes there is thrown away.
// Errors: those of socket(2), bind(2) and getsockname(2).
int alb_socket_open_sender(struct alb_socket *socket, const struct alb_addr *local);

// A socket that receives one multicast group on one interface, beside other such sockets of this host. Errors: those of
// socket(2), bind(2) and setsockopt(2).
int alb_socket_open_group(struct alb_socket *socket, const struct alb_endpoint *group, uint32_t ifindex);
// Multicast leaves by the interface that carries the socket's address; it needs no route then.
void alb_socket_set_multicast_interface(struct alb_socket *socket, uint32_t ifindex);

void alb_socket_close(struct alb_socket *socket);

// The hop limit of datagrams that do not carry their own. If the socket does not take it, it stays as it was.
void alb_socket_set_hop_limit(struct alb_socket *socket, uint8_t hop_limit);
// Likewise their traffic class, ECN bits included.
void alb_socket_set_traffic_class(struct alb_socket *socket, uint8_t traffic_class);

// Likewise into what the kernel cuts them; 0: they are not cut.
bool alb_socket_set_segment_bytes(struct alb_socket *socket, uint16_t segment_bytes);
// What a socket that only sends has a route for, so that none is looked up for each message. Others may still be sent
// to, by name. From now on a send may say ECONNREFUSED of one before it.
void alb_socket_connect(struct alb_socket *socket, const struct alb_endpoint *peer);

// Lets IP cut datagrams that are larger than the path's MTU into fragments, or forbids it again. Over IPv4 any router
// may do so, over IPv6 the kernel alone, as far as it knows the path.
void alb_socket_set_fragmenting(struct alb_socket *socket, bool is_fragmenting);

// Returns the length to give to the kernel.
socklen_t alb_sockaddr_encode(const struct alb_endpoint *endpoint, union alb_sockaddr *sockaddr);
// False if it is neither IPv4 nor IPv6.
bool alb_sockaddr_decode(const union alb_sockaddr *sockaddr, struct alb_endpoint *endpoint);

// Payload that a socket holds for us until it is received, about: the kernel counts what it needs besides.
uint32_t alb_socket_receive_bytes(const struct alb_socket *socket);
