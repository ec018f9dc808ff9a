// SPDX-License-Identifier: BSD-2-Clause
// Captures of what a simulated host sends and receives, as Wireshark opens them.
#pragma once

#include "sim/packet.h"

#include <stdio.h>

struct alb_sim_capture {
    FILE *file;
};

// 0, or the errno of a file that can't be made.
int alb_sim_capture_open(struct alb_sim_capture *capture, const char *path);
// 0, or the errno of the first write that failed.
int alb_sim_capture_close(struct alb_sim_capture *capture);
// Payload that is not carried is written as zeros.
void alb_sim_capture_add(struct alb_sim_capture *capture, const struct alb_sim_packet *packet, alb_sim_time now);
