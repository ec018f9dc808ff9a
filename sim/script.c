// SPDX-License-Identifier: BSD-2-Clause
#include "sim/script.h"

void alb_sim_script_add(struct alb_sim_script *script, const struct alb_sim_rule *rule)
{
    alb_assert(script->count < ALB_SIM_RULES_MAX);
    struct alb_sim_rule *own = &script->rules[script->count++];
    *own = *rule;
    own->from = ALB_MAX(rule->from, 1u);
    own->times = ALB_MAX(rule->times, 1u);
    own->matched = own->acted = 0;
}

void alb_sim_script_clear(struct alb_sim_script *script)
{
    script->count = script->stream_count = 0;
}

bool alb_sim_script_is_done(const struct alb_sim_script *script)
{
    for (uint32_t i = 0; i < script->count; i++) {
        const struct alb_sim_rule *rule = &script->rules[i];
        if (rule->times == UINT32_MAX ? rule->acted == 0 : rule->acted < rule->times)
            return false;
    }
    return true;
}

static bool refuses(const struct alb_roce *roce, const struct alb_opcode_info *info)
{
    return info->flags & ALB_OPCODE_ACK && alb_aeth_class(roce->syndrome) != ALB_AETH_ACK;
}

static bool matches_packet(const struct alb_sim_rule *rule, const struct alb_roce *roce)
{
    const struct alb_opcode_info *info = alb_opcode_info(roce->opcode);
    if (rule->by & ALB_SIM_BY_OPCODE && roce->opcode != rule->opcode)
        return false;
    if (rule->by & ALB_SIM_BY_FLAGS && (!info || (info->flags & rule->flags) != rule->flags))
        return false;
    if (rule->by & ALB_SIM_BY_PSN && roce->psn != rule->psn)
        return false;
    if (rule->by & ALB_SIM_BY_QPN && roce->dest_qpn != rule->qpn)
        return false;
    return !(rule->by & ALB_SIM_BY_NAK) || (info && refuses(roce, info));
}

static void act(const struct alb_sim_rule *rule, struct alb_sim_verdict *verdict)
{
    switch (rule->action) {
    case ALB_SIM_DROP:
        verdict->is_lost = true;
        break;
    case ALB_SIM_DUPLICATE:
        verdict->copies = true;
        break;
    case ALB_SIM_SWAP:
        verdict->pass = (uint32_t)ALB_MAX(rule->amount, 1ull);
        break;
    case ALB_SIM_DELAY:
        verdict->delay += rule->amount;
        break;
    case ALB_SIM_CORRUPT:
        verdict->is_corrupt = true;
        verdict->corrupt_bit = (uint32_t)rule->amount;
        break;
    case ALB_SIM_MARK:
        verdict->is_marked = true;
        break;
    }
}

// ---- CSA ------------------------------------------------------------------------------------------------------------

static bool is_segment(const struct alb_csa_frame *frame)
{
    return frame->type == ALB_CSA_REQUEST || frame->type == ALB_CSA_RESPONSE;
}

static struct alb_sim_stream *stream_of(struct alb_sim_script *script, enum alb_csa_type type,
                                        const struct alb_csa_segment *segment)
{
    for (uint32_t i = 0; i < ALB_MIN(script->stream_count, (uint32_t)ALB_SIM_STREAMS_MAX); i++)
        if (script->streams[i].type == type && script->streams[i].qpn == segment->dest_qpn)
            return &script->streams[i];
    struct alb_sim_stream *stream = &script->streams[script->stream_count++ % ALB_SIM_STREAMS_MAX];
    *stream = (struct alb_sim_stream){type, segment->dest_qpn, segment->psn};
    return stream;
}

// True if a segment has been on this link before.
static bool is_sent_again(struct alb_sim_script *script, const struct alb_csa_frame *frame)
{
    if (!is_segment(frame))
        return false;
    struct alb_sim_stream *stream = stream_of(script, frame->type, &frame->segment);
    if (alb_psn_is_before(frame->segment.psn, stream->next))
        return true;
    stream->next = (frame->segment.psn + 1) & ALB_PSN_MASK;
    return false;
}

static alb_qpn qpn_of(const struct alb_csa_frame *frame)
{
    switch (frame->type) {
    case ALB_CSA_REPORT:
        return frame->report.qpn;
    case ALB_CSA_PROBE:
        return frame->probe.dest_qpn;
    case ALB_CSA_REQUEST:
    case ALB_CSA_RESPONSE:
    case ALB_CSA_DATAGRAM:
        return frame->segment.dest_qpn;
    default:
        return UINT32_MAX;
    }
}

static bool matches_segment(const struct alb_sim_rule *rule, const struct alb_csa_segment *segment, bool is_again)
{
    if (rule->by & ALB_SIM_BY_INDEX && segment->index != rule->index)
        return false;
    if (rule->by & ALB_SIM_BY_MESSAGE && ((segment->psn - segment->index) & ALB_PSN_MASK) != rule->message)
        return false;
    if (rule->by & ALB_SIM_BY_PSN && segment->psn != rule->psn)
        return false;
    return !(rule->by & (is_again ? ALB_SIM_BY_NEW : ALB_SIM_BY_AGAIN));
}

static bool matches_frame(const struct alb_sim_rule *rule, const struct alb_csa_header *header,
                          const struct alb_csa_frame *frame, bool is_again)
{
    const uint32_t of_segment =
        ALB_SIM_BY_INDEX | ALB_SIM_BY_MESSAGE | ALB_SIM_BY_NEW | ALB_SIM_BY_AGAIN | ALB_SIM_BY_PSN;
    if (rule->by & ALB_SIM_BY_FRAME && frame->type != rule->frame)
        return false;
    if (rule->by & ALB_SIM_BY_PATH && header->path != rule->path)
        return false;
    if (rule->by & ALB_SIM_BY_QPN && qpn_of(frame) != rule->qpn)
        return false;
    if (rule->by & ALB_SIM_BY_OP && !(is_segment(frame) && frame->segment.op == rule->op))
        return false;
    return !(rule->by & of_segment) || (is_segment(frame) && matches_segment(rule, &frame->segment, is_again));
}

// Bit i: rule i matches a frame of the packet.
static uint32_t match_frames(struct alb_sim_script *script, const uint8_t *bytes, uint32_t length)
{
    struct alb_csa_header header;
    struct alb_csa_cursor cursor;
    struct alb_csa_frame frame;
    enum alb_drop drop;
    uint32_t matched = 0;
    if (!alb_csa_is_packet(bytes, length) || alb_csa_decode(bytes, length, &header, &cursor) != ALB_DROP_NONE)
        return 0;
    while (alb_csa_next(&cursor, &frame, &drop)) {
        bool is_again = is_sent_again(script, &frame);
        for (uint32_t i = 0; i < script->count; i++)
            matched |= (uint32_t)matches_frame(&script->rules[i], &header, &frame, is_again) << i;
    }
    return matched;
}

void alb_sim_script_decide(struct alb_sim_script *script, const struct alb_roce *roce, const uint8_t *bytes,
                           uint32_t length, struct alb_sim_verdict *verdict)
{
    uint32_t by_frames = match_frames(script, bytes, length);
    for (uint32_t i = 0; i < script->count; i++) {
        struct alb_sim_rule *rule = &script->rules[i];
        bool matches = rule->by & ALB_SIM_BY_ANY_FRAME ? by_frames >> i & 1 : matches_packet(rule, roce);
        if (!matches || ++rule->matched < rule->from || rule->acted >= rule->times)
            continue;
        rule->acted++;
        act(rule, verdict);
    }
}
