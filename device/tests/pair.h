// SPDX-License-Identifier: BSD-2-Clause
// Two devices in one process, on real loopback sockets, with a connected pair of queue pairs.
#pragma once

#include "device/registry.h"

#include "base/tests/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_BYTES (4u << 20)

struct side {
    struct alb_device *device;
    struct alb_pd *pd;
    struct alb_cq *cq;
    struct alb_region *mr;
    struct alb_qp *qp;
    uint8_t *memory; // PAIR_BYTES, registered with everything allowed
};

struct pair {
    struct side side[2];
};

// What devices are opened as: "roce0" unless a test says otherwise.
extern const char *pair_device_name;

// Options with one address and no faults.
struct alb_device_options *pair_options(const char *address);
// A device with its objects; the queue pair is in RESET.
void side_open(struct side *side, const struct alb_device_options *options, enum alb_qp_type type);
// The same with the device that the process shares by name.
void side_open_shared(struct side *side, const struct alb_device_options *options, enum alb_qp_type type);
void side_close(struct side *side);
void side_close_shared(struct side *side);
// Brings a's queue pair to RTS toward b's. timeout and retries as in alb_qp_attr.
void side_connect(struct side *a, const struct side *b, uint8_t timeout, uint8_t retry_cnt);
void side_connect_to(struct side *side, alb_qpn dest_qpn, const struct alb_addr *peer, uint8_t timeout,
                     uint8_t retry_cnt);

void pair_open(struct pair *pair, const char *address_a, const char *address_b, const struct alb_faults_spec *faults);
void pair_close(struct pair *pair);

// Posts a WRITE of length bytes from offset to the other's same offset.
void side_write(struct side *from, const struct side *to, uint64_t offset, uint32_t length);
void side_write_to(struct side *from, uint64_t address, uint32_t rkey, uint64_t offset, uint32_t length);
// Posts a READ of as much from there to here.
void side_read(struct side *to, const struct side *from, uint64_t offset, uint32_t length);
void side_send(struct side *from, uint64_t offset, uint32_t length);
void side_receive(struct side *at, uint64_t offset, uint32_t length);
// Polls until a completion comes.
struct alb_wc side_wait(struct side *side);
// Waits without polling (the device threads do it all).
struct alb_wc side_wait_idle(struct side *side);
// Lays the device thread to sleep for PAIR_LONG_NS, longer than a test takes, as by a program that polls.
#define PAIR_LONG_NS (20 * ALB_NS_PER_S)
void side_lay_to_sleep(struct side *side);
// Nothing but the network orders what one device stores and what this thread does with the other's memory; the thread
// sanitizer wants to see a lock.
void side_pass_by(struct side *side);
void pair_fill(uint8_t *memory, uint32_t length, uint8_t seed);
// WRITEs so many bytes from one side to the other, waits for that on the first, and checks the other's memory.
void pair_write_and_check(struct pair *pair, uint32_t length, struct alb_wc (*wait_for)(struct side *));
