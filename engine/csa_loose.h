// SPDX-License-Identifier: BSD-2-Clause
// UC and UD over CSA: unacknowledged frames, gathered into packets by each queue pair for itself. Where the peer has
// been heard and reports what arrives, the packets are counted on one of the association's paths; elsewhere they are
// not counted.
//
//     csa_loose.c       packets out
//     csa_uc.c          UC: its life and its sending half
//     csa_uc_in.c       UC: its receiving half
//     csa_uc_partial.c  UC: messages whose missing segments can be sent again
//     csa_ud.c          UD
#pragma once

#include "engine/csa_admit.h"
#include "engine/csa_uc_partial.h"
#include "engine/unreliable.h"

// A frame, and where it goes.
struct alb_csa_parcel {
    enum alb_csa_type type;
    struct alb_csa_segment segment; // all but payload_bytes
    const struct alb_addr *local, *peer;
    uint8_t slot;
    uint8_t traffic_class; // ECN apart
    uint8_t hop_limit;
    uint32_t payload_max; // largest UDP payload of a packet to there, ICRC included; 0: not known
};

// The build of a source, of either type.
enum alb_build_result alb_csa_loose_build(struct alb_source *source, struct alb_tx_builder *builder, alb_time now);
// What an uncut packet leaves for a UC segment with that frame header.
uint32_t alb_csa_loose_payload(const struct alb_assoc *assoc, const struct alb_csa_segment *segment);

// ---- UC -------------------------------------------------------------------------------------------------------------

#define ALB_CSA_UC_OWN  64        // segments whose bits need no memory of the pool
#define ALB_CSA_UC_PART (1 << 16) // segments whose bits are cleared together

// The newest message: what has come of it. Its segments are placed as they come, the last one last, when all others are
// there. It ends when it is whole, when something is wrong with it, or when a later message begins.
struct alb_csa_uc_message {
    bool is_open, is_whole;
    uint8_t op;
    alb_psn first, past; // equal: there has been none
    uint32_t total_bytes;
    uint32_t segment_bytes; // 0: not known yet
    uint32_t placed;        // segments
    struct alb_target target;
    uint64_t *held;   // bit i: segment i is placed; only while it is open
    uint64_t cleared; // bit i: so are the bits of the i-th part; those of others are undefined
    uint64_t own[ALB_CSA_UC_OWN / 64];
};

struct alb_csa_uc {
    struct alb_unreliable u;
    struct alb_assoc *assoc;
    uint32_t bound_epoch; // of the peer: packets with another one are ignored; 0: nothing has come yet
    struct alb_csa_uc_message in;
    struct alb_csa_partials *partials; // NULL: it has no messages of partial completion
};

static inline struct alb_csa_uc *alb_csa_uc_of(const struct alb_qp *qp)
{
    return qp->delivery_state;
}

extern const struct alb_delivery_ops alb_csa_uc_ops;
// The frame of the segment at sent of a request.
void alb_csa_uc_parcel(const struct alb_unreliable *u, const struct alb_send_wqe *wqe, struct alb_csa_parcel *parcel);
// Where its frames that are no segments go.
void alb_csa_uc_control(const struct alb_unreliable *u, struct alb_csa_parcel *parcel);
// A HOLDS frame.
enum alb_drop alb_csa_uc_on_holds(struct alb_csa_arrival *arrival, const struct alb_csa_holds *holds);
// A segment for a queue pair of another type than RC.
enum alb_drop alb_csa_uc_rx(struct alb_csa_arrival *arrival, const struct alb_csa_frame *frame, alb_time now);
enum alb_drop alb_csa_uc_take(struct alb_csa_uc *uc, const struct alb_csa_segment *segment, alb_time now);
// The first message will begin with that number.
void alb_csa_uc_begin(struct alb_csa_uc *uc, alb_psn first);
// Memory of the pool for the bits of a message that comes in. Its sender says how long it is, so those of all of them
// together may have a part of the pool only. NULL: there is no room.
uint64_t *alb_csa_uc_get_bits(struct alb_engine *engine, uint32_t bytes);
void alb_csa_uc_put_bits(struct alb_engine *engine, uint64_t *bits, uint32_t bytes);
// Clears the bits of the part that has that segment, unless they are. Those of 2^22 segments are half a megabyte, and
// each segment that comes may begin another such message: a part of them is cleared when its first segment comes.
void alb_csa_uc_clear_part(uint64_t *held, uint64_t *cleared, uint32_t packets, uint32_t index);
// Gives up the message that has not ended.
void alb_csa_uc_close(struct alb_csa_uc *uc);

// ---- UD -------------------------------------------------------------------------------------------------------------

extern const struct alb_delivery_ops alb_csa_ud_ops;
void alb_csa_ud_parcel(const struct alb_unreliable *u, const struct alb_send_wqe *wqe, struct alb_csa_parcel *parcel);
// A DATAGRAM frame, from any sender: it is as trustworthy as its queue key.
enum alb_drop alb_csa_ud_rx(struct alb_csa_arrival *arrival, const struct alb_csa_segment *segment, alb_time now);
