// SPDX-License-Identifier: BSD-2-Clause
// Process slots. Several processes share a host's addresses: slot s is the one that holds UDP port 4791 + s on every
// address of its device, and the high 8 bits of its queue pair numbers. The kernel frees it when the process ends,
// however it ends.
#pragma once

#include "device/socket.h"
#include "wire/datagram.h"
#include "wire/roce.h"

#define ALB_SLOTS 256

static inline uint16_t alb_slot_port(uint8_t slot)
{
    return (uint16_t)(ALB_ROCE_PORT + slot);
}

// The slot in a queue pair number.
static inline uint8_t alb_slot_of_qpn(alb_qpn qpn)
{
    return (uint8_t)(qpn >> 16);
}

// Opens a socket on every address (sockets has room for count) at the lowest slot that is free on all of them.
// EADDRINUSE: none is; else what alb_socket_open says. Nothing is open after an error: every fd is -1.
int alb_slot_claim(const struct alb_addr *addresses, uint32_t count, struct alb_socket *sockets, uint8_t *slot);

// Opens a socket on one port of every address. EADDRINUSE: another has it on one of them. Errors as above.
int alb_slot_bind(const struct alb_addr *addresses, uint32_t count, uint16_t port, struct alb_socket *sockets);
// The same of port 4791, also on addresses that the host does not have now.
int alb_slot_bind_front(const struct alb_addr *addresses, uint32_t count, struct alb_socket *sockets);
