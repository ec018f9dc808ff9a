// SPDX-License-Identifier: BSD-2-Clause
// Credit policies as users name them. Their parameters are an engine's configuration.
#include "engine/credit.h"
#include "engine/engine.h"
#include "engine/policy_text.h"

#define AT(member)   offsetof(struct alb_engine_config, member)
#define BYTES(least) ALB_PARAMETER_BYTES_32, least, 1u << 30
#define INTERVAL     ALB_PARAMETER_TIME, 1000, ALB_CREDIT_INTERVAL_MAX_NS
#define AGING        ALB_PARAMETER_RATE, 1000, ALB_CREDIT_AGING_MAX

static const struct alb_parameter all_parameters[] = {
    {"end-to-end", "budget", "0..1GiB (half of the socket's buffer)", AT(receive_budget_bytes), BYTES(0)},
    {"end-to-end", "min", "1..1GiB (4KiB)", AT(grant_min_bytes), BYTES(1)},
    {"end-to-end", "interval", "1us..4s (1ms)", AT(credit_interval_ns), INTERVAL},
    {"shortest", "budget", "0..1GiB (half of the socket's buffer)", AT(receive_budget_bytes), BYTES(0)},
    {"shortest", "min", "1..1GiB (4KiB)", AT(grant_min_bytes), BYTES(1)},
    {"shortest", "interval", "1us..4s (1ms)", AT(credit_interval_ns), INTERVAL},
    {"shortest", "aging", "8kb/s..8Tb/s (8Gb/s)", AT(credit_aging_bytes_per_s), AGING},
};

static const struct alb_parameters parameters = {all_parameters, ALB_COUNT(all_parameters)};

const char *alb_credit_parameter(const char *policy, uint32_t index, const char **bounds)
{
    return alb_policy_text_parameter(policy, &parameters, index, bounds);
}

bool alb_credit_set(struct alb_engine_config *config)
{
    const struct alb_credit_ops *ops = alb_credit_find(config->credit);
    return ops && alb_policy_text_set(config->credit, ops->name, &parameters, config);
}
