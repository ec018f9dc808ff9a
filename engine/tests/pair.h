// SPDX-License-Identifier: BSD-2-Clause
// Two hosts, each an engine with memory of its own, and the datagrams between them in the hand of a test: nothing moves
// and no time passes unless it says so. No test framework stands behind it, so that fuzzers use it too; what it can't
// do is an assertion of Albedo.
#pragma once

#include "base/prng.h"
#include "engine/impl.h"

#include <errno.h>
#include <string.h>

#ifndef PAIR_MEMORY_BYTES // small for many pairs one after the other
#define PAIR_MEMORY_BYTES (256u << 10)
#endif
#define PAIR_GUARD_BYTES 4096u // on either side of a host's memory, never to be written
#define PAIR_GUARD       0xa5

#define PAIR_ACCESS_ALL                                                                                     \
    (ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ | ALB_ACCESS_REMOTE_ATOMIC | \
     ALB_ACCESS_MW_BIND)

enum {
    PAIR_SEGMENTS = 128,
    PAIR_TOGETHER = 64,
    PAIR_RD_ATOMIC = 4,  // READs and atomics that each side may have open
    PAIR_PSN = 0xfffffa, // first PSN of side 0, so that every test of some length wraps; of side 1: half the space away
};

struct pair_host {
    struct alb_engine *engine;
    struct alb_device_stats stats;
    size_t bytes_held;     // by the engine
    size_t bytes_most;     // ever
    uint64_t gets;         // how often it asked for memory
    uint64_t refused_from; // the n-th request for memory from now on, and all behind it, fails; 0: none does
    struct alb_pd *pd;
    struct alb_cq *cq;
    struct alb_region *mr; // all of memory, everything allowed, iova = address
    uint8_t *memory;       // PAIR_MEMORY_BYTES between two guards
    struct alb_addr addr;
    struct alb_tx tx;
    struct alb_burst bursts[PAIR_SEGMENTS];
    struct alb_segment segments[PAIR_SEGMENTS];
    struct iovec iov[PAIR_SEGMENTS * 8];
    uint8_t bytes[PAIR_SEGMENTS * 64];
};

// A datagram on its way. The bytes stand without ICRC, as an engine takes them.
struct pair_packet {
    struct alb_list link;
    struct alb_datagram datagram;
    struct alb_roce roce; // decoded
    uint32_t payload_offset, payload_bytes;
    uint8_t bytes[];
};

struct pair {
    struct pair_host hosts[2];
    struct alb_list wire[2]; // sent by that side, not yet received
    alb_time now;
};

// change may be NULL.
struct pair *pair_new(void (*change)(struct alb_engine_config *config));
// Destroys every object of both engines that is left, then checks that all memory was given back and no guard was
// touched.
void pair_free(struct pair *pair);
void pair_check_guards(const struct pair *pair);

// What pair_qp makes: sixteen requests each way of up to four entries, 64 bytes inline, unless said otherwise.
struct alb_qp *pair_qp(struct pair *pair, int side, enum alb_qp_type type);
struct alb_qp *pair_qp_with(struct pair *pair, int side, struct alb_qp_init *init);
// The attributes that lead a queue pair of that side from RESET to RTS, connected to peer (UD: NULL): access all, path
// MTU 1024, timeout code 10 (about 4 ms), 7 retries of each kind (RNR too: for ever), 4 READs and atomics each way.
struct alb_qp_attr pair_attr(const struct pair *pair, int side, const struct alb_qp *peer);
// Moves it as far as state (INIT, RTR or RTS) with these attributes.
int pair_move(struct pair *pair, struct alb_qp *qp, enum alb_qp_state state, const struct alb_qp_attr *attr);
// The masks that pair_move uses: what the move to that state requires.
uint32_t pair_mask(enum alb_qp_type type, enum alb_qp_state state);
// Two connected queue pairs in RTS. change may be NULL.
void pair_connect(struct pair *pair, enum alb_qp_type type, struct alb_qp *qps[2],
                  void (*change)(struct alb_qp_attr *attr, int side));

// Two connected queue pairs, and memory filled by pair_fill: what most tests of RC and UC begin with.
struct pair_qps {
    struct pair *pair;
    struct alb_qp *qps[2];
};

// cmocka's setup and teardown, *state is a struct pair_qps *.
int pair_rc_setup(void **state);
int pair_uc_setup(void **state);
int pair_qps_teardown(void **state);

#define PAIR_RC_TEST(test) cmocka_unit_test_setup_teardown(test, pair_rc_setup, pair_qps_teardown)
#define PAIR_UC_TEST(test) cmocka_unit_test_setup_teardown(test, pair_uc_setup, pair_qps_teardown)

// Lets a side send: its packets go onto the wire. Returns their number.
uint32_t pair_send(struct pair *pair, int side);
// Likewise one batch, without a look at what was posted.
uint32_t pair_send_batch(struct pair *pair, int side);
// The oldest packet that side has on the wire (or the one at index), or NULL.
struct pair_packet *pair_peek(const struct pair *pair, int side, uint32_t index);
uint32_t pair_count(const struct pair *pair, int side);
// The packet at index overtakes all that stand before it.
void pair_hurry(struct pair *pair, int side, uint32_t index);
// The oldest packet of that side arrives, or is lost.
void pair_deliver(struct pair *pair, int side);
void pair_lose(struct pair *pair, int side);
// So many of them arrive in one call, at most PAIR_TOGETHER.
void pair_deliver_together(struct pair *pair, int side, uint32_t count);
// A datagram from that side arrives at the other, which may be one that no engine has sent.
void pair_inject(struct pair *pair, int side, const struct alb_roce *roce, const void *payload, uint32_t payload_bytes);
// A request of side 0 in that place of its sequence, for length bytes from the start of side 1's memory: to be changed,
// and injected.
struct alb_roce pair_request(const struct pair_qps *c, uint8_t opcode, int32_t psn_offset, uint32_t length);
// Both sides send once, and of these packets one in so many is lost.
void pair_exchange(struct pair *pair, struct alb_prng *prng, uint32_t lost_one_in);
// All packets of that side arrive.
void pair_deliver_all(struct pair *pair, int side);
// Both sides send and receive until nothing is left to move. No time passes.
void pair_settle(struct pair *pair);
// Time passes: timers that are due by then fire at their time.
void pair_pass(struct pair *pair, alb_time ns);

// Posts one request, with the bell; an errno. *wr needs no more than the test cares for.
int pair_post(struct pair *pair, struct alb_qp *qp, const struct alb_send_wr *wr);
// Posts one over length bytes at that offset of both hosts' memories, with the key of all of it; atomics add 1, or
// compare with 1 and swap in 2. UD: not.
int pair_ask(struct pair *pair, struct alb_qp *qp, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t flags,
             uint32_t offset, uint32_t length);
// Fills both memories with patterns that differ in every byte.
void pair_fill(struct pair *pair);
// Posts a receive of length bytes at that offset of the host's memory.
int pair_receive(struct pair *pair, struct alb_qp *qp, uint64_t wr_id, uint32_t offset, uint32_t length);
// An entry over length bytes at that offset of the host's memory.
struct alb_sge pair_sge(const struct pair *pair, int side, uint32_t offset, uint32_t length);
// The address of an offset in a side's memory.
uint64_t pair_va(const struct pair *pair, int side, uint32_t offset);
// Takes the oldest completion of a side. False if there is none.
bool pair_poll(struct pair *pair, int side, struct alb_wc *wc);
// Takes the oldest event of that type; others are thrown away.
bool pair_event(struct pair *pair, int side, enum alb_event_type type, struct alb_event *event);
