// SPDX-License-Identifier: BSD-2-Clause
// Path policy "adaptive": more on better paths; a path that loses, drops or slows is left and tried again later.
//
// How it spreads what is sent over the good ones is in path_adaptive_pick.c.
//
// Leaving. Whether a path loses more than others is a sequential test (Page, "Continuous inspection schemes",
// Biometrika 1954): each loss adds to its suspicion, each packet takes away twice what the best of the others loses,
// and some. So all paths may lose 5 % and none is left for long, while one that loses 10 % where others lose none is
// left after some fifty packets. A path slows if its round-trip time is several times that of the best one and of its
// own best, sample after sample. Silence is judged by alb_paths_find_silent. The last good path is not left, unless it
// is silent: then the path that would be tried next stands in for it.
//
// Returning. After a wait that doubles from 32 ms to a second, a few packets try it. If they come, and in time, it is
// taken back, with little weight at first. One doubling is forgotten for each such time that it stays.
#include "engine/path_adaptive.h"

enum {
    WEIGHT_MIN = 4,
    WEIGHT_FAR = 48,     // least for the round-trip time alone: more would send all to a path that happens to be empty
    WEIGHT_RETURN = 8,   // of a path that is taken back
    GROWTH_PACKETS = 4,  // that it must then carry for each unit more
    SHARES_PACKETS = 32, // of which losses and marks say something of a path's share of them
    SILENT_PACKETS = 3,  // lost together by silence: the path is dead, and not just its last packet lost
    SLOW_TIMES = 3,      // the best path's round-trip time, and
    SLOW_TIMES_OWN = 2,  // its own smallest one
    SLOW_NS = 30000,     // and this much longer than the best path's
    SLOW_SAMPLES = 3,    // in a row, each above all that the path varies by
    AWAY_RTTS = 4,       // at least, and
    BACK_OFF_MAX = 5,    // doublings
    // Suspicion, in 1/256 of a lost packet.
    LOSS = 256,
    PACKET = 4,         // taken off for each: a path may lose 1.6 % where others lose nothing
    BASE = 3 * LOSS,    // that a path is left for there
    PRIOR_LOST = 2,     // packets of
    PRIOR_PACKETS = 64, // so many: what is believed of a path's losses before it has carried any
};

#define AWAY_NS (32 * ALB_NS_PER_MS)

static alb_time away_ns(const struct alb_path_out *out)
{
    return ALB_MAX(AWAY_NS, (alb_time)AWAY_RTTS * out->rtt_ns) << out->back_off;
}

static uint32_t number_of(const struct alb_paths_out *paths, const struct alb_path_out *out)
{
    return (uint32_t)(out - paths->path);
}

static struct alb_path_load *load_of(const struct alb_paths_out *paths, const struct alb_path_out *out)
{
    return alb_path_load(paths, number_of(paths, out));
}

// A late path stays so until it is measured again: when others have become as slow, its queue is longer still.
static void note_lateness(const struct alb_paths_out *paths, uint32_t path)
{
    struct alb_path_pace *pace = alb_path_pace(paths, path);
    if (pace)
        pace->is_late = pace->recent_ns > alb_path_late_ns(paths);
}

// Nothing has come back for so long: if it does, it has taken no less. It need not be forgotten for as long, though.
static void note_unheard(struct alb_paths_out *paths, uint32_t path, alb_time now)
{
    struct alb_path_pace *pace = alb_path_pace(paths, path);
    uint64_t waited_ns = (uint64_t)(alb_path_tick_of(now) - paths->path[path].since) << 10;
    uint64_t half_ns = ALB_MIN(alb_path_late_ns(paths), (uint64_t)ALB_PATH_DELAY_MAX_NS / 2);
    waited_ns = ALB_MIN(waited_ns, 2 * half_ns);
    if (pace && pace->recent_ns < waited_ns)
        alb_path_set_recent_ns(paths, pace, (uint32_t)waited_ns);
    note_lateness(paths, path);
}

static void forget_pace(const struct alb_paths_out *paths, uint32_t path)
{
    struct alb_path_pace *pace = alb_path_pace(paths, path);
    if (pace)
        pace->recent_ns = pace->is_late = 0;
}

// ---- states ---------------------------------------------------------------------------------------------------------

// All are suspected anew from now on: what the others lost while they bore its share does not count against them.
static void take_back(struct alb_paths_out *paths, struct alb_path_out *out, alb_time now)
{
    alb_path_set_state(paths, number_of(paths, out), ALB_PATH_GOOD);
    load_of(paths, out)->weight = WEIGHT_RETURN;
    forget_pace(paths, number_of(paths, out));
    out->try_at = alb_path_moment_of(now + away_ns(out));
    alb_path_begin_record(paths, out);
    for (uint32_t i = 0; i < paths->count; i++) {
        alb_path_load(paths, i)->suspicion = 0;
        paths->path[i].slow = 0;
    }
    if (out->is_measured)
        paths->least_ns = ALB_MIN(paths->least_ns, out->rtt_ns);
}

static bool has_other_good(const struct alb_paths_out *paths, const struct alb_path_out *out)
{
    for (uint32_t i = 0; i < paths->count; i++)
        if (&paths->path[i] != out && alb_path_is_good(paths, i))
            return true;
    return false;
}

// The path that would be tried next stands in for the last good one.
static void find_substitute(struct alb_paths_out *paths, const struct alb_path_out *out, alb_time now)
{
    struct alb_path_out *best = NULL;
    for (uint32_t i = 0; i < paths->count; i++) {
        struct alb_path_out *other = &paths->path[i];
        if (other != out && (!best || alb_psn_is_before(other->try_at, best->try_at)))
            best = other;
    }
    if (best)
        take_back(paths, best, now);
}

static void leave(struct alb_paths_out *paths, struct alb_path_out *out, alb_time now)
{
    if (!has_other_good(paths, out))
        find_substitute(paths, out, now);
    alb_path_set_state(paths, number_of(paths, out), ALB_PATH_LEFT);
    out->try_at = alb_path_moment_of(now + away_ns(out));
    out->back_off += out->back_off < BACK_OFF_MAX;
}

// True if something came that left after what is missed of the path: it is this path that has died, not the peer, nor
// all paths.
static bool others_live(const struct alb_paths_out *paths, const struct alb_path_out *out)
{
    return paths->is_heard && (int32_t)(paths->newest - out->since) > 0;
}

// ---- judgement ------------------------------------------------------------------------------------------------------

// True if the other good paths may take over what it carries. One that has just been taken back may not: it would be
// overrun, lose, and be left for it. And where most paths have been left, the few that are not may lose only because
// they bear everything: then only one is left that bears less than twice its share of all paths.
static bool is_replaceable(const struct alb_paths_out *paths, const struct alb_path_out *out)
{
    const struct alb_path_load *own = load_of(paths, out);
    uint32_t weight = 0, good = 0;
    uint64_t bytes = own->inflight_bytes;
    for (uint32_t i = 0; i < paths->count; i++) {
        const struct alb_path_load *other = alb_path_load(paths, i);
        if (other == own || other->state != ALB_PATH_GOOD)
            continue;
        weight += other->weight;
        bytes += other->inflight_bytes;
        good++;
    }
    bool is_overrun = 2 * good < paths->count && 8ull * own->inflight_bytes * paths->count > 15 * bytes;
    return weight >= own->weight && !is_overrun;
}

// How much the best of the other good paths loses, in 1/65536.
static uint32_t others_lose(const struct alb_paths_out *paths, const struct alb_path_out *out)
{
    uint32_t part = UINT32_MAX;
    for (uint32_t i = 0; i < paths->count; i++) {
        const struct alb_path_out *other = &paths->path[i];
        if (other == out || !alb_path_is_good(paths, i))
            continue;
        uint32_t lost = (other->recent_lost + PRIOR_LOST) * 65536u / (other->recent_sent + PRIOR_PACKETS);
        part = ALB_MIN(part, lost);
    }
    return part;
}

// True if the path loses more than it should. Where others lose too, chance needs more room.
static bool is_suspect(const struct alb_paths_out *paths, struct alb_path_out *out, uint32_t sent, uint32_t lost)
{
    struct alb_path_load *load = load_of(paths, out);
    if (lost == 0 && load->suspicion == 0) // nothing to look further for
        return false;
    if (!is_replaceable(paths, out)) {
        load->suspicion = 0;
        return false;
    }
    uint32_t part = others_lose(paths, out);
    uint64_t more = load->suspicion + (uint64_t)lost * LOSS;
    uint64_t less = (uint64_t)sent * (PACKET * 65536u + 2 * LOSS * part) / 65536;
    uint64_t suspicion = more > less ? more - less : 0;
    load->suspicion = (uint16_t)ALB_MIN(suspicion, (uint64_t)UINT16_MAX);
    return load->suspicion >= BASE + (part <= 1024 ? part : 512 + part / 2);
}

static bool is_slow(uint32_t rtt_ns, uint32_t rtt_min_ns, uint32_t best_ns)
{
    return rtt_ns / SLOW_TIMES > best_ns && rtt_ns / SLOW_TIMES_OWN > rtt_min_ns &&
           rtt_ns > (uint64_t)best_ns + SLOW_NS;
}

// One with little in its way, as after its return, is faster than all that are in use, and says nothing against them.
static bool is_slow_beside_most(const struct alb_paths_out *paths, const struct alb_path_out *out, uint32_t rtt_ns)
{
    uint32_t others = 0, faster = 0;
    for (uint32_t i = 0; i < paths->count; i++) {
        const struct alb_path_out *other = &paths->path[i];
        if (other == out || !alb_path_is_good(paths, i) || other->rtt_ns == 0)
            continue;
        others++;
        faster += is_slow(rtt_ns, out->rtt_min_ns, other->rtt_ns);
    }
    return 2 * faster >= others;
}

// A path that slows shows it by a few samples, each longer than what came before lets expect, at a time when others are
// fast: after a halt of the peer or of our own all are slow. One that slows little by little only weighs less.
static bool slows(struct alb_paths_out *paths, struct alb_path_out *out, uint32_t sample_ns)
{
    uint8_t path = (uint8_t)(out - paths->path);
    bool is_other = paths->best_ns > 0 && paths->best_path != path;
    uint64_t expected_ns = out->rtt_ns + 3ull * out->rtt_var_ns;
    bool is_one = is_other && is_slow(sample_ns, out->rtt_min_ns, paths->best_ns) && sample_ns > expected_ns &&
                  is_slow_beside_most(paths, out, sample_ns);
    if (paths->best_ns == 0 || sample_ns < paths->best_ns) {
        paths->best_ns = sample_ns;
        paths->best_path = path;
    }
    out->slow = is_one ? out->slow + 1 : 0;
    if (out->slow < SLOW_SAMPLES)
        return false;
    out->slow = 0;
    return is_replaceable(paths, out);
}

// The smallest round-trip time of good paths; measured: of this round only. 0: none.
static uint32_t best_rtt_ns(const struct alb_paths_out *paths, bool measured)
{
    uint32_t best_ns = 0;
    for (uint32_t i = 0; i < paths->count; i++) {
        const struct alb_path_out *out = &paths->path[i];
        if (alb_path_is_good(paths, i) && out->rtt_ns > 0 && (out->is_measured || !measured))
            best_ns = best_ns ? ALB_MIN(best_ns, out->rtt_ns) : out->rtt_ns;
    }
    return best_ns;
}

// One that slows little by little never surprises, and is slow in the end all the same, whatever it varies by. Compared
// with paths that bear as much: one that was just taken back has nothing in its way.
static bool has_become_slow(const struct alb_paths_out *paths, const struct alb_path_out *out)
{
    uint32_t best_ns = UINT32_MAX, weight = load_of(paths, out)->weight;
    uint64_t varies_ns = ALB_MIN(2ull * out->rtt_var_ns, (uint64_t)out->rtt_ns);
    uint32_t rtt_ns = out->rtt_ns - (uint32_t)varies_ns;
    if (!out->is_measured || !is_slow(rtt_ns, out->rtt_min_ns, 0)) // nothing to look further for
        return false;
    for (uint32_t i = 0; i < paths->count; i++) {
        const struct alb_path_out *other = &paths->path[i];
        const struct alb_path_load *load = alb_path_load(paths, i);
        if (other != out && load->state == ALB_PATH_GOOD && other->is_measured && load->weight >= weight)
            best_ns = ALB_MIN(best_ns, other->rtt_ns);
    }
    return is_slow(rtt_ns, out->rtt_min_ns, best_ns) && is_replaceable(paths, out);
}

static void weigh(const struct alb_path_out *out, struct alb_path_load *load, uint32_t best_ns)
{
    uint32_t weight = ALB_PATH_WEIGHT_MAX, sent = out->recent_sent;
    if (out->rtt_ns > best_ns)
        weight = ALB_MAX((uint32_t)((uint64_t)weight * best_ns / out->rtt_ns), (uint32_t)WEIGHT_FAR);
    if (sent >= SHARES_PACKETS && (out->recent_lost | out->recent_marked) != 0) {
        weight -= weight * ALB_MIN(8u * out->recent_lost, sent) / (2 * sent);
        weight -= weight * out->recent_marked / (2 * sent);
    }
    uint32_t most = ALB_MAX((uint32_t)load->weight, sent / GROWTH_PACKETS);
    weight = ALB_MIN(weight, most);
    load->weight = (uint8_t)ALB_MAX(weight, (uint32_t)WEIGHT_MIN);
}

// Two round trips make a round.
static void end_round(struct alb_paths_out *paths, uint32_t best_ns, alb_time now)
{
    for (uint32_t i = 0; i < paths->count; i++) {
        struct alb_path_out *out = &paths->path[i];
        if (alb_path_is_good(paths, i) && has_become_slow(paths, out)) {
            leave(paths, out, now);
        } else if (alb_path_is_good(paths, i)) {
            weigh(out, alb_path_load(paths, i), best_ns);
            if (out->back_off > 0 && alb_path_has_come(out->try_at, now)) {
                out->back_off--;
                out->try_at = alb_path_moment_of(now + away_ns(out));
            }
        }
        out->is_measured = false;
    }
    paths->round_at = alb_path_tick_of(now);
    paths->best_ns = paths->least_ns = 0;
}

// The packets that tried the path have come, or not.
static void end_trial(struct alb_paths_out *paths, struct alb_path_out *out, const struct alb_path_news *news,
                      alb_time now)
{
    uint32_t sample_ns = news->rtt_sample_ns, best_ns = best_rtt_ns(paths, false);
    if (out->recent_lost * 65536ull > 2ull * alb_path_trial_packets(out) * others_lose(paths, out)) {
        leave(paths, out, now);
        return;
    }
    if (alb_path_is_waiting(out))
        return;
    if (sample_ns > 0 && best_ns > 0 && is_slow(sample_ns, out->rtt_min_ns, best_ns)) {
        // Nothing of ours is in its way: if it stays like that, its route has become a longer one.
        out->rtt_min_ns += (sample_ns - out->rtt_min_ns) / 4;
        leave(paths, out, now);
        return;
    }
    if (out->recent_sent < alb_path_trial_packets(out))
        return;
    if (sample_ns > 0) {
        out->rtt_ns = sample_ns;
        out->rtt_var_ns = sample_ns / 4;
    }
    take_back(paths, out, now);
}

// True if what is reported of the good path is a reason to leave it.
static bool judge(struct alb_paths_out *paths, struct alb_path_out *out, const struct alb_path_news *news)
{
    bool is_left = is_suspect(paths, out, news->settled, news->lost);
    return (news->rtt_sample_ns > 0 && slows(paths, out, news->rtt_sample_ns)) || is_left;
}

static void on_news(struct alb_paths_out *paths, uint16_t path, const struct alb_path_news *news, alb_time now)
{
    struct alb_path_out *out = &paths->path[path];
    enum alb_path_state state = alb_path_load(paths, path)->state;
    if (state == ALB_PATH_TRYING)
        end_trial(paths, out, news, now);
    else if (state == ALB_PATH_GOOD && judge(paths, out, news))
        leave(paths, out, now);
    if (news->rtt_sample_ns > 0)
        note_lateness(paths, path);
    if (news->rtt_sample_ns > 0)
        paths->least_ns = paths->least_ns ? ALB_MIN(paths->least_ns, out->rtt_ns) : out->rtt_ns;
    alb_path_tick passed = alb_path_tick_of(now) - paths->round_at;
    if (passed <= paths->least_ns >> 9) // surely not: the best path's is not less
        return;
    uint32_t best_ns = best_rtt_ns(paths, true);
    if (best_ns == 0)
        return;
    paths->least_ns = best_ns;
    if (passed > best_ns >> 9)
        end_round(paths, best_ns, now);
}

static void on_silence(struct alb_paths_out *paths, uint16_t path, uint32_t lost, alb_time now)
{
    struct alb_path_out *out = &paths->path[path];
    uint32_t back_off = out->back_off;
    bool is_dead = lost >= SILENT_PACKETS || out->is_silent || is_suspect(paths, out, lost, lost);
    enum alb_path_state state = alb_path_load(paths, path)->state;
    note_unheard(paths, path, now);
    if (state != ALB_PATH_TRYING && (state != ALB_PATH_GOOD || !is_dead))
        return;
    leave(paths, out, now);
    if (!others_live(paths, out))
        out->back_off = back_off;
}

const struct alb_path_ops alb_path_adaptive = {
    .name = "adaptive",
    .pick = alb_path_adaptive_pick,
    .may_try = alb_path_adaptive_may_try,
    .on_news = on_news,
    .on_silence = on_silence,
};
