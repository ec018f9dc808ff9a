// SPDX-License-Identifier: BSD-2-Clause
// Packets out. What the streams of an association have to send is gathered, one burst on one path at a time; behind it
// comes what is to be said about the other direction: what was trimmed, then paths, then reports, which are judged by
// both.
#include "engine/csa_run.h"
#include "engine/impl.h"

enum {
    NEWS_PATHS_MIN = 8,
    NEWS_WAIT_BYTES = 65536,
};

#define NEWS_NS (10 * ALB_NS_PER_MS) // news of however few paths need not wait for longer

void alb_csa_count_frames(struct alb_qp *qp, uint32_t frames)
{
    qp->stats->stats.counter[ALB_STAT_sent_pkts] += frames;
}

static enum alb_csa_fill fill_from(struct alb_stream_out *out, struct alb_csa_packet *packet, alb_time now)
{
    return out->is_response ? alb_csa_fill_response(out->csa, packet) : alb_csa_fill_request(out->csa, packet, now);
}

static void hold_back(struct alb_assoc_live *live, struct alb_stream_out *out)
{
    alb_line_wait(out, out->lost_count > 0);
    live->window_limited |= live->congestion.window_bytes <= live->credit_bytes;
    alb_qp_count(out->csa->qp, ALB_STAT_window_stalls, 1);
}

// Fills one packet from the senders in line. PACKET: it is full; BATCH: so is the batch; NONE: there is no more.
static enum alb_csa_fill fill_packet(struct alb_assoc_live *live, struct alb_csa_packet *packet, alb_time now)
{
    const struct alb_stream_out *served = NULL;
    struct alb_stream_out *out;
    while ((out = alb_line_next(live))) {
        uint32_t segments_before = packet->frames;
        enum alb_csa_fill fill = fill_from(out, packet, now);
        if (packet->frames > segments_before)
            alb_csa_count_frames(out->csa->qp, packet->frames - segments_before);
        switch (fill) {
        case ALB_CSA_FILL_DONE:
            served = out;
            break;
        case ALB_CSA_FILL_LAST:
        case ALB_CSA_FILL_NONE:
            alb_line_leave(out);
            if (alb_csa_turn_is_over(live, now)) // it was that sender's alone
                return ALB_CSA_FILL_NONE;
            break;
        case ALB_CSA_FILL_WINDOW:
            if (out != served) {
                hold_back(live, out);
                break;
            }
            served = NULL; // the source that used the last of the window waits behind the others
            alb_line_pass(out);
            break;
        case ALB_CSA_FILL_PACKET: // the next packet is another's, but for a run
            packet->filled_by = out == served ? out : NULL;
            alb_line_pass(out);
            return fill;
        case ALB_CSA_FILL_BATCH:
            return fill;
        }
    }
    return ALB_CSA_FILL_NONE;
}

// ---- what is said about the other direction -------------------------------------------------------------------------

// Room for a frame without payload, in a further packet if need be; NULL: the batch is full.
static uint8_t *control_frame(struct alb_csa_packet *packet, uint32_t bytes)
{
    uint8_t *frame = NULL;
    if (packet->is_open && alb_csa_packet_fits(packet, bytes))
        frame = alb_csa_packet_frame(packet, bytes, 0, 0);
    if (frame)
        return frame;
    alb_csa_packet_close(packet);
    return alb_csa_packet_open(packet) ? alb_csa_packet_frame(packet, bytes, 0, 0) : NULL;
}

bool alb_csa_control(struct alb_csa_packet *packet, enum alb_csa_type type, const void *what)
{
    uint8_t room[ALB_CSA_FRAME_MAX];
    uint32_t bytes = type == ALB_CSA_TXN ? alb_csa_encode_txn(what, room) : alb_csa_encode_verdict(what, room);
    uint8_t *frame = control_frame(packet, bytes);
    if (!frame)
        return false;
    memcpy(frame, room, bytes);
    return true;
}

// What frames may take in a packet of their own.
static uint32_t control_room_bytes(const struct alb_assoc *assoc)
{
    return assoc->payload_max - ALB_CSA_OUTER_BYTES - ALB_ICRC_BYTES;
}

// All pages in one packet: they have one number, and none comes without those before it.
static bool add_report(struct alb_stream_in *in, struct alb_csa_packet *packet)
{
    struct alb_csa_report report;
    uint32_t pages = alb_stream_in_report_pages(in, control_room_bytes(in->csa->assoc));
    alb_stream_in_fill_report(in, pages - 1, &report);
    uint32_t last_bytes = alb_csa_report_bytes(report.word_count);
    uint8_t *frame = control_frame(packet, (pages - 1) * alb_csa_report_bytes(ALB_CSA_BITMAP_WORDS) + last_bytes);
    if (!frame)
        return false;
    alb_csa_encode_report(&report, frame + (pages - 1) * alb_csa_report_bytes(ALB_CSA_BITMAP_WORDS));
    for (uint32_t page = 0; page < pages - 1; page++) {
        alb_stream_in_fill_report(in, page, &report);
        frame += alb_csa_encode_report(&report, frame);
    }
    alb_stream_in_reported(in);
    return true;
}

static bool add_reports(struct alb_assoc_live *live, struct alb_csa_packet *packet)
{
    while (!alb_list_is_empty(&live->reports)) {
        struct alb_stream_in *in = ALB_LIST_ENTRY(live->reports.next, struct alb_stream_in, report_link);
        if (!add_report(in, packet))
            return false;
        alb_qp_count(in->csa->qp, ALB_STAT_ack_sent, 1);
        if (in->waits_rnr)
            alb_qp_count(in->csa->qp, ALB_STAT_send_rnr_err, 1);
        if (!in->is_response && in->csa->farewells > 0) { // once more, in another packet
            in->csa->farewells--;
            alb_csa_packet_close(packet);
            alb_list_push_back(&live->reports, &in->report_link);
        }
    }
    return true;
}

// So many entries fit into a packet of their own.
static uint32_t entries_max(const struct alb_assoc *assoc)
{
    uint32_t room_bytes = control_room_bytes(assoc) - alb_csa_paths_bytes(0);
    return ALB_MIN(room_bytes / (alb_csa_paths_bytes(1) - alb_csa_paths_bytes(0)), (uint32_t)ALB_CSA_PATHS_ENTRIES);
}

// What is known of a path lies in a line of its own, and none waits for another: asked for together.
static void fetch_news(const struct alb_assoc_live *live, uint32_t left)
{
    for (uint32_t path = 0; left > 0; left--, path++) {
        path = alb_path_set_next(&live->paths_in_news, path);
        __builtin_prefetch(&live->paths_in[path], 1);
    }
}

// All news of paths, in as many frames as they need.
static bool add_paths(struct alb_assoc_live *live, struct alb_csa_packet *packet, alb_time now)
{
    struct alb_csa_paths paths; // long, and only the beginning of it is used
    const struct alb_path_set *news = &live->paths_in_news;
    uint32_t left = alb_path_set_count(news), most = entries_max(live->assoc), path = 0;
    if (left > 1)
        fetch_news(live, left);
    paths.credit_bytes = alb_assoc_credit(live, now);
    paths.share = alb_credit_share(&live->engine->csa->credit, &live->credit_in, now);
    do {
        uint32_t count = ALB_MIN(left, most);
        uint8_t *frame = control_frame(packet, alb_csa_paths_bytes(count));
        if (!frame)
            return false;
        left -= count;
        paths.first = (uint8_t)path;
        paths.has_more = left > 0;
        for (paths.count = 0; paths.count < count; path++) {
            path = alb_path_set_next(news, path);
            alb_path_in_report(&live->paths_in[path], (uint8_t)path, now, &paths.entries[paths.count++]);
            alb_assoc_note_path_in(live, path);
        }
        alb_csa_encode_paths(&paths, frame);
    } while (left > 0);
    live->paths_are_due = false;
    return true;
}

static bool add_pong(struct alb_assoc_live *live, struct alb_csa_packet *packet)
{
    uint8_t room[ALB_CSA_FRAME_MAX];
    uint32_t bytes = alb_csa_encode_pong(live->pong_bytes, room);
    uint8_t *frame = control_frame(packet, bytes);
    if (!frame)
        return false;
    memcpy(frame, room, bytes);
    live->pong_bytes = 0;
    return true;
}

// In front of paths and reports, by which the same packets would be lost.
static bool add_trimmed(struct alb_assoc_live *live, struct alb_csa_packet *packet)
{
    uint8_t room[ALB_CSA_FRAME_MAX];
    struct alb_csa_trimmed trimmed;
    while (alb_trimmed_in_next(&live->trimmed, &trimmed)) {
        uint32_t bytes = alb_csa_encode_trimmed(&trimmed, room);
        uint8_t *frame = control_frame(packet, bytes);
        if (!frame)
            return false;
        memcpy(frame, room, bytes);
        alb_trimmed_in_reported(&live->trimmed);
    }
    live->trimmed_is_due = false;
    return true;
}

static bool add_cnp(struct alb_assoc_live *live, struct alb_csa_packet *packet)
{
    uint8_t room[ALB_CSA_FRAME_MAX];
    uint32_t bytes = alb_csa_encode_cnp(room);
    uint8_t *frame = control_frame(packet, bytes);
    if (!frame)
        return false;
    memcpy(frame, room, bytes);
    live->cnp_is_due = false;
    live->engine->stats->sum.counter[ALB_STAT_np_cnp_sent]++;
    return true;
}

// False: the batch is full.
static bool add_control(struct alb_assoc_live *live, struct alb_csa_packet *packet, alb_time now)
{
    return (!live->trimmed_is_due || add_trimmed(live, packet)) &&
           (!live->paths_are_due || add_paths(live, packet, now)) && add_reports(live, packet) &&
           (alb_list_is_empty(&live->reflections) || alb_reflect_add(live, packet, now)) &&
           (!live->pong_bytes || add_pong(live, packet)) && (!live->cnp_is_due || add_cnp(live, packet));
}

// ---- a burst --------------------------------------------------------------------------------------------------------

// Data waits while the rate says so; what is said about the other direction does not.
static bool may_send_data(struct alb_assoc_live *live, alb_time now)
{
    struct alb_engine *engine = live->engine;
    alb_time at = alb_congestion_send_at(engine->congestion, &live->congestion, now);
    // Where reports wait for each other losses are better close together, since each one is reported.
    if (at <= now || (live->congestion.is_paced && live->reports_queued > 0))
        return true;
    // A window that is paced is seldom full, and in slow start half full (as Linux has it, is_cwnd_limited).
    live->window_limited |= live->congestion.is_paced && alb_line_next(live) != NULL &&
                            live->congestion.window_bytes <= live->credit_bytes &&
                            live->inflight_bytes >= live->congestion.window_bytes / 2;
    alb_wheel_arm(&engine->wheel, &live->pace_timer.timer, at);
    return false;
}

void alb_assoc_pace(struct alb_deadline *deadline, alb_time now)
{
    struct alb_assoc_live *live = ALB_CONTAINER_OF(deadline, struct alb_assoc_live, pace_timer);
    alb_scheduler_wake(&live->engine->scheduler, &live->source);
}

// Reports come by paths, too, and their sender learns of these paths only from us: now and then it goes with data. One
// that is late would hold back the end of a message. Of few paths seldom, but before its numbers come round
// (csa_path_out.c), and so that a path that was left is tried.
static bool wants_paths(struct alb_assoc_live *live, alb_time now)
{
    uint32_t count = alb_path_set_count(&live->paths_in_news);
    alb_time wait_ns = count >= NEWS_PATHS_MIN ? live->rtt_ns : ALB_MAX(live->rtt_ns, NEWS_NS);
    if (count == 0 || now < live->paths_sent_at + wait_ns)
        return false;
    live->paths_sent_at = now;
    return true;
}

// True if what leaves now is a report of a whole message. Not an answer to a probe: the one before may have been lost
// where this one would go.
static bool is_awaited(struct alb_assoc_live *live)
{
    if (alb_list_is_empty(&live->reports) || alb_line_next(live))
        return false;
    const struct alb_stream_in *in = ALB_LIST_ENTRY(live->reports.next, struct alb_stream_in, report_link);
    return !in->is_open && in->cumulative == in->end && !in->is_overdue;
}

// What else is to be sent is the short end of a message, and leaves at once. What is said beside data goes with that: a
// program that looks at memory polls no more once its own message is acknowledged (LESSONS 145).
static bool news_may_wait(struct alb_assoc_live *live, alb_time now)
{
    struct alb_stream_out *out = alb_line_next(live);
    if (!live->engine->config.sends_bursts || !out || out->is_response || live->ready.next != live->ready.prev ||
        alb_csa_turn_is_over(live, now))
        return false;
    return alb_csa_ends_within(out->csa, ALB_MIN(alb_assoc_room_bytes(live), (uint64_t)NEWS_WAIT_BYTES));
}

enum alb_build_result alb_assoc_build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    struct alb_assoc_live *live = ALB_CONTAINER_OF(source, struct alb_assoc_live, source);
    struct alb_csa_packet packet;
    enum alb_csa_fill fill = ALB_CSA_FILL_NONE;
    live->paths->is_awaited = is_awaited(live);
    alb_csa_packet_init(&packet, live, builder, now);
    live->is_used = true;
    bool may_send = may_send_data(live, now), sends_data = may_send && !alb_csa_turn_is_over(live, now);
    uint32_t data_bytes = 0, burst_bytes = 0;
    for (uint32_t i = 0; sends_data && i < builder->tx->burst_segments_max && alb_line_next(live); i++) {
        alb_csa_packet_close(&packet);
        if (i > 0 && alb_tx_burst_is_full(builder))
            break; // the rest would be a short burst: it takes a path of its own, as a whole one
        if (!alb_csa_packet_open(&packet)) {
            fill = ALB_CSA_FILL_BATCH;
            break;
        }
        alb_csa_turn_choose(live, now);
        fill = fill_packet(live, &packet, now);
        data_bytes += packet.charged_bytes;
        if (fill != ALB_CSA_FILL_PACKET)
            break;
        if (i == 0)
            burst_bytes = alb_path_burst_bytes(live->paths, packet.flow.path, live->congestion.window_bytes);
        if (alb_csa_turn_is_over(live, now))
            break;
        i += alb_csa_run_out(&packet, builder->tx->burst_segments_max - i - 1, &burst_bytes, &data_bytes);
        if (data_bytes >= burst_bytes)
            break;
    }
    if (data_bytes > 0)
        alb_congestion_on_burst(live->engine->congestion, &live->congestion, data_bytes, now);
    alb_csa_turn_choose(live, now);
    live->source.due = alb_csa_turn_due(live, now);
    live->paths_are_due |= data_bytes > 0 && wants_paths(live, now);
    bool waits = data_bytes > 0 && news_may_wait(live, now);
    bool is_complete = waits || (add_control(live, &packet, now) && alb_mtu_send(&packet));
    alb_csa_packet_close(&packet);
    if (!is_complete || fill == ALB_CSA_FILL_BATCH)
        return ALB_BUILD_FULL;
    return may_send && alb_line_next(live) ? ALB_BUILD_MORE : ALB_BUILD_IDLE;
}
