// SPDX-License-Identifier: BSD-2-Clause
// The doors as a program sees them: loaded at run time, asked through their public names. So `albedo info` shows what
// programs will get, and fails where they would.
#pragma once

#include "base/types.h"

#include <infiniband/verbs.h>

#define DOOR_GIDS_MAX 64

struct door;

struct door_device {
    char name[IBV_SYSFS_NAME_MAX];
    struct ibv_device_attr attributes;
    uint32_t active_mtu_bytes;
    uint32_t max_message_bytes;
    bool is_active; // its port
    uint32_t gid_count;
    union ibv_gid gids[DOOR_GIDS_MAX];
};

// Loads the doors from a directory. NULL: error says why.
struct door *door_open(const char *directory, char *error, size_t error_size);
void door_close(struct door *door);

// The highest public version of the interface, such as "IBVERBS_1.14".
const char *door_interface(const struct door *door);
// The next name of the private interface that providers link against, from the oldest on; NULL after the last.
// *position starts at 0.
const char *door_private_interface(const struct door *door, uint32_t *position);

// The highest version of the rdma_cm interface, such as "RDMACM_1.3".
const char *door_cm_interface(const struct door *door);

uint32_t door_device_count(const struct door *door);
// Opens the device, asks it about itself, and closes it. False: error says why.
bool door_device_query(const struct door *door, uint32_t index, struct door_device *device, char *error,
                       size_t error_size);
