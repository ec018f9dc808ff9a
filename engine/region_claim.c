// SPDX-License-Identifier: BSD-2-Clause
// A treap (R. Seidel, C. Aragon, "Randomized search trees", 1996) of intervals by their beginning. Each node knows how
// far those below it reach, and whether they have one owner: then a question that spares this owner need not look at
// them. Priorities are random numbers that no peer can foretell, so whatever it claims, the tree stays flat.
#include "engine/region_claim.h"

#include "engine/impl.h"

static bool is_before(const struct alb_claim *a, const struct alb_claim *b)
{
    return a->first != b->first ? a->first < b->first : (uintptr_t)a < (uintptr_t)b;
}

static void add_child(struct alb_claim *node, const struct alb_claim *child)
{
    if (!child)
        return;
    node->past_max = ALB_MAX(node->past_max, child->past_max);
    node->is_mixed |= child->is_mixed || child->owner != node->owner;
}

static void update(struct alb_claim *node)
{
    node->past_max = node->past;
    node->is_mixed = false;
    add_child(node, node->left);
    add_child(node, node->right);
}

// Those before the claim, and those behind it.
static void split(struct alb_claim *node, const struct alb_claim *at, struct alb_claim **before,
                  struct alb_claim **behind)
{
    if (!node) {
        *before = *behind = NULL;
        return;
    }
    if (is_before(node, at)) {
        split(node->right, at, &node->right, behind);
        *before = node;
    } else {
        split(node->left, at, before, &node->left);
        *behind = node;
    }
    update(node);
}

// All of the first tree are before all of the second.
static struct alb_claim *join(struct alb_claim *first, struct alb_claim *second)
{
    if (!first || !second)
        return first ? first : second;
    if (first->priority > second->priority) {
        first->right = join(first->right, second);
        update(first);
        return first;
    }
    second->left = join(first, second->left);
    update(second);
    return second;
}

static struct alb_claim *insert(struct alb_claim *node, struct alb_claim *claim)
{
    if (!node || claim->priority > node->priority) {
        split(node, claim, &claim->left, &claim->right);
        update(claim);
        return claim;
    }
    if (is_before(claim, node))
        node->left = insert(node->left, claim);
    else
        node->right = insert(node->right, claim);
    update(node);
    return node;
}

static struct alb_claim *erase(struct alb_claim *node, const struct alb_claim *claim)
{
    if (node == claim)
        return join(node->left, node->right);
    if (is_before(claim, node))
        node->left = erase(node->left, claim);
    else
        node->right = erase(node->right, claim);
    update(node);
    return node;
}

// True if a claim of the tree overlaps first ... past - 1 and is not of the spared owner (NULL: none is spared).
static bool overlaps(const struct alb_claim *node, uint64_t first, uint64_t past, const void *spared)
{
    if (!node || node->past_max <= first || (node->owner == spared && !node->is_mixed))
        return false;
    if (overlaps(node->left, first, past, spared))
        return true;
    if (node->first >= past)
        return false;
    return (node->past > first && node->owner != spared) || overlaps(node->right, first, past, spared);
}

void alb_claim_init(struct alb_claim *claim, const void *owner, void (*on_gone)(struct alb_claim *claim))
{
    alb_assert(owner);
    *claim = (struct alb_claim){.owner = owner, .on_gone = on_gone};
    alb_list_init(&claim->of_region);
}

bool alb_region_claim(struct alb_region *region, struct alb_claim *claim, uint64_t va, uint64_t length)
{
    struct alb_region *root = alb_region_root(region);
    alb_assert(!claim->region);
    claim->first = alb_region_offset(region, va);
    claim->past = claim->first + length;
    if (length > 0) {
        if (overlaps(root->claim_root, claim->first, claim->past, claim->owner))
            return false;
        claim->priority = alb_rng_u32(&region->engine->rng);
        root->claim_root = insert(root->claim_root, claim);
    }
    claim->region = region;
    alb_list_push_back(&region->claims, &claim->of_region);
    return true;
}

void alb_region_unclaim(struct alb_claim *claim)
{
    if (!claim->region)
        return;
    struct alb_region *root = alb_region_root(claim->region);
    if (claim->past > claim->first)
        root->claim_root = erase(root->claim_root, claim);
    alb_list_remove(&claim->of_region);
    claim->region = NULL;
}

bool alb_region_is_claimed(struct alb_region *region, uint64_t va, uint64_t length)
{
    const struct alb_claim *claims = alb_region_root(region)->claim_root;
    if (alb_likely(!claims) || length == 0)
        return false;
    uint64_t first = alb_region_offset(region, va);
    return overlaps(claims, first, first + length, NULL);
}

void alb_region_claims_are_gone(struct alb_region *region)
{
    while (!alb_list_is_empty(&region->claims)) {
        struct alb_claim *claim = ALB_LIST_ENTRY(region->claims.next, struct alb_claim, of_region);
        alb_region_unclaim(claim);
        if (claim->on_gone)
            claim->on_gone(claim);
    }
}
