// SPDX-License-Identifier: BSD-2-Clause
// The paths of one association. A path is a source port, and packets of one path arrive in the order they left, unless
// the network shows otherwise. Out: which path the next burst takes, and what is known of each. In: which packets of a
// path have come, and which gaps are settled (lost).
//
// What is known of an outgoing path comes from the peer's paths frames alone, so it covers every packet, whatever it
// carried. A path that has died has no entry in them: then the other paths' entries judge it (alb_paths_find_silent).
#pragma once

#include "base/bitmap.h"
#include "engine/policy.h"
#include "wire/csa.h"

#define ALB_PATHS_MAX       128
#define ALB_PATHS_MANY      16 // from so many on, a choice goes by the last packets of each path
#define ALB_PATH_WEIGHT_MAX 64
#define ALB_PATH_AHEAD_MAX  63   // packets that came behind the first gap of a path's window
#define ALB_PATH_TRY_BYTES  8192 // what a path that was left carries to see how it does now

// ---- sets -----------------------------------------------------------------------------------------------------------

struct alb_path_set {
    uint64_t words[ALB_BITMAP_WORDS(ALB_PATHS_MAX)];
};

static inline void alb_path_set_put(struct alb_path_set *set, uint32_t path, bool is_in)
{
    uint64_t *word = &set->words[path / 64], bit = 1ull << path % 64;
    *word = is_in ? *word | bit : *word & ~bit;
}

// The first one in it from that path on; ALB_PATHS_MAX: there is none.
static inline uint32_t alb_path_set_next(const struct alb_path_set *set, uint32_t path)
{
    for (; path < ALB_PATHS_MAX; path = (path / 64 + 1) * 64) {
        uint64_t left = set->words[path / 64] >> path % 64;
        if (left)
            return path + (uint32_t)__builtin_ctzll(left);
    }
    return ALB_PATHS_MAX;
}

static inline uint32_t alb_path_set_count(const struct alb_path_set *set)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ALB_COUNT(set->words); i++)
        for (uint64_t left = set->words[i]; left; left &= left - 1)
            count++;
    return count;
}

// ---- out ------------------------------------------------------------------------------------------------------------

enum alb_path_state {
    ALB_PATH_GOOD,
    ALB_PATH_LEFT,   // loses, drops or slows: carries nothing but a packet now and then that tries it
    ALB_PATH_TRYING, // such a packet is under way
};

// Times are kept in 32 bits: a tick is 1024 ns, and only differences of less than half an hour are looked at.
typedef uint32_t alb_path_tick;

static inline alb_path_tick alb_path_tick_of(alb_time moment)
{
    return (alb_path_tick)(moment >> 10);
}

struct alb_path_out {
    uint32_t next : 24;                      // sequence number of the next packet
    uint32_t ahead : 6;                      // packets that have come behind settled, at most ALB_PATH_AHEAD_MAX
    uint32_t slow : 2;                       // samples in a row that were slow beyond what it varies by
    uint32_t settled : 24;                   // all before has come or is lost: the peer said so, or fell silent
    uint32_t back_off : 3;                   // doublings of the time that it is left for, and of what must try it
    uint32_t is_heard : 1;                   // the peer has said something of it
    uint32_t is_silent : 1;                  // called silent or unanswered, and nothing has been heard of it since
    uint32_t is_measured : 1;                // a round-trip time was measured in this round
    uint32_t has_rested : 1;                 // before what is under way, so long that the peer may have forgotten it
    uint32_t try_at : 24;                    // LEFT: when to try it again, GOOD: when to forget what was; in 1024 ticks
    uint32_t trimmed : 8;                    // packets not settled of which only headers came: congested, not lost
    uint32_t rtt_ns, rtt_min_ns, rtt_var_ns; // smoothed; 0: not measured
    uint32_t received_seen, marked_seen;     // the peer's counters when last heard
    alb_path_tick since;                     // last news of it, or its first packet after all was settled
    uint32_t recent_sent : 10, recent_lost : 10, recent_marked : 10; // of what is settled; halved now and then
};

// What a choice looks at, of all paths: apart from the rest, so that it is a few cache lines.
struct alb_path_load {
    uint32_t inflight_bytes;
    uint8_t weight;     // 1 to ALB_PATH_WEIGHT_MAX: how much of the traffic it should get
    uint8_t state;      // enum alb_path_state (alb_path_set_state)
    uint16_t suspicion; // that it loses more than others: see path_adaptive.c
};

// And besides, where there are many: a message has few packets for each, and is over before anything smoothed follows.
#define ALB_PATH_RECENT_NS_MAX ((1u << 30) - 1)

struct alb_path_pace {
    uint32_t recent_ns : 30; // round-trip time by its last few samples; 0: not measured
    uint32_t is_late : 1;    // that was much longer than the typical one of its time
    uint32_t is_waiting : 1; // alb_path_is_waiting of the path, so that a choice need not look there
    alb_path_tick since;     // that of its struct alb_path_out, likewise
};

struct alb_paths_out {
    uint8_t count;              // of path[]
    uint8_t is_heard : 1;       // newest holds something
    uint8_t best_path : 7;      // whose best_ns is
    uint8_t current;            // the one chosen last
    uint8_t good;               // paths of that state
    uint32_t turn : 14;         // choices so far
    uint32_t waiting : 8;       // paths that something has left by which is not settled
    uint32_t is_awaited : 1;    // the next choice is for a report that ends what the peer waits for
    uint32_t is_paced : 1;      // a path has or had a recent_ns; else nothing is typical, and need not be looked for
    uint32_t loaded : 8;        // paths that have bytes in flight: an answer need not look through all for one
    alb_path_tick newest;       // when the newest packet left that the peer was heard to have, of whatever path
    alb_path_tick round_at;     // when the policy last weighed all of them
    uint32_t best_ns;           // smallest sample of a round-trip time since then, of a good path; 0: none
    uint32_t least_ns;          // no smoothed one that was measured since then is less; 0: none is known
    uint32_t typical_ns;        // mean of recent_ns of good paths at the last choice, of late ones as much as makes
                                // them late; 0: none is known
    struct alb_path_out path[]; // then a struct alb_path_load of each, and a struct alb_path_pace where they are many
};

_Static_assert(ALB_PATHS_MAX <= UINT8_MAX, "counts of paths have 8 bits");

static inline struct alb_path_load *alb_path_load(const struct alb_paths_out *paths, uint32_t path)
{
    return (struct alb_path_load *)(uintptr_t)&paths->path[paths->count] + path;
}

// NULL: there are not many.
static inline struct alb_path_pace *alb_path_pace(const struct alb_paths_out *paths, uint32_t path)
{
    return paths->count < ALB_PATHS_MANY ? NULL : (struct alb_path_pace *)alb_path_load(paths, paths->count) + path;
}

// ns: at most ALB_PATH_RECENT_NS_MAX.
static inline void alb_path_set_recent_ns(struct alb_paths_out *paths, struct alb_path_pace *pace, uint32_t ns)
{
    pace->recent_ns = ns & ALB_PATH_RECENT_NS_MAX;
    paths->is_paced = true;
}

static inline void alb_path_set_state(struct alb_paths_out *paths, uint32_t path, enum alb_path_state state)
{
    struct alb_path_load *load = alb_path_load(paths, path);
    paths->good = (uint8_t)(paths->good + (state == ALB_PATH_GOOD) - (load->state == ALB_PATH_GOOD));
    load->state = state;
}

// What one entry of a paths frame has reported.
struct alb_path_news {
    bool is_new;               // else the entry is an old one, or not about a path of ours
    bool is_settled_newer;     // settled has moved: look for lost segments
    bool begins_anew;          // the peer's counters of the path do: it had forgotten them
    uint32_t rtt_sample_ns;    // 0: nothing new
    uint32_t received, marked; // packets since the last entry
    uint32_t settled, lost;    // packets settled by it, and how many of them are lost
};

// Of which paths a frame has all news, and how new they are: a frame by itself, whatever others were lost or overtaken.
struct alb_path_scope {
    uint16_t first, past;
    bool is_heard;        // newest holds something
    alb_path_tick newest; // when the newest packet left that it reported
};

// next: the sequence number that every path begins with. count: 1 to ALB_PATHS_MAX.
void alb_paths_out_init(struct alb_paths_out *paths, uint32_t count, alb_psn next);
// The path of the next burst; segments of it are sent with consecutive sequence numbers. It should carry no more than
// alb_path_burst_bytes of that path.
uint16_t alb_paths_choose(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint32_t flow_hash,
                          uint32_t bytes, alb_time now);
// How much a burst on a path that was just chosen may carry (but always a packet): little if it is only tried, else the
// path's part of the window, so that the others are not idle while one is flooded.
uint32_t alb_path_burst_bytes(const struct alb_paths_out *paths, uint16_t path, uint32_t window_bytes);
// A packet leaves on that path: its sequence number. bytes: of it that will be acknowledged (alb_path_done).
alb_psn alb_path_sent(struct alb_paths_out *paths, uint16_t path, uint32_t bytes, alb_time now);
// bytes will leave in a packet that is not complete yet. What they belong to may come to its end (alb_path_done) before
// the packet leaves.
static inline void alb_path_charge(struct alb_paths_out *paths, uint16_t path, uint32_t bytes)
{
    struct alb_path_load *load = alb_path_load(paths, path);
    paths->loaded += load->inflight_bytes == 0 && bytes > 0;
    load->inflight_bytes += bytes;
}
// bytes that left by it are no longer in flight: acknowledged, judged lost, or given up.
void alb_path_done(struct alb_paths_out *paths, uint16_t path, uint32_t bytes);
// Nothing has been heard of it while others were heard of. Unless it is the only path, what left by it is settled:
// true, look for lost segments.
bool alb_path_silent(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint16_t path, alb_time now);
// A probe went unanswered, and this path carried what it asked for. The path may be dead, and the policy leaves it; or
// the peer is halted, and all that left by it may still come: nothing is settled before another path is heard of.
void alb_path_unanswered(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint16_t path, alb_time now);
// Asks the caches for what is known of the paths that a frame tells of: a line each, which need not wait for another.
static inline void alb_paths_fetch(const struct alb_paths_out *paths, const struct alb_csa_paths *frame)
{
    for (uint32_t i = 0; i < frame->count; i++)
        if (frame->entries[i].path < paths->count)
            __builtin_prefetch(&paths->path[frame->entries[i].path], 1);
}
// True if the entry says what one before has said: news is repeated, so most entries are.
static inline bool alb_path_is_repeated(const struct alb_paths_out *paths, const struct alb_csa_path_entry *entry)
{
    return entry->path < paths->count && entry->received == paths->path[entry->path].received_seen &&
           entry->settled == paths->path[entry->path].settled;
}
// Takes the peer's word; timestamps are ns of our clock modulo 2^32. Once a frame's entries have all been heard,
// alb_paths_find_silent follows.
struct alb_path_news alb_path_heard(struct alb_paths_out *paths, const struct alb_path_ops *ops,
                                    const struct alb_csa_path_entry *entry, alb_time now);
// That was news, and the scope of the frame knows it.
void alb_path_scope_heard(struct alb_path_scope *scope, const struct alb_csa_path_entry *entry, alb_time now);
// The paths in scope that the frame said nothing of, and that must have lost what waits: it left long before something
// that the frame says came by another, and all news of paths in scope are in it. alb_path_silent is for them then.
// False: there are none.
bool alb_paths_find_silent(const struct alb_paths_out *paths, const struct alb_path_scope *scope,
                           struct alb_path_set *silent);
// Of that packet only the headers have come, as it was cut down in a queue: the path is alive and does not lose.
void alb_path_trimmed(struct alb_paths_out *paths, uint16_t path, alb_psn sequence, alb_time now);
// True if this packet has either come or is lost.
static inline bool alb_path_is_settled(const struct alb_paths_out *paths, uint16_t path, alb_psn sequence)
{
    return alb_psn_is_before(sequence, paths->path[path].settled);
}
// True if something that left by the path is not settled.
static inline bool alb_path_is_waiting(const struct alb_path_out *out)
{
    return out->next != out->settled;
}
// The largest sequence number in use, for an association that goes idle and begins again behind it.
alb_psn alb_paths_out_last(const struct alb_paths_out *paths);
static inline size_t alb_paths_out_bytes(uint32_t count)
{
    size_t each_bytes = sizeof(struct alb_path_out) + sizeof(struct alb_path_load);
    if (count >= ALB_PATHS_MANY)
        each_bytes += sizeof(struct alb_path_pace);
    return sizeof(struct alb_paths_out) + count * each_bytes;
}

// ---- in -------------------------------------------------------------------------------------------------------------

// Zeroed, it is a path of which nothing has come.
struct alb_path_in {
    uint64_t came;           // bit i: settled + i has come (bit 0 never set at rest)
    alb_time newest_at;      // when the newest packet came: the newest by sequence number
    uint32_t settled : 24;   // everything before has come or is lost
    uint32_t unreported : 2; // paths frames that still have to tell what came
    uint32_t is_known : 1;   // something has come
    uint32_t has_stray : 1;  // the last packet was far behind
    uint32_t lost;           // bit i: settled - 1 - i was settled as lost, and has not come since
    uint32_t gap_age_ns;     // of the gap at settled, when the newest packet came
    uint32_t lateness_ns;    // how late packets have been after younger ones; how long a gap waits to be settled
    uint32_t newest_timestamp;
    uint32_t received, marked; // packets, each once
    uint8_t ahead;             // the newest packet is settled + ahead - 1; 0: there is no gap
    uint8_t old;               // gaps below settled + old are gap_age_ns old, or older
    uint8_t calm;              // how long nothing was late
    uint8_t stray_next;        // low bits of the number behind that one's
};

enum alb_path_arrival {
    ALB_PATH_ARRIVAL_NEXT,  // as expected
    ALB_PATH_ARRIVAL_GAP,   // packets before it are missing (settled at once if the path has shown no lateness)
    ALB_PATH_ARRIVAL_LATE,  // fills a gap, or comes after its gap was settled, or is older than is remembered
    ALB_PATH_ARRIVAL_AGAIN, // the same packet a second time
};

// A packet came by this path. *lost: how many packets this settled as lost (more than were sent, if the sender left out
// numbers). Damages nothing whatever the sequence number is.
enum alb_path_arrival alb_path_in_packet(struct alb_path_in *in, alb_psn sequence, uint32_t timestamp, bool is_marked,
                                         alb_time now, uint32_t *lost);
// True if that packet is the next one of a path without gaps or lateness, of which alb_path_in_take_next takes note as
// alb_path_in_packet would (if it is not marked).
static inline bool alb_path_in_is_next(const struct alb_path_in *in, alb_psn sequence)
{
    return in->is_known && in->ahead == 0 && in->came == 0 && in->lateness_ns == 0 && in->settled == sequence;
}
void alb_path_in_take_next(struct alb_path_in *in, uint32_t timestamp, alb_time now);
// When the oldest gap is due to be settled; ALB_TIME_NEVER if there is none.
alb_time alb_path_in_deadline(const struct alb_path_in *in);
// Settles what is due; returns how many packets are lost by that.
uint32_t alb_path_in_settle(struct alb_path_in *in, alb_time now);
// True if a paths frame should tell of it. Each frame tells of all paths that have news: the sender takes silence for
// loss. News are repeated a few times, since frames are lost too.
static inline bool alb_path_in_has_news(const struct alb_path_in *in)
{
    return in->unreported > 0;
}
// What a paths frame that is now sent says of it.
void alb_path_in_report(struct alb_path_in *in, uint8_t path, alb_time now, struct alb_csa_path_entry *entry);
