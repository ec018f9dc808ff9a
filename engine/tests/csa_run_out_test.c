// SPDX-License-Identifier: BSD-2-Clause
// What leaves in runs is what leaves packet by packet: two pairs do the same, one of them with corruption on demand,
// of which none is demanded, and which has no runs.
#include "base/corruption.h"
#include "engine/tests/reflect_pair.h"

struct both {
    struct csa_pair *c[2];
};

static void take_packet_by_packet(struct alb_engine_config *config)
{
    static const struct alb_corruption_spec spec;
    static struct alb_corruption none;
    static uint64_t counts[ALB_CORRUPT_PLACES];
    alb_corruption_init(&none, &spec, 1, counts);
    config->corruption = &none;
}

static void cut_evenly(struct alb_engine_config *config)
{
    config->sends_bursts = true;
}

static void cut_evenly_packet_by_packet(struct alb_engine_config *config)
{
    cut_evenly(config);
    take_packet_by_packet(config);
}

static void begin_with(struct both *both, void (*change)(struct alb_engine_config *config),
                       void (*change_packet_by_packet)(struct alb_engine_config *config))
{
    for (int i = 0; i < 2; i++) {
        both->c[i] = csa_pair_new(i == 1 ? change_packet_by_packet : change, NULL);
        csa_pair_greet(both->c[i]);
        assert_int_equal(alb_qp_txn_enable(both->c[i]->qps[0], REFLECT_PAIR_IN_FLIGHT), 0);
    }
}

static void begin(struct both *both)
{
    begin_with(both, NULL, take_packet_by_packet);
}

static void end(struct both *both)
{
    for (int i = 0; i < 2; i++)
        csa_pair_free(both->c[i]);
}

// Both send what they have on that side; returns how many packets that are.
static uint32_t send(const struct both *both, int side)
{
    uint32_t count = pair_send(both->c[0]->pair, side);
    assert_int_equal(pair_send(both->c[1]->pair, side), count);
    for (uint32_t i = 0; i < count; i++)
        csa_pair_assert_same_packet(both->c[0], both->c[1], side, i);
    assert_memory_equal(&both->c[0]->pair->hosts[side].stats.sum, &both->c[1]->pair->hosts[side].stats.sum,
                        sizeof(both->c[0]->pair->hosts[side].stats.sum));
    assert_int_equal(csa_pair_live(both->c[0], side)->inflight_bytes, csa_pair_live(both->c[1], side)->inflight_bytes);
    return count;
}

static void ask(const struct both *both, enum alb_wr_opcode opcode, uint32_t flags, uint32_t length)
{
    for (int i = 0; i < 2; i++)
        csa_pair_ask(both->c[i], opcode, 1, flags, length);
}

static void csa_run_out__a_message(void **state)
{
    struct both both;
    begin(&both);
    const struct alb_stats before = both.c[0]->qps[0]->stats->stats;
    ask(&both, ALB_WR_RDMA_WRITE, ALB_SEND_SIGNALED, 40 * CSA_PAIR_SEGMENT + 4);
    assert_int_equal(send(&both, 0), 41);
    for (int i = 0; i < 2; i++) {
        const struct alb_stats *stats = &both.c[i]->qps[0]->stats->stats;
        assert_int_equal(stats->counter[ALB_STAT_sent_pkts] - before.counter[ALB_STAT_sent_pkts], 41);
        assert_int_equal(stats->counter[ALB_STAT_sent_bytes] - before.counter[ALB_STAT_sent_bytes],
                         40 * CSA_PAIR_SEGMENT + 4);
        pair_settle(both.c[i]->pair);
        csa_pair_expect(both.c[i], 0, 1, ALB_WC_SUCCESS);
    }
    end(&both);
}

static void propose(const struct both *both, bool is_in_place, const uint32_t *lengths, uint32_t count)
{
    for (int i = 0; i < 2; i++) {
        struct reflect_made made;
        reflect_pair_make(both->c[i], &made, 1, 0, lengths[0]);
        for (uint32_t k = 1; k < count; k++)
            reflect_pair_add(both->c[i], &made, k * CSA_PAIR_ENTRY_BYTES_MAX, lengths[k]);
        made.wr.in_place = is_in_place;
        reflect_pair_post(both->c[i], &made);
    }
}

static void csa_run_out__a_transaction(void **state)
{
    static const uint32_t lengths[] = {20 * CSA_PAIR_SEGMENT, 10 * CSA_PAIR_SEGMENT + 4};
    for (int in_place = 0; in_place < 2; in_place++) {
        struct both both;
        begin(&both);
        propose(&both, in_place, lengths, ALB_COUNT(lengths));
        assert_true(send(&both, 0) > 30);
        for (int i = 0; i < 2; i++) {
            pair_settle(both.c[i]->pair);
            csa_pair_expect(both.c[i], 0, 1, ALB_WC_SUCCESS);
            assert_true(reflect_pair_is_exposed(both.c[i], 0, lengths[0]));
        }
        end(&both);
    }
}

static void csa_run_out__an_answer(void **state)
{
    struct both both;
    begin(&both);
    ask(&both, ALB_WR_RDMA_READ, ALB_SEND_SIGNALED, 40 * CSA_PAIR_ANSWER_SEGMENT + 4);
    assert_int_equal(send(&both, 0), 1);
    for (int i = 0; i < 2; i++)
        pair_deliver_all(both.c[i]->pair, 0);
    assert_int_equal(send(&both, 1), 41);
    for (int i = 0; i < 2; i++) {
        pair_settle(both.c[i]->pair);
        csa_pair_expect(both.c[i], 0, 1, ALB_WC_SUCCESS);
    }
    end(&both);
}

// A run ends where an entry does.
static void csa_run_out__a_message_of_several_entries(void **state)
{
    static const uint32_t lengths[] = {7 * CSA_PAIR_SEGMENT, 12 * CSA_PAIR_SEGMENT + 100, 300, 8 * CSA_PAIR_SEGMENT};
    struct both both;
    begin(&both);
    for (int i = 0; i < 2; i++)
        csa_pair_ask_in_entries(both.c[i], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, lengths, ALB_COUNT(lengths));
    assert_int_equal(send(&both, 0), 28);
    for (int i = 0; i < 2; i++) {
        pair_settle(both.c[i]->pair);
        csa_pair_expect(both.c[i], 0, 1, ALB_WC_SUCCESS);
    }
    assert_memory_equal(both.c[0]->pair->hosts[1].memory, both.c[1]->pair->hosts[1].memory, PAIR_MEMORY_BYTES);
    end(&both);
}

static void ask_for_something(const struct both *both, struct alb_prng *prng)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_RDMA_READ, ALB_WR_SEND, ALB_WR_TXN_WRITE};
    enum alb_wr_opcode opcode = opcodes[alb_prng_below(prng, ALB_COUNT(opcodes))];
    uint32_t lengths[4], count = 1 + alb_prng_below(prng, ALB_COUNT(lengths));
    for (uint32_t i = 0; i < count; i++)
        lengths[i] = alb_prng_below(prng, 30 * CSA_PAIR_SEGMENT / count);
    if (opcode == ALB_WR_TXN_WRITE) {
        propose(both, alb_prng_below(prng, 2), lengths, count);
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (opcode == ALB_WR_SEND)
            assert_int_equal(pair_receive(both->c[i]->pair, both->c[i]->qps[1], 2, 0, 30 * CSA_PAIR_SEGMENT), 0);
        csa_pair_ask_in_entries(both->c[i], opcode, 1, ALB_SEND_SIGNALED, lengths, count);
    }
}

static void arrive_or_not(const struct both *both, int side, uint32_t count, uint32_t losses, struct alb_prng *prng)
{
    for (uint32_t i = 0; i < count; i++) {
        bool is_lost = losses > 0 && alb_prng_below(prng, 20) < losses;
        for (int k = 0; k < 2; k++)
            (is_lost ? pair_lose : pair_deliver)(both->c[k]->pair, side);
    }
}

static void forget_receives(struct csa_pair *c)
{
    struct alb_wc wc;
    while (pair_poll(c->pair, 1, &wc))
        assert_int_equal(wc.status, ALB_WC_SUCCESS);
}

// A transaction may find its place claimed by another one, or its bytes changed by a READ, then in both pairs.
static void expect_the_same(const struct both *both)
{
    struct alb_wc wcs[2];
    for (int k = 0; k < 2; k++)
        assert_true(pair_poll(both->c[k]->pair, 0, &wcs[k]));
    assert_int_equal(wcs[0].status, wcs[1].status);
    assert_int_equal(wcs[0].vendor_err, wcs[1].vendor_err);
    assert_true(wcs[0].status == ALB_WC_SUCCESS || wcs[0].status == ALB_WC_REM_ABORT_ERR);
}

// Several of any length and kind, with losses and repetitions, until all are complete.
static void try_many(uint64_t seed)
{
    struct alb_prng prng;
    struct both both;
    alb_prng_init(&prng, seed);
    if (seed % 2 == 0)
        begin(&both);
    else
        begin_with(&both, cut_evenly, cut_evenly_packet_by_packet);
    uint32_t requests = 1 + alb_prng_below(&prng, 4), losses = alb_prng_below(&prng, 3);
    for (uint32_t i = 0; i < requests; i++)
        ask_for_something(&both, &prng);
    for (uint32_t steps = 0; steps < 100; steps++) {
        for (int side = 0; side < 2; side++)
            arrive_or_not(&both, side, send(&both, side), losses, &prng);
        for (int k = 0; k < 2; k++)
            pair_pass(both.c[k]->pair, 200 * ALB_NS_PER_US);
    }
    for (uint32_t i = 0; i < requests; i++)
        expect_the_same(&both);
    for (int k = 0; k < 2; k++)
        forget_receives(both.c[k]);
    for (int side = 0; side < 2; side++)
        assert_memory_equal(both.c[0]->pair->hosts[side].memory, both.c[1]->pair->hosts[side].memory,
                            PAIR_MEMORY_BYTES);
    end(&both);
}

static void csa_run_out__many_messages_with_losses(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++)
        try_many(seed);
}

// A key that covers the message's first half only, as when the region was changed since: the run does not begin, and
// the request fails where it would without.
static void csa_run_out__a_key_that_ends(void **state)
{
    struct both both;
    begin(&both);
    for (int i = 0; i < 2; i++) {
        csa_pair_ask(both.c[i], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8 * CSA_PAIR_SEGMENT);
        // Taken up, but not sent: one packet's window is all there is.
        struct alb_assoc_live *live = csa_pair_live(both.c[i], 0);
        live->congestion.window_bytes = 2 * CSA_PAIR_CHARGE;
    }
    assert_int_equal(send(&both, 0), 2);
    for (int i = 0; i < 2; i++) {
        both.c[i]->pair->hosts[0].mr->length = 4 * CSA_PAIR_SEGMENT;
        csa_pair_live(both.c[i], 0)->congestion.window_bytes = 64 * CSA_PAIR_CHARGE;
        pair_deliver_all(both.c[i]->pair, 0);
        pair_send(both.c[i]->pair, 1);
        pair_deliver_all(both.c[i]->pair, 1);
    }
    assert_int_equal(send(&both, 0), 2);
    for (int i = 0; i < 2; i++) {
        csa_pair_expect(both.c[i], 0, 1, ALB_WC_LOC_PROT_ERR);
        both.c[i]->pair->hosts[0].mr->length = PAIR_MEMORY_BYTES;
    }
    end(&both);
}

// Likewise of an answer: it is reported in the same place.
static void csa_run_out__an_answer_whose_memory_goes(void **state)
{
    struct both both;
    begin(&both);
    ask(&both, ALB_WR_RDMA_READ, ALB_SEND_SIGNALED, 8 * CSA_PAIR_ANSWER_SEGMENT);
    assert_int_equal(send(&both, 0), 1);
    for (int i = 0; i < 2; i++) {
        csa_pair_live(both.c[i], 1)->congestion.window_bytes = 2 * CSA_PAIR_CHARGE;
        pair_deliver_all(both.c[i]->pair, 0);
    }
    assert_in_range(send(&both, 1), 1, 2);
    for (int i = 0; i < 2; i++) {
        both.c[i]->pair->hosts[1].mr->length = 4 * CSA_PAIR_ANSWER_SEGMENT;
        csa_pair_live(both.c[i], 1)->congestion.window_bytes = 64 * CSA_PAIR_CHARGE;
        pair_deliver_all(both.c[i]->pair, 1);
        pair_send(both.c[i]->pair, 0);
        pair_deliver_all(both.c[i]->pair, 0);
    }
    assert_int_not_equal(send(&both, 1), 0);
    for (int i = 0; i < 2; i++) {
        both.c[i]->pair->hosts[1].mr->length = PAIR_MEMORY_BYTES;
        pair_settle(both.c[i]->pair);
        csa_pair_expect(both.c[i], 0, 1, ALB_WC_REM_ACCESS_ERR);
    }
    end(&both);
}

// What has left since in packets as long as one that is doubted, and has arrived, ends the doubt.
static void csa_run_out__packets_end_a_doubt_of_their_size(void **state)
{
    struct both both;
    begin(&both);
    for (int i = 0; i < 2; i++) {
        struct csa_pair *c = both.c[i];
        struct alb_assoc_live *live = csa_pair_live(c, 0);
        alb_mtu_suspect(live, c->pair->now);
        assert_non_null(live->mtu_search);
        pair_pass(c->pair, ALB_NS_PER_US);
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 20 * CSA_PAIR_SEGMENT);
    }
    send(&both, 0);
    for (int i = 0; i < 2; i++) { // all but the first segment have arrived
        pair_lose(both.c[i]->pair, 0);
        csa_pair_arrive_report(both.c[i], 1, 1000, 1, 0x3fe, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
        assert_int_equal(csa_pair_state(both.c[i], 5), ALB_SENT_HELD);
        assert_null(csa_pair_live(both.c[i], 0)->mtu_search);
    }
    end(&both);
}

// ---- turns ----------------------------------------------------------------------------------------------------------

enum { TURNS_QPS = 3, TURN = 16 };

// As many queue pairs of one pair, each with a message of so many segments; a window that they have to share, in
// segments.
struct turns {
    struct csa_pair *c;
    struct alb_qp *qps[TURNS_QPS][2];
};

static void begin_turns_over(struct turns *t, void (*change)(struct alb_engine_config *config), uint32_t qps,
                             uint32_t segments, uint32_t window_segments)
{
    t->c = csa_pair_new(change, NULL);
    csa_pair_greet(t->c);
    csa_pair_live(t->c, 0)->congestion.window_bytes = window_segments * CSA_PAIR_CHARGE;
    for (uint32_t i = 0; i < qps; i++) {
        pair_connect(t->c->pair, ALB_QPT_RC, t->qps[i], NULL);
        assert_int_equal(
            pair_ask(t->c->pair, t->qps[i][0], ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 0, segments * CSA_PAIR_SEGMENT),
            0);
    }
}

static void begin_turns(struct turns *t, uint32_t qps, uint32_t segments, uint32_t window_segments)
{
    begin_turns_over(t, NULL, qps, segments, window_segments);
}

static void end_turns(struct turns *t, uint32_t qps)
{
    struct alb_wc wc;
    pair_settle(t->c->pair);
    for (uint32_t i = 0; i < qps; i++) {
        assert_true(pair_poll(t->c->pair, 0, &wc));
        assert_int_equal(wc.status, ALB_WC_SUCCESS);
    }
    assert_int_equal(csa_pair_stat(t->c, 0, ALB_STAT_retransmitted_pkts), 0);
    csa_pair_free(t->c);
}

// The packets from *at on are so many of that queue pair.
static void expect_turn(const struct turns *t, uint32_t *at, uint32_t qp, uint32_t packets)
{
    struct csa_seen seen;
    for (uint32_t i = 0; i < packets; i++, (*at)++) {
        csa_pair_look(t->c, 0, *at, &seen);
        assert_int_equal(seen.frames[0].segment.dest_qpn, alb_qp_number(t->qps[qp][1]));
    }
}

static void turn__is_a_run(void **state)
{
    struct turns t;
    uint32_t at = 0;
    begin_turns(&t, 2, 40, CSA_PAIR_WINDOW);
    assert_int_equal(pair_send(t.c->pair, 0), 80);
    for (uint32_t i = 0; i < 4; i++)
        expect_turn(&t, &at, i % 2, TURN);
    end_turns(&t, 2);
}

// Whom the end of a burst has cut goes on in the next one, with what was left of the turn.
static void turn__goes_on_in_the_next_burst(void **state)
{
    enum { BURST = 40 };
    struct turns t;
    uint32_t at = 0;
    begin_turns(&t, 3, BURST, CSA_PAIR_WINDOW);
    t.c->pair->hosts[0].tx.burst_segments_max = BURST;
    pair_send(t.c->pair, 0);
    expect_turn(&t, &at, 0, TURN);
    expect_turn(&t, &at, 1, TURN);
    expect_turn(&t, &at, 2, BURST - 2 * TURN);
    expect_turn(&t, &at, 2, 3 * TURN - BURST);
    expect_turn(&t, &at, 0, TURN);
    expect_turn(&t, &at, 1, TURN);
    end_turns(&t, 3);
}

// Also where there is room for the first packet of a turn only.
static void turn__goes_on_behind_its_first_packet(void **state)
{
    enum { BURST = 2 * TURN + 1 };
    struct turns t;
    uint32_t at = 0;
    begin_turns(&t, 3, BURST, CSA_PAIR_WINDOW);
    t.c->pair->hosts[0].tx.burst_segments_max = BURST;
    pair_send(t.c->pair, 0);
    expect_turn(&t, &at, 0, TURN);
    expect_turn(&t, &at, 1, TURN);
    expect_turn(&t, &at, 2, TURN);
    expect_turn(&t, &at, 0, TURN);
    end_turns(&t, 3);
}

static void turn__leaves_the_others_their_share_of_the_window(void **state)
{
    struct turns t;
    uint32_t at = 0;
    begin_turns(&t, 3, 10, 12);
    pair_send(t.c->pair, 0);
    for (uint32_t i = 0; i < 3; i++)
        expect_turn(&t, &at, i, 4);
    end_turns(&t, 3);
}

// ---- bursts ---------------------------------------------------------------------------------------------------------

static void use_paths(struct alb_engine_config *config)
{
    config->path = "adaptive";
    config->path_max = 4;
}

// How many of the next packets take one path, from *at on.
static uint32_t burst_at(const struct turns *t, uint32_t *at, uint32_t sent)
{
    struct csa_seen seen;
    csa_pair_look(t->c, 0, *at, &seen);
    uint16_t path = seen.header.path;
    uint32_t first = *at;
    for (; *at < sent; (*at)++) {
        csa_pair_look(t->c, 0, *at, &seen);
        if (seen.header.path != path)
            break;
    }
    return *at - first;
}

static void burst__has_a_whole_message(void **state)
{
    struct turns t;
    uint32_t at = 0;
    begin_turns_over(&t, use_paths, 1, 20, 20);
    uint32_t sent = pair_send(t.c->pair, 0);
    assert_int_equal(burst_at(&t, &at, sent), 20);
    end_turns(&t, 1);
}

static void burst__is_its_path_s_part_of_the_window_of_a_longer_message(void **state)
{
    struct turns t;
    uint32_t at = 0;
    begin_turns_over(&t, use_paths, 1, 200, 80);
    uint32_t sent = pair_send(t.c->pair, 0);
    assert_int_equal(sent, 80);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(burst_at(&t, &at, sent), 20);
    end_turns(&t, 1);
}

// A message that the window has room for, while another one is under way and a path is due to be tried.
static void burst__is_short_on_a_path_that_is_tried(void **state)
{
    enum { LONGEST = (ALB_PATH_TRY_BYTES + CSA_PAIR_CHARGE - 1) / CSA_PAIR_CHARGE };
    struct turns t;
    uint32_t at = 0;
    begin_turns_over(&t, use_paths, 1, 20, 80);
    struct alb_paths_out *paths = csa_pair_live(t.c, 0)->paths;
    for (uint16_t path = 1; path < 4; path++)
        alb_path_set_state(paths, path, ALB_PATH_LEFT);
    uint32_t sent = pair_send(t.c->pair, 0);
    assert_int_equal(burst_at(&t, &at, sent), 20);
    assert_int_equal(
        pair_ask(t.c->pair, t.qps[0][0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 20 * CSA_PAIR_SEGMENT), 0);
    assert_int_equal(pair_send(t.c->pair, 0), 20);
    at = 20;
    assert_in_range(burst_at(&t, &at, 40), 1, LONGEST);
    assert_int_equal(alb_path_load(paths, 1)->state, ALB_PATH_TRYING);
    end_turns(&t, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csa_run_out__a_message),
        cmocka_unit_test(csa_run_out__a_transaction),
        cmocka_unit_test(csa_run_out__an_answer),
        cmocka_unit_test(csa_run_out__a_message_of_several_entries),
        cmocka_unit_test(csa_run_out__many_messages_with_losses),
        cmocka_unit_test(csa_run_out__a_key_that_ends),
        cmocka_unit_test(csa_run_out__an_answer_whose_memory_goes),
        cmocka_unit_test(csa_run_out__packets_end_a_doubt_of_their_size),
        cmocka_unit_test(burst__has_a_whole_message),
        cmocka_unit_test(burst__is_its_path_s_part_of_the_window_of_a_longer_message),
        cmocka_unit_test(burst__is_short_on_a_path_that_is_tried),
        cmocka_unit_test(turn__is_a_run),
        cmocka_unit_test(turn__goes_on_in_the_next_burst),
        cmocka_unit_test(turn__goes_on_behind_its_first_packet),
        cmocka_unit_test(turn__leaves_the_others_their_share_of_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
