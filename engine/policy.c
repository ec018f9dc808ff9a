// SPDX-License-Identifier: BSD-2-Clause
// Policies by name.
#include "engine/policy.h"

#include "engine/policy_text.h"

#include <string.h>

const struct alb_loss_ops *alb_loss_find(const char *name)
{
    static const struct alb_loss_ops *const all[] = {&alb_loss_go_back_n};
    for (size_t i = 0; name && i < ALB_COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

const struct alb_congestion_ops *alb_congestion_find(const char *text)
{
    static const struct alb_congestion_ops *const all[] = {&alb_congestion_aimd, &alb_congestion_window,
                                                           &alb_congestion_dcqcn, &alb_congestion_fixed,
                                                           &alb_congestion_none};
    for (size_t i = 0; text && i < ALB_COUNT(all); i++)
        if (alb_policy_text_is(text, all[i]->name))
            return all[i];
    return NULL;
}

const struct alb_path_ops *alb_path_find(const char *name)
{
    static const struct alb_path_ops *const all[] = {&alb_path_adaptive, &alb_path_spray, &alb_path_single};
    for (size_t i = 0; name && i < ALB_COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
