// SPDX-License-Identifier: BSD-2-Clause
// Verifies the sender of a packet. Nothing is done, kept or answered for a peer that has not proven that it is the one
// that a queue pair was connected with, in its present life (docs/PROTOCOL.md, "Epochs" and "Proof by connection").
#pragma once

#include "engine/csa.h"

// A packet that has come, and what is known of its sender.
struct alb_csa_arrival {
    struct alb_engine *engine;
    const struct alb_datagram *datagram;
    struct alb_csa_header header;
    struct alb_assoc *assoc;
    struct alb_assoc_live *live; // once it is proven
    bool is_proven;              // the present life of the peer, which knows this life of ours
    bool was_unproven;           // when a frame came, which was dropped for that alone
};

// Finds the association; there is none with a stranger. What comes from or for another life ends here; so does a RESET
// (*ends).
enum alb_drop alb_csa_admit_packet(struct alb_csa_arrival *arrival, struct alb_csa_cursor cursor, bool *ends,
                                   alb_time now);
// A frame for a queue pair: binds it to the peer's present life, or finds it bound. fits: the frame's numbers are ones
// that the queue pair's streams can have now; else it may be a straggler for a former connection of the queue pair, and
// binds nothing. segment: a request, which may prove its sender by the numbers that the queue pairs exchanged; NULL:
// another frame.
enum alb_drop alb_csa_admit(struct alb_csa_arrival *arrival, struct alb_csa *csa, const struct alb_csa_segment *segment,
                            bool fits);
// True if the queue pair has numbers for its requests, and so for the answers to them. Before it may send both streams
// still have those of a former life, and whatever fits these is a straggler.
static inline bool alb_csa_has_begun_to_ask(const struct alb_csa *csa)
{
    return alb_qp_state_of(csa->qp) >= ALB_QPS_RTS;
}
// The numbers of one queue pair are known to whoever asked for it, who may say that it is at another one's address and
// slot. So they prove no life in place of the one that is known: that would end queue pairs of others. A cookie does.
static inline bool alb_csa_is_another_life(const struct alb_csa_arrival *arrival)
{
    uint32_t known = arrival->assoc->peer_epoch;
    return known != 0 && known != arrival->header.source_epoch;
}
// It has shown a number that only the peer knows: it comes from the peer's present life. What is bound to another one
// ends.
void alb_csa_believe(struct alb_csa_arrival *arrival);
// The peer says that of a packet of ours only headers have come (csa_trimmed.c).
enum alb_drop alb_csa_on_trimmed(struct alb_csa_arrival *arrival, const struct alb_csa_trimmed *trimmed, alb_time now);
// The queue pair that a frame names, if it is one of this association.
enum alb_drop alb_csa_find_qp(struct alb_csa_arrival *arrival, alb_qpn qpn, struct alb_csa **csa);
