// SPDX-License-Identifier: BSD-2-Clause
#include "world.h"

#include <stdlib.h>

const char *world_transport = "rc";

void options_default(struct options *options)
{
    *options = (struct options){
        .type = ALB_QPT_RC,
        .qps = 1,
        .mtu_bytes = 1024,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
        .rd_atomic = 4,
        .psn = {1000, 2000},
        .access = ACCESS_ALL & ~ALB_ACCESS_MW_BIND,
        .mr_access = ACCESS_ALL,
        .send_wr_max = 64,
        .recv_wr_max = 64,
        .cq_entries = 256,
        .recv_cq_entries = 256,
        .qkey = 0x1234,
    };
    alb_sim_pair_config_default(&options->pair, false);
    for (enum alb_sim_side side = 0; side < ALB_SIM_SIDES; side++)
        assert_int_equal(alb_engine_config_transport(&options->pair.host[side].engine, world_transport), 0);
}

// ---- life -----------------------------------------------------------------------------------------------------------

static bool was_sent(struct end *end, const struct alb_csa_frame *frame)
{
    if (frame->type != ALB_CSA_REQUEST && frame->type != ALB_CSA_RESPONSE)
        return false;
    end->segments++;
    struct stream *stream = end->streams;
    for (; stream->is_known; stream++) {
        assert_true(stream < end->streams + ALB_COUNT(end->streams) - 1);
        if (stream->type == frame->type && stream->qpn == frame->segment.dest_qpn)
            break;
    }
    bool is_again = stream->is_known && alb_psn_is_before(frame->segment.psn, stream->next);
    if (!is_again)
        *stream = (struct stream){true, frame->type, frame->segment.dest_qpn, alb_psn_add(frame->segment.psn, 1)};
    end->segments_again += is_again;
    return is_again;
}

static void log_frame(struct end *end, const struct alb_csa_header *header, const struct alb_csa_frame *frame,
                      alb_sim_time now)
{
    bool is_again = was_sent(end, frame);
    if (end->is_log_closed)
        return;
    assert_true(end->frame_count < FRAMES_MAX);
    struct sent_frame *sent = &end->frames[end->frame_count++];
    *sent = (struct sent_frame){
        .at = now, .type = frame->type, .path = header->path, .is_again = is_again, .packet = end->log_count};
    if (frame->type == ALB_CSA_REPORT) {
        sent->qpn = frame->report.qpn;
        sent->psn = frame->report.cumulative;
        sent->syndrome = frame->report.syndrome;
    } else if (frame->type <= ALB_CSA_DATAGRAM) {
        sent->op = frame->segment.op;
        sent->flags = frame->segment.flags;
        sent->qpn = frame->segment.dest_qpn;
        sent->psn = frame->segment.psn;
        sent->index = frame->segment.index;
        sent->payload_bytes = frame->segment.payload_bytes;
    }
}

static void log_frames(struct end *end, const struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_csa_header header;
    struct alb_csa_cursor cursor;
    struct alb_csa_frame frame;
    enum alb_drop drop;
    assert_int_equal(
        alb_csa_decode(alb_sim_load(packet)->bytes, alb_sim_load(packet)->length - ALB_ICRC_BYTES, &header, &cursor),
        ALB_DROP_NONE);
    while (alb_csa_next(&cursor, &frame, &drop))
        log_frame(end, &header, &frame, now);
    assert_int_equal(drop, ALB_DROP_NONE);
}

static void tap(void *context, const struct alb_sim_link *link, const struct alb_sim_packet *packet, alb_sim_time now)
{
    struct end *end = context;
    uint32_t offset;
    if (alb_csa_is_packet(alb_sim_load(packet)->bytes, alb_sim_load(packet)->length - ALB_ICRC_BYTES))
        log_frames(end, packet, now);
    if (end->is_log_closed)
        return;
    assert_true(end->log_count < LOG_MAX);
    struct sent *sent = &end->log[end->log_count++];
    sent->at = now;
    assert_int_equal(alb_roce_decode(alb_sim_load(packet)->bytes, alb_sim_load(packet)->length - ALB_ICRC_BYTES,
                                     &sent->roce, &offset, &sent->payload_bytes),
                     ALB_DROP_NONE);
}

static struct alb_qp *create_qp(struct end *end, const struct options *options, uint32_t i)
{
    struct alb_qp *qp;
    struct alb_qp_init init = {
        .type = options->type,
        .send_cq = end->cq,
        .recv_cq = end->recv_cq,
        .srq = end->srq,
        .cap = {options->send_wr_max, options->recv_wr_max, 4, 4, 64},
        .user = end,
        .qpn = options->qpn_index ? options->qpn_index + i : 0,
    };
    assert_int_equal(alb_qp_create(end->pd, &init, &qp), 0);
    return qp;
}

static void create_objects(struct end *end, enum alb_sim_side side, const struct options *options)
{
    struct alb_sim_host *host = end->host;
    assert_int_equal(alb_pd_create(host->engine, &end->pd), 0);
    assert_int_equal(alb_cq_create(host->engine, options->cq_entries, end, &end->cq), 0);
    assert_int_equal(alb_cq_create(host->engine, options->recv_cq_entries, end, &end->recv_cq), 0);
    if (side == ALB_SIM_B && options->srq_wr_max)
        assert_int_equal(alb_srq_create(end->pd, options->srq_wr_max, 4, options->srq_limit, end, &end->srq), 0);
    assert_int_equal(alb_mr_create(end->pd, end->memory, MEMORY, (uintptr_t)end->memory, options->mr_access, &end->mr),
                     0);
    for (uint32_t i = 0; i < options->qps; i++)
        end->qps[i] = create_qp(end, options, i);
    end->qp = end->qps[0];
}

static void end_init(struct end *end, enum alb_sim_side side, struct alb_sim_host *host, const struct options *options)
{
    end->host = host;
    end->memory = aligned_alloc(64, MEMORY);
    end->log = calloc(LOG_MAX, sizeof(*end->log));
    end->frames = calloc(FRAMES_MAX, sizeof(*end->frames));
    fill(end, (uint32_t)side);
    create_objects(end, side, options);
    alb_sim_link_set_tap(host->out, tap, end);
}

static void destroy_objects(struct end *end)
{
    for (uint32_t i = 0; i < QPS_MAX; i++)
        if (end->qps[i])
            assert_int_equal(alb_qp_destroy(end->qps[i]), 0);
    if (end->srq)
        assert_int_equal(alb_srq_destroy(end->srq), 0);
    if (end->mr)
        assert_int_equal(alb_mr_destroy(end->mr), 0);
    assert_int_equal(alb_cq_destroy(end->cq), 0);
    assert_int_equal(alb_cq_destroy(end->recv_cq), 0);
    assert_int_equal(alb_pd_destroy(end->pd), 0);
    assert_int_equal(end->host->memory.data_path_calls, 0);
}

static void end_fini(struct end *end)
{
    destroy_objects(end);
    free(end->memory);
    free(end->log);
    free(end->frames);
}

void world_restart(struct world *world, struct end *end)
{
    destroy_objects(end);
    assert_int_equal(alb_sim_host_restart(end->host), 0);
    create_objects(end, end == &world->a ? ALB_SIM_A : ALB_SIM_B, &world->options);
}

struct world *world_new(const struct options *options)
{
    struct world *world = calloc(1, sizeof(*world));
    world->options = *options;
    assert_int_equal(alb_sim_pair_init(&world->pair, &options->pair), 0);
    end_init(&world->a, ALB_SIM_A, &world->pair.host[ALB_SIM_A], options);
    end_init(&world->b, ALB_SIM_B, &world->pair.host[ALB_SIM_B], options);
    for (uint32_t i = 0; i < options->qps && !options->is_unconnected; i++)
        connect_qps(world, world->a.qps[i], world->b.qps[i]);
    return world;
}

struct world *world_default(void)
{
    struct options options;
    options_default(&options);
    return world_new(&options);
}

struct flow world_flow(struct world *world, uint32_t message_bytes, uint32_t depth, uint64_t end_bytes)
{
    struct end *from = &world->a, *to = &world->b;
    return (struct flow){
        .host = from->host,
        .qp = from->qp,
        .cq = from->cq,
        .from = (uintptr_t)from->memory,
        .to = (uintptr_t)to->memory + MEMORY / 2,
        .lkey = alb_region_key(from->mr),
        .rkey = alb_region_key(to->mr),
        .message_bytes = message_bytes,
        .depth = depth,
        .end_bytes = end_bytes,
    };
}

void world_free(struct world *world)
{
    end_fini(&world->a);
    end_fini(&world->b);
    alb_sim_pair_fini(&world->pair);
    free(world);
}

struct end *end_of(struct world *world, enum alb_sim_side side)
{
    return side == ALB_SIM_A ? &world->a : &world->b;
}

struct end *peer_of(struct world *world, const struct end *end)
{
    return end == &world->a ? &world->b : &world->a;
}

// ---- connecting -----------------------------------------------------------------------------------------------------

static uint32_t rtr_mask(enum alb_qp_type type)
{
    if (type == ALB_QPT_UD)
        return ALB_QP_STATE;
    uint32_t connected = ALB_QP_STATE | ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN;
    return type == ALB_QPT_UC ? connected : connected | ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_MIN_RNR_TIMER;
}

static uint32_t rts_mask(enum alb_qp_type type)
{
    if (type != ALB_QPT_RC)
        return ALB_QP_STATE | ALB_QP_SQ_PSN;
    return ALB_QP_STATE | ALB_QP_SQ_PSN | ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY |
           ALB_QP_MAX_QP_RD_ATOMIC;
}

static void bring_up(struct world *world, enum alb_sim_side side, struct alb_qp *qp, const struct alb_qp *remote)
{
    const struct options *options = &world->options;
    struct end *end = end_of(world, side);
    bool is_ud = options->type == ALB_QPT_UD;
    struct alb_qp_attr attr = {
        .state = ALB_QPS_INIT,
        .port = 1,
        .access = options->access,
        .qkey = options->qkey,
        .path_mtu_bytes = options->mtu_bytes,
        .dest_qpn = alb_qp_number(remote),
        .rq_psn = options->psn[ALB_SIM_B - side],
        .sq_psn = options->psn[side],
        .max_dest_rd_atomic = options->rd_atomic,
        .max_rd_atomic = options->rd_atomic,
        .min_rnr_timer = options->min_rnr_timer,
        .timeout = options->timeout,
        .retry_cnt = options->retry_cnt,
        .rnr_retry = options->rnr_retry,
        .av = {.local = end->host->addr,
               .peer = peer_of(world, end)->host->addr,
               .hop_limit = 64,
               .traffic_class = ALB_ECN_ECT0,
               .peer_has_slots = end->host->is_csa,
               .path_payload_max = options->path_payload_max},
    };
    alb_time now = alb_sim_host_now(end->host);
    assert_int_equal(
        alb_qp_modify(qp, &attr,
                      ALB_QP_STATE | ALB_QP_PKEY_INDEX | ALB_QP_PORT | (is_ud ? ALB_QP_QKEY : ALB_QP_ACCESS_FLAGS),
                      now),
        0);
    attr.state = ALB_QPS_RTR;
    assert_int_equal(alb_qp_modify(qp, &attr, rtr_mask(options->type), now), 0);
    if (side == ALB_SIM_B && options->is_b_in_rtr)
        return;
    attr.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(qp, &attr, rts_mask(options->type), now), 0);
}

void connect_qps(struct world *world, struct alb_qp *a, struct alb_qp *b)
{
    bring_up(world, ALB_SIM_A, a, b);
    bring_up(world, ALB_SIM_B, b, a);
}

void on_way_to_b(struct world *world, struct alb_sim_rule rule)
{
    alb_sim_script_add(alb_sim_link_script(&world->pair.out[ALB_SIM_A]), &rule);
}

void on_way_to_a(struct world *world, struct alb_sim_rule rule)
{
    alb_sim_script_add(alb_sim_link_script(&world->pair.out[ALB_SIM_B]), &rule);
}

// ---- work -----------------------------------------------------------------------------------------------------------

int stage_on(struct world *world, struct end *end, struct alb_qp *qp, struct work work)
{
    const struct end *peer = peer_of(world, end);
    struct alb_sge own = {(uintptr_t)end->memory + work.from, work.length, alb_region_key(end->mr)};
    struct alb_send_wr wr = {
        .wr_id = work.id,
        .opcode = work.opcode,
        .flags = work.flags | (work.is_unsignaled ? 0 : ALB_SEND_SIGNALED),
        .sge = work.sge ? work.sge : &own,
        .sge_count = work.sge ? work.sge_count : work.length > 0,
        .imm_data = work.imm,
        .invalidate_rkey = work.invalidate,
        .remote_addr = work.remote_addr ? work.remote_addr : (uintptr_t)peer->memory + work.to,
        .rkey = work.rkey  ? work.rkey
                : peer->mr ? alb_region_key(peer->mr)
                           : 0,
        .compare_add = work.compare_add,
        .swap = work.swap,
        .ah = work.ah,
        .remote_qpn = work.remote_qpn,
        .remote_qkey = work.remote_qkey,
        .bind = work.bind,
    };
    int error = alb_qp_send_stage(qp, &wr);
    if (error)
        return error;
    alb_qp_send_commit(qp);
    alb_engine_bell_ring(qp);
    return 0;
}

int post_on(struct world *world, struct end *end, struct alb_qp *qp, struct work work)
{
    int error = stage_on(world, end, qp, work);
    alb_sim_host_poke(end->host);
    return error;
}

int post(struct world *world, struct end *end, struct work work)
{
    return post_on(world, end, end->qp, work);
}

void receive_on(struct end *end, struct alb_qp *qp, uint64_t id, uint32_t at, uint32_t length)
{
    struct alb_sge sge = {(uintptr_t)end->memory + at, length, alb_region_key(end->mr)};
    bool bell = false;
    if (end->srq)
        assert_int_equal(alb_srq_post(end->srq, id, &sge, 1), 0);
    else
        assert_int_equal(alb_qp_recv_post(qp, id, &sge, 1, &bell), 0);
    if (bell) {
        alb_engine_bell_ring(qp);
        alb_sim_host_poke(end->host);
    }
}

void receive(struct end *end, uint64_t id, uint32_t at, uint32_t length)
{
    receive_on(end, end->qp, id, at, length);
}

// ---- what happened --------------------------------------------------------------------------------------------------

void expect_wc_at(struct alb_cq *cq, uint64_t id, enum alb_wc_status status, struct alb_wc *out, const char *file,
                  int line)
{
    const struct alb_wc *wc = alb_cq_peek(cq);
    if (!wc) {
        print_error("%s:%d: no completion; expected wr_id %llu\n", file, line, (unsigned long long)id);
        _fail(file, line);
    }
    if (wc->wr_id != id || wc->status != status) {
        print_error("%s:%d: wr_id %llu status %u; expected wr_id %llu status %u\n", file, line,
                    (unsigned long long)wc->wr_id, wc->status, (unsigned long long)id, status);
        _fail(file, line);
    }
    if (out)
        *out = *wc;
    alb_cq_pop(cq);
}

void expect_none_at(struct alb_cq *cq, const char *file, int line)
{
    const struct alb_wc *wc = alb_cq_peek(cq);
    if (!wc)
        return;
    print_error("%s:%d: a completion, wr_id %llu status %u\n", file, line, (unsigned long long)wc->wr_id, wc->status);
    _fail(file, line);
}

uint32_t sent_of(const struct end *end, uint8_t opcode)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < end->log_count; i++)
        count += end->log[i].roce.opcode == opcode;
    return count;
}

const struct sent *nth_sent(const struct end *end, uint8_t opcode, uint32_t n)
{
    for (uint32_t i = 0; i < end->log_count; i++)
        if (end->log[i].roce.opcode == opcode && --n == 0)
            return &end->log[i];
    return NULL;
}

const struct sent_frame *nth_frame(const struct end *end, enum alb_csa_type type, uint32_t n)
{
    for (uint32_t i = 0; i < end->frame_count; i++)
        if (end->frames[i].type == type && --n == 0)
            return &end->frames[i];
    return NULL;
}

uint32_t frames_of(const struct end *end, enum alb_csa_type type)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < end->frame_count; i++)
        count += end->frames[i].type == type;
    return count;
}

uint64_t stat(const struct end *end, enum alb_stat stat)
{
    return end->host->stats.sum.counter[stat];
}

void expect_copied(const struct end *source, uint32_t from, const struct end *target, uint32_t to, uint32_t length)
{
    assert_memory_equal(source->memory + from, target->memory + to, length);
}

void fill(struct end *end, uint32_t seed)
{
    struct alb_prng prng;
    alb_prng_init(&prng, seed);
    for (uint32_t i = 0; i < MEMORY; i += 8) {
        uint64_t word = alb_prng_u64(&prng);
        memcpy(end->memory + i, &word, 8);
    }
}

void run_idle(struct world *world)
{
    assert_true(alb_sim_network_run_idle(&world->pair.network, now_of(world) + ALB_SIM_S(10)));
}

void run_for(struct world *world, alb_sim_time span)
{
    alb_sim_network_run_for(&world->pair.network, span);
}

alb_sim_time now_of(const struct world *world)
{
    return alb_sim_network_now(&world->pair.network);
}
