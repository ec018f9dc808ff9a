// SPDX-License-Identifier: BSD-2-Clause
// Why a received datagram was thrown away. Whatever the network brings is never an error up the receive path: it is one
// of these, counted by name ("albedo stat" prints the names).
#pragma once

enum alb_drop {
    ALB_DROP_NONE = 0, // not dropped

    // The bytes themselves.
    ALB_DROP_TRUNCATED,      // shorter than its headers say, or cut by the receive buffer
    ALB_DROP_BAD_ICRC,       // the invariant CRC does not match
    ALB_DROP_BAD_VERSION,    // a version of the transport header, or a key, that this device does not speak
    ALB_DROP_UNKNOWN_OPCODE, // reserved, or of a service this device does not speak; a frame's type or operation too
    ALB_DROP_BAD_LENGTH,     // not a multiple of four, more pad than payload, or payload where the opcode has none
    ALB_DROP_OVERSIZE,       // more payload than the queue pair's path MTU
    ALB_DROP_NOT_ROCE,       // not for RoCE at all, such as the wrong UDP port

    // The queue pair it names.
    ALB_DROP_UNKNOWN_QP,
    ALB_DROP_WRONG_QP_STATE, // the queue pair does not receive in its present state
    ALB_DROP_BAD_SERVICE,    // the opcode's transport service is not the queue pair's
    ALB_DROP_WRONG_PEER,     // comes from another address or queue pair than the connected one
    ALB_DROP_WRONG_LOCAL,    // was sent to another local address than the queue pair's
    ALB_DROP_BAD_PKEY,
    ALB_DROP_BAD_QKEY,
    ALB_DROP_HOP_LIMIT,

    // The engine it is for (CSA).
    ALB_DROP_BAD_EPOCH,  // from, or for, another life of an engine
    ALB_DROP_NOT_PROVEN, // the first from a stranger, with neither a connected queue pair's first message nor a cookie

    // What it asks of that queue pair.
    ALB_DROP_OUT_OF_SEQUENCE,   // a gap in the packet sequence numbers before it
    ALB_DROP_DUPLICATE,         // seen before, and no answer is due
    ALB_DROP_BAD_SEQUENCE,      // first, middle, last in an order that no message has
    ALB_DROP_NO_RECEIVE,        // no receive posted, on a service that does not say so to its peer
    ALB_DROP_RECEIVE_TOO_SHORT, // the posted receive is shorter than the message
    ALB_DROP_ACCESS,            // the memory it names is not there, or not for it, on a service that does not say so
    ALB_DROP_BAD_REQUEST,       // an operation that this queue pair does not take
    ALB_DROP_STALE_RESPONSE,    // acknowledges or answers what is not in flight
    ALB_DROP_BAD_RESPONSE,      // an answer that does not fit its request
    ALB_DROP_NO_MEMBER,         // multicast to a group that no queue pair is attached to

    // Ourselves.
    ALB_DROP_NO_RESOURCES, // a bounded pool of the engine is empty
    ALB_DROP_FAULT,        // thrown away on demand (--faults)

    ALB_DROP_COUNT,
};

// The name used in statistics and traces, such as "bad_icrc". Never NULL; "invalid" for a value outside the enum.
const char *alb_drop_name(enum alb_drop drop);
// A phrase that says what it means. Likewise.
const char *alb_drop_text(enum alb_drop drop);
