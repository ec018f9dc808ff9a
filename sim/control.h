// SPDX-License-Identifier: BSD-2-Clause
// What the two ends of a link tell each other about it: pause and go on (PFC frames), credit. It travels the link back,
// waits there for the packet on the wire, and is lost where that link is dead.
#pragma once

#include "sim/link.h"

enum alb_sim_control {
    ALB_SIM_CONTROL_PAUSE,
    ALB_SIM_CONTROL_RESUME,
    ALB_SIM_CONTROL_CREDIT,
};

enum {
    ALB_SIM_CONTROL_WIRE_BYTES = 84, // the shortest frame, with preamble and gap
};

// To the link's feeder, over the link back. bytes: of credit. False: it was lost.
bool alb_sim_control_send(struct alb_sim_link *link, struct alb_sim_link *back, enum alb_sim_control control,
                          uint64_t bytes, alb_sim_time now);
