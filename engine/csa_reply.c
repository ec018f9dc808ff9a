// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_reply.h"

#include "engine/impl.h"

#define PATH_NONE 0xff // not one of an association's: its packets are not counted

static enum alb_build_result build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    struct alb_csa_replies *replies = ALB_CONTAINER_OF(source, struct alb_csa_replies, source);
    for (; replies->count > 0; replies->count--) {
        struct alb_csa_reply *reply = &replies->ring[replies->first];
        uint8_t *header = alb_tx_packet_begin(builder, ALB_CSA_OUTER_BYTES);
        uint8_t *frame = header ? alb_tx_packet_bytes(builder, reply->frame_bytes, 0, 0) : NULL;
        if (!frame)
            return ALB_BUILD_FULL;
        reply->header.timestamp = (uint32_t)now;
        alb_csa_encode(&reply->header, header);
        memcpy(frame, reply->frame, reply->frame_bytes);
        alb_csa_set_pad(header, alb_roce_pad(builder->packet_bytes));
        alb_tx_packet_end(builder, &reply->flow);
        replies->first = (replies->first + 1) % ALB_CSA_REPLIES;
    }
    return ALB_BUILD_IDLE;
}

void alb_csa_replies_init(struct alb_csa_replies *replies)
{
    alb_source_init(&replies->source, build);
}

// The next free place, for that frame to the sender of the datagram; NULL: too many wait already, or the answer would
// be longer than what it answers.
static struct alb_csa_reply *answer(struct alb_engine *engine, const struct alb_datagram *datagram,
                                    const struct alb_csa_header *header, const uint8_t *frame, uint32_t frame_bytes)
{
    struct alb_csa_replies *replies = &engine->csa->replies;
    if (replies->count == ALB_CSA_REPLIES || ALB_CSA_OUTER_BYTES + frame_bytes > datagram->length)
        return NULL;
    struct alb_csa_reply *reply = &replies->ring[(replies->first + replies->count++) % ALB_CSA_REPLIES];
    *reply = (struct alb_csa_reply){
        .flow.peer = {datagram->peer.addr, (uint16_t)(ALB_ROCE_PORT + (header->source_slot & UINT8_MAX))},
        .flow.local = {datagram->local.addr, 0},
        .header =
            {
                .dest_slot = header->source_slot,
                .source_slot = engine->config.slot,
                .source_epoch = alb_csa_epoch_for(engine->csa, &datagram->local.addr, &datagram->peer.addr,
                                                  (uint8_t)header->source_slot),
                .destination_epoch = header->source_epoch,
                .path = PATH_NONE,
            },
        .frame_bytes = frame_bytes,
    };
    memcpy(reply->frame, frame, frame_bytes);
    alb_scheduler_wake(&engine->scheduler, &replies->source);
    return reply;
}

// The sender is not verified. Our own epoch would let it forge what an association believes.
void alb_csa_reply_reset(struct alb_engine *engine, const struct alb_datagram *datagram,
                         const struct alb_csa_header *header)
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    uint32_t bytes = alb_csa_encode_reset(ALB_CSA_RESET_EPOCH, header->destination_epoch, frame);
    struct alb_csa_reply *reply = answer(engine, datagram, header, frame, bytes);
    if (reply)
        reply->header.source_epoch = header->destination_epoch;
}

void alb_csa_reply_cookie(struct alb_engine *engine, const struct alb_datagram *datagram,
                          const struct alb_csa_header *header, const uint8_t cookie[ALB_CSA_COOKIE_BYTES])
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    struct alb_csa_reply *reply = answer(engine, datagram, header, frame, alb_csa_encode_cookie(cookie, frame));
    if (reply)
        reply->header.source_epoch = header->source_epoch;
}

// A sender that knows a queue pair's numbers learns our epoch from the answer to a first message, whole or not.
bool alb_csa_reply_trimmed(struct alb_engine *engine, const struct alb_datagram *datagram,
                           const struct alb_csa_header *header, const struct alb_csa_trimmed *trimmed)
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    return answer(engine, datagram, header, frame, alb_csa_encode_trimmed(trimmed, frame)) != NULL;
}

void alb_csa_reply_hello(struct alb_engine *engine, const struct alb_datagram *datagram,
                         const struct alb_csa_header *header, const uint8_t cookie[ALB_CSA_COOKIE_BYTES])
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    struct alb_csa_reply *reply = answer(engine, datagram, header, frame, alb_csa_encode_hello(cookie, frame));
    if (reply)
        reply->header.destination_epoch = 0; // the peer's is not known
}
