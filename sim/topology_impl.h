// SPDX-License-Identifier: BSD-2-Clause
// How a topology grows: shared by those that build one from numbers and from a file.
#pragma once

#include "sim/topology.h"

void alb_topology_add_hosts(struct alb_topology *topology, uint32_t count);
// Returns its number.
uint32_t alb_topology_add_node(struct alb_topology *topology, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void alb_topology_add_cable(struct alb_topology *topology, const struct alb_topology_cable *cable);
