// SPDX-License-Identifier: BSD-2-Clause
// Where a simulated engine's memory comes from: malloc, or huge pages in a large cluster, with an account, so that a
// leak, a block given back with another size and an allocation on the data path are found.
#pragma once

#include "engine/engine.h"
#include "sim/huge.h"

struct alb_sim_memory {
    struct alb_sim_huge *huge; // where it comes from while there is some; NULL: malloc
    uint64_t blocks, bytes;    // outstanding
    uint64_t bytes_peak;
    bool is_data_path;        // set while the engine runs its data path
    uint64_t data_path_calls; // gets and puts made then: must stay 0
    uint64_t fail_after;      // so many more gets succeed, then they fail; UINT64_MAX: all succeed
};

// Memory of the simulator's own, for free(): aligned to a cache line, contents undefined; much of it is of huge pages,
// which are so few that the processor knows where all of them are.
void *alb_sim_big(size_t bytes);

void alb_sim_memory_init(struct alb_sim_memory *memory);
// What an engine's configuration wants.
struct alb_memory alb_sim_memory_interface(struct alb_sim_memory *memory);
