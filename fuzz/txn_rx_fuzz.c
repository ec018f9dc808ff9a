// SPDX-License-Identifier: BSD-2-Clause
// Reflection in a live pair: both sides propose transactions to each other, answer, ask, decide and keep journals,
// while commands, verdicts, parts and proposals arrive that a peer might have sent and has not. Input: see world.h; its
// first byte also says what of the target's memory is transactional, checked and durable.
//
// What must hold besides: every byte of the staging memory is accounted for; what has ended claims nothing; readers are
// held out only of what is under way or poisoned; at the end nothing is open but what was not decided.
#include "fuzz/fuzz.h"

#include "fuzz/world.h"

#include <errno.h>

enum {
    IN_FLIGHT = 8,
    RECORDS_MAX = 16,
    STAGING_BYTES = 64 << 10,
    TAKEN_MAX = 8,
    STRIDE = 1024,
    KEEPER = 0x4b,
    NO_PATH = 255,
};

enum operation {
    POST,
    POST_SMALL,
    POST_LEVEL,
    DECIDE,
    ASK,
    TAKE,
    ANSWER,
    CHANGE_REGION,
    FORGE_TRANSACTION,
    FORGE_FRAMES,
    SPOIL_FRAMES,
    OPERATIONS,
};

// What a side's driver has taken and not answered.
struct taken {
    struct alb_txn_id id;
    bool is_proposal;
    enum alb_journal_kind kind;
};

struct driver {
    struct taken taken[TAKEN_MAX];
    uint32_t count;
    _Atomic uint64_t words[WORLD_REGION_BYTES / STRIDE];
    bool has_words, is_checked, is_durable;
};

static struct driver drivers[2];
static uint8_t choice;
static uint32_t unread; // what was read of memory goes somewhere

static void configure(struct alb_engine_config *config)
{
    int error = alb_engine_config_transport(config, "csa");
    alb_assert(error == 0);
    world_configure(config);
    config->txn_staging_bytes = STAGING_BYTES;
    config->txn_record_max = RECORDS_MAX;
    config->csa_payload_bytes = WORLD_PACKET_MAX & ~3u;
    config->csa_pool_bytes = 64 << 10;
    config->csa_early_bytes_max = 64 << 10;
    config->csa_window_segments = 256;
    config->path_max = 1;
}

static struct alb_engine *engine_of(const struct world *w, int side)
{
    return w->pair->hosts[side].engine;
}

static struct alb_csa *csa_of(const struct world *w, int side, uint32_t i)
{
    return alb_csa_of(w->sides[side].qps[i % WORLD_RC_PAIRS]);
}

// ---- the target's memory --------------------------------------------------------------------------------------------

static void set_words(struct world *w, int side, bool is_on)
{
    struct driver *d = &drivers[side];
    if (alb_mr_set_versions(w->sides[side].target, is_on ? d->words : NULL, STRIDE) == 0)
        d->has_words = is_on;
}

static void open_memory(struct world *w, int side)
{
    struct driver *d = &drivers[side];
    struct alb_region *target = w->sides[side].target;
    for (uint32_t i = 0; i < ALB_COUNT(d->words); i++)
        d->words[i] = 0;
    d->has_words = false;
    set_words(w, side, choice & 1);
    d->is_checked = choice & 2;
    d->is_durable = choice & 4;
    int error = alb_mr_set_checked(target, d->is_checked, d);
    alb_assert(error == 0);
    error = alb_mr_set_store(target, d->is_durable ? d : NULL, KEEPER + side);
    alb_assert(error == 0);
}

static void change_memory(struct world *w)
{
    int side = world_draw(w) & 1;
    uint8_t how = world_draw(w);
    struct driver *d = &drivers[side];
    if (how & 1)
        set_words(w, side, !d->has_words);
    if (how & 2)
        alb_mr_set_checked(w->sides[side].target, d->is_checked = !d->is_checked, d);
}

static void open_side(struct world *w, int side)
{
    drivers[side] = (struct driver){.count = 0};
    for (uint32_t i = 0; i < WORLD_RC_PAIRS; i++) {
        int error = alb_qp_txn_enable(w->sides[side].qps[i], IN_FLIGHT);
        alb_assert(error == 0);
    }
    open_memory(w, side);
}

// ---- the driver -----------------------------------------------------------------------------------------------------

static void look_at(const struct alb_txn_part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < parts[i].length; k++)
            unread += parts[i].bytes[k];
}

static void take(struct world *w, int side, bool is_proposal)
{
    struct driver *d = &drivers[side];
    struct alb_proposal proposal;
    struct alb_journal_request request;
    if (d->count == TAKEN_MAX)
        return;
    if (is_proposal && alb_engine_proposal(engine_of(w, side), &proposal)) {
        look_at(proposal.parts, proposal.part_count);
        d->taken[d->count++] = (struct taken){.id = proposal.id, .is_proposal = true};
    }
    if (!is_proposal && alb_engine_journal(engine_of(w, side), &request)) {
        alb_assert(request.store == d);
        look_at(request.parts, request.kind == ALB_JOURNAL_PREPARE ? request.part_count : 0);
        d->taken[d->count++] = (struct taken){.id = request.id, .kind = request.kind};
    }
}

static void answer(struct world *w, int side, uint32_t i, bool is_good)
{
    struct driver *d = &drivers[side];
    struct taken taken = d->taken[i];
    d->taken[i] = d->taken[--d->count];
    if (taken.is_proposal)
        alb_engine_proposal_answer(engine_of(w, side), &taken.id, is_good, w->pair->now);
    else
        alb_engine_journaled(engine_of(w, side), &taken.id, taken.kind, is_good ? 0 : EIO, w->pair->now);
}

static void answer_one(struct world *w)
{
    int side = world_draw(w) & 1;
    uint8_t how = world_draw(w);
    if (drivers[side].count)
        answer(w, side, (how >> 3) % drivers[side].count, how & 7);
}

// ---- what programs ask for ------------------------------------------------------------------------------------------

static uint64_t place(struct world *w, int side)
{
    return pair_va(w->pair, side, WORLD_TARGET) + world_draw_below(w, WORLD_REGION_BYTES) / 8 * 8;
}

static void note_posted(struct world *w, int side, uint32_t i, bool is_signaled)
{
    struct world_side *s = &w->sides[side];
    s->sends[s->send_count++].is_signaled = is_signaled;
    alb_qp_send_commit(s->qps[i]);
    alb_engine_bell_ring(s->qps[i]);
}

static void post(struct world *w, uint32_t length_max)
{
    int side = world_draw(w) & 1;
    struct world_side *s = &w->sides[side];
    uint8_t how = world_draw(w), more = world_draw(w), fault = world_draw(w) % 32;
    uint32_t i = how & 1;
    struct alb_sge sge[4];
    struct alb_txn_write writes[4];
    struct alb_txn_compare compare = {place(w, !side), 0, more & 1 ? UINT64_MAX : 0,
                                      alb_region_key(w->sides[!side].target)};
    struct alb_txn_wr wr = {
        .wr_id = s->send_count,
        .flags = how & (ALB_SEND_FENCE | ALB_SEND_SIGNALED | ALB_SEND_SOLICITED),
        .writes = writes,
        .compares = &compare,
        .write_count = 1 + (how >> 6),
        .compare_count = more >> 1 & 1,
        .level = more & 4 ? ALB_LEVEL_REFLECTED : ALB_LEVEL_COMMITTED,
        .in_place = more & 8,
        .notify = more & 16,
        .hold = more & 32,
        .imm_data = 7,
        .lease_ns = more & 64 ? 100 * ALB_NS_PER_US << world_draw(w) % 8 : 0,
        .deadline_ns = more & 128 ? 10 * ALB_NS_PER_US << world_draw(w) % 12 : 0,
        .submitted = w->pair->now,
    };
    for (uint32_t k = 0; k < wr.write_count; k++) {
        uint32_t length = world_draw_below(w, length_max),
                 offset = world_draw_below(w, WORLD_REGION_BYTES - length + 1);
        sge[k] =
            (struct alb_sge){pair_va(w->pair, side, WORLD_OWN) + offset, length, alb_region_key(s->own) ^ (fault == 1)};
        writes[k] = (struct alb_txn_write){place(w, !side), compare.rkey ^ (fault == 2), &sge[k], 1, fault == 3};
    }
    uint64_t number;
    if (s->send_count < WORLD_POSTS_MAX && alb_qp_txn_stage(s->qps[i], &wr, &number) == 0)
        note_posted(w, side, i, wr.flags & ALB_SEND_SIGNALED);
}

static void post_level(struct world *w)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_SEND, ALB_WR_RDMA_WRITE_WITH_IMM,
                                                 ALB_WR_SEND_WITH_IMM};
    int side = world_draw(w) & 1;
    struct world_side *s = &w->sides[side];
    uint8_t how = world_draw(w);
    uint32_t length = world_draw_below(w, 4096), offset = world_draw_below(w, WORLD_REGION_BYTES - length);
    struct alb_sge sge = {pair_va(w->pair, side, WORLD_OWN) + offset, length, alb_region_key(s->own)};
    const struct alb_send_wr wr = {
        .wr_id = s->send_count,
        .opcode = opcodes[how >> 3 & 3],
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = place(w, !side),
        .rkey = alb_region_key(w->sides[!side].target),
        .level = how & 2 ? ALB_LEVEL_VISIBLE : ALB_LEVEL_DELIVERED,
        .wants_stages = how & 4,
        .submitted = w->pair->now,
    };
    if (s->send_count < WORLD_POSTS_MAX && alb_qp_send_stage(s->qps[how & 1], &wr) == 0)
        note_posted(w, side, how & 1, true);
}

// A number in or around those of an initiator.
static uint64_t near_number(struct world *w, const struct alb_reflect_out *out)
{
    return out->begun + (uint64_t)(int64_t)((int8_t)world_draw(w) / 16);
}

static void decide(struct world *w)
{
    int side = world_draw(w) & 1;
    uint8_t how = world_draw(w);
    struct alb_qp *qp = w->sides[side].qps[how & 1];
    alb_qp_txn_decide(qp, near_number(w, csa_of(w, side, how & 1)->reflect_out), how & 2, w->pair->now);
}

static uint64_t draw_keeper(struct world *w, int target)
{
    uint8_t how = world_draw(w);
    if (how & 4)
        return 0;
    return (how & 1 ? (uint64_t)KEEPER + (uint64_t)target : engine_of(w, target)->reflect->keeper) + (how & 2);
}

// By the other queue pair's name, mostly.
static void ask(struct world *w)
{
    int side = world_draw(w) & 1;
    uint8_t how = world_draw(w);
    struct world_side *s = &w->sides[side];
    const struct alb_reflect_out *out = csa_of(w, side, how >> 1)->reflect_out;
    const struct alb_txn_token token = {
        .id = {.initiator = out->initiator + (how >> 2 & 1), .number = near_number(w, out)},
        .keeper = draw_keeper(w, !side),
    };
    if (s->send_count < WORLD_POSTS_MAX &&
        alb_qp_txn_reconcile_stage(s->qps[how & 1], s->send_count, ALB_SEND_SIGNALED, &token,
                                   (enum alb_txn_decision)((how >> 3) % 3)) == 0)
        note_posted(w, side, how & 1, true);
}

// ---- forgeries ------------------------------------------------------------------------------------------------------

#define FORGED_BYTES_MAX 512

struct forged {
    uint8_t bytes[2 * WORLD_PACKET_MAX];
    uint32_t length;
};

static void begin_forged(struct world *w, int side, struct forged *forged)
{
    const struct alb_engine *engine = engine_of(w, side);
    const struct alb_csa_header header = {
        .dest_slot = engine->config.slot,
        .source_epoch = world_epoch(w, !side),
        .destination_epoch = world_epoch(w, side),
        .timestamp = (uint32_t)w->pair->now,
        .path = NO_PATH,
    };
    alb_csa_encode(&header, forged->bytes);
    forged->length = ALB_CSA_OUTER_BYTES;
}

// The next frame begins at a multiple of four.
static uint8_t *next_frame(struct forged *forged)
{
    memset(forged->bytes + forged->length, 0, 4);
    forged->length += alb_roce_pad(forged->length);
    return forged->bytes + forged->length;
}

// What of the frames is not as it was made, then it arrives.
static void send_forged(struct world *w, int side, struct forged *forged, uint32_t spoilt)
{
    uint32_t length = forged->length;
    memset(forged->bytes + length, 0, 4);
    length += alb_roce_pad(length);
    alb_csa_set_pad(forged->bytes, (uint8_t)(length - forged->length));
    for (; spoilt > 0; spoilt--)
        forged->bytes[ALB_CSA_OUTER_BYTES + world_draw_below(w, length - ALB_CSA_OUTER_BYTES)] ^= world_draw(w);
    world_receive(w, side, forged->bytes, length, 0);
}

static void add_segment(struct forged *forged, struct alb_csa_segment *segment, const uint8_t *payload)
{
    uint8_t *at = next_frame(forged);
    uint32_t bytes = alb_csa_encode_segment(ALB_CSA_REQUEST, segment, at);
    if (segment->payload_bytes)
        memcpy(at + bytes, payload, segment->payload_bytes);
    forged->length += bytes + segment->payload_bytes;
    segment->psn = alb_psn_next(segment->psn);
}

// All of a transaction, as the peer's next requests: its parts and its proposal, with the digest that they have.
static void forge_transaction(struct world *w)
{
    static struct forged forged;
    int side = world_draw(w) & 1;
    uint8_t how = world_draw(w), more = world_draw(w);
    struct alb_csa *csa = csa_of(w, side, how & 1);
    const struct alb_reflect_in *in = csa->reflect_in;
    const struct alb_reflect_out *out = csa_of(w, !side, how & 1)->reflect_out;
    const struct alb_txn_initiator *known = in ? in->initiator : NULL;
    uint64_t number = known ? known->next : out->begun;
    uint8_t payload[FORGED_BYTES_MAX];
    struct alb_csa_proposal proposal = {
        .id = {.initiator = known ? known->id : out->initiator, .number = number + (more >> 6 == 1)},
        .low_water = more & 32 ? number : 1,
        .lease_us = how & 8 ? 100u << (more & 15) : 0,
        .part_count = 1 + (how >> 1 & 3),
        .imm_be = 9,
        .is_in_place = how & 16,
        .notifies = how & 32,
        .is_solicited = how & 64,
        .level = ALB_LEVEL_COMMITTED,
        .compare_count = how >> 7,
    };
    proposal.compares[0] = (struct alb_csa_compare){place(w, side), 0, 0, alb_region_key(w->sides[side].target)};
    const struct alb_txn_id id = {proposal.id.initiator, proposal.id.number};
    struct alb_digest_state state;
    struct alb_csa_segment segment = {
        .op = ALB_CSA_TXN_WRITE,
        .flags = ALB_CSA_LAST,
        .dest_qpn = alb_qp_number(csa->qp),
        .psn = csa->in_requests.cumulative,
        .rkey = alb_region_key(w->sides[side].target),
        .txn = {.number = number},
        .txn_mode = proposal.is_in_place ? ALB_CSA_TXN_IN_PLACE : 0,
    };
    begin_forged(w, side, &forged);
    alb_txn_digest_begin(&state, &id);
    for (uint32_t i = 0; i < proposal.part_count; i++) {
        segment.va = place(w, side);
        segment.payload_bytes = segment.total_bytes = world_draw_below(w, FORGED_BYTES_MAX / 4);
        memset(payload, world_draw(w), segment.payload_bytes);
        alb_txn_digest_part(&state, segment.rkey, segment.va, segment.total_bytes);
        alb_digest_add(&state, payload, segment.total_bytes);
        proposal.bytes += segment.total_bytes;
        add_segment(&forged, &segment, payload);
    }
    proposal.digest = alb_digest_to_wire(alb_txn_digest_end(&state, &proposal));
    segment.op = ALB_CSA_TXN_END;
    segment.payload_bytes = segment.total_bytes = alb_csa_encode_proposal(&proposal, payload);
    add_segment(&forged, &segment, payload);
    send_forged(w, side, &forged, more >> 4 & 1);
}

static uint32_t forge_command(struct world *w, int side, const struct alb_csa *csa, uint8_t *at)
{
    uint8_t how = world_draw(w);
    const struct alb_reflect_out *out = csa_of(w, !side, how)->reflect_out;
    const struct alb_csa_txn command = {
        .command = (uint8_t)(1 + (how >> 1) % 3),
        .dest_qpn = alb_qp_number(csa->qp),
        .id = {out->initiator + (how >> 6 == 3), near_number(w, out)},
        .keeper = draw_keeper(w, side),
        .low_water = how & 32 ? near_number(w, out) : 0,
    };
    return alb_csa_encode_txn(&command, at);
}

static uint32_t forge_verdict(struct world *w, int side, const struct alb_csa *csa, uint8_t *at)
{
    uint8_t how = world_draw(w);
    struct alb_reflect_out *out = csa_of(w, side, how)->reflect_out;
    uint64_t number = near_number(w, out);
    const struct alb_txn_out *txn = alb_txn_out_find(out, number);
    const struct alb_csa_verdict verdict = {
        .state = (uint8_t)(1 + (how >> 1) % 6),
        .reason = world_draw(w) % (ALB_TXN_REASONS + 1),
        .dest_qpn = alb_qp_number(csa->qp),
        .id = {out->initiator + (how >> 6 == 3), number},
        .keeper = draw_keeper(w, !side),
        .digest = txn && how & 32 ? alb_digest_to_wire(txn->digest) : (struct alb_csa_digest){1, 2},
        .placed_at = w->pair->now - world_draw(w),
        .decided_at = how & 16 ? w->pair->now : 0,
        .visible_at = w->pair->now + world_draw(w),
        .now = w->pair->now,
    };
    return alb_csa_encode_verdict(&verdict, at);
}

// An ordinary message that wants a verdict, or a part of which more is to come.
static uint32_t forge_segment(struct world *w, int side, struct alb_csa *csa, uint8_t *at)
{
    uint8_t how = world_draw(w);
    const struct alb_reflect_out *out = csa_of(w, !side, how)->reflect_out;
    struct alb_csa_segment segment = {
        .op = how & 2 ? ALB_CSA_WRITE : ALB_CSA_TXN_WRITE,
        .flags = how & 2   ? ALB_CSA_LAST | ALB_CSA_REFLECT
                 : how & 4 ? ALB_CSA_LAST
                           : 0,
        .dest_qpn = alb_qp_number(csa->qp),
        .psn = csa->in_requests.cumulative,
        .payload_bytes = 4 + 4 * world_draw_below(w, 32),
        .va = place(w, side),
        .rkey = alb_region_key(w->sides[side].target),
        .txn = {out->initiator, near_number(w, out)},
        .txn_mode = how >> 3 & 1,
        .digest = {how & 16, 0},
        .txn_low_water = how & 32 ? near_number(w, out) : 0,
    };
    segment.total_bytes = segment.payload_bytes << (segment.flags & ALB_CSA_LAST ? 0 : 1 + (how >> 6));
    uint32_t bytes = alb_csa_encode_segment(ALB_CSA_REQUEST, &segment, at);
    memset(at + bytes, how, segment.payload_bytes);
    return bytes + segment.payload_bytes;
}

static void forge_frames(struct world *w)
{
    static struct forged forged;
    int side = world_draw(w) & 1;
    uint8_t how = world_draw(w);
    struct alb_csa *csa = csa_of(w, side, how);
    begin_forged(w, side, &forged);
    for (uint32_t n = 1 + (how >> 1 & 3); n > 0; n--) {
        uint8_t *at = next_frame(&forged);
        switch (world_draw(w) % 3) {
        case 0:
            forged.length += forge_command(w, side, csa, at);
            break;
        case 1:
            forged.length += forge_verdict(w, side, csa, at);
            break;
        case 2:
            forged.length += forge_segment(w, side, csa, at);
            break;
        }
    }
    send_forged(w, side, &forged, how >> 4 & 1);
}

// A packet under way arrives with some of its frames' bytes changed.
static void spoil_frames(struct world *w)
{
    static struct forged forged;
    int side = world_draw(w) & 1;
    uint32_t count = pair_count(w->pair, side);
    if (count == 0)
        return;
    const struct pair_packet *packet = pair_peek(w->pair, side, world_draw_below(w, count));
    uint32_t length = packet->datagram.length;
    alb_assert(length <= sizeof(forged.bytes));
    memcpy(forged.bytes, packet->bytes, length);
    for (uint32_t n = 1 + (world_draw(w) & 1); n > 0 && length > ALB_CSA_OUTER_BYTES; n--)
        forged.bytes[ALB_CSA_OUTER_BYTES + world_draw_below(w, ALB_MIN(length - ALB_CSA_OUTER_BYTES, 256u))] ^=
            world_draw(w);
    world_receive(w, !side, forged.bytes, length, 0);
}

// ---- operations -----------------------------------------------------------------------------------------------------

static void operate(struct world *w, uint32_t which)
{
    uint8_t how;
    switch ((enum operation)which) {
    case POST:
        post(w, WORLD_REGION_BYTES);
        break;
    case POST_SMALL:
        post(w, 200);
        break;
    case POST_LEVEL:
        post_level(w);
        break;
    case DECIDE:
        decide(w);
        break;
    case ASK:
        ask(w);
        break;
    case TAKE:
        how = world_draw(w);
        take(w, how & 1, how & 2);
        break;
    case ANSWER:
        answer_one(w);
        break;
    case CHANGE_REGION:
        change_memory(w);
        break;
    case FORGE_TRANSACTION:
        forge_transaction(w);
        break;
    case FORGE_FRAMES:
        forge_frames(w);
        break;
    case SPOIL_FRAMES:
        spoil_frames(w);
        break;
    case OPERATIONS:
        break;
    }
}

// ---- what must hold -------------------------------------------------------------------------------------------------

static size_t block_bytes(size_t bytes)
{
    size_t block = ALB_BUDDY_BLOCK_BYTES_MIN;
    while (block < bytes)
        block *= 2;
    return block;
}

static size_t bytes_held(const struct alb_engine *engine)
{
    return alb_buddy_used(&engine->reflect->staging.buddy) + alb_buddy_used(&engine->reflect->table.buddy);
}

// What a transaction has of the two arenas.
static size_t bytes_of(const struct alb_txn_in *txn)
{
    size_t bytes = block_bytes(sizeof(*txn));
    bool is_over = alb_txn_state_is_end(txn->state);
    if (txn->parts)
        bytes += block_bytes(txn->part_count * sizeof(*txn->parts));
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        const struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        bytes += block_bytes(sizeof(*range) + range->staged_bytes);
        alb_assert(!is_over || (!range->is_claimed && !range->is_placed));
    }
    alb_assert(!is_over || txn->is_taken || txn->ranges.next == &txn->ranges);
    return bytes;
}

static size_t bytes_of_records(const struct alb_engine *engine)
{
    size_t bytes = 0;
    const void *key;
    for (uint32_t i = alb_map_count(engine->reflect->records); i-- > 0;)
        bytes += bytes_of((const void *)(uintptr_t)alb_map_at(engine->reflect->records, i, &key));
    for (uint32_t i = alb_map_count(engine->reflect->initiators); i-- > 0;) {
        const struct alb_txn_initiator *initiator =
            (const void *)(uintptr_t)alb_map_at(engine->reflect->initiators, i, &key);
        bytes += block_bytes(sizeof(*initiator));
        alb_assert(initiator->low_water <= initiator->next);
    }
    return bytes;
}

static void check(const struct world *w)
{
    for (int side = 0; side < 2; side++) {
        const struct alb_engine *engine = engine_of(w, side);
        size_t bytes = bytes_of_records(engine);
        for (uint32_t i = 0; i < WORLD_QPS; i++) {
            const struct alb_qp *qp = w->sides[side].qps[i];
            const struct alb_reflect_in *in = qp->delivery == &alb_csa_ops ? alb_csa_of(qp)->reflect_in : NULL;
            if (!in)
                continue;
            alb_assert(in->notice_count <= in->notices_promised && in->notices_promised <= ALB_REFLECT_NOTICES);
            bytes += in->receiving ? bytes_of(in->receiving) : 0;
        }
        alb_assert(bytes_held(engine) == bytes);
    }
}

// The driver does all that it is asked for, until there is nothing more.
static void serve(struct world *w, int side, bool is_good)
{
    struct driver *d = &drivers[side];
    do {
        while (d->count)
            answer(w, side, 0, is_good);
        take(w, side, true);
        take(w, side, false);
    } while (d->count);
}

// The queue pairs are gone: what was bound waits for its lease, and then nothing of it is left.
static void finish(struct world *w)
{
    for (int side = 0; side < 2; side++) {
        struct alb_engine *engine = engine_of(w, side);
        const void *key;
        for (uint32_t round = 0; round < 3; round++) { // accepted, bound, given up
            serve(w, side, round == 0);
            pair_pass(w->pair, engine->config.txn_lease_ns_max);
        }
        for (uint32_t i = alb_map_count(engine->reflect->records); i-- > 0;) {
            const struct alb_txn_in *txn = (const void *)(uintptr_t)alb_map_at(engine->reflect->records, i, &key);
            alb_assert(alb_txn_state_is_end(txn->state) && !txn->is_taken);
        }
        bool is_held = false;
        for (uint32_t i = 0; i < ALB_COUNT(drivers[side].words); i++)
            is_held |= drivers[side].words[i] & 1;
        alb_assert(!is_held || alb_region_is_poisoned(w->sides[side].target));
        alb_assert(bytes_held(engine) == bytes_of_records(engine));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct world_kind kind = {
        .configure = configure,
        .forge = forge_frames,
        .check = check,
        .open_side = open_side,
        .open_memory = open_memory,
        .operations = OPERATIONS,
        .operate = operate,
        .finish = finish,
    };
    choice = size > 0 ? data[0] : 0;
    world_run(&kind, data, size);
    return 0;
}
