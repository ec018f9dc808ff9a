// SPDX-License-Identifier: BSD-2-Clause
// The timing wheel. Rules that hold between calls:
//  - a timer is filed under the highest digit (5 bits, above the lowest 10) in which its time differs from base, in the
//    slot that this digit names; one that is not after base is filed as if it were base;
//  - so the lowest occupied slot of the lowest occupied level holds the earliest timer, as the root of its heap.
#include "base/wheel.h"

#include <string.h>

enum {
    SHIFT = 10, // log2 of the nanoseconds that a slot of level 0 covers
    DIGIT = 5,  // log2 of the slots of a level
};

_Static_assert(1 << DIGIT == ALB_WHEEL_SLOTS, "a digit names a slot");
_Static_assert(SHIFT + DIGIT * ALB_WHEEL_LEVELS >= 64, "the levels reach to the end of time");

static bool is_before(const struct alb_timer *a, const struct alb_timer *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

// Joins two heaps; returns the root of the result. Neither root has siblings.
static struct alb_timer *heap_join(struct alb_timer *a, struct alb_timer *b)
{
    if (is_before(b, a)) {
        struct alb_timer *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->child;
    if (b->next != NULL)
        b->next->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

static struct alb_timer *take_first(struct alb_timer **list)
{
    struct alb_timer *first = *list;
    *list = first->next;
    first->next = NULL;
    first->prev = NULL;
    return first;
}

// Makes one heap of a list of siblings: in pairs from the left, then the pairs from the right, which is what keeps the
// cost logarithmic (Fredman, Sedgewick, Sleator, Tarjan: The pairing heap, 1986). NULL for an empty list.
static struct alb_timer *heap_from_siblings(struct alb_timer *list)
{
    struct alb_timer *pairs = NULL;
    while (list != NULL) {
        struct alb_timer *pair = take_first(&list);
        if (list != NULL)
            pair = heap_join(pair, take_first(&list));
        pair->next = pairs;
        pairs = pair;
    }
    if (pairs == NULL)
        return NULL;
    struct alb_timer *root = take_first(&pairs);
    while (pairs != NULL)
        root = heap_join(root, take_first(&pairs));
    return root;
}

// Cuts a timer that is not a root, with all below it, out of its heap.
static void heap_cut(struct alb_timer *timer)
{
    if (timer->prev->child == timer)
        timer->prev->child = timer->next;
    else
        timer->prev->next = timer->next;
    if (timer->next != NULL)
        timer->next->prev = timer->prev;
    timer->next = NULL;
    timer->prev = NULL;
}

static uint32_t digit_of(alb_time at, uint32_t level)
{
    return (uint32_t)(at >> (SHIFT + DIGIT * level)) & (ALB_WHEEL_SLOTS - 1);
}

// The level of the highest digit in which two moments differ, 0 if they share a slot of level 0.
static uint32_t level_between(alb_time a, alb_time b)
{
    uint64_t differs = (a ^ b) >> SHIFT;
    return differs == 0 ? 0 : (63 - (uint32_t)__builtin_clzll(differs)) / DIGIT;
}

static void set_root(struct alb_wheel *wheel, uint32_t slot, struct alb_timer *root)
{
    uint32_t level = slot / ALB_WHEEL_SLOTS;
    uint32_t bit = 1u << slot % ALB_WHEEL_SLOTS;
    wheel->roots[slot] = root;
    if (root != NULL) {
        wheel->slots[level] |= bit;
        wheel->levels |= 1u << level;
        return;
    }
    wheel->slots[level] &= ~bit;
    if (wheel->slots[level] == 0)
        wheel->levels &= ~(1u << level);
}

static void file_timer(struct alb_wheel *wheel, struct alb_timer *timer)
{
    alb_time at = ALB_MAX(timer->at, wheel->base);
    uint32_t level = level_between(at, wheel->base);
    uint32_t slot = level * ALB_WHEEL_SLOTS + digit_of(at, level);
    struct alb_timer *root = wheel->roots[slot];

    timer->slot = slot;
    timer->child = NULL;
    timer->next = NULL;
    timer->prev = NULL;
    if (root == NULL) {
        set_root(wheel, slot, timer);
        return;
    }
    wheel->roots[slot] = heap_join(root, timer);
}

// Files every timer of a heap anew.
static void file_heap(struct alb_wheel *wheel, struct alb_timer *root)
{
    struct alb_timer *rest = root; // a list through next
    while (rest != NULL) {
        struct alb_timer *timer = rest;
        rest = timer->next;
        if (timer->child != NULL) {
            struct alb_timer *last = timer->child;
            while (last->next != NULL)
                last = last->next;
            last->next = rest;
            rest = timer->child;
        }
        file_timer(wheel, timer);
    }
}

struct alb_timer *const *alb_wheel_earliest(const struct alb_wheel *wheel)
{
    if (wheel->levels == 0)
        return NULL;
    uint32_t level = (uint32_t)__builtin_ctz(wheel->levels);
    uint32_t slot = (uint32_t)__builtin_ctz(wheel->slots[level]);
    return &wheel->roots[level * ALB_WHEEL_SLOTS + slot];
}

static struct alb_timer *earliest(const struct alb_wheel *wheel)
{
    struct alb_timer *const *root = alb_wheel_earliest(wheel);
    return root ? *root : NULL;
}

// Moves base to now, when no timer is due by then. So all slots between are empty, and the only one whose timers may
// have to come down is the one that now enters at the highest level that changes.
static void advance(struct alb_wheel *wheel, alb_time now)
{
    if (now <= wheel->base)
        return;
    uint32_t level = level_between(now, wheel->base);
    wheel->base = now;
    if (level == 0)
        return;
    uint32_t slot = level * ALB_WHEEL_SLOTS + digit_of(now, level);
    struct alb_timer *root = wheel->roots[slot];
    if (root == NULL)
        return;
    set_root(wheel, slot, NULL);
    file_heap(wheel, root);
}

void alb_wheel_init(struct alb_wheel *wheel, alb_time now)
{
    memset(wheel, 0, sizeof(*wheel));
    wheel->base = now;
}

void alb_timer_init(struct alb_timer *timer)
{
    memset(timer, 0, sizeof(*timer));
    timer->at = ALB_TIME_NEVER;
    timer->slot = ALB_TIMER_UNARMED;
}

void alb_wheel_arm(struct alb_wheel *wheel, struct alb_timer *timer, alb_time at)
{
    alb_wheel_disarm(wheel, timer);
    if (at == ALB_TIME_NEVER)
        return;
    timer->at = at;
    timer->order = wheel->order++;
    file_timer(wheel, timer);
}

void alb_wheel_disarm(struct alb_wheel *wheel, struct alb_timer *timer)
{
    if (!alb_timer_is_armed(timer))
        return;
    uint32_t slot = timer->slot;
    struct alb_timer *root = wheel->roots[slot];
    struct alb_timer *below = heap_from_siblings(timer->child);
    if (root == timer) {
        set_root(wheel, slot, below);
    } else {
        heap_cut(timer);
        if (below != NULL)
            wheel->roots[slot] = heap_join(root, below);
    }
    timer->slot = ALB_TIMER_UNARMED;
}

alb_time alb_wheel_next_due(const struct alb_wheel *wheel)
{
    const struct alb_timer *timer = earliest(wheel);
    return timer != NULL ? timer->at : ALB_TIME_NEVER;
}

struct alb_timer *alb_wheel_pop_due(struct alb_wheel *wheel, alb_time now)
{
    struct alb_timer *timer = earliest(wheel);
    if (timer == NULL || timer->at > now) {
        advance(wheel, now);
        return NULL;
    }
    alb_wheel_disarm(wheel, timer);
    return timer;
}
