// SPDX-License-Identifier: BSD-2-Clause
// A timer of the engine: a moment in the wheel and what to do then.
#pragma once

#include "base/wheel.h"

struct alb_deadline {
    struct alb_timer timer;
    void (*fire)(struct alb_deadline *deadline, alb_time now);
};

static inline void alb_deadline_init(struct alb_deadline *deadline, void (*fire)(struct alb_deadline *, alb_time))
{
    alb_timer_init(&deadline->timer);
    deadline->fire = fire;
}
