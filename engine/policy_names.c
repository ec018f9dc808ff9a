// SPDX-License-Identifier: BSD-2-Clause
// The names of policies, for callers that let users choose among them.
#include "engine/credit.h"
#include "engine/csa_loss.h"
#include "engine/engine.h"
#include "engine/policy.h"
#include "engine/policy_text.h"

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

// The name that the text gives, before parameters; NULL if there is none such.
static const char *find_name(const char *transport, enum alb_policy policy, const char *text)
{
    const char *name;
    for (uint32_t i = 0; (name = alb_engine_policy_name(transport, policy, i)); i++)
        if (alb_policy_text_is(text, name))
            return name;
    return NULL;
}

// Into a configuration that has what the text gives, and else the defaults.
static bool parse(const char *transport, enum alb_policy policy, const char *text, struct alb_engine_config *config)
{
    struct alb_csa_loss loss;
    const char *name = find_name(transport, policy, text);
    if (!name)
        return false;
    alb_engine_config_default(config);
    alb_engine_config_transport(config, transport);
    switch (policy) {
    case ALB_POLICY_LOSS:
        return strcmp(transport, "csa") == 0 ? alb_csa_loss_parse(text, &loss) : strcmp(text, name) == 0;
    case ALB_POLICY_CONGESTION:
        config->congestion = text;
        return alb_congestion_set(config);
    case ALB_POLICY_CREDIT:
        config->credit = text;
        return alb_credit_set(config);
    default:
        return strcmp(text, name) == 0;
    }
}

bool alb_engine_policy_is_known(const char *transport, enum alb_policy policy, const char *text)
{
    struct alb_engine_config config;
    return parse(transport, policy, text, &config);
}

bool alb_engine_policy_is_valid(const char *transport, enum alb_policy policy, const char *text)
{
    struct alb_engine_config config;
    return parse(transport, policy, text, &config) && alb_congestion_agrees(&config);
}

const char *alb_engine_policy_parameter(const char *transport, enum alb_policy policy, const char *name, uint32_t index,
                                        const char **bounds)
{
    if (policy == ALB_POLICY_CONGESTION)
        return alb_congestion_parameter(name, index, bounds);
    if (policy == ALB_POLICY_CREDIT)
        return alb_credit_parameter(name, index, bounds);
    bool has_some = strcmp(transport, "csa") == 0 && policy == ALB_POLICY_LOSS;
    return has_some ? alb_csa_loss_parameter(name, index, bounds) : NULL;
}
