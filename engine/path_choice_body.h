// SPDX-License-Identifier: BSD-2-Clause
// The choice among many paths, LANES of them at a time: each file that includes this one is compiled for vectors of
// that many words, and has a chooser named CHOOSER. A path's load and its pace are a word each, whose fields are taken
// out by shifts. What does not fill a vector goes path by path.
#include "engine/path_choice.h"

typedef uint64_t words __attribute__((vector_size(8 * LANES)));
typedef uint64_t words_anywhere __attribute__((vector_size(8 * LANES), aligned(4), may_alias));

_Static_assert(sizeof(struct alb_path_load) == 8 && sizeof(struct alb_path_pace) == 8, "a word each");
_Static_assert(offsetof(struct alb_path_load, weight) == 4 && offsetof(struct alb_path_load, state) == 5 &&
                   offsetof(struct alb_path_pace, since) == 4 && ALB_PATH_GOOD == 0,
               "fields are where they are looked for");

#define LOW_WORDS 0xffffffff

static inline words load_words(const void *at)
{
    return *(const words_anywhere *)at;
}

// By a mask that is all ones or none in each lane.
static inline words pick_words(words mask, words a, words b)
{
    return (mask & a) | (~mask & b);
}

static inline words is_good(words loads)
{
    return (words)((loads >> 40 & 0xff) == ALB_PATH_GOOD);
}

// Lane by lane, paths that are not good left out.
struct mean {
    words sum_ns, known;
};

static inline void add_to_mean(struct mean *mean, words loads, words paces, uint64_t late_ns)
{
    words recent_ns = paces & ALB_PATH_RECENT_NS_MAX, good = is_good(loads);
    words ns = pick_words((words)(recent_ns < late_ns), recent_ns, (words){0} + late_ns);
    mean->sum_ns += ns & good;
    mean->known += (words)(recent_ns != 0) & good & 1;
}

static uint32_t mean_of(const struct mean *mean, const struct alb_paths_out *paths, uint32_t from, uint64_t late_ns)
{
    uint64_t sum_ns = 0, known = 0;
    for (uint32_t i = 0; i < LANES; i++) {
        sum_ns += mean->sum_ns[i];
        known += mean->known[i];
    }
    for (uint32_t path = from; path < paths->count; path++)
        if (alb_path_load(paths, path)->state == ALB_PATH_GOOD) {
            uint32_t recent_ns = alb_path_pace(paths, path)->recent_ns;
            sum_ns += ALB_MIN((uint64_t)recent_ns, late_ns);
            known += recent_ns > 0;
        }
    return known ? (uint32_t)(sum_ns / known) : 0;
}

// As alb_path_offer_of has it.
static inline words costs_of(words loads, words paces, const struct alb_path_outlook *outlook, uint32_t bytes)
{
    words recent_ns = paces & ALB_PATH_RECENT_NS_MAX;
    words ns = pick_words((words)(recent_ns == 0), (words){0} + outlook->unknown_ns, recent_ns);
    words passed = (outlook->tick - (paces >> 32)) & LOW_WORDS, is_waiting = -(paces >> 31 & 1);
    words waited_ns = passed << 10 & is_waiting;
    ns = pick_words((words)(ns > waited_ns), ns, waited_ns);
    ns = pick_words((words)(ns < ALB_PATH_DELAY_MAX_NS), ns, (words){0} + ALB_PATH_DELAY_MAX_NS);
    words is_late = (words)(ns > outlook->late_ns) | -(paces >> 30 & 1);
    return ((loads & LOW_WORDS) + bytes) * ((ns << (is_late & ALB_PATH_LATE_SHIFT) >> 6) + 1);
}

static uint16_t cheapest(const struct alb_paths_out *paths, const struct alb_path_outlook *outlook, uint32_t bytes,
                         uint32_t *typical_ns)
{
    const struct alb_path_load *loads = alb_path_load(paths, 0);
    const struct alb_path_pace *paces = alb_path_pace(paths, 0);
    const struct alb_path_offer none = alb_path_offer_none();
    words best_cost = (words){0} + none.cost, best_weight = (words){0} + none.weight;
    words best_place = (words){0} + none.place, number = {0};
    uint32_t first = paths->current + 1u, count = paths->count, path = 0;
    struct mean mean = {{0}, {0}};
    for (uint32_t i = 0; i < LANES; i++)
        number[i] = i;
    for (; path + LANES <= count; path += LANES, number += LANES) {
        words load = load_words(&loads[path]), pace = load_words(&paces[path]);
        words cost = costs_of(load, pace, outlook, bytes), weight = load >> 32 & 0xff;
        words place = number - first + ((words)(number < first) & count);
        words left = cost * best_weight, right = best_cost * weight;
        words is_better = (words)(left < right) | ((words)(left == right) & (words)(place < best_place));
        is_better &= is_good(load);
        best_cost = pick_words(is_better, cost, best_cost);
        best_weight = pick_words(is_better, weight, best_weight);
        best_place = pick_words(is_better, place, best_place);
        add_to_mean(&mean, load, pace, outlook->late_ns);
    }
    struct alb_path_offer best = none;
    for (uint32_t i = 0; i < LANES; i++) {
        const struct alb_path_offer offer = {best_cost[i], best_weight[i], best_place[i]};
        best = alb_path_offer_is_better(&offer, &best) ? offer : best;
    }
    *typical_ns = mean_of(&mean, paths, path, outlook->late_ns);
    for (; path < count; path++) {
        const struct alb_path_offer offer = alb_path_offer_of(paths, path, outlook, bytes);
        if (loads[path].state == ALB_PATH_GOOD && alb_path_offer_is_better(&offer, &best))
            best = offer;
    }
    alb_assert(best.place < count);
    return (uint16_t)(best.place + first < count ? best.place + first : best.place + first - count);
}

static uint32_t typical(const struct alb_paths_out *paths, uint64_t late_ns)
{
    const struct alb_path_load *loads = alb_path_load(paths, 0);
    const struct alb_path_pace *paces = alb_path_pace(paths, 0);
    struct mean mean = {{0}, {0}};
    uint32_t path = 0;
    for (; path + LANES <= paths->count; path += LANES)
        add_to_mean(&mean, load_words(&loads[path]), load_words(&paces[path]), late_ns);
    return mean_of(&mean, paths, path, late_ns);
}

// The highest bit of each half: of the difference of times, and of what says that it waits.
static bool has_waited(const struct alb_paths_out *paths, uint32_t first, uint32_t past, alb_path_tick since)
{
    const struct alb_path_pace *paces = alb_path_pace(paths, 0);
    words any = {0}, later = (words){0} + ((uint64_t)since << 32);
    uint64_t is_any = 0;
    uint32_t path = first;
    for (; path + LANES <= past; path += LANES) {
        words pace = load_words(&paces[path]);
        any |= (pace - later) & pace << 32;
    }
    for (uint32_t i = 0; i < LANES; i++)
        is_any |= any[i] >> 63;
    for (; path < past; path++)
        is_any |= alb_path_waits_since(&paces[path], since);
    return is_any != 0;
}

#define CHOOSER_NAME_(chooser) #chooser
#define CHOOSER_NAME(chooser)  CHOOSER_NAME_(chooser)

const struct alb_path_chooser CHOOSER = {CHOOSER_NAME(CHOOSER), cheapest, typical, has_waited};
