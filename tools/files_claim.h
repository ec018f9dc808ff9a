// SPDX-License-Identifier: BSD-2-Clause
// Who copies to and from a name, in `albedo serve`: the newest copy to it ends all others, those that wait for it in
// their turn, too.
#pragma once

#include "base/list.h"

#include <pthread.h>
#include <stdatomic.h>

struct files_claims {
    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t changed;
    struct alb_list claims; // in the order in which they were made
};

struct files_claim {
    struct alb_list link;
    const char *name;
    bool is_shared;
    _Atomic bool *is_cancelled; // the copy is to end
};

void files_claims_init(struct files_claims *claims);

// Whether somebody copies to or from that name.
bool files_claims_has(struct files_claims *claims, const char *name);

// Makes the claim of a copy to a name, which stays where it is until it is dropped. Earlier ones to that name are
// cancelled, and it waits until they are dropped. False: a newer one has cancelled it meanwhile; it is dropped.
bool files_claim_take(struct files_claims *claims, struct files_claim *claim, const char *name,
                      _Atomic bool *is_cancelled);
// That of a copy from a name, along with others. False: one to it has begun; there is nothing to drop.
bool files_claim_share(struct files_claims *claims, struct files_claim *claim, const char *name,
                       _Atomic bool *is_cancelled);
void files_claim_drop(struct files_claims *claims, struct files_claim *claim);
