// SPDX-License-Identifier: BSD-2-Clause
// A live pair for fuzzers: two engines whose queue pairs of all services are connected and busy, while the input loses,
// repeats, turns round, damages and forges packets, posts and polls, lets time pass, and takes memory away.
//
// Input: a byte of configuration, then operations: a byte that says which, and the bytes that it draws.
//
// What must hold whatever comes: no byte is written outside the two regions that are open (one to the peer, one to the
// program's own requests); every request and receive completes once at the most, and none that was not posted; at the
// end, in error, everything posted has completed; and what the transport promises of its windows.
#pragma once

#include "engine/tests/pair.h"

enum {
    WORLD_RC_PAIRS = 2,
    WORLD_UC = WORLD_RC_PAIRS,
    WORLD_UD,
    WORLD_XRC, // which side 0 sends by
    WORLD_QPS,
    WORLD_POSTS_MAX = 400, // of each side and kind
    WORLD_REGION_BYTES = 16 << 10,
    WORLD_TARGET = 16 << 10, // offset of what is open to the peer
    WORLD_OWN = 48 << 10,    // offset of what is open to requests and receives
    WORLD_PACKET_MAX = ALB_ROCE_HEADER_MAX + ALB_ROCE_PAYLOAD_MAX + 4,
};

struct world;

// What differs between transports, and between what is looked at. Behind check all may be left out.
struct world_kind {
    // Chooses an engine's configuration by the input's first byte; no packet may be longer than WORLD_PACKET_MAX.
    void (*configure)(struct alb_engine_config *config);
    // A forged packet arrives whose numbers lie in and around the windows.
    void (*forge)(struct world *w);
    // Asserts what must hold between operations.
    void (*check)(const struct world *w);
    // A side has its queue pairs, not connected yet; the regions of a side have come back.
    void (*open_side)(struct world *w, int side);
    void (*open_memory)(struct world *w, int side);
    // More operations than those of all, by number.
    uint32_t operations;
    void (*operate)(struct world *w, uint32_t which);
    // All queue pairs are gone.
    void (*finish)(struct world *w);
};

struct world_posted {
    bool is_signaled;
    bool is_completed;
    bool is_shared; // a receive that no queue pair's error completes
};

struct world_side {
    struct alb_qp *qps[WORLD_QPS];
    struct alb_cq *cq;
    struct alb_ah *ah;
    struct alb_xrcd *xrcd;
    struct alb_srq *srq; // of XRC
    struct alb_region *target, *own;
    struct world_posted sends[WORLD_POSTS_MAX], receives[WORLD_POSTS_MAX];
    uint32_t send_count, receive_count;
};

struct world {
    const struct world_kind *kind;
    struct pair *pair;
    struct world_side sides[2];
    const uint8_t *input;
    size_t left;
    uint8_t config;
};

// Sizes of an engine that lives for one input: what is zeroed for each costs more than most inputs.
void world_configure(struct alb_engine_config *config);

// Runs an input from its beginning to its end.
void world_run(const struct world_kind *kind, const uint8_t *data, size_t size);

// The next byte of the input; 0 behind its end.
uint8_t world_draw(struct world *w);
// A number below n, at most 65536.
uint32_t world_draw_below(struct world *w, uint32_t n);
// A datagram from the other side arrives at a side.
void world_receive(struct world *w, int side, const uint8_t *bytes, uint32_t length, uint8_t traffic_class);
// The epoch that a side has for the other one.
uint32_t world_epoch(const struct world *w, int side);
