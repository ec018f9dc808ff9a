// SPDX-License-Identifier: BSD-2-Clause
// Paths. What leaves from another source port may take another way through the network (ECMP), so a path is a socket of
// its own. Path 0 is the slot's socket; those of the others only send: the kernel gives them a port, and what comes
// there is thrown away. They are opened when they are first used.
#pragma once

#include "device/device.h"
#include "device/socket.h"
#include "engine/stats.h"
#include "wire/datagram.h"

struct alb_path_sockets {
    uint32_t limit;     // paths there may be, path 0 included; 0 is as 1
    alb_time retry_at;  // opening one has failed: until then no other is tried
    bool is_complained; // that there are too few descriptors
    // Of each address's paths, written as they are opened; NULL: nobody reads them.
    uint16_t (*ports)[ALB_PATH_STATS_MAX];
    struct alb_socket *sockets; // limit of each address, those of path 0 unused; fd -1: not open; NULL: none has been
};

// The socket of a path (not 0) from an address, which has that place among the device's. NULL: the path is beyond the
// limit, or there is no descriptor left for it but those that the program may need; the latter is said once, and tried
// again after a second.
struct alb_socket *alb_path_sockets_get(struct alb_path_sockets *paths, uint32_t address_index,
                                        const struct alb_addr *local, uint16_t path, alb_time now);
void alb_path_sockets_close(struct alb_path_sockets *paths);
