// SPDX-License-Identifier: BSD-2-Clause
// Draining: before a queue pair or the device goes, what it sent is acknowledged and what it must still answer is
// answered.
#pragma once

#include "device/impl.h"

// Waits (bounded) until the engine is quiet; if there has been loss, also for peers that may not have heard the last
// answer.
void alb_device_drain_all(struct alb_device *device);
