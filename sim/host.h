// SPDX-License-Identifier: BSD-2-Clause
// Hosts: an engine of the product, driven in virtual time through the same calls as the device drives it.
#pragma once

#include "engine/engine.h"
#include "engine/trace.h"
#include "sim/capture.h"
#include "sim/link.h"
#include "sim/memory.h"
#include "sim/rnic.h"
#include "wire/icrc.h"

struct alb_sim_network;

#define ALB_SIM_BATCH_MAX 16 // bursts

struct alb_sim_host_config {
    struct alb_addr addr;
    struct alb_engine_config engine; // memory, seed and stats are the host's to fill in
    uint32_t burst_segments_max;     // 1 where every packet picks its own path
    // The engine is asked for more while less than this waits for the host's own link, as a device's socket buffer
    // would let it.
    uint64_t ahead_bytes;
    // Bursts that it is asked for at a time. What else there is to be said waits until they have left.
    uint32_t batch;
    // What comes within so long after a packet is handed to the engine together with it, as by a driver that polls. 0:
    // each at once.
    alb_sim_time poll_delay;
    bool has_trace_hashed; // what the engine's trace says is part of the network's trace hash
};

// What the ICRC check knows of one peer address.
struct alb_sim_icrc_peer {
    struct alb_addr addr;
    struct alb_icrc_peer state;
};

struct alb_sim_host {
    // What every packet needs: the lines that ALB_SIM_HOST_LINES counts.
    struct alb_sim_node node;
    struct alb_sim_network *network;
    struct alb_engine *engine;
    struct alb_sim_link *out; // where its packets leave (alb_sim_host_set_out)
    struct alb_rnic *rnic;    // NULL: its pipeline never waits
    uint64_t trace_hash;      // of what it sent and received, and of the engine's trace

    struct alb_sim_event wake;
    alb_sim_time wake_at;  // when the engine has to run; the event may come before, and then waits on
    alb_sim_time wake_due; // of the event
    alb_sim_time poll_delay;
    uint64_t ahead_bytes;
    void (*after)(struct alb_sim_host *host, alb_sim_time now); // each time that the engine has run

    uint64_t sent, received; // packets
    uint64_t rnic_bytes;     // that wait in the RNIC to leave
    uint32_t number;         // in the network, from 0
    uint32_t sim_node;       // of the event queue
    uint32_t burst_segments_max;
    uint32_t hot_age;
    uint32_t fetched_until[2];       // the end, in ns, of the window for which it was asked for hot[]
    struct alb_sim_capture *capture; // may be NULL
    FILE *trace;                     // may be NULL: trace lines, as the device writes them
    uint16_t port;
    bool is_csa; // the ICRC is that of albedo0
    bool has_trace_hashed;
    bool is_running;
    bool waits_for_link; // the engine has more to send
    uint8_t batch;
    struct alb_sim_memory memory;

    struct {
        struct alb_engine_hot of;
    } __attribute__((aligned(64))) hot[2]; // what the engine will need, as it was lately: for data, for a report
    struct alb_list link;                  // in the network
    struct alb_addr addr;
    struct alb_engine_config config; // of the engine
    struct alb_device_stats stats;
    struct alb_sim_event poll;
    struct alb_sim_line inbox; // what has come and waits for it
    uint32_t rnic_waiting;     // packets that wait in the RNIC to be received
    uint64_t trimmed;          // packets that came without their payload
    struct alb_icrc_flow sent_flow;
    struct alb_icrc_flow received_flow;
    struct alb_sim_icrc_peer *icrc_peers;
    uint32_t icrc_peer_count;
    uint32_t events[ALB_EVENT_QP_FAILED + 1]; // by type
    struct alb_qp_failure failure;            // the last one
    void (*on_event)(struct alb_sim_host *host, const struct alb_event *event);
    void *user;
} __attribute__((aligned(64)));

void alb_sim_host_config_default(struct alb_sim_host_config *config, const struct alb_addr *addr);

// The errno of alb_engine_create. Its link is given afterwards.
int alb_sim_host_init(struct alb_sim_host *host, struct alb_sim_network *network,
                      const struct alb_sim_host_config *config);
// Every object of its engine has been destroyed; asserts that no memory is left.
void alb_sim_host_fini(struct alb_sim_host *host);
// The host's program ends without notice and starts again: another engine of the same limits, with randomness
// of its own, takes the place of the one whose objects have all been destroyed. Statistics count on. The errno of
// alb_engine_create; then the host has no engine and can only end.
int alb_sim_host_restart(struct alb_sim_host *host);

// Lets the engine run now: after posting, or a call that may have made something due.
void alb_sim_host_poke(struct alb_sim_host *host);
// The same within this moment, but not before the caller has returned: from callbacks.
void alb_sim_host_ring(struct alb_sim_host *host);
// Its packets leave by that link from now on.
void alb_sim_host_set_out(struct alb_sim_host *host, struct alb_sim_link *out);

// The engine's clock.
alb_time alb_sim_host_now(const struct alb_sim_host *host);
