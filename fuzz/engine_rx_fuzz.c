// SPDX-License-Identifier: BSD-2-Clause
// The receive path of a live pair that speaks RoCEv2. Input: see world.h.
//
// What must hold besides: what is charged to a window is what its queue pairs have in flight.
#include "fuzz/fuzz.h"

#include "engine/rc.h"
#include "fuzz/world.h"

static void check_windows(const struct world *w)
{
    for (int side = 0; side < 2; side++) {
        const struct alb_peer *peer = NULL;
        uint64_t inflight = 0;
        for (int i = 0; i < WORLD_QPS; i++) {
            const struct alb_qp *qp = w->sides[side].qps[i];
            if (!qp->peer || i == WORLD_UC || i == WORLD_UD)
                continue;
            alb_assert(!peer || peer == qp->peer);
            peer = qp->peer;
            const struct alb_rc *rc = alb_rc_of(qp);
            inflight += rc->inflight_bytes;
            alb_assert(alb_psn_diff(rc->next, rc->una) >= 0 && alb_psn_diff(rc->high, rc->next) >= 0);
            alb_assert(rc->una != rc->next || rc->inflight_bytes == 0);
        }
        alb_assert(!peer || peer->inflight_bytes == inflight);
    }
}

static void forge(struct world *w)
{
    int side = world_draw(w) & 1;
    uint32_t i = world_draw_below(w, WORLD_QPS);
    const struct alb_qp *qp = w->sides[side].qps[i];
    uint8_t how = world_draw(w);
    struct alb_roce roce = {.opcode = world_draw(w), .pkey = 0xffff, .dest_qpn = alb_qp_number(qp), .qkey = 0x11111111};
    const struct alb_opcode_info *info = alb_opcode_info(roce.opcode);
    if (!info)
        return;
    uint32_t base = qp->attr.rq_psn;
    if (i < WORLD_RC_PAIRS || i == WORLD_XRC)
        base = info->flags & ALB_OPCODE_RESPONSE ? alb_rc_of(qp)->una : alb_rc_of(qp)->expected;
    if (i == WORLD_UC) {
        struct alb_qp_attr attr;
        struct alb_qp_init init;
        alb_qp_query(qp, &attr, &init);
        base = attr.rq_psn;
    }
    roce.psn = alb_psn_add(base, (int8_t)world_draw(w) / (how & 1 ? 16 : 1));
    roce.syndrome = world_draw(w);
    roce.ackreq = how & 2;
    roce.solicited = how & 4;
    roce.va = pair_va(w->pair, side, WORLD_TARGET) + world_draw_below(w, WORLD_REGION_BYTES + 16);
    if (how & 8)
        roce.va &= ~7ull;
    roce.rkey = alb_region_key(w->sides[side].target) ^ (how >> 4 & 1);
    roce.length = how & 32 ? world_draw_below(w, WORLD_REGION_BYTES) : (uint32_t)world_draw(w) << 24 | world_draw(w);
    roce.invalidate_rkey = roce.rkey;
    roce.xrc_srqn = alb_srq_number(w->sides[side].srq) ^ (how == 17);
    uint32_t mtu = qp->attr.path_mtu_bytes ? qp->attr.path_mtu_bytes : 1024;
    uint32_t payload = how & 64 ? mtu : world_draw_below(w, 2 * 4096);
    if (!(info->flags & ALB_OPCODE_PAYLOAD))
        payload = 0;
    if (how & 128) // says in its header what it brings
        roce.length = payload;
    static const uint8_t zeros[2 * ALB_ROCE_PAYLOAD_MAX];
    pair_inject(w->pair, !side, &roce, zeros, payload);
}

static bool has_trace; // without one, what comes most often is known by its headers

static void configure(struct alb_engine_config *config)
{
    world_configure(config);
    if (!has_trace)
        config->trace_records = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct world_kind kind = {.configure = configure, .forge = forge, .check = check_windows};
    has_trace = size > 0 && data[0] & 0x10;
    world_run(&kind, data, size);
    return 0;
}
