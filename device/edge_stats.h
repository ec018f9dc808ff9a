// SPDX-License-Identifier: BSD-2-Clause
// What a device counts at its edge, beside the engine's own counters: system calls, sockets, relay, faults, drivers.
// 64-bit words with one writer at a time (the holder of the driver token), in memory that others read meanwhile:
// threads of the process, and `albedo stat` from another.
#pragma once

#include "base/corruption.h"

#define ALB_EDGE_STATS(X)                                                             \
    X(rx_messages, "messages received from sockets (a coalesced burst is one)")       \
    X(rx_datagrams, "datagrams received")                                             \
    X(rx_overflow, "datagrams lost to a full socket receive buffer")                  \
    X(tx_messages, "messages sent to sockets (a burst is one)")                       \
    X(tx_datagrams, "datagrams sent")                                                 \
    X(tx_waits, "times a socket's send buffer was full and waited for")               \
    X(tx_no_buffer, "datagrams lost: no buffer space in socket or queue")             \
    X(tx_too_big, "datagrams lost: larger than the path's MTU")                       \
    X(tx_refused, "datagrams lost: forbidden by a packet filter, or no route")        \
    X(tx_no_socket, "datagrams lost: no socket for their local address")              \
    X(tx_fragmented, "datagrams that IP might cut: the path had become narrower")     \
    X(tx_path_fallback, "datagrams sent by the first path: their own had no socket")  \
    X(relay_out, "datagrams passed on to other process slots of this host")           \
    X(relay_in, "datagrams that the owner of port 4791 passed on to us")              \
    X(relay_lost, "datagrams that could not be passed on")                            \
    X(relay_takeovers, "times this process took over port 4791")                      \
    X(fault_lost, "faults: datagrams lost on demand")                                 \
    X(fault_duplicated, "faults: datagrams duplicated")                               \
    X(fault_corrupted, "faults: datagrams corrupted")                                 \
    X(fault_reordered, "faults: datagrams held back for others to pass")              \
    X(fault_delayed, "faults: datagrams delayed")                                     \
    X(fault_source, "faults: messages whose memory changed after they were posted")   \
    X(fault_read, "faults: pieces of messages read wrongly")                          \
    X(fault_packet, "faults: pieces of packets changed after the check of their CRC") \
    X(fault_stage, "faults: staged parts of transactions changed")                    \
    X(fault_copy, "faults: parts of transactions copied wrongly")                     \
    X(fault_misplace, "faults: pieces of packets put at a wrong address")             \
    X(fault_stale, "faults: pieces of packets put nowhere")                           \
    X(fault_overflow, "faults: datagrams lost because too many were held or delayed") \
    X(drives_by_thread, "times the device thread drove the engine")                   \
    X(thread_sleeps, "times the device thread went to sleep on the sockets")          \
    X(thread_wakes, "times it had to be woken for an earlier deadline")

enum alb_edge_stat {
#define X(name, text) ALB_EDGE_##name,
    ALB_EDGE_STATS(X)
#undef X
        ALB_EDGE_COUNT
};

_Static_assert(ALB_EDGE_fault_stale - ALB_EDGE_fault_source == ALB_CORRUPT_STALE - ALB_CORRUPT_SOURCE,
               "corruption counts straight into these");

struct alb_edge_stats {
    uint64_t counter[ALB_EDGE_COUNT];
};

static inline void alb_edge_count(struct alb_edge_stats *stats, enum alb_edge_stat stat, uint64_t n)
{
    uint64_t *counter = &stats->counter[stat];
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

// What its writer has counted elsewhere.
static inline void alb_edge_set(struct alb_edge_stats *stats, enum alb_edge_stat stat, uint64_t value)
{
    __atomic_store_n(&stats->counter[stat], value, __ATOMIC_RELAXED);
}

// What was counted, for callers that do not hold the token.
static inline uint64_t alb_edge_counted(const struct alb_edge_stats *stats, enum alb_edge_stat stat)
{
    return __atomic_load_n(&stats->counter[stat], __ATOMIC_RELAXED);
}

// "rx_messages" and what it means.
const char *alb_edge_stat_name(enum alb_edge_stat stat);
const char *alb_edge_stat_text(enum alb_edge_stat stat);
