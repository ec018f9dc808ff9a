// SPDX-License-Identifier: BSD-2-Clause
#include "tools/files_claim.h"

#include <string.h>

void files_claims_init(struct files_claims *claims)
{
    *claims = (struct files_claims){.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    alb_list_init(&claims->claims);
}

static bool has(const struct files_claims *claims, const char *name, bool counts_shared)
{
    ALB_LIST_FOR_EACH (&claims->claims, node) {
        const struct files_claim *claim = ALB_LIST_ENTRY(node, struct files_claim, link);
        if (strcmp(claim->name, name) == 0 && (counts_shared || !claim->is_shared))
            return true;
    }
    return false;
}

bool files_claims_has(struct files_claims *claims, const char *name)
{
    pthread_mutex_lock(&claims->mutex);
    bool has_it = has(claims, name, true);
    pthread_mutex_unlock(&claims->mutex);
    return has_it;
}

static void make(struct files_claims *claims, struct files_claim *claim)
{
    alb_list_push_back(&claims->claims, &claim->link);
}

static void drop(struct files_claims *claims, struct files_claim *claim)
{
    alb_list_remove(&claim->link);
    pthread_cond_broadcast(&claims->changed);
}

// True: there are some.
static bool cancel_earlier(const struct files_claims *claims, const struct files_claim *claim)
{
    bool is_any = false;
    ALB_LIST_FOR_EACH (&claims->claims, node) {
        const struct files_claim *other = ALB_LIST_ENTRY(node, struct files_claim, link);
        if (other == claim)
            break;
        if (strcmp(other->name, claim->name) != 0)
            continue;
        atomic_store(other->is_cancelled, true);
        is_any = true;
    }
    return is_any;
}

bool files_claim_take(struct files_claims *claims, struct files_claim *claim, const char *name,
                      _Atomic bool *is_cancelled)
{
    *claim = (struct files_claim){.name = name, .is_cancelled = is_cancelled};
    pthread_mutex_lock(&claims->mutex);
    make(claims, claim);
    if (cancel_earlier(claims, claim))
        pthread_cond_broadcast(&claims->changed); // some of them may wait in there themselves
    while (!atomic_load(is_cancelled) && cancel_earlier(claims, claim))
        pthread_cond_wait(&claims->changed, &claims->mutex);
    bool is_taken = !atomic_load(is_cancelled);
    if (!is_taken)
        drop(claims, claim);
    pthread_mutex_unlock(&claims->mutex);
    return is_taken;
}

bool files_claim_share(struct files_claims *claims, struct files_claim *claim, const char *name,
                       _Atomic bool *is_cancelled)
{
    *claim = (struct files_claim){.name = name, .is_shared = true, .is_cancelled = is_cancelled};
    pthread_mutex_lock(&claims->mutex);
    bool is_alone = !has(claims, name, false);
    if (is_alone)
        make(claims, claim);
    pthread_mutex_unlock(&claims->mutex);
    return is_alone;
}

void files_claim_drop(struct files_claims *claims, struct files_claim *claim)
{
    pthread_mutex_lock(&claims->mutex);
    drop(claims, claim);
    pthread_mutex_unlock(&claims->mutex);
}
