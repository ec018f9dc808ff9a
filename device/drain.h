// SPDX-License-Identifier: BSD-2-Clause
// Draining: before the device goes, what it sent is acknowledged and what it must still answer is answered.
#pragma once

#include "device/impl.h"

// Waits, two seconds at most, until the engine is quiet; if there has been loss, also for peers that may not have heard
// the last answer. To be called without the token. False: it cannot.
bool alb_device_drain(struct alb_device *device);
// False: the token is not to be had, as where exit is called by a signal's handler that has interrupted whoever holds
// it, or the program has closed the device's descriptors. No thread of the device's can be waited for then either.
bool alb_device_can_drain(struct alb_device *device);
