// SPDX-License-Identifier: BSD-2-Clause
// What rsockets say to each other, as bytes: the private data of a connection's set-up, the 32 bits of immediate data
// that tell what a write was, and the headers in front of datagrams. It is the protocol of rdma-core's rsockets
// (librdmacm/docs/rsocket and what its library puts on the wire), so that either end may be one of those. Pure.
#pragma once

#include "base/addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A piece of the peer's memory, as it lies in the tables that the ends write into each other's memory.
struct rsocket_place {
    uint64_t addr;
    uint32_t key;
    uint32_t length;
};

// An entry of the table of mapped buffers.
struct rsocket_mapping {
    uint64_t offset;
    struct rsocket_place place;
};

// ---- set-up: the private data of request and reply

enum {
    RSOCKET_HELLO_BYTES = 40,
    RSOCKET_TARGETS = 2, // entries of our table of receive buffers
    RSOCKET_TARGETS_MAX = 1 << 16,
};

struct rsocket_hello {
    bool is_big_endian; // how its tables are to be written
    bool has_iomap;
    uint16_t credits;             // messages it bears at first
    uint32_t iomap_count;         // entries of its table of mapped buffers, which follows the other table
    struct rsocket_place targets; // its table of receive buffers, length in entries
    struct rsocket_place buffer;  // the first of them
};

void rsocket_hello_encode(const struct rsocket_hello *hello, uint8_t bytes[RSOCKET_HELLO_BYTES]);
// False: too short, another version, or a table that cannot be used.
bool rsocket_hello_decode(const uint8_t *bytes, size_t length, struct rsocket_hello *hello);
// What a number of mappings becomes on its way through the eight bits that carry it.
uint32_t rsocket_iomap_count_carried(uint32_t count);

bool rsocket_host_is_big_endian(void);
// Turns an entry into the order of a peer of the other kind.
struct rsocket_place rsocket_place_swapped(struct rsocket_place place);
struct rsocket_mapping rsocket_mapping_swapped(struct rsocket_mapping mapping);

// ---- immediate data

enum rsocket_op {
    RSOCKET_OP_DATA = 0,  // so many bytes of the stream
    RSOCKET_OP_GRANT = 4, // messages that may have been sent in all, modulo 2^16; the table may have a new buffer
    RSOCKET_OP_IOMAP = 6, // an entry of the other table has changed
    RSOCKET_OP_CONTROL = 7,
};

enum rsocket_control {
    RSOCKET_CONTROL_DISCONNECT,
    RSOCKET_CONTROL_KEEPALIVE,
    RSOCKET_CONTROL_SHUTDOWN, // no more data from here
};

#define RSOCKET_MESSAGE_VALUE_MAX 0x1fffffffu

struct rsocket_message {
    enum rsocket_op op;
    uint32_t value;
};

// In host order.
static inline uint32_t rsocket_message_encode(enum rsocket_op op, uint32_t value)
{
    return (uint32_t)op << 29 | (value & RSOCKET_MESSAGE_VALUE_MAX);
}

// False: a kind that means nothing.
bool rsocket_message_decode(uint32_t immediate, struct rsocket_message *message);

// ---- datagrams

enum {
    RSOCKET_DATAGRAM_HEADER_MAX = 24, // in front of what goes from queue pair to queue pair
    RSOCKET_UDP_HEADER_MAX = 28,      // in front of what goes through UDP, while the peer's number is not known
};

struct rsocket_datagram_header {
    struct alb_addr source;
    uint16_t port;
};

// The header's length.
size_t rsocket_datagram_header_encode(const struct rsocket_datagram_header *header,
                                      uint8_t bytes[RSOCKET_DATAGRAM_HEADER_MAX]);
// 0: not one.
size_t rsocket_datagram_header_decode(const uint8_t *bytes, size_t length, struct rsocket_datagram_header *header);

enum rsocket_udp_op {
    RSOCKET_UDP_DATA = 0,    // a datagram follows; the sender wants to know a queue pair
    RSOCKET_UDP_CONTROL = 7, // it tells one
};

struct rsocket_udp_header {
    enum rsocket_udp_op op;
    uint32_t qpn;
    struct alb_addr source;
};

size_t rsocket_udp_header_encode(const struct rsocket_udp_header *header, uint8_t bytes[RSOCKET_UDP_HEADER_MAX]);
size_t rsocket_udp_header_decode(const uint8_t *bytes, size_t length, struct rsocket_udp_header *header);
