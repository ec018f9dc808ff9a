// SPDX-License-Identifier: BSD-2-Clause
// The devices that a process can have, by name, and what tells them from each other.
#pragma once

#include "device/device.h"

struct alb_device_kind {
    const char *name;
    const char *transport; // the engine's
};

// NULL: no device has that name.
const struct alb_device_kind *alb_device_kind_find(const char *name);
