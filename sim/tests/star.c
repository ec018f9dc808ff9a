// SPDX-License-Identifier: BSD-2-Clause
#include "star.h"

#include <stdlib.h>
#include <string.h>

static void pass_on(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct star *star = ALB_CONTAINER_OF(node, struct star, node);
    for (uint32_t i = 0; i < star->count; i++)
        if (alb_addr_equals(&star->hosts[i].host.addr, &packet->destination.addr)) {
            alb_sim_link_send(&star->hosts[i].down, packet, now);
            return;
        }
    alb_sim_packet_put(&star->network.packets, packet);
}

static void add_host(struct star *star, uint32_t i, uint64_t bits_per_s, uint64_t queue_bytes_max)
{
    struct star_host *h = &star->hosts[i];
    struct alb_sim_host_config config;
    struct alb_addr addr = alb_addr_from_ipv4((const uint8_t[4]){10, 0, 0, (uint8_t)(i + 1)});
    struct alb_sim_link_config link = {.bits_per_s = bits_per_s, .delay = ALB_SIM_US(1)};
    alb_sim_host_config_default(&config, &addr);
    alb_assert(alb_sim_host_init(&h->host, &star->network, &config) == 0);
    alb_sim_network_link(&star->network, &h->up, &star->node, &link);
    link.queue_bytes_max = queue_bytes_max;
    alb_sim_network_link(&star->network, &h->down, &h->host.node, &link);
    h->host.out = &h->up;
    h->memory = aligned_alloc(64, STAR_MEMORY);
    memset(h->memory, (int)i + 1, STAR_MEMORY);
    alb_assert(alb_pd_create(h->host.engine, &h->pd) == 0);
    alb_assert(alb_cq_create(h->host.engine, 64, NULL, &h->cq) == 0);
    alb_assert(alb_mr_create(h->pd, h->memory, STAR_MEMORY, (uintptr_t)h->memory,
                             ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE, &h->mr) == 0);
}

static struct alb_qp *new_qp(struct star_host *h)
{
    struct alb_qp *qp;
    struct alb_qp_init init = {.type = ALB_QPT_RC, .send_cq = h->cq, .recv_cq = h->cq, .cap = {16, 16, 1, 1, 0}};
    alb_assert(alb_qp_create(h->pd, &init, &qp) == 0);
    return qp;
}

static void connect(struct star_host *h, struct alb_qp *qp, const struct star_host *peer, const struct alb_qp *remote)
{
    struct alb_qp_attr attr = {
        .state = ALB_QPS_INIT,
        .port = 1,
        .access = ALB_ACCESS_REMOTE_WRITE,
        .path_mtu_bytes = 1024,
        .dest_qpn = alb_qp_number(remote),
        .timeout = 10,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .av = {.local = h->host.addr, .peer = peer->host.addr, .traffic_class = ALB_ECN_ECT0},
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

struct star *star_new(uint32_t hosts, uint64_t bits_per_s, uint64_t queue_bytes_max)
{
    struct star *star = calloc(1, sizeof(*star));
    alb_assert(star);
    alb_sim_network_init(&star->network, 1, true);
    star->node.receive = pass_on;
    star->count = hosts;
    for (uint32_t i = 0; i < hosts; i++)
        add_host(star, i, bits_per_s, queue_bytes_max);
    for (uint32_t i = 0; i < hosts; i++)
        for (uint32_t k = 0; k < hosts; k++)
            star->hosts[i].qps[k] = i == k ? NULL : new_qp(&star->hosts[i]);
    for (uint32_t i = 0; i < hosts; i++)
        for (uint32_t k = 0; k < hosts; k++)
            if (i != k)
                connect(&star->hosts[i], star->hosts[i].qps[k], &star->hosts[k], star->hosts[k].qps[i]);
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

static uint32_t part_of(const struct star *star, uint32_t host)
{
    return STAR_MEMORY / STAR_HOSTS_MAX * host;
}

void star_write(struct star *star, uint32_t from, uint32_t to, uint32_t bytes)
{
    struct star_host *h = &star->hosts[from];
    const struct star_host *peer = &star->hosts[to];
    uint32_t part = STAR_MEMORY / STAR_HOSTS_MAX;
    for (uint32_t done = 0; done < bytes; done += part) { // the same part again and again
        struct alb_sge sge = {(uintptr_t)h->memory, ALB_MIN(part, bytes - done), alb_region_key(h->mr)};
        struct alb_send_wr wr = {
            .opcode = ALB_WR_RDMA_WRITE,
            .flags = done + part >= bytes ? ALB_SEND_SIGNALED : 0,
            .sge = &sge,
            .sge_count = 1,
            .remote_addr = (uintptr_t)peer->memory + part_of(star, from),
            .rkey = alb_region_key(peer->mr),
        };
        alb_assert(alb_qp_send_stage(h->qps[to], &wr) == 0);
    }
    alb_qp_send_commit(h->qps[to]);
    alb_engine_bell_ring(h->qps[to]);
    alb_sim_host_poke(&h->host);
}

void star_run(struct star *star)
{
    alb_assert(alb_sim_network_run_idle(&star->network, alb_sim_network_now(&star->network) + ALB_SIM_S(10)));
}

bool star_is_done(struct star *star, uint32_t from, uint32_t to)
{
    const struct alb_wc *wc = alb_cq_peek(star->hosts[from].cq);
    if (!wc || wc->status != ALB_WC_SUCCESS || wc->qp != star->hosts[from].qps[to])
        return false;
    alb_cq_pop(star->hosts[from].cq);
    return memcmp(star->hosts[to].memory + part_of(star, from), star->hosts[from].memory,
                  STAR_MEMORY / STAR_HOSTS_MAX) == 0;
}
