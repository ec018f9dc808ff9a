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
