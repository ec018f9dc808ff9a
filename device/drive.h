// SPDX-License-Identifier: BSD-2-Clause
// Driving: what the holder of the driver token does with engine and sockets.
#pragma once

#include "device/impl.h"

// Batches of one pump, by a thread that may not come back.
#define ALB_DRIVE_BATCHES 64

// [token] Takes in what waits at the sockets; news: of a sleep that has just ended, or NULL. Returns the number of
// messages; if there were any, *now becomes when they had come.
uint32_t alb_drive_receive(struct alb_device *device, const struct alb_port_news *news, alb_time *now);

// [token] The same at the socket that had something last; now and then at all of them.
uint32_t alb_drive_receive_hot(struct alb_device *device, alb_time *now);

// True if something has been posted, or is due: a timer, or what was to wait until now for something to leave with.
// Without the token: as it was a moment ago.
bool alb_drive_is_due(const struct alb_device *device, alb_time now);

// [token] Answers bells, fires timers (after a look at the sockets), sends what may leave, at most so many batches, and
// delivers events. True if something was sent.
bool alb_drive_pump(struct alb_device *device, uint32_t batches_max, alb_time now);

// [token] The same without timers, and so without a look at the sockets: what lies there is not answered yet, for the
// program may have something to send with the answer.
bool alb_drive_send(struct alb_device *device, uint32_t batches_max, alb_time now);

// [token] Fires timers that are due, after a look at the sockets; then *now becomes when that had come.
void alb_drive_tick(struct alb_device *device, alb_time *now);

// [token] Delivers events, and drains the trace: follows every entry of the engine that the others do not make.
void alb_drive_hear(struct alb_device *device);

// Gives the token back. Work that was posted meanwhile is looked after; the device thread is woken if it sleeps past a
// deadline.
void alb_drive_release(struct alb_device *device);

// The same where what is to be sent may wait until then, and leaves with what comes before.
void alb_drive_release_until(struct alb_device *device, alb_time tx_by);

// The same where nothing has changed for which to wake anybody.
void alb_drive_release_unchanged(struct alb_device *device, alb_time tx_by);

// [any thread] Whoever polled does not go on: the device thread drives from now on, and is woken if it naps.
void alb_drive_leave_to_thread(struct alb_device *device);

// A program that its sockets rouse (device/rouse.h) looks for what did. It takes the token for that; false: another
// thread has had it for a millisecond.
bool alb_drive_look(struct alb_device *device);

// Drives until is_done says so, which is asked with the token held, or until the time has come. False if it has.
bool alb_drive_until(struct alb_device *device, bool (*is_done)(struct alb_device *device, void *context, alb_time now),
                     void *context, alb_time until);
