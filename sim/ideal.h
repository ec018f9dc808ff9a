// SPDX-License-Identifier: BSD-2-Clause
// The shortest time that a part of a schedule can take on a run's topology: what its slowest chain of messages takes on
// an idle network, or what its busiest host has to send or receive at the rate of its link, whichever is longer.
#pragma once

#include "sim/run.h"

alb_sim_time alb_ideal_work(const struct alb_run *run, uint32_t work);
