// SPDX-License-Identifier: BSD-2-Clause
// A burst is of packets of one length, but for its last, which may be shorter. Messages that fill some packets and
// begin another end a burst each: with 1,388 bytes in a packet those of 2 KiB leave by 2 packets a system call, cut in
// half by 44 (LESSONS 142). What more packets cost is less than what calls do, up to some packets a call.
#include "engine/csa_cut.h"

#include "engine/impl.h"
#include "engine/segmenter.h"

#define UNIT_BYTES 8u // that never tear: no segment ends within one

enum {
    PACKETS_MAX = 32, // of what is cut evenly: a longer message fills bursts by itself
    MORE_PART = 3,    // of its packets so many more at most, or one
};

uint32_t alb_csa_segment_payload(const struct alb_assoc *assoc, enum alb_csa_type type, uint8_t op, uint8_t flags)
{
    uint32_t header_bytes = alb_csa_segment_header_bytes(type, op, flags);
    return (assoc->payload_max - ALB_CSA_OUTER_BYTES - ALB_ICRC_BYTES - header_bytes) & ~(UNIT_BYTES - 1);
}

uint32_t alb_csa_cut(const struct alb_engine *engine, uint32_t length, uint32_t payload_max, uint32_t longer_by)
{
    uint32_t packets = alb_segmenter_packets(length, payload_max);
    if (!engine->config.sends_bursts || packets == 1 || packets > PACKETS_MAX)
        return payload_max;
    uint32_t words = (length + longer_by + 3) / 4, most = packets + ALB_MAX(packets / MORE_PART, 1u);
    for (; packets <= most; packets++) {
        uint32_t each = 4 * (words / packets); // a segment that is not the last has no pad
        if (words % packets == 0 && each % UNIT_BYTES == 0 && each > longer_by && each <= payload_max)
            return each;
    }
    return payload_max;
}
