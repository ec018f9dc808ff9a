// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/pair.h"

#include <stdlib.h>

// ---- hosts ----------------------------------------------------------------------------------------------------------

static void *get(void *context, size_t bytes)
{
    struct pair_host *host = context;
    if (host->refused_from == 1)
        return NULL;
    if (host->refused_from > 1)
        host->refused_from--;
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    alb_assert(memory);
    memset(memory, 0, bytes);
    host->gets++;
    host->bytes_held += bytes;
    host->bytes_most = ALB_MAX(host->bytes_most, host->bytes_held);
    return memory;
}

static void put(void *context, void *memory, size_t bytes)
{
    struct pair_host *host = context;
    alb_assert(bytes <= host->bytes_held);
    host->bytes_held -= bytes;
    free(memory);
}

static void make_memory(struct pair_host *host)
{
    uint8_t *all = aligned_alloc(4096, PAIR_MEMORY_BYTES + 2 * PAIR_GUARD_BYTES);
    alb_assert(all);
    memset(all, PAIR_GUARD, PAIR_MEMORY_BYTES + 2 * PAIR_GUARD_BYTES);
    host->memory = all + PAIR_GUARD_BYTES;
    memset(host->memory, 0, PAIR_MEMORY_BYTES);
}

static void make_host(struct pair_host *host, int side, void (*change)(struct alb_engine_config *config))
{
    struct alb_engine_config config;
    alb_engine_config_default(&config);
    config.memory = (struct alb_memory){.get = get, .put = put, .context = host};
    config.stats = &host->stats;
    config.qp_max = 128;
    config.region_max = 64;
    config.peer_max = 8;
    config.unreliable_bytes_per_s = 0;
    memset(config.seed, 11 + side, sizeof(config.seed));
    if (change)
        change(&config);
    int error = alb_engine_create(&config, &host->engine);
    alb_assert(error == 0);
    error = alb_pd_create(host->engine, &host->pd);
    alb_assert(error == 0);
    error = alb_cq_create(host->engine, 256, NULL, &host->cq);
    alb_assert(error == 0);
    make_memory(host);
    error =
        alb_mr_create(host->pd, host->memory, PAIR_MEMORY_BYTES, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &host->mr);
    alb_assert(error == 0);
    host->addr = alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, (uint8_t)(1 + side)});
    host->tx = (struct alb_tx){
        .bursts = host->bursts,
        .segments = host->segments,
        .iov = host->iov,
        .bytes = host->bytes,
        .burst_capacity = ALB_COUNT(host->bursts),
        .segment_capacity = ALB_COUNT(host->segments),
        .iov_capacity = ALB_COUNT(host->iov),
        .bytes_capacity = sizeof(host->bytes),
        .burst_segments_max = 64,
        .burst_bytes_max = 65000,
    };
}

struct pair *pair_new(void (*change)(struct alb_engine_config *config))
{
    struct pair *pair = calloc(1, sizeof(*pair));
    alb_assert(pair);
    for (int side = 0; side < 2; side++) {
        alb_list_init(&pair->wire[side]);
        make_host(&pair->hosts[side], side, change);
    }
    pair->now = ALB_NS_PER_S;
    return pair;
}

static void destroy_regions(struct alb_engine *engine, enum alb_region_kind kind)
{
    for (uint32_t i = 0; i < engine->region_table_size; i++) {
        struct alb_region *region = engine->regions[i];
        if (!region || region->kind != kind)
            continue;
        int error = kind == ALB_REGION_MW ? alb_mw_destroy(region) : alb_mr_destroy(region);
        alb_assert(error == 0);
    }
}

static void free_host(struct pair_host *host)
{
    struct alb_engine *engine = host->engine;
    for (uint32_t i = 0; i < engine->config.qp_max; i++)
        if (engine->qps[i])
            alb_qp_destroy(engine->qps[i]);
    destroy_regions(engine, ALB_REGION_MW);
    destroy_regions(engine, ALB_REGION_MR);
    int error = alb_cq_destroy(host->cq);
    alb_assert(error == 0);
    error = alb_pd_destroy(host->pd);
    alb_assert(error == 0);
    alb_engine_destroy(engine);
    alb_assert(host->bytes_held == 0);
    free(host->memory - PAIR_GUARD_BYTES);
}

static void check_guard(const uint8_t *guard)
{
    alb_assert(guard[0] == PAIR_GUARD && memcmp(guard, guard + 1, PAIR_GUARD_BYTES - 1) == 0);
}

void pair_check_guards(const struct pair *pair)
{
    for (int side = 0; side < 2; side++) {
        check_guard(pair->hosts[side].memory - PAIR_GUARD_BYTES);
        check_guard(pair->hosts[side].memory + PAIR_MEMORY_BYTES);
    }
}

void pair_free(struct pair *pair)
{
    pair_check_guards(pair);
    for (int side = 0; side < 2; side++) {
        while (!alb_list_is_empty(&pair->wire[side]))
            pair_lose(pair, side);
        free_host(&pair->hosts[side]);
    }
    free(pair);
}

// ---- queue pairs ----------------------------------------------------------------------------------------------------

struct alb_qp *pair_qp_with(struct pair *pair, int side, struct alb_qp_init *init)
{
    struct alb_qp *qp;
    struct pair_host *host = &pair->hosts[side];
    bool is_bare = init->type == ALB_QPT_XRC_RECV;
    if (!init->send_cq && !is_bare)
        init->send_cq = host->cq;
    if (!init->recv_cq && !is_bare)
        init->recv_cq = host->cq;
    int error = alb_qp_create(is_bare ? NULL : host->pd, init, &qp);
    alb_assert(error == 0);
    return qp;
}

struct alb_qp *pair_qp(struct pair *pair, int side, enum alb_qp_type type)
{
    struct alb_qp_init init = {
        .type = type,
        .cap = {.send_wr_max = 16, .recv_wr_max = 16, .send_sge_max = 4, .recv_sge_max = 4, .inline_max_bytes = 64},
    };
    return pair_qp_with(pair, side, &init);
}

struct alb_qp_attr pair_attr(const struct pair *pair, int side, const struct alb_qp *peer)
{
    return (struct alb_qp_attr){
        .access = PAIR_ACCESS_ALL & ~ALB_ACCESS_MW_BIND,
        .port = 1,
        .qkey = 0x11111111,
        .av = {.local = pair->hosts[side].addr, .peer = pair->hosts[!side].addr, .hop_limit = 64},
        .path_mtu_bytes = 1024,
        .timeout = 10,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 1,
        .max_rd_atomic = PAIR_RD_ATOMIC,
        .max_dest_rd_atomic = PAIR_RD_ATOMIC,
        .sq_psn = side ? PAIR_PSN ^ 0x800000 : PAIR_PSN,
        .rq_psn = side ? PAIR_PSN : PAIR_PSN ^ 0x800000,
        .dest_qpn = peer ? alb_qp_number(peer) : 0,
    };
}

uint32_t pair_mask(enum alb_qp_type type, enum alb_qp_state state)
{
    bool is_ud = type == ALB_QPT_UD;
    bool asks = type == ALB_QPT_RC || type == ALB_QPT_XRC_SEND;
    bool answers = type == ALB_QPT_RC || type == ALB_QPT_XRC_RECV;
    uint32_t timeout = asks || answers ? ALB_QP_TIMEOUT : 0;
    switch (state) {
    case ALB_QPS_INIT:
        return ALB_QP_STATE | ALB_QP_PKEY_INDEX | ALB_QP_PORT | (is_ud ? ALB_QP_QKEY : ALB_QP_ACCESS_FLAGS);
    case ALB_QPS_RTR:
        return ALB_QP_STATE | (is_ud ? 0 : ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN) |
               (answers ? ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_MIN_RNR_TIMER : 0);
    case ALB_QPS_RTS:
        return ALB_QP_STATE | ALB_QP_SQ_PSN | timeout |
               (asks ? ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_MAX_QP_RD_ATOMIC : 0);
    default:
        return ALB_QP_STATE;
    }
}

int pair_move(struct pair *pair, struct alb_qp *qp, enum alb_qp_state state, const struct alb_qp_attr *attr)
{
    struct alb_qp_attr step = *attr;
    for (enum alb_qp_state next = ALB_QPS_INIT; next <= state; next++) {
        step.state = next;
        int error = alb_qp_modify(qp, &step, pair_mask(alb_qp_kind(qp), next), pair->now);
        if (error)
            return error;
    }
    return 0;
}

void pair_connect(struct pair *pair, enum alb_qp_type type, struct alb_qp *qps[2],
                  void (*change)(struct alb_qp_attr *attr, int side))
{
    for (int side = 0; side < 2; side++)
        qps[side] = pair_qp(pair, side, type);
    for (int side = 0; side < 2; side++) {
        struct alb_qp_attr attr = pair_attr(pair, side, qps[!side]);
        if (change)
            change(&attr, side);
        int error = pair_move(pair, qps[side], ALB_QPS_RTS, &attr);
        alb_assert(error == 0);
    }
}

// ---- the wire -------------------------------------------------------------------------------------------------------

static void put_on_wire(struct pair *pair, int side, const struct alb_burst *burst, const struct alb_segment *segment)
{
    const struct pair_host *host = &pair->hosts[side];
    struct pair_packet *packet = calloc(1, sizeof(*packet) + segment->length);
    alb_assert(packet);
    uint32_t length = 0;
    for (uint32_t i = 0; i < segment->iov_count; i++) {
        const struct iovec *iov = &host->iov[segment->iov_first + i];
        alb_assert(length + iov->iov_len <= segment->length);
        memcpy(packet->bytes + length, iov->iov_base, iov->iov_len);
        length += (uint32_t)iov->iov_len;
    }
    alb_assert(length == segment->length && length <= burst->segment_bytes);
    packet->datagram = (struct alb_datagram){
        .peer = {host->addr, 49152},
        .local = {burst->peer.addr, ALB_ROCE_PORT},
        .traffic_class = burst->traffic_class,
        .hop_limit = burst->hop_limit,
        .bytes = packet->bytes,
        .length = length - ALB_ICRC_BYTES,
    };
    enum alb_drop drop = alb_roce_decode(packet->bytes, packet->datagram.length, &packet->roce, &packet->payload_offset,
                                         &packet->payload_bytes);
    alb_assert(drop == ALB_DROP_NONE);
    alb_list_push_back(&pair->wire[side], &packet->link);
}

uint32_t pair_send_batch(struct pair *pair, int side)
{
    struct pair_host *host = &pair->hosts[side];
    uint32_t sent = 0, bursts = alb_engine_tx(host->engine, &host->tx, pair->now);
    for (uint32_t i = 0; i < bursts; i++) {
        const struct alb_burst *burst = &host->bursts[i];
        for (uint32_t k = 0; k < burst->segment_count; k++)
            put_on_wire(pair, side, burst, &host->segments[burst->segment_first + k]);
        sent += burst->segment_count;
    }
    return sent;
}

uint32_t pair_send(struct pair *pair, int side)
{
    uint32_t sent = 0, more;
    alb_engine_bells(pair->hosts[side].engine, pair->now);
    while ((more = pair_send_batch(pair, side)) > 0)
        sent += more;
    return sent;
}

uint32_t pair_count(const struct pair *pair, int side)
{
    uint32_t count = 0;
    ALB_LIST_FOR_EACH (&pair->wire[side], node)
        count++;
    return count;
}

struct pair_packet *pair_peek(const struct pair *pair, int side, uint32_t index)
{
    ALB_LIST_FOR_EACH (&pair->wire[side], node)
        if (index-- == 0)
            return ALB_LIST_ENTRY(node, struct pair_packet, link);
    return NULL;
}

void pair_hurry(struct pair *pair, int side, uint32_t index)
{
    struct pair_packet *packet = pair_peek(pair, side, index);
    alb_assert(packet);
    alb_list_remove(&packet->link);
    alb_list_push_front(&pair->wire[side], &packet->link);
}

void pair_deliver(struct pair *pair, int side)
{
    struct alb_list *node = alb_list_pop(&pair->wire[side]);
    if (!node)
        return;
    struct pair_packet *packet = ALB_LIST_ENTRY(node, struct pair_packet, link);
    alb_engine_rx(pair->hosts[!side].engine, &packet->datagram, 1, pair->now);
    free(packet);
}

void pair_deliver_together(struct pair *pair, int side, uint32_t count)
{
    struct alb_datagram datagrams[PAIR_TOGETHER];
    struct pair_packet *packets[PAIR_TOGETHER];
    struct alb_list *node;
    uint32_t taken = 0;
    while (taken < ALB_MIN(count, (uint32_t)PAIR_TOGETHER) && (node = alb_list_pop(&pair->wire[side]))) {
        packets[taken] = ALB_LIST_ENTRY(node, struct pair_packet, link);
        datagrams[taken] = packets[taken]->datagram;
        taken++;
    }
    if (taken > 0)
        alb_engine_rx(pair->hosts[!side].engine, datagrams, taken, pair->now);
    while (taken > 0)
        free(packets[--taken]);
}

void pair_lose(struct pair *pair, int side)
{
    struct alb_list *node = alb_list_pop(&pair->wire[side]);
    if (node)
        free(ALB_LIST_ENTRY(node, struct pair_packet, link));
}

void pair_inject(struct pair *pair, int side, const struct alb_roce *roce, const void *payload, uint32_t payload_bytes)
{
    uint8_t bytes[ALB_ROCE_HEADER_MAX + ALB_ROCE_PAYLOAD_MAX * 2 + 4] = {0};
    struct alb_roce padded = *roce;
    alb_assert(payload_bytes <= ALB_ROCE_PAYLOAD_MAX * 2);
    padded.pad = alb_roce_pad(payload_bytes);
    uint32_t header_bytes = alb_roce_encode(&padded, bytes);
    if (payload_bytes)
        memcpy(bytes + header_bytes, payload, payload_bytes);
    struct alb_datagram datagram = {
        .peer = {pair->hosts[side].addr, 49152},
        .local = {pair->hosts[!side].addr, ALB_ROCE_PORT},
        .hop_limit = 64,
        .bytes = bytes,
        .length = header_bytes + payload_bytes + padded.pad,
    };
    alb_engine_rx(pair->hosts[!side].engine, &datagram, 1, pair->now);
}

struct alb_roce pair_request(const struct pair_qps *c, uint8_t opcode, int32_t psn_offset, uint32_t length)
{
    return (struct alb_roce){
        .opcode = opcode,
        .pkey = ALB_PKEY_DEFAULT,
        .dest_qpn = alb_qp_number(c->qps[1]),
        .psn = alb_psn_add(PAIR_PSN, psn_offset),
        .ackreq = true,
        .va = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
        .length = length,
    };
}

void pair_deliver_all(struct pair *pair, int side)
{
    while (!alb_list_is_empty(&pair->wire[side]))
        pair_deliver(pair, side);
}

void pair_exchange(struct pair *pair, struct alb_prng *prng, uint32_t lost_one_in)
{
    for (int side = 0; side < 2; side++) {
        pair_send(pair, side);
        while (pair_count(pair, side))
            if (alb_prng_below(prng, lost_one_in) == 0)
                pair_lose(pair, side);
            else
                pair_deliver(pair, side);
    }
}

void pair_settle(struct pair *pair)
{
    do {
        pair_deliver_all(pair, 0);
        pair_deliver_all(pair, 1);
    } while (pair_send(pair, 0) + pair_send(pair, 1) > 0);
}

void pair_pass(struct pair *pair, alb_time ns)
{
    alb_time end = pair->now + ns;
    for (;;) {
        alb_time due = ALB_MIN(alb_engine_deadline(pair->hosts[0].engine), alb_engine_deadline(pair->hosts[1].engine));
        if (due > end)
            break;
        pair->now = ALB_MAX(pair->now, due);
        alb_engine_tick(pair->hosts[0].engine, pair->now);
        alb_engine_tick(pair->hosts[1].engine, pair->now);
    }
    pair->now = end;
}

// ---- the program's side ---------------------------------------------------------------------------------------------

int pair_post(struct pair *pair, struct alb_qp *qp, const struct alb_send_wr *wr)
{
    int error = alb_qp_send_stage(qp, wr);
    if (error)
        return error;
    alb_qp_send_commit(qp);
    alb_engine_bell_ring(qp);
    return 0;
}

static int side_of(const struct pair *pair, const struct alb_engine *engine)
{
    return engine == pair->hosts[1].engine;
}

int pair_ask(struct pair *pair, struct alb_qp *qp, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t flags,
             uint32_t offset, uint32_t length)
{
    int side = side_of(pair, qp->engine);
    struct alb_sge sge = pair_sge(pair, side, offset, length);
    struct alb_send_wr wr = {
        .wr_id = wr_id,
        .opcode = opcode,
        .flags = flags,
        .sge = &sge,
        .sge_count = 1,
        .imm_data = 0x1234,
        .remote_addr = pair_va(pair, !side, offset),
        .rkey = alb_region_key(pair->hosts[!side].mr),
        .compare_add = 1,
        .swap = 2,
    };
    return pair_post(pair, qp, &wr);
}

void pair_fill(struct pair *pair)
{
    for (uint32_t i = 0; i < PAIR_MEMORY_BYTES; i++) {
        pair->hosts[0].memory[i] = (uint8_t)(i * 13 + (i >> 8) * 7);
        pair->hosts[1].memory[i] = (uint8_t)~pair->hosts[0].memory[i];
    }
}

int pair_receive(struct pair *pair, struct alb_qp *qp, uint64_t wr_id, uint32_t offset, uint32_t length)
{
    struct alb_sge sge = pair_sge(pair, side_of(pair, qp->engine), offset, length);
    bool bell;
    int error = alb_qp_recv_post(qp, wr_id, &sge, 1, &bell);
    if (!error && bell)
        alb_engine_bell_ring(qp);
    return error;
}

struct alb_sge pair_sge(const struct pair *pair, int side, uint32_t offset, uint32_t length)
{
    return (struct alb_sge){
        .addr = pair_va(pair, side, offset), .length = length, .lkey = alb_region_key(pair->hosts[side].mr)};
}

uint64_t pair_va(const struct pair *pair, int side, uint32_t offset)
{
    return (uintptr_t)pair->hosts[side].memory + offset;
}

bool pair_poll(struct pair *pair, int side, struct alb_wc *wc)
{
    struct alb_cq *cq = pair->hosts[side].cq;
    const struct alb_wc *oldest = alb_cq_peek(cq);
    if (!oldest)
        return false;
    *wc = *oldest;
    alb_cq_pop(cq);
    return true;
}

bool pair_event(struct pair *pair, int side, enum alb_event_type type, struct alb_event *event)
{
    while (alb_engine_event(pair->hosts[side].engine, event))
        if (event->type == type)
            return true;
    return false;
}

static struct pair_qps *new_qps(enum alb_qp_type type)
{
    struct pair_qps *c = calloc(1, sizeof(*c));
    alb_assert(c);
    c->pair = pair_new(NULL);
    pair_fill(c->pair);
    pair_connect(c->pair, type, c->qps, NULL);
    return c;
}

int pair_rc_setup(void **state)
{
    *state = new_qps(ALB_QPT_RC);
    return 0;
}

int pair_uc_setup(void **state)
{
    *state = new_qps(ALB_QPT_UC);
    return 0;
}

int pair_qps_teardown(void **state)
{
    struct pair_qps *c = *state;
    pair_free(c->pair);
    free(c);
    return 0;
}
