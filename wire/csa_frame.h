// SPDX-License-Identifier: BSD-2-Clause
// Between the files of the CSA packet: how each kind of frame is decoded.
//
// p holds length bytes, ALB_CSA_FRAME_MIN at least, and begins with the frame's type, which is one of those that the
// function is for. Each returns ALB_DROP_NONE and the bytes that the frame takes, payload included (at most length), or
// a reason.
#pragma once

#include "wire/csa.h"

#define ALB_CSA_FRAME_MIN 4 // bytes of the shortest frame

// REQUEST or RESPONSE.
enum alb_drop alb_csa_decode_segment(const uint8_t *p, uint32_t length, struct alb_csa_segment *out, uint32_t *taken);
enum alb_drop alb_csa_decode_datagram(const uint8_t *p, uint32_t length, struct alb_csa_segment *out, uint32_t *taken);
enum alb_drop alb_csa_decode_report(const uint8_t *p, uint32_t length, struct alb_csa_report *out, uint32_t *taken);
enum alb_drop alb_csa_decode_holds(const uint8_t *p, uint32_t length, struct alb_csa_holds *out, uint32_t *taken);
enum alb_drop alb_csa_decode_paths(const uint8_t *p, uint32_t length, struct alb_csa_paths *out, uint32_t *taken);
// All others, and types that are none (unknown_opcode).
enum alb_drop alb_csa_decode_short(const uint8_t *p, uint32_t length, struct alb_csa_frame *frame, uint32_t *taken);

#define ALB_CSA_TXN_BYTES     40
#define ALB_CSA_VERDICT_BYTES 80

// Of that many bytes each. ALB_DROP_BAD_REQUEST: a command or state that there is not.
enum alb_drop alb_csa_decode_txn(const uint8_t *p, struct alb_csa_txn *out);
enum alb_drop alb_csa_decode_verdict(const uint8_t *p, struct alb_csa_verdict *out);
