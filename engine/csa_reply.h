// SPDX-License-Identifier: BSD-2-Clause
// Answers to packets that are refused, for which nothing else is kept: one small packet each, never longer than what it
// answers, and no more than a few at a time.
#pragma once

#include "engine/scheduler.h"
#include "wire/csa.h"

#define ALB_CSA_REPLIES 64

struct alb_engine;

struct alb_csa_reply {
    struct alb_flow flow;
    struct alb_csa_header header;
    uint32_t frame_bytes;
    uint8_t frame[ALB_CSA_FRAME_MAX];
};

struct alb_csa_replies {
    struct alb_source source;
    uint32_t first, count;
    struct alb_csa_reply ring[ALB_CSA_REPLIES];
};

void alb_csa_replies_init(struct alb_csa_replies *replies);

// The sender names another life of this engine as the one that it talks to.
void alb_csa_reply_reset(struct alb_engine *engine, const struct alb_datagram *datagram,
                         const struct alb_csa_header *header);
// It is not proven: let it bring this back.
void alb_csa_reply_cookie(struct alb_engine *engine, const struct alb_datagram *datagram,
                          const struct alb_csa_header *header, const uint8_t cookie[ALB_CSA_COOKIE_BYTES]);
// A first message, of which only headers have come. False: it is not answered.
bool alb_csa_reply_trimmed(struct alb_engine *engine, const struct alb_datagram *datagram,
                           const struct alb_csa_header *header, const struct alb_csa_trimmed *trimmed);
// Brings it back.
void alb_csa_reply_hello(struct alb_engine *engine, const struct alb_datagram *datagram,
                         const struct alb_csa_header *header, const uint8_t cookie[ALB_CSA_COOKIE_BYTES]);
