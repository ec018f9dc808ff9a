// SPDX-License-Identifier: BSD-2-Clause
// The board: the shared memory in which one device of one process keeps its counters for others to read. It is a memfd,
// so that it goes with the process and can never run into a full /dev/shm; it cannot shrink, so that a reader that has
// checked its size is safe from it. Rows of peers and queue pairs cost nothing until they are used.
#pragma once

#include "device/device.h"
#include "device/edge_stats.h"

#define ALB_BOARD_MAGIC   0x416c6265646f4264ull // "AlbedoBd"
#define ALB_BOARD_VERSION 2

#define ALB_BOARD_NAME_BYTES 64
#define ALB_BOARD_PEER_MAX   1024 // that are shown

// Begins every board. Sizes and counts are those of the writer's build: a reader of another one leaves the counters
// alone.
struct alb_board_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint32_t stat_count; // ALB_STAT_COUNT, ALB_DROP_COUNT, ALB_EDGE_COUNT
    uint32_t drop_count;
    uint32_t edge_count;
    uint32_t qp_bytes; // sizeof(struct alb_qp_stats)
    uint32_t qp_max;
    uint32_t peer_bytes; // sizeof(struct alb_peer_stats)
    uint32_t peer_max;
    uint32_t address_count;
    uint64_t total_bytes;
    uint64_t qp_offset, peer_offset;
    int32_t pid;
    uint32_t uid;
    uint64_t net_namespace; // inode of /proc/PID/ns/net: slots are claimed in there
    uint64_t started_ns;    // since 1970
    uint8_t slot;
    uint8_t reserved[3];
    uint32_t mtu_bytes;
    char device[ALB_BOARD_NAME_BYTES];
    char program[ALB_BOARD_NAME_BYTES];
    struct alb_addr addresses[ALB_DEVICE_ADDRESSES_MAX];
    // UDP source ports of each address's paths; 0: the path was never used, or has no port of its own.
    uint16_t path_ports[ALB_DEVICE_ADDRESSES_MAX][ALB_PATH_STATS_MAX];
    char faults[ALB_FAULTS_TEXT_MAX]; // as alb_faults_format writes them
    struct alb_device_stats device_stats;
    struct alb_edge_stats edge_stats;
};

struct alb_board {
    struct alb_board_header *header;
    struct alb_qp_stats *qps;
    struct alb_peer_stats *peers;
    size_t bytes;
    int fd; // -1: private memory that no other process can read
};

// What the process says about itself.
struct alb_board_identity {
    const char *device;
    uint8_t slot;
    uint32_t mtu_bytes;
    const struct alb_addr *addresses;
    uint32_t address_count;
    const struct alb_faults_spec *faults;
};

// Falls back to private memory if there is no shared one. ENOMEM.
int alb_board_create(struct alb_board *board, const struct alb_board_identity *identity, uint32_t qp_max);
void alb_board_destroy(struct alb_board *board);

// The network namespace of this process, 0 if unknown.
uint64_t alb_board_net_namespace(void);
