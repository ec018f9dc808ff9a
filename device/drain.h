// SPDX-License-Identifier: BSD-2-Clause
// Draining: before the device goes, what it sent is acknowledged and what it must still answer is answered.
#pragma once

#include "device/impl.h"

// Waits, two seconds at most, until the engine is quiet; if there has been loss, also for peers that may not have heard
// the last answer. To be called without the token.
void alb_device_drain(struct alb_device *device);
