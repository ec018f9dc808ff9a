// SPDX-License-Identifier: BSD-2-Clause
// What this host gives a device's sockets.
#pragma once

#include "base/types.h"

struct host_sockets {
    uint64_t receive_default_bytes, receive_max_bytes; // net.core.rmem_*; 0: unknown
    uint64_t send_default_bytes, send_max_bytes;
    bool has_gso; // one call sends a run of datagrams (UDP_SEGMENT)
    bool has_gro; // one call receives a run of them (UDP_GRO)
};

// Finds out; GSO and GRO by sending a run of datagrams over loopback and looking how it arrives.
void host_sockets_probe(struct host_sockets *sockets);
