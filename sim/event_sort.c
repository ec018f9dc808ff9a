// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_sort.h"

#include <stdlib.h>
#include <string.h>

enum {
    INSERT_MAX = 16, // more are halved, sorted and merged,
    MERGE_MAX = 512, // and still more are left to qsort
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

void alb_sim_sort(struct alb_sim_slot *slots, uint32_t count, bool by_node)
{
    struct alb_sim_slot left[MERGE_MAX / 2];
    if (count <= MERGE_MAX)
        merge(slots, count, left, by_node);
    else
        qsort(slots, count, sizeof(*slots), by_node ? compare_by_node : compare);
}
