// SPDX-License-Identifier: BSD-2-Clause
// What a digest covers: sender, place and content, so that bytes that are misplaced, stale or played again differ, too.
// The same bytes in the same order on both sides (docs/PROTOCOL.md): numbers are little-endian, 8 bytes each.
#include "engine/reflect.h"

static void add(struct alb_digest_state *state, const uint64_t *words, uint32_t count)
{
    uint8_t bytes[4 * 8];
    for (uint32_t i = 0; i < 8 * count; i++)
        bytes[i] = (uint8_t)(words[i / 8] >> 8 * (i % 8));
    alb_digest_add(state, bytes, 8 * (size_t)count);
}

void alb_txn_digest_begin(struct alb_digest_state *state, const struct alb_txn_id *id)
{
    alb_digest_begin(state);
    add(state, (const uint64_t[]){id->initiator, id->number}, 2);
}

void alb_txn_digest_part(struct alb_digest_state *state, uint32_t rkey, uint64_t va, uint64_t length)
{
    add(state, (const uint64_t[]){rkey, va, length}, 3);
}

struct alb_digest alb_txn_digest_end(struct alb_digest_state *state, const struct alb_csa_proposal *proposal)
{
    for (uint32_t i = 0; i < proposal->compare_count; i++) {
        const struct alb_csa_compare *compare = &proposal->compares[i];
        add(state, (const uint64_t[]){compare->rkey, compare->va, compare->expected, compare->mask}, 4);
    }
    uint64_t flags = proposal->is_in_place | proposal->notifies << 1 | proposal->is_solicited << 2;
    add(state, (const uint64_t[]){flags, proposal->notifies ? le32toh(proposal->imm_be) : 0}, 2);
    return alb_digest_end(state);
}
