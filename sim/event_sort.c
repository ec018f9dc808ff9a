// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_sort.h"

#include <stdlib.h>
#include <string.h>

enum {
    INSERT_MAX = 16, // more are dealt out by time, if that leaves no more than so many together,
    DEAL_MAX = 128,
    BUCKETS = 128,
    MERGE_MAX = 512, // or halved, sorted and merged, and still more are left to qsort
};

static int compare(const void *a, const void *b)
{
    return alb_sim_slot_is_before(a, b, false) ? -1 : 1;
}

static int compare_by_node(const void *a, const void *b)
{
    return alb_sim_slot_is_before(a, b, true) ? -1 : 1;
}

static void insert(struct alb_sim_slot *slots, uint32_t count, bool by_node)
{
    for (uint32_t i = 1; i < count; i++) {
        struct alb_sim_slot slot = slots[i];
        uint32_t at = i;
        for (; at > 0 && alb_sim_slot_is_before(&slot, &slots[at - 1], by_node); at--)
            slots[at] = slots[at - 1];
        slots[at] = slot;
    }
}

// left: room for half of them.
static void merge(struct alb_sim_slot *slots, uint32_t count, struct alb_sim_slot *left, bool by_node)
{
    uint32_t half = count / 2, from_left = 0, from_right = half, to = 0;
    if (count <= INSERT_MAX) {
        insert(slots, count, by_node);
        return;
    }
    merge(slots, half, left, by_node);
    merge(slots + half, count - half, left, by_node);
    if (!alb_sim_slot_is_before(&slots[half], &slots[half - 1], by_node))
        return;
    memcpy(left, slots, half * sizeof(*left));
    while (from_left < half && from_right < count) {
        bool is_right = alb_sim_slot_is_before(&slots[from_right], &left[from_left], by_node);
        slots[to++] = is_right ? slots[from_right] : left[from_left];
        from_right += is_right;
        from_left += !is_right;
    }
    memcpy(&slots[to], &left[from_left], (half - from_left) * sizeof(*left));
}

// By how many bits a time since the first one is shifted to be a bucket's number.
static uint32_t bucket_shift(const struct alb_sim_slot *slots, uint32_t count, alb_sim_time *first)
{
    alb_sim_time last = slots[0].at;
    *first = slots[0].at;
    for (uint32_t i = 1; i < count; i++) {
        *first = ALB_MIN(*first, slots[i].at);
        last = ALB_MAX(last, slots[i].at);
    }
    uint64_t span = (last - *first) / BUCKETS;
    return span ? 64 - (uint32_t)__builtin_clzll(span) : 0;
}

// The events of a window come at any time within it, so that few fall into one bucket. False, and nothing has changed:
// here they are crowded.
static bool deal(struct alb_sim_slot *slots, uint32_t count)
{
    struct alb_sim_slot dealt[DEAL_MAX];
    uint8_t ends[BUCKETS] = {0};
    alb_sim_time first;
    uint32_t shift = bucket_shift(slots, count, &first), most = 0, sum = 0;
    for (uint32_t i = 0; i < count; i++)
        ends[(slots[i].at - first) >> shift]++;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        most = ALB_MAX(most, (uint32_t)ends[i]);
        sum += ends[i];
        ends[i] = (uint8_t)sum;
    }
    if (most > INSERT_MAX)
        return false;
    for (uint32_t i = count; i-- > 0;)
        dealt[--ends[(slots[i].at - first) >> shift]] = slots[i];
    memcpy(slots, dealt, count * sizeof(*slots));
    insert(slots, count, false);
    return true;
}

void alb_sim_sort(struct alb_sim_slot *slots, uint32_t count, bool by_node)
{
    struct alb_sim_slot left[MERGE_MAX / 2];
    if (count > INSERT_MAX && count <= DEAL_MAX && !by_node && deal(slots, count))
        return;
    if (count <= MERGE_MAX)
        merge(slots, count, left, by_node);
    else
        qsort(slots, count, sizeof(*slots), by_node ? compare_by_node : compare);
}
