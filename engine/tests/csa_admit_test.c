// SPDX-License-Identifier: BSD-2-Clause
// Whose packets are believed. Only a sender that has read an association's packets can end it.
#include "engine/tests/csa_pair.h"

#include "base/tests/test.h"

#define STRANGER "10.66.6.6"

static struct pair *pair;
static struct alb_qp *qps[2];

static void transport_csa(struct alb_engine_config *config)
{
    assert_int_equal(alb_engine_config_transport(config, "csa"), 0);
    config->txn_staging_bytes = 256 << 10;
    config->path = "single";
    config->congestion = "fixed";
}

// Two queue pairs that have received from each other.
static int set_up(void **state)
{
    pair = pair_new(transport_csa);
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    assert_int_equal(pair_ask(pair, qps[0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 64), 0);
    pair_settle(pair);
    struct alb_wc wc;
    assert_true(pair_poll(pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    return 0;
}

static int tear_down(void **state)
{
    pair_free(pair);
    return 0;
}

static uint32_t epoch_of(int side)
{
    return alb_assoc_epoch(pair->hosts[side].engine->csa, alb_csa_of(qps[side])->assoc);
}

static uint64_t dropped(int side, enum alb_drop reason)
{
    return pair->hosts[side].stats.dropped[reason];
}

// A packet arrives at a side. from: "" is the other side's own address. frame: what stands behind the header.
static void arrive(int side, const char *from, const struct alb_csa_header *header, const uint8_t *frame,
                   uint32_t frame_bytes)
{
    uint8_t bytes[ALB_CSA_OUTER_BYTES + ALB_CSA_FRAME_MAX];
    struct alb_datagram datagram = {
        .peer = {pair->hosts[!side].addr, 40000},
        .local = {pair->hosts[side].addr, ALB_ROCE_PORT},
        .bytes = bytes,
        .length = ALB_CSA_OUTER_BYTES + frame_bytes,
    };
    if (*from)
        assert_true(alb_addr_parse(from, &datagram.peer.addr));
    alb_csa_encode(header, bytes);
    memcpy(bytes + ALB_CSA_OUTER_BYTES, frame, frame_bytes);
    alb_engine_rx(pair->hosts[side].engine, &datagram, 1, pair->now);
}

// Side 1 claims that it is not the life that side 0 talks to.
static void reset_arrives(uint32_t named_epoch, uint32_t destination_epoch)
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    const struct alb_csa_header header = {
        .dest_slot = pair->hosts[0].engine->config.slot,
        .source_slot = pair->hosts[1].engine->config.slot,
        .source_epoch = 12345,
        .destination_epoch = destination_epoch,
    };
    arrive(0, "", &header, frame, alb_csa_encode_reset(ALB_CSA_RESET_EPOCH, named_epoch, frame));
}

static void reset__names_both_epochs_or_does_nothing(void **state)
{
    static const uint32_t guesses[] = {0, 1, 0xffffffff};
    for (unsigned i = 0; i < ALB_COUNT(guesses); i++) {
        reset_arrives(epoch_of(1), guesses[i]);
        reset_arrives(guesses[i], epoch_of(0));
    }
    assert_int_equal(dropped(0, ALB_DROP_NOT_PROVEN), 2 * ALB_COUNT(guesses));
    assert_int_equal(alb_qp_current_state(qps[0]), ALB_QPS_RTS);

    reset_arrives(epoch_of(1), epoch_of(0));
    assert_int_equal(alb_qp_current_state(qps[0]), ALB_QPS_ERR);
}

// Who is a peer of both has both engines' epochs for itself, and none that they have for each other.
static void epoch__is_another_one_for_each_peer(void **state)
{
    struct alb_engine *engine = pair->hosts[0].engine;
    const struct alb_addr own = pair->hosts[0].addr, peer = pair->hosts[1].addr;
    struct alb_addr stranger;
    uint8_t slot = (uint8_t)pair->hosts[1].engine->config.slot;
    assert_true(alb_addr_parse(STRANGER, &stranger));
    assert_int_equal(alb_csa_epoch_for(engine->csa, &own, &peer, slot), epoch_of(0));
    assert_int_not_equal(alb_csa_epoch_for(engine->csa, &own, &peer, slot + 1), epoch_of(0));
    assert_int_not_equal(alb_csa_epoch_for(engine->csa, &own, &stranger, slot), epoch_of(0));
    assert_int_not_equal(alb_csa_epoch_for(engine->csa, &stranger, &peer, slot), epoch_of(0));
}

// The answer to a packet for a former life reveals nothing of use elsewhere. A sender with our epoch, but not that of
// the peer's life that we know, is not taken for the peer.
static void another_life__is_not_proven_by_our_epoch(void **state)
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    const struct alb_csa_header header = {
        .dest_slot = pair->hosts[0].engine->config.slot,
        .source_slot = pair->hosts[1].engine->config.slot,
        .source_epoch = 12345,
        .destination_epoch = epoch_of(0),
    };
    arrive(0, "", &header, frame, alb_csa_encode_ping(0, frame));
    assert_int_equal(dropped(0, ALB_DROP_NOT_PROVEN), 1);
    assert_int_equal(alb_csa_of(qps[0])->assoc->peer_epoch, epoch_of(1));
}

static void reset__does_not_tell_the_present_epoch(void **state)
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    const uint32_t guess = epoch_of(1) + 1;
    const struct alb_csa_header header = {
        .dest_slot = pair->hosts[1].engine->config.slot, .source_epoch = 777, .destination_epoch = guess};
    arrive(1, STRANGER, &header, frame, alb_csa_encode_probe(&(struct alb_csa_probe){0}, frame));
    assert_int_equal(pair_send(pair, 1), 1);

    const struct pair_packet *packet = pair_peek(pair, 1, 0);
    struct alb_csa_header answered;
    struct alb_csa_cursor cursor;
    struct alb_csa_frame answer;
    enum alb_drop drop;
    assert_int_equal(alb_csa_decode(packet->bytes, packet->datagram.length, &answered, &cursor), ALB_DROP_NONE);
    assert_true(alb_csa_next(&cursor, &answer, &drop));
    assert_int_equal(answer.type, ALB_CSA_RESET);
    assert_int_equal(answer.reset.epoch, guess);
    assert_int_equal(answered.destination_epoch, 777);
    for (uint32_t i = 0; i + 4 <= packet->datagram.length; i++) {
        uint32_t word = (uint32_t)packet->bytes[i] << 24 | (uint32_t)packet->bytes[i + 1] << 16 |
                        (uint32_t)packet->bytes[i + 2] << 8 | packet->bytes[i + 3];
        assert_int_not_equal(word, epoch_of(1));
    }
    pair_lose(pair, 1);
}

// The first packet of a stranger: a message that proves its sender, and what is said of paths behind it.
static void arrive_from_stranger(struct csa_pair *c)
{
    struct csa_made made;
    struct alb_csa_segment segment = csa_pair_write(c, 0, 0, 0, 8, 8, ALB_CSA_LAST);
    const struct alb_csa_paths paths = {.credit_bytes = 12345};
    csa_pair_make(c, 0, &made);
    made.header.destination_epoch = 0;
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, "8 bytes!");
    csa_pair_add_paths(&made, &paths);
    csa_pair_arrive(c, 0, &made);
}

static void proof__holds_for_the_whole_packet(void **state)
{
    struct csa_pair *c = *state;
    arrive_from_stranger(c);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 0);
    assert_int_equal(csa_pair_live(c, 1)->credit_bytes, 12345);
}

// There is no memory for the peer's state: nothing in the packet is taken of it, nor is it believed.
static void proof__is_none_without_memory(void **state)
{
    struct csa_pair *c = *state;
    while (alb_buddy_get(&c->engines[1]->csa->pool, ALB_BUDDY_BLOCK_BYTES_MIN))
        continue;
    arrive_from_stranger(c);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NO_RESOURCES), 1);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 1);
    assert_int_equal(c->csa[1]->assoc->peer_epoch, 0);
}

// Its frame is not believed, but it has come: or its sender would take it for lost.
static void no_proof__and_yet_counted_on_its_path(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_frame told;
    static const uint8_t ping[4] = {ALB_CSA_PING};
    csa_pair_greet(c);
    const struct alb_path_in *in = alb_assoc_path_in(csa_pair_live(c, 1), 0);
    uint32_t received = in->received;
    for (uint32_t proven = 0; proven < 2; proven++) {
        csa_pair_make(c, 0, &made);
        made.header.sequence = alb_psn_add(made.header.sequence, (int32_t)proven);
        made.header.destination_epoch *= proven;
        made.traffic_class = ALB_ECN_CE;
        csa_pair_add_bytes(&made, ping, sizeof(ping));
        csa_pair_arrive(c, 0, &made);
        assert_int_equal(in->received, received + proven + 1);
    }
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 1);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_PATHS, &told), 1);
    assert_int_equal(told.paths.entries[0].received, received + 2);
    assert_int_equal(told.paths.entries[0].marked, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reset__names_both_epochs_or_does_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(epoch__is_another_one_for_each_peer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_life__is_not_proven_by_our_epoch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reset__does_not_tell_the_present_epoch, set_up, tear_down),
        CSA_PAIR_TEST(proof__holds_for_the_whole_packet),
        CSA_PAIR_TEST(proof__is_none_without_memory),
        CSA_PAIR_TEST(no_proof__and_yet_counted_on_its_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
