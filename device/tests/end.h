// SPDX-License-Identifier: BSD-2-Clause
// One end of the edge for tests: a port with its sender and its receiver, and what came in.
#pragma once

#include "device/rx.h"
#include "device/tx.h"

#include "base/tests/test.h"

#define TAKEN_MAX 512

struct end {
    struct alb_port port;
    struct alb_edge_stats stats;
    struct alb_sender *sender;
    struct alb_rx *rx;
    uint64_t dropped[ALB_DROP_COUNT];
    uint32_t count;
    alb_time came_at; // the last one, as the engine would be told
    struct alb_datagram taken[TAKEN_MAX];
    uint8_t *bytes[TAKEN_MAX];
    void *idents;
    uint8_t *buffers;
};

// A port at an address, in that slot. icrc_ones: its ICRCs are those of albedo0. faults NULL: none.
struct end *end_open_with(const char *address, int slot, bool icrc_ones, const struct alb_faults_spec *faults);
struct end *end_open_at(const char *address, int slot, const struct alb_faults_spec *faults);
struct end *end_open(const char *address);
void end_clear(struct end *end);
void end_close(struct end *end);
// Takes in what there is, its clock read long before; returns the number of messages.
uint32_t end_receive_all(struct end *end);
void end_put_headers(uint8_t *out, alb_qpn qpn, uint32_t psn);
// Puts one burst of segments into the sender's batch: payload_bytes each but the last, which has last_bytes.
void end_add_burst(struct end *from, const struct alb_endpoint *peer, alb_qpn qpn, uint32_t segments,
                   uint32_t payload_bytes, uint32_t last_bytes);
// Sends the batch.
void end_send(struct end *from, alb_time now);
struct alb_endpoint end_endpoint(const struct end *end);
bool end_has_ipv6(void);
