// SPDX-License-Identifier: BSD-2-Clause
// The engine as a whole: its life, its clockwork, and what leaves it.
#include "engine/engine.h"

#include "engine/cm.h"
#include "engine/impl.h"
#include "engine/unreliable.h"
#include "wire/mad.h"

#include <errno.h>
#include <string.h>

#define QUEUE_MAX (1u << 31)

void alb_engine_config_default(struct alb_engine_config *config)
{
    *config = (struct alb_engine_config){
        .pd_max = 65536,
        .region_max = 1u << 18,
        .cq_max = 65536,
        .srq_max = 32768,
        .xrcd_max = 65536,
        .ah_max = 1u << 20,
        .qp_max = 65536,
        .cqe_max = 1u << 22,
        .send_wr_max = 16384,
        .recv_wr_max = 16384,
        .srq_wr_max = 65536,
        .sge_max = ALB_MAX_SGE,
        .inline_max_bytes = ALB_MAX_INLINE,
        .rd_atomic_max = 128,
        .group_max = 256,
        .group_qp_max = 1024,
        .peer_max = 16384,
        .mtu_max_bytes = 4096,
        .gsi_index = ALB_GSI_QPN,
        .grant_min_bytes = 4 << 10,
        .credit_interval_ns = ALB_NS_PER_MS,
        .credit_aging_bytes_per_s = ALB_NS_PER_S,
        .path_max = 4,
        .rtt_target_ns = ALB_NS_PER_MS,
        .csa_payload_bytes = 65504,
        .csa_pool_bytes = 64 << 20,
        .txn_out_max = 16384, // as many as a send queue has places
        .txn_record_max = 16384,
        .txn_staging_bytes = 64 << 20,
        .txn_copies_max = 3,
        .txn_lease_ns = ALB_NS_PER_S,
        .txn_lease_ns_max = 60 * ALB_NS_PER_S,
        .csa_early_bytes_max = 32 << 20,
        .reflect_snapshot_bytes_max = 16 << 20,
        .csa_window_segments = 4096,
        .csa_margin_min_ns = 100,
        .csa_probe_min_ns = 0,
        .unreliable_bytes_per_s = 1000000000,
        .ack_timeout_min_ns = 0,
    };
    alb_dcqcn_config_default(&config->dcqcn);
    alb_engine_config_transport(config, "rc");
}

static bool is_transport(const char *name)
{
    return name && (strcmp(name, "rc") == 0 || strcmp(name, "csa") == 0);
}

int alb_engine_config_transport(struct alb_engine_config *config, const char *transport)
{
    if (!is_transport(transport))
        return EINVAL;
    bool is_csa = strcmp(transport, "csa") == 0;
    config->transport = transport;
    config->loss = is_csa ? "csa" : "go-back-n";
    config->congestion = is_csa ? "window" : "aimd";
    config->path = is_csa ? "adaptive" : "single";
    config->credit = is_csa ? "end-to-end" : "off";
    config->window_start_bytes = 64 << 10;
    config->window_min_bytes = is_csa ? 4 << 10 : 16 << 10;
    config->window_max_bytes = is_csa ? 16 << 20 : 2 << 20;
    return 0;
}

static bool is_csa(const struct alb_engine_config *config)
{
    return strcmp(config->transport, "csa") == 0;
}

// A segment's bytes in flight fit into 16 bits, and a report is asked for four times a window.
static bool csa_is_valid(const struct alb_engine_config *config)
{
    uint32_t window = config->csa_window_segments;
    return config->csa_payload_bytes >= 512 && config->csa_payload_bytes <= 65504 &&
           config->csa_payload_bytes % 4 == 0 && window >= 4 && window <= 1u << 22 && (window & (window - 1)) == 0;
}

static int check_config(const struct alb_engine_config *config)
{
    bool is_power_of_two = (config->region_max & (config->region_max - 1)) == 0;
    if (!config->memory.get || !config->memory.put || !config->stats || !config->loss || !config->congestion ||
        !config->path || !config->credit || !is_transport(config->transport))
        return EINVAL;
    if ((config->gsi_index != ALB_GSI_QPN && config->gsi_index != ALB_GSI_ALBEDO_QPN) || config->path_max == 0 ||
        config->path_max > ALB_PATH_NUMBERS)
        return EINVAL;
    if (config->qp_max <= ALB_QPN_RESERVED || config->qp_max > 65536 || config->region_max == 0 ||
        config->region_max > 1u << 23 || !is_power_of_two || config->peer_max == 0 || config->peer_max > ALB_PEERS_MAX)
        return EINVAL;
    if (config->sge_max > ALB_MAX_SGE || config->inline_max_bytes > ALB_MAX_INLINE || config->rd_atomic_max > 255)
        return EINVAL;
    // Queues are rounded up to a power of two.
    if (config->send_wr_max > QUEUE_MAX || config->recv_wr_max > QUEUE_MAX || config->srq_wr_max > QUEUE_MAX)
        return EINVAL;
    if (config->mtu_max_bytes < 256 || config->mtu_max_bytes > ALB_ROCE_PAYLOAD_MAX || !alb_congestion_agrees(config))
        return EINVAL;
    if (is_csa(config) && !csa_is_valid(config))
        return EINVAL;
    if (config->credit_interval_ns < ALB_NS_PER_US || config->credit_interval_ns > ALB_CREDIT_INTERVAL_MAX_NS ||
        config->credit_aging_bytes_per_s == 0 || config->credit_aging_bytes_per_s > ALB_CREDIT_AGING_MAX ||
        config->rtt_target_ns == 0 || config->rtt_target_ns > 100 * ALB_NS_PER_S)
        return EINVAL;
    return 0;
}

static int init_policies(struct alb_engine *engine)
{
    engine->loss = is_csa(&engine->config) ? NULL : alb_loss_find(engine->config.loss);
    engine->congestion = alb_congestion_find(engine->config.congestion);
    engine->path = alb_path_find(engine->config.path);
    if ((!engine->loss && !is_csa(&engine->config)) || !engine->congestion || !engine->path)
        return EINVAL;
    return is_csa(&engine->config) || (engine->path->choose && !engine->congestion->needs_feedback) ? 0 : EINVAL;
}

static int init_tables(struct alb_engine *engine)
{
    engine->qps = alb_engine_get_memory(engine, engine->config.qp_max * sizeof(*engine->qps));
    if (!engine->qps)
        return ENOMEM;
    int error = alb_qpn_init(engine);
    if (!error)
        error = alb_region_table_init(engine);
    if (!error && !is_csa(&engine->config)) // whose associations take their place
        error = alb_peers_init(engine);
    if (!error)
        error = alb_trace_init(engine);
    if (!error && is_csa(&engine->config))
        error = alb_csa_engine_create(engine);
    if (!error && is_csa(&engine->config))
        error = alb_reflect_engine_create(engine);
    return error;
}

static void fini_tables(struct alb_engine *engine)
{
    alb_reflect_engine_destroy(engine);
    alb_csa_engine_destroy(engine);
    alb_trace_fini(engine);
    alb_peers_fini(engine);
    alb_region_table_fini(engine);
    alb_qpn_fini(engine);
    alb_engine_put_memory(engine, engine->qps, engine->config.qp_max * sizeof(*engine->qps));
}

bool alb_engine_config_apply(struct alb_engine_config *config)
{
    return alb_congestion_set(config) && alb_credit_set(config);
}

int alb_engine_create(const struct alb_engine_config *config, struct alb_engine **out)
{
    struct alb_engine_config chosen = *config;
    int error = alb_engine_config_apply(&chosen) ? check_config(&chosen) : EINVAL;
    if (error)
        return error;
    struct alb_engine *engine = config->memory.get(config->memory.context, sizeof(*engine));
    if (!engine)
        return ENOMEM;
    engine->config = chosen;
    engine->stats = config->stats;
    alb_rng_init(&engine->rng, config->seed);
    alb_wheel_init(&engine->wheel, 0);
    alb_scheduler_init(&engine->scheduler, 1);
    alb_list_init(&engine->unsent);
    alb_list_init(&engine->events);
    alb_pacer_init(engine);
    error = init_policies(engine);
    if (!error)
        error = init_tables(engine);
    if (error) {
        fini_tables(engine);
        config->memory.put(config->memory.context, engine, sizeof(*engine));
        return error;
    }
    *out = engine;
    return 0;
}

void alb_engine_destroy(struct alb_engine *engine)
{
    struct alb_memory memory = engine->config.memory;
    alb_assert(engine->pd_count == 0 && engine->cq_count == 0 && !engine->cm);
    fini_tables(engine);
    memory.put(memory.context, engine, sizeof(*engine));
}

const struct alb_engine_config *alb_engine_configuration(const struct alb_engine *engine)
{
    return &engine->config;
}

static void count_sent(struct alb_engine *engine, const struct alb_tx *tx)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < tx->segment_count; i++)
        bytes += tx->segments[i].length;
    engine->stats->sum.counter[ALB_STAT_sent_pkts] += tx->segment_count;
    engine->stats->sum.counter[ALB_STAT_sent_bytes] += bytes;
}

uint32_t alb_engine_tx(struct alb_engine *engine, struct alb_tx *tx, alb_time now)
{
    struct alb_tx_builder builder;
    engine->now = now;
    alb_unreliable_retire_all(engine, now);
    tx->burst_count = tx->segment_count = tx->iov_count = tx->bytes_count = 0;
    alb_tx_builder_init(&builder, tx);
    alb_scheduler_run(&engine->scheduler, &builder, now);
    if (tx->burst_count == 0) // nothing was handed over, so what ended without a packet need not wait for the next call
        alb_unreliable_retire_all(engine, now);
    count_sent(engine, tx);
    return tx->burst_count;
}

bool alb_engine_wants_tx(const struct alb_engine *engine)
{
    return !alb_scheduler_is_idle(&engine->scheduler) || !alb_list_is_empty(&engine->unsent);
}

// A driver that comes so much too late was kept from running. Below it are those that do not wake up for each deadline.
#define AWAY_NS (20 * ALB_NS_PER_MS)

void alb_engine_tick(struct alb_engine *engine, alb_time now)
{
    struct alb_timer *timer;
    alb_time due = alb_wheel_next_due(&engine->wheel);
    engine->now = now;
    if (due < now && now - due >= AWAY_NS)
        engine->back_at = now;
    while ((timer = alb_wheel_pop_due(&engine->wheel, now))) {
        struct alb_deadline *deadline = ALB_CONTAINER_OF(timer, struct alb_deadline, timer);
        deadline->fire(deadline, now);
    }
}

void alb_engine_note_host_load(struct alb_engine *engine, uint32_t load)
{
    atomic_store_explicit(&engine->host_load, (uint8_t)ALB_MIN(load, (uint32_t)ALB_HOST_LOAD_MAX),
                          memory_order_relaxed);
}

uint32_t alb_engine_host_load(const struct alb_engine *engine)
{
    uint32_t load = atomic_load_explicit(&engine->host_load, memory_order_relaxed);
    return ALB_MAX(load, (uint32_t)ALB_HOST_LOAD_ONE);
}

void alb_engine_set_now(struct alb_engine *engine, alb_time now)
{
    engine->now = now;
}

alb_time alb_engine_deadline(struct alb_engine *engine)
{
    return alb_wheel_next_due(&engine->wheel);
}

bool alb_engine_is_quiet(const struct alb_engine *engine)
{
    if (alb_engine_bell_is_rung(engine) || alb_engine_wants_tx(engine) || !alb_cm_is_quiet(engine))
        return false;
    uint32_t left = engine->qp_count;
    for (uint32_t i = 0; left > 0 && i < engine->config.qp_max; i++) {
        if (!engine->qps[i])
            continue;
        if (!alb_qp_is_quiet(engine->qps[i]))
            return false;
        left--;
    }
    return true;
}
