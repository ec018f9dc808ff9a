// SPDX-License-Identifier: BSD-2-Clause
// CSA against attackers: packets that are forged, replayed, cut short or plain random never change what a queue pair
// does, take no memory, and are never answered with more bytes than they came with.
#include "world.h"

#include <stdlib.h>

enum {
    KB = 1024,
    TAPE_MAX = 512,
    ROUNDS = 20000,
};

// What went over the wire to B, to be played again.
struct tape {
    struct alb_sim_packet *packets[TAPE_MAX];
    uint32_t count;
};

struct bench {
    struct world *w;
    struct alb_prng prng;
    struct tape tape;
    struct alb_sim_node gate; // before A: answers to others do not come to it
    uint64_t asked_bytes;     // by strangers
    uint64_t answered_bytes;  // to them
    uint8_t *memory;          // B's, as it was
    uint64_t engine_bytes;    // that B's engine holds
};

// ---- the bench ------------------------------------------------------------------------------------------------------

static void let_through(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct bench *bench = ALB_CONTAINER_OF(node, struct bench, gate);
    struct alb_sim_host *a = bench->w->a.host;
    if (alb_addr_equals(&alb_sim_load(packet)->destination.addr, &a->addr)) {
        a->node.receive(&a->node, packet, now);
        return;
    }
    bench->answered_bytes += alb_sim_load(packet)->length;
    alb_sim_packet_put(&bench->w->pair.network.packets, packet);
}

static void record(void *context, const struct alb_sim_link *link, const struct alb_sim_packet *packet,
                   alb_sim_time now)
{
    struct bench *bench = context;
    if (bench->tape.count < TAPE_MAX)
        bench->tape.packets[bench->tape.count++] = alb_sim_packet_copy(&bench->w->pair.network.packets, packet);
}

static struct bench *new_bench(void)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct options options;
    world_transport = "csa";
    options_default(&options);
    options.path_payload_max = 1472;
    bench->w = world_new(&options);
    bench->w->a.is_log_closed = bench->w->b.is_log_closed = true;
    alb_prng_init(&bench->prng, 4);
    bench->gate.receive = let_through;
    bench->w->pair.out[B].to = &bench->gate;
    alb_sim_link_set_tap(&bench->w->pair.out[A], record, bench);
    return bench;
}

static void work_once(struct bench *bench, uint32_t id)
{
    struct world *w = bench->w;
    receive(&w->b, 9, 128 * KB, 8 * KB);
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_WRITE, id, 0, 12 * KB, 64 * KB});
    stage_on(w, &w->a, w->a.qp,
             (struct work){ALB_WR_ATOMIC_FETCH_AND_ADD, id + 1, 40 * KB, 8, 32 * KB, .compare_add = 1});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_RDMA_READ, id + 2, 48 * KB, 4 * KB, 16 * KB});
    stage_on(w, &w->a, w->a.qp, (struct work){ALB_WR_SEND, id + 3, 0, 8 * KB});
    alb_sim_host_poke(w->a.host);
    run_idle(w);
    for (uint32_t i = 0; i < 4; i++)
        expect_wc(w->a.cq, id + i, ALB_WC_SUCCESS);
    expect_wc(w->b.recv_cq, 9, ALB_WC_SUCCESS);
    expect_copied(&w->a, 0, &w->b, 64 * KB, 12 * KB);
    expect_copied(&w->a, 0, &w->b, 128 * KB, 8 * KB);
}

static void remember(struct bench *bench)
{
    struct end *b = &bench->w->b;
    bench->memory = malloc(MEMORY);
    memcpy(bench->memory, b->memory, MEMORY);
    bench->engine_bytes = b->host->memory.bytes;
    receive(b, 99, 192 * KB, KB); // a trap
}

static void check_nothing_happened(struct bench *bench)
{
    struct world *w = bench->w;
    assert_memory_equal(bench->memory, w->b.memory, MEMORY);
    assert_int_equal(w->b.host->memory.bytes, bench->engine_bytes);
    assert_int_equal(w->b.host->memory.data_path_calls, 0);
    expect_none(w->a.cq);
    expect_none(w->b.cq);
    expect_none(w->b.recv_cq);
    expect_state(&w->a, ALB_QPS_RTS);
    expect_state(&w->b, ALB_QPS_RTS);
    assert_true(bench->answered_bytes <= bench->asked_bytes);
}

static void free_bench(struct bench *bench)
{
    struct world *w = bench->w;
    check_nothing_happened(bench);
    // And the existing peer goes on as before.
    post(w, &w->a, (struct work){ALB_WR_SEND, 50, 0, KB});
    run_idle(w);
    expect_wc(w->a.cq, 50, ALB_WC_SUCCESS);
    expect_wc(w->b.recv_cq, 99, ALB_WC_SUCCESS);
    work_once(bench, 60);
    free(bench->memory);
    world_free(w);
    free(bench);
}

static uint32_t below(struct bench *bench, uint32_t n)
{
    return (uint32_t)alb_prng_below(&bench->prng, n);
}

static void seal(struct alb_sim_packet *packet)
{
    struct alb_sim_load *load = alb_sim_load(packet);
    struct alb_icrc_prefix prefix;
    struct iovec iov = {load->bytes, load->length};
    alb_icrc_prefix_init(&prefix, &load->source, &load->destination);
    uint32_t crc = alb_icrc_compute(&prefix, UINT16_MAX, &iov, load->length - ALB_ICRC_BYTES);
    for (uint32_t i = 0; i < ALB_ICRC_BYTES; i++)
        load->bytes[load->length - ALB_ICRC_BYTES + i] = (uint8_t)(crc >> 8 * i);
}

static struct alb_sim_packet *new_packet(struct bench *bench)
{
    struct alb_sim_packet *packet =
        alb_sim_packet_get(&bench->w->pair.network.packets, bench->w->pair.network.packets.packet_bytes_max);
    struct alb_sim_load *load = alb_sim_load(packet);
    load->source = (struct alb_endpoint){bench->w->a.host->addr, bench->w->a.host->port};
    load->destination = (struct alb_endpoint){bench->w->b.host->addr, bench->w->b.host->port};
    packet->path = 0;
    packet->traffic_class = ALB_ECN_ECT0;
    packet->hop_limit = 64;
    packet->wire_bytes = 100;
    load->length = load->stored_bytes = 0;
    return packet;
}

// Arrives at B, sealed; what it may be answered with counts if it is a stranger's.
static void give(struct bench *bench, struct alb_sim_packet *packet)
{
    struct alb_sim_load *load = alb_sim_load(packet);
    struct alb_sim_host *b = bench->w->b.host;
    load->stored_bytes = load->length;
    if (load->length >= ALB_BTH_BYTES + ALB_ICRC_BYTES)
        seal(packet);
    if (!alb_addr_equals(&load->source.addr, &bench->w->a.host->addr))
        bench->asked_bytes += load->length;
    b->node.receive(&b->node, packet, now_of(bench->w));
}

static void from_stranger(struct bench *bench, struct alb_sim_packet *packet)
{
    struct alb_sim_load *load = alb_sim_load(packet);
    load->source.addr =
        alb_addr_from_ipv4((const uint8_t[4]){10, 9, (uint8_t)below(bench, 256), (uint8_t)below(bench, 256)});
    load->source.port = (uint16_t)(1024 + below(bench, 60000));
}

// ---- replays --------------------------------------------------------------------------------------------------------

static void replay(struct bench *bench, uint32_t i, bool as_stranger)
{
    struct alb_sim_packet *packet = alb_sim_packet_copy(&bench->w->pair.network.packets, bench->tape.packets[i]);
    if (as_stranger)
        from_stranger(bench, packet);
    give(bench, packet);
}

static void begin(struct bench *bench)
{
    work_once(bench, 1);
    work_once(bench, 11);
    alb_sim_link_set_tap(&bench->w->pair.out[A], NULL, NULL);
    assert_true(bench->tape.count > 20);
    fill(&bench->w->b, 77); // what is written again would show
    remember(bench);
}

static void erase_tape(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->tape.count; i++)
        alb_sim_packet_put(&bench->w->pair.network.packets, bench->tape.packets[i]);
}

static void replayed__in_any_order__no_effect(void **state)
{
    struct bench *bench = new_bench();
    begin(bench);
    for (uint32_t i = 0; i < bench->tape.count; i++)
        replay(bench, i, false);
    for (uint32_t i = 0; i < ROUNDS / 10; i++)
        replay(bench, below(bench, bench->tape.count), false);
    run_idle(bench->w);
    erase_tape(bench);
    free_bench(bench);
}

static void replayed__from_elsewhere__no_effect(void **state)
{
    struct bench *bench = new_bench();
    begin(bench);
    for (uint32_t i = 0; i < ROUNDS / 10; i++)
        replay(bench, below(bench, bench->tape.count), true);
    run_idle(bench->w);
    erase_tape(bench);
    free_bench(bench);
}

// Each recorded packet with some of its bytes changed, by a sender that does not know the epochs: theirs are always
// changed. Sealed anew.
static void recorded_and_changed__no_effect(void **state)
{
    struct bench *bench = new_bench();
    begin(bench);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct alb_sim_packet *packet =
            alb_sim_packet_copy(&bench->w->pair.network.packets, bench->tape.packets[below(bench, bench->tape.count)]);
        struct alb_sim_load *load = alb_sim_load(packet);
        for (uint32_t n = below(bench, 4); n > 0; n--)
            load->bytes[below(bench, load->length - ALB_ICRC_BYTES)] = (uint8_t)alb_prng_u64(&bench->prng);
        load->bytes[ALB_BTH_BYTES + 8 + 4 + below(bench, 8)] ^= (uint8_t)(1 + below(bench, 255));
        if (below(bench, 4) == 0)
            load->length = ALB_ICRC_BYTES + below(bench, load->length - ALB_ICRC_BYTES) / 4 * 4;
        if (below(bench, 2))
            from_stranger(bench, packet);
        give(bench, packet);
    }
    run_idle(bench->w);
    erase_tape(bench);
    free_bench(bench);
}

// ---- forgeries ------------------------------------------------------------------------------------------------------

static struct alb_csa_segment random_segment(struct bench *bench)
{
    static const uint8_t ops[] = {ALB_CSA_SEND,     ALB_CSA_SEND_IMM,  ALB_CSA_SEND_INV,
                                  ALB_CSA_WRITE,    ALB_CSA_WRITE_IMM, ALB_CSA_READ,
                                  ALB_CSA_CMP_SWAP, ALB_CSA_FETCH_ADD, ALB_CSA_ATOMIC_WRITE};
    const struct world *w = bench->w;
    return (struct alb_csa_segment){
        .op = ops[below(bench, ALB_COUNT(ops))],
        .flags = ALB_CSA_LAST,
        .dest_qpn = alb_qp_number(w->b.qp),
        .psn = below(bench, 2) ? below(bench, 1 << 24) : 1000 + below(bench, 40),
        .total_bytes = 8,
        .va = (uintptr_t)w->b.memory + 64 * KB,
        .rkey = alb_region_key(w->b.mr), // the attacker has seen it
        .operand = 1,
    };
}

// Well-formed, for the right queue pair, with a right key; but not from its peer.
static struct alb_sim_packet *forged(struct bench *bench)
{
    struct alb_sim_packet *packet = new_packet(bench);
    struct alb_sim_load *load = alb_sim_load(packet);
    struct alb_csa_segment segment = random_segment(bench);
    struct alb_csa_header header = {
        .dest_slot = 0,
        .source_slot = below(bench, 2) * below(bench, 256),
        .sequence = below(bench, 1 << 24),
        .source_epoch = 1 + (uint32_t)alb_prng_u64(&bench->prng) / 2,
        .destination_epoch = below(bench, 2) * (uint32_t)alb_prng_u64(&bench->prng),
        .path = (uint8_t)(below(bench, 2) * below(bench, 256)),
    };
    bool has_payload = segment.op != ALB_CSA_READ && segment.op != ALB_CSA_CMP_SWAP && segment.op != ALB_CSA_FETCH_ADD;
    segment.payload_bytes = has_payload ? 8 : 0;
    alb_csa_encode(&header, load->bytes);
    load->length = ALB_CSA_OUTER_BYTES;
    load->length += alb_csa_encode_segment(ALB_CSA_REQUEST, &segment, load->bytes + load->length);
    memset(load->bytes + load->length, 0xee, segment.payload_bytes + ALB_ICRC_BYTES);
    load->length += segment.payload_bytes + ALB_ICRC_BYTES;
    return packet;
}

static void forged_by_strangers__no_effect(void **state)
{
    struct bench *bench = new_bench();
    alb_sim_link_set_tap(&bench->w->pair.out[A], NULL, NULL);
    remember(bench);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct alb_sim_packet *packet = forged(bench);
        from_stranger(bench, packet);
        give(bench, packet);
    }
    run_idle(bench->w);
    free_bench(bench);
}

// The peer's address is no secret, the epochs are.
static void forged_with_the_peers_address__no_effect(void **state)
{
    struct bench *bench = new_bench();
    begin(bench);
    for (uint32_t i = 0; i < ROUNDS; i++)
        give(bench, forged(bench));
    run_idle(bench->w);
    erase_tape(bench);
    free_bench(bench);
}

static uint32_t put_control(struct bench *bench, uint8_t *at)
{
    uint8_t cookie[ALB_CSA_COOKIE_BYTES];
    for (uint32_t i = 0; i < sizeof(cookie); i++)
        cookie[i] = (uint8_t)alb_prng_u64(&bench->prng);
    switch (below(bench, 8)) {
    case 0:
        return alb_csa_encode_hello(NULL, at);
    case 1:
        return alb_csa_encode_hello(cookie, at);
    case 2:
        return alb_csa_encode_cookie(cookie, at);
    case 3:
        return alb_csa_encode_reset(ALB_CSA_RESET_EPOCH, (uint32_t)alb_prng_u64(&bench->prng), at);
    case 4:
        return alb_csa_encode_cnp(at);
    case 5:
        return alb_csa_encode_probe(&(struct alb_csa_probe){.dest_qpn = alb_qp_number(bench->w->b.qp)}, at);
    case 6:
        return alb_csa_encode_report(&(struct alb_csa_report){.qpn = alb_qp_number(bench->w->b.qp),
                                                              .syndrome = (uint8_t)below(bench, 256),
                                                              .cumulative = below(bench, 1 << 24)},
                                     at);
    default:
        return alb_csa_encode_ping(0, at);
    }
}

static void control_by_strangers__never_answered_with_more(void **state)
{
    struct bench *bench = new_bench();
    begin(bench);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct alb_sim_packet *packet = new_packet(bench);
        struct alb_sim_load *load = alb_sim_load(packet);
        struct alb_csa_header header = {
            .source_epoch = 1 + (uint32_t)alb_prng_u64(&bench->prng) / 2,
            .destination_epoch = below(bench, 2) * (uint32_t)alb_prng_u64(&bench->prng),
        };
        alb_csa_encode(&header, load->bytes);
        load->length = ALB_CSA_OUTER_BYTES;
        for (uint32_t n = 1 + below(bench, 3); n > 0; n--)
            load->length += put_control(bench, load->bytes + load->length);
        load->length += ALB_ICRC_BYTES;
        if (below(bench, 4))
            from_stranger(bench, packet);
        uint64_t answered = bench->answered_bytes, asked = bench->asked_bytes;
        give(bench, packet);
        run_for(bench->w, ALB_SIM_US(below(bench, 20)));
        assert_true(bench->answered_bytes - answered <= bench->asked_bytes - asked ||
                    bench->answered_bytes <= bench->asked_bytes);
    }
    run_idle(bench->w);
    erase_tape(bench);
    free_bench(bench);
}

static void random_bytes__no_effect(void **state)
{
    struct bench *bench = new_bench();
    begin(bench);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct alb_sim_packet *packet = new_packet(bench);
        struct alb_sim_load *load = alb_sim_load(packet);
        load->length = ALB_ICRC_BYTES + 4 * below(bench, 300);
        for (uint32_t k = 0; k < load->length; k++)
            load->bytes[k] = (uint8_t)alb_prng_u64(&bench->prng);
        if (below(bench, 2) && load->length > ALB_CSA_OUTER_BYTES + ALB_ICRC_BYTES)
            alb_csa_encode(&(struct alb_csa_header){.source_epoch = 5}, load->bytes);
        if (below(bench, 2))
            from_stranger(bench, packet);
        give(bench, packet);
    }
    run_idle(bench->w);
    erase_tape(bench);
    free_bench(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replayed__in_any_order__no_effect),
        cmocka_unit_test(replayed__from_elsewhere__no_effect),
        cmocka_unit_test(recorded_and_changed__no_effect),
        cmocka_unit_test(forged_by_strangers__no_effect),
        cmocka_unit_test(forged_with_the_peers_address__no_effect),
        cmocka_unit_test(control_by_strangers__never_answered_with_more),
        cmocka_unit_test(random_bytes__no_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
