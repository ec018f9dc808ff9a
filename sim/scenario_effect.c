// SPDX-License-Identifier: BSD-2-Clause
// Keys that the rest of a scenario leaves without effect. Those of switches' buffers, which a variant must not leave
// behind either, are in scenario_agree.c; these are looked at where a scenario says them for one run alone.
#include "engine/policy_text.h"
#include "sim/cluster.h"
#include "sim/scenario.h"

#include <stdio.h>
#include <string.h>

// One that has an effect only where something else is said, too.
struct dependent {
    const char *key;
    bool has_effect;
    const char *expected;
};

struct look {
    const struct alb_scenario *scenario;
    const struct alb_document *document; // with its variants
    const char *variant;                 // NULL: none
    struct alb_complaint *complaint;
};

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

// What a setting leaves without effect may stay: it is there for the scenario without.
static bool is_set(const struct alb_document *document)
{
    for (uint32_t i = 0; i < document->count; i++)
        if (document->entries[i].line == 0)
            return true;
    return false;
}

// What several variants share may be used by some of them only. A variant's own keys have its lines.
static bool is_of_this_run(const struct look *look, const struct alb_document_entry *entry)
{
    if (!look->variant)
        return alb_scenario_variant(look->document, 0) == NULL;
    for (uint32_t i = 0; i < look->document->count; i++) {
        const struct alb_document_entry *own = &look->document->entries[i];
        if (is(own->section, "variant") && is(own->name, look->variant) && own->key[0] && own->line == entry->line)
            return true;
    }
    return false;
}

static bool check(const struct look *look, const char *section, const char *name, const struct dependent *dependents,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct alb_document_entry *entry =
            alb_document_find(&look->scenario->document, section, name, dependents[i].key);
        if (entry && !dependents[i].has_effect && is_of_this_run(look, entry))
            return alb_complain(look->complaint, entry->file, entry->line, "%s: expected %s", entry->key,
                                dependents[i].expected);
    }
    return true;
}

// ---- network and switches -------------------------------------------------------------------------------------------

static bool check_network(const struct look *look)
{
    enum alb_topology_shape shape = look->scenario->network.shape;
    bool is_tree = shape == ALB_TOPOLOGY_FAT_TREE, is_spine = shape == ALB_TOPOLOGY_LEAF_SPINE;
    bool is_long = shape == ALB_TOPOLOGY_TWO_SITES, is_file = shape == ALB_TOPOLOGY_FILE;
    static const char of_spine[] = "topology = leaf-spine for it", of_tree[] = "topology = fat-tree for it";
    static const char of_core[] = "topology = leaf-spine or fat-tree for it", of_long[] = "topology = two-sites for it";
    static const char of_file[] = "another topology for it; the file of this one says it of each cable";
    const struct dependent dependents[] = {
        {"hosts", !is_tree && !is_file, "another topology for it; a fat-tree has k^3/4 hosts, a file says its own"},
        {"leaves", is_spine, of_spine},
        {"spines", is_spine, of_spine},
        {"k", is_tree, of_tree},
        {"oversubscription", is_tree, of_tree},
        {"long_cables", is_long, of_long},
        {"long_rate", is_long, of_long},
        {"long_delay", is_long, of_long},
        {"core_rate", is_spine || is_tree, of_core},
        {"core_delay", is_spine || is_tree, of_core},
        {"rate", !is_file, of_file},
        {"delay", !is_file, of_file},
    };
    return check(look, "network", "", dependents, ALB_COUNT(dependents));
}

static bool check_switches(const struct look *look)
{
    bool marks = look->scenario->switches.mark_max_bytes > 0;
    const struct dependent dependents[] = {
        {"mark_min", marks, "mark_max too, without which nothing is marked"},
        {"mark_chance", marks, "mark_max too, without which nothing is marked"},
        {"spread", look->scenario->network.shape != ALB_TOPOLOGY_STAR,
         "a topology with more than one way between hosts"},
    };
    return check(look, "switch", "", dependents, ALB_COUNT(dependents));
}

// ---- hosts ----------------------------------------------------------------------------------------------------------

static const char *policy_of(const struct alb_engine_config *engine, enum alb_policy policy)
{
    return policy == ALB_POLICY_CONGESTION ? engine->congestion : engine->credit;
}

// Whether some hosts have that policy.
static bool any_has(const struct alb_scenario *scenario, enum alb_policy policy, const char *name)
{
    const char *key = policy == ALB_POLICY_CONGESTION ? "congestion" : "credit";
    for (uint32_t i = 0; i < scenario->document.count; i++) {
        const struct alb_document_entry *entry = &scenario->document.entries[i];
        if (is(entry->section, "host") && is(entry->key, key) && alb_policy_text_is(entry->value, name))
            return true;
    }
    return alb_policy_text_is(policy_of(&scenario->engine, policy), name);
}

// Whether some messages take receives.
static bool any_is_heard(const struct alb_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->workload_count; i++) {
        const struct alb_scenario_workload *workload = &scenario->workloads[i];
        if (workload->op == ALB_WORK_SEND || workload->is_unreliable || workload->kind >= ALB_WORKLOAD_GOAL)
            return true;
    }
    return false;
}

static bool check_host(const struct look *look, const char *name)
{
    const struct alb_scenario_host *host = &look->scenario->host;
    bool is_csa = host->transport == 1, has_cache = !is_csa && host->cache_entries > 0;
    bool has_dcqcn = any_has(look->scenario, ALB_POLICY_CONGESTION, "dcqcn");
    bool has_shortest = any_has(look->scenario, ALB_POLICY_CREDIT, "shortest");
    bool has_credit = has_shortest || any_has(look->scenario, ALB_POLICY_CREDIT, "end-to-end");
    bool has_window = any_has(look->scenario, ALB_POLICY_CONGESTION, "window") ||
                      any_has(look->scenario, ALB_POLICY_CONGESTION, "aimd");
    bool has_start = has_window || has_shortest; // to which what fits into it is a short message
    bool has_max = has_start || has_dcqcn || any_has(look->scenario, ALB_POLICY_CONGESTION, "fixed");
    const struct alb_engine_config *engine = &look->scenario->engine;
    bool is_max = !name[0] && has_max &&
                  engine->window_start_bytes == engine->window_max_bytes; // which it would be without the key, too
    static const char of_dcqcn[] = "congestion = dcqcn for it", of_csa[] = "transport = csa for it";
    static const char of_window[] = "congestion = window or aimd, or credit = shortest, for it";
    static const char of_credit[] = "credit = end-to-end or shortest for it";
    const struct dependent dependents[] = {
        {"cache_entries", !is_csa, "transport = rc for it; csa has no model of a NIC's cache"},
        {"miss_penalty", has_cache, "cache_entries too, with transport = rc"},
        {"receives", any_is_heard(look->scenario), "op = send, unreliable = yes, a collective or a trace for it"},
        {"memory", host->has_real_bytes, "real_bytes = yes for it"},
        {"mtu", !is_csa, "transport = rc for it; packets of csa are as long as payload allows"},
        {"payload", is_csa, "transport = csa for it; packets of rc are as long as mtu allows"},
        {"paths", is_csa, of_csa},
        {"pool", is_csa, of_csa},
        {"early", is_csa, of_csa},
        {"window_segments", is_csa, of_csa},
        {"margin_min", is_csa, of_csa},
        {"probe_min", is_csa, of_csa},
        {"window_start", has_start || is_max, of_window},
        {"window_min", has_start, of_window},
        {"window_max", has_max, "another congestion than none for it"},
        {"rtt_target", any_has(look->scenario, ALB_POLICY_CONGESTION, "window"), "congestion = window for it"},
        {"credit_aging", has_shortest, "credit = shortest for it"},
        {"receive_budget", has_credit, of_credit},
        {"grant_min", has_credit, of_credit},
        {"credit_interval", has_credit, of_credit},
        {"dcqcn_rate_max", has_dcqcn, of_dcqcn},
        {"dcqcn_rate_min", has_dcqcn, of_dcqcn},
        {"dcqcn_additive", has_dcqcn, of_dcqcn},
        {"dcqcn_hyper", has_dcqcn, of_dcqcn},
        {"dcqcn_gain_log2", has_dcqcn, of_dcqcn},
        {"dcqcn_recovery", has_dcqcn, of_dcqcn},
        {"dcqcn_counter", has_dcqcn, of_dcqcn},
        {"dcqcn_increase", has_dcqcn, of_dcqcn},
        {"dcqcn_alpha", has_dcqcn, of_dcqcn},
        {"dcqcn_cnp", has_dcqcn, of_dcqcn},
        {"dcqcn_burst", has_dcqcn, of_dcqcn},
    };
    return check(look, "host", name, dependents, ALB_COUNT(dependents));
}

static bool check_hosts(const struct look *look)
{
    const struct alb_document *document = &look->scenario->document;
    for (uint32_t i = 0; i < document->count; i++)
        if (is(document->entries[i].section, "host") && !document->entries[i].key[0] &&
            !check_host(look, document->entries[i].name))
            return false;
    return true;
}

// ---- workloads and faults -------------------------------------------------------------------------------------------

static bool check_workload(const struct look *look, const struct alb_scenario_workload *workload)
{
    enum alb_workload_kind kind = workload->kind;
    bool is_poisson = kind == ALB_WORKLOAD_POISSON, is_goal = kind == ALB_WORKLOAD_GOAL;
    bool is_of_flows = kind < ALB_WORKLOAD_GOAL, is_collective = kind >= ALB_WORKLOAD_COLLECTIVE;
    bool is_tree = is_collective && kind - ALB_WORKLOAD_COLLECTIVE == ALB_COLLECTIVE_ALL_REDUCE_TREE;
    static const char of_poisson[] = "kind = poisson for it", of_steps[] = "a collective for it";
    static const char of_flows[] = "permutation, incast, all-to-all, pairs or poisson for it";
    const struct dependent dependents[] = {
        {"to", kind == ALB_WORKLOAD_INCAST || kind == ALB_WORKLOAD_PAIRS, "kind = incast or pairs for it"},
        {"start", !is_goal, "no start, a trace begins with the run"},
        {"size", !is_goal, "no size, which a trace has of each message"},
        {"load", is_poisson, of_poisson},
        {"flows", is_poisson, of_poisson},
        {"end", is_poisson, of_poisson},
        {"gap", is_of_flows && !is_poisson, "permutation, incast, all-to-all or pairs for it"},
        {"messages", is_of_flows, of_flows},
        {"depth", is_of_flows, of_flows},
        {"rounds", is_collective, of_steps},
        {"think", is_collective, of_steps},
        {"pieces", is_tree, "kind = all-reduce-tree for it"},
        {"file", is_goal, "kind = goal for it"},
    };
    return check(look, "workload", workload->where->name, dependents, ALB_COUNT(dependents));
}

static bool check_fault(const struct look *look, const struct alb_scenario_fault *fault)
{
    uint32_t kind = fault->kind;
    bool ends = kind == ALB_FAULT_REPAIR || kind == ALB_FAULT_RESUME;
    const struct dependent dependents[] = {
        {"value", !ends && kind != ALB_FAULT_PAUSE, "none for a fault of this kind"},
        {"until", !ends, "none for what ends another fault"},
    };
    return check(look, "fault", fault->where->name, dependents, ALB_COUNT(dependents));
}

bool alb_scenario_keys_have_effect(const struct alb_scenario *scenario, const struct alb_document *document,
                                   const char *variant, struct alb_complaint *complaint)
{
    const struct look look = {scenario, document, variant, complaint};
    if (is_set(document))
        return true;
    if (!check_network(&look) || !check_switches(&look) || !check_hosts(&look))
        return false;
    for (uint32_t i = 0; i < scenario->workload_count; i++)
        if (!check_workload(&look, &scenario->workloads[i]))
            return false;
    for (uint32_t i = 0; i < scenario->fault_count; i++)
        if (!check_fault(&look, &scenario->faults[i]))
            return false;
    return true;
}
