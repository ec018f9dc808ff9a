// SPDX-License-Identifier: BSD-2-Clause
// Between the libraries of ours: librdmacm.so.1 manages connections of the device that libibverbs.so.1 has opened. Both
// come from one build. (What libalbedodv.so.1 calls: plugins/verbs/dv.h.)
#pragma once

#include "device/device.h"

struct ibv_context;

// The device behind a context. To be called through the symbol's version node, ALBEDO_PRIVATE.
struct alb_device *albedo_bridge_device(struct ibv_context *context);

// Where ALB_EVENT_CM goes. Called with the driver token held, by whichever thread drives: it may ask the engine, and
// nothing of the device. To be set before anything is created that it could be about.
void albedo_bridge_set_cm_handler(void (*on_cm)(void *user));
