// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/verbs/bridge.h"

#include "plugins/verbs/door.h"

static void (*_Atomic cm_handler)(void *user);

struct alb_device *albedo_bridge_device(struct ibv_context *context)
{
    return alb_door_context(context)->device;
}

void albedo_bridge_set_cm_handler(void (*on_cm)(void *user))
{
    atomic_store(&cm_handler, on_cm);
}

void alb_door_on_cm(void *user)
{
    void (*on_cm)(void *) = atomic_load(&cm_handler);
    if (on_cm)
        on_cm(user);
}

int albedo_bridge_claim(struct alb_cm_claim *claim, const struct alb_cm_place *place)
{
    return alb_cm_claim(claim, place);
}

int albedo_bridge_claim_listen(struct alb_cm_claim *claim)
{
    return alb_cm_claim_listen(claim);
}

void albedo_bridge_claim_end(struct alb_cm_claim *claim)
{
    alb_cm_claim_end(claim);
}

int albedo_bridge_claim_find(uint8_t gsi_index, uint64_t service_id, const struct alb_addr *local, uint8_t *slot)
{
    return alb_cm_claim_find(gsi_index, service_id, local, slot);
}
