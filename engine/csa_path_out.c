// SPDX-License-Identifier: BSD-2-Clause
// What is known of the paths that packets leave by: sequence numbers, what the peer has settled, round-trip times,
// losses, marks, and silence. What follows from it for the choice of a path is the policy's.
//
// Silence. A path's last packets show no gap when they are lost, and a dead path shows nothing at all. But the peer
// tells all of its news of a range of paths (mostly of all) in each paths frame, and says which packet of a path was
// the last to come: if that one left two round trips (and what they vary by) after something on another path of the
// range of which nothing is heard, then the latter is lost. That is the rule of RACK (RFC 8985, section 6.2) between
// paths, with the patience that paths of unequal delay need.
#include "engine/path_choice.h"

#include <string.h>

enum {
    RECENT_PACKETS = 512,     // of which losses and marks are remembered in full
    RTT_SAMPLES = 8,          // that the round-trip time is smoothed over
    VARIATION_SAMPLES = 64,   // and what it varies by
    SAMPLES = 4,              // each round trip: more are worth no more
    CROWD_MAX = 16,           // times more
    RTT_MIN_AGEING = 2048,    // samples: the smallest round-trip time drifts toward the present by this
    WAITING_MAX = 1 << 22,    // packets, of the 2^23 that numbers tell apart
    SILENCE_SLACK_NS = 20000, // by which two packets that left together may differ at a busy receiver
    UNKNOWN_RTTS = 8,         // of the slowest other path: the patience with one that is not measured
};

#define REST_NS        50000000u   // after which a peer may forget its counters of a path (csa_live.c, csa_rest.c)
#define RTT_MAX_NS     2000000000u // half of what timestamps can tell
#define RTT_UNKNOWN_NS 1000000u    // if no path is measured

void alb_paths_out_init(struct alb_paths_out *paths, uint32_t count, alb_psn next)
{
    alb_assert(count > 0 && count <= ALB_PATHS_MAX);
    memset(paths, 0, alb_paths_out_bytes(count));
    paths->count = (uint8_t)count;
    paths->good = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++) {
        paths->path[i].next = next;
        paths->path[i].settled = next;
        alb_path_load(paths, i)->weight = ALB_PATH_WEIGHT_MAX;
    }
}

uint16_t alb_paths_choose(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint32_t flow_hash,
                          uint32_t bytes, alb_time now)
{
    paths->turn++;
    paths->current = paths->count > 1 ? (uint8_t)ops->pick(paths, flow_hash, bytes, now) : 0;
    alb_assert(paths->current < paths->count);
    return paths->current;
}

// The pace says again what the path says of waiting: a choice reads nothing else of it.
static void note_waiting(struct alb_paths_out *paths, uint16_t path)
{
    struct alb_path_pace *pace = alb_path_pace(paths, path);
    if (!pace)
        return;
    pace->since = paths->path[path].since;
    pace->is_waiting = alb_path_is_waiting(&paths->path[path]);
}

// A peer that tells nothing of what came by the path may go on for so long that its numbers come round. What it has not
// told of the first half by then, nobody waits for any more.
static void keep_apart(struct alb_path_out *out)
{
    if (alb_unlikely(alb_psn_diff(out->next, out->settled) >= WAITING_MAX))
        out->settled = alb_psn_add(out->next, -WAITING_MAX / 2);
}

alb_psn alb_path_sent(struct alb_paths_out *paths, uint16_t path, uint32_t bytes, alb_time now)
{
    struct alb_path_out *out = &paths->path[path];
    alb_psn sequence = out->next;
    keep_apart(out);
    if (!alb_path_is_waiting(out)) {
        out->has_rested |= alb_path_tick_of(now) - out->since >= REST_NS >> 10;
        out->since = alb_path_tick_of(now);
        paths->waiting++;
    }
    out->next = alb_psn_next(sequence);
    note_waiting(paths, path);
    alb_path_charge(paths, path, bytes);
    return sequence;
}

void alb_path_done(struct alb_paths_out *paths, uint16_t path, uint32_t bytes)
{
    struct alb_path_load *load = alb_path_load(paths, path);
    alb_assert(bytes <= load->inflight_bytes);
    load->inflight_bytes -= bytes;
    paths->loaded -= load->inflight_bytes == 0 && bytes > 0;
}

uint32_t alb_path_burst_bytes(const struct alb_paths_out *paths, uint16_t path, uint32_t window_bytes)
{
    if (alb_path_load(paths, path)->state == ALB_PATH_TRYING)
        return ALB_PATH_TRY_BYTES;
    uint32_t part_bytes = window_bytes / ALB_MAX(paths->good, 1u);
    return ALB_MAX(part_bytes, (uint32_t)ALB_PATH_TRY_BYTES);
}

// Without a crowd, as for a message at a time, nothing need be divided by what is known only now.
static inline int32_t part_of(int32_t whole, int32_t samples, uint32_t crowd)
{
    return alb_likely(crowd == 1) ? whole / samples : whole / (samples * (int32_t)crowd);
}

// Smoothed as in RFC 6298, section 2, with gains for the number of samples that a round trip yields (RFC 7323, appendix
// G), and a variation that follows much slower: a path that slows is to be seen against how it was. The smallest
// round-trip time is forgotten slowly, for routes change.
static void measure(struct alb_path_out *out, uint32_t sample_ns, uint32_t samples)
{
    uint32_t crowd = ALB_MIN(ALB_MAX(samples / SAMPLES, 1u), (uint32_t)CROWD_MAX);
    out->is_measured = true;
    if (out->rtt_ns == 0) {
        out->rtt_ns = out->rtt_min_ns = sample_ns;
        out->rtt_var_ns = sample_ns / 4;
        return;
    }
    uint32_t error_ns = sample_ns > out->rtt_ns ? sample_ns - out->rtt_ns : out->rtt_ns - sample_ns;
    out->rtt_var_ns += part_of((int32_t)(error_ns - out->rtt_var_ns), VARIATION_SAMPLES, crowd);
    out->rtt_ns += part_of((int32_t)(sample_ns - out->rtt_ns), RTT_SAMPLES, crowd);
    if (sample_ns < out->rtt_min_ns)
        out->rtt_min_ns = sample_ns;
    else
        out->rtt_min_ns += (uint32_t)part_of((int32_t)(sample_ns - out->rtt_min_ns), RTT_MIN_AGEING, crowd);
}

static void note_recent(struct alb_paths_out *paths, uint32_t path, uint32_t sample_ns)
{
    struct alb_path_pace *pace = alb_path_pace(paths, path);
    if (!pace)
        return;
    sample_ns = ALB_MIN(sample_ns, ALB_PATH_RECENT_NS_MAX);
    alb_path_set_recent_ns(paths, pace, pace->recent_ns ? pace->recent_ns / 2 + sample_ns / 2 : sample_ns);
}

static void remember(struct alb_path_out *out, uint32_t sent, uint32_t lost, uint32_t marked)
{
    sent += out->recent_sent;
    lost += out->recent_lost;
    marked += out->recent_marked;
    while (sent > RECENT_PACKETS) {
        sent /= 2;
        lost /= 2;
        marked /= 2;
    }
    out->recent_sent = sent & 0x3ff;
    out->recent_lost = ALB_MIN(lost, sent) & 0x3ff;
    out->recent_marked = ALB_MIN(marked, sent) & 0x3ff;
}

// True if the peer's counters begin anew, as it has forgotten the path while it was idle: they run backward, or all
// that they ever counted is no more than what is settled now. That may also be what has come of a path that had carried
// less than it loses now, but not behind a rest.
static bool begins_anew(const struct alb_path_out *out, const struct alb_csa_path_entry *entry, int32_t moved)
{
    if ((int32_t)(entry->received - out->received_seen) < 0)
        return true;
    return out->has_rested && out->received_seen > 0 && moved > 0 && entry->received <= (uint32_t)moved;
}

// What an entry says of the packets that left by the path; and a peer may say anything.
static struct alb_path_news compare(const struct alb_path_out *out, const struct alb_csa_path_entry *entry)
{
    struct alb_path_news news = {0};
    int32_t moved = alb_psn_diff(entry->settled, out->settled);
    uint32_t waiting = (uint32_t)alb_psn_diff(out->next, out->settled);
    uint32_t received = entry->received - out->received_seen, marked = entry->marked - out->marked_seen;
    if (moved > (int32_t)waiting || (moved <= 0 && (int32_t)received <= 0))
        return news;
    if (begins_anew(out, entry, moved)) {
        news.begins_anew = true;
        received = entry->received;
        marked = entry->marked;
    }
    news.is_new = true;
    news.is_settled_newer = moved > 0;
    news.settled = (uint32_t)ALB_MAX(moved, 0);
    // At most what is under way, and what has been given up for silence; before anything was heard, not the latter.
    news.received = ALB_MIN(received, waiting + (out->is_heard ? ALB_PATH_AHEAD_MAX : 0));
    news.marked = (int32_t)marked < 0 ? 0 : ALB_MIN(marked, news.received);
    return news;
}

// What was trimmed does not come either, and was reported already: it counts as marked. Returns how many of lost it
// were.
static uint32_t take_trimmed(struct alb_path_out *out, uint32_t lost)
{
    uint32_t trimmed = ALB_MIN(lost, (uint32_t)out->trimmed);
    out->trimmed = (out->trimmed - trimmed) & 0xff;
    return trimmed;
}

// Packets that come behind the first gap are received before they are settled. Returns how many were trimmed.
static uint32_t count_lost(struct alb_path_out *out, struct alb_path_news *news)
{
    if (news->begins_anew) { // what came before it forgot was not reported, and counts as if it had been
        out->ahead = 0;
        return 0;
    }
    uint32_t came = out->ahead + news->received;
    uint32_t used = ALB_MIN(came, news->settled), ahead = came - used;
    uint32_t trimmed = take_trimmed(out, news->settled - used);
    news->lost = news->settled - used - trimmed;
    out->ahead = ALB_MIN(ahead, (uint32_t)ALB_PATH_AHEAD_MAX);
    return trimmed;
}

// When the newest packet that the peer has of it left.
static alb_path_tick left_at(const struct alb_csa_path_entry *entry, alb_time now)
{
    return alb_path_tick_of(now - ALB_MIN(now, (alb_time)((uint32_t)now - entry->echo)));
}

void alb_path_scope_heard(struct alb_path_scope *scope, const struct alb_csa_path_entry *entry, alb_time now)
{
    alb_path_tick left = left_at(entry, now);
    if (!scope->is_heard || (int32_t)(left - scope->newest) > 0)
        scope->newest = left;
    scope->is_heard = true;
}

static void note_newest(struct alb_paths_out *paths, const struct alb_csa_path_entry *entry, alb_time now)
{
    alb_path_tick left = left_at(entry, now);
    if (!paths->is_heard || (int32_t)(left - paths->newest) > 0)
        paths->newest = left;
    paths->is_heard = true;
}

struct alb_path_news alb_path_heard(struct alb_paths_out *paths, const struct alb_path_ops *ops,
                                    const struct alb_csa_path_entry *entry, alb_time now)
{
    if (entry->path >= paths->count)
        return (struct alb_path_news){0};
    struct alb_path_out *out = &paths->path[entry->path];
    struct alb_path_news news = compare(out, entry);
    uint32_t waiting = (uint32_t)alb_psn_diff(out->next, out->settled);
    if (!news.is_new)
        return news;
    uint32_t trimmed = count_lost(out, &news);
    if (news.is_settled_newer) { // so it was waiting
        out->settled = entry->settled;
        paths->waiting -= !alb_path_is_waiting(out);
    }
    if (!alb_path_is_waiting(out))
        out->trimmed = 0;
    out->received_seen = entry->received;
    out->marked_seen = entry->marked;
    out->is_heard = true;
    out->is_silent = out->has_rested = false;
    out->since = alb_path_tick_of(now);
    note_waiting(paths, entry->path);
    remember(out, news.settled, news.lost, news.marked + trimmed);
    note_newest(paths, entry, now);
    uint32_t sample_ns = (uint32_t)now - entry->echo - entry->delay_ns;
    if (news.received > 0 && entry->delay_ns != UINT32_MAX && sample_ns > 0 && sample_ns < RTT_MAX_NS) {
        news.rtt_sample_ns = sample_ns;
        measure(out, sample_ns, waiting / news.received);
        note_recent(paths, entry->path, sample_ns);
    }
    if (ops->on_news)
        ops->on_news(paths, entry->path, &news, now);
    return news;
}

void alb_path_trimmed(struct alb_paths_out *paths, uint16_t path, alb_psn sequence, alb_time now)
{
    if (path >= paths->count || alb_path_is_settled(paths, path, sequence))
        return;
    struct alb_path_out *out = &paths->path[path];
    out->trimmed = ALB_MIN(out->trimmed + 1u, 255u) & 0xff;
    out->is_silent = false;
    out->since = alb_path_tick_of(now);
    note_waiting(paths, path);
}

// How many of those that are not settled have not come.
static uint32_t count_missing(const struct alb_path_out *out)
{
    uint32_t waiting = (uint32_t)alb_psn_diff(out->next, out->settled);
    return waiting - ALB_MIN((uint32_t)out->ahead, waiting);
}

static void settle_all(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint16_t path, alb_time now)
{
    struct alb_path_out *out = &paths->path[path];
    uint32_t waiting = (uint32_t)alb_psn_diff(out->next, out->settled);
    uint32_t lost = count_missing(out), trimmed = take_trimmed(out, lost);
    lost -= trimmed;
    out->settled = out->next;
    paths->waiting--;
    out->ahead = out->trimmed = 0;
    note_waiting(paths, path);
    remember(out, waiting, lost, trimmed);
    if (ops->on_silence)
        ops->on_silence(paths, path, lost, now);
    out->is_silent = true;
}

bool alb_path_silent(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint16_t path, alb_time now)
{
    bool is_waiting = alb_path_is_waiting(&paths->path[path]);
    if (paths->count > 1 && is_waiting)
        settle_all(paths, ops, path, now);
    return paths->count > 1 && is_waiting;
}

void alb_path_unanswered(struct alb_paths_out *paths, const struct alb_path_ops *ops, uint16_t path, alb_time now)
{
    struct alb_path_out *out = &paths->path[path];
    if (paths->count == 1 || !alb_path_is_waiting(out))
        return;
    uint32_t missing = count_missing(out);
    if (ops->on_silence)
        ops->on_silence(paths, path, missing - ALB_MIN(missing, (uint32_t)out->trimmed), now);
    out->is_silent = true;
}

// How long after a packet of it another one must have left, and come, for that one to be lost. Of a path that is not
// measured yet we know that it will not be many times slower than the others. One by which a probe went unanswered has
// had its time.
static alb_time patience_ns(const struct alb_paths_out *paths, const struct alb_path_out *out)
{
    if (out->is_silent)
        return 0;
    if (out->rtt_ns)
        return 2ull * out->rtt_ns + 4ull * out->rtt_var_ns + SILENCE_SLACK_NS;
    alb_time rtt_ns = 0;
    for (uint32_t i = 0; i < paths->count; i++)
        rtt_ns = ALB_MAX(rtt_ns, (alb_time)paths->path[i].rtt_ns);
    return UNKNOWN_RTTS * (rtt_ns ? rtt_ns : RTT_UNKNOWN_NS) + SILENCE_SLACK_NS;
}

// Where there are many, nearly all are out of question by what a choice looks at, and nearly always all of them.
static bool may_be_silent(const struct alb_paths_out *paths, uint32_t path, alb_path_tick since)
{
    const struct alb_path_pace *pace = alb_path_pace(paths, path);
    return !pace || alb_path_waits_since(pace, since);
}

static bool may_any_be_silent(const struct alb_paths_out *paths, uint32_t first, uint32_t past, alb_path_tick since)
{
    return !alb_path_pace(paths, 0) || alb_path_chooser_best()->has_waited(paths, first, past, since);
}

bool alb_paths_find_silent(const struct alb_paths_out *paths, const struct alb_path_scope *scope,
                           struct alb_path_set *silent)
{
    bool is_found = false;
    uint32_t past = ALB_MIN(scope->past, paths->count);
    alb_path_tick since = scope->newest - (SILENCE_SLACK_NS >> 10);
    if (paths->count == 1 || paths->waiting == 0 || !scope->is_heard ||
        !may_any_be_silent(paths, scope->first, past, since))
        return false;
    for (uint32_t i = scope->first; i < past; i++) {
        const struct alb_path_out *out = &paths->path[i];
        if (alb_likely(!may_be_silent(paths, i, since)) || !alb_path_is_waiting(out))
            continue;
        if ((int32_t)(scope->newest - out->since) <= (int64_t)(patience_ns(paths, out) >> 10))
            continue;
        if (!is_found)
            *silent = (struct alb_path_set){0};
        alb_path_set_put(silent, i, true);
        is_found = true;
    }
    return is_found;
}

alb_psn alb_paths_out_last(const struct alb_paths_out *paths)
{
    alb_psn last = paths->path[0].next;
    for (uint32_t i = 1; i < paths->count; i++)
        if (alb_psn_is_after(paths->path[i].next, last))
            last = paths->path[i].next;
    return last;
}
