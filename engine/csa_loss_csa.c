// SPDX-License-Identifier: BSD-2-Clause
// The loss policy "csa": paths are first in, first out, so the receiver knows from a path's own sequence numbers which
// packets are lost, and from rate and length when the tail is overdue. What such a report leaves open, and left more
// than a round trip of its own path ago, is lost too. Ours, after QUIC's packet numbers and RACK (RFC 8985, RFC 9002).
#include "engine/csa_loss.h"

// Where paths are many and packets few, a path's own next packet is far, and so is the news of what it has lost. But
// what the peer holds of other paths left later by so much that this should have come, too, however long its path is
// (RACK between paths, with a quarter of a round trip for queues).
static bool is_overtaken(const struct alb_loss_segment *segment, const struct alb_loss_sending *sending)
{
    alb_time rtt_ns = ALB_MAX(segment->path_rtt_ns, sending->rtt_ns);
    alb_time queued_ns = segment->path_rtt_min_ns ? rtt_ns - ALB_MIN(rtt_ns, segment->path_rtt_min_ns) : 0;
    return sending->has_many_paths && segment->overtaken_ns > queued_ns + rtt_ns / 4 + sending->margin_ns;
}

// The rest of what there is to send waits on a path that is late: a copy by another one is there sooner (hedged
// requests, Dean and Barroso, "The tail at scale", 2013). One copy, so that little is sent twice, and no size is
// suspected.
static bool is_left_behind(const struct alb_loss_segment *segment, const struct alb_loss_sending *sending)
{
    return sending->tail_rtt_ns > 0 && !segment->was_resent &&
           segment->age_ns > sending->tail_rtt_ns + sending->tail_rtt_ns / 2;
}

static bool is_lost(const struct alb_csa_loss *loss, const struct alb_loss_segment *segment,
                    const struct alb_loss_sending *sending)
{
    if (segment->is_settled || is_left_behind(segment, sending))
        return true;
    if (!sending->is_overdue)
        return is_overtaken(segment, sending);
    alb_time rtt_ns = ALB_MAX(segment->path_rtt_ns, sending->rtt_ns);
    if (segment->age_ns > rtt_ns + sending->margin_ns)
        return true;
    if (segment->was_resent) // the peer has waited for it for a round trip and a quarter
        return segment->age_ns > rtt_ns + rtt_ns / 8;
    // It stood in the same queue as what came last, and the peer has waited since.
    alb_time newest_ns = ALB_MAX(sending->rtt_newest_ns, segment->path_rtt_min_ns);
    return sending->rtt_newest_ns > 0 && segment->age_ns > newest_ns + newest_ns / 8;
}

// A report that came at once would be here within a round trip; the receiver may wait a quarter of one to ask. A probe
// that was too early costs a packet.
static alb_time silence_ns(const struct alb_csa_loss *loss, const struct alb_loss_sending *sending)
{
    return sending->rtt_ns + sending->rtt_ns / 4 + ALB_MIN(sending->margin_ns, sending->rtt_ns / 8);
}

const struct alb_csa_loss_ops alb_csa_loss_csa = {
    .name = "csa",
    .is_lost = is_lost,
    .silence_ns = silence_ns,
    .waits_round_trip = true,
    .on_silence = ALB_LOSS_PROBE,
    .asks_together = true,
    .takes_early = true,
    .reports_settled = true,
    .watches_tail = true,
};
