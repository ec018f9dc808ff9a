// SPDX-License-Identifier: BSD-2-Clause
// Cookies: which packets get one, what it is good for, and what it is not.
#include "engine/tests/csa_pair.h"

static struct csa_pair *c;
static size_t memory_used; // by side 1, before anything has come

static size_t memory_of(int side)
{
    return alb_buddy_used(&c->engines[side]->csa->pool);
}

static int set_up(void **state)
{
    int error = csa_pair_setup((void **)&c);
    memory_used = memory_of(1);
    return error;
}

static int tear_down(void **state)
{
    void *pair = c;
    return csa_pair_teardown(&pair);
}

static uint32_t epoch_of(int side)
{
    return csa_pair_epoch(c, side);
}

static struct alb_assoc *assoc_of(int side)
{
    return c->csa[side]->assoc;
}

// The second of two messages comes while the first is on its way.
static void second_overtakes_first(void)
{
    for (uint64_t i = 1; i <= 2; i++) {
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 64);
        assert_int_equal(pair_send(c->pair, 0), 1);
    }
    pair_hurry(c->pair, 0, 1);
    pair_deliver(c->pair, 0);
    pair_send(c->pair, 1);
}

// Side 0's engine says something by itself, to whatever address.
static void arrive_frame(const char *from, uint32_t source_epoch, uint32_t destination_epoch, const uint8_t *frame,
                         uint32_t frame_bytes)
{
    struct csa_made made;
    csa_pair_make(c, 0, &made);
    made.header.source_epoch = source_epoch;
    made.header.destination_epoch = destination_epoch;
    if (*from)
        assert_true(alb_addr_parse(from, &made.peer.addr));
    csa_pair_add_bytes(&made, frame, frame_bytes);
    csa_pair_arrive(c, 0, &made);
}

static void arrive_hello(const char *from, uint32_t source_epoch, const uint8_t *cookie)
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    arrive_frame(from, source_epoch, 0, frame, alb_csa_encode_hello(cookie, frame));
}

// The cookie that side 1 gives to a life of side 0.
static void ask_for_cookie(uint32_t source_epoch, uint8_t cookie[ALB_CSA_COOKIE_BYTES])
{
    struct csa_seen seen;
    arrive_hello("", source_epoch, NULL);
    assert_int_equal(pair_send(c->pair, 1), 1);
    csa_pair_look(c, 1, 0, &seen);
    assert_int_equal(seen.frames[0].type, ALB_CSA_COOKIE);
    memcpy(cookie, seen.frames[0].hello.cookie, ALB_CSA_COOKIE_BYTES);
    pair_lose(c->pair, 1);
}

// ---- what it is for -------------------------------------------------------------------------------------------------

static void overtaken_proof__cookie_brings_the_peer_in(void **state)
{
    struct csa_seen seen;
    second_overtakes_first();
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 1);
    assert_int_equal(memory_of(1), memory_used); // nothing is kept
    assert_int_equal(assoc_of(1)->peer_epoch, 0);
    csa_pair_look(c, 1, 0, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.frames[0].type, ALB_CSA_COOKIE);
    assert_int_equal(seen.header.destination_epoch, epoch_of(0));
    assert_int_not_equal(seen.header.source_epoch, epoch_of(1)); // anyone may ask for it
    pair_deliver(c->pair, 1);
    assert_int_equal(assoc_of(0)->peer_epoch, 0); // and no sender learns anything
    assert_int_equal(pair_send(c->pair, 0), 1);
    csa_pair_look(c, 0, 1, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.frames[0].type, ALB_CSA_HELLO);
    assert_true(seen.frames[0].hello.has_cookie);
    pair_hurry(c->pair, 0, 1);
    pair_deliver(c->pair, 0);
    assert_int_equal(assoc_of(1)->peer_epoch, epoch_of(0));
    assert_int_equal(c->csa[1]->bound_epoch, 0); // a queue pair is bound by its own numbers
    pair_send(c->pair, 1);
    pair_deliver(c->pair, 1); // paths
    assert_int_equal(assoc_of(0)->peer_epoch, epoch_of(1));
    for (uint32_t i = 0; i < 20; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, ALB_NS_PER_MS);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[0].memory, c->pair->hosts[1].memory, 64);
}

// Its former life was known, and there is nothing that would prove the new one.
static void new_life__cookie_ends_the_former_one(void **state)
{
    uint8_t cookie[ALB_CSA_COOKIE_BYTES];
    csa_pair_greet(c);
    uint32_t former = epoch_of(0), present = former + 1;
    ask_for_cookie(present, cookie);
    assert_int_equal(assoc_of(1)->peer_epoch, former);
    arrive_hello("", present, cookie);
    assert_int_equal(assoc_of(1)->peer_epoch, present);
    assert_int_equal(assoc_of(1)->dead_epoch, former);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR); // what it was connected to is gone
    arrive_hello("", former, cookie);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_BAD_EPOCH), 1);
    assert_int_equal(assoc_of(1)->peer_epoch, present);
}

// The HELLO of a life that is over was under way for long. Nobody has heard of that life since.
static void former_life__its_cookie_does_not_end_the_present_one(void **state)
{
    uint8_t cookie[ALB_CSA_COOKIE_BYTES];
    uint32_t present = epoch_of(0), former = present + 1;
    ask_for_cookie(former, cookie);
    csa_pair_greet(c);
    assert_int_equal(assoc_of(1)->peer_epoch, present);
    arrive_hello("", former, cookie);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 1 + 1);
    assert_int_equal(assoc_of(1)->peer_epoch, present);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
}

// Between the cookie and its return the life that was known came to an end, or its own was proven otherwise.
static void cookie__is_good_whatever_became_known_of_that_life(void **state)
{
    uint8_t cookie[ALB_CSA_COOKIE_BYTES];
    uint32_t own = epoch_of(0);
    ask_for_cookie(own, cookie);
    csa_pair_greet(c);
    arrive_hello("", own, cookie);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 1);
    pair_settle(c->pair);
    ask_for_cookie(own + 1, cookie);
    assoc_of(1)->dead_epoch = assoc_of(1)->peer_epoch;
    assoc_of(1)->peer_epoch = 0;
    arrive_hello("", own + 1, cookie);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 2);
    assert_int_equal(assoc_of(1)->peer_epoch, own + 1);
}

static void known_peer__is_not_asked(void **state)
{
    csa_pair_greet(c);
    pair_settle(c->pair);
    second_overtakes_first();
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_COOKIE, NULL), 0);
    arrive_hello("", epoch_of(0), NULL); // not proven, since it does not name us: it is asked, and nothing is lost
    pair_send(c->pair, 1);
    assert_int_equal(assoc_of(1)->peer_epoch, epoch_of(0));
    assert_int_equal(assoc_of(1)->dead_epoch, 0);
}

// ---- what it is good for --------------------------------------------------------------------------------------------

static void cookie__is_good_for_one_life_at_one_address(void **state)
{
    uint8_t cookie[ALB_CSA_COOKIE_BYTES], forged[ALB_CSA_COOKIE_BYTES];
    ask_for_cookie(77, cookie);
    arrive_hello("", 78, cookie);
    assert_int_equal(assoc_of(1)->peer_epoch, 0);
    for (uint32_t bit = 0; bit < 8 * sizeof(forged); bit++) {
        memcpy(forged, cookie, sizeof(forged));
        forged[bit / 8] ^= (uint8_t)(1 << bit % 8);
        arrive_hello("", 77, forged);
        assert_int_equal(assoc_of(1)->peer_epoch, 0);
    }
    arrive_hello("10.66.6.6", 77, cookie);
    assert_int_equal(assoc_of(1)->peer_epoch, 0);
    assert_int_equal(memory_of(1), memory_used);
    arrive_hello("", 77, cookie);
    assert_int_equal(assoc_of(1)->peer_epoch, 77);
}

static void cookie__of_another_engine_or_association_is_worth_nothing(void **state)
{
    uint8_t cookie[ALB_CSA_COOKIE_BYTES];
    struct csa_made made;
    uint8_t frame[ALB_CSA_FRAME_MAX];
    struct alb_addr local = c->pair->hosts[1].addr, peer = c->pair->hosts[0].addr;
    struct alb_assoc *other = alb_assoc_get(c->engines[1], &local, &peer, 3); // another engine of that host
    assert_non_null(other);
    ask_for_cookie(77, cookie);
    csa_pair_make(c, 0, &made);
    made.header.source_slot = 3;
    made.header.source_epoch = 77;
    made.header.destination_epoch = 0;
    csa_pair_add_bytes(&made, frame, alb_csa_encode_hello(cookie, frame));
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(other->peer_epoch, 0);
    alb_assoc_put(c->engines[1], other);
}

static void cookie__is_good_for_a_while(void **state)
{
    static const struct {
        uint32_t age_ms;
        bool is_good;
    } ages[] = {{0, true}, {3999, true}, {4001, true}, {8001, false}, {100000, false}};
    for (uint32_t i = 0; i < ALB_COUNT(ages); i++) {
        uint8_t cookie[ALB_CSA_COOKIE_BYTES];
        uint32_t epoch = 100 + i;
        pair_pass(c->pair, 10 * ALB_NS_PER_S);
        ask_for_cookie(epoch, cookie);
        pair_pass(c->pair, ages[i].age_ms * ALB_NS_PER_MS);
        arrive_hello("", epoch, cookie);
        assert_int_equal(assoc_of(1)->peer_epoch == epoch, ages[i].is_good);
        while (pair_send(c->pair, 1) > 0 || pair_count(c->pair, 1) > 0)
            pair_lose(c->pair, 1);
    }
}

// ---- what it must not do --------------------------------------------------------------------------------------------

static void answers__are_never_longer_than_questions(void **state)
{
    uint8_t frame[ALB_CSA_FRAME_MAX];
    const struct alb_csa_probe probe = {.dest_qpn = alb_qp_number(c->qps[1]), .next = 5};
    arrive_frame("", 77, 0, frame, alb_csa_encode_probe(&probe, frame));
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 1);
    assert_int_equal(pair_send(c->pair, 1), 0); // too short to be asked
    arrive_frame("", 77, 0, frame, alb_csa_encode_ping(0, frame));
    assert_int_equal(pair_send(c->pair, 1), 0);
    arrive_hello("", 77, NULL);
    assert_int_equal(pair_send(c->pair, 1), 1);
    assert_int_equal(pair_peek(c->pair, 1, 0)->datagram.length, ALB_CSA_OUTER_BYTES + 20); // as long as a HELLO
    pair_lose(c->pair, 1);
    struct alb_csa_segment segment = csa_pair_write(c, 0, 5, 0, 4, 4, ALB_CSA_LAST);
    struct csa_made made;
    csa_pair_make(c, 0, &made);
    made.header.source_epoch = 77;
    made.header.destination_epoch = 0;
    for (uint32_t i = 0; i < 3; i++) // one answer for all of a packet
        csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, "abcd");
    csa_pair_arrive(c, 0, &made);
    assert_int_equal(pair_send(c->pair, 1), 1);
    assert_true(pair_peek(c->pair, 1, 0)->datagram.length <= made.length);
}

static void strangers__get_nothing(void **state)
{
    uint8_t frame[ALB_CSA_FRAME_MAX], cookie[ALB_CSA_COOKIE_BYTES] = {1};
    uint32_t associations = c->engines[1]->csa->assoc_count;
    arrive_hello("10.66.6.6", 77, NULL);
    arrive_hello("10.66.6.6", 77, cookie);
    arrive_frame("10.66.6.6", 77, 0, frame, alb_csa_encode_ping(20, frame));
    arrive_frame("10.66.6.6", 77, epoch_of(1), frame, alb_csa_encode_cookie(cookie, frame));
    assert_int_equal(pair_send(c->pair, 1), 0);
    assert_int_equal(c->engines[1]->csa->assoc_count, associations);
}

static void cookie__is_brought_back_to_who_has_read_our_packets_only(void **state)
{
    uint8_t frame[ALB_CSA_FRAME_MAX], cookie[ALB_CSA_COOKIE_BYTES] = {1};
    uint32_t bytes = alb_csa_encode_cookie(cookie, frame);
    arrive_frame("", 77, 0, frame, bytes);
    arrive_frame("", 77, epoch_of(1) + 1, frame, bytes);
    assert_int_equal(pair_send(c->pair, 1), 0);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 2);
    arrive_frame("", 77, epoch_of(1), frame, bytes);
    assert_int_equal(assoc_of(1)->peer_epoch, 0); // it tells nothing about its sender
    assert_int_equal(pair_send(c->pair, 1), 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_HELLO, NULL), 1);
    assert_int_equal(pair_peek(c->pair, 1, 0)->datagram.length, ALB_CSA_OUTER_BYTES + bytes);
}

static void flood__is_answered_a_few_times(void **state)
{
    for (uint32_t i = 0; i < 1000; i++)
        arrive_hello("", 1000 + i, NULL);
    uint32_t answers = 0;
    while (pair_send(c->pair, 1) > 0 || pair_count(c->pair, 1) > 0) {
        answers++;
        pair_lose(c->pair, 1);
    }
    assert_in_range(answers, 1, ALB_CSA_REPLIES);
    assert_int_equal(memory_of(1), memory_used);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(overtaken_proof__cookie_brings_the_peer_in),
        CASE(new_life__cookie_ends_the_former_one),
        CASE(former_life__its_cookie_does_not_end_the_present_one),
        CASE(cookie__is_good_whatever_became_known_of_that_life),
        CASE(known_peer__is_not_asked),
        CASE(cookie__is_good_for_one_life_at_one_address),
        CASE(cookie__of_another_engine_or_association_is_worth_nothing),
        CASE(cookie__is_good_for_a_while),
        CASE(answers__are_never_longer_than_questions),
        CASE(strangers__get_nothing),
        CASE(cookie__is_brought_back_to_who_has_read_our_packets_only),
        CASE(flood__is_answered_a_few_times),
    };
    return cmocka_run_group_tests_name("csa_hello", tests, NULL, NULL);
}
