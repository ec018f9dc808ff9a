// SPDX-License-Identifier: BSD-2-Clause
// Between the libraries of ours: librdmacm.so.1 manages connections of the device that libibverbs.so.1 has opened. Both
// come from one build. (What libalbedodv.so.1 calls: plugins/verbs/dv.h.)
#pragma once

#include "device/cm_claim.h"
#include "device/device.h"

struct ibv_context;

// The device behind a context. To be called through the symbol's version node, ALBEDO_PRIVATE.
struct alb_device *albedo_bridge_device(struct ibv_context *context);

// Where ALB_EVENT_CM goes. Called with the driver token held, by whichever thread drives: it may ask the engine, and
// nothing of the device. To be set before anything is created that it could be about.
void albedo_bridge_set_cm_handler(void (*on_cm)(void *user));

// The claims of device/cm_claim.h, of which the library that asks has none: those that a process holds are known to its
// device then, which needs no descriptor to look for them in the host directory.
int albedo_bridge_claim(struct alb_cm_claim *claim, const struct alb_cm_place *place);
int albedo_bridge_claim_listen(struct alb_cm_claim *claim);
void albedo_bridge_claim_end(struct alb_cm_claim *claim);
int albedo_bridge_claim_find(uint8_t gsi_index, uint64_t service_id, const struct alb_addr *local, uint8_t *slot);
