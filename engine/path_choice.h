// SPDX-License-Identifier: BSD-2-Clause
// Which of many paths costs least. Each packet asks that of all of them, which makes it the engine's longest loop: the
// same answer is found in several ways, and the one for the widest vectors that the processor has is taken.
//
// What a path costs are the bytes in flight on it, with those that would come, by its weight, times the delay that is
// expected: how long what leaves now will be under way.
#pragma once

#include "engine/csa_path.h"

#define ALB_PATH_DELAY_MAX_NS (1u << 28) // longer ones make no difference
#define ALB_PATH_LATE_SHIFT   3          // a path that is late counts as eight times longer still

// What a choice goes by, besides the paths.
struct alb_path_outlook {
    uint64_t unknown_ns; // of a path that is not measured
    uint64_t late_ns;    // a path that takes longer is late; UINT64_MAX: nothing is known
    alb_path_tick tick;  // now
};

struct alb_path_chooser {
    const char *name;
    // The good path that bytes cost least on, of equal ones the first behind the current one, in turn. Some path is
    // good. *typical_ns: as typical() tells.
    uint16_t (*cheapest)(const struct alb_paths_out *paths, const struct alb_path_outlook *outlook, uint32_t bytes,
                         uint32_t *typical_ns);
    // Mean of recent_ns of good paths that have one, of late ones as much as makes them late; 0: none has.
    uint32_t (*typical)(const struct alb_paths_out *paths, uint64_t late_ns);
    // True if one of those from first up to past waits, and has done so since before that moment.
    bool (*has_waited)(const struct alb_paths_out *paths, uint32_t first, uint32_t past, alb_path_tick since);
};

extern const struct alb_path_chooser alb_path_chooser_plain;
extern const struct alb_path_chooser alb_path_chooser_avx2;

// Those that run on this machine, the slowest first; NULL behind the last.
const struct alb_path_chooser *alb_path_chooser(uint32_t index);
// The last of them. Only for paths that have paces.
const struct alb_path_chooser *alb_path_chooser_best(void);

// How long what leaves now will be under way: as long as the last few packets were, and no less than what left before
// it has been already without news of it. A path that is not known may be just not late.
static inline uint64_t alb_path_delay_ns(const struct alb_path_pace *pace, const struct alb_path_outlook *outlook)
{
    uint64_t ns = pace->recent_ns ? pace->recent_ns : outlook->unknown_ns;
    uint64_t waited_ns = (uint64_t)(outlook->tick - pace->since) << 10 & -(uint64_t)pace->is_waiting;
    return ALB_MIN(ALB_MAX(ns, waited_ns), (uint64_t)ALB_PATH_DELAY_MAX_NS);
}

static inline bool alb_path_waits_since(const struct alb_path_pace *pace, alb_path_tick since)
{
    return pace->is_waiting && (int32_t)(pace->since - since) < 0;
}

// A path by what it costs, and by how many places it is behind the current one. What one costs is compared by its
// weight.
struct alb_path_offer {
    uint64_t cost, weight, place;
};

static inline bool alb_path_offer_is_better(const struct alb_path_offer *a, const struct alb_path_offer *b)
{
    uint64_t left = a->cost * b->weight, right = b->cost * a->weight;
    return left != right ? left < right : a->place < b->place;
}

// Worse than any.
static inline struct alb_path_offer alb_path_offer_none(void)
{
    return (struct alb_path_offer){UINT64_MAX / ALB_PATH_WEIGHT_MAX, 1, UINT64_MAX};
}

// What bytes cost on the path. In parts of 64 ns: a late one is in the way of others, and of the end of a message, and
// gets more only if all are full.
static inline struct alb_path_offer alb_path_offer_of(const struct alb_paths_out *paths, uint32_t path,
                                                      const struct alb_path_outlook *outlook, uint32_t bytes)
{
    const struct alb_path_load *load = alb_path_load(paths, path);
    const struct alb_path_pace *pace = alb_path_pace(paths, path);
    uint32_t first = paths->current + 1u;
    uint64_t ns = alb_path_delay_ns(pace, outlook);
    uint64_t delay = (ns << (ns > outlook->late_ns || pace->is_late ? ALB_PATH_LATE_SHIFT : 0) >> 6) + 1;
    return (struct alb_path_offer){((uint64_t)load->inflight_bytes + bytes) * delay, load->weight,
                                   path >= first ? path - first : path + paths->count - first};
}
