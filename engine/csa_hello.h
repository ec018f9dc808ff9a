// SPDX-License-Identifier: BSD-2-Clause
// Cookies: how a peer whose packet is not proven shows that it receives at its address (docs/PROTOCOL.md, "HELLO and
// COOKIE"). It is needed where packets overtake the one that would prove their sender, and where a peer that has begun
// anew goes on where nothing proves it. Nothing is kept for the asking, and no answer is longer than its question.
#pragma once

#include "base/chacha.h"
#include "base/siphash.h"
#include "wire/csa.h"

struct alb_csa_arrival;

// Secrets, drawn anew from time to time: a cookie is good while the one that it was made with is here.
struct alb_csa_cookies {
    struct alb_siphash_key keys[2][2]; // of this period and the one before; each half of a cookie has its own
    alb_time drawn_at;                 // those of this period
};

void alb_csa_cookies_init(struct alb_csa_cookies *cookies, struct alb_rng *rng, alb_time now);
// Asks the sender of a packet that was not proven to prove itself, if queue pairs are connected to it.
void alb_csa_challenge(const struct alb_csa_arrival *arrival, alb_time now);
// The packet's first frame is a HELLO: with a good cookie the packet is proven, and its epoch the peer's.
enum alb_drop alb_csa_on_hello(struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame, alb_time now);
// It is a COOKIE: brings it back, if it comes from a peer of ours that has read our packets.
enum alb_drop alb_csa_on_cookie(const struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame);
