// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

static void (*changes)(struct alb_engine_config *config);

static void configure(struct alb_engine_config *config)
{
    int error = alb_engine_config_transport(config, "csa");
    assert_int_equal(error, 0);
    config->congestion = "fixed";
    config->path = "single";
    config->path_max = 1;
    config->csa_payload_bytes = ALB_CSA_OUTER_BYTES + 32 + CSA_PAIR_SEGMENT + ALB_ICRC_BYTES;
    config->csa_pool_bytes = 256 << 10;
    config->csa_early_bytes_max = 64 << 10;
    config->csa_window_segments = CSA_PAIR_WINDOW;
    config->txn_staging_bytes = 256 << 10;
    config->txn_record_max = 64;
    if (changes)
        changes(config);
}

struct csa_pair *csa_pair_new(void (*change)(struct alb_engine_config *config),
                              void (*change_attr)(struct alb_qp_attr *attr, int side))
{
    struct csa_pair *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    changes = change;
    c->pair = pair_new(configure);
    pair_fill(c->pair);
    pair_connect(c->pair, ALB_QPT_RC, c->qps, change_attr);
    for (int side = 0; side < 2; side++) {
        c->csa[side] = alb_csa_of(c->qps[side]);
        c->engines[side] = c->pair->hosts[side].engine;
    }
    return c;
}

void csa_pair_free(struct csa_pair *c)
{
    pair_free(c->pair);
    free(c);
}

int csa_pair_setup(void **state)
{
    *state = csa_pair_new(NULL, NULL);
    return 0;
}

int csa_pair_setup_greeted(void **state)
{
    csa_pair_setup(state);
    csa_pair_greet(*state);
    return 0;
}

int csa_pair_teardown(void **state)
{
    csa_pair_free(*state);
    return 0;
}

void csa_pair_greet(struct csa_pair *c)
{
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 99, ALB_SEND_SIGNALED, 8);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 99, ALB_WC_SUCCESS);
    assert_int_equal(c->csa[0]->bound_epoch, csa_pair_epoch(c, 1));
    assert_int_equal(c->csa[1]->bound_epoch, csa_pair_epoch(c, 0));
}

void csa_pair_ask(struct csa_pair *c, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t flags, uint32_t length)
{
    assert_int_equal(pair_ask(c->pair, c->qps[0], opcode, wr_id, flags, 0, length), 0);
}

void csa_pair_ask_in_entries(struct csa_pair *c, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t flags,
                             const uint32_t *lengths, uint32_t count)
{
    struct alb_sge sge[4];
    assert_in_range(count, 1, ALB_COUNT(sge));
    for (uint32_t i = 0; i < count; i++)
        sge[i] = pair_sge(c->pair, 0, i * CSA_PAIR_ENTRY_BYTES_MAX, lengths[i]);
    const struct alb_send_wr wr = {
        .wr_id = wr_id,
        .opcode = opcode,
        .flags = flags,
        .sge = sge,
        .sge_count = count,
        .imm_data = 0x1234,
        .remote_addr = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
    };
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
}

void csa_pair_expect(struct csa_pair *c, int side, uint64_t wr_id, enum alb_wc_status status)
{
    pair_expect(c->pair, side, wr_id, status);
}

void csa_pair_expect_none(struct csa_pair *c, int side)
{
    pair_expect_none(c->pair, side);
}

uint64_t csa_pair_stat(const struct csa_pair *c, int side, enum alb_stat stat)
{
    return c->pair->hosts[side].stats.sum.counter[stat];
}

uint64_t csa_pair_drops(const struct csa_pair *c, int side, enum alb_drop drop)
{
    return c->pair->hosts[side].stats.dropped[drop];
}

uint32_t csa_pair_epoch(const struct csa_pair *c, int side)
{
    return alb_assoc_epoch(c->engines[side]->csa, c->csa[side]->assoc);
}

struct alb_assoc_live *csa_pair_live(const struct csa_pair *c, int side)
{
    assert_non_null(c->csa[side]->assoc);
    return c->csa[side]->assoc->live;
}

// ---- the requests of side 0 -----------------------------------------------------------------------------------------

struct alb_stream_out *csa_pair_out(const struct csa_pair *c)
{
    return &c->csa[0]->requests;
}

void csa_pair_send_lost(struct csa_pair *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, 0, 8);
    pair_send(c->pair, 0);
    while (pair_count(c->pair, 0))
        pair_lose(c->pair, 0);
}

enum alb_sent_state csa_pair_state(const struct csa_pair *c, int32_t offset)
{
    return alb_stream_out_at(csa_pair_out(c), alb_psn_add(csa_pair_psn(0), offset))->state;
}

void csa_pair_skip(struct csa_pair *c, uint32_t segments)
{
    struct alb_stream_out *out = csa_pair_out(c);
    struct alb_stream_in *in = &c->csa[1]->in_requests;
    alb_psn psn = alb_psn_add(out->next, (int32_t)segments);
    assert_true(out->una == out->next && out->next == c->csa[0]->started_psn && in->cumulative == out->next);
    alb_stream_out_begin(out, psn);
    alb_stream_in_begin(in, psn);
    c->csa[0]->started_psn = psn;
}

void csa_pair_expect_inflight(const struct csa_pair *c, uint32_t bytes)
{
    const struct alb_assoc_live *live = csa_pair_live(c, 0);
    assert_int_equal(csa_pair_out(c)->inflight_bytes, bytes);
    assert_int_equal(live->inflight_bytes, bytes);
    assert_int_equal(alb_path_load(live->paths, 0)->inflight_bytes, bytes);
}

// ---- what is on the wire --------------------------------------------------------------------------------------------

void csa_pair_look(const struct csa_pair *c, int side, uint32_t index, struct csa_seen *seen)
{
    const struct pair_packet *packet = pair_peek(c->pair, side, index);
    struct alb_csa_cursor cursor;
    enum alb_drop drop;
    assert_non_null(packet);
    assert_true(alb_csa_is_packet(packet->datagram.bytes, packet->datagram.length));
    assert_int_equal(alb_csa_decode(packet->datagram.bytes, packet->datagram.length, &seen->header, &cursor),
                     ALB_DROP_NONE);
    seen->count = 0;
    while (seen->count < CSA_PAIR_FRAMES && alb_csa_next(&cursor, &seen->frames[seen->count], &drop))
        seen->count++;
    assert_true(seen->count > 0);
}

// Each pair has its memory elsewhere, and digests cover addresses.
static void forget_addresses(struct alb_csa_frame *frame)
{
    if (frame->type == ALB_CSA_VERDICT)
        frame->verdict.digest = (struct alb_csa_digest){0};
    if (frame->type != ALB_CSA_REQUEST && frame->type != ALB_CSA_RESPONSE)
        return;
    frame->segment.va = 0;
    frame->segment.payload = NULL;
}

static void assert_same_payload(const struct alb_csa_segment *a, const struct alb_csa_segment *b)
{
    struct alb_csa_proposal proposals[2];
    assert_int_equal(a->payload_bytes, b->payload_bytes);
    if (a->op != ALB_CSA_TXN_END) {
        assert_memory_equal(a->payload, b->payload, a->payload_bytes);
        return;
    }
    memset(proposals, 0, sizeof(proposals));
    assert_true(alb_csa_decode_proposal(a->payload, a->payload_bytes, &proposals[0]));
    assert_true(alb_csa_decode_proposal(b->payload, b->payload_bytes, &proposals[1]));
    proposals[0].digest = proposals[1].digest;
    assert_memory_equal(&proposals[0], &proposals[1], sizeof(proposals[0]));
}

void csa_pair_assert_same_packet(const struct csa_pair *a, const struct csa_pair *b, int side, uint32_t index)
{
    static struct csa_seen seen[2];
    const struct csa_pair *pairs[] = {a, b};
    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < 2; i++)
        csa_pair_look(pairs[i], side, index, &seen[i]);
    assert_int_equal(pair_peek(a->pair, side, index)->datagram.length,
                     pair_peek(b->pair, side, index)->datagram.length);
    for (uint32_t i = 0; i < seen[0].count; i++) {
        struct alb_csa_frame *frames[] = {&seen[0].frames[i], &seen[1].frames[i]};
        bool is_segment = frames[0]->type == ALB_CSA_REQUEST || frames[0]->type == ALB_CSA_RESPONSE;
        if (is_segment && frames[0]->segment.payload_bytes > 0)
            assert_same_payload(&frames[0]->segment, &frames[1]->segment);
        for (int k = 0; k < 2; k++)
            forget_addresses(frames[k]);
    }
    assert_memory_equal(&seen[0], &seen[1], sizeof(seen[0]));
}

uint32_t csa_pair_count(const struct csa_pair *c, int side, enum alb_csa_type type, struct alb_csa_frame *last)
{
    struct csa_seen seen;
    uint32_t count = 0;
    for (uint32_t i = 0; i < pair_count(c->pair, side); i++) {
        csa_pair_look(c, side, i, &seen);
        for (uint32_t k = 0; k < seen.count; k++)
            if (seen.frames[k].type == type) {
                count++;
                if (last)
                    *last = seen.frames[k];
            }
    }
    return count;
}

void csa_pair_frame(const struct csa_pair *c, int side, enum alb_csa_type type, uint32_t index,
                    struct alb_csa_frame *frame)
{
    struct csa_seen seen;
    for (uint32_t i = 0; i < pair_count(c->pair, side); i++) {
        csa_pair_look(c, side, i, &seen);
        for (uint32_t k = 0; k < seen.count; k++)
            if (seen.frames[k].type == type && index-- == 0) {
                *frame = seen.frames[k];
                return;
            }
    }
    fail_msg("no such frame on the wire");
}

// ---- packets that no engine has sent --------------------------------------------------------------------------------

void csa_pair_make(const struct csa_pair *c, int side, struct csa_made *made)
{
    const struct alb_assoc *assoc = c->csa[side]->assoc;
    *made = (struct csa_made){
        .header =
            {
                .source_epoch = csa_pair_epoch(c, side),
                .destination_epoch = assoc ? assoc->peer_epoch : 0,
                .timestamp = (uint32_t)c->pair->now,
                .sequence = assoc && assoc->live ? assoc->live->paths->path[0].next : 0,
            },
        .peer = {c->pair->hosts[side].addr, ALB_ROCE_PORT},
        .local = {c->pair->hosts[!side].addr, ALB_ROCE_PORT},
        .traffic_class = ALB_ECN_ECT0,
        .length = ALB_CSA_OUTER_BYTES,
    };
}

static uint8_t *next_frame(struct csa_made *made)
{
    made->length = (made->length + 3) & ~3u;
    assert_true(made->length < sizeof(made->bytes) - 512);
    return made->bytes + made->length;
}

void csa_pair_add_segment(struct csa_made *made, enum alb_csa_type type, const struct alb_csa_segment *segment,
                          const void *payload)
{
    uint8_t *at = next_frame(made);
    uint32_t bytes = alb_csa_encode_segment(type, segment, at);
    assert_true(made->length + bytes + segment->payload_bytes + 4 <= sizeof(made->bytes));
    if (segment->payload_bytes)
        memcpy(at + bytes, payload, segment->payload_bytes);
    made->length += bytes + segment->payload_bytes;
}

void csa_pair_add_report(struct csa_made *made, const struct alb_csa_report *report)
{
    uint8_t *at = next_frame(made);
    made->length += alb_csa_encode_report(report, at);
}

void csa_pair_add_paths(struct csa_made *made, const struct alb_csa_paths *paths)
{
    uint8_t *at = next_frame(made);
    made->length += alb_csa_encode_paths(paths, at);
}

void csa_pair_add_probe(struct csa_made *made, const struct alb_csa_probe *probe)
{
    uint8_t *at = next_frame(made);
    made->length += alb_csa_encode_probe(probe, at);
}

void csa_pair_add_bytes(struct csa_made *made, const void *bytes, uint32_t length)
{
    uint8_t *at = next_frame(made);
    memcpy(at, bytes, length);
    made->length += length;
}

// The datagram lies in memory of its exact length, so that a sanitizer sees reads beyond it.
void csa_pair_arrive(struct csa_pair *c, int side, struct csa_made *made)
{
    uint8_t pad = alb_roce_pad(made->length);
    uint32_t length = made->length + pad;
    uint8_t *bytes = malloc(length);
    assert_non_null(bytes);
    alb_csa_encode(&made->header, made->bytes);
    alb_csa_set_pad(made->bytes, pad);
    memcpy(bytes, made->bytes, length);
    struct alb_datagram datagram = {
        .peer = made->peer,
        .local = made->local,
        .traffic_class = made->traffic_class,
        .hop_limit = 64,
        .bytes = bytes,
        .length = length,
    };
    alb_engine_rx(c->engines[!side], &datagram, 1, c->pair->now);
    free(bytes);
}

alb_psn csa_pair_psn(int side)
{
    return side ? PAIR_PSN ^ 0x800000 : PAIR_PSN;
}

struct alb_csa_segment csa_pair_write(const struct csa_pair *c, int side, int32_t offset, uint32_t index,
                                      uint32_t total_bytes, uint32_t payload_bytes, uint32_t flags)
{
    return (struct alb_csa_segment){
        .op = ALB_CSA_WRITE,
        .flags = (uint8_t)flags,
        .dest_qpn = alb_qp_number(c->qps[!side]),
        .psn = alb_psn_add(csa_pair_psn(side), offset),
        .index = index,
        .total_bytes = total_bytes,
        .payload_bytes = payload_bytes,
        .va = pair_va(c->pair, !side, 0),
        .rkey = alb_region_key(c->pair->hosts[!side].mr),
    };
}

void csa_pair_arrive_segment(struct csa_pair *c, int side, const struct alb_csa_segment *segment, uint8_t value)
{
    struct csa_made made;
    uint8_t payload[2048];
    bool is_response = segment->op == ALB_CSA_READ_DATA || segment->op == ALB_CSA_RESULT;
    assert_true(segment->payload_bytes <= sizeof(payload));
    memset(payload, value, sizeof(payload));
    csa_pair_make(c, side, &made);
    csa_pair_add_segment(&made, is_response ? ALB_CSA_RESPONSE : ALB_CSA_REQUEST, segment, payload);
    csa_pair_arrive(c, side, &made);
}

void csa_pair_arrive_report(struct csa_pair *c, int side, uint16_t number, int32_t cumulative, uint64_t held,
                            uint8_t syndrome)
{
    struct csa_made made;
    const struct alb_csa_report report = {
        .number = number,
        .syndrome = syndrome,
        .qpn = alb_qp_number(c->qps[!side]),
        .cumulative = alb_psn_add(csa_pair_psn(!side), cumulative),
        .word_count = held != 0,
        .held = {held},
    };
    csa_pair_make(c, side, &made);
    csa_pair_add_report(&made, &report);
    csa_pair_arrive(c, side, &made);
}
