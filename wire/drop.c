// SPDX-License-Identifier: BSD-2-Clause
// The names of the drop reasons.
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

const char *alb_drop_name(enum alb_drop drop)
{
    return (unsigned)drop < ALB_DROP_COUNT ? names[drop] : "invalid";
}
