// SPDX-License-Identifier: BSD-2-Clause
// Memory regions and windows inside the engine: the key table, and the checks that stand between a key and memory.
#pragma once

#include "base/list.h"
#include "engine/verbs.h"

#include <stdatomic.h>

enum alb_region_kind {
    ALB_REGION_MR,
    ALB_REGION_MW,
};

struct alb_region {
    struct alb_engine *engine;
    struct alb_pd *pd;
    enum alb_region_kind kind;
    enum alb_mw_type mw_type;
    _Atomic uint32_t key; // its low byte changes when a window is bound, while requests that name it are posted
    uint32_t access;
    void *user;              // its owner's
    bool is_valid;           // false: a window not bound, or a key invalidated
    atomic_bool is_poisoned; // region; posting looks at it beside the engine (engine/reflect_post.c)
    uint64_t iova;
    uint64_t length;
    uint8_t *host;                // the byte at iova
    struct alb_region *parent;    // window: the region it is bound to
    struct alb_claim *claim_root; // region: all claims, also those made through its windows
    uint32_t window_count;        // region: windows bound to it
    struct alb_qp *qp;            // window of type 2: the queue pair it is bound on
    struct alb_list of_qp;        // link in that queue pair's windows
    _Atomic uint64_t *versions;   // region: version words of a transactional one (engine/region_version.h), or NULL
    uint64_t version_stride;      // bytes that one of them stands for
    uint32_t held_count;          // region: ranges whose readers are held out, or would be if it were transactional
    struct alb_list claims;       // made through this region or window (engine/region_claim.h)
    bool is_checked;              // region: transactions are proposed to the program (engine/transaction.h)
    void *checker;                // region: user of those proposals
    void *store;                  // region: what is decided goes to this journal; NULL: none
    uint64_t keeper;              // region: of that journal
};

// The region may not be used any more, nor through a window, until it is destroyed: what it holds is not what was
// agreed, and a reader could not see that.
void alb_region_poison(struct alb_region *region);
bool alb_region_is_poisoned(const struct alb_region *region);

// The region behind a window; a region itself.
static inline struct alb_region *alb_region_root(struct alb_region *region)
{
    return region->parent ? region->parent : region;
}

// Where a range of a region or of a window that is bound lies, in bytes from the beginning of the region behind it.
static inline uint64_t alb_region_offset(const struct alb_region *region, uint64_t va)
{
    const uint8_t *base = region->parent ? region->parent->host : region->host;
    return (uint64_t)(region->host - base) + (va - region->iova);
}

enum alb_access_result {
    ALB_ACCESS_OK,
    ALB_ACCESS_BAD_KEY,    // no such key, not valid now, another protection domain or queue pair
    ALB_ACCESS_BAD_BOUNDS, // beyond the region
    ALB_ACCESS_BAD_RIGHTS, // the region does not allow it
    ALB_ACCESS_POISONED,   // what the region holds is known to be wrong
};

// Finds the memory behind (key, va, length) for local use by a queue pair: access is 0 to read, ALB_ACCESS_LOCAL_WRITE
// to write.
enum alb_access_result alb_region_local(struct alb_engine *engine, const struct alb_pd *pd, uint32_t lkey, uint64_t va,
                                        uint64_t length, uint32_t access, uint8_t **host);

// The same for a peer's use through queue pair qp: access is one of ALB_ACCESS_REMOTE_*. What the queue pair itself
// allows is the caller's to check. A length of 0 needs no valid key. *region is what the key names, region or window;
// NULL for a length of 0.
enum alb_access_result alb_region_find_remote(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
                                              uint32_t access, struct alb_region **region, uint8_t **host);

// The work requests that change keys; qp is the one they were posted to. Each returns the completion's status.
enum alb_wc_status alb_mw_bind(struct alb_qp *qp, const struct alb_mw_bind *bind);
// LOCAL_INV: of a window of type 2 bound on qp.
enum alb_wc_status alb_region_invalidate_local(struct alb_qp *qp, uint32_t rkey);
// What a SEND with invalidate asks for; false if it may not (the responder answers with a remote access error).
bool alb_region_invalidate_remote(struct alb_qp *qp, uint32_t rkey);
// Unbinds the type 2 windows of a queue pair that ends.
void alb_region_release_qp(struct alb_qp *qp);

int alb_region_table_init(struct alb_engine *engine);
void alb_region_table_fini(struct alb_engine *engine);
