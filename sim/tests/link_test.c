// SPDX-License-Identifier: BSD-2-Clause
// Links by themselves: rate, delay, queue, marks, scripts and faults.
#include "sim/link.h"

#include "base/prng.h"
#include "base/tests/test.h"
#include "wire/datagram.h"

#include <string.h>

enum {
    ARRIVALS_MAX = 4096,
};

struct bench {
    struct alb_sim_node node;
    struct alb_sim_queue queue;
    struct alb_sim_packet_pool pool;
    struct alb_sim_link link;
    struct {
        alb_sim_time at;
        alb_psn psn;
        uint8_t traffic_class;
        bool is_corrupt;
    } arrivals[ARRIVALS_MAX];
    uint32_t count;
};

static void arrive(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct bench *bench = ALB_CONTAINER_OF(node, struct bench, node);
    struct alb_roce roce;
    assert_true(bench->count < ARRIVALS_MAX);
    bench->arrivals[bench->count].at = now;
    bench->arrivals[bench->count].psn = alb_sim_packet_headers(packet, &roce) ? roce.psn : UINT32_MAX;
    bench->arrivals[bench->count].traffic_class = packet->traffic_class;
    bench->arrivals[bench->count++].is_corrupt = packet->is_corrupt;
    alb_sim_packet_put(&bench->pool, packet);
}

static void bench_init(struct bench *bench, const struct alb_sim_link_config *config)
{
    memset(bench, 0, sizeof(*bench));
    bench->node.receive = arrive;
    alb_sim_queue_init(&bench->queue);
    alb_sim_packet_pool_init(&bench->pool, 4096);
    alb_sim_link_init(&bench->link, &bench->queue, &bench->pool, &bench->node, config);
}

static void bench_fini(struct bench *bench)
{
    alb_sim_link_fini(&bench->link);
    alb_sim_queue_fini(&bench->queue);
    assert_int_equal(bench->pool.outstanding, 0);
    alb_sim_packet_pool_fini(&bench->pool);
}

static void send_as(struct bench *bench, alb_psn psn, uint32_t wire_bytes, uint8_t traffic_class)
{
    struct alb_sim_packet *packet = alb_sim_packet_get(&bench->pool, bench->pool.packet_bytes_max);
    struct alb_roce roce = {.opcode = ALB_RC_ACK, .psn = psn, .syndrome = ALB_AETH_SYNDROME_ACK(31)};
    alb_sim_load(packet)->stored_bytes = alb_roce_encode(&roce, alb_sim_load(packet)->bytes) + ALB_ICRC_BYTES;
    alb_sim_load(packet)->length = alb_sim_load(packet)->stored_bytes;
    packet->wire_bytes = wire_bytes;
    packet->traffic_class = traffic_class;
    alb_sim_link_send(&bench->link, packet, bench->queue.now);
}

static void send(struct bench *bench, alb_psn psn, uint32_t wire_bytes)
{
    send_as(bench, psn, wire_bytes, ALB_ECN_ECT0);
}

static void drain(struct bench *bench)
{
    while (alb_sim_queue_step(&bench->queue))
        ;
}

static void send__takes_its_time_on_the_wire_and_on_the_way(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 100000000000, .delay = ALB_SIM_NS(500)});
    send(&b, 0, 1000);
    send(&b, 1, 1500);
    assert_int_equal(alb_sim_link_queued_bytes(&b.link, 0), 2500);
    drain(&b);
    assert_int_equal(b.arrivals[0].at, 1000 * 80 + 500000); // a byte at 100 Gb/s: 80 ps
    assert_int_equal(b.arrivals[1].at, 2500 * 80 + 500000);
    bench_fini(&b);
}

static void send__queue_limit_and_marks(void **state)
{
    struct bench b;
    bench_init(
        &b, &(struct alb_sim_link_config){.bits_per_s = 1000000000, .queue_bytes_max = 5000, .mark_above_bytes = 2000});
    for (uint32_t i = 0; i < 8; i++)
        send(&b, i, 1000);
    drain(&b);
    assert_int_equal(b.count, 5);
    assert_int_equal(b.link.stats.overflowed, 3);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(b.arrivals[i].traffic_class, i > 2 ? ALB_ECN_CE : ALB_ECN_ECT0);
    assert_int_equal(b.link.stats.marked, 2);
    assert_int_equal(b.link.queue_bytes_peak, 5000);
    bench_fini(&b);
}

// By a link before this one.
static void send__what_is_marked_is_not_marked_again(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 1000000000, .mark_above_bytes = 1000});
    send(&b, 0, 1000);
    send_as(&b, 1, 1000, ALB_ECN_CE);
    send(&b, 2, 1000);
    send_as(&b, 3, 1000, ALB_ECN_CE);
    drain(&b);
    assert_int_equal(b.arrivals[3].traffic_class, ALB_ECN_CE);
    assert_int_equal(b.link.stats.marked, 1);
    bench_fini(&b);
}

static void script__drops_swaps_doubles_delays_marks_and_damages(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.delay = 10});
    const struct alb_sim_rule rules[] = {
        {.from = 2, .action = ALB_SIM_DROP},
        {.by = ALB_SIM_BY_PSN, .psn = 3, .action = ALB_SIM_SWAP},
        {.from = 6, .action = ALB_SIM_DUPLICATE},
        {.by = ALB_SIM_BY_OPCODE, .opcode = ALB_RC_ACK, .from = 7, .action = ALB_SIM_DELAY, .amount = 100},
        {.by = ALB_SIM_BY_FLAGS, .flags = ALB_OPCODE_RESPONSE, .from = 8, .action = ALB_SIM_MARK},
        {.from = 9, .action = ALB_SIM_CORRUPT, .amount = 3},
    };
    for (uint32_t i = 0; i < ALB_COUNT(rules); i++)
        alb_sim_script_add(alb_sim_link_script(&b.link), &rules[i]);
    assert_false(alb_sim_script_is_done(alb_sim_link_script(&b.link)));
    for (uint32_t i = 1; i <= 9; i++)
        send(&b, i, 100);
    drain(&b);
    static const alb_psn order[] = {1, 4, 3, 5, 6, 6, 8, UINT32_MAX, 7};
    assert_int_equal(b.count, ALB_COUNT(order));
    for (uint32_t i = 0; i < ALB_COUNT(order); i++)
        if (order[i] != UINT32_MAX)
            assert_int_equal(b.arrivals[i].psn, order[i]);
    assert_int_equal(b.arrivals[6].traffic_class, ALB_ECN_CE);
    assert_true(b.arrivals[7].is_corrupt);
    assert_int_equal(b.arrivals[8].at, 110);
    assert_true(alb_sim_script_is_done(alb_sim_link_script(&b.link)));
    bench_fini(&b);
}

static void script__nobody_follows__the_held_packet_goes_on_by_itself(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.delay = 10});
    alb_sim_script_add(alb_sim_link_script(&b.link), &(struct alb_sim_rule){.action = ALB_SIM_SWAP});
    send(&b, 1, 100);
    drain(&b);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.arrivals[0].at, ALB_SIM_NS(ALB_FAULTS_HOLD_NS_MAX) + 10);
    bench_fini(&b);
}

static void script__times_and_all(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){0});
    alb_sim_script_add(alb_sim_link_script(&b.link),
                       &(struct alb_sim_rule){.from = 3, .times = 2, .action = ALB_SIM_DROP});
    for (uint32_t i = 1; i <= 6; i++)
        send(&b, i, 100);
    alb_sim_script_clear(alb_sim_link_script(&b.link));
    alb_sim_script_add(alb_sim_link_script(&b.link),
                       &(struct alb_sim_rule){.times = UINT32_MAX, .action = ALB_SIM_DROP});
    for (uint32_t i = 7; i <= 9; i++)
        send(&b, i, 100);
    drain(&b);
    assert_int_equal(b.count, 4);
    assert_int_equal(b.arrivals[2].psn, 5);
    assert_int_equal(b.link.stats.lost, 5);
    bench_fini(&b);
}

static void faults__are_counted_and_the_same_for_the_same_seed(void **state)
{
    static struct bench b[2];
    struct alb_sim_link_config config = {.delay = 10, .faults_seed = 9};
    char error[ALB_FAULTS_ERROR_MAX];
    assert_true(alb_faults_parse("loss=10%,duplicate=10%,reorder=10%,corrupt=10%,delay=1us..5us", &config.faults, error,
                                 sizeof(error)));
    for (uint32_t i = 0; i < 2; i++) {
        bench_init(&b[i], &config);
        for (uint32_t k = 0; k < 1000; k++)
            send(&b[i], k, 100);
        drain(&b[i]);
        assert_in_range(b[i].link.stats.lost, 50, 150);
        assert_in_range(b[i].link.stats.duplicated, 50, 150);
        assert_in_range(b[i].link.stats.corrupted, 50, 150);
        assert_int_equal(b[i].count, 1000 - b[i].link.stats.lost + b[i].link.stats.duplicated);
    }
    assert_memory_equal(b[0].arrivals, b[1].arrivals, sizeof(b[0].arrivals));
    bench_fini(&b[0]);
    bench_fini(&b[1]);
}

// ---- changes in the middle of a run ---------------------------------------------------------------------------------

static void run_until(struct bench *bench, alb_sim_time until)
{
    while (alb_sim_queue_next_at(&bench->queue) <= until)
        alb_sim_queue_step(&bench->queue);
    alb_sim_queue_advance(&bench->queue, until);
}

static void set_rate__stretches_what_is_queued(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 10000000000, .delay = ALB_SIM_US(7)});
    for (uint32_t i = 0; i < 3; i++)
        send(&b, i, 1000); // 800 ns each
    run_until(&b, ALB_SIM_NS(1200));
    alb_sim_link_set_rate(&b.link, 1000000000, b.queue.now);
    assert_int_equal(alb_sim_link_queued_bytes(&b.link, b.queue.now), 1500);
    send(&b, 3, 1000);
    drain(&b);
    static const alb_sim_time gone_ns[] = {800, 1200 + 4000, 1200 + 12000, 1200 + 20000};
    for (uint32_t i = 0; i < ALB_COUNT(gone_ns); i++) {
        assert_int_equal(b.arrivals[i].psn, i);
        assert_int_equal(b.arrivals[i].at, ALB_SIM_NS(gone_ns[i]) + ALB_SIM_US(7));
    }
    bench_fini(&b);
}

// At a bit a second: what has left when time ends arrives, and nothing behind it.
static void send__beyond_the_end_of_time_never_arrives(void **state)
{
    enum { IN_TIME = ALB_SIM_END / ALB_SIM_S(8000 * 10), ALL = IN_TIME + 20 };
    for (uint32_t goes_ahead = 0; goes_ahead < 2; goes_ahead++) {
        struct bench b;
        bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 1, .delay = ALB_SIM_US(7)});
        if (goes_ahead)
            alb_sim_link_go_ahead(&b.link, 0);
        for (uint32_t i = 0; i < ALL; i++)
            send(&b, i, 10000);
        drain(&b);
        assert_int_equal(b.count, IN_TIME);
        assert_int_equal(b.arrivals[IN_TIME - 1].at, IN_TIME * ALB_SIM_S(80000) + ALB_SIM_US(7));
        send(&b, ALL, 10000);
        assert_false(alb_sim_queue_step(&b.queue));
        alb_sim_link_fini(&b.link);
        alb_sim_queue_fini(&b.queue);
        alb_sim_packet_pool_fini(&b.pool); // with what never arrives
    }
}

static void set_rate__without_limit_empties_the_queue(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 1000000});
    for (uint32_t i = 0; i < 3; i++)
        send(&b, i, 1000);
    run_until(&b, ALB_SIM_US(10));
    alb_sim_link_set_rate(&b.link, 0, b.queue.now);
    drain(&b);
    assert_int_equal(b.count, 3);
    assert_int_equal(b.arrivals[2].at, ALB_SIM_US(10));
    bench_fini(&b);
}

static void set_delay__a_shorter_way_overtakes(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.delay = ALB_SIM_US(9)});
    send(&b, 0, 100);
    alb_sim_link_set_delay(&b.link, ALB_SIM_US(2));
    send(&b, 1, 100);
    drain(&b);
    assert_int_equal(b.arrivals[0].psn, 1);
    assert_int_equal(b.arrivals[0].at, ALB_SIM_US(2));
    assert_int_equal(b.arrivals[1].at, ALB_SIM_US(9));
    bench_fini(&b);
}

static void set_paused__holds_what_waits(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 10000000000});
    send(&b, 0, 1000); // 800 ns each
    send(&b, 1, 1000);
    alb_sim_link_set_paused(&b.link, ALB_SIM_PAUSED_BY_PEER, true, 0);
    alb_sim_link_set_paused(&b.link, ALB_SIM_PAUSED_BY_FAULT, true, 0);
    run_until(&b, ALB_SIM_US(2));
    assert_int_equal(b.count, 1); // it was on the wire
    alb_sim_link_set_paused(&b.link, ALB_SIM_PAUSED_BY_PEER, false, b.queue.now);
    run_until(&b, ALB_SIM_US(3));
    assert_int_equal(b.count, 1);
    alb_sim_link_set_paused(&b.link, ALB_SIM_PAUSED_BY_FAULT, false, b.queue.now);
    drain(&b);
    assert_int_equal(b.arrivals[1].at, ALB_SIM_NS(3800));
    assert_int_equal(b.link.stats.held_up, ALB_SIM_NS(2200));
    assert_int_equal(b.link.stats.pauses, 2);
    bench_fini(&b);
}

static void credit__nothing_leaves_beyond_it(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 10000000000});
    alb_sim_link_limit_credit(&b.link, 2500);
    for (uint32_t i = 0; i < 4; i++)
        send(&b, i, 1000);
    drain(&b);
    assert_int_equal(b.count, 2);
    alb_sim_link_add_credit(&b.link, 499, b.queue.now);
    assert_int_equal(b.link.waiting_bytes, 2000);
    alb_sim_link_add_credit(&b.link, 1, b.queue.now);
    drain(&b);
    assert_int_equal(b.count, 3);
    bench_fini(&b); // one still waits
}

static void marks__by_chance_between_two_lengths(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 1000000000,
                                                 .mark_above_bytes = 1000,
                                                 .mark_always_bytes = 2000000,
                                                 .mark_per_million = 500000,
                                                 .faults_seed = 3});
    for (uint32_t i = 0; i < 3000; i++)
        send(&b, i, 1000);
    drain(&b);
    uint32_t marked[3] = {0};
    for (uint32_t i = 0; i < 3000; i++)
        marked[i / 1000] += b.arrivals[i].traffic_class == ALB_ECN_CE;
    assert_in_range(marked[0], 80, 180);  // from 0 to 25 %
    assert_in_range(marked[1], 310, 440); // from 25 to 50 %
    assert_int_equal(marked[2], 1000);
    bench_fini(&b);
}

static void set_payload_max__loses_what_is_longer(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){0});
    uint32_t length = alb_opcode_info(ALB_RC_ACK)->header_bytes + ALB_ICRC_BYTES;
    send(&b, 0, 1000);
    alb_sim_link_set_payload_max(&b.link, length - 1);
    send(&b, 1, 1000);
    alb_sim_link_set_payload_max(&b.link, length);
    send(&b, 2, 1000);
    drain(&b);
    assert_int_equal(b.count, 2);
    assert_int_equal(b.arrivals[1].psn, 2);
    assert_int_equal(b.link.stats.too_long, 1);
    bench_fini(&b);
}

static void set_dead__loses_until_it_is_mended(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.delay = ALB_SIM_US(5)});
    send(&b, 0, 100);
    run_until(&b, ALB_SIM_US(2));
    send(&b, 1, 100);
    alb_sim_link_set_dead(&b.link, true);
    run_until(&b, ALB_SIM_US(6)); // number 0 would have come, and number 1 is on its way
    send(&b, 2, 100);
    alb_sim_link_set_dead(&b.link, false);
    send(&b, 3, 100);
    drain(&b);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.arrivals[0].psn, 3);
    assert_int_equal(b.link.stats.lost, 3);
    bench_fini(&b);
}

// 100 us a packet: number 0 has left when the link dies, number 2 leaves when it is back.
static void set_dead__loses_what_leaves_meanwhile(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 100000000, .delay = ALB_SIM_US(1)});
    for (alb_psn psn = 0; psn < 3; psn++)
        send(&b, psn, 1250);
    run_until(&b, ALB_SIM_US(120));
    alb_sim_link_set_dead(&b.link, true);
    run_until(&b, ALB_SIM_US(190)); // number 1 is on the wire
    alb_sim_link_set_dead(&b.link, false);
    drain(&b);
    assert_int_equal(b.count, 2);
    assert_int_equal(b.arrivals[0].psn, 0);
    assert_int_equal(b.arrivals[1].psn, 2);
    assert_int_equal(b.link.stats.lost, 1);
    bench_fini(&b);
}

// However often it dies while a packet is under way.
static void set_dead__many_times(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 100000000, .delay = ALB_SIM_US(900)});
    for (uint32_t i = 0; i < 255; i++) {
        if (i % 5 == 0)
            send(&b, i, 1250);
        run_until(&b, ALB_SIM_US(120 * (i + 1)));
        alb_sim_link_set_dead(&b.link, true);
        alb_sim_link_set_dead(&b.link, false);
    }
    drain(&b);
    assert_int_equal(b.count, 0);
    assert_int_equal(b.link.stats.lost, 51);
    bench_fini(&b);
}

// By what is under way when it dies, not by when that would arrive.
static void set_dead__with_another_delay(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 100000000, .delay = ALB_SIM_MS(1)});
    send(&b, 0, 1250);
    run_until(&b, ALB_SIM_US(120));
    alb_sim_link_set_dead(&b.link, true);
    run_until(&b, ALB_SIM_US(130));
    alb_sim_link_set_dead(&b.link, false);
    alb_sim_link_set_delay(&b.link, ALB_SIM_US(1));
    send(&b, 1, 1250); // arrives long before number 0 would have
    drain(&b);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.arrivals[0].psn, 1);
    assert_int_equal(b.link.stats.lost, 1);
    bench_fini(&b);
}

// What waits while faults begin meets them, and what they leave behind waiting does not.
static void set_faults__befall_what_is_on_the_wire_then(void **state)
{
    struct bench b;
    const struct alb_faults_spec none = {.loss = 0}, all = {.loss = 1000000000};
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 100000000});
    for (alb_psn psn = 0; psn < 4; psn++)
        send(&b, psn, 1250);
    run_until(&b, ALB_SIM_US(150)); // number 1 has left whole
    alb_sim_link_set_faults(&b.link, &all, 1);
    run_until(&b, ALB_SIM_US(250)); // and number 2 has not
    alb_sim_link_set_faults(&b.link, &none, 1);
    drain(&b);
    assert_int_equal(b.count, 3);
    assert_int_equal(b.arrivals[1].psn, 1);
    assert_int_equal(b.arrivals[2].psn, 3);
    assert_int_equal(b.link.stats.lost, 1);
    bench_fini(&b);
}

// ---- links that go ahead --------------------------------------------------------------------------------------------

// Bursts and pauses at random, so that the queue is empty, long and full by turns.
static void send_at_random(struct bench *b, uint64_t seed)
{
    struct alb_prng prng;
    alb_prng_init(&prng, seed);
    for (uint32_t i = 0; i < 2000; i++) {
        send(b, i, 100 + (uint32_t)alb_prng_below(&prng, 4000));
        if (alb_prng_below(&prng, 4) == 0)
            run_until(b, b->queue.now + alb_prng_below(&prng, ALB_SIM_US(2)));
    }
    drain(b);
}

static void go_ahead__packets_arrive_as_they_would_by_steps(void **state)
{
    static const uint64_t rates[] = {100000000000, 7000000000}; // of the second no byte takes whole picoseconds
    for (uint32_t i = 0; i < ALB_COUNT(rates); i++) {
        struct bench steps, ahead;
        struct alb_sim_link_config config = {.bits_per_s = rates[i],
                                             .delay = ALB_SIM_NS(700),
                                             .mark_above_bytes = 8000,
                                             .mark_always_bytes = 30000,
                                             .mark_per_million = 500000,
                                             .queue_bytes_max = 40000};
        bench_init(&steps, &config);
        bench_init(&ahead, &config);
        alb_sim_link_go_ahead(&ahead.link, 40000);
        send_at_random(&steps, i + 1);
        send_at_random(&ahead, i + 1);
        assert_true(ahead.count > 100 && ahead.link.stats.overflowed > 0 && ahead.link.stats.marked > 0);
        assert_memory_equal(&ahead.arrivals, &steps.arrivals, sizeof(steps.arrivals));
        assert_memory_equal(&ahead.link.stats, &steps.link.stats, sizeof(steps.link.stats));
        assert_int_equal(ahead.queue.fired, ahead.count); // and none besides
        bench_fini(&steps);
        bench_fini(&ahead);
    }
}

static void go_ahead__changes_meet_what_comes_later(void **state)
{
    struct bench b;
    bench_init(&b, &(struct alb_sim_link_config){.bits_per_s = 10000000000});
    alb_sim_link_go_ahead(&b.link, 0);
    for (uint32_t i = 0; i < 3; i++)
        send(&b, i, 1000); // 800 ns each
    run_until(&b, ALB_SIM_NS(1200));
    alb_sim_link_set_rate(&b.link, 1000000000, b.queue.now);
    send(&b, 3, 1000);
    run_until(&b, ALB_SIM_NS(2000));
    alb_sim_link_set_paused(&b.link, ALB_SIM_PAUSED_BY_FAULT, true, b.queue.now);
    run_until(&b, ALB_SIM_NS(3000));
    alb_sim_link_set_paused(&b.link, ALB_SIM_PAUSED_BY_FAULT, false, b.queue.now);
    drain(&b);
    static const alb_sim_time gone_ns[] = {800, 1600, 2400, 3000 + 8000};
    assert_int_equal(b.count, ALB_COUNT(gone_ns));
    for (uint32_t i = 0; i < ALB_COUNT(gone_ns); i++)
        assert_int_equal(b.arrivals[i].at, ALB_SIM_NS(gone_ns[i]));
    bench_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send__takes_its_time_on_the_wire_and_on_the_way),
        cmocka_unit_test(send__queue_limit_and_marks),
        cmocka_unit_test(send__what_is_marked_is_not_marked_again),
        cmocka_unit_test(script__drops_swaps_doubles_delays_marks_and_damages),
        cmocka_unit_test(script__nobody_follows__the_held_packet_goes_on_by_itself),
        cmocka_unit_test(script__times_and_all),
        cmocka_unit_test(faults__are_counted_and_the_same_for_the_same_seed),
        cmocka_unit_test(set_rate__stretches_what_is_queued),
        cmocka_unit_test(send__beyond_the_end_of_time_never_arrives),
        cmocka_unit_test(set_rate__without_limit_empties_the_queue),
        cmocka_unit_test(set_delay__a_shorter_way_overtakes),
        cmocka_unit_test(set_paused__holds_what_waits),
        cmocka_unit_test(credit__nothing_leaves_beyond_it),
        cmocka_unit_test(marks__by_chance_between_two_lengths),
        cmocka_unit_test(set_payload_max__loses_what_is_longer),
        cmocka_unit_test(set_dead__loses_until_it_is_mended),
        cmocka_unit_test(set_dead__loses_what_leaves_meanwhile),
        cmocka_unit_test(set_dead__many_times),
        cmocka_unit_test(set_dead__with_another_delay),
        cmocka_unit_test(set_faults__befall_what_is_on_the_wire_then),
        cmocka_unit_test(go_ahead__packets_arrive_as_they_would_by_steps),
        cmocka_unit_test(go_ahead__changes_meet_what_comes_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
