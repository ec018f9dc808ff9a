// SPDX-License-Identifier: BSD-2-Clause
// What each peer's IPv4 identifications have looked like (wire/icrc.h), in a table of fixed size. A peer is entered by
// its first good packet; when the table is full, the peer that has been silent longest of a few drawn at random makes
// room.
#pragma once

#include "base/map.h"
#include "base/prng.h"
#include "wire/icrc.h"

#define ALB_IDENTS_MAX 1024

struct alb_idents {
    struct alb_map map; // address -> index of peers
    struct alb_prng prng;
    struct alb_icrc_peer peers[ALB_IDENTS_MAX];
    struct alb_icrc_flow flow; // that was checked last
    struct alb_addr last_addr; // the peer that spoke last, at last_index
    uint32_t last_index;       // ALB_IDENTS_MAX: none
    uint64_t map_memory[];
};

// Bytes that alb_idents_init fills.
size_t alb_idents_bytes(void);
// memory is zeroed, alb_idents_bytes() large and aligned to 64 bytes.
struct alb_idents *alb_idents_init(void *memory, const struct alb_siphash_key *hash_key);

// alb_icrc_check, with the state that belongs to datagram->peer.
bool alb_idents_check(struct alb_idents *idents, const struct alb_datagram *datagram, uint16_t *identification,
                      alb_time now);
