// SPDX-License-Identifier: BSD-2-Clause
// A report about a sending half: it says what the peer holds, and the loss policy says what of the rest is lost.
// docs/PROTOCOL.md, "The sender judges".
#include "engine/impl.h"

enum {
    FEW_SEGMENTS = 4, // of a window on each path
};

static struct alb_assoc_live *live_of(const struct alb_stream_out *out)
{
    return out->csa->assoc->live;
}

// ---- what the peer holds --------------------------------------------------------------------------------------------

// The peer has dropped something for lack of room: half of it goes again, or as much as it has taken meanwhile. The
// oldest one it can always take.
static void heed_full(struct alb_stream_out *out, uint32_t taken)
{
    uint32_t room = ALB_MIN((uint32_t)out->room, alb_stream_out_count(out)) / 2;
    room = ALB_MAX(room, taken);
    room = ALB_MIN(room, (uint32_t)UINT16_MAX);
    out->room = (uint16_t)ALB_MAX(room, 1u);
}

// The bitmap; *newest: one past the last PSN it holds. *is_news: it was not known of all.
static uint32_t take_bitmap(struct alb_stream_out *out, const struct alb_csa_report *report, alb_psn *newest,
                            bool *is_news)
{
    uint32_t bytes = 0, count = alb_stream_out_count(out), first = report->page * ALB_CSA_PAGE_BITS;
    *newest = out->una;
    *is_news = false;
    for (uint32_t word = 0; word < report->word_count; word++)
        for (uint64_t bits = report->held[word]; bits; bits &= bits - 1) {
            uint32_t i = first + 64 * word + (uint32_t)__builtin_ctzll(bits);
            if (i >= count)
                return bytes; // what was never sent: the rest is nonsense
            struct alb_sent *sent = alb_stream_out_at(out, alb_psn_add(out->una, (int32_t)i));
            *is_news |= sent->state != ALB_SENT_HELD;
            bytes += alb_stream_out_arrived(out, sent);
            sent->state = ALB_SENT_HELD;
            *newest = alb_psn_add(out->una, (int32_t)i + 1);
        }
    return bytes;
}

// ---- what is lost ---------------------------------------------------------------------------------------------------

// By its own path's numbers a lost segment shows when the path's next one comes: late, if a window has few for each.
static bool has_many_paths(const struct alb_stream_out *out)
{
    const struct alb_assoc_live *live = out->csa->assoc->live;
    if (!live || live->paths->count <= ALB_PATHS_MANY || out->una == out->next)
        return false;
    uint64_t few_bytes = (uint64_t)FEW_SEGMENTS * alb_stream_out_at(out, out->una)->bytes;
    return live->paths->good * few_bytes > live->congestion.window_bytes;
}

// If the peer was just slow, what it reported last has taken long, too.
static alb_time tail_rtt_ns(const struct alb_stream_out *out)
{
    const struct alb_assoc_live *live = out->csa->assoc->live;
    if (!live || live->paths->typical_ns == 0 || !alb_stream_out_is_at_end(out))
        return 0;
    return ALB_MAX(live->paths->typical_ns, live->rtt_sample_ns);
}

struct alb_loss_sending alb_stream_out_sending(const struct alb_stream_out *out)
{
    const struct alb_csa *csa = out->csa;
    return (struct alb_loss_sending){
        .rtt_ns = alb_assoc_rtt_ns(csa->assoc),
        .margin_ns = alb_assoc_margin_ns(csa->qp->engine, csa->assoc),
        .rtt_newest_ns = csa->assoc->live ? csa->assoc->live->rtt_newest_ns : 0,
        .flying = alb_stream_out_count(out),
        .has_many_paths = has_many_paths(out),
        .tail_rtt_ns = tail_rtt_ns(out),
        .answers_probe = out->probes > 0,
    };
}

// What left last of what the peer holds; NULL if it left twice, since then it is unknown which has come.
static const struct alb_sent *last_held(const struct alb_stream_out *out, alb_psn newest)
{
    const struct alb_sent *held = alb_stream_out_at(out, alb_psn_add(newest, -1));
    return held->times == 1 ? held : NULL;
}

// behind: how many after it the last one held is; held: last_held.
static inline struct alb_loss_segment view(const struct alb_paths_out *paths, const struct alb_sent *sent,
                                           int32_t behind, const struct alb_sent *held, alb_time now)
{
    const struct alb_path_out *path = &paths->path[sent->path];
    int32_t later = behind > 0 && held ? (int32_t)(held->at_64ns - sent->at_64ns) : 0;
    return (struct alb_loss_segment){
        .age_ns = (alb_time)((uint32_t)(now >> 6) - sent->at_64ns) << 6,
        .path_rtt_ns = path->rtt_ns,
        .path_rtt_min_ns = path->rtt_min_ns,
        .behind = (uint32_t)ALB_MAX(behind, 0),
        .overtaken_ns = (alb_time)ALB_MAX(later, 0) << 6,
        .is_settled = alb_path_is_settled(paths, sent->path, sent->sequence),
        .was_resent = sent->times > 1,
    };
}

// What a report says nothing about cannot be judged by it: behind a page that is full others follow, if there is room.
static uint32_t covered_until(const struct alb_stream_out *out, const struct alb_csa_report *report)
{
    uint32_t count = alb_stream_out_count(out);
    return report->word_count == ALB_CSA_BITMAP_WORDS ? ALB_MIN(count, (report->page + 1) * ALB_CSA_PAGE_BITS) : count;
}

// Even the oldest one was dropped though it went alone: it goes again when silence says so, not at once.
static bool is_refused_again(const struct alb_stream_out *out, alb_psn psn)
{
    return psn == out->una && out->room == 1 && alb_stream_out_at(out, psn)->times > 1;
}

// The first to be judged, counted from una on, as from and until are. The pages of a report follow one another; but no
// packet judges a segment twice: a report of one empty word costs the peer 20 bytes, and us a look at all in flight.
static uint32_t judge_once(struct alb_stream_out *out, uint32_t from, uint32_t until)
{
    uint32_t packet = out->csa->qp->engine->csa->packet_number;
    int32_t judged = out->judged_in == packet ? alb_psn_diff(out->judged_until, out->una) : 0;
    if (judged > (int32_t)from)
        from = (uint32_t)judged;
    if (from < until) {
        out->judged_in = packet;
        out->judged_until = alb_psn_add(out->una, (int32_t)until);
    }
    return from;
}

// Goes over what is neither acknowledged nor held.
static uint32_t judge(struct alb_stream_out *out, const struct alb_csa_report *report,
                      const struct alb_loss_sending *sending, alb_psn newest, alb_time now)
{
    const struct alb_csa_loss *loss = &out->csa->qp->engine->csa->loss;
    const struct alb_paths_out *paths = live_of(out)->paths;
    const struct alb_sent *held = last_held(out, newest);
    uint32_t lost_bytes = 0, until = covered_until(out, report);
    int32_t behind = alb_psn_diff(newest, out->una) - 1;
    bool goes_back = false;
    for (uint32_t i = judge_once(out, report->page * ALB_CSA_PAGE_BITS, until); i < until; i++) {
        alb_psn psn = alb_psn_add(out->una, (int32_t)i);
        const struct alb_sent *sent = alb_stream_out_at(out, psn);
        if (sent->state != ALB_SENT_FLYING || (report->is_full && is_refused_again(out, psn)))
            continue;
        const struct alb_loss_segment segment = view(paths, sent, behind - (int32_t)i, held, now);
        if (!goes_back && !loss->ops->is_lost(loss, &segment, sending))
            continue;
        goes_back = loss->ops->goes_back;
        lost_bytes += alb_stream_out_mark_lost(out, psn);
    }
    return lost_bytes;
}

static bool says_out_of_sequence(const struct alb_csa_report *report)
{
    return alb_aeth_class(report->syndrome) == ALB_AETH_NAK &&
           alb_aeth_value(report->syndrome) == ALB_NAK_PSN_SEQUENCE_ERROR;
}

// The queue pair fails by such a report, and what was not taken is not lost. Answers are not refused.
static bool is_refusal(const struct alb_csa_report *report)
{
    return !report->is_response && alb_aeth_class(report->syndrome) == ALB_AETH_NAK && !says_out_of_sequence(report);
}

// Most reports tell of no hole, and then the oldest segment alone tells whether there may be one.
static bool needs_judging(const struct alb_stream_out *out, const struct alb_csa_report *report,
                          const struct alb_loss_sending *sending, alb_psn newest, alb_time now)
{
    const struct alb_csa_loss *loss = &out->csa->qp->engine->csa->loss;
    if (out->una == out->next || is_refusal(report))
        return false;
    if (report->word_count > 0)
        return true;
    const struct alb_sent *sent = alb_stream_out_at(out, out->una);
    if (sent->state != ALB_SENT_FLYING)
        return false;
    const struct alb_loss_segment segment =
        view(live_of(out)->paths, sent, alb_psn_diff(newest, out->una) - 1, last_held(out, newest), now);
    return loss->ops->is_lost(loss, &segment, sending);
}

// ---- the report -----------------------------------------------------------------------------------------------------

static bool is_credible(const struct alb_stream_out *out, const struct alb_csa_report *report)
{
    int16_t ahead = (int16_t)(report->number - out->report_number);
    if (out->has_report && (ahead < 0 || (ahead == 0 && report->page <= out->report_page)))
        return false;
    return alb_stream_out_can_be_acked(out, report->cumulative);
}

bool alb_stream_out_report(struct alb_stream_out *out, const struct alb_csa_report *report, alb_time now)
{
    struct alb_engine *engine = out->csa->qp->engine;
    struct alb_assoc_live *live = live_of(out);
    if (!is_credible(out, report))
        return false;
    out->has_report = true;
    out->report_number = report->number;
    out->report_page = (uint8_t)report->page;
    struct alb_loss_sending sending = {0};
    if (report->cumulative != out->next) { // else nothing is left to be judged
        sending = alb_stream_out_sending(out);
        sending.is_nak = says_out_of_sequence(report);
        sending.is_overdue = report->is_overdue;
    }
    bool was_silent = alb_stream_out_is_silent(out);
    out->reported_at = now;
    alb_psn newest, una = out->una;
    uint32_t inflight_bytes = (uint32_t)live->inflight_bytes;
    uint32_t landed = alb_stream_out_take_cumulative(out, report->cumulative);
    if (alb_unlikely(report->is_full))
        heed_full(out, (uint32_t)alb_psn_diff(out->una, una));
    bool is_news;
    landed += take_bitmap(out, report, &newest, &is_news);
    uint32_t lost = 0;
    if (needs_judging(out, report, &sending, newest, now))
        lost = judge(out, report, &sending, newest, now);
    if (landed || live->late_bytes)
        alb_csa_note_landed(live, landed, now);
    if (is_news || out->una != una) { // whether it was still charged or not
        if (out->probes > 0)          // watched again below
            alb_wheel_disarm(&engine->wheel, &out->probe_timer.timer);
        out->probes = 0;
    }
    if (lost) {
        alb_qp_count(out->csa->qp, ALB_STAT_packet_seq_err, 1);
        alb_congestion_on_loss(engine->congestion, &live->congestion, inflight_bytes, lost, ALB_LOSS_NAK, now);
    }
    if (landed + lost)
        alb_assoc_release(live, landed + lost);
    if (out->una == out->next)
        alb_stream_out_give_back(out);
    if (out->una != una || landed || was_silent || out->lost_count > 0)
        alb_stream_out_wake(out);
    alb_stream_out_watch(out, now);
    return true;
}
