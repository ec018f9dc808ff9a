// SPDX-License-Identifier: BSD-2-Clause
// The rows of a board, copied: those of peers and queue pairs that were ever used, one behind the other, and some that
// were not beside them. To look at the others through a mapping would fill them with zeros, page by page, and charge
// them to the process that the board belongs to.
#pragma once

#include "device/board.h"

struct alb_board_rows {
    const struct alb_peer_stats *peers; // NULL, as qps then is: none can be read
    const struct alb_qp_stats *qps;
    uint32_t peer_count, qp_count;
    size_t peer_bytes, qp_bytes; // of the mappings
};

// From a board's file of so many bytes; the header has been checked as far as what a row holds. False: the tables do
// not fit there, or there is no memory.
bool alb_board_rows_read(int fd, uint64_t file_bytes, const struct alb_board_header *header,
                         struct alb_board_rows *rows);
void alb_board_rows_release(struct alb_board_rows *rows);
