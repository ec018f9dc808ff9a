// SPDX-License-Identifier: BSD-2-Clause
// How long the segments of a message are. All but the last carry the same, which is the sender's to choose
// (docs/PROTOCOL.md, section 5).
#pragma once

#include "engine/csa_assoc.h"

// The payload in bytes of a segment of that op with those flags that fills a packet to the peer. Of this, as of what
// alb_csa_cut returns, a multiple of 8: what a message has of aligned units of 8 bytes lies within one segment each, if
// it begins with one, and is never seen in part.
uint32_t alb_csa_segment_payload(const struct alb_assoc *assoc, enum alb_csa_type type, uint8_t op, uint8_t flags);

// What each segment of a message but the last carries, at most payload_max, which has room for what the last one's
// header is longer by. Where the driver sends bursts (engine.h) a message of a few packets is cut into packets of one
// length, if a few more can make it so.
uint32_t alb_csa_cut(const struct alb_engine *engine, uint32_t length, uint32_t payload_max, uint32_t longer_by);
