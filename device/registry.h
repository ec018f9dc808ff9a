// SPDX-License-Identifier: BSD-2-Clause
// The devices this process has open: one per name, shared by all its opens. Also what happens to them when the process
// exits or forks.
#pragma once

#include "device/impl.h"

// The inside of open and close, without sharing. Errors: those of alb_device_open.
int alb_device_create(const char *name, const struct alb_device_options *options, struct alb_device **device);
void alb_device_destroy(struct alb_device *device);
