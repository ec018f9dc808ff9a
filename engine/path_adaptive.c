// SPDX-License-Identifier: BSD-2-Clause
// Path policy "adaptive": more on better paths; a path that loses, drops or slows is left and tried again later.
//
// Spreading. A burst takes the path whose bytes in flight, by its weight, would be fewest: a slow path empties slowly
// and so gets little by itself, before anything is known of it (join the shortest queue, weighted). Where there are
// many paths they are multiplied by the delay that is expected: that of the last few packets, or for how long the one
// that is under way has not been heard of. A path much later than the typical one waits until the others are full, as
// paths with marked packets do in REPS (recycled entropies, Bonato et al., 2024), and until it is measured again: most
// messages are over before anything smoother has followed. Weights follow from losses and marks, and round-trip times
// over a longer time (the flowlet weights of CONGA and Presto have the same end, from switches). Paths of unequal delay
// are weighed, not left. Answers have no bytes in flight: they take paths in turn (choose_for_answer).
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
#include "engine/path_choice.h"

enum {
    WEIGHT_MIN = 4,
    WEIGHT_FAR = 48,    // least for the round-trip time alone: more would send all to a path that happens to be empty
    WEIGHT_RETURN = 8,  // of a path that is taken back
    GROWTH_PACKETS = 4, // that it must then carry for each unit more
    TRIAL_PACKETS = 4,  // that must come; twice as many each time that it is left again,
    TRIAL_MAX = 32,     // up to this: one that loses 10 % then passes once in thirty times
    GRAIN_BYTES = 2048, // what a burst counts for where it is chosen
    TRY_TURNS = 4,      // choices for answers: one of them may try a path, lest they go to dead ones in a row
    EXPLORE_TURNS = 32, // choices: one of them goes where nothing was measured lately,
    EXPLORE_RTTS = 8,   // for so long
    LATE_PERCENT = 150, // of the typical round-trip time: a path that takes longer is late
    FITNESS_LATE = 1,   // of a path for an answer; else its weight, which is more,
    FITNESS_KNOWN = 2,  // and so many times that if it has been measured and the answer is awaited
    FITNESS_MAX = FITNESS_KNOWN * ALB_PATH_WEIGHT_MAX,
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

// ---- times of 2^20 ns in 24 bits --------------------------------------------------------------------------

static uint32_t moment_of(alb_time time)
{
    return (uint32_t)(time >> 20) & ALB_PSN_MASK;
}

static bool has_come(uint32_t moment, alb_time now)
{
    return alb_psn_diff(moment_of(now), moment) >= 0;
}

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

static bool is_good(const struct alb_paths_out *paths, uint32_t path)
{
    return alb_path_load(paths, path)->state == ALB_PATH_GOOD;
}

// Longer than this is late. UINT64_MAX: nothing is known.
static uint64_t late_ns(const struct alb_paths_out *paths)
{
    return paths->typical_ns ? (uint64_t)paths->typical_ns * LATE_PERCENT / 100 : UINT64_MAX;
}

// A late path stays so until it is measured again: when others have become as slow, its queue is longer still.
static void note_lateness(const struct alb_paths_out *paths, uint32_t path)
{
    struct alb_path_pace *pace = alb_path_pace(paths, path);
    if (pace)
        pace->is_late = pace->recent_ns > late_ns(paths);
}

// Nothing has come back for so long: if it does, it has taken no less. It need not be forgotten for as long, though.
static void note_unheard(const struct alb_paths_out *paths, uint32_t path, alb_time now)
{
    struct alb_path_pace *pace = alb_path_pace(paths, path);
    uint64_t waited_ns = (uint64_t)(alb_path_tick_of(now) - paths->path[path].since) << 10;
    uint64_t half_ns = ALB_MIN(late_ns(paths), (uint64_t)ALB_PATH_DELAY_MAX_NS / 2);
    waited_ns = ALB_MIN(waited_ns, 2 * half_ns);
    if (pace && pace->recent_ns < waited_ns)
        pace->recent_ns = waited_ns & ALB_PATH_RECENT_NS_MAX;
    note_lateness(paths, path);
}

static void forget_pace(const struct alb_paths_out *paths, uint32_t path)
{
    struct alb_path_pace *pace = alb_path_pace(paths, path);
    if (pace)
        pace->recent_ns = pace->is_late = 0;
}

// ---- states -----------------------------------------------------------------------------------------------

static void begin_record(const struct alb_paths_out *paths, struct alb_path_out *out)
{
    out->recent_sent = out->recent_lost = out->recent_marked = 0;
    load_of(paths, out)->suspicion = 0;
    out->slow = 0;
}

// All are suspected anew from now on: what the others lost while they bore its share does not count against them.
static void take_back(struct alb_paths_out *paths, struct alb_path_out *out, alb_time now)
{
    alb_path_set_state(paths, number_of(paths, out), ALB_PATH_GOOD);
    load_of(paths, out)->weight = WEIGHT_RETURN;
    forget_pace(paths, number_of(paths, out));
    out->try_at = moment_of(now + away_ns(out));
    begin_record(paths, out);
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
        if (&paths->path[i] != out && is_good(paths, i))
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
    out->try_at = moment_of(now + away_ns(out));
    out->back_off += out->back_off < BACK_OFF_MAX;
}

// True if something came that left after what is missed of the path: it is this path that has died, not the peer, nor
// all paths.
static bool others_live(const struct alb_paths_out *paths, const struct alb_path_out *out)
{
    return paths->is_heard && (int32_t)(paths->newest - out->since) > 0;
}

// ---- judgement --------------------------------------------------------------------------------------------

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
        if (other == out || !is_good(paths, i))
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

// A path that slows shows it by a few samples, each longer than what came before lets expect, at a time when others are
// fast: after a halt of the peer or of our own all are slow. One that slows little by little only weighs less.
static bool slows(struct alb_paths_out *paths, struct alb_path_out *out, uint32_t sample_ns)
{
    uint8_t path = (uint8_t)(out - paths->path);
    bool is_other = paths->best_ns > 0 && paths->best_path != path;
    uint64_t expected_ns = out->rtt_ns + 3ull * out->rtt_var_ns;
    bool is_one = is_other && is_slow(sample_ns, out->rtt_min_ns, paths->best_ns) && sample_ns > expected_ns;
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
        if (is_good(paths, i) && out->rtt_ns > 0 && (out->is_measured || !measured))
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
    if (sent >= SHARES_PACKETS) {
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
        if (is_good(paths, i) && has_become_slow(paths, out)) {
            leave(paths, out, now);
        } else if (is_good(paths, i)) {
            weigh(out, alb_path_load(paths, i), best_ns);
            if (out->back_off > 0 && has_come(out->try_at, now)) {
                out->back_off--;
                out->try_at = moment_of(now + away_ns(out));
            }
        }
        out->is_measured = false;
    }
    paths->round_at = alb_path_tick_of(now);
    paths->best_ns = paths->least_ns = 0;
}

static uint32_t trial_packets(const struct alb_path_out *out)
{
    return ALB_MIN((uint32_t)TRIAL_PACKETS << (out->back_off - (out->back_off > 0)), (uint32_t)TRIAL_MAX);
}

// The packets that tried the path have come, or not.
static void end_trial(struct alb_paths_out *paths, struct alb_path_out *out, const struct alb_path_news *news,
                      alb_time now)
{
    uint32_t sample_ns = news->rtt_sample_ns, best_ns = best_rtt_ns(paths, false);
    if (out->recent_lost * 65536ull > 2ull * trial_packets(out) * others_lose(paths, out)) {
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
    if (out->recent_sent < trial_packets(out))
        return;
    if (sample_ns > 0) {
        out->rtt_ns = sample_ns;
        out->rtt_var_ns = sample_ns / 4;
    }
    take_back(paths, out, now);
}

// True if what is told of the good path is a reason to leave it.
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

// ---- choice -----------------------------------------------------------------------------------------------

// True if the path is to be tried, and nothing that left by it before is still to come; or if the trial wants more,
// which is as much again as has come.
static bool is_due(const struct alb_path_out *out, enum alb_path_state state, alb_time now)
{
    uint32_t waiting = (uint32_t)alb_psn_diff(out->next, out->settled);
    if (state == ALB_PATH_TRYING)
        return out->recent_sent + waiting < trial_packets(out) &&
               waiting < ALB_MAX((uint32_t)out->recent_sent, (uint32_t)TRIAL_PACKETS);
    return state == ALB_PATH_LEFT && waiting == 0 && has_come(out->try_at, now);
}

// True if a packet on it now and then keeps what is known of it true.
static bool is_forgotten(const struct alb_paths_out *paths, uint32_t path, alb_time now)
{
    const struct alb_path_out *out = &paths->path[path];
    const struct alb_path_pace *pace = alb_path_pace(paths, path);
    uint64_t passed_ns = (uint64_t)(alb_path_tick_of(now) - out->since) << 10;
    return is_good(paths, path) && !out->is_measured && !alb_path_is_waiting(out) &&
           (!pace || passed_ns >= (uint64_t)EXPLORE_RTTS * pace->recent_ns);
}

static struct alb_path_outlook outlook_of(const struct alb_paths_out *paths, alb_time now)
{
    return (struct alb_path_outlook){(uint64_t)paths->typical_ns * LATE_PERCENT / 100, late_ns(paths),
                                     alb_path_tick_of(now)};
}

static bool has_data_in_flight(const struct alb_paths_out *paths)
{
    if (alb_path_pace(paths, 0))
        return alb_path_chooser_best()->has_data(paths);
    const struct alb_path_load *loads = alb_path_load(paths, 0);
    uint32_t i = 0;
    while (i < paths->count && loads[i].inflight_bytes == 0)
        i++;
    return i < paths->count;
}

static void begin_trial(struct alb_paths_out *paths, uint32_t path)
{
    if (alb_path_load(paths, path)->state == ALB_PATH_LEFT)
        begin_record(paths, &paths->path[path]);
    alb_path_set_state(paths, path, ALB_PATH_TRYING);
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
    return alb_path_is_waiting(out) && waited_ns > (uint64_t)out->rtt_ns * LATE_PERCENT / 100;
}

static uint32_t fitness_of(const struct alb_paths_out *paths, uint32_t path, const struct alb_path_outlook *outlook)
{
    const struct alb_path_pace *pace = alb_path_pace(paths, path);
    if (is_late(paths, path, outlook))
        return FITNESS_LATE;
    bool is_known = paths->is_awaited && pace && pace->recent_ns > 0;
    return alb_path_load(paths, path)->weight * (is_known ? FITNESS_KNOWN : 1u);
}

// Answers count nowhere as bytes in flight, and who only answers is told little of his paths, and nothing while the
// peer hears nothing. Were it the best path that takes them, then when that one dies all answers would be lost, one
// after the other, until the peer gives up. So all that are equally fit take them in turn, and when none is heard of
// any more, all. Not in the order of their numbers: paths with source ports side by side may share a route. The report
// that ends a message is one of its kind, and no other makes up for it if its path turns out to be slow: it takes one
// that is known.
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
    paths->typical_ns = alb_path_pace(paths, 0) ? alb_path_chooser_best()->typical(paths, outlook.late_ns) : 0;
    return (uint16_t)best_path;
}

static uint16_t pick(struct alb_paths_out *paths, uint32_t flow_hash, uint32_t bytes, alb_time now)
{
    uint16_t explored = (uint16_t)(paths->turn / EXPLORE_TURNS % paths->count), path;
    bool explores = paths->turn % EXPLORE_TURNS == 0 && is_forgotten(paths, explored, now);
    if (has_data_in_flight(paths))
        path = choose_for_data(paths, bytes, now);
    else
        path = choose_for_answer(paths, now);
    return explores && is_good(paths, path) ? explored : path;
}

const struct alb_path_ops alb_path_adaptive = {
    .name = "adaptive",
    .pick = pick,
    .on_news = on_news,
    .on_silence = on_silence,
};
