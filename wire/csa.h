// SPDX-License-Identifier: BSD-2-Clause
// The CSA packet: bytes <-> structs. Outside it is a RoCEv2 UD SEND (BTH, DETH) to QPN index 2 of the peer's slot;
// inside a header and frames. docs/PROTOCOL.md is the specification.
//
// A datagram is read with a cursor: alb_csa_decode, then alb_csa_next for each frame. It is written frame by frame
// behind alb_csa_encode.
#pragma once

#include "wire/roce.h"

#define ALB_CSA_QPN_INDEX     2          // of the slot: where the engine itself is addressed
#define ALB_CSA_QKEY          0x00435341 // "CSA"
#define ALB_CSA_VERSION       1
#define ALB_CSA_HEADER_BYTES  20
#define ALB_CSA_OUTER_BYTES   (ALB_BTH_BYTES + 8 + ALB_CSA_HEADER_BYTES) // with BTH and DETH
#define ALB_CSA_FRAME_MAX     84 // longest frame of fixed length (WRITE_IMM, XRC, REFLECT)
#define ALB_CSA_BITMAP_WORDS  32 // of a report, at most
#define ALB_CSA_PAGE_BITS     (64u * ALB_CSA_BITMAP_WORDS)
#define ALB_CSA_PAGES_MAX     32   // of bitmap, in as many reports of one number
#define ALB_CSA_PATHS_ENTRIES 64   // of a paths frame, at most
#define ALB_CSA_PATHS_MORE    0x80 // where it says how many: and further paths are reported elsewhere
#define ALB_CSA_COOKIE_BYTES  16
#define ALB_CSA_CREDIT_NONE   UINT32_MAX // no limit
#define ALB_CSA_SHARE_EVEN    32         // of a paths frame: as much as others

// What stands in front of the frames, BTH and DETH included.
struct alb_csa_header {
    uint32_t dest_slot, source_slot; // from the QPNs
    alb_psn sequence;                // of this packet on its path (the BTH's PSN)
    uint32_t source_epoch;
    uint32_t destination_epoch; // 0: not known
    uint32_t timestamp;         // ns of the sender's clock, modulo 2^32
    uint16_t key_id;            // 0: neither authenticated nor encrypted
    uint8_t path;
    uint16_t rtt_code; // the sender's smoothed round-trip time (alb_csa_time_decode); 0: not known
};

enum alb_csa_type {
    ALB_CSA_REQUEST = 0x01,  // a segment of a message
    ALB_CSA_RESPONSE = 0x02, // a segment of an answer
    ALB_CSA_DATAGRAM = 0x03, // unreliable datagram (UD)
    ALB_CSA_REPORT = 0x10,   // what the receiver of a stream holds
    ALB_CSA_PATHS = 0x11,    // what came by which path
    ALB_CSA_PROBE = 0x12,    // asks for a report
    ALB_CSA_PING = 0x13,     // asks for a paths frame; proves a path MTU
    ALB_CSA_PONG = 0x14,
    ALB_CSA_RESET = 0x15,
    ALB_CSA_HELLO = 0x16,
    ALB_CSA_COOKIE = 0x17,
    ALB_CSA_CNP = 0x18,
    ALB_CSA_HOLDS = 0x19,   // what the receiver of a message of partial completion holds; asks for that
    ALB_CSA_TRIMMED = 0x1a, // of a packet only its headers have come
    ALB_CSA_TXN = 0x20,     // what the initiator of a transaction asks or decides
    ALB_CSA_VERDICT = 0x21, // what its target says
};

enum alb_csa_op {
    ALB_CSA_SEND = 1,
    ALB_CSA_SEND_IMM = 2,
    ALB_CSA_SEND_INV = 3,
    ALB_CSA_WRITE = 4,
    ALB_CSA_WRITE_IMM = 5,
    ALB_CSA_READ = 6,
    ALB_CSA_CMP_SWAP = 7,
    ALB_CSA_FETCH_ADD = 8,
    ALB_CSA_ATOMIC_WRITE = 9,
    ALB_CSA_TXN_WRITE = 10, // a part of a transaction
    ALB_CSA_TXN_END = 11,   // and what is proposed (struct alb_csa_proposal is its payload)
    ALB_CSA_PARTIAL_WRITE = 12,
    ALB_CSA_PARTIAL_WRITE_IMM = 13,
    ALB_CSA_READ_DATA = 16, // of a response
    ALB_CSA_RESULT = 17,
};

// A SEND or a WRITE, of a stream.
static inline bool alb_csa_is_message(uint8_t op)
{
    return op >= ALB_CSA_SEND && op <= ALB_CSA_WRITE_IMM;
}
static inline bool alb_csa_is_transaction(uint8_t op)
{
    return op == ALB_CSA_TXN_WRITE || op == ALB_CSA_TXN_END;
}

enum alb_csa_segment_flag {
    ALB_CSA_SOLICITED = 1,
    ALB_CSA_REPORT_NOW = 2, // asks for a report
    ALB_CSA_PROBING = 4,    // sent again as a probe
    ALB_CSA_XRC = 8,        // xrc_srqn is there
    ALB_CSA_LAST = 16,      // of its message
    ALB_CSA_REFLECT = 32,   // with LAST: a verdict is asked for, and txn and digest are there
    ALB_CSA_UC = 64,        // from a queue pair of UC to one
};

struct alb_csa_txn_id {
    uint64_t initiator, number;
};

struct alb_csa_digest {
    uint64_t low, high;
};

#define ALB_CSA_TXN_IN_PLACE 1 // mode of TXN_WRITE

// REQUEST, RESPONSE and DATAGRAM. Which fields behind op hold anything follows from type and op.
struct alb_csa_segment {
    uint8_t op;    // enum alb_csa_op
    uint8_t flags; // enum alb_csa_segment_flag
    alb_qpn dest_qpn;
    alb_psn psn;          // of this segment in its stream
    uint32_t index;       // of this segment in its message, 24 bits
    uint32_t total_bytes; // of the message (READ: asked for)
    uint32_t payload_bytes;
    const uint8_t *payload; // decoded: in the datagram; not looked at when encoding
    uint32_t xrc_srqn;
    uint32_t recv_number; // SEND*, WRITE_IMM: how many receives the queue pair's earlier messages use
    uint32_t imm_be;      // as verbs' imm_data is
    uint32_t invalidate_rkey;
    uint32_t message; // PARTIAL_*: its number
    uint64_t va;
    uint32_t rkey;
    alb_psn acked;                // READ, atomics: the requester holds all of the response stream before this
    uint64_t operand, compare;    // CMP_SWAP: to swap in, and to be there; FETCH_ADD: operand is added
    alb_psn request_psn;          // RESPONSE: first PSN of the request that is answered
    uint64_t original;            // RESULT
    uint32_t qkey;                // DATAGRAM
    alb_qpn src_qpn;              // DATAGRAM
    struct alb_csa_txn_id txn;    // TXN_WRITE: its number; REFLECT: both
    uint32_t txn_mode;            // TXN_WRITE
    struct alb_csa_digest digest; // REFLECT: of the message as it was posted; 0, 0: none was taken
    uint64_t txn_low_water;       // REFLECT: every number of the initiator below it has ended
};

// ---- reflection -----------------------------------------------------------------------------------------------------

enum alb_csa_command {
    ALB_CSA_TXN_ASK = 1,
    ALB_CSA_TXN_COMMIT = 2,
    ALB_CSA_TXN_ABORT = 3,
};

struct alb_csa_txn {
    uint8_t command; // enum alb_csa_command
    alb_qpn dest_qpn;
    struct alb_csa_txn_id id;
    uint64_t keeper;    // the engine that is thought to have the record; 0: not known
    uint64_t low_water; // every number of this initiator below it has ended; 0: does not say
};

enum alb_csa_verdict_state {
    ALB_CSA_VERDICT_PENDING = 1,
    ALB_CSA_VERDICT_REFLECTED = 2,
    ALB_CSA_VERDICT_COMMITTED = 3,
    ALB_CSA_VERDICT_ABORTED = 4,
    ALB_CSA_VERDICT_CORRUPT = 5,
    ALB_CSA_VERDICT_UNKNOWN = 6,
};

// Times are ns of the target's clock; 0: not known.
struct alb_csa_verdict {
    uint8_t state;  // enum alb_csa_verdict_state
    uint8_t reason; // enum alb_txn_reason
    alb_qpn dest_qpn;
    struct alb_csa_txn_id id;
    uint64_t keeper;
    struct alb_csa_digest digest; // REFLECTED: as staged; COMMITTED: as exposed
    uint64_t placed_at, decided_at, visible_at, now;
};

#define ALB_CSA_COMPARES_MAX       8
#define ALB_CSA_PROPOSAL_BYTES     64 // without compares
#define ALB_CSA_COMPARE_BYTES      32
#define ALB_CSA_PROPOSAL_BYTES_MAX (ALB_CSA_PROPOSAL_BYTES + ALB_CSA_COMPARES_MAX * ALB_CSA_COMPARE_BYTES)

struct alb_csa_compare {
    uint64_t va, expected, mask;
    uint32_t rkey;
};

struct alb_csa_proposal {
    struct alb_csa_txn_id id;
    uint64_t low_water;
    struct alb_csa_digest digest;
    uint64_t bytes; // of all parts
    uint32_t lease_us;
    uint32_t part_count;
    uint32_t imm_be;
    bool is_in_place, notifies, is_solicited;
    uint8_t level; // enum alb_level
    uint32_t compare_count;
    struct alb_csa_compare compares[ALB_CSA_COMPARES_MAX];
};

// The payload of TXN_END. Encode returns its bytes; decode is false for what is not one.
uint32_t alb_csa_encode_proposal(const struct alb_csa_proposal *proposal, uint8_t *out);
bool alb_csa_decode_proposal(const uint8_t *bytes, uint32_t length, struct alb_csa_proposal *proposal);

struct alb_csa_report {
    bool is_response; // about the response stream
    bool is_overdue;  // written because something is overdue, or was probed for
    bool is_full;     // there was no room for something that came since the report before
    uint16_t number;  // newer ones count
    uint8_t syndrome; // as that of an AETH
    alb_qpn qpn;      // whose stream it is, at the report's destination
    alb_psn cumulative;
    uint32_t page; // of the bitmap: up to ALB_CSA_PAGES_MAX - 1
    uint32_t word_count;
    uint64_t held[ALB_CSA_BITMAP_WORDS]; // bit i: PSN cumulative + page * ALB_CSA_PAGE_BITS + i
};

struct alb_csa_holds {
    bool is_question;
    bool is_complete; // all of it, and it is completed
    alb_qpn dest_qpn;
    uint32_t message;
    uint32_t first; // segment of the message that bit 0 stands for
    uint32_t word_count;
    uint64_t held[ALB_CSA_BITMAP_WORDS];
};

struct alb_csa_path_entry {
    uint8_t path;
    alb_psn settled;           // every packet of the path before this one has come or is lost
    uint32_t echo;             // timestamp of the newest packet
    uint32_t delay_ns;         // since that packet came
    uint32_t received, marked; // packets so far, modulo 2^32
};

struct alb_csa_paths {
    uint32_t credit_bytes;
    uint8_t share; // of the receiver's, in parts of ALB_CSA_SHARE_EVEN; 0: not given
    uint8_t first; // path that it tells of: all from this one on,
    bool has_more; // but none behind that of its last entry, of which there is one
    uint32_t count;
    struct alb_csa_path_entry entries[ALB_CSA_PATHS_ENTRIES];
};

struct alb_csa_probe {
    bool is_response;
    alb_qpn dest_qpn;
    alb_psn next; // the first one that has not been sent yet
};

// A packet that a switch has cut down to its headers, and the first segment that was in it.
struct alb_csa_trimmed {
    bool is_response; // the segment belongs to the response stream
    alb_qpn dest_qpn; // of the segment that is left; in a frame: whose stream it is, at the frame's receiver
    alb_psn psn;      // of the segment
    uint32_t index;   // of it in its message; a frame does not say that
    uint8_t path;
    alb_psn sequence; // of the packet on its path
};

#define ALB_CSA_TRIMMED_BYTES 64 // what must be left of a UDP payload

enum alb_csa_reset_reason {
    ALB_CSA_RESET_EPOCH = 1,   // the engine addressed is gone
    ALB_CSA_RESET_UNKNOWN = 2, // no such queue pair, or not proven
};

struct alb_csa_frame {
    enum alb_csa_type type;
    union {
        struct alb_csa_segment segment;
        struct alb_csa_report report;
        struct alb_csa_paths paths;
        struct alb_csa_probe probe;
        struct alb_csa_holds holds;
        struct alb_csa_trimmed trimmed;
        uint16_t ping_padding; // bytes that follow
        uint16_t pong_bytes;   // UDP payload of the PING, ICRC included
        struct {
            uint8_t reason; // enum alb_csa_reset_reason
            uint32_t epoch; // that the refused packet named as its destination
        } reset;
        struct {
            bool has_cookie;
            uint8_t cookie[ALB_CSA_COOKIE_BYTES];
        } hello; // COOKIE too
        struct alb_csa_txn txn;
        struct alb_csa_verdict verdict;
    };
};

// Where the next frame is.
struct alb_csa_cursor {
    const uint8_t *at, *end;
};

// True if a received packet (ICRC cut off) is one for the CSA engine of a slot: UD SEND Only to index 2. Nothing else
// of it has been looked at.
bool alb_csa_is_packet(const uint8_t *bytes, uint32_t length);

// Decodes what stands in front of the frames of such a packet: length bytes of UDP payload without the ICRC.
// ALB_DROP_NONE, or truncated, bad_version (also a key id or a flag), bad_qkey, bad_epoch (a source epoch of 0),
// wrong_peer (does not come from a CSA engine), bad_length (not a multiple of four, or more pad than frames).
enum alb_drop alb_csa_decode(const uint8_t *bytes, uint32_t length, struct alb_csa_header *header,
                             struct alb_csa_cursor *cursor);
// Decodes what is left of a packet that was trimmed, of which alb_csa_is_packet is true. The numbers may be any: no
// ICRC has checked them. ALB_DROP_NONE, or as alb_csa_decode; unknown_opcode if the first frame is no segment.
enum alb_drop alb_csa_decode_trimmed(const uint8_t *bytes, uint32_t length, struct alb_csa_header *header,
                                     struct alb_csa_trimmed *trimmed);
// Decodes the next frame. False at the end, or with *drop other than ALB_DROP_NONE: the rest of the packet cannot be
// understood (truncated, unknown_opcode for an unknown type or op, bad_length, bad_request for an unknown command or
// state of TXN or VERDICT). Unions hold only what type names, and of a segment only what its op has. A segment's
// payload lies within its message (see alb_csa_segment_offset), and one without the flag LAST has some, a multiple of
// four bytes. READ, atomics and RESULT are one segment, index 0 and LAST; only ATOMIC_WRITE has payload, the eight
// bytes to be written.
bool alb_csa_next(struct alb_csa_cursor *cursor, struct alb_csa_frame *frame, enum alb_drop *drop);

// Writes BTH, DETH and header (ALB_CSA_OUTER_BYTES). pad is of the whole packet: see alb_csa_set_pad.
void alb_csa_encode(const struct alb_csa_header *header, uint8_t *out);
// The BTH's pad count, once the packet's length is known: bytes that follow the last frame's payload, 0 to 3.
void alb_csa_set_pad(uint8_t *packet, uint8_t pad);

// Each writes one frame (a segment's without its payload) and returns its bytes, a multiple of four. The caller puts
// the payload behind it, and zeros up to a multiple of four unless the frame is the packet's last.
uint32_t alb_csa_encode_segment(enum alb_csa_type type, const struct alb_csa_segment *segment, uint8_t *out);
uint32_t alb_csa_encode_report(const struct alb_csa_report *report, uint8_t *out);
uint32_t alb_csa_encode_paths(const struct alb_csa_paths *paths, uint8_t *out);
uint32_t alb_csa_encode_probe(const struct alb_csa_probe *probe, uint8_t *out);
uint32_t alb_csa_encode_ping(uint16_t padding, uint8_t *out); // the padding itself is the caller's
uint32_t alb_csa_encode_pong(uint16_t bytes, uint8_t *out);
uint32_t alb_csa_encode_reset(enum alb_csa_reset_reason reason, uint32_t epoch, uint8_t *out);
// A HELLO without cookie (NULL) is as long as one with it.
uint32_t alb_csa_encode_hello(const uint8_t *cookie, uint8_t *out);
uint32_t alb_csa_encode_cookie(const uint8_t *cookie, uint8_t *out);
uint32_t alb_csa_encode_cnp(uint8_t *out);
uint32_t alb_csa_encode_holds(const struct alb_csa_holds *holds, uint8_t *out);
uint32_t alb_csa_encode_trimmed(const struct alb_csa_trimmed *trimmed, uint8_t *out);
uint32_t alb_csa_encode_txn(const struct alb_csa_txn *txn, uint8_t *out);
uint32_t alb_csa_encode_verdict(const struct alb_csa_verdict *verdict, uint8_t *out);

// Where in its message a decoded segment's payload belongs. Never so that it ends behind total_bytes.
static inline uint32_t alb_csa_segment_offset(const struct alb_csa_segment *segment)
{
    return segment->flags & ALB_CSA_LAST ? segment->total_bytes - segment->payload_bytes
                                         : segment->index * segment->payload_bytes;
}

// Bytes of a segment's frame header, so that a packet can be planned before it is written.
uint32_t alb_csa_segment_header_bytes(enum alb_csa_type type, uint8_t op, uint8_t flags);
static inline uint32_t alb_csa_segment_bytes(enum alb_csa_type type, const struct alb_csa_segment *segment)
{
    return alb_csa_segment_header_bytes(type, segment->op, segment->flags);
}
static inline uint32_t alb_csa_report_bytes(uint32_t word_count)
{
    return 12 + 8 * word_count;
}
static inline uint32_t alb_csa_holds_bytes(uint32_t word_count)
{
    return 16 + 8 * word_count;
}
static inline uint32_t alb_csa_paths_bytes(uint32_t count)
{
    return 8 + 20 * count;
}
// From that frame's second byte.
static inline uint32_t alb_csa_paths_count(uint8_t entries)
{
    return entries & ~(uint32_t)ALB_CSA_PATHS_MORE;
}

// A time in 16 bits: 11 bits of mantissa, above them 5 of exponent (mantissa << exponent ns). 0 and 1 ns to 2^42 ns,
// rounded down by less than a thousandth; what is longer is as the longest.
uint16_t alb_csa_time_encode(alb_time ns);
alb_time alb_csa_time_decode(uint16_t code);

// The name of a frame type ("REPORT") or an op ("WRITE_IMM"), NULL if it is unknown.
const char *alb_csa_type_name(uint8_t type);
const char *alb_csa_op_name(uint8_t op);
