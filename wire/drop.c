// SPDX-License-Identifier: BSD-2-Clause
// The names of the drop reasons, and what they say to who reads them.
#include "wire/drop.h"

#include "base/types.h"

static const char *const names[] = {
    [ALB_DROP_NONE] = "none",
    [ALB_DROP_TRUNCATED] = "truncated",
    [ALB_DROP_BAD_ICRC] = "bad_icrc",
    [ALB_DROP_BAD_VERSION] = "bad_version",
    [ALB_DROP_UNKNOWN_OPCODE] = "unknown_opcode",
    [ALB_DROP_BAD_LENGTH] = "bad_length",
    [ALB_DROP_OVERSIZE] = "oversize",
    [ALB_DROP_NOT_ROCE] = "not_roce",
    [ALB_DROP_UNKNOWN_QP] = "unknown_qp",
    [ALB_DROP_WRONG_QP_STATE] = "wrong_qp_state",
    [ALB_DROP_BAD_SERVICE] = "bad_service",
    [ALB_DROP_WRONG_PEER] = "wrong_peer",
    [ALB_DROP_WRONG_LOCAL] = "wrong_local",
    [ALB_DROP_BAD_PKEY] = "bad_pkey",
    [ALB_DROP_BAD_QKEY] = "bad_qkey",
    [ALB_DROP_HOP_LIMIT] = "hop_limit",
    [ALB_DROP_BAD_EPOCH] = "bad_epoch",
    [ALB_DROP_NOT_PROVEN] = "not_proven",
    [ALB_DROP_OUT_OF_SEQUENCE] = "out_of_sequence",
    [ALB_DROP_DUPLICATE] = "duplicate",
    [ALB_DROP_BAD_SEQUENCE] = "bad_sequence",
    [ALB_DROP_NO_RECEIVE] = "no_receive",
    [ALB_DROP_RECEIVE_TOO_SHORT] = "receive_too_short",
    [ALB_DROP_ACCESS] = "access",
    [ALB_DROP_BAD_REQUEST] = "bad_request",
    [ALB_DROP_STALE_RESPONSE] = "stale_response",
    [ALB_DROP_BAD_RESPONSE] = "bad_response",
    [ALB_DROP_NO_MEMBER] = "no_member",
    [ALB_DROP_NO_RESOURCES] = "no_resources",
    [ALB_DROP_FAULT] = "fault",
};
_Static_assert(ALB_COUNT(names) == ALB_DROP_COUNT, "every drop reason has a name");

static const char *const texts[] = {
    [ALB_DROP_NONE] = "not thrown away",
    [ALB_DROP_TRUNCATED] = "shorter than its headers say",
    [ALB_DROP_BAD_ICRC] = "the invariant CRC does not match",
    [ALB_DROP_BAD_VERSION] = "a version or key that is not known here",
    [ALB_DROP_UNKNOWN_OPCODE] = "an opcode, type or operation that is not known here",
    [ALB_DROP_BAD_LENGTH] = "a length that its opcode cannot have",
    [ALB_DROP_OVERSIZE] = "more payload than the path MTU",
    [ALB_DROP_NOT_ROCE] = "not for RoCE at all",
    [ALB_DROP_UNKNOWN_QP] = "to a queue pair that is not there",
    [ALB_DROP_WRONG_QP_STATE] = "the queue pair does not receive in its state",
    [ALB_DROP_BAD_SERVICE] = "of another service than the queue pair's",
    [ALB_DROP_WRONG_PEER] = "from another than the connected peer",
    [ALB_DROP_WRONG_LOCAL] = "to another local address than the queue pair's",
    [ALB_DROP_BAD_PKEY] = "the partition key is not accepted",
    [ALB_DROP_BAD_QKEY] = "the Q_Key is not the queue pair's",
    [ALB_DROP_HOP_LIMIT] = "came over more hops than it may",
    [ALB_DROP_BAD_EPOCH] = "from, or for, another life of an engine",
    [ALB_DROP_NOT_PROVEN] = "its sender has not proved that it is the peer",
    [ALB_DROP_OUT_OF_SEQUENCE] = "after a gap in the sequence numbers",
    [ALB_DROP_DUPLICATE] = "seen before, and no answer is due",
    [ALB_DROP_BAD_SEQUENCE] = "first, middle, last in an order that no message has",
    [ALB_DROP_NO_RECEIVE] = "no receive is posted",
    [ALB_DROP_RECEIVE_TOO_SHORT] = "the posted receive is shorter than the message",
    [ALB_DROP_ACCESS] = "the memory it names is not there, or not for it",
    [ALB_DROP_BAD_REQUEST] = "an operation that the queue pair does not take",
    [ALB_DROP_STALE_RESPONSE] = "answers what is not in flight",
    [ALB_DROP_BAD_RESPONSE] = "an answer that does not fit its request",
    [ALB_DROP_NO_MEMBER] = "to a multicast group without a member here",
    [ALB_DROP_NO_RESOURCES] = "a pool of the engine is empty",
    [ALB_DROP_FAULT] = "on demand (--faults)",
};
_Static_assert(ALB_COUNT(texts) == ALB_DROP_COUNT, "every drop reason has a phrase");

const char *alb_drop_name(enum alb_drop drop)
{
    return (unsigned)drop < ALB_DROP_COUNT ? names[drop] : "invalid";
}

const char *alb_drop_text(enum alb_drop drop)
{
    return (unsigned)drop < ALB_DROP_COUNT ? texts[drop] : "invalid";
}
