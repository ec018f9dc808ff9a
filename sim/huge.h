// SPDX-License-Identifier: BSD-2-Clause
// Memory in huge pages for what lives as long as a large cluster: the processor knows where all of them are, while
// those of 4 KB that a thousand engines lie in have to be looked up in tables nearly each time. It is given back as a
// whole.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    ALB_SIM_HUGE_CHUNKS = 32,
    ALB_SIM_HUGE_CHUNK_BYTES = 32 << 20,
};

struct alb_sim_huge {
    uint8_t *next, *end;               // what is left of the last chunk
    void *chunks[ALB_SIM_HUGE_CHUNKS]; // as they were mapped
    uint32_t chunk_count;
};

// Zeroed, aligned to a cache line. NULL: it has given its most, or there is no more.
void *alb_sim_huge_get(struct alb_sim_huge *huge, size_t bytes);
// Begins and ends as zeros.
void alb_sim_huge_fini(struct alb_sim_huge *huge);
