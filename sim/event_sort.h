// SPDX-License-Identifier: BSD-2-Clause
// Events in the order in which they fire: mostly few, and in some order already.
#pragma once

#include "sim/event_heap.h"

void alb_sim_sort(struct alb_sim_slot *slots, uint32_t count, bool by_node);
