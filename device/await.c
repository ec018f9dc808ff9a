// SPDX-License-Identifier: BSD-2-Clause
// A thread of the program that waits for an event. While answers come within a round trip it drives the device itself:
// otherwise the device thread would have to be woken, and then wake it (docs/LESSONS.md, 153).
#include "device/drive.h"

// A signal whose handler wants the wait to end is not noticed meanwhile.
#define AWAIT_MAX_NS ALB_LOOK_ON_NS

static bool is_worth_while(const struct alb_device *device, alb_time began_at, alb_time now)
{
    alb_time active_at = atomic_load_explicit(&device->active_at, memory_order_relaxed);
    return atomic_load_explicit(&device->has_room, memory_order_relaxed) && now - began_at < AWAIT_MAX_NS &&
           now - ALB_MIN(active_at, now) < ALB_LOOK_ON_NS;
}

void alb_device_await(struct alb_device *device, bool (*is_raised)(void *context), void *context)
{
    alb_time began_at = alb_clock_now();
    atomic_store_explicit(&device->awaited_at, began_at, memory_order_relaxed);
    while (!is_raised(context) && is_worth_while(device, began_at, alb_clock_now()))
        alb_device_poll(device);
}

void alb_device_leave(struct alb_device *device)
{
    alb_time now = alb_clock_now();
    if (alb_drive_is_due(device, now + ALB_TAKEOVER_NS) && alb_token_try(&device->token)) { // it was left to a poll
        alb_drive_pump(device, ALB_DRIVE_BATCHES, now);
        alb_drive_release(device);
    }
    alb_drive_leave_to_thread(device);
    alb_rouse_bar(device, now);
}
