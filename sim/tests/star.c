// SPDX-License-Identifier: BSD-2-Clause
#include "star.h"

#include <stdlib.h>
#include <string.h>

// ---- hosts ----------------------------------------------------------------------------------------------------------

static void pass_on(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct star *star = ALB_CONTAINER_OF(node, struct star, node);
    for (uint32_t i = 0; i < star->count; i++)
        if (alb_addr_equals(&star->hosts[i].host.addr, &alb_sim_load(packet)->destination.addr)) {
            alb_sim_link_send(&star->hosts[i].down, packet, now);
            return;
        }
    alb_sim_packet_put(&star->network.packets, packet);
}

static void add_host(struct star *star, uint32_t i)
{
    struct star_host *h = &star->hosts[i];
    struct alb_sim_host_config config;
    struct alb_addr addr = alb_addr_from_ipv4((const uint8_t[4]){10, 0, 0, (uint8_t)(i + 1)});
    alb_sim_host_config_default(&config, &addr);
    if (star->config.change)
        star->config.change(&config.engine);
    alb_assert(alb_sim_host_init(&h->host, &star->network, &config) == 0);
    alb_sim_network_link(&star->network, &h->up, &star->node, &star->config.up);
    alb_sim_network_link(&star->network, &h->down, &h->host.node, &star->config.down);
    alb_sim_host_set_out(&h->host, &h->up);
    h->memory = aligned_alloc(64, STAR_MEMORY);
    memset(h->memory, (int)i + 1, STAR_MEMORY);
    alb_assert(alb_pd_create(h->host.engine, &h->pd) == 0);
    alb_assert(alb_cq_create(h->host.engine, STAR_DEPTH_MAX * STAR_HOSTS_MAX, NULL, &h->cq) == 0);
    alb_assert(alb_mr_create(h->pd, h->memory, STAR_MEMORY, (uintptr_t)h->memory,
                             ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE, &h->mr) == 0);
}

static struct alb_qp *new_qp(struct star_host *h)
{
    struct alb_qp *qp;
    struct alb_qp_init init = {
        .type = ALB_QPT_RC, .send_cq = h->cq, .recv_cq = h->cq, .cap = {STAR_DEPTH_MAX, 1, 1, 1, 0}};
    alb_assert(alb_qp_create(h->pd, &init, &qp) == 0);
    return qp;
}

static void connect(const struct star *star, struct star_host *h, struct alb_qp *qp, const struct star_host *peer,
                    const struct alb_qp *remote)
{
    struct alb_qp_attr attr = {
        .state = ALB_QPS_INIT,
        .port = 1,
        .access = ALB_ACCESS_REMOTE_WRITE,
        .path_mtu_bytes = star->config.mtu_bytes,
        .dest_qpn = alb_qp_number(remote),
        .timeout = 10,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .av = {.local = h->host.addr,
               .peer = peer->host.addr,
               .traffic_class = ALB_ECN_ECT0,
               .peer_has_slots = h->host.is_csa,
               .path_payload_max = star->config.path_payload_max},
    };
    alb_assert(alb_qp_modify(qp, &attr, ALB_QP_STATE | ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS, 0) == 0);
    attr.state = ALB_QPS_RTR;
    alb_assert(alb_qp_modify(qp, &attr,
                             ALB_QP_STATE | ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN |
                                 ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_MIN_RNR_TIMER,
                             0) == 0);
    attr.state = ALB_QPS_RTS;
    alb_assert(alb_qp_modify(qp, &attr,
                             ALB_QP_STATE | ALB_QP_SQ_PSN | ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY |
                                 ALB_QP_MAX_QP_RD_ATOMIC,
                             0) == 0);
}

// ---- the whole ------------------------------------------------------------------------------------------------------

void star_config_default(struct star_config *config, uint32_t hosts)
{
    const struct alb_sim_link_config link = {.bits_per_s = 10000000000, .delay = ALB_SIM_US(1)};
    *config = (struct star_config){.hosts = hosts, .up = link, .down = link, .is_wheel = true, .mtu_bytes = 1024};
}

static bool are_connected(const struct star *star, uint32_t i, uint32_t k)
{
    return i != k && (star->config.is_wheel || i == 0 || k == 0);
}

struct star *star_new(const struct star_config *config)
{
    struct star *star = calloc(1, sizeof(*star));
    alb_assert(star && config->hosts <= STAR_HOSTS_MAX);
    star->config = *config;
    alb_sim_network_init(&star->network, 1, true);
    if (config->path_payload_max > 4096)
        alb_sim_network_set_packet_max(&star->network, config->path_payload_max);
    star->node.receive = pass_on;
    star->count = config->hosts;
    for (uint32_t i = 0; i < star->count; i++)
        add_host(star, i);
    for (uint32_t i = 0; i < star->count; i++)
        for (uint32_t k = 0; k < star->count; k++)
            star->hosts[i].qps[k] = are_connected(star, i, k) ? new_qp(&star->hosts[i]) : NULL;
    for (uint32_t i = 0; i < star->count; i++)
        for (uint32_t k = 0; k < star->count; k++)
            if (star->hosts[i].qps[k])
                connect(star, &star->hosts[i], star->hosts[i].qps[k], &star->hosts[k], star->hosts[k].qps[i]);
    return star;
}

void star_free(struct star *star)
{
    for (uint32_t i = 0; i < star->count; i++) {
        struct star_host *h = &star->hosts[i];
        for (uint32_t k = 0; k < star->count; k++)
            if (h->qps[k])
                alb_assert(alb_qp_destroy(h->qps[k]) == 0);
        alb_assert(alb_mr_destroy(h->mr) == 0);
        alb_assert(alb_cq_destroy(h->cq) == 0);
        alb_assert(alb_pd_destroy(h->pd) == 0);
        alb_assert(h->host.memory.data_path_calls == 0);
        alb_sim_host_fini(&h->host);
        free(h->memory);
    }
    for (uint32_t i = 0; i < star->count; i++) {
        alb_sim_link_fini(&star->hosts[i].up);
        alb_sim_link_fini(&star->hosts[i].down);
    }
    alb_sim_network_fini(&star->network);
    free(star);
}

// ---- flows ----------------------------------------------------------------------------------------------------------

static uint32_t part_of(uint32_t host)
{
    return STAR_MEMORY / STAR_HOSTS_MAX / 64 * 64 * host;
}

void star_flow(struct star *star, uint32_t from, uint32_t to, uint32_t message_bytes, uint32_t depth,
               uint64_t end_bytes)
{
    struct star_host *h = &star->hosts[from];
    const struct star_host *peer = &star->hosts[to];
    alb_assert(message_bytes <= part_of(1) && depth <= STAR_DEPTH_MAX);
    h->flow_to = to;
    h->flow = (struct flow){
        .host = &h->host,
        .qp = h->qps[to],
        .cq = h->cq,
        .from = (uintptr_t)h->memory,
        .to = (uintptr_t)peer->memory + part_of(from),
        .lkey = alb_region_key(h->mr),
        .rkey = alb_region_key(peer->mr),
        .message_bytes = message_bytes,
        .depth = depth,
        .end_bytes = end_bytes,
    };
    flow_start(&h->flow);
}

void star_run(struct star *star)
{
    alb_assert(alb_sim_network_run_idle(&star->network, alb_sim_network_now(&star->network) + ALB_SIM_S(10)));
}

bool star_is_done(const struct star *star, uint32_t from)
{
    const struct star_host *h = &star->hosts[from];
    return flow_is_done(&h->flow) && memcmp(star->hosts[h->flow_to].memory + part_of(from), h->memory,
                                            ALB_MIN(h->flow.end_bytes, (uint64_t)h->flow.message_bytes)) == 0;
}
