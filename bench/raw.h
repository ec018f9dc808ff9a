// SPDX-License-Identifier: BSD-2-Clause
// The plain UDP program that sets the limit for the device: the same datagram sizes, gathered from header, payload and
// trailer, the same socket features (GSO, GRO, buffers), one thread a side, and no protocol but a count of what
// arrived.
#pragma once

#include "base/types.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define ALB_RAW_HEADER_BYTES   28 // BTH + RETH: what a RoCEv2 write carries in front of its payload
#define ALB_RAW_TRAILER_BYTES  4  // ICRC
#define ALB_RAW_OVERHEAD_BYTES (ALB_RAW_HEADER_BYTES + ALB_RAW_TRAILER_BYTES)
#define ALB_RAW_BURST_BYTES    65507 // most that one UDP send takes over IPv4
#define ALB_RAW_SEGMENTS_MAX   64
#define ALB_RAW_BUFFER_BYTES   65536 // a GRO receive must have room for a whole burst
#define ALB_RAW_MESSAGE_MAX    (8u << 20)

enum alb_raw_wait { ALB_RAW_SPIN, ALB_RAW_BLOCK };

struct alb_raw_options {
    const char *mode, *role;
    struct sockaddr_storage local, peer; // peer: of the sending role only
    uint32_t message_bytes;
    uint32_t payload_bytes; // most payload in one datagram
    uint32_t window_bytes;  // most UDP payload in flight
    uint32_t buffer_bytes;  // asked of SO_RCVBUF and SO_SNDBUF; 0: the system's default
    uint32_t iterations;    // of the ping-pong
    double seconds;         // of the stream
    enum alb_raw_wait wait;
    bool gso; // and GRO
};

enum alb_raw_kind { ALB_RAW_DATA, ALB_RAW_PROBE, ALB_RAW_CREDIT, ALB_RAW_FIN, ALB_RAW_REPORT };

// In front of every datagram.
struct alb_raw_header {
    uint8_t kind;
    uint8_t wants_credit; // set in the last segment of a burst, to have its arrival reported
    uint8_t reserved[2];
    uint32_t nonce;      // of a PROBE, returned in its CREDIT; of a message of the ping-pong, returned in its answer
    uint64_t bytes;      // CREDIT, REPORT: UDP payload received so far
    uint64_t cpu_ns;     // REPORT: processor time of the receiver
    uint32_t recv_calls; // REPORT
} __attribute__((packed));
_Static_assert(sizeof(struct alb_raw_header) == ALB_RAW_HEADER_BYTES, "the header stands for BTH and RETH");

struct alb_raw_socket {
    int fd;
    int receive_buffer_bytes, send_buffer_bytes; // as the kernel reports them
    bool gso;
    enum alb_raw_wait wait;
    struct sockaddr_storage peer; // where sends go; a receiver takes it from what arrives
    socklen_t peer_length;
    uint8_t (*buffers)[ALB_RAW_BUFFER_BYTES];
    uint32_t buffer_count;
};

// What one buffer of a receive holds: segments of segment_bytes each, the last may be shorter.
struct alb_raw_received {
    uint8_t *bytes;
    uint32_t length, segment_bytes;
};

// Segments to be sent together: three iov entries each, all of the first one's length but the last, which may be
// shorter.
struct alb_raw_burst {
    struct iovec iov[ALB_RAW_SEGMENTS_MAX * 3];
    struct alb_raw_header headers[ALB_RAW_SEGMENTS_MAX];
    uint32_t segment_count, segment_bytes, bytes;
};

// Opens and binds; exits with a message on failure, as everything here does: a benchmark that cannot run says so and
// ends.
void alb_raw_socket_open(struct alb_raw_socket *socket, const struct alb_raw_options *options);
// Appends a segment of kind DATA. False, and nothing done, if it does not fit into this burst.
bool alb_raw_burst_add(struct alb_raw_burst *burst, const struct alb_raw_socket *socket, const uint8_t *payload,
                       uint32_t payload_bytes);
void alb_raw_burst_send(struct alb_raw_burst *burst, struct alb_raw_socket *socket);
// A datagram of a header and trailer alone.
void alb_raw_send_header(struct alb_raw_socket *socket, const struct alb_raw_header *header);
// Receives what is there, up to the socket's buffer_count; 0 if nothing came. With block, sleeps up to timeout_ms for
// it.
uint32_t alb_raw_receive(struct alb_raw_socket *socket, struct alb_raw_received *received, bool block, int timeout_ms);

// Each returns after its last datagram, having printed one line of JSON if it is the sending role.
void alb_raw_stream_send(const struct alb_raw_options *options);
void alb_raw_stream_receive(const struct alb_raw_options *options);
void alb_raw_pingpong_ask(const struct alb_raw_options *options);
void alb_raw_pingpong_answer(const struct alb_raw_options *options);

alb_time alb_raw_now(void);
// Processor time of this process, user and system.
uint64_t alb_raw_cpu_ns(void);
_Noreturn void alb_raw_die(const char *what);
