// SPDX-License-Identifier: BSD-2-Clause
// The engine as a whole: its configuration, its memory, its clockwork.
#include "engine/tests/pair.h"

#include "base/tests/test.h"

#include <stdlib.h>

enum {
    MTU = 1024,
};

// ---- configuration --------------------------------------------------------------------------------------------------

struct ledger {
    size_t bytes_held, bytes_most;
    uint64_t gets, refused_from;
};

static void *get(void *context, size_t bytes)
{
    struct ledger *ledger = context;
    if (ledger->refused_from == 1)
        return NULL;
    if (ledger->refused_from > 1)
        ledger->refused_from--;
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    ledger->gets++;
    ledger->bytes_held += bytes;
    ledger->bytes_most = ALB_MAX(ledger->bytes_most, ledger->bytes_held);
    return memory;
}

static void put(void *context, void *memory, size_t bytes)
{
    struct ledger *ledger = context;
    ledger->bytes_held -= bytes;
    free(memory);
}

static struct alb_device_stats stats;

static struct alb_engine_config config_of(struct ledger *ledger)
{
    struct alb_engine_config config;
    alb_engine_config_default(&config);
    config.memory = (struct alb_memory){get, put, ledger};
    config.stats = &stats;
    config.qp_max = 64;
    config.region_max = 16;
    config.peer_max = 4;
    return config;
}

static void alb_engine_config_default__needs_memory_and_counters_only(void **state)
{
    struct ledger ledger = {0};
    struct alb_engine_config config;
    struct alb_engine *engine;
    alb_engine_config_default(&config);
    assert_int_equal(alb_engine_create(&config, &engine), EINVAL);
    config.memory = (struct alb_memory){get, put, &ledger};
    assert_int_equal(alb_engine_create(&config, &engine), EINVAL);
    config.stats = &stats;
    assert_int_equal(alb_engine_create(&config, &engine), 0);
    assert_int_equal(alb_engine_configuration(engine)->qp_max, 65536);
    assert_true(alb_engine_is_quiet(engine));
    alb_engine_destroy(engine);
    assert_int_equal(ledger.bytes_held, 0);
}

static void refuse(struct ledger *ledger, const struct alb_engine_config *config, const char *change)
{
    struct alb_engine *engine;
    if (alb_engine_create(config, &engine) != EINVAL)
        fail_msg("%s", change);
    assert_int_equal(ledger->bytes_held, 0);
}

#define REFUSE(change)                                        \
    do {                                                      \
        struct alb_engine_config config = config_of(&ledger); \
        config.change;                                        \
        refuse(&ledger, &config, #change);                    \
    } while (0)

static void alb_engine_create__refuses_sizes(void **state)
{
    struct ledger ledger = {0};
    REFUSE(qp_max = ALB_QPN_RESERVED);
    REFUSE(qp_max = 65537);
    REFUSE(region_max = 0);
    REFUSE(region_max = 12); // no power of two
    REFUSE(region_max = 1u << 25);
    REFUSE(peer_max = 0);
    REFUSE(peer_max = ALB_PEERS_MAX + 1);
    REFUSE(peer_max = (1u << 31) + 1); // no power of two is as large
    REFUSE(sge_max = ALB_MAX_SGE + 1);
    REFUSE(inline_max_bytes = ALB_MAX_INLINE + 1);
    REFUSE(rd_atomic_max = 256);
    REFUSE(mtu_max_bytes = 255);
    REFUSE(mtu_max_bytes = 4097);
    REFUSE(window_min_bytes = config.window_start_bytes + 1);
    REFUSE(window_start_bytes = config.window_max_bytes + 1);
    REFUSE(send_wr_max = UINT32_MAX); // no power of two is as large
    REFUSE(recv_wr_max = (1u << 31) + 1);
    REFUSE(srq_wr_max = (1u << 31) + 1);
    REFUSE(gsi_index = 2);
    REFUSE(path_max = 0);
    REFUSE(path_max = 129);
}

static void alb_engine_create__refuses_policies(void **state)
{
    struct ledger ledger = {0};
    REFUSE(memory.put = NULL);
    REFUSE(transport = NULL);
    REFUSE(transport = "tcp");
    REFUSE(loss = "no such policy");
    REFUSE(path = NULL);
    REFUSE(credit = NULL);
    REFUSE(congestion = "");
    REFUSE(congestion = "window"); // rc has no round-trip times
    REFUSE(congestion = "dcqcn");
    REFUSE(rtt_target_ns = 0);
    REFUSE(dcqcn.gain_log2 = 0);
    REFUSE(credit_interval_ns = 999);
}

static void alb_engine_create__no_memory(void **state)
{
    struct ledger ledger = {0};
    struct alb_engine_config config = config_of(&ledger);
    struct alb_engine *engine;
    int error = ENOMEM;
    config.trace_records = 8;
    for (uint64_t i = 1; error; i++) {
        assert_true(i < 20);
        ledger.refused_from = i;
        error = alb_engine_create(&config, &engine);
        ledger.refused_from = 0;
        if (error) {
            assert_int_equal(error, ENOMEM);
            assert_int_equal(ledger.bytes_held, 0);
        }
    }
    alb_engine_destroy(engine);
    assert_int_equal(ledger.bytes_held, 0);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

static void one_queue_pair_64_peers(struct alb_engine_config *config)
{
    config->qp_max = ALB_QPN_RESERVED + 1;
    config->region_max = 4;
    config->peer_max = 64;
    config->sge_max = 4;
}

// The simulator runs thousands of hosts (DESIGN.md, "The engine's surface").
static void alb_engine_create__one_queue_pair_and_64_peers_in_64_kib(void **state)
{
    struct pair *pair = pair_new(one_queue_pair_64_peers);
    struct pair_host *host = &pair->hosts[0];
    struct alb_cq *cq;
    assert_int_equal(alb_cq_destroy(host->cq), 0); // the fixture's is larger than this host's need be
    assert_int_equal(alb_cq_create(host->engine, 64, NULL, &cq), 0);
    host->cq = cq;
    host->bytes_most = host->bytes_held;
    size_t before = host->bytes_held;
    struct alb_qp_init init = {
        .type = ALB_QPT_RC,
        .cap = {.send_wr_max = 32, .recv_wr_max = 32, .send_sge_max = 2, .recv_sge_max = 2, .inline_max_bytes = 64},
    };
    struct alb_qp *qp = pair_qp_with(pair, 0, &init);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    print_message("engine, tables, completion queue and region: %zu bytes; queue pair: %zu bytes\n", before,
                  host->bytes_held - before);
    assert_true(host->bytes_most <= 64 << 10);
    pair_free(pair);
}

// Traffic of every kind, with losses, timeouts and errors: the engine asks for memory when objects are made, and never
// again.
static void alb_engine_tx__no_memory_on_the_data_path(void **state)
{
    struct pair *pair = pair_new(NULL);
    struct alb_qp *rc[2], *uc[2];
    uint64_t gets[2];
    pair_connect(pair, ALB_QPT_RC, rc, NULL);
    pair_connect(pair, ALB_QPT_UC, uc, NULL);
    for (int side = 0; side < 2; side++)
        gets[side] = pair->hosts[side].gets;
    for (uint32_t round = 0; round < 200; round++) {
        for (int side = 0; side < 2; side++) {
            pair_receive(pair, rc[side], 1, 0, 4 * MTU);
            pair_receive(pair, uc[side], 2, 0, 4 * MTU);
            pair_ask(pair, rc[side], ALB_WR_SEND, 1, ALB_SEND_SIGNALED, 0, 3 * MTU);
            pair_ask(pair, rc[side], ALB_WR_RDMA_READ, 2, 0, 8192, 5 * MTU);
            pair_ask(pair, rc[side], ALB_WR_ATOMIC_FETCH_AND_ADD, 3, ALB_SEND_FENCE, 16384, 8);
            pair_ask(pair, uc[side], ALB_WR_RDMA_WRITE_WITH_IMM, 4, ALB_SEND_SIGNALED, 32768, 2 * MTU);
        }
        for (int i = 0; i < 4; i++)
            for (int side = 0; side < 2; side++) {
                pair_send(pair, side);
                for (uint32_t k = 0; pair_count(pair, side) > 0; k++)
                    (round + k) % 11 == 0 ? pair_lose(pair, side) : pair_deliver(pair, side);
            }
        pair_pass(pair, 10 * ALB_NS_PER_MS);
        struct alb_wc wc;
        for (int side = 0; side < 2; side++)
            while (pair_poll(pair, side, &wc))
                ;
    }
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(rc[0], &attr, ALB_QP_STATE, pair->now), 0);
    pair_settle(pair);
    for (int side = 0; side < 2; side++)
        assert_int_equal(pair->hosts[side].gets, gets[side]);
    assert_true(pair->hosts[0].stats.sum.counter[ALB_STAT_rdma_sends] > 50);
    assert_true(pair->hosts[0].stats.sum.counter[ALB_STAT_retransmitted_pkts] > 0);
    pair_free(pair);
}

// ---- clockwork ------------------------------------------------------------------------------------------------------

static void alb_engine_deadline__is_the_next_timer(void **state)
{
    struct pair *pair = pair_new(NULL);
    struct alb_qp *qps[2];
    struct alb_engine *engine = pair->hosts[0].engine;
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    assert_int_equal(alb_engine_deadline(engine), ALB_TIME_NEVER);
    pair_ask(pair, qps[0], ALB_WR_RDMA_WRITE, 1, 0, 0, 8);
    pair_send(pair, 0);
    assert_int_equal(alb_engine_deadline(engine), pair->now + (4096 << 10));
    alb_engine_tick(engine, pair->now + (4096 << 10) - 1); // too early: nothing happens
    assert_false(alb_engine_wants_tx(engine));
    alb_engine_tick(engine, pair->now + (4096 << 10));
    assert_true(alb_engine_wants_tx(engine));
    pair_free(pair);
}

static void slow_peer(struct alb_engine_config *config)
{
    config->ack_timeout_min_ns = 100 * ALB_NS_PER_MS;
}

static void alb_engine_deadline__no_sooner_than_configured(void **state)
{
    struct pair *pair = pair_new(slow_peer);
    struct alb_qp *qps[2];
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    pair_ask(pair, qps[0], ALB_WR_RDMA_WRITE, 1, 0, 0, 8);
    pair_send(pair, 0);
    assert_int_equal(alb_engine_deadline(pair->hosts[0].engine), pair->now + 100 * ALB_NS_PER_MS);
    pair_free(pair);
}

// Batches as small as the driver likes: the same packets, in the same order.
static void alb_engine_tx__any_size_of_batch(void **state)
{
    struct alb_roce roces[64];
    for (uint32_t size = 1; size <= 9; size += 4) {
        struct pair *pair = pair_new(NULL);
        struct alb_qp *qps[2];
        pair_connect(pair, ALB_QPT_RC, qps, NULL);
        pair->hosts[0].tx.segment_capacity = size;
        pair->hosts[0].tx.burst_segments_max = size;
        pair_ask(pair, qps[0], ALB_WR_RDMA_WRITE, 1, 0, 0, 20 * MTU + 3);
        pair_ask(pair, qps[0], ALB_WR_RDMA_READ, 1, 0, 0, 3 * MTU);
        pair_ask(pair, qps[0], ALB_WR_SEND, 1, ALB_SEND_INLINE, 0, 8);
        assert_int_equal(pair_send(pair, 0), 23);
        for (uint32_t i = 0; i < 23; i++) {
            const struct alb_roce *roce = &pair_peek(pair, 0, i)->roce;
            if (size == 1)
                roces[i] = *roce;
            assert_int_equal(roce->opcode, roces[i].opcode);
            assert_int_equal(roce->psn, roces[i].psn);
        }
        pair_free(pair);
    }
}

// The queue pairs of a host take turns, a burst each.
static void alb_engine_tx__takes_turns(void **state)
{
    struct pair *pair = pair_new(NULL);
    struct alb_qp *first[2], *second[2];
    pair_connect(pair, ALB_QPT_RC, first, NULL);
    pair_connect(pair, ALB_QPT_RC, second, NULL);
    pair->hosts[0].tx.burst_segments_max = 4;
    pair_ask(pair, first[0], ALB_WR_RDMA_WRITE, 1, 0, 0, 20 * MTU);
    pair_ask(pair, second[0], ALB_WR_RDMA_WRITE, 1, 0, 0, 20 * MTU);
    assert_int_equal(pair_send(pair, 0), 40);
    for (uint32_t i = 0; i < 40; i++) {
        alb_qpn to = alb_qp_number(i / 4 % 2 ? second[1] : first[1]);
        assert_int_equal(pair_peek(pair, 0, i)->roce.dest_qpn, to);
    }
    pair_free(pair);
}

// A queue pair under a reserved number is looked at as any other.
static void alb_engine_is_quiet__asks_all(void **state)
{
    struct pair *pair = pair_new(NULL);
    struct alb_qp_init init = {.type = ALB_QPT_RC, .qpn = 1, .cap = {.send_wr_max = 4, .send_sge_max = 1}};
    struct alb_qp *qp = pair_qp_with(pair, 0, &init);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    pair_send(pair, 0);
    assert_true(alb_engine_is_quiet(pair->hosts[0].engine));
    pair_ask(pair, qp, ALB_WR_RDMA_WRITE, 1, 0, 0, 8);
    pair_send(pair, 0);
    assert_false(alb_engine_is_quiet(pair->hosts[0].engine));
    pair_free(pair);
}

static void alb_engine_config_transport__sets_what_goes_with_it(void **state)
{
    struct alb_engine_config config, csa;
    alb_engine_config_default(&config);
    assert_string_equal(config.transport, "rc");
    assert_string_equal(config.congestion, "aimd");
    assert_string_equal(config.credit, "off"); // its acknowledgements say that there is no limit (rc_answer.c)
    csa = config;
    assert_int_equal(alb_engine_config_transport(&csa, "csa"), 0);
    assert_string_equal(csa.transport, "csa");
    assert_string_equal(csa.congestion, "window");
    assert_string_equal(csa.path, "adaptive");
    assert_string_equal(csa.loss, "csa");
    assert_string_equal(csa.credit, "end-to-end");
    assert_int_equal(csa.peer_max, config.peer_max);
    assert_int_equal(alb_engine_config_transport(&csa, "tcp"), EINVAL);
    assert_int_equal(alb_engine_config_transport(&csa, NULL), EINVAL);
    assert_string_equal(csa.transport, "csa");
    assert_int_equal(alb_engine_config_transport(&csa, "rc"), 0);
    assert_string_equal(csa.transport, config.transport);
    assert_string_equal(csa.loss, config.loss);
    assert_string_equal(csa.congestion, config.congestion);
    assert_string_equal(csa.path, config.path);
    assert_string_equal(csa.credit, config.credit);
    assert_int_equal(csa.window_start_bytes, config.window_start_bytes);
    assert_int_equal(csa.window_min_bytes, config.window_min_bytes);
    assert_int_equal(csa.window_max_bytes, config.window_max_bytes);
    assert_int_equal(csa.peer_max, config.peer_max);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_engine_config_default__needs_memory_and_counters_only),
        cmocka_unit_test(alb_engine_create__refuses_sizes),
        cmocka_unit_test(alb_engine_create__refuses_policies),
        cmocka_unit_test(alb_engine_create__no_memory),
        cmocka_unit_test(alb_engine_create__one_queue_pair_and_64_peers_in_64_kib),
        cmocka_unit_test(alb_engine_tx__no_memory_on_the_data_path),
        cmocka_unit_test(alb_engine_deadline__is_the_next_timer),
        cmocka_unit_test(alb_engine_deadline__no_sooner_than_configured),
        cmocka_unit_test(alb_engine_tx__any_size_of_batch),
        cmocka_unit_test(alb_engine_tx__takes_turns),
        cmocka_unit_test(alb_engine_is_quiet__asks_all),
        cmocka_unit_test(alb_engine_config_transport__sets_what_goes_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
