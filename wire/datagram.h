// SPDX-License-Identifier: BSD-2-Clause
// What crosses the edge between an engine and its driver (a device with sockets, or the simulator): received datagrams,
// and bursts of segments to send. Both only refer to bytes, so that payload is gathered straight from user memory.
#pragma once

#include "base/addr.h"

#include <sys/uio.h>

#define ALB_PATH_NUMBERS 128 // of bursts: below this

#define ALB_ROCE_PORT 4791 // UDP destination port of RoCEv2 (IANA), and the port of process slot 0

// The two ECN bits of the IP header's traffic class (RFC 3168).
enum alb_ecn {
    ALB_ECN_NOT_ECT = 0,
    ALB_ECN_ECT1 = 1,
    ALB_ECN_ECT0 = 2,
    ALB_ECN_CE = 3,
    ALB_ECN_MASK = 3,
};

// One received datagram. bytes is the UDP payload; behind the edge (in the engine) the ICRC is checked and length no
// longer counts it. The bytes are valid during the call only.
struct alb_datagram {
    struct alb_endpoint peer;  // where it came from
    struct alb_endpoint local; // what it was sent to
    uint16_t path;             // which of the local sockets (source ports) it came in on
    uint8_t traffic_class;     // DSCP and ECN, as in the IP header
    uint8_t hop_limit;         // TTL or hop limit; 0 if unknown
    uint32_t unread_ns;        // for which it may have lain unread, at most; UINT32_MAX: or longer
    const uint8_t *bytes;
    uint32_t length;
};

// The network has marked it as congested.
static inline bool alb_datagram_is_marked(const struct alb_datagram *datagram)
{
    return (datagram->traffic_class & ALB_ECN_MASK) == ALB_ECN_CE;
}

// Of the same length, marked alike, from one endpoint to the same other.
static inline bool alb_datagram_is_like(const struct alb_datagram *a, const struct alb_datagram *b)
{
    return a->length == b->length && a->traffic_class == b->traffic_class && alb_endpoint_equals(&a->peer, &b->peer) &&
           alb_endpoint_equals(&a->local, &b->local);
}

// One datagram to send: tx->iov[iov_first ... iov_first + iov_count - 1]. The first entry is the header, the last one
// the trailer: pad bytes and then four bytes of room for the ICRC, which the edge seals. Both lie in tx->bytes. Between
// them stands the payload, in memory that stays valid until the driver enters the engine again.
struct alb_segment {
    uint32_t iov_first;
    uint16_t iov_count;
    uint32_t length; // of the UDP payload: header, payload and trailer
};

// Segments to one peer on one path. All are segment_bytes long but the last, which may be shorter (what UDP GSO asks
// for).
struct alb_burst {
    struct alb_endpoint peer;
    struct alb_endpoint local; // port 0: the driver's own for that path
    uint16_t path;
    uint8_t traffic_class;
    uint8_t hop_limit; // 0: the system's default
    bool is_whole;     // IP must not cut it, whatever its length: it is lost then, which tells something
    bool may_be_cut;   // by IP: it is longer than the path carries, and cannot be cut anew
    bool may_change;   // its payload, while it is sent: the ICRC must be that of the bytes that leave
    uint32_t segment_first;
    uint32_t segment_count;
    uint32_t segment_bytes;
};

// What one call of the engine's tx fills. The driver owns the arrays and sets the capacities once.
struct alb_tx {
    struct alb_burst *bursts;
    struct alb_segment *segments;
    struct iovec *iov;
    uint8_t *bytes; // headers and trailers
    uint32_t burst_count, burst_capacity;
    uint32_t segment_count, segment_capacity;
    uint32_t iov_count, iov_capacity;
    uint32_t bytes_count, bytes_capacity;
    uint32_t burst_segments_max; // most segments in one burst: 64 for GSO, 1 where every packet picks its own path
    uint32_t burst_bytes_max;    // most bytes in one burst (65,507 less headers for UDP over IPv4)
};

#define ALB_ICRC_BYTES 4
