// SPDX-License-Identifier: BSD-2-Clause
// The verbs API of an engine: objects of every kind are made, changed, queried, used and destroyed in any order and
// with any arguments, sensible or not, while packets go from one queue pair to another of the same engine.
//
// Input: operations, a byte that says which, and the bytes that each draws.
//
// What must hold: a call returns 0 or an errno that its contract names, and one that failed changed nothing that can be
// seen; an object in use is not destroyed; when all is destroyed, no memory is held.
#include "fuzz/fuzz.h"

#include "engine/impl.h"

#include <errno.h>
#include <stdlib.h>

enum {
    OPERATIONS_MAX = 400,
    OBJECTS = 6, // of each kind
    ARENA_BYTES = 64 << 10,
    SEGMENTS = 32,
};

static struct world {
    const uint8_t *input;
    size_t left;
    struct alb_engine *engine;
    struct alb_device_stats stats;
    size_t bytes_held;
    uint32_t refused_from; // the n-th request for memory from now on fails, and all behind it; 0: none does
    alb_time now;
    struct alb_pd *pds[OBJECTS];
    struct alb_region *mrs[OBJECTS], *mws[OBJECTS];
    struct alb_cq *cqs[OBJECTS];
    struct alb_srq *srqs[OBJECTS];
    struct alb_xrcd *xrcds[OBJECTS];
    struct alb_ah *ahs[OBJECTS];
    struct alb_qp *qps[OBJECTS];
    struct alb_burst bursts[SEGMENTS];
    struct alb_segment segments[SEGMENTS];
    struct iovec iov[SEGMENTS * 8];
    uint8_t headers[SEGMENTS * 64];
} w;

static uint8_t arena[ARENA_BYTES];

// ---- input ----------------------------------------------------------------------------------------------------------

static uint8_t draw(void)
{
    if (w.left == 0)
        return 0;
    w.left--;
    return *w.input++;
}

static uint32_t draw32(void)
{
    uint32_t value = draw();
    value = value << 8 | draw();
    value = value << 8 | draw();
    return value << 8 | draw();
}

// Mostly small, sometimes anything.
static uint32_t number(uint32_t usual_below)
{
    uint8_t how = draw();
    return how < 16 ? draw32() : how % usual_below;
}

#define PICK(array) ((array)[draw() % OBJECTS])

// ---- memory ---------------------------------------------------------------------------------------------------------

static void *get(void *context, size_t bytes)
{
    if (w.refused_from == 1)
        return NULL;
    if (w.refused_from > 1)
        w.refused_from--;
    if (bytes > 64 << 20)
        return NULL;
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    alb_assert(memory);
    memset(memory, 0, bytes);
    w.bytes_held += bytes;
    return memory;
}

static void put(void *context, void *memory, size_t bytes)
{
    alb_assert(bytes <= w.bytes_held);
    w.bytes_held -= bytes;
    free(memory);
}

// A call failed with one of these (0 ends the list), or did not fail; when it failed it holds no more memory than
// before.
static bool is_ok(int error, size_t held_before, int first, int second, int third)
{
    if (error == 0)
        return true;
    alb_assert(error == first || error == second || error == third);
    alb_assert(w.bytes_held == held_before);
    return false;
}

// ---- making ---------------------------------------------------------------------------------------------------------

static void make_pd(void)
{
    struct alb_pd **pd = &PICK(w.pds);
    size_t held = w.bytes_held;
    if (!*pd && !is_ok(alb_pd_create(w.engine, pd), held, ENOMEM, 0, 0))
        *pd = NULL;
}

static void make_mr(void)
{
    struct alb_pd *pd = PICK(w.pds);
    struct alb_region **mr = &PICK(w.mrs);
    size_t held = w.bytes_held;
    uint32_t offset = draw32() % ARENA_BYTES;
    uint64_t length = draw() & 7 ? draw32() % (ARENA_BYTES - offset + 1) : 0;
    uint64_t iova = draw() & 3 ? (uintptr_t)arena + offset : (uint64_t)draw32() << (draw() & 63);
    uint32_t access = draw() & 15 ? draw() & 31 : draw32();
    if (!pd || *mr)
        return;
    if (!is_ok(alb_mr_create(pd, arena + offset, length, iova, access, mr), held, EINVAL, ENOMEM, 0))
        *mr = NULL;
}

static void change_mr(void)
{
    struct alb_region *mr = PICK(w.mrs);
    struct alb_pd *pd = PICK(w.pds);
    uint8_t how = draw();
    uint32_t offset = draw32() % ARENA_BYTES;
    uint64_t length = draw32() % (ARENA_BYTES - offset + 1);
    uint32_t access = how & 1 ? UINT32_MAX : draw() & 31;
    if (!mr)
        return;
    struct alb_region before = *mr;
    int error = alb_mr_change(mr, how & 2 ? pd : NULL, how & 4 ? arena + offset : NULL, length,
                              (uintptr_t)arena + offset, access);
    alb_assert(error == 0 || error == EINVAL || error == EBUSY);
    alb_assert(error == 0 || memcmp(mr, &before, sizeof(before)) == 0);
}

static void make_mw(void)
{
    struct alb_pd *pd = PICK(w.pds);
    struct alb_region **mw = &PICK(w.mws);
    uint32_t type = number(4);
    size_t held = w.bytes_held;
    if (pd && !*mw && !is_ok(alb_mw_create(pd, type, mw), held, EINVAL, ENOMEM, 0))
        *mw = NULL;
}

static void make_cq(void)
{
    struct alb_cq **cq = &PICK(w.cqs);
    uint32_t entries = number(64);
    size_t held = w.bytes_held;
    if (!*cq && !is_ok(alb_cq_create(w.engine, entries, NULL, cq), held, EINVAL, ENOMEM, 0))
        *cq = NULL;
}

static void make_srq(void)
{
    struct alb_pd *pd = PICK(w.pds);
    struct alb_srq **srq = &PICK(w.srqs);
    uint32_t wr_max = number(32), sge_max = number(6), limit = number(8);
    struct alb_xrcd *xrcd = PICK(w.xrcds);
    struct alb_cq *cq = PICK(w.cqs);
    size_t held = w.bytes_held;
    if (!pd || *srq)
        return;
    int error = xrcd && cq ? alb_srq_create_xrc(pd, xrcd, cq, wr_max, sge_max, limit, NULL, srq)
                           : alb_srq_create(pd, wr_max, sge_max, limit, NULL, srq);
    if (!is_ok(error, held, EINVAL, ENOMEM, 0))
        *srq = NULL;
}

static void make_xrcd(void)
{
    struct alb_xrcd **xrcd = &PICK(w.xrcds);
    size_t held = w.bytes_held;
    if (!*xrcd && !is_ok(alb_xrcd_create(w.engine, xrcd), held, ENOMEM, 0, 0))
        *xrcd = NULL;
}

static struct alb_av any_av(void)
{
    struct alb_av av = {.same_host = draw() & 1, .hop_limit = draw(), .traffic_class = draw()};
    uint8_t how = draw(); // mostly to itself
    av.local.bytes[15] = how < 16 ? how & 3 : 0;
    av.peer.bytes[15] = how < 16 ? how >> 2 : 0;
    if (how >= 240) // to a group
        av.peer = (struct alb_addr){.bytes = {0xff, [15] = how & 3}};
    return av;
}

static void make_ah(void)
{
    struct alb_pd *pd = PICK(w.pds);
    struct alb_ah **ah = &PICK(w.ahs);
    struct alb_av av = any_av();
    size_t held = w.bytes_held;
    if (pd && !*ah && !is_ok(alb_ah_create(pd, &av, ah), held, ENOMEM, 0, 0))
        *ah = NULL;
}

// Which joins a group, or leaves one.
static void change_groups(void)
{
    struct alb_qp *qp = PICK(w.qps);
    const struct alb_addr group = {.bytes = {0xff, [15] = draw() & 3}};
    size_t held = w.bytes_held;
    if (qp && draw() & 1)
        is_ok(alb_qp_attach(qp, &group), held, EINVAL, ENOMEM, 0);
    else if (qp)
        is_ok(alb_qp_detach(qp, &group), held, EINVAL, 0, 0);
}

static void make_qp(void)
{
    static const alb_qpn numbers[] = {0, 0, 0, 1, 16, 20, 0x10010, 0xffffff};
    struct alb_pd *pd = PICK(w.pds);
    struct alb_qp **qp = &PICK(w.qps);
    struct alb_qp_init init = {
        .type = number(11),
        .send_cq = PICK(w.cqs),
        .recv_cq = PICK(w.cqs),
        .srq = draw() & 1 ? PICK(w.srqs) : NULL,
        .xrcd = PICK(w.xrcds),
        .cap = {number(20), number(20), number(6), number(6), number(100)},
        .sq_sig_all = draw() & 1,
        .qpn = numbers[draw() & 7],
    };
    size_t held = w.bytes_held;
    if (!pd || *qp)
        return;
    int error = alb_qp_create(init.type == ALB_QPT_XRC_RECV ? NULL : pd, &init, qp);
    if (error == EADDRINUSE && init.qpn)
        error = EINVAL;
    if (!is_ok(error, held, EINVAL, ENOMEM, EOPNOTSUPP))
        *qp = NULL;
}

// ---- using ----------------------------------------------------------------------------------------------------------

static uint32_t any_key(void)
{
    uint8_t how = draw();
    const struct alb_region *region = how & 1 ? PICK(w.mrs) : PICK(w.mws);
    return how > 8 && region ? alb_region_key(region) : draw32();
}

static uint64_t any_address(void)
{
    return draw() & 7 ? (uintptr_t)arena + draw32() % ARENA_BYTES : (uint64_t)draw32() << (draw() & 63);
}

static struct alb_qp_attr any_attr(void)
{
    struct alb_qp *peer = PICK(w.qps);
    return (struct alb_qp_attr){
        .state = number(8),
        .cur_state = number(8),
        .en_sqd_async_notify = draw() & 1,
        .access = draw() & 31,
        .port = draw() > 8,
        .pkey_index = draw() < 8,
        .qkey = draw() & 1,
        .av = any_av(),
        .path_mtu_bytes = draw() > 8 ? 256u << draw() % 5 : draw32(),
        .timeout = draw() % 34,
        .retry_cnt = draw() % 9,
        .rnr_retry = draw() % 9,
        .min_rnr_timer = draw() % 34,
        .max_rd_atomic = draw() % 10,
        .max_dest_rd_atomic = draw() % 10,
        .rq_psn = draw() & 7 ? 5 : draw32(),
        .sq_psn = draw() & 7 ? 5 : draw32(),
        .dest_qpn = peer ? alb_qp_number(peer) : draw32(),
    };
}

// What a program passes for the move, in the usual order of states.
static uint32_t usual_mask(const struct alb_qp *qp, enum alb_qp_state to)
{
    for (uint32_t bits = 0; bits < 4; bits++) {
        static const uint32_t rc[] = {
            ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS,
            ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN | ALB_QP_MAX_DEST_RD_ATOMIC |
                ALB_QP_MIN_RNR_TIMER,
            ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_SQ_PSN | ALB_QP_MAX_QP_RD_ATOMIC,
            ALB_QP_AV | ALB_QP_TIMEOUT | ALB_QP_MAX_QP_RD_ATOMIC | ALB_QP_MAX_DEST_RD_ATOMIC,
        };
        static const uint32_t uc[] = {
            ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS,
            ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN,
            ALB_QP_SQ_PSN,
            ALB_QP_AV,
        };
        static const uint32_t ud[] = {ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_QKEY, 0, ALB_QP_SQ_PSN, ALB_QP_QKEY};
        const uint32_t *masks = alb_qp_kind(qp) == ALB_QPT_UC ? uc : alb_qp_kind(qp) == ALB_QPT_UD ? ud : rc;
        if (alb_qp_state_can_move(alb_qp_kind(qp), alb_qp_current_state(qp), to, masks[bits] | ALB_QP_STATE))
            return masks[bits] | ALB_QP_STATE;
    }
    return ALB_QP_STATE;
}

static void modify_qp(void)
{
    struct alb_qp *qp = PICK(w.qps);
    struct alb_qp_attr attr = any_attr(), before, after;
    struct alb_qp_init init;
    uint8_t how = draw();
    if (!qp)
        return;
    if (how & 1) // the next state on the usual way
        attr.state = (alb_qp_current_state(qp) + 1) % (ALB_QPS_ERR + 1);
    uint32_t mask = how > 16 ? usual_mask(qp, attr.state) : draw32();
    alb_qp_query(qp, &before, &init);
    int error = alb_qp_modify(qp, &attr, mask, w.now);
    alb_assert(error == 0 || error == EINVAL || error == EOPNOTSUPP || error == ENOMEM || error == EBUSY);
    if (error == 0)
        return;
    alb_qp_query(qp, &after, &init);
    alb_assert(memcmp(&before, &after, sizeof(before)) == 0);
}

static void post_send(void)
{
    struct alb_qp *qp = PICK(w.qps);
    struct alb_qp *peer = PICK(w.qps);
    struct alb_region *mw = PICK(w.mws), *mr = PICK(w.mrs);
    const struct alb_srq *srq = PICK(w.srqs);
    uint8_t how = draw();
    struct alb_sge sge[8];
    uint32_t count = draw() % 8;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = how & ALB_SEND_INLINE ? (uintptr_t)arena : any_address();
        sge[i] = (struct alb_sge){address, draw() & 1 ? draw() : draw32() % ARENA_BYTES, any_key()};
        if (draw() < 32)
            sge[i].length = 8;
    }
    struct alb_send_wr wr = {
        .wr_id = draw32(),
        .opcode = number(17),
        .flags = how & 15,
        .sge = sge,
        .sge_count = count,
        .invalidate_rkey = any_key(),
        .remote_addr = any_address(),
        .rkey = any_key(),
        .ah = PICK(w.ahs),
        .remote_qpn = peer         ? alb_qp_number(peer)
                      : draw() & 1 ? ALB_MULTICAST_QPN
                                   : draw32(),
        .remote_qkey = how >> 7,
        .remote_srqn = srq ? alb_srq_number(srq) : 0,
    };
    if (wr.opcode == ALB_WR_BIND_MW) {
        wr.sge_count = 0;
        wr.bind = (struct alb_mw_bind){mw, mr, any_address(), draw32() % ARENA_BYTES, draw() & 63, any_key()};
        if (mw && how & 16)
            wr.bind.rkey = (alb_region_key(mw) & ~0xffu) | draw();
    }
    if (!qp)
        return;
    int error = alb_qp_send_stage(qp, &wr);
    alb_assert(error == 0 || error == EINVAL || error == ENOMEM);
    if (how & 32) {
        alb_qp_send_abort(qp);
        return;
    }
    if (how & 64)
        alb_qp_send_commit(qp);
    alb_engine_bell_ring(qp);
}

static void post_receive(void)
{
    struct alb_qp *qp = PICK(w.qps);
    struct alb_srq *srq = PICK(w.srqs);
    struct alb_sge sge[8];
    uint32_t count = draw() % 8;
    bool bell = false;
    int error = 0;
    for (uint32_t i = 0; i < count; i++)
        sge[i] = (struct alb_sge){any_address(), draw32() % ARENA_BYTES, any_key()};
    if (draw() & 1 && srq)
        error = alb_srq_post(srq, draw32(), sge, count);
    else if (qp)
        error = alb_qp_recv_post(qp, draw32(), sge, count, &bell);
    alb_assert(error == 0 || error == EINVAL || error == ENOMEM);
    if (bell)
        alb_engine_bell_ring(qp);
}

static void use_cq(void)
{
    struct alb_cq *cq = PICK(w.cqs);
    uint32_t entries = number(64);
    uint8_t how = draw();
    if (!cq)
        return;
    alb_cq_arm(cq, how % 3);
    for (uint32_t i = how >> 4; i > 0 && alb_cq_peek(cq); i--) {
        alb_assert(alb_cq_peek(cq)->status <= ALB_WC_GENERAL_ERR);
        alb_cq_pop(cq);
    }
    if (how & 8) {
        uint32_t before = alb_cq_entries(cq);
        int error = alb_cq_resize(cq, entries);
        alb_assert(error == 0 || error == EINVAL || error == ENOMEM);
        alb_assert(alb_cq_entries(cq) >= (error ? before : entries) || alb_cq_entries(cq) == 256);
    }
}

static void modify_srq(void)
{
    struct alb_srq *srq = PICK(w.srqs);
    uint32_t wr_max = number(40), limit = draw() & 1 ? UINT32_MAX : number(10);
    uint32_t before[3], after[3];
    if (!srq)
        return;
    alb_srq_query(srq, &before[0], &before[1], &before[2]);
    int error = alb_srq_modify(srq, wr_max, limit);
    alb_assert(error == 0 || error == EINVAL || error == ENOMEM);
    alb_srq_query(srq, &after[0], &after[1], &after[2]);
    alb_assert(error == 0 || memcmp(before, after, sizeof(before)) == 0);
}

// What the engine sends comes back to it.
static void loop_back(void)
{
    static uint8_t copies[SEGMENTS][8192];
    struct alb_datagram datagrams[SEGMENTS];
    struct alb_tx tx = {
        .bursts = w.bursts,
        .segments = w.segments,
        .iov = w.iov,
        .bytes = w.headers,
        .burst_capacity = SEGMENTS,
        .segment_capacity = SEGMENTS,
        .iov_capacity = ALB_COUNT(w.iov),
        .bytes_capacity = sizeof(w.headers),
        .burst_segments_max = 16,
        .burst_bytes_max = 65000,
    };
    alb_engine_bells(w.engine, w.now);
    uint32_t bursts = alb_engine_tx(w.engine, &tx, w.now);
    uint32_t count = 0;
    for (uint32_t b = 0; b < bursts; b++)
        for (uint32_t s = 0; s < w.bursts[b].segment_count; s++) {
            const struct alb_segment *segment = &w.segments[w.bursts[b].segment_first + s];
            uint32_t length = 0;
            for (uint32_t i = 0; i < segment->iov_count; i++) {
                const struct iovec *iov = &w.iov[segment->iov_first + i];
                alb_assert(length + iov->iov_len <= sizeof(copies[0]));
                memcpy(copies[count] + length, iov->iov_base, iov->iov_len);
                length += (uint32_t)iov->iov_len;
            }
            alb_assert(length == segment->length);
            datagrams[count] = (struct alb_datagram){
                .peer = w.bursts[b].local,
                .local = w.bursts[b].peer,
                .bytes = copies[count],
                .length = length - ALB_ICRC_BYTES,
            };
            count++;
        }
    alb_engine_rx(w.engine, datagrams, count, w.now);
}

static void pass_time(void)
{
    alb_time end = w.now + (1000ull << draw() % 14);
    alb_time due;
    while ((due = alb_engine_deadline(w.engine)) <= end) {
        w.now = ALB_MAX(w.now, due);
        alb_engine_tick(w.engine, w.now);
        loop_back();
    }
    w.now = end;
}

static void look(void)
{
    struct alb_event event;
    struct alb_trace_record record;
    char line[ALB_TRACE_LINE_MAX];
    while (alb_engine_event(w.engine, &event))
        alb_assert(event.type <= ALB_EVENT_QP_FAILED);
    while (alb_engine_trace(w.engine, &record))
        alb_assert(alb_trace_format(&record, line) < sizeof(line));
    alb_engine_is_quiet(w.engine);
}

// ---- ending ---------------------------------------------------------------------------------------------------------

static void destroy_qp(struct alb_qp **qp)
{
    struct alb_addr group;
    while (alb_qp_group(*qp, &group)) {
        alb_assert(alb_qp_destroy(*qp) == EBUSY);
        alb_assert(alb_qp_detach(*qp, &group) == 0);
    }
    for (int i = 0; i < OBJECTS; i++)
        if (w.cqs[i])
            alb_cq_forget_qp(w.cqs[i], *qp);
    int error = alb_qp_destroy(*qp);
    alb_assert(error == 0);
    *qp = NULL;
}

#define DESTROY(array, call)                            \
    do {                                                \
        __typeof__((array)[0]) *object_ = &PICK(array); \
        int error_ = *object_ ? call(*object_) : EBUSY; \
        alb_assert(error_ == 0 || error_ == EBUSY);     \
        if (error_ == 0)                                \
            *object_ = NULL;                            \
    } while (0)

static void destroy(void)
{
    struct alb_qp **qp;
    switch (draw() % 8) {
    case 0:
        DESTROY(w.pds, alb_pd_destroy);
        break;
    case 1:
        DESTROY(w.mrs, alb_mr_destroy);
        break;
    case 2:
        DESTROY(w.mws, alb_mw_destroy);
        break;
    case 3:
        DESTROY(w.cqs, alb_cq_destroy);
        break;
    case 4:
        DESTROY(w.srqs, alb_srq_destroy);
        break;
    case 5:
        DESTROY(w.ahs, alb_ah_destroy);
        break;
    case 6:
        qp = &PICK(w.qps);
        if (*qp)
            destroy_qp(qp);
        break;
    case 7:
        DESTROY(w.xrcds, alb_xrcd_destroy);
        break;
    }
}

#define DESTROY_ALL(array, call)           \
    for (int i = 0; i < OBJECTS; i++)      \
        if ((array)[i]) {                  \
            int error_ = call((array)[i]); \
            alb_assert(error_ == 0);       \
            (array)[i] = NULL;             \
        }

static void destroy_all(void)
{
    for (int i = 0; i < OBJECTS; i++)
        if (w.qps[i])
            destroy_qp(&w.qps[i]);
    DESTROY_ALL(w.ahs, alb_ah_destroy);
    DESTROY_ALL(w.srqs, alb_srq_destroy);
    DESTROY_ALL(w.xrcds, alb_xrcd_destroy);
    DESTROY_ALL(w.cqs, alb_cq_destroy);
    DESTROY_ALL(w.mws, alb_mw_destroy);
    DESTROY_ALL(w.mrs, alb_mr_destroy);
    DESTROY_ALL(w.pds, alb_pd_destroy);
    alb_engine_destroy(w.engine);
    alb_assert(w.bytes_held == 0);
}

static void operate(void)
{
    static void (*const operations[])(void) = {
        make_pd,   make_mr,   change_mr, make_mw,   make_cq,   make_srq,  make_ah,      make_qp,       modify_qp,
        modify_qp, modify_qp, modify_qp, post_send, post_send, post_send, post_receive, use_cq,        modify_srq,
        loop_back, loop_back, loop_back, pass_time, look,      destroy,   post_receive, change_groups, make_xrcd,
    };
    uint8_t which = draw();
    w.refused_from = which > 250 ? 1 + draw() % 4 : 0;
    operations[which % ALB_COUNT(operations)]();
    w.refused_from = 0;
}

// Everything once, so that inputs need not find that out first.
static void make_some(void)
{
    for (int i = 0; i < 2; i++) {
        alb_pd_create(w.engine, &w.pds[i]);
        alb_cq_create(w.engine, 32, NULL, &w.cqs[i]);
        alb_mr_create(w.pds[i], arena, ARENA_BYTES, (uintptr_t)arena, 31, &w.mrs[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct alb_engine_config config;
    w = (struct world){.input = data, .left = size, .now = ALB_NS_PER_S};
    alb_engine_config_default(&config);
    config.memory = (struct alb_memory){.get = get, .put = put};
    config.stats = &w.stats;
    config.qp_max = 24;
    config.region_max = 8;
    config.peer_max = 3;
    config.pd_max = 4;
    config.cq_max = 5;
    config.srq_max = 3;
    config.xrcd_max = 3;
    config.ah_max = 4;
    config.group_max = 3;
    config.group_qp_max = 2;
    config.cqe_max = 256;
    config.send_wr_max = config.recv_wr_max = config.srq_wr_max = 64;
    config.sge_max = 5;
    config.inline_max_bytes = 96;
    config.rd_atomic_max = 8;
    config.trace_records = 32;
    int error = alb_engine_create(&config, &w.engine);
    alb_assert(error == 0);
    make_some();
    for (uint32_t i = 0; i < OPERATIONS_MAX && w.left > 0; i++)
        operate();
    destroy_all();
    return 0;
}
