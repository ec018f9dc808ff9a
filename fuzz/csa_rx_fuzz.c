// SPDX-License-Identifier: BSD-2-Clause
// The receive path of a live pair that speaks CSA. Input: see world.h; its first byte also chooses the policies and the
// number of paths. It also takes all of a side's pool, and gives it back.
//
// What must hold besides: what is charged to the window is what streams have in flight, what waits for its turn is
// counted and bounded, and streams do not go back.
#include "fuzz/fuzz.h"

#include "engine/csa_loose.h"
#include "fuzz/world.h"

#include <stdlib.h>

#define POOL_BYTES      (64u << 10)
#define EARLY_BYTES_MAX (64u << 10)

static uint8_t choice;

static const char *choose(enum alb_policy policy, uint32_t n)
{
    uint32_t names = 0;
    while (alb_engine_policy_name("csa", policy, names))
        names++;
    return alb_engine_policy_name("csa", policy, n % names);
}

static void configure(struct alb_engine_config *config)
{
    int error = alb_engine_config_transport(config, "csa");
    config->txn_staging_bytes = 16 << 10;
    config->txn_record_max = 16;
    alb_assert(error == 0);
    world_configure(config);
    config->csa_payload_bytes = WORLD_PACKET_MAX & ~3u;
    config->csa_pool_bytes = POOL_BYTES;
    config->csa_early_bytes_max = EARLY_BYTES_MAX;
    config->csa_window_segments = 256;
    config->loss = choose(ALB_POLICY_LOSS, choice);
    config->congestion = choose(ALB_POLICY_CONGESTION, choice >> 5);
    config->path = choice & 0x10 ? "spray" : "single";
    config->path_max = choice & 0x10 ? 4 : 1;
}

// ---- what must hold -------------------------------------------------------------------------------------------------

static const struct alb_csa *csa_of(const struct alb_qp *qp)
{
    return qp->delivery == &alb_csa_ops ? alb_csa_of(qp) : NULL;
}

static uint32_t check_out(const struct alb_stream_out *out)
{
    uint32_t flying_bytes = 0, lost = 0;
    alb_assert(alb_psn_diff(out->next, out->una) >= 0 && alb_stream_out_count(out) <= out->capacity);
    for (alb_psn psn = out->una; psn != out->next; psn = alb_psn_next(psn)) {
        const struct alb_sent *sent = alb_stream_out_at(out, psn);
        flying_bytes += sent->state == ALB_SENT_FLYING && !sent->is_uncharged ? sent->bytes : 0;
        lost += sent->state == ALB_SENT_LOST;
    }
    alb_assert(out->inflight_bytes == flying_bytes && out->lost_count == lost);
    return flying_bytes;
}

static uint32_t check_in(const struct alb_stream_in *in)
{
    alb_assert(alb_psn_diff(in->highest, in->cumulative) >= 0);
    alb_assert((uint32_t)alb_psn_diff(in->highest, in->cumulative) <= in->capacity);
    return in->early_bytes;
}

// What is counted of a message of partial completion is what its bits say.
static void check_partials(const struct alb_csa_partials *partials)
{
    uint32_t due = 0;
    for (uint32_t side = 0; side < ALB_PARTIAL_SIDES; side++) {
        for (uint32_t i = 0; i < partials->capacity; i++) {
            const struct alb_csa_partial *partial = &partials->places[side][i];
            due += partial->is_due;
            if (partial->number)
                alb_assert(partial->held_count == alb_bitmap_count(partial->held, 0, partial->packets) &&
                           (!partial->is_complete || partial->held_count == partial->packets));
        }
    }
    alb_assert(due == partials->due_count);
}

static void check_uc(const struct alb_qp *qp)
{
    if (qp->delivery != &alb_csa_uc_ops)
        return;
    const struct alb_csa_uc_message *in = &alb_csa_uc_of(qp)->in;
    alb_assert(in->is_open == (in->held != NULL));
    alb_assert(in->placed <= (uint32_t)alb_psn_diff(in->past, in->first));
    check_partials(alb_csa_uc_of(qp)->partials);
}

static void check(const struct world *w)
{
    for (int side = 0; side < 2; side++) {
        const struct alb_csa_engine *engine = w->pair->hosts[side].engine->csa;
        const struct alb_assoc *assoc = NULL;
        uint64_t inflight_bytes = 0, waiting_bytes = 0;
        for (int i = 0; i < WORLD_QPS; i++) {
            const struct alb_csa *csa = csa_of(w->sides[side].qps[i]);
            check_uc(w->sides[side].qps[i]);
            if (!csa)
                continue;
            inflight_bytes += check_out(&csa->requests) + check_out(&csa->responses);
            waiting_bytes += check_in(&csa->in_requests) + check_in(&csa->in_responses);
            alb_assert(!assoc || !csa->assoc || assoc == csa->assoc);
            assoc = csa->assoc ? csa->assoc : assoc;
        }
        alb_assert(engine->waiting_bytes == waiting_bytes && waiting_bytes <= EARLY_BYTES_MAX);
        alb_assert((assoc && assoc->live ? assoc->live->inflight_bytes : 0) == inflight_bytes);
    }
}

// ---- forgeries ------------------------------------------------------------------------------------------------------

// A number in or around a window that begins there.
static alb_psn near(struct world *w, alb_psn base)
{
    return alb_psn_add(base, (int8_t)world_draw(w) / (world_draw(w) & 1 ? 16 : 1));
}

static uint8_t draw_op(struct world *w, enum alb_csa_type type, uint8_t how)
{
    if (type == ALB_CSA_RESPONSE)
        return ALB_CSA_READ_DATA + (how & 1);
    if (type == ALB_CSA_DATAGRAM)
        return ALB_CSA_SEND + (how & 1);
    return (uint8_t)(ALB_CSA_SEND + world_draw_below(w, ALB_CSA_ATOMIC_WRITE));
}

static uint32_t forge_segment(struct world *w, int side, const struct alb_qp *qp, enum alb_csa_type type, uint8_t *at)
{
    const struct alb_csa *csa = csa_of(qp);
    uint8_t how = world_draw(w);
    struct alb_csa_segment segment = {
        .op = draw_op(w, type, how),
        .flags = world_draw(w),
        .dest_qpn = alb_qp_number(qp),
        .index = how & 2 ? world_draw_below(w, 8) : 0,
        .payload_bytes = how & 4 ? 4 * world_draw_below(w, 256) : world_draw_below(w, 1024),
        .xrc_srqn = alb_srq_number(w->sides[side].srq) ^ (how == 17),
        .va = pair_va(w->pair, side, WORLD_TARGET) + world_draw_below(w, WORLD_REGION_BYTES + 16),
        .rkey = alb_region_key(w->sides[side].target) ^ (how >> 3 & 1),
        .qkey = 0x11111111,
        .src_qpn = world_draw(w),
    };
    if (qp->type == ALB_QPT_UC && type == ALB_CSA_REQUEST && how & 64) {
        segment.op = ALB_CSA_PARTIAL_WRITE + (how >> 7);
        segment.message = 1 + world_draw_below(w, 6);
        segment.psn = near(w, qp->attr.rq_psn);
    }
    if (csa) {
        const struct alb_stream_in *in = type == ALB_CSA_RESPONSE ? &csa->in_responses : &csa->in_requests;
        segment.psn = near(w, in->cumulative);
        segment.acked = near(w, csa->responses.una);
        segment.request_psn = near(w, csa->requests.una);
    }
    if (segment.op == ALB_CSA_READ || segment.op == ALB_CSA_CMP_SWAP || segment.op == ALB_CSA_FETCH_ADD ||
        segment.op == ALB_CSA_RESULT)
        segment.payload_bytes = 0;
    if (how & 16) // a message of its own
        segment.index = 0, segment.flags |= ALB_CSA_LAST;
    segment.total_bytes =
        how & 32 ? world_draw_below(w, WORLD_REGION_BYTES) : segment.payload_bytes * (segment.index + 1) + (how >> 6);
    if (how & 16 && segment.payload_bytes)
        segment.total_bytes = segment.payload_bytes;
    segment.invalidate_rkey = segment.rkey;
    uint32_t bytes = alb_csa_encode_segment(type, &segment, at);
    memset(at + bytes, 0, segment.payload_bytes);
    return bytes + segment.payload_bytes;
}

static uint32_t forge_report(struct world *w, const struct alb_qp *qp, uint8_t *at)
{
    const struct alb_csa *csa = csa_of(qp);
    uint8_t how = world_draw(w);
    struct alb_csa_report report = {
        .is_response = how & 1,
        .is_full = how & 8,
        .syndrome = how & 2 ? world_draw(w) : ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT),
        .qpn = alb_qp_number(qp),
        .word_count = how & 4 ? world_draw_below(w, ALB_CSA_BITMAP_WORDS + 1) : 0,
    };
    if (csa) {
        const struct alb_stream_out *out = report.is_response ? &csa->responses : &csa->requests;
        report.cumulative = near(w, out->una);
        report.number = (uint16_t)(out->report_number + (int8_t)world_draw(w) / 16);
    }
    for (uint32_t i = 0; i < report.word_count; i++)
        report.held[i] = (uint64_t)world_draw(w) << world_draw_below(w, 64);
    return alb_csa_encode_report(&report, at);
}

static uint32_t forge_holds(struct world *w, const struct alb_qp *qp, uint8_t *at)
{
    uint8_t how = world_draw(w);
    struct alb_csa_holds holds = {
        .is_question = how & 1,
        .is_complete = (how & 6) == 6,
        .dest_qpn = alb_qp_number(qp),
        .message = world_draw_below(w, 7),
        .first = how & 8 ? 64 * world_draw(w) : world_draw(w),
        .word_count = how & 16 ? world_draw_below(w, ALB_CSA_BITMAP_WORDS + 1) : 1,
    };
    for (uint32_t i = 0; i < holds.word_count; i++)
        holds.held[i] = (uint64_t)world_draw(w) << world_draw_below(w, 64);
    return alb_csa_encode_holds(&holds, at);
}

static uint32_t forge_paths(struct world *w, const struct alb_csa *csa, uint8_t *at)
{
    uint8_t how = world_draw(w);
    struct alb_csa_paths paths = {
        .credit_bytes = how & 1 ? world_draw_below(w, 65536) : ALB_CSA_CREDIT_NONE,
        .first = how & 4 ? 0 : how >> 5,
        .has_more = how & 16,
        .count = 1 + world_draw_below(w, 5),
    };
    for (uint32_t i = 0; i < paths.count; i++) {
        struct alb_csa_path_entry *entry = &paths.entries[i];
        *entry = (struct alb_csa_path_entry){
            .path = (uint8_t)(i + (how >> 4)),
            .echo = (uint32_t)w->pair->now - world_draw_below(w, 65536),
            .delay_ns = how & 2 ? world_draw_below(w, 65536) : 0,
            .received = world_draw(w) << (how & 8),
            .marked = world_draw(w),
        };
        bool is_ours = csa && csa->assoc && csa->assoc->live && entry->path < csa->assoc->live->paths->count;
        entry->settled = near(w, is_ours ? csa->assoc->live->paths->path[entry->path].settled : 0);
    }
    return alb_csa_encode_paths(&paths, at);
}

static uint32_t forge_trimmed(struct world *w, const struct alb_qp *qp, uint8_t *at)
{
    const struct alb_csa *csa = csa_of(qp);
    struct alb_csa_trimmed trimmed = {.is_response = world_draw(w) & 1, .dest_qpn = alb_qp_number(qp)};
    if (csa) {
        const struct alb_stream_out *out = trimmed.is_response ? &csa->responses : &csa->requests;
        trimmed.psn = near(w, out->una);
        trimmed.path = alb_stream_out_at(out, trimmed.psn)->path;
        trimmed.sequence = alb_psn_add(alb_stream_out_at(out, trimmed.psn)->sequence, world_draw(w) == 1);
    }
    return alb_csa_encode_trimmed(&trimmed, at);
}

static uint32_t forge_frame(struct world *w, int side, uint8_t *at)
{
    static const uint8_t types[] = {
        ALB_CSA_REQUEST, ALB_CSA_REQUEST, ALB_CSA_RESPONSE, ALB_CSA_DATAGRAM, ALB_CSA_REPORT,
        ALB_CSA_REPORT,  ALB_CSA_PATHS,   ALB_CSA_PROBE,    ALB_CSA_PING,     ALB_CSA_PONG,
        ALB_CSA_RESET,   ALB_CSA_HELLO,   ALB_CSA_COOKIE,   ALB_CSA_CNP,      ALB_CSA_TRIMMED,
    };
    enum alb_csa_type type = types[world_draw_below(w, ALB_COUNT(types))];
    const struct alb_qp *qp = w->sides[side].qps[world_draw_below(w, WORLD_QPS)];
    const struct alb_csa *csa = csa_of(qp);
    uint8_t cookie[ALB_CSA_COOKIE_BYTES] = {0};
    struct alb_csa_probe probe = {.is_response = world_draw(w) & 1, .dest_qpn = alb_qp_number(qp)};
    uint32_t padding;
    switch (type) {
    case ALB_CSA_REPORT:
        return qp->type == ALB_QPT_UC ? forge_holds(w, qp, at) : forge_report(w, qp, at);
    case ALB_CSA_PATHS:
        return forge_paths(w, csa, at);
    case ALB_CSA_PROBE:
        probe.next = near(w, csa ? csa->in_requests.cumulative : 0);
        return alb_csa_encode_probe(&probe, at);
    case ALB_CSA_TRIMMED:
        return forge_trimmed(w, qp, at);
    case ALB_CSA_PING:
        padding = world_draw_below(w, 512);
        memset(at + 4, 0, padding);
        return alb_csa_encode_ping((uint16_t)padding, at) + padding;
    case ALB_CSA_PONG:
        return alb_csa_encode_pong((uint16_t)world_draw_below(w, 65536), at);
    case ALB_CSA_RESET:
        return alb_csa_encode_reset(1 + (world_draw(w) & 1), world_epoch(w, !side) ^ (world_draw(w) & 1), at);
    case ALB_CSA_HELLO:
        cookie[0] = world_draw(w);
        return alb_csa_encode_hello(cookie[0] ? cookie : NULL, at);
    case ALB_CSA_COOKIE:
        return alb_csa_encode_cookie(cookie, at);
    case ALB_CSA_CNP:
        return alb_csa_encode_cnp(at);
    default:
        return forge_segment(w, side, qp, type, at);
    }
}

// What a switch would leave of it.
static void receive_trimmed(struct world *w, int side, const uint8_t *bytes, uint32_t length)
{
    uint8_t *left = malloc(length);
    alb_assert(left);
    memcpy(left, bytes, length);
    const struct alb_datagram datagram = {
        .peer = {w->pair->hosts[!side].addr, ALB_ROCE_PORT},
        .local = {w->pair->hosts[side].addr, ALB_ROCE_PORT},
        .bytes = left,
        .length = length,
    };
    alb_engine_rx_trimmed(w->pair->hosts[side].engine, &datagram, w->pair->now);
    free(left);
}

// A sender that knows the epochs too, mostly.
static void forge(struct world *w)
{
    static uint8_t bytes[2 * WORLD_PACKET_MAX];
    int side = world_draw(w) & 1;
    const struct alb_engine *engine = w->pair->hosts[side].engine;
    uint8_t how = world_draw(w);
    const struct alb_csa_header header = {
        .dest_slot = engine->config.slot ^ (how == 1),
        .sequence = world_draw_below(w, 65536) * (how & 2),
        .source_epoch = world_epoch(w, !side) + (how >> 6 == 1),
        .destination_epoch = how & 32 ? 0 : world_epoch(w, side) + (how >> 6 == 2),
        .timestamp = (uint32_t)w->pair->now - world_draw(w),
        .path = world_draw(w) % (how & 16 ? 256 : 4),
        .rtt_code = (uint16_t)world_draw_below(w, 65536),
    };
    alb_csa_encode(&header, bytes);
    uint32_t length = ALB_CSA_OUTER_BYTES;
    for (uint32_t n = 1 + world_draw(w) % 3; n > 0 && length < WORLD_PACKET_MAX / 2; n--) {
        memset(bytes + length, 0, 4);
        length += alb_roce_pad(length);
        length += forge_frame(w, side, bytes + length);
    }
    alb_csa_set_pad(bytes, alb_roce_pad(length));
    memset(bytes + length, 0, 4);
    length += alb_roce_pad(length);
    if ((how & 15) == 9)
        receive_trimmed(w, side, bytes, ALB_MIN(length, (uint32_t)ALB_CSA_TRIMMED_BYTES));
    else
        world_receive(w, side, bytes, length, how & 4 ? ALB_ECN_CE : ALB_ECN_ECT0);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

enum { TAKEN_MAX = 64 };

// What is taken from a side's pool, so that nothing else gets any.
static struct {
    void *blocks[TAKEN_MAX];
    size_t bytes[TAKEN_MAX];
    uint32_t count;
} taken[2];

static void take(struct alb_buddy *pool, int side)
{
    for (size_t bytes = POOL_BYTES; bytes >= ALB_BUDDY_BLOCK_BYTES_MIN; bytes /= 2) {
        for (void *block; taken[side].count < TAKEN_MAX && (block = alb_buddy_get(pool, bytes));) {
            taken[side].blocks[taken[side].count] = block;
            taken[side].bytes[taken[side].count++] = bytes;
        }
    }
}

static void give_back(struct alb_buddy *pool, int side)
{
    while (taken[side].count > 0) {
        taken[side].count--;
        alb_buddy_put(pool, taken[side].blocks[taken[side].count], taken[side].bytes[taken[side].count]);
    }
}

static void operate(struct world *w, uint32_t which)
{
    int side = world_draw(w) & 1;
    struct alb_buddy *pool = &w->pair->hosts[side].engine->csa->pool;
    if (taken[side].count > 0)
        give_back(pool, side);
    else
        take(pool, side);
}

static void finish(struct world *w)
{
    for (int side = 0; side < 2; side++)
        give_back(&w->pair->hosts[side].engine->csa->pool, side);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct world_kind kind = {
        .configure = configure, .forge = forge, .check = check, .operations = 1, .operate = operate, .finish = finish};
    choice = size > 0 ? data[0] : 0;
    world_run(&kind, data, size);
    return 0;
}
