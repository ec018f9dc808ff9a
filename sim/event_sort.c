// SPDX-License-Identifier: BSD-2-Clause
#include "sim/event_sort.h"

#include <stdlib.h>

enum {
    INSERT_MAX = 64, // more are left to qsort
};

static int compare(const void *a, const void *b)
{
    return alb_sim_slot_is_before(a, b, false) ? -1 : 1;
}

static int compare_by_node(const void *a, const void *b)
{
    return alb_sim_slot_is_before(a, b, true) ? -1 : 1;
}

void alb_sim_sort(struct alb_sim_slot *slots, uint32_t count, bool by_node)
{
    if (count > INSERT_MAX) {
        qsort(slots, count, sizeof(*slots), by_node ? compare_by_node : compare);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        struct alb_sim_slot slot = slots[i];
        uint32_t at = i;
        for (; at > 0 && alb_sim_slot_is_before(&slot, &slots[at - 1], by_node); at--)
            slots[at] = slots[at - 1];
        slots[at] = slot;
    }
}
