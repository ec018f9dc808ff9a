// SPDX-License-Identifier: BSD-2-Clause
// Path MTUs, as far as the host's routes know them: what fits into a datagram to a peer without being cut up. Routers
// that refuse packets tell the kernel (ICMP), which remembers it with the route; a route's own MTU may change too. So
// peers that are sent to are looked at again from time to time, and when a socket refuses a datagram as too large.
#pragma once

#include "base/addr.h"

// Largest UDP payload, a multiple of four, that reaches the peer whole from that address; 0: there is no route.
uint32_t alb_path_payload_max(const struct alb_addr *local, const struct alb_addr *peer);

#define ALB_MTU_WATCH_PEERS  256
#define ALB_MTU_WATCH_AGE_NS ALB_NS_PER_S

struct alb_mtu_watch_peer {
    struct alb_endpoint peer; // port 0: none is here
    struct alb_addr local;
    uint32_t payload_max; // as last reported
    bool is_here;         // on this host, where nothing changes
    alb_time due;
};

// The peers that were sent to last. Zeroed, then given the function to ask and the one to report to.
struct alb_mtu_watch {
    uint32_t (*ask)(const struct alb_addr *local, const struct alb_addr *peer); // alb_path_payload_max
    void (*tell)(void *context, const struct alb_endpoint *peer, uint32_t payload_max, alb_time now);
    void *context;
    struct alb_mtu_watch_peer *last; // that was sent to; NULL: none yet
    struct alb_mtu_watch_peer peers[ALB_MTU_WATCH_PEERS];
};

// Something was sent to that peer: looks at its route if that was not done for a while, and tells of a change.
void alb_mtu_watch_sent(struct alb_mtu_watch *watch, const struct alb_addr *local, const struct alb_endpoint *peer,
                        alb_time now);
// A datagram was refused as too large: looks at once, and tells what is known now.
void alb_mtu_watch_refused(struct alb_mtu_watch *watch, const struct alb_addr *local, const struct alb_endpoint *peer,
                           alb_time now);
