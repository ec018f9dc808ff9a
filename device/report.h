// SPDX-License-Identifier: BSD-2-Clause
// A board as text: one JSON object on one line, with every counter by name. `albedo stat --json` prints boards of
// running devices like that, and a device writes its own one when it closes (ALBEDO_STATS).
#pragma once

#include "device/board.h"

#include <stdio.h>

// Writes the object and a newline. qps may be NULL: then there are no queue pairs, and with has_counters false no
// counters at all (a board of another version of Albedo).
void alb_report_write(const struct alb_board_header *header, const struct alb_qp_stats *qps, bool has_counters,
                      FILE *to);

// "RC" and "RTS"; "?" for what is neither.
const char *alb_report_qp_type(uint8_t type);
const char *alb_report_qp_state(uint8_t state);

// Writes the board to the file; every %p in the path becomes the process id. A file that is there is replaced in one
// step; to what is none (/dev/stdout, a pipe) it is appended. When that fails, one warning is logged.
void alb_report_to_file(const struct alb_board *board, const char *path);
