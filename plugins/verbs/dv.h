// SPDX-License-Identifier: BSD-2-Clause
// The calls of <albedo/albedodv.h> as libalbedodv.so.1 finds them here: one table, since both libraries come from one
// build. Each does what the public header says of its namesake; arguments that are NULL there are refused before.
#pragma once

#include "albedo/albedodv.h"

struct alb_door_mr;
struct alb_door_qp;

struct alb_dv_table {
    const char *(*txn_state_str)(enum albdv_txn_state state);
    const char *(*reason_str)(enum albdv_reason reason);
    int (*expect)(struct ibv_qp *qp, const struct albdv_expectation *expectation);
    struct albdv_qp_ex *(*extend_qp)(struct ibv_qp *qp, const struct albdv_qp_attr *attr);
    struct albdv_qp_ex *(*qp_ex_from)(struct ibv_qp_ex *qp);
    int (*decide_txn)(struct albdv_qp_ex *qp, uint64_t number, enum albdv_decision decision);
    int (*query_txn)(struct albdv_qp_ex *qp, uint64_t number, struct albdv_txn_status *status, size_t size);
    int (*wc_stages)(struct albdv_qp_ex *qp, const struct ibv_wc *wc, struct albdv_stages *stages, size_t size);
    uint64_t (*wc_read_number)(struct ibv_cq_ex *cq);
    struct albdv_region *(*create_region)(struct ibv_mr *mr, const struct albdv_region_attr *attr);
    int (*destroy_region)(struct albdv_region *region);
    int (*region_is_poisoned)(const struct albdv_region *region);
    struct ibv_mr *(*reg_durable)(struct ibv_pd *pd, const char *path, size_t length, int access, uint32_t flags);
    int (*set_validator)(struct ibv_mr *mr, albdv_validate *validate, void *context);
    struct albdv_proposal_channel *(*create_proposal_channel)(struct ibv_context *context);
    int (*destroy_proposal_channel)(struct albdv_proposal_channel *channel);
    int (*set_proposal_channel)(struct ibv_mr *mr, struct albdv_proposal_channel *channel, void *context);
    struct albdv_proposal *(*get_proposal)(struct albdv_proposal_channel *channel);
    int (*answer_proposal)(struct albdv_proposal *proposal, int accept);
    int (*query_partial)(struct ibv_qp *qp, enum albdv_side side, uint32_t number, struct albdv_partial *partial,
                         size_t size, uint64_t *bitmap, uint32_t words);
    int (*ask_partial)(struct albdv_qp_ex *qp, uint32_t number);
};

// To be called through the symbol's version node, ALBEDO_PRIVATE.
const struct alb_dv_table *albedo_bridge_dv(void);

// ---- txn.c ----------------------------------------------------------------------------------------------------------

struct albdv_qp_ex *alb_door_extend_qp(struct ibv_qp *qp, const struct albdv_qp_attr *attr);
struct albdv_qp_ex *alb_door_qp_ex_from(struct ibv_qp_ex *qp);
struct alb_door_qp *alb_door_qp_of_dv(struct albdv_qp_ex *dv);

// ---- region.c -------------------------------------------------------------------------------------------------------

struct albdv_region *alb_door_create_region(struct ibv_mr *mr, const struct albdv_region_attr *attr);
int alb_door_destroy_region(struct albdv_region *region);
int alb_door_region_is_poisoned(const struct albdv_region *region);
struct ibv_mr *alb_door_reg_durable(struct ibv_pd *pd, const char *path, size_t length, int access, uint32_t flags);

// ---- proposal.c -----------------------------------------------------------------------------------------------------

int alb_door_set_validator(struct ibv_mr *mr, albdv_validate *validate, void *context);
struct albdv_proposal_channel *alb_door_create_proposal_channel(struct ibv_context *context);
int alb_door_destroy_proposal_channel(struct albdv_proposal_channel *channel);
int alb_door_set_proposal_channel(struct ibv_mr *mr, struct albdv_proposal_channel *channel, void *context);
struct albdv_proposal *alb_door_get_proposal(struct albdv_proposal_channel *channel);
int alb_door_answer_proposal(struct albdv_proposal *proposal, int accept);
