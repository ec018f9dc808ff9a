// SPDX-License-Identifier: BSD-2-Clause
// The devices that a process can have, by name, and what tells them from each other.
#pragma once

#include "device/device.h"

struct alb_device_kind {
    const char *name;
    const char *transport; // the engine's
    uint8_t gsi_index;     // likewise
    bool icrc_ones;        // its ICRC takes the IPv4 identification as ones
    bool finds_path_mtu;   // its engine wants to hear of path MTUs
    bool has_choice;       // of policies and paths
    uint32_t peer_max;     // distinct peers; 0: as many as engines have
    bool has_levels;       // of completions (ALBEDO_COMPLETIONS)
    bool peers_have_slots; // all of them, so that a UDP port follows from a queue pair number wherever the peer is
};

// NULL: no device has that name.
const struct alb_device_kind *alb_device_kind_find(const char *name);
