// SPDX-License-Identifier: BSD-2-Clause
// A board as text: one JSON object on one line, with every counter by name. `albedo stat --json` prints boards of
// running devices like that, and a device writes its own one when it closes (ALBEDO_STATS).
#pragma once

#include "device/board_rows.h"

#include <stdio.h>

// Writes the object and a newline. No rows: a board of another version of Albedo, of which no counters are written.
void alb_report_write(const struct alb_board_header *header, const struct alb_board_rows *rows, FILE *to);

// The path MTU that packets to the peer are made for, in bytes.
uint32_t alb_report_path_mtu(const struct alb_peer_stats *peer);
// The UDP source port of a path to it; 0: none of its own.
uint16_t alb_report_path_port(const struct alb_board_header *header, const struct alb_peer_stats *peer, uint32_t path);

// "RC" and "RTS"; "?" for what is neither.
const char *alb_report_qp_type(uint8_t type);
const char *alb_report_qp_state(uint8_t state);

// Writes the board to the file; every %p of its name becomes the process id. A file that is there is replaced in one
// step, behind a link, too, which stays; to what is none (/dev/stdout, a pipe) it is appended. When that fails, one
// warning is logged.
void alb_report_to_file(const struct alb_board *board, const char *path);
