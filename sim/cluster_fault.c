// SPDX-License-Identifier: BSD-2-Clause
// What befalls a cluster's links at scheduled times.
#include "sim/cluster_impl.h"

#include <errno.h>
#include <stdlib.h>

struct scheduled {
    struct alb_sim_event event;
    struct alb_list link;
    struct alb_cluster *cluster;
    struct alb_cluster_fault fault;
    bool closes;     // the cable is routed over no more, if it is dead and has not been repaired since
    uint32_t deaths; // of the cable, when it closes: another one, after a repair, closes it in its own time
};

const char *alb_cluster_fault_name(enum alb_cluster_fault_kind kind)
{
    static const char *const names[ALB_FAULT_KINDS] = {
        [ALB_FAULT_LOSS] = "loss",   [ALB_FAULT_CORRUPT] = "corrupt", [ALB_FAULT_RATE] = "rate",
        [ALB_FAULT_DELAY] = "delay", [ALB_FAULT_DEATH] = "death",     [ALB_FAULT_REPAIR] = "repair",
        [ALB_FAULT_PAUSE] = "pause", [ALB_FAULT_RESUME] = "resume",
    };
    return (uint32_t)kind < ALB_FAULT_KINDS ? names[kind] : NULL;
}

static const struct alb_topology_cable *cable_of(const struct alb_cluster *cluster, uint32_t link)
{
    return &cluster->topology.cables[link / 2];
}

alb_sim_time alb_cluster_delay_of(const struct alb_cluster *cluster, uint32_t link)
{
    const struct alb_topology_cable *cable = cable_of(cluster, link);
    uint32_t from = link % 2 ? cable->b : cable->a, to = link % 2 ? cable->a : cable->b;
    uint32_t hosts = cluster->topology.host_count;
    alb_sim_time before = from < hosts ? cluster->config.host_latency : 0;
    alb_sim_time after = to < hosts ? cluster->config.host_latency : cluster->config.switches.latency;
    return cable->delay + before + after;
}

// ---- what they do ---------------------------------------------------------------------------------------------------

static void set_chances(struct alb_cluster *cluster, struct alb_sim_link *link, uint32_t loss, uint32_t corrupt)
{
    struct alb_faults_spec spec = {.loss = loss, .corrupt = corrupt};
    cluster->fault_seed = cluster->fault_seed * 0x5851f42d4c957f2dull + 0x14057b7ef767814full;
    alb_sim_link_set_faults(link, &spec, cluster->fault_seed ^ link->number);
}

// The far end of the link, if it is a switch, begins anew to tell what it has room for; or leaves it, so that what it
// has paused goes to its end in a dead wire instead of holding up what comes behind it for ever.
static void rejoin(struct alb_cluster *cluster, const struct alb_sim_link *link, alb_sim_time now)
{
    const struct alb_topology_cable *cable = cable_of(cluster, link->number);
    uint32_t to = link->number % 2 ? cable->a : cable->b, hosts = cluster->topology.host_count;
    if (to >= hosts)
        alb_sim_switch_rejoin(&cluster->switches[to - hosts], link->to_port, now);
}

static void set_dead(struct alb_cluster *cluster, struct alb_sim_link *link, bool is_dead, alb_sim_time now)
{
    if (link->is_dead == is_dead)
        return;
    alb_sim_link_set_dead(link, is_dead);
    rejoin(cluster, link, now);
    rejoin(cluster, &cluster->links[link->number ^ 1], now); // what it had to say of that one went by this one
}

static void set_delay(struct alb_cluster *cluster, struct alb_sim_link *link, alb_sim_time cable_delay)
{
    alb_sim_time beside = alb_cluster_delay_of(cluster, link->number) - cable_of(cluster, link->number)->delay;
    alb_sim_link_set_delay(link, cable_delay + beside);
}

static void apply(struct alb_cluster *cluster, const struct alb_cluster_fault *fault, struct alb_sim_link *link,
                  alb_sim_time now)
{
    const struct alb_topology_cable *cable = cable_of(cluster, link->number);
    const struct alb_faults_spec *spec = &link->faults.spec;
    uint32_t chance = fault->ends ? 0 : (uint32_t)fault->value;
    switch (fault->kind) {
    case ALB_FAULT_LOSS:
        set_chances(cluster, link, chance, spec->corrupt);
        break;
    case ALB_FAULT_CORRUPT:
        set_chances(cluster, link, spec->loss, chance);
        break;
    case ALB_FAULT_RATE:
        alb_sim_link_set_rate(link, fault->ends || !fault->value ? cable->bits_per_s : fault->value, now);
        break;
    case ALB_FAULT_DELAY:
        set_delay(cluster, link, fault->ends ? cable->delay : fault->value);
        break;
    case ALB_FAULT_DEATH:
        set_dead(cluster, link, !fault->ends, now);
        break;
    case ALB_FAULT_REPAIR:
        set_chances(cluster, link, 0, 0);
        alb_sim_link_set_rate(link, cable->bits_per_s, now);
        set_delay(cluster, link, cable->delay);
        alb_sim_link_set_paused(link, ALB_SIM_PAUSED_BY_FAULT, false, now);
        set_dead(cluster, link, false, now);
        break;
    case ALB_FAULT_PAUSE:
    case ALB_FAULT_RESUME:
        alb_sim_link_set_paused(link, ALB_SIM_PAUSED_BY_FAULT, fault->kind == ALB_FAULT_PAUSE && !fault->ends, now);
        break;
    case ALB_FAULT_KINDS:
        break;
    }
}

static void set_closed(struct alb_cluster *cluster, uint32_t cable, bool is_closed)
{
    if (cluster->is_closed[cable] == is_closed)
        return;
    cluster->is_closed[cable] = is_closed;
    alb_routes_find(&cluster->routes, cluster->is_closed);
}

// ---- when -----------------------------------------------------------------------------------------------------------

static bool is_dead(const struct alb_cluster *cluster, uint32_t cable)
{
    return cluster->links[2 * cable].is_dead || cluster->links[2 * cable + 1].is_dead;
}

static void on_due(struct alb_sim_event *event, alb_sim_time now)
{
    struct scheduled *scheduled = ALB_CONTAINER_OF(event, struct scheduled, event);
    struct alb_cluster *cluster = scheduled->cluster;
    const struct alb_cluster_fault *fault = &scheduled->fault;
    if (scheduled->closes) {
        if (scheduled->deaths == cluster->deaths[fault->cable])
            set_closed(cluster, fault->cable, is_dead(cluster, fault->cable));
    } else {
        bool was_dead = is_dead(cluster, fault->cable);
        for (uint32_t way = 0; way < 2; way++)
            if (fault->ways[way])
                apply(cluster, fault, &cluster->links[2 * fault->cable + way], now);
        if (!is_dead(cluster, fault->cable))
            set_closed(cluster, fault->cable, false);
        bool is_death = fault->kind == ALB_FAULT_DEATH && !fault->ends;
        cluster->deaths[fault->cable] += is_death && !was_dead;
        if (is_death && fault->value > 0) {
            scheduled->closes = true;
            scheduled->deaths = cluster->deaths[fault->cable];
            alb_sim_queue_schedule(&cluster->network.queue, event, now + fault->value);
            return;
        }
    }
    alb_list_remove(&scheduled->link);
    free(scheduled);
}

alb_sim_time alb_cluster_delay_min(const struct alb_cluster *cluster)
{
    return cluster->network.queue.windows.length;
}

static bool is_valid(const struct alb_cluster *cluster, const struct alb_cluster_fault *fault)
{
    bool is_chance = fault->kind == ALB_FAULT_LOSS || fault->kind == ALB_FAULT_CORRUPT;
    return fault->cable < cluster->topology.cable_count && (uint32_t)fault->kind < ALB_FAULT_KINDS &&
           (!is_chance || fault->value <= 1000000000) &&
           ((fault->kind != ALB_FAULT_DELAY && fault->kind != ALB_FAULT_DEATH) || fault->value <= ALB_SIM_S(3600)) &&
           (fault->kind != ALB_FAULT_DELAY || fault->ends || fault->value >= alb_cluster_delay_min(cluster));
}

// Before the first cable can be closed. 0 or ENOMEM.
static int keep_routes(struct alb_cluster *cluster)
{
    char why[ALB_TOPOLOGY_ERROR_MAX];
    int error = cluster->has_built ? 0 : alb_routes_init(&cluster->built, &cluster->topology, why);
    cluster->has_built = error == 0;
    return error;
}

int alb_cluster_fault(struct alb_cluster *cluster, const struct alb_cluster_fault *fault)
{
    if (!is_valid(cluster, fault))
        return EINVAL;
    if (fault->kind == ALB_FAULT_DEATH && !fault->ends && fault->value > 0 && keep_routes(cluster) != 0)
        return ENOMEM;
    for (uint32_t way = 0; way < 2; way++)
        if (fault->ways[way])
            alb_sim_link_go_by_steps(&cluster->links[2 * fault->cable + way]);
    struct scheduled *scheduled = calloc(1, sizeof(*scheduled));
    alb_assert(scheduled);
    scheduled->cluster = cluster;
    scheduled->fault = *fault;
    alb_list_init(&scheduled->link);
    alb_list_push_back(&cluster->faults, &scheduled->link);
    alb_sim_event_init(&scheduled->event, on_due);
    alb_sim_queue_schedule(&cluster->network.queue, &scheduled->event, ALB_MAX(fault->at, alb_cluster_now(cluster)));
    return 0;
}

void alb_cluster_forget_faults(struct alb_cluster *cluster)
{
    struct alb_list *node;
    while ((node = alb_list_pop(&cluster->faults))) {
        struct scheduled *scheduled = ALB_LIST_ENTRY(node, struct scheduled, link);
        alb_sim_queue_cancel(&cluster->network.queue, &scheduled->event);
        free(scheduled);
    }
}
