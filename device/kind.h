// SPDX-License-Identifier: BSD-2-Clause
// The devices that a process can have, by name, and what tells them from each other.
#pragma once

#include "device/device.h"

// A software peer may be off its processor for some time slices: waiting less only sends things twice.
#define ALB_ACK_TIMEOUT_MIN_NS (10 * ALB_NS_PER_MS)  // of rc
#define ALB_PROBE_MIN_NS       (500 * ALB_NS_PER_US) // of csa

struct alb_device_kind {
    const char *name;
    const char *transport;  // the engine's
    uint8_t gsi_index;      // likewise
    bool icrc_ones;         // its ICRC takes the IPv4 identification as ones
    bool finds_path_mtu;    // its engine wants to hear of path MTUs
    bool has_choice;        // of policies and paths
    uint32_t peer_max;      // distinct peers; 0: as many as engines have
    alb_time answer_ns_min; // how long what is posted waits for its answer at least, before a timer does something
    bool peers_have_slots;  // all of them, so that a UDP port follows from a queue pair number wherever the peer is
};

// NULL: no device has that name.
const struct alb_device_kind *alb_device_kind_find(const char *name);
