// SPDX-License-Identifier: BSD-2-Clause
// The capture that csa_capture writes, packet by packet.
#pragma once

#include "base/types.h"

#include <stdbool.h>
#include <stdio.h>

struct capture {
    FILE *file;
    unsigned number; // of the packet that is being written
    uint8_t bytes[4096];
    uint32_t length;
    bool is_ipv6;
    uint16_t port; // that it is sent to
    bool has_type[UINT8_MAX + 1];
};

extern struct capture capture;

// Where the next frame begins, behind zeros if need be.
uint8_t *capture_place(void);
// Writes the bytes as they are; with the ICRC behind them; or as a CSA packet, whose pad is filled in.
void capture_write(void);
void capture_write_sealed(void);
void capture_end(void);

// Packets that a dissector should find bad, and what is none of CSA's at its ports.
void csa_capture_bad(void);
void csa_capture_others(void);
