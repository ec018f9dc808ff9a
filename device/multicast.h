// SPDX-License-Identifier: BSD-2-Clause
// What becomes of multicast when links change. Attaching and detaching are in device/device.h.
#pragma once

#include "device/impl.h"

// [device thread, without the token] Joins the groups again if addresses are on other interfaces than before: a link
// that was deleted and made anew has another index. Errors: those of alb_address_find and alb_groups_join; nothing is
// kept then, so that it is tried again.
int alb_multicast_review(struct alb_device *device);
