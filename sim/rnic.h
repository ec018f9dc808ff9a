// SPDX-License-Identifier: BSD-2-Clause
// A model of an RNIC's cache of queue-pair contexts. A packet of a connection needs the context of its queue pair; if
// the cache does not hold it, the pipeline waits until it has been fetched over PCIe, and all packets behind wait with
// it (one pipeline each way). The least recently used context makes room.
#pragma once

#include "sim/time.h"

enum alb_rnic_way {
    ALB_RNIC_OUT,
    ALB_RNIC_IN,
    ALB_RNIC_WAYS,
};

struct alb_rnic;

// indexes: of queue pairs, below this. ENOMEM aborts.
struct alb_rnic *alb_rnic_new(uint32_t cache_entries, alb_sim_time miss_penalty, uint32_t indexes);
void alb_rnic_free(struct alb_rnic *rnic);
// Packets to that host and queue pair are sent by the queue pair of that index.
void alb_rnic_bind(struct alb_rnic *rnic, uint32_t to_host, uint32_t to_qpn, uint32_t index);
void alb_rnic_unbind(struct alb_rnic *rnic, uint32_t to_host, uint32_t to_qpn);
// When a packet that comes to the pipeline now may go on; if that is now, behind those that wait until now.
alb_sim_time alb_rnic_out(struct alb_rnic *rnic, uint32_t to_host, uint32_t to_qpn, alb_sim_time now);
alb_sim_time alb_rnic_in(struct alb_rnic *rnic, uint32_t index, alb_sim_time now);
// Packets whose queue pair's context the cache held or was fetching, and whose it had to fetch.
uint64_t alb_rnic_hits(const struct alb_rnic *rnic);
uint64_t alb_rnic_misses(const struct alb_rnic *rnic);
