// SPDX-License-Identifier: BSD-2-Clause
// Workloads of a scenario as schedules: which host sends how much to which, and when.
#pragma once

#include "base/prng.h"
#include "sim/scenario.h"
#include "sim/schedule.h"

// Adds all workloads of a scenario to a new schedule with a rank for each host, and seals it. False: complained; then
// there is no schedule. bits_per_s: of a host's link, for load.
bool alb_workload_schedule(struct alb_schedule *schedule, const struct alb_scenario *scenario, uint32_t host_count,
                           uint64_t bits_per_s, struct alb_complaint *complaint);
