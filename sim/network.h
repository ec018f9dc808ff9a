// SPDX-License-Identifier: BSD-2-Clause
// The virtual network: nodes, links between them, one queue of events, one seed. The same seed and the same calls give
// the same trace, which alb_sim_network_trace_hash sums up.
#pragma once

#include "base/prng.h"
#include "sim/host.h"

struct alb_sim_network {
    struct alb_sim_queue queue;
    struct alb_sim_packet_pool packets;
    struct alb_prng prng;
    struct alb_sim_huge *huge; // where the engines of hosts that are made have their memory from; NULL: malloc
    struct alb_list hosts;
    uint32_t host_count; // made so far
    // True: packets carry their bytes, sealed with the ICRC and checked on arrival; every test of correctness sets it.
    // False: headers only. Received payload is zeros then, or is not written at all if the engine knows of it
    // (has_no_payload).
    bool carries_payload;
    struct alb_tx tx; // what the engine that runs fills
    uint8_t *tx_memory;
    uint8_t *scratch; // a received packet whose payload is not carried
};

void alb_sim_network_init(struct alb_sim_network *network, uint64_t seed, bool carries_payload);
// Packets may carry so many bytes of UDP payload, ICRC included, up to 65507; to be called before there are hosts. At
// first it is what a RoCE packet can have.
void alb_sim_network_set_packet_max(struct alb_sim_network *network, uint32_t bytes);
// Hosts and links have ended before; packets still on their way end with it.
void alb_sim_network_fini(struct alb_sim_network *network);

// A link into that node.
void alb_sim_network_link(struct alb_sim_network *network, struct alb_sim_link *link, struct alb_sim_node *to,
                          const struct alb_sim_link_config *config);

static inline alb_sim_time alb_sim_network_now(const struct alb_sim_network *network)
{
    return network->queue.now;
}

// Lets time pass for so long, all that is due at the last moment included.
void alb_sim_network_run_for(struct alb_sim_network *network, alb_sim_time span);
// Lets time pass until nothing is due any more, but not beyond limit; true if nothing is. Then now is the time of the
// last event.
bool alb_sim_network_run_idle(struct alb_sim_network *network, alb_sim_time limit);

// Of every packet that the hosts there are sent or received and every trace record, host by host.
uint64_t alb_sim_network_trace_hash(const struct alb_sim_network *network);
// Adds to a trace hash.
void alb_sim_note(uint64_t *trace_hash, uint64_t at, uint64_t what, const void *bytes, uint32_t length);
