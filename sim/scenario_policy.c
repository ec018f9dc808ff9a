// SPDX-License-Identifier: BSD-2-Clause
// Policies of a scenario's hosts, and what their parameters can be.
#include "sim/scenario.h"

#include <stdio.h>
#include <string.h>

enum {
    LIST_MAX = 420,
};

static const char *transport_of(const struct alb_scenario *scenario)
{
    return scenario->host.transport ? "csa" : "rc";
}

static void list_names(const char *transport, enum alb_policy policy, char list[LIST_MAX])
{
    size_t length = 0;
    list[0] = '\0';
    for (uint32_t i = 0; alb_engine_policy_name(transport, policy, i) && length < LIST_MAX; i++)
        length += (size_t)snprintf(list + length, LIST_MAX - length, "%s%s", i ? ", " : "",
                                   alb_engine_policy_name(transport, policy, i));
}

// "low=1us..10s, few=0..65535"; empty: it has none.
static void list_parameters(const char *transport, enum alb_policy policy, const char *name, char list[LIST_MAX])
{
    const char *bounds, *parameter;
    size_t length = 0;
    list[0] = '\0';
    for (uint32_t i = 0; length < LIST_MAX; i++) {
        parameter = alb_engine_policy_parameter(transport, policy, name, i, &bounds);
        if (!parameter)
            break;
        length += (size_t)snprintf(list + length, LIST_MAX - length, "%s%s=%s", i ? ", " : "", parameter, bounds);
    }
}

// The name before the colon, if there is such a policy.
static bool find_name(const char *transport, enum alb_policy policy, const char *text, char name[LIST_MAX])
{
    snprintf(name, LIST_MAX, "%.*s", (int)strcspn(text, ":"), text);
    return strchr(text, ':') && alb_engine_policy_is_known(transport, policy, name);
}

static bool check_policy(const struct alb_scenario *scenario, const char *name, enum alb_policy policy, const char *key,
                         const char *text, struct alb_complaint *complaint)
{
    const char *transport = transport_of(scenario);
    const struct alb_document_entry *place = alb_scenario_place(scenario, "host", name, key);
    char list[LIST_MAX], called[LIST_MAX];
    if (alb_engine_policy_is_known(transport, policy, text))
        return true;
    if (find_name(transport, policy, text, called)) {
        list_parameters(transport, policy, called, list);
        return alb_complain(complaint, place->file, place->line, "%s: \"%.60s\": %s has %s%s", key, text, called,
                            list[0] ? list : "no parameters",
                            list[0] ? "; each once, times and rates with a unit" : "");
    }
    list_names(transport, policy, list);
    return alb_complain(complaint, place->file, place->line,
                        "transport %s has no %s policy \"%.60s\"; expected one of %s", transport, key, text, list);
}

bool alb_scenario_policies_agree(const struct alb_scenario *scenario, const char *name,
                                 const struct alb_engine_config *engine, struct alb_complaint *complaint)
{
    return check_policy(scenario, name, ALB_POLICY_LOSS, "loss", engine->loss, complaint) &&
           check_policy(scenario, name, ALB_POLICY_CONGESTION, "congestion", engine->congestion, complaint) &&
           check_policy(scenario, name, ALB_POLICY_PATH, "path", engine->path, complaint) &&
           check_policy(scenario, name, ALB_POLICY_CREDIT, "credit", engine->credit, complaint);
}
