// SPDX-License-Identifier: BSD-2-Clause
// Hosts around one node that passes packets on by their destination: the least that a network of more than two hosts
// needs.
#pragma once

#include "sim/network.h"

enum {
    STAR_HOSTS_MAX = 8,
    STAR_MEMORY = 1 << 18,
};

struct star_host {
    struct alb_sim_host host;
    struct alb_sim_link up, down;
    struct alb_pd *pd;
    struct alb_cq *cq;
    struct alb_region *mr;
    uint8_t *memory;
    struct alb_qp *qps[STAR_HOSTS_MAX]; // toward each other host
};

struct star {
    struct alb_sim_network network;
    struct alb_sim_node node;
    uint32_t count;
    struct star_host hosts[STAR_HOSTS_MAX];
};

// Every host is connected to every other.
struct star *star_new(uint32_t hosts, uint64_t bits_per_s, uint64_t queue_bytes_max);
void star_free(struct star *star);
// Host from writes bytes of its memory to host to, into the part of its memory that belongs to from.
void star_write(struct star *star, uint32_t from, uint32_t to, uint32_t bytes);
void star_run(struct star *star);
// True if the write has completed, and arrived.
bool star_is_done(struct star *star, uint32_t from, uint32_t to);
