// SPDX-License-Identifier: BSD-2-Clause
// The invariant CRC of RoCEv2: sealing what is sent, checking what was received through a UDP socket.
//
// It is a CRC-32 (IEEE 802.3, reflected) over eight bytes of ones that stand for the LRH, the IP header, the UDP header
// and everything from the BTH to the pad, where fields that a router may change are taken as ones: IPv4 TOS, TTL and
// header checksum, IPv6 traffic class, flow label and hop limit, UDP checksum, BTH byte 4. (InfiniBand specification,
// annex A17.) It is stored with its least significant byte first.
//
// The IPv4 identification is covered, and neither end of a UDP socket can see it. Sending: Linux gives 0 to a datagram
// with DF set from a socket that is not connected, and numbers the segments of a GSO burst 0, 1, 2 ... (a connected
// socket counts, and cannot be used). Receiving: the one that is most likely is tried first. CRCs are linear, so where
// that fails, the difference tells which other identification would explain the received CRC, if any does. Of 65,536
// random differences one is explained by some identification; struct alb_icrc_peer narrows that down by holding a peer
// to what it has shown.
//
// On the device albedo0 the identification is taken as ones, like the other fields that the ends cannot rely on, and
// all 32 bits check.
//
// Residual risk, the chance that a random corruption passes as good: 2^-32 over IPv6. Over IPv4 2^-25 for a peer that
// numbers within its bursts as Albedo does, about 2^-23 for one that counts (the Linux kernel's Soft-RoCE), and 2^-16
// for a peer's first packet and for one whose identifications follow no rule we know.
#pragma once

#include "wire/datagram.h"

#define ALB_ICRC_UDP_MAX     65507 // most UDP payload over IPv4
#define ALB_ICRC_BURST_IDENT 128   // identifications within a burst are below this (UDP_MAX_SEGMENTS of newer kernels)

// The CRC of what comes before the UDP length, length and identification of the IP header still zero. The same for all
// packets from one endpoint to another.
struct alb_icrc_prefix {
    uint32_t crc;
    bool is_ipv4;
};

// Both addresses are of one family; if they are not, the result is that of IPv6.
void alb_icrc_prefix_init(struct alb_icrc_prefix *prefix, const struct alb_endpoint *source,
                          const struct alb_endpoint *destination);

#define ALB_ICRC_LENGTHS 4

// The prefix that was used last, since the next packet is mostly of the same flow, and of a length that another one of
// late had: a message, or the acknowledgement of one. All zero: none yet.
struct alb_icrc_flow {
    struct alb_endpoint source;
    struct alb_endpoint destination;
    struct alb_icrc_prefix prefix;
    bool is_known;
    struct alb_icrc_length {
        uint32_t udp_bytes;      // 0: no packet yet
        uint32_t crc;            // of all that is before the BTH, with this and
        uint16_t identification; // 0, or ones
    } lengths[ALB_ICRC_LENGTHS]; // by the words of a packet
};

// The ICRC of a packet whose first length bytes in iov run from the BTH to the pad; iov[0] holds the whole BTH at least
// and what follows length is not looked at. identification matters for IPv4 only.
uint32_t alb_icrc_compute(const struct alb_icrc_prefix *prefix, uint16_t identification, const struct iovec *iov,
                          uint32_t length);

// Which identifications the segments of a burst will have on the wire.
enum alb_icrc_ident {
    ALB_ICRC_IDENT_ZERO,  // every segment is a datagram of its own: 0
    ALB_ICRC_IDENT_PLACE, // the burst is handed to UDP GSO in one call: 0, 1, 2 ...
    ALB_ICRC_IDENT_ONES,  // whatever they are, they count as 0xffff: what alb_icrc_check_ones() checks
};

// Writes the ICRC into the last four bytes of every segment of a burst. source is the address and port the burst leaves
// from (never a wildcard). To be called when nothing about the burst will change any more: a segment that is taken out
// and sent alone must be sealed as such.
void alb_icrc_seal(struct alb_icrc_flow *flow, struct alb_tx *tx, const struct alb_burst *burst,
                   const struct alb_endpoint *source, enum alb_icrc_ident ident);
// The same, and copies the burst, segment behind segment.
void alb_icrc_seal_copy(struct alb_icrc_flow *flow, struct alb_tx *tx, const struct alb_burst *burst,
                        const struct alb_endpoint *source, enum alb_icrc_ident ident, uint8_t *copy);

// What one peer's IPv4 identifications have looked like. One per peer address. All zero: nothing received yet.
struct alb_icrc_peer {
    uint32_t heard_ms;   // when the last good packet came
    uint16_t last;       // its identification
    uint16_t candidate;  // that of the last packet that was refused
    uint8_t habit;       // enum habit in icrc_peer.c
    uint8_t misses;      // refused in a row, each near the one before
    uint8_t repeats;     // times a low identification did not go up
    uint8_t strangeness; // rises steeply with each refusal, sinks slowly with each good packet
};

// The identification to look for first in the packet at that place of those that came together.
uint16_t alb_icrc_peer_expects(const struct alb_icrc_peer *peer, uint16_t place);

// True if this identification, found in a packet whose CRC it explains, is one that the peer may have sent; remembers
// it either way. A peer that changes its ways loses two packets, one that keeps doing so is no longer held to anything.
bool alb_icrc_peer_admits(struct alb_icrc_peer *peer, uint16_t identification, alb_time now);

// True if a received datagram (length with ICRC; local is the address in its IP header, not a wildcard) has a good
// ICRC. *identification: its place among those that came together, which is where a peer's numbers begin most often;
// then the one that it must have had, 0 over IPv6. A datagram that cannot be RoCE (shorter than BTH and ICRC, not a
// multiple of four, longer than any header with 4096 bytes of payload) is not good.
bool alb_icrc_check(struct alb_icrc_flow *flow, const struct alb_datagram *datagram, struct alb_icrc_peer *peer,
                    uint16_t *identification, alb_time now);

// True if a received datagram has a good ICRC with the IPv4 identification taken as ones, whatever it was. Nothing
// needs to be known of the peer, and any multiple of four bytes from BTH and ICRC to ALB_ICRC_UDP_MAX will do.
bool alb_icrc_check_ones(struct alb_icrc_flow *flow, const struct alb_datagram *datagram);
