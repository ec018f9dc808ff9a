// SPDX-License-Identifier: BSD-2-Clause
// How large the state of peers and queue pairs is, each transport's in the units in which it is taken.
#include "engine/csa.h"
#include "engine/impl.h"
#include "engine/rc.h"

#include <errno.h>
#include <string.h>

// A block of the pool.
static uint32_t block_bytes(size_t bytes)
{
    size_t block = ALB_BUDDY_BLOCK_BYTES_MIN;
    while (block < bytes)
        block *= 2;
    return (uint32_t)block;
}

int alb_engine_state_sizes(const struct alb_engine_config *config, struct alb_engine_state_sizes *sizes)
{
    if (strcmp(config->transport, "rc") == 0) {
        *sizes = (struct alb_engine_state_sizes){
            .association_idle_bytes = sizeof(struct alb_peer),
            .association_resting_bytes = sizeof(struct alb_peer),
            .association_active_bytes = sizeof(struct alb_peer),
            .qp_bytes = sizeof(struct alb_qp) + sizeof(struct alb_rc),
        };
        return 0;
    }
    if (strcmp(config->transport, "csa") != 0)
        return EINVAL;
    uint32_t paths_in = 1;
    while (paths_in < config->path_max)
        paths_in *= 2;
    *sizes = (struct alb_engine_state_sizes){
        .association_idle_bytes = sizeof(struct alb_assoc),
        .association_resting_bytes = (uint32_t)sizeof(struct alb_assoc) + alb_rest_cost_bytes(config),
        .association_active_bytes = (uint32_t)sizeof(struct alb_assoc) + block_bytes(sizeof(struct alb_assoc_live)) +
                                    block_bytes(alb_paths_out_bytes(config->path_max)) +
                                    block_bytes(paths_in * sizeof(struct alb_path_in)),
        .qp_bytes = sizeof(struct alb_qp) + sizeof(struct alb_csa) +
                    (config->txn_staging_bytes > 0 ? sizeof(struct alb_reflect_in) : 0), // of RC
    };
    return 0;
}
