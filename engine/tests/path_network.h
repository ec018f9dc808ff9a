// SPDX-License-Identifier: BSD-2-Clause
// Paths in virtual time, for tests of path policies: a sender whose window follows the queues (it shrinks when all
// round trips that a frame tells of are twice as long as they could be), paths that are queues with a rate, a delay, a
// limit and random loss, a receiver with the real alb_path_in, and paths frames on the way back. What is settled and
// has not come is lost, and goes again as new bytes do.
#pragma once

#include "base/prng.h"
#include "base/tests/test.h"
#include "engine/csa_path.h"

enum {
    NETWORK_PACKET_BYTES = 1500,
    NETWORK_BURST_PACKETS = 4,
    NETWORK_PACKETS = 1 << 12, // of a path, under way at most
    NETWORK_FRAMES = 1 << 10,
};

struct network_packet {
    alb_psn sequence;
    alb_time left_at, comes_at; // ALB_TIME_NEVER: it is lost
    bool is_released;           // acknowledged, or judged lost
};

struct network_path {
    uint64_t bytes_per_s;
    alb_time delay_ns;    // from the end of the queue to the receiver
    alb_time jitter_ns;   // up to that much more, but packets stay in order
    uint64_t limit_bytes; // of the queue
    uint32_t loss_ppb;    // of the packets, by chance
    bool is_dead;
    alb_time busy_until, last_comes_at;
    struct network_packet packets[NETWORK_PACKETS]; // modulo
    uint32_t first, next;                           // not released, or not come
    uint32_t coming;                                // the next one to come, if it does
    uint32_t sent;                                  // packets, since network_measure
    uint32_t trials;                                // times that it was tried, since the beginning
    alb_time left_at;                               // when the policy last left it; 0: never
    alb_time left_ns;                               // how long it was left or tried, since network_measure
};

struct network_frame {
    alb_time sent_at, comes_at;
    uint32_t count;
    struct alb_csa_path_entry entries[ALB_PATHS_MAX];
};

struct network {
    const struct alb_path_ops *ops;
    struct alb_paths_out *paths;
    struct alb_path_in in[ALB_PATHS_MAX];
    struct network_path path[ALB_PATHS_MAX];
    uint32_t count;
    struct alb_prng prng;
    alb_time now;
    uint64_t window_bytes, window_max_bytes, inflight_bytes;
    alb_time back_ns;        // delay of a frame
    uint32_t frame_loss_ppb; // of the frames
    alb_time stall_ns;       // so long at the end of each STALL_EVERY_NS the sender is off its processor
    alb_time interval_ns;    // between bursts, for a sender that has little to send; 0: as the window permits
    uint32_t burst_packets;
    alb_time next_burst_at;
    struct network_frame frames[NETWORK_FRAMES];
    uint32_t frame_first, frame_next;
    uint32_t unreported; // packets that came since the last frame
    alb_time frame_due;  // ALB_TIME_NEVER: nothing to tell
    alb_time heard_at;   // last sign of life, or when there was nothing to hear of
    uint16_t last_path;
    uint64_t came_bytes; // acknowledged, since network_measure
    uint32_t lost;       // packets judged lost, since network_measure
    uint32_t spurious;   // of them, had come
    alb_time since;      // of network_measure
};

// count equal paths: 10 Gb/s, 100 us there and back, 250 kB of queue, no loss. The window is up to one and a half times
// what they hold.
struct network *network_new(const struct alb_path_ops *ops, uint32_t count, uint64_t seed);
void network_free(struct network *network);
// Also of what waits in its queue.
void network_set_rate(struct network *network, uint32_t path, uint64_t bytes_per_s);
void network_run(struct network *network, alb_time span_ns);
// Counts from now on.
void network_measure(struct network *network);
// Bytes acknowledged since then, in percent of what that many paths of 10 Gb/s carry.
uint32_t network_percent_of(const struct network *network, uint32_t paths);
// Share of the packets sent since then that took the path, in percent.
uint32_t network_share_percent(const struct network *network, uint32_t path);
uint32_t network_good(const struct network *network);
