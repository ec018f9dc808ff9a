// SPDX-License-Identifier: BSD-2-Clause
// The names of policies, for callers that let users choose among them.
#include "engine/csa_loss.h"
#include "engine/engine.h"

#include <string.h>

#define NAMES_MAX 6

static const char *const rc_names[ALB_POLICIES][NAMES_MAX] = {
    [ALB_POLICY_LOSS] = {"go-back-n"},
    [ALB_POLICY_CONGESTION] = {"aimd", "fixed", "none"},
    [ALB_POLICY_PATH] = {"single"},
    [ALB_POLICY_CREDIT] = {"off"}, // its acknowledgements say that there is no limit (rc_answer.c)
};

static const char *const csa_names[ALB_POLICIES][NAMES_MAX] = {
    [ALB_POLICY_LOSS] = {"csa", "go-back-n", "irn", "fixed", "sleek"},
    [ALB_POLICY_CONGESTION] = {"window", "dcqcn", "fixed", "none"},
    [ALB_POLICY_PATH] = {"adaptive", "spray", "single"},
    [ALB_POLICY_CREDIT] = {"end-to-end", "shortest", "off"},
};

const char *alb_engine_policy_name(const char *transport, enum alb_policy policy, uint32_t index)
{
    bool is_csa = strcmp(transport, "csa") == 0;
    if ((!is_csa && strcmp(transport, "rc") != 0) || policy >= ALB_POLICIES || index >= NAMES_MAX)
        return NULL;
    return is_csa ? csa_names[policy][index] : rc_names[policy][index];
}

bool alb_engine_policy_is_valid(const char *transport, enum alb_policy policy, const char *text)
{
    struct alb_csa_loss loss;
    const char *name;
    if (strcmp(transport, "csa") == 0 && policy == ALB_POLICY_LOSS)
        return alb_csa_loss_parse(text, &loss);
    for (uint32_t i = 0; (name = alb_engine_policy_name(transport, policy, i)); i++) {
        if (strcmp(name, text) == 0)
            return true;
    }
    return false;
}

const char *alb_engine_policy_parameter(const char *transport, enum alb_policy policy, const char *name, uint32_t index,
                                        const char **bounds)
{
    bool has_some = strcmp(transport, "csa") == 0 && policy == ALB_POLICY_LOSS;
    return has_some ? alb_csa_loss_parameter(name, index, bounds) : NULL;
}
