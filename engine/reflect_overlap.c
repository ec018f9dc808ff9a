// SPDX-License-Identifier: BSD-2-Clause
// Parts of one transaction that lie upon each other. Where two would leave different bytes in the same place, what is
// exposed could never be what was agreed. Parts may all lie upon all others, so that comparing each pair could take
// reading a peer's bytes 63 times.
#include "engine/reflect.h"

static const uint8_t *past(const struct alb_txn_range *part)
{
    return part->host + part->length;
}

// Of the parts that begin before this one the one that reaches furthest; where two begin together, the one that came
// first is before the other. NULL: there is none.
static const struct alb_txn_range *furthest_before(struct alb_txn_in *txn, const struct alb_txn_range *part)
{
    const struct alb_txn_range *furthest = NULL;
    bool came_later = false;
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        const struct alb_txn_range *other = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (other == part) {
            came_later = true;
            continue;
        }
        if (other->length == 0 || other->host > part->host || (other->host == part->host && came_later))
            continue;
        if (!furthest || past(other) > past(furthest))
            furthest = other;
    }
    return furthest;
}

static bool contradict(const struct alb_txn_range *before, const struct alb_txn_range *part)
{
    if (part->host >= past(before))
        return false;
    size_t offset = (size_t)(part->host - before->host);
    return memcmp(before->bytes + offset, part->bytes, ALB_MIN(before->length - offset, part->length)) != 0;
}

// One comparison for each part is enough: what it shares with any part before it, that part shares with the one that
// reaches furthest, and has been compared with it, or with one that has.
bool alb_txn_in_contradicts_itself(struct alb_txn_in *txn)
{
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        const struct alb_txn_range *part = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        const struct alb_txn_range *before = part->length ? furthest_before(txn, part) : NULL; // empty: nowhere
        if (before && contradict(before, part))
            return true;
    }
    return false;
}
