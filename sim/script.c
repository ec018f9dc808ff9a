// SPDX-License-Identifier: BSD-2-Clause
#include "sim/script.h"

void alb_sim_script_add(struct alb_sim_script *script, const struct alb_sim_rule *rule)
{
    alb_assert(script->count < ALB_SIM_RULES_MAX);
    struct alb_sim_rule *own = &script->rules[script->count++];
    *own = *rule;
    own->from = ALB_MAX(rule->from, 1u);
    own->times = ALB_MAX(rule->times, 1u);
    own->matched = own->acted = 0;
}

void alb_sim_script_clear(struct alb_sim_script *script)
{
    script->count = 0;
}

bool alb_sim_script_is_done(const struct alb_sim_script *script)
{
    for (uint32_t i = 0; i < script->count; i++) {
        const struct alb_sim_rule *rule = &script->rules[i];
        if (rule->times == UINT32_MAX ? rule->acted == 0 : rule->acted < rule->times)
            return false;
    }
    return true;
}

static bool refuses(const struct alb_roce *roce, const struct alb_opcode_info *info)
{
    return info->flags & ALB_OPCODE_ACK && alb_aeth_class(roce->syndrome) != ALB_AETH_ACK;
}

static bool matches(const struct alb_sim_rule *rule, const struct alb_roce *roce)
{
    const struct alb_opcode_info *info = alb_opcode_info(roce->opcode);
    if (rule->by & ALB_SIM_BY_OPCODE && roce->opcode != rule->opcode)
        return false;
    if (rule->by & ALB_SIM_BY_FLAGS && (!info || (info->flags & rule->flags) != rule->flags))
        return false;
    if (rule->by & ALB_SIM_BY_PSN && roce->psn != rule->psn)
        return false;
    if (rule->by & ALB_SIM_BY_QPN && roce->dest_qpn != rule->qpn)
        return false;
    return !(rule->by & ALB_SIM_BY_NAK) || (info && refuses(roce, info));
}

static void act(const struct alb_sim_rule *rule, struct alb_sim_verdict *verdict)
{
    switch (rule->action) {
    case ALB_SIM_DROP:
        verdict->is_lost = true;
        break;
    case ALB_SIM_DUPLICATE:
        verdict->copies = true;
        break;
    case ALB_SIM_SWAP:
        verdict->pass = (uint32_t)ALB_MAX(rule->amount, 1ull);
        break;
    case ALB_SIM_DELAY:
        verdict->delay += rule->amount;
        break;
    case ALB_SIM_CORRUPT:
        verdict->is_corrupt = true;
        verdict->corrupt_bit = (uint32_t)rule->amount;
        break;
    case ALB_SIM_MARK:
        verdict->is_marked = true;
        break;
    }
}

void alb_sim_script_decide(struct alb_sim_script *script, const struct alb_roce *roce, struct alb_sim_verdict *verdict)
{
    for (uint32_t i = 0; i < script->count; i++) {
        struct alb_sim_rule *rule = &script->rules[i];
        if (!matches(rule, roce) || ++rule->matched < rule->from || rule->acted >= rule->times)
            continue;
        rule->acted++;
        act(rule, verdict);
    }
}
