// SPDX-License-Identifier: BSD-2-Clause
// Loss policies of csa by name, and their parameters.
#include "engine/csa_loss.h"

#include "engine/policy_text.h"

static const struct alb_csa_loss_ops *const policies[] = {
    &alb_csa_loss_csa, &alb_csa_loss_gbn, &alb_csa_loss_irn, &alb_csa_loss_fixed, &alb_csa_loss_sleek,
};

#define AT(member) offsetof(struct alb_csa_loss, member)
#define TIME       ALB_PARAMETER_TIME, 1000, 10 * ALB_NS_PER_S
#define COUNT      ALB_PARAMETER_COUNT

static const struct alb_parameter all_parameters[] = {
    {"go-back-n", "timeout", "1us..10s", AT(timeout_ns), TIME},
    {"irn", "low", "1us..high (100us)", AT(low_ns), TIME},
    {"irn", "high", "low..10s (320us)", AT(high_ns), TIME},
    {"irn", "few", "0..1048576", AT(few), COUNT, 0, 1 << 20},
    {"irn", "threshold", "1..1048576", AT(threshold), COUNT, 1, 1 << 20},
    {"fixed", "interval", "1us..10s", AT(interval_ns), TIME},
    {"sleek", "threshold", "1..1048576", AT(threshold), COUNT, 1, 1 << 20},
};

static const struct alb_parameters parameters = {all_parameters, ALB_COUNT(all_parameters)};

const char *alb_csa_loss_parameter(const char *policy, uint32_t index, const char **bounds)
{
    return alb_policy_text_parameter(policy, &parameters, index, bounds);
}

bool alb_csa_loss_parse(const char *text, struct alb_csa_loss *loss)
{
    for (size_t i = 0; text && i < ALB_COUNT(policies); i++) {
        if (!alb_policy_text_is(text, policies[i]->name))
            continue;
        *loss = (struct alb_csa_loss){.ops = policies[i]};
        if (loss->ops->init)
            loss->ops->init(loss);
        return alb_policy_text_set(text, policies[i]->name, &parameters, loss) &&
               loss->low_ns <= loss->high_ns; // both are 0 but for irn
    }
    return false;
}
