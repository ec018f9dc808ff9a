// SPDX-License-Identifier: BSD-2-Clause
// Scenarios drawn from a seed: any topology, switches, policies, limits, workloads and faults that come to an end, with
// real bytes. What is drawn must be done to the last byte, whatever happens on the way.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ALB_DRAW_TEXT_MAX 8192

// Writes the text of a scenario.
void alb_draw_scenario(uint64_t seed, char text[ALB_DRAW_TEXT_MAX]);
