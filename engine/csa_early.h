// SPDX-License-Identifier: BSD-2-Clause
// Segments that came before their turn and wait for it, in the order of PSNs. However a peer mixes them, the place of
// the next one is found in a bounded number of steps: of each group of 64 PSNs the last one is known.
#pragma once

#include "base/list.h"
#include "wire/csa.h"

struct alb_stream_in;

struct alb_early {
    struct alb_list link;
    struct alb_csa_segment segment;
    uint32_t bytes; // of the block
    bool is_placed; // its payload is where it belongs, and not here
    uint8_t payload[];
};

// The memory of a bitmap of so many bits, a power of two, with the last ones of its groups.
static inline uint32_t alb_early_bitmap_bytes(uint32_t bits)
{
    return bits / 8 + bits / 64 * (uint32_t)sizeof(struct alb_early *);
}

// The stream has another bitmap: finds out the last ones of its groups.
void alb_early_index(struct alb_stream_in *in);
// Places the payload where it belongs, before its turn. False: it must wait.
typedef bool alb_early_try_to_place(struct alb_stream_in *in, const struct alb_csa_segment *segment);
// What may be placed at once leaves only its header to be kept. try_to_place: NULL: nothing may. False: there is no
// room, and nothing has been placed.
bool alb_early_keep(struct alb_stream_in *in, const struct alb_csa_segment *segment,
                    alb_early_try_to_place *try_to_place);
// Forgets the first one.
void alb_early_put_first(struct alb_stream_in *in);
// The one behind which that PSN belongs, or the list itself. *steps: how many were looked at, at most 66, and one for
// each 64 bits of the bitmap.
struct alb_list *alb_early_place(struct alb_stream_in *in, alb_psn psn, uint32_t *steps);

static inline struct alb_early *alb_early_first(const struct alb_list *early)
{
    return ALB_LIST_ENTRY(early->next, struct alb_early, link);
}
