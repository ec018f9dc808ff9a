// SPDX-License-Identifier: BSD-2-Clause
// The device thread: drives when no program thread does.
#pragma once

#include "device/impl.h"

// Errors: those of pthread_create.
int alb_thread_start(struct alb_device *device);
// Ends it and waits for that; harmless if it does not run, or if it is the caller.
void alb_thread_stop(struct alb_device *device);
