// SPDX-License-Identifier: BSD-2-Clause
#include "fuzz/world.h"

#include "engine/partial.h"

#include <stdlib.h>

enum {
    OPERATIONS = 19, // those of all kinds
    OPERATIONS_MAX = 600,
    WIRE_MAX = 256,
};

// ---- input ----------------------------------------------------------------------------------------------------------

uint8_t world_draw(struct world *w)
{
    if (w->left == 0)
        return 0;
    w->left--;
    return *w->input++;
}

uint32_t world_draw_below(struct world *w, uint32_t n)
{
    uint32_t value = world_draw(w);
    if (n > 256)
        value = value << 8 | world_draw(w);
    return value % n;
}

// ---- the world ------------------------------------------------------------------------------------------------------

static void open_regions(struct world *w, int side)
{
    struct pair_host *host = &w->pair->hosts[side];
    struct world_side *s = &w->sides[side];
    int error = alb_mr_create(host->pd, host->memory + WORLD_TARGET, WORLD_REGION_BYTES,
                              pair_va(w->pair, side, WORLD_TARGET), PAIR_ACCESS_ALL, &s->target);
    alb_assert(error == 0);
    error = alb_mr_create(host->pd, host->memory + WORLD_OWN, WORLD_REGION_BYTES, pair_va(w->pair, side, WORLD_OWN),
                          ALB_ACCESS_LOCAL_WRITE, &s->own);
    alb_assert(error == 0);
}

static const struct alb_addr group = {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1}};

static void make_side(struct world *w, int side)
{
    static const enum alb_qp_type types[2][WORLD_QPS] = {
        {ALB_QPT_RC, ALB_QPT_RC, ALB_QPT_UC, ALB_QPT_UD, ALB_QPT_XRC_SEND},
        {ALB_QPT_RC, ALB_QPT_RC, ALB_QPT_UC, ALB_QPT_UD, ALB_QPT_XRC_RECV},
    };
    struct pair_host *host = &w->pair->hosts[side];
    struct world_side *s = &w->sides[side];
    memset(host->memory, PAIR_GUARD, PAIR_MEMORY_BYTES);
    alb_mr_destroy(host->mr);
    open_regions(w, side);
    int error = alb_cq_create(host->engine, 1024, NULL, &s->cq);
    alb_assert(error == 0);
    struct alb_av av = {.local = host->addr, .peer = w->pair->hosts[!side].addr};
    error = alb_ah_create(host->pd, &av, &s->ah);
    alb_assert(error == 0);
    error = alb_xrcd_create(host->engine, &s->xrcd);
    alb_assert(error == 0);
    error = alb_srq_create_xrc(host->pd, s->xrcd, s->cq, 8, 2, 0, NULL, &s->srq);
    alb_assert(error == 0);
    for (int i = 0; i < WORLD_QPS; i++) {
        struct alb_qp_init init = {
            .type = types[side][i],
            .xrcd = s->xrcd,
            .send_cq = s->cq,
            .recv_cq = s->cq,
            .cap = {.send_wr_max = 8, .recv_wr_max = 8, .send_sge_max = 2, .recv_sge_max = 2, .inline_max_bytes = 32},
        };
        s->qps[i] = pair_qp_with(w->pair, side, &init);
        if (init.type == ALB_QPT_UC)
            alb_qp_partial_enable(s->qps[i], 4); // refused where the transport is another
    }
    error = alb_qp_attach(s->qps[WORLD_UD], &group);
    alb_assert(error == 0);
    if (w->kind->open_side)
        w->kind->open_side(w, side);
}

static void connect(struct world *w, int i)
{
    for (int side = 0; side < 2; side++) {
        struct alb_qp_attr attr = pair_attr(w->pair, side, w->sides[!side].qps[i]);
        attr.path_mtu_bytes = 256u << (w->config & 3);
        attr.retry_cnt = w->config >> 2 & 7;
        attr.rnr_retry = w->config & 0x20 ? 7 : 2;
        attr.max_rd_atomic = attr.max_dest_rd_atomic = w->config & 0x40 ? 1 : 3;
        attr.timeout = w->config & 0x80 ? 10 : 4;
        int error = pair_move(w->pair, w->sides[side].qps[i], ALB_QPS_RTS, &attr);
        alb_assert(error == 0);
    }
}

// ---- what must hold -------------------------------------------------------------------------------------------------

static void check_memory(const struct world *w)
{
    static uint8_t guard[PAIR_MEMORY_BYTES];
    if (guard[0] != PAIR_GUARD)
        memset(guard, PAIR_GUARD, sizeof(guard));
    for (int side = 0; side < 2; side++) {
        const uint8_t *memory = w->pair->hosts[side].memory;
        alb_assert(memcmp(memory, guard, WORLD_TARGET) == 0);
        alb_assert(memcmp(memory + WORLD_TARGET + WORLD_REGION_BYTES, guard,
                          WORLD_OWN - WORLD_TARGET - WORLD_REGION_BYTES) == 0);
        alb_assert(memcmp(memory + WORLD_OWN + WORLD_REGION_BYTES, guard,
                          PAIR_MEMORY_BYTES - WORLD_OWN - WORLD_REGION_BYTES) == 0);
    }
}

static void poll(struct world *w, int side, uint32_t count)
{
    struct world_side *s = &w->sides[side];
    const struct alb_wc *wc;
    while (count-- > 0 && (wc = alb_cq_peek(s->cq))) {
        bool is_receive = wc->wr_id >> 32;
        uint32_t i = (uint32_t)wc->wr_id;
        struct world_posted *posted = is_receive ? &s->receives[i] : &s->sends[i];
        alb_assert(i < (is_receive ? s->receive_count : s->send_count));
        alb_assert(!posted->is_completed);
        alb_assert(is_receive || posted->is_signaled || wc->status != ALB_WC_SUCCESS);
        alb_assert(wc->status != ALB_WC_SUCCESS || !is_receive || wc->byte_len <= WORLD_REGION_BYTES);
        posted->is_completed = true;
        alb_cq_pop(s->cq);
    }
    alb_assert(!alb_cq_is_overrun(s->cq));
}

// ---- operations -----------------------------------------------------------------------------------------------------

static void post(struct world *w)
{
    static const enum alb_wr_opcode opcodes[] = {
        ALB_WR_RDMA_WRITE,           ALB_WR_RDMA_WRITE_WITH_IMM, ALB_WR_SEND,
        ALB_WR_SEND_WITH_IMM,        ALB_WR_RDMA_READ,           ALB_WR_ATOMIC_CMP_AND_SWP,
        ALB_WR_ATOMIC_FETCH_AND_ADD, ALB_WR_SEND_WITH_INV,       ALB_WR_LOCAL_INV,
        ALB_WR_ATOMIC_WRITE,
    };
    int side = world_draw(w) & 1;
    struct world_side *s = &w->sides[side];
    uint32_t i = world_draw_below(w, WORLD_QPS);
    uint8_t how = world_draw(w);
    uint8_t fault = world_draw(w) % 16;
    struct alb_send_wr wr = {
        .wr_id = s->send_count,
        .opcode = opcodes[world_draw_below(w, ALB_COUNT(opcodes))],
        .flags = how & (ALB_SEND_FENCE | ALB_SEND_SIGNALED | ALB_SEND_SOLICITED | ALB_SEND_INLINE),
        .remote_addr = pair_va(w->pair, !side, WORLD_TARGET) + world_draw_below(w, WORLD_REGION_BYTES) / 8 * 8,
        .rkey = alb_region_key(w->sides[!side].target) ^ (fault == 1),
        .ah = s->ah,
        .remote_qpn = alb_qp_number(w->sides[!side].qps[WORLD_UD]),
        .remote_qkey = 0x11111111,
        .remote_srqn = alb_srq_number(w->sides[!side].srq) ^ (fault == 3),
    };
    bool is_atomic = wr.opcode == ALB_WR_ATOMIC_CMP_AND_SWP || wr.opcode == ALB_WR_ATOMIC_FETCH_AND_ADD ||
                     wr.opcode == ALB_WR_ATOMIC_WRITE;
    uint32_t offset = world_draw_below(w, WORLD_REGION_BYTES);
    uint32_t length = is_atomic ? 8 : world_draw_below(w, how & 0x40 ? WORLD_REGION_BYTES : 512);
    struct alb_sge sge[2] = {{pair_va(w->pair, side, WORLD_OWN) + offset, length / 2, alb_region_key(s->own)}};
    sge[1] = (struct alb_sge){sge[0].addr + length / 2, length - length / 2, sge[0].lkey ^ (fault == 2)};
    wr.sge = sge;
    wr.sge_count = 2;
    if (s->send_count == WORLD_POSTS_MAX || (wr.flags & ALB_SEND_INLINE && offset + length > WORLD_REGION_BYTES))
        return;
    if (pair_post(w->pair, s->qps[i], &wr) == 0)
        s->sends[s->send_count++].is_signaled = wr.flags & ALB_SEND_SIGNALED;
}

static void post_receive(struct world *w)
{
    int side = world_draw(w) & 1;
    struct world_side *s = &w->sides[side];
    struct alb_qp *qp = s->qps[world_draw_below(w, WORLD_QPS)];
    uint8_t how = world_draw(w);
    struct alb_sge sge = {pair_va(w->pair, side, WORLD_OWN) + world_draw_below(w, WORLD_REGION_BYTES),
                          world_draw_below(w, WORLD_REGION_BYTES), alb_region_key(s->own) ^ (how == 255)};
    bool bell = false;
    if (s->receive_count == WORLD_POSTS_MAX)
        return;
    if (qp == s->qps[WORLD_XRC] && alb_srq_post(s->srq, 1ull << 32 | s->receive_count, &sge, 1) == 0)
        s->receives[s->receive_count++].is_shared = true;
    else if (alb_qp_recv_post(qp, 1ull << 32 | s->receive_count, &sge, 1, &bell) == 0)
        s->receive_count++;
    if (bell)
        alb_engine_bell_ring(qp);
}

static void receive_at(struct world *w, int side, const struct alb_addr *local, const uint8_t *bytes, uint32_t length,
                       uint8_t traffic_class)
{
    uint8_t *exact = malloc(length ? length : 1); // so that a byte read beyond it is seen
    alb_assert(exact);
    if (length)
        memcpy(exact, bytes, length);
    struct alb_datagram datagram = {
        .peer = {w->pair->hosts[!side].addr, 49152},
        .local = {*local, ALB_ROCE_PORT},
        .traffic_class = traffic_class,
        .bytes = exact,
        .length = length,
    };
    alb_engine_rx(w->pair->hosts[side].engine, &datagram, 1, w->pair->now);
    free(exact);
}

void world_receive(struct world *w, int side, const uint8_t *bytes, uint32_t length, uint8_t traffic_class)
{
    receive_at(w, side, &w->pair->hosts[side].addr, bytes, length, traffic_class);
}

// A packet that is on its way from that side, or NULL.
static struct pair_packet *pick(struct world *w, int side, uint32_t *index)
{
    uint32_t count = pair_count(w->pair, side);
    if (count == 0)
        return NULL;
    *index = world_draw_below(w, count);
    return pair_peek(w->pair, side, *index);
}

// Arrives once more than it was sent, and somewhat changed; or as a changed one when its turn comes.
static void mutate(struct world *w)
{
    int side = world_draw(w) & 1;
    uint32_t index;
    struct pair_packet *packet = pick(w, side, &index);
    if (!packet)
        return;
    uint8_t bytes[WORLD_PACKET_MAX];
    uint32_t length = packet->datagram.length;
    alb_assert(length <= sizeof(bytes));
    memcpy(bytes, packet->bytes, length);
    for (uint32_t n = world_draw_below(w, 4); n > 0; n--) // mostly its headers
        bytes[world_draw_below(w, ALB_MIN(length, 48u))] ^= world_draw(w);
    uint32_t cut = world_draw(w);
    uint8_t traffic_class = world_draw(w) & 3;
    if (cut >= 128) {
        memcpy(packet->bytes, bytes, length);
        packet->datagram.traffic_class = traffic_class;
    } else {
        world_receive(w, !side, bytes, cut < 32 ? length - ALB_MIN(cut, length) : length, traffic_class);
    }
}

static void inject_raw(struct world *w)
{
    uint8_t bytes[64];
    uint8_t how = world_draw(w);
    int side = how & 1;
    uint32_t length = world_draw_below(w, sizeof(bytes) + 1);
    for (uint32_t i = 0; i < length; i++)
        bytes[i] = world_draw(w);
    if (how & 2 && length > 7) // to all members
        memset(bytes + 5, 0xff, 3);
    receive_at(w, side, how & 2 ? &group : &w->pair->hosts[side].addr, bytes, length, 0);
}

static void repeat(struct world *w)
{
    int side = world_draw(w) & 1;
    uint32_t index;
    const struct pair_packet *packet = pick(w, side, &index);
    if (packet)
        world_receive(w, !side, packet->bytes, packet->datagram.length, 0);
}

static void hurry(struct world *w)
{
    int side = world_draw(w) & 1;
    uint32_t index;
    if (pick(w, side, &index))
        pair_hurry(w->pair, side, index);
}

static void move(struct world *w)
{
    static const enum alb_qp_state states[] = {ALB_QPS_SQD, ALB_QPS_RTS, ALB_QPS_RTS, ALB_QPS_ERR};
    int side = world_draw(w) & 1;
    struct alb_qp *qp = w->sides[side].qps[world_draw_below(w, WORLD_QPS)];
    struct alb_qp_attr attr = {.state = states[world_draw_below(w, ALB_COUNT(states))], .timeout = world_draw(w) % 12};
    uint32_t mask = ALB_QP_STATE;
    if (attr.state == ALB_QPS_SQD && alb_qp_current_state(qp) == ALB_QPS_SQD && alb_qp_kind(qp) == ALB_QPT_RC)
        mask |= ALB_QP_TIMEOUT;
    alb_qp_modify(qp, &attr, mask, w->pair->now);
}

// Memory goes, under whatever refers to it, and comes back with another key.
static void close_and_open(struct world *w)
{
    int side = world_draw(w) & 1;
    alb_mr_destroy(w->sides[side].target);
    alb_mr_destroy(w->sides[side].own);
    if (world_draw(w) & 1) {
        pair_deliver(w->pair, !side);
        pair_send(w->pair, side);
    }
    open_regions(w, side);
    if (w->kind->open_memory)
        w->kind->open_memory(w, side);
}

// A queue pair goes through ERR, where all that is posted completes, and is connected anew, with packets of before
// still on the way.
static void revive(struct world *w)
{
    int i = (int)world_draw_below(w, WORLD_QPS);
    struct alb_qp_attr attr = {0};
    for (int side = 0; side < 2; side++) {
        alb_engine_bells(w->pair->hosts[side].engine, w->pair->now);
        attr.state = ALB_QPS_ERR;
        alb_qp_modify(w->sides[side].qps[i], &attr, ALB_QP_STATE, w->pair->now);
        poll(w, side, UINT32_MAX);
        attr.state = ALB_QPS_RESET;
        alb_qp_modify(w->sides[side].qps[i], &attr, ALB_QP_STATE, w->pair->now);
    }
    connect(w, i);
}

static void operate(struct world *w)
{
    int side;
    uint32_t which = world_draw(w) % (OPERATIONS + w->kind->operations);
    switch (which) {
    case 0:
    case 1:
    case 2:
        post(w);
        break;
    case 3:
    case 4:
        post_receive(w);
        break;
    case 5:
    case 6:
        side = world_draw(w) & 1;
        if (pair_count(w->pair, side) < WIRE_MAX)
            pair_send(w->pair, side);
        break;
    case 7:
        side = world_draw(w) & 1;
        for (uint32_t n = world_draw_below(w, 64); n > 0; n--)
            pair_deliver(w->pair, side);
        break;
    case 8:
        side = world_draw(w) & 1;
        pair_deliver_together(w->pair, side, world_draw_below(w, PAIR_TOGETHER));
        break;
    case 9:
        pair_lose(w->pair, world_draw(w) & 1);
        break;
    case 10:
        repeat(w);
        break;
    case 11:
        hurry(w);
        break;
    case 12:
        mutate(w);
        break;
    case 13:
        w->kind->forge(w);
        break;
    case 14:
        inject_raw(w);
        break;
    case 15:
        pair_pass(w->pair, 1000ull << world_draw(w) % 16);
        break;
    case 16:
        poll(w, world_draw(w) & 1, world_draw(w));
        break;
    case 17:
        world_draw(w) & 1 ? revive(w) : close_and_open(w);
        break;
    case 18:
        move(w);
        break;
    default:
        w->kind->operate(w, which - OPERATIONS);
        break;
    }
}

// In error everything that was posted completes: sends that were signaled or had not succeeded before, and every
// receive.
static void finish(struct world *w)
{
    for (int side = 0; side < 2; side++) {
        struct world_side *s = &w->sides[side];
        struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
        alb_engine_bells(w->pair->hosts[side].engine, w->pair->now);
        poll(w, side, UINT32_MAX);
        for (int i = 0; i < WORLD_QPS; i++)
            alb_qp_modify(s->qps[i], &attr, ALB_QP_STATE, w->pair->now);
        poll(w, side, UINT32_MAX);
        for (uint32_t i = 0; i < s->send_count; i++)
            alb_assert(s->sends[i].is_completed || !s->sends[i].is_signaled);
        for (uint32_t i = 0; i < s->receive_count; i++)
            alb_assert(s->receives[i].is_completed || s->receives[i].is_shared);
    }
    w->kind->check(w);
    check_memory(w);
    for (int side = 0; side < 2; side++) {
        struct world_side *s = &w->sides[side];
        alb_qp_detach(s->qps[WORLD_UD], &group);
        for (int i = 0; i < WORLD_QPS; i++)
            alb_qp_destroy(s->qps[i]);
        alb_ah_destroy(s->ah);
        int error = alb_srq_destroy(s->srq);
        alb_assert(error == 0);
        error = alb_xrcd_destroy(s->xrcd);
        alb_assert(error == 0);
        error = alb_cq_destroy(s->cq);
        alb_assert(error == 0);
    }
    if (w->kind->finish)
        w->kind->finish(w);
}

void world_configure(struct alb_engine_config *config)
{
    config->qp_max = 32;
    config->region_max = 8;
    config->srq_max = 4;
    config->group_max = 2;
    config->group_qp_max = 4;
    config->trace_records = 16;
}

void world_run(const struct world_kind *kind, const uint8_t *data, size_t size)
{
    static struct world w;
    w = (struct world){.kind = kind, .pair = pair_new(kind->configure), .input = data, .left = size};
    for (int side = 0; side < 2; side++)
        make_side(&w, side);
    w.config = world_draw(&w);
    for (int i = 0; i < WORLD_QPS; i++)
        connect(&w, i);
    for (uint32_t i = 0; i < OPERATIONS_MAX && w.left > 0; i++) {
        operate(&w);
        kind->check(&w);
    }
    finish(&w);
    pair_free(w.pair);
}

uint32_t world_epoch(const struct world *w, int side)
{
    const struct pair_host *own = &w->pair->hosts[side], *peer = &w->pair->hosts[!side];
    return alb_csa_epoch_for(own->engine->csa, &own->addr, &peer->addr, (uint8_t)peer->engine->config.slot);
}
