// SPDX-License-Identifier: BSD-2-Clause
// Hosts around one node that passes packets on by their destination: the least that a network of more than two hosts
// needs. Flows of WRITEs from one host to another, without end or of so many bytes.
#pragma once

#include "flow.h"
#include "sim/network.h"

enum {
    STAR_HOSTS_MAX = 33,
    STAR_MEMORY = 1 << 20,
    STAR_DEPTH_MAX = 16,
};

struct star_config {
    uint32_t hosts;
    struct alb_sim_link_config up, down; // of every host, toward the node and from it
    bool is_wheel;                       // every host is connected to every other; else all of them to host 0
    uint32_t mtu_bytes;
    uint32_t path_payload_max; // 0: not given
    void (*change)(struct alb_engine_config *engine);
};

struct star_host {
    struct alb_sim_host host;
    struct alb_sim_link up, down;
    struct alb_pd *pd;
    struct alb_cq *cq;
    struct alb_region *mr;
    uint8_t *memory;
    struct alb_qp *qps[STAR_HOSTS_MAX]; // toward each other host
    struct flow flow;                   // that leaves it
    uint32_t flow_to;
};

struct star {
    struct star_config config;
    struct alb_sim_network network;
    struct alb_sim_node node;
    uint32_t count;
    struct star_host hosts[STAR_HOSTS_MAX];
};

// 10 Gb/s and 1 us everywhere, MTU 1024, all toward all.
void star_config_default(struct star_config *config, uint32_t hosts);
struct star *star_new(const struct star_config *config);
// Every engine gives back all its memory, or this fails.
void star_free(struct star *star);

// Lets a host write messages of so many bytes into the part of the peer's memory that belongs to it, always depth of
// them posted, until so many bytes are done (UINT64_MAX: until flow_stop).
void star_flow(struct star *star, uint32_t from, uint32_t to, uint32_t message_bytes, uint32_t depth,
               uint64_t end_bytes);
// Lets time pass until nothing is due; fails after ten virtual seconds.
void star_run(struct star *star);
// True if the flow of a host has completed, and its peer holds what it wrote last.
bool star_is_done(const struct star *star, uint32_t from);
