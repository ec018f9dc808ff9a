// SPDX-License-Identifier: BSD-2-Clause
// Channels of a cluster: queue pairs, what is posted to them and what completes.
#include "sim/cluster_impl.h"

#include "engine/partial.h"

#include <errno.h>
#include <stdlib.h>

enum {
    CQ_ENTRIES_MIN = 64,
    ACCESS = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ,
};

// ---- a host's objects -----------------------------------------------------------------------------------------------

// So many more completions may come.
static int expect_completions(struct alb_cluster_host *host, uint32_t count)
{
    uint32_t entries = alb_cq_entries(host->cq);
    while (entries < host->completions + count)
        entries *= 2;
    int error = entries > alb_cq_entries(host->cq) ? alb_cq_resize(host->cq, entries) : 0;
    if (!error)
        host->completions += count;
    return error;
}

static uint64_t receive_offset(const struct alb_cluster_host *host, uint64_t number)
{
    const struct alb_cluster_config *config = &host->cluster->config;
    if (!config->has_real_bytes)
        return 0;
    return config->memory_bytes - (host->receives - number) * config->receive_bytes;
}

static void post_receive(struct alb_cluster_host *host, uint64_t number)
{
    const struct alb_cluster_config *config = &host->cluster->config;
    struct alb_sge sge = {
        .addr = ALB_CLUSTER_IOVA + receive_offset(host, number),
        .length = config->has_real_bytes ? config->receive_bytes : ALB_MAX_MESSAGE,
        .lkey = alb_region_key(host->region),
    };
    int error = alb_srq_post(host->srq, number, &sge, 1);
    alb_assert(error == 0);
}

static int make_objects(struct alb_cluster_host *host)
{
    const struct alb_cluster_config *config = &host->cluster->config;
    struct alb_engine *engine = host->host.engine;
    uint8_t *memory = host->cluster->arena;
    uint64_t bytes = config->has_real_bytes ? config->memory_bytes : ALB_MAX_MESSAGE;
    if (config->has_real_bytes && bytes <= (uint64_t)host->receives * config->receive_bytes)
        return EINVAL;
    if (config->has_real_bytes) {
        host->memory = memory = calloc(1, bytes);
        if (!memory)
            return ENOMEM;
    }
    int error = alb_pd_create(engine, &host->pd);
    if (!error)
        error = alb_cq_create(engine, CQ_ENTRIES_MIN, NULL, &host->cq);
    if (!error)
        error = alb_mr_create(host->pd, memory, bytes, ALB_CLUSTER_IOVA, ACCESS, &host->region);
    if (!error)
        error = alb_srq_create(host->pd, host->receives, 1, 0, NULL, &host->srq);
    return error;
}

static void poll(struct alb_sim_host *sim_host, alb_sim_time now);

int alb_cluster_host_open(struct alb_cluster_host *host)
{
    int error = make_objects(host);
    if (!error) {
        alb_cq_set_silent(host->cq);
        error = expect_completions(host, host->receives);
    }
    if (error) {
        alb_cluster_host_close(host);
        return error;
    }
    for (uint32_t i = 0; i < host->receives; i++)
        post_receive(host, i);
    host->host.after = poll;
    return 0;
}

void alb_cluster_host_close(struct alb_cluster_host *host)
{
    int error = host->srq ? alb_srq_destroy(host->srq) : 0;
    error = error || !host->region ? error : alb_mr_destroy(host->region);
    error = error || !host->cq ? error : alb_cq_destroy(host->cq);
    error = error || !host->pd ? error : alb_pd_destroy(host->pd);
    alb_assert(error == 0);
    free(host->memory);
    host->memory = NULL;
}

uint8_t *alb_cluster_memory(struct alb_cluster *cluster, uint32_t host)
{
    return cluster->hosts[host].memory;
}

// ---- completions ----------------------------------------------------------------------------------------------------

// The oldest message posted there is done.
static void take_posted(struct alb_channel_end *end, struct alb_cluster_completion *completion)
{
    const struct alb_posted *posted = &end->posted[end->first];
    completion->user = posted->user;
    completion->bytes = posted->bytes;
    end->first = (end->first + 1) % end->channel->connection.send_depth;
    end->count--;
    end->host->completions--;
}

static void complete(struct alb_cluster_host *host, const struct alb_wc *wc, alb_sim_time now)
{
    const struct alb_cluster_config *config = &host->cluster->config;
    struct alb_channel_end *end = alb_qp_user(wc->qp);
    struct alb_cluster_completion completion = {
        .channel = end->channel,
        .side = (uint32_t)(end - end->channel->ends),
        .is_received = wc->opcode & ALB_WC_RECV,
        .status = wc->status,
        .wc = wc,
    };
    if (completion.is_received) {
        completion.imm = wc->flags & ALB_WC_WITH_IMM ? wc->imm_data : 0;
        completion.bytes = wc->byte_len;
        completion.offset = receive_offset(host, wc->wr_id);
    } else {
        take_posted(end, &completion);
    }
    if (config->on_complete)
        config->on_complete(config->context, &completion, now);
    if (completion.is_received)
        post_receive(host, wc->wr_id);
}

static void poll(struct alb_sim_host *sim_host, alb_sim_time now)
{
    struct alb_cluster_host *host = ALB_CONTAINER_OF(sim_host, struct alb_cluster_host, host);
    for (const struct alb_wc *next; (next = alb_cq_peek(host->cq));) {
        struct alb_wc wc = *next;
        alb_cq_pop(host->cq);
        complete(host, &wc, now);
    }
}

// ---- connections ----------------------------------------------------------------------------------------------------

void alb_connection_default(struct alb_connection *connection, uint32_t from, uint32_t to)
{
    *connection = (struct alb_connection){
        .host = {from, to}, .type = ALB_QPT_RC, .timeout = 14, .retry_cnt = 7, .send_depth = 16};
}

static int make_qp(struct alb_channel_end *end, enum alb_qp_type type)
{
    struct alb_cluster_host *host = end->host;
    struct alb_qp_init init = {
        .type = type,
        .send_cq = host->cq,
        .recv_cq = host->cq,
        .srq = host->srq,
        .cap = {end->channel->connection.send_depth, 0, 1, 0, 0},
        .user = end,
    };
    int error = alb_qp_create(host->pd, &init, &end->qp);
    uint32_t partial_messages = end->channel->connection.partial_messages;
    return error || partial_messages == 0 ? error : alb_qp_partial_enable(end->qp, partial_messages);
}

static int begin_qp(const struct alb_channel_end *end, const struct alb_channel_end *peer, alb_psn psn,
                    alb_psn peer_psn)
{
    const struct alb_connection *connection = &end->channel->connection;
    const struct alb_cluster_config *config = &end->host->cluster->config;
    bool is_rc = connection->type == ALB_QPT_RC;
    struct alb_qp_attr attr = {
        .state = ALB_QPS_INIT,
        .port = 1,
        .access = ALB_ACCESS_REMOTE_WRITE | (is_rc ? ALB_ACCESS_REMOTE_READ : 0),
        .path_mtu_bytes = config->mtu_bytes,
        .dest_qpn = alb_qp_number(peer->qp),
        .timeout = connection->timeout,
        .retry_cnt = connection->retry_cnt,
        .rnr_retry = 7,
        .min_rnr_timer = 1, // 10 us
        .max_rd_atomic = is_rc ? 16 : 0,
        .max_dest_rd_atomic = is_rc ? 16 : 0,
        .sq_psn = psn,
        .rq_psn = peer_psn,
        .av = {.local = end->host->host.addr,
               .peer = peer->host->host.addr,
               .traffic_class = (uint8_t)((connection->traffic_class & ~ALB_ECN_MASK) | ALB_ECN_ECT0),
               .peer_has_slots = end->host->host.is_csa,
               .path_payload_max = config->payload_max_bytes},
    };
    alb_time now = alb_sim_host_now(&end->host->host);
    int error =
        alb_qp_modify(end->qp, &attr, ALB_QP_STATE | ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS, now);
    attr.state = ALB_QPS_RTR;
    uint32_t mask = ALB_QP_STATE | ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN;
    if (!error)
        error =
            alb_qp_modify(end->qp, &attr, mask | (is_rc ? ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_MIN_RNR_TIMER : 0), now);
    attr.state = ALB_QPS_RTS;
    mask = ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_MAX_QP_RD_ATOMIC;
    return error ? error : alb_qp_modify(end->qp, &attr, ALB_QP_STATE | ALB_QP_SQ_PSN | (is_rc ? mask : 0), now);
}

static void bind_rnic(const struct alb_channel *channel, bool is_bound)
{
    for (uint32_t side = 0; side < 2; side++) {
        struct alb_rnic *rnic = channel->ends[side].host->host.rnic;
        const struct alb_channel_end *peer = &channel->ends[1 - side];
        uint32_t qpn = alb_qp_number(peer->qp);
        if (rnic && is_bound)
            alb_rnic_bind(rnic, peer->host->number, qpn, alb_qp_number(channel->ends[side].qp) & 0xffff);
        else if (rnic)
            alb_rnic_unbind(rnic, peer->host->number, qpn);
    }
}

static void free_channel(struct alb_channel *channel)
{
    for (uint32_t side = 0; side < 2; side++) {
        struct alb_channel_end *end = &channel->ends[side];
        if (end->qp) {
            int error = alb_qp_destroy(end->qp);
            alb_assert(error == 0);
        }
        if (end->host)
            end->host->completions -= end->count;
        free(end->posted);
    }
    alb_list_remove(&channel->link);
    free(channel);
}

int alb_cluster_connect(struct alb_cluster *cluster, const struct alb_connection *connection, struct alb_channel **out)
{
    if (connection->host[0] >= cluster->topology.host_count || connection->host[1] >= cluster->topology.host_count ||
        connection->host[0] == connection->host[1] || connection->send_depth == 0)
        return EINVAL;
    struct alb_channel *channel = calloc(1, sizeof(*channel));
    alb_assert(channel);
    channel->connection = *connection;
    alb_list_init(&channel->link);
    alb_list_push_back(&cluster->channels, &channel->link);
    alb_psn psn[2];
    int error = 0;
    for (uint32_t side = 0; side < 2; side++) {
        struct alb_channel_end *end = &channel->ends[side];
        end->channel = channel;
        end->host = &cluster->hosts[connection->host[side]];
        end->posted = calloc(connection->send_depth, sizeof(*end->posted));
        alb_assert(end->posted);
        psn[side] = alb_prng_u64(&cluster->network.prng) & ALB_PSN_MASK;
        error = error ? error : make_qp(end, connection->type);
    }
    for (uint32_t side = 0; side < 2 && !error; side++)
        error = begin_qp(&channel->ends[side], &channel->ends[1 - side], psn[side], psn[1 - side]);
    if (error) {
        free_channel(channel);
        return error;
    }
    bind_rnic(channel, true);
    *out = channel;
    return 0;
}

void alb_cluster_disconnect(struct alb_cluster *cluster, struct alb_channel *channel)
{
    struct alb_cluster_host *hosts[2] = {channel->ends[0].host, channel->ends[1].host};
    bind_rnic(channel, false);
    free_channel(channel);
    for (uint32_t side = 0; side < 2; side++) // what waited behind it
        alb_sim_host_ring(&hosts[side]->host);
}

void alb_cluster_disconnect_all(struct alb_cluster *cluster)
{
    while (!alb_list_is_empty(&cluster->channels))
        alb_cluster_disconnect(cluster, ALB_LIST_ENTRY(cluster->channels.next, struct alb_channel, link));
}

const struct alb_connection *alb_channel_connection(const struct alb_channel *channel)
{
    return &channel->connection;
}

struct alb_qp *alb_channel_qp(const struct alb_channel *channel, uint32_t side)
{
    return channel->ends[side].qp;
}

// ---- messages -------------------------------------------------------------------------------------------------------

static bool is_within(const struct alb_cluster_config *config, const struct alb_message *message)
{
    if (message->bytes > ALB_MAX_MESSAGE)
        return false;
    if (!config->has_real_bytes)
        return true;
    uint64_t last = config->memory_bytes - ALB_MIN(message->bytes, config->memory_bytes);
    return message->bytes <= config->memory_bytes && message->local_offset <= last &&
           (message->op == ALB_MESSAGE_SEND || message->remote_offset <= last);
}

enum alb_wr_opcode alb_message_opcode(enum alb_message_op op)
{
    static const enum alb_wr_opcode opcodes[] = {
        [ALB_MESSAGE_WRITE] = ALB_WR_RDMA_WRITE,
        [ALB_MESSAGE_WRITE_IMM] = ALB_WR_RDMA_WRITE_WITH_IMM,
        [ALB_MESSAGE_SEND] = ALB_WR_SEND_WITH_IMM,
        [ALB_MESSAGE_READ] = ALB_WR_RDMA_READ,
    };
    return opcodes[op];
}

int alb_cluster_post(struct alb_cluster *cluster, struct alb_channel *channel, uint32_t side,
                     const struct alb_message *message)
{
    const struct alb_cluster_config *config = &cluster->config;
    struct alb_channel_end *end = &channel->ends[side], *peer = &channel->ends[1 - side];
    if (!is_within(config, message) || alb_qp_current_state(end->qp) != ALB_QPS_RTS)
        return EINVAL;
    if (end->count == channel->connection.send_depth)
        return ENOMEM;
    uint64_t local = config->has_real_bytes ? message->local_offset : 0;
    struct alb_sge sge = {ALB_CLUSTER_IOVA + local, (uint32_t)message->bytes, alb_region_key(end->host->region)};
    struct alb_send_wr wr = {
        .wr_id = end->number,
        .opcode = alb_message_opcode(message->op),
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = message->bytes > 0,
        .imm_data = message->imm,
        .remote_addr = ALB_CLUSTER_IOVA + (config->has_real_bytes ? message->remote_offset : 0),
        .rkey = alb_region_key(peer->host->region),
        .partial = message->partial,
        .is_resend = message->is_resend,
    };
    int error = expect_completions(end->host, 1);
    if (error)
        return error;
    error = alb_qp_send_stage(end->qp, &wr);
    if (error) {
        end->host->completions--;
        return error;
    }
    alb_qp_send_commit(end->qp);
    end->number++;
    end->posted[(end->first + end->count++) % channel->connection.send_depth] =
        (struct alb_posted){message->user, message->bytes, message->op};
    alb_engine_bell_ring(end->qp);
    alb_sim_host_ring(&end->host->host);
    return 0;
}

int alb_cluster_partial_ask(struct alb_cluster *cluster, struct alb_channel *channel, uint32_t side, uint32_t number)
{
    struct alb_channel_end *end = &channel->ends[side];
    int error = alb_qp_partial_ask(end->qp, number, alb_sim_host_now(&end->host->host));
    alb_sim_host_ring(&end->host->host);
    return error;
}

int alb_cluster_expect(struct alb_cluster *cluster, struct alb_channel *channel, uint32_t side,
                       const struct alb_expectation *expectation)
{
    struct alb_channel_end *end = &channel->ends[side];
    int error = alb_qp_expect(end->qp, expectation, alb_sim_host_now(&end->host->host));
    alb_sim_host_ring(&end->host->host);
    return error;
}
