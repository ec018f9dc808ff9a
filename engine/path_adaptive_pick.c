// SPDX-License-Identifier: BSD-2-Clause
// Path policy "adaptive": which of the paths that have not been left the next burst takes.
//
// Spreading. A burst takes the path whose bytes in flight, by its weight, would be fewest: a slow path empties slowly
// and so gets little by itself, before anything is known of it (join the shortest queue, weighted). Where there are
// many paths they are multiplied by the delay that is expected: that of the last few packets, or for how long the one
// that is under way has not been reported. A path much later than the typical one waits until the others are full, as
// paths with marked packets do in REPS (recycled entropies, Bonato et al., 2024), and until it is measured again: most
// messages are over before anything smoother has followed. Weights follow from losses and marks, and round-trip times
// over a longer time (the flowlet weights of CONGA and Presto have the same end, from switches). Paths of unequal delay
// are weighed, not left. Answers have no bytes in flight: they take paths in turn (choose_for_answer).
#include "engine/path_adaptive.h"

enum {
    TRY_TURNS = 4,      // choices for answers: one of them may try a path, lest they go to dead ones in a row
    EXPLORE_TURNS = 32, // choices: one of them goes where nothing was measured lately,
    EXPLORE_RTTS = 8,   // for so long
    GRAIN_BYTES = 2048, // what a burst counts for where it is chosen
    FITNESS_LATE = 1,   // of a path for an answer; else its weight, which is more,
    FITNESS_KNOWN = 2,  // and so many times that if it has been measured and the answer is awaited
    FITNESS_MAX = FITNESS_KNOWN * ALB_PATH_WEIGHT_MAX,
};

// True if the path is to be tried, and nothing that left by it before is still to come; or if the trial wants more,
// which is as much again as has come.
static bool is_due(const struct alb_path_out *out, enum alb_path_state state, alb_time now)
{
    uint32_t waiting = (uint32_t)alb_psn_diff(out->next, out->settled);
    if (state == ALB_PATH_TRYING)
        return out->recent_sent + waiting < alb_path_trial_packets(out) &&
               waiting < ALB_MAX((uint32_t)out->recent_sent, (uint32_t)ALB_PATH_TRIAL_PACKETS);
    return state == ALB_PATH_LEFT && waiting == 0 && alb_path_has_come(out->try_at, now);
}

// True if a packet on it now and then keeps what is known of it true.
static bool is_forgotten(const struct alb_paths_out *paths, uint32_t path, alb_time now)
{
    const struct alb_path_out *out = &paths->path[path];
    const struct alb_path_pace *pace = alb_path_pace(paths, path);
    uint64_t passed_ns = (uint64_t)(alb_path_tick_of(now) - out->since) << 10;
    return alb_path_is_good(paths, path) && !out->is_measured && !alb_path_is_waiting(out) &&
           (!pace || passed_ns >= (uint64_t)EXPLORE_RTTS * pace->recent_ns);
}

// The path whose turn it is to be explored; count: it need not be.
static uint32_t find_forgotten(const struct alb_paths_out *paths, alb_time now)
{
    uint32_t path = paths->turn / EXPLORE_TURNS % paths->count;
    return is_forgotten(paths, path, now) ? path : paths->count;
}

static struct alb_path_outlook outlook_of(const struct alb_paths_out *paths, alb_time now)
{
    return (struct alb_path_outlook){(uint64_t)paths->typical_ns * ALB_PATH_LATE_PERCENT / 100, alb_path_late_ns(paths),
                                     alb_path_tick_of(now)};
}

static void begin_trial(struct alb_paths_out *paths, uint32_t path)
{
    if (alb_path_load(paths, path)->state == ALB_PATH_LEFT)
        alb_path_begin_record(paths, &paths->path[path]);
    alb_path_set_state(paths, path, ALB_PATH_TRYING);
}

bool alb_path_adaptive_may_try(struct alb_paths_out *paths, uint16_t path, alb_time now)
{
    enum alb_path_state state = alb_path_load(paths, path)->state;
    if (state == ALB_PATH_GOOD || !is_due(&paths->path[path], state, now))
        return false;
    begin_trial(paths, path);
    return true;
}

// The first one behind the current one, in turn, that is to be tried; count: none is.
static uint32_t find_due(const struct alb_paths_out *paths, alb_time now)
{
    uint32_t count = paths->count, path = paths->current;
    if (alb_likely(paths->good == count))
        return count;
    for (uint32_t i = 0; i < count; i++) {
        path = path + 1 < count ? path + 1 : 0;
        enum alb_path_state state = alb_path_load(paths, path)->state;
        if (state != ALB_PATH_GOOD && is_due(&paths->path[path], state, now))
            return path;
    }
    return count;
}

// Of few paths: the good one whose bytes in flight, by its weight, would be fewest, after the current one in turn.
static uint16_t choose_of_few(const struct alb_paths_out *paths, uint32_t bytes)
{
    const struct alb_path_load *loads = alb_path_load(paths, 0);
    struct alb_path_offer best = alb_path_offer_none();
    uint32_t count = paths->count, path = paths->current, best_path = count;
    for (uint32_t i = 0; i < count; i++) {
        path = path + 1 < count ? path + 1 : 0;
        const struct alb_path_load *load = &loads[path];
        const struct alb_path_offer offer = {(uint64_t)load->inflight_bytes + bytes, load->weight, i};
        if (load->state == ALB_PATH_GOOD && alb_path_offer_is_better(&offer, &best)) {
            best = offer;
            best_path = path;
        }
    }
    alb_assert(best_path < count);
    return (uint16_t)best_path;
}

static uint16_t choose_of_many(struct alb_paths_out *paths, uint32_t bytes, alb_time now)
{
    const struct alb_path_outlook outlook = outlook_of(paths, now);
    return alb_path_chooser_best()->cheapest(paths, &outlook, bytes, &paths->typical_ns);
}

// The path that costs least, or one that is to be tried, which is marked so.
static uint16_t choose_for_data(struct alb_paths_out *paths, uint32_t bytes, alb_time now)
{
    uint32_t due = find_due(paths, now);
    if (alb_unlikely(due < paths->count)) {
        begin_trial(paths, due);
        return (uint16_t)due;
    }
    bytes = ALB_MIN(bytes, (uint32_t)GRAIN_BYTES);
    return alb_path_pace(paths, 0) ? choose_of_many(paths, bytes, now) : choose_of_few(paths, bytes);
}

// Where there are few paths only what is under way tells of lateness.
static bool is_late(const struct alb_paths_out *paths, uint32_t path, const struct alb_path_outlook *outlook)
{
    const struct alb_path_pace *pace = alb_path_pace(paths, path);
    if (pace)
        return alb_path_delay_ns(pace, outlook) > outlook->late_ns;
    const struct alb_path_out *out = &paths->path[path];
    uint64_t waited_ns = (uint64_t)(outlook->tick - out->since) << 10;
    return alb_path_is_waiting(out) && waited_ns > (uint64_t)out->rtt_ns * ALB_PATH_LATE_PERCENT / 100;
}

static uint32_t fitness_of(const struct alb_paths_out *paths, uint32_t path, const struct alb_path_outlook *outlook)
{
    const struct alb_path_pace *pace = alb_path_pace(paths, path);
    if (is_late(paths, path, outlook))
        return FITNESS_LATE;
    bool is_known = paths->is_awaited && pace && pace->recent_ns > 0;
    return alb_path_load(paths, path)->weight * (is_known ? FITNESS_KNOWN : 1u);
}

// Answers do not count as bytes in flight, and a side that only answers learns little of its paths, and nothing while
// nothing reaches the peer. If the best path took them, then when that one dies all answers would be lost, one after
// the other, until the peer gives up. So all that are equally fit take them in turn, and when nothing is reported of
// any, all. Not in the order of their numbers: paths with adjacent source ports may share a route. The report that
// completes a message is not repeated by later ones, so a slow path would delay it: it takes a path that has been
// measured.
static uint16_t choose_for_answer(struct alb_paths_out *paths, alb_time now)
{
    const struct alb_path_outlook outlook = outlook_of(paths, now);
    uint32_t count = paths->count, path = paths->current, best_path = count;
    uint32_t ring = 1u << (32 - __builtin_clz(count - 1)), stride = ring * 5 / 8 | 1; // odd: it comes by all
    uint32_t best = 0, best_possible = paths->is_awaited ? (uint32_t)FITNESS_MAX : ALB_PATH_WEIGHT_MAX;
    bool tries = paths->turn % TRY_TURNS == 0;
    for (uint32_t i = 0; i < ring; i++) {
        path = (path + stride) & (ring - 1);
        if (path >= count)
            continue;
        enum alb_path_state state = alb_path_load(paths, path)->state;
        if (state != ALB_PATH_GOOD && tries && is_due(&paths->path[path], state, now)) {
            begin_trial(paths, path);
            return (uint16_t)path;
        }
        if (best >= best_possible && (!tries || paths->good == count))
            break;
        if (state != ALB_PATH_GOOD || best >= best_possible)
            continue;
        uint32_t fitness = fitness_of(paths, path, &outlook);
        if (fitness > best) {
            best = fitness;
            best_path = path;
        }
    }
    alb_assert(best_path < count);
    paths->typical_ns = paths->is_paced ? alb_path_chooser_best()->typical(paths, outlook.late_ns) : 0;
    return (uint16_t)best_path;
}

uint16_t alb_path_adaptive_pick(struct alb_paths_out *paths, uint32_t flow_hash, uint32_t bytes, alb_time now)
{
    uint32_t count = paths->count, explored = count; // count: none is
    if (paths->turn % EXPLORE_TURNS == 0)
        explored = find_forgotten(paths, now);
    uint16_t path = paths->loaded > 0 ? choose_for_data(paths, bytes, now) : choose_for_answer(paths, now);
    return explored < count && alb_path_is_good(paths, path) ? (uint16_t)explored : path;
}
