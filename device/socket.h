// SPDX-License-Identifier: BSD-2-Clause
// Unprivileged UDP sockets, set up for RoCEv2.
#pragma once

#include "base/addr.h"

#include <sys/socket.h>

struct alb_socket {
    int fd;
    struct alb_endpoint local;
    uint32_t rx_batch;      // messages to ask for next time
    bool gso_works;         // the kernel cuts bursts for us
    uint32_t overflow_seen; // the socket's own count of datagrams lost to a full receive buffer, as last reported
};

// Binds an endpoint that nobody else has (address reuse stays off: a port is a claim). The socket does not block,
// forbids fragmentation, takes coalesced bursts, reports traffic class, hop limit and lost datagrams, and has as much
// buffer as an unprivileged process gets. Errors: those of socket(2) and bind(2).
int alb_socket_open(struct alb_socket *socket, const struct alb_endpoint *local);
void alb_socket_close(struct alb_socket *socket);

union alb_sockaddr {
    struct sockaddr any;
    struct sockaddr_storage storage; // room for whatever the kernel writes
};

// Returns the length to give to the kernel.
socklen_t alb_sockaddr_encode(const struct alb_endpoint *endpoint, union alb_sockaddr *sockaddr);
// False if it is neither IPv4 nor IPv6.
bool alb_sockaddr_decode(const union alb_sockaddr *sockaddr, struct alb_endpoint *endpoint);
