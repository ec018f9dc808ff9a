// SPDX-License-Identifier: BSD-2-Clause
// The choice among many paths for every processor, path by path.
#include "engine/path_choice.h"

// What the delay is at least, without a comparison: nearly all paths are out of question by this already.
static inline uint64_t least_delay(uint32_t recent_ns)
{
    return (recent_ns & (ALB_PATH_DELAY_MAX_NS - 1)) / 64 + 1;
}

static uint16_t cheapest(const struct alb_paths_out *paths, const struct alb_path_outlook *outlook, uint32_t bytes,
                         uint32_t *typical_ns)
{
    const struct alb_path_load *loads = alb_path_load(paths, 0);
    const struct alb_path_pace *paces = alb_path_pace(paths, 0);
    struct alb_path_offer best = alb_path_offer_none();
    uint64_t sum_ns = 0;
    uint32_t known = 0, best_path = paths->count;
    for (uint32_t path = 0; path < paths->count; path++) {
        const struct alb_path_load *load = &loads[path];
        uint32_t recent_ns = paces[path].recent_ns;
        uint64_t bytes_there = (uint64_t)load->inflight_bytes + bytes;
        if (load->state != ALB_PATH_GOOD)
            continue;
        sum_ns += ALB_MIN((uint64_t)recent_ns, outlook->late_ns);
        known += recent_ns > 0;
        if (alb_likely(bytes_there * least_delay(recent_ns) * best.weight > best.cost * load->weight))
            continue;
        const struct alb_path_offer offer = alb_path_offer_of(paths, path, outlook, bytes);
        if (alb_path_offer_is_better(&offer, &best)) {
            best = offer;
            best_path = path;
        }
    }
    alb_assert(best_path < paths->count);
    *typical_ns = known ? (uint32_t)(sum_ns / known) : 0;
    return (uint16_t)best_path;
}

static uint32_t typical(const struct alb_paths_out *paths, uint64_t late_ns)
{
    const struct alb_path_load *loads = alb_path_load(paths, 0);
    const struct alb_path_pace *paces = alb_path_pace(paths, 0);
    uint64_t sum_ns = 0;
    uint32_t known = 0;
    for (uint32_t path = 0; path < paths->count; path++)
        if (loads[path].state == ALB_PATH_GOOD) {
            sum_ns += ALB_MIN((uint64_t)paces[path].recent_ns, late_ns);
            known += paces[path].recent_ns > 0;
        }
    return known ? (uint32_t)(sum_ns / known) : 0;
}

static bool has_waited(const struct alb_paths_out *paths, uint32_t first, uint32_t past, alb_path_tick since)
{
    const struct alb_path_pace *paces = alb_path_pace(paths, 0);
    uint32_t path = first;
    while (path < past && !alb_path_waits_since(&paces[path], since))
        path++;
    return path < past;
}

const struct alb_path_chooser alb_path_chooser_plain = {"plain", cheapest, typical, has_waited};
