// SPDX-License-Identifier: BSD-2-Clause
// What stands behind ibv_wr_* between ibv_wr_start and ibv_wr_complete: the work request being built, for qp_ex.c and
// for the files that add requests which verbs does not have.
#pragma once

#include "plugins/verbs/door.h"

enum alb_door_building {
    ALB_DOOR_BUILDING_NONE,
    ALB_DOOR_BUILDING_REQUEST, // one of verbs
    ALB_DOOR_BUILDING_TXN,     // plugins/verbs/txn.c
};

struct alb_door_builder {
    struct alb_send_wr wr; // the request being built
    enum alb_door_building building;
    int error;
    uint32_t sge_max;
    uint32_t inline_max_bytes;
    struct alb_sge *sge;  // sge_max entries
    uint8_t *inline_data; // inline_max_bytes
    struct alb_sge inline_sge;
};

// Keeps the first error of a batch.
static inline void alb_door_builder_refuse(struct alb_door_builder *builder, int error)
{
    if (!builder->error)
        builder->error = error;
}

// Stages the request being built, if there is one.
void alb_door_builder_stage(struct alb_door_qp *qp);
// Begins a request of verbs with the identity and flags that the program has set.
struct alb_send_wr *alb_door_builder_begin(struct alb_door_qp *qp, enum alb_wr_opcode opcode);
// The flags of the request that begins, without INLINE; unknown ones are refused.
uint32_t alb_door_builder_flags(struct alb_door_qp *qp);

// ---- plugins/verbs/txn.c --------------------------------------------------------------------------------------------

// The data of the transaction's write begun last.
void alb_door_txn_set_sge_list(struct alb_door_qp *qp, size_t count, const struct ibv_sge *list);
// Room for inline_max_bytes of its data; NULL: there is no write, and that was refused.
uint8_t *alb_door_txn_inline_room(struct alb_door_qp *qp);
// So many bytes there are its data.
void alb_door_txn_set_inline(struct alb_door_qp *qp, uint32_t length);
// Stages the transaction being built: an errno.
int alb_door_txn_stage(struct alb_door_qp *qp);
void alb_door_txn_destroy(struct alb_door_qp *qp);
