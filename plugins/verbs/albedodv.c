// SPDX-License-Identifier: BSD-2-Clause
// libalbedodv.so.1: finds Albedo's libibverbs.so.1 in the process, if it is the one, and calls it. It links nothing of
// Albedo, so that a program that uses it runs anywhere.
#include "albedo/albedodv.h"

#include "plugins/verbs/dv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

static const struct alb_dv_table *find(void)
{
    union {
        void *object;
        const struct alb_dv_table *(*call)(void);
    } found = {.object = dlvsym(RTLD_DEFAULT, "albedo_bridge_dv", "ALBEDO_PRIVATE")};
    return found.object ? found.call() : NULL;
}

// A table for calls that say why not by their result; *error is then what to return.
static const struct alb_dv_table *find_for(bool is_sane, int *error)
{
    const struct alb_dv_table *dv = is_sane ? find() : NULL;
    *error = is_sane ? EOPNOTSUPP : EINVAL;
    return dv;
}

// The same for calls that return a pointer.
static const struct alb_dv_table *find_or_fail(bool is_sane)
{
    int error;
    const struct alb_dv_table *dv = find_for(is_sane, &error);
    if (!dv)
        errno = error;
    return dv;
}

int albdv_is_supported(void)
{
    return find() != NULL;
}

const char *albdv_txn_state_str(enum albdv_txn_state state)
{
    const struct alb_dv_table *dv = find();
    return dv ? dv->txn_state_str(state) : "unknown";
}

const char *albdv_reason_str(enum albdv_reason reason)
{
    const struct alb_dv_table *dv = find();
    return dv ? dv->reason_str(reason) : "unknown";
}

int albdv_expect(struct ibv_qp *qp, const struct albdv_expectation *expectation)
{
    int error;
    const struct alb_dv_table *dv = find_for(qp && expectation, &error);
    return dv ? dv->expect(qp, expectation) : error;
}

// ---- queue pairs ----------------------------------------------------------------------------------------------------

struct albdv_qp_ex *albdv_extend_qp(struct ibv_qp *qp, const struct albdv_qp_attr *attr)
{
    const struct alb_dv_table *dv = find_or_fail(qp);
    return dv ? dv->extend_qp(qp, attr) : NULL;
}

struct albdv_qp_ex *albdv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
    const struct alb_dv_table *dv = find_or_fail(qp);
    return dv ? dv->qp_ex_from(qp) : NULL;
}

int albdv_decide_txn(struct albdv_qp_ex *qp, uint64_t number, enum albdv_decision decision)
{
    int error;
    const struct alb_dv_table *dv = find_for(qp, &error);
    return dv ? dv->decide_txn(qp, number, decision) : error;
}

int albdv_query_txn(struct albdv_qp_ex *qp, uint64_t number, struct albdv_txn_status *status, size_t size)
{
    int error;
    const struct alb_dv_table *dv = find_for(qp && status && size > 0, &error);
    return dv ? dv->query_txn(qp, number, status, size) : error;
}

int albdv_wc_stages(struct albdv_qp_ex *qp, const struct ibv_wc *wc, struct albdv_stages *stages, size_t size)
{
    int error;
    const struct alb_dv_table *dv = find_for(qp && wc && stages && size > 0, &error);
    return dv ? dv->wc_stages(qp, wc, stages, size) : error;
}

uint64_t albdv_wc_read_number(struct ibv_cq_ex *cq)
{
    const struct alb_dv_table *dv = cq ? find() : NULL;
    return dv ? dv->wc_read_number(cq) : 0;
}

// ---- regions --------------------------------------------------------------------------------------------------------

struct albdv_region *albdv_create_region(struct ibv_mr *mr, const struct albdv_region_attr *attr)
{
    const struct alb_dv_table *dv = find_or_fail(mr);
    return dv ? dv->create_region(mr, attr) : NULL;
}

int albdv_destroy_region(struct albdv_region *region)
{
    int error;
    const struct alb_dv_table *dv = find_for(region, &error);
    return dv ? dv->destroy_region(region) : error;
}

int albdv_region_is_poisoned(const struct albdv_region *region)
{
    const struct alb_dv_table *dv = region ? find() : NULL;
    return dv ? dv->region_is_poisoned(region) : 0;
}

struct ibv_mr *albdv_reg_durable(struct ibv_pd *pd, const char *path, size_t length, int access, uint32_t flags)
{
    const struct alb_dv_table *dv = find_or_fail(pd && path);
    return dv ? dv->reg_durable(pd, path, length, access, flags) : NULL;
}

// ---- proposals ------------------------------------------------------------------------------------------------------

int albdv_set_validator(struct ibv_mr *mr, albdv_validate *validate, void *context)
{
    int error;
    const struct alb_dv_table *dv = find_for(mr, &error);
    return dv ? dv->set_validator(mr, validate, context) : error;
}

struct albdv_proposal_channel *albdv_create_proposal_channel(struct ibv_context *context)
{
    const struct alb_dv_table *dv = find_or_fail(context);
    return dv ? dv->create_proposal_channel(context) : NULL;
}

int albdv_destroy_proposal_channel(struct albdv_proposal_channel *channel)
{
    int error;
    const struct alb_dv_table *dv = find_for(channel, &error);
    return dv ? dv->destroy_proposal_channel(channel) : error;
}

int albdv_set_proposal_channel(struct ibv_mr *mr, struct albdv_proposal_channel *channel, void *context)
{
    int error;
    const struct alb_dv_table *dv = find_for(mr, &error);
    return dv ? dv->set_proposal_channel(mr, channel, context) : error;
}

struct albdv_proposal *albdv_get_proposal(struct albdv_proposal_channel *channel)
{
    const struct alb_dv_table *dv = find_or_fail(channel);
    return dv ? dv->get_proposal(channel) : NULL;
}

int albdv_answer_proposal(struct albdv_proposal *proposal, int accept)
{
    int error;
    const struct alb_dv_table *dv = find_for(proposal, &error);
    return dv ? dv->answer_proposal(proposal, accept) : error;
}

// ---- partial completion ---------------------------------------------------------------------------------------------

int albdv_query_partial(struct ibv_qp *qp, enum albdv_side side, uint32_t number, struct albdv_partial *partial,
                        size_t size, uint64_t *bitmap, uint32_t words)
{
    int error;
    const size_t first_size = offsetof(struct albdv_partial, is_complete) + sizeof(partial->is_complete);
    bool is_sane = qp && partial && size >= first_size;
    const struct alb_dv_table *dv = find_for(is_sane, &error);
    return dv ? dv->query_partial(qp, side, number, partial, size, bitmap, words) : error;
}

int albdv_ask_partial(struct albdv_qp_ex *qp, uint32_t number)
{
    int error;
    const struct alb_dv_table *dv = find_for(qp, &error);
    return dv ? dv->ask_partial(qp, number) : error;
}
