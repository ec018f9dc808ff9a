// SPDX-License-Identifier: BSD-2-Clause
#include "sim/packet_gaps.h"

#include <string.h>

// True for headers, trailers and what was copied between them: what the engine wrote itself.
static bool is_own(const struct alb_tx *tx, const struct iovec *iov)
{
    const uint8_t *base = iov->iov_base;
    return base >= tx->bytes && base < tx->bytes + tx->bytes_capacity;
}

static bool fits_gaps(const struct alb_tx *tx, const struct alb_segment *segment)
{
    uint32_t gaps = 0;
    for (uint32_t i = 0; i < segment->iov_count; i++)
        gaps += !is_own(tx, &tx->iov[segment->iov_first + i]);
    return gaps <= ALB_SIM_GAPS_MAX;
}

static uint32_t bytes_to_store(const struct alb_tx *tx, const struct alb_segment *segment, bool with_gaps)
{
    uint32_t bytes = 0;
    if (!with_gaps)
        return segment->length;
    for (uint32_t i = 0; i < segment->iov_count; i++)
        if (is_own(tx, &tx->iov[segment->iov_first + i]))
            bytes += (uint32_t)tx->iov[segment->iov_first + i].iov_len;
    return bytes;
}

struct alb_sim_packet *alb_sim_packet_of(struct alb_sim_packet_pool *pool, const struct alb_tx *tx,
                                         const struct alb_segment *segment, bool without_payload)
{
    bool with_gaps = without_payload && fits_gaps(tx, segment);
    struct alb_sim_packet *packet = alb_sim_packet_get(pool, bytes_to_store(tx, segment, with_gaps));
    struct alb_sim_load *load = alb_sim_load(packet);
    uint32_t at = 0, stored = 0;
    for (uint32_t i = 0; i < segment->iov_count; i++) {
        const struct iovec *iov = &tx->iov[segment->iov_first + i];
        uint32_t length = (uint32_t)iov->iov_len;
        if (with_gaps && !is_own(tx, iov)) {
            load->gaps[load->gap_count++] = (struct alb_sim_gap){(uint16_t)at, (uint16_t)length};
        } else {
            memcpy(load->bytes + stored, iov->iov_base, length);
            stored += length;
        }
        at += length;
    }
    load->stored_bytes = stored;
    load->length = segment->length;
    return packet;
}

const uint8_t *alb_sim_packet_bytes(const struct alb_sim_packet *packet, uint8_t *scratch, bool with_zeros)
{
    const struct alb_sim_load *load = alb_sim_load(packet);
    const uint8_t *from = load->bytes;
    uint32_t at = 0;
    if (load->gap_count == 0)
        return load->bytes;
    for (uint32_t i = 0; i < load->gap_count; i++) {
        const struct alb_sim_gap *gap = &load->gaps[i];
        memcpy(scratch + at, from, gap->at - at);
        from += gap->at - at;
        if (with_zeros)
            memset(scratch + gap->at, 0, gap->length);
        at = gap->at + gap->length;
    }
    memcpy(scratch + at, from, load->length - at);
    return scratch;
}
