// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/fixture.h"

static struct alb_endpoint endpoint_of(uint8_t host, uint16_t port)
{
    return (struct alb_endpoint){.addr = {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = host}}, .port = port};
}

static struct alb_peer *get(struct fixture *f, uint8_t host, uint16_t port)
{
    struct alb_endpoint endpoint = endpoint_of(host, port);
    return alb_peer_get(f->engine, &endpoint);
}

static void peer_get__same_endpoint_is_one_peer(void **state)
{
    struct fixture *f = *state;
    struct alb_peer *a = get(f, 1, 4791);
    assert_non_null(a);
    assert_ptr_equal(get(f, 1, 4791), a);
    assert_int_equal(a->refs, 2);
    struct alb_peer *b = get(f, 1, 4792);
    struct alb_peer *c = get(f, 2, 4791);
    assert_ptr_not_equal(b, a);
    assert_ptr_not_equal(c, a);
    assert_ptr_not_equal(c, b);
    alb_peer_put(f->engine, a);
    assert_ptr_equal(get(f, 1, 4791), a);
    assert_int_equal(a->refs, 2);
}

static void peer_get__table_has_a_limit(void **state)
{
    struct fixture *f = *state;
    struct alb_peer *first = get(f, 0, 1);
    for (uint32_t i = 1; i < f->engine->config.peer_max; i++)
        assert_non_null(get(f, (uint8_t)i, 1));
    assert_null(get(f, 200, 1));
    assert_ptr_equal(get(f, 0, 1), first);
    alb_peer_put(f->engine, first);
    assert_null(get(f, 200, 1));
    alb_peer_put(f->engine, first);
    struct alb_peer *again = get(f, 200, 1);
    assert_non_null(again);
    struct alb_endpoint endpoint = endpoint_of(200, 1);
    assert_true(alb_endpoint_equals(&again->endpoint, &endpoint));
    assert_null(get(f, 0, 1));
}

static void peer_permits__first_packet_and_then_the_window(void **state)
{
    struct fixture *f = *state;
    struct alb_peer *peer = get(f, 1, 1);
    peer->congestion.window_bytes = 1000;
    assert_true(alb_peer_permits(peer, 5000));
    alb_peer_charge(peer, 600);
    assert_true(alb_peer_permits(peer, 400));
    assert_false(alb_peer_permits(peer, 401));
    alb_peer_release(f->engine, peer, 600);
    assert_true(alb_peer_permits(peer, 5000));
}

static enum alb_build_result build_nothing(struct alb_source *source, struct alb_tx_builder *builder, alb_time now)
{
    return ALB_BUILD_IDLE;
}

static uint32_t count(const struct alb_list *head)
{
    uint32_t n = 0;
    ALB_LIST_FOR_EACH (head, node)
        n++;
    return n;
}

static void peer_release__wakes_what_the_room_may_serve(void **state)
{
    struct fixture *f = *state;
    struct alb_source sources[5];
    struct alb_peer *peer = get(f, 1, 1);
    peer->congestion.window_bytes = 100000;
    alb_peer_charge(peer, 100000);
    for (int i = 0; i < 5; i++) {
        alb_source_init(&sources[i], build_nothing);
        alb_peer_wait(peer, &sources[i]);
    }
    alb_peer_release(f->engine, peer, 4097); // a full packet, and the beginning of another
    assert_int_equal(count(&f->engine->scheduler.ready), 2);
    assert_ptr_equal(f->engine->scheduler.ready.next, &sources[0].link);
    assert_true(sources[1].is_ready);
    assert_false(sources[2].is_ready);
    peer->congestion.window_bytes = 50000; // shrunk below what is in flight
    alb_peer_release(f->engine, peer, 4096);
    assert_false(sources[2].is_ready);
    peer->congestion.window_bytes = 1; // the last one wakes all, however small the window
    alb_peer_release(f->engine, peer, peer->inflight_bytes);
    assert_int_equal(count(&f->engine->scheduler.ready), 5);
    assert_true(alb_list_is_empty(&peer->waiting));
    for (int i = 0; i < 5; i++)
        alb_scheduler_remove(&sources[i]);
}

static void peer_wait__takes_it_out_of_the_ready_line(void **state)
{
    struct fixture *f = *state;
    struct alb_source source;
    struct alb_peer *peer = get(f, 1, 1);
    alb_source_init(&source, build_nothing);
    alb_scheduler_wake(&f->engine->scheduler, &source);
    alb_peer_wait(peer, &source);
    assert_true(alb_scheduler_is_idle(&f->engine->scheduler));
    assert_false(source.is_ready);
    alb_peer_put(f->engine, peer); // no queue pair is left in it when the peer ends
    assert_true(source.is_ready);
    alb_scheduler_remove(&source);
}

static void peers_init__without_memory(void **state)
{
    struct fixture *f = *state;
    for (uint32_t nth = 1; nth <= 2; nth++) {
        struct alb_engine other = {.config = f->engine->config};
        size_t held = f->bytes_held;
        f->refused_from = nth;
        assert_int_equal(alb_peers_init(&other), ENOMEM);
        f->refused_from = 0;
        assert_int_equal(f->bytes_held, held);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(peer_get__same_endpoint_is_one_peer),
        FIXTURE_TEST(peer_get__table_has_a_limit),
        FIXTURE_TEST(peer_permits__first_packet_and_then_the_window),
        FIXTURE_TEST(peer_release__wakes_what_the_room_may_serve),
        FIXTURE_TEST(peer_wait__takes_it_out_of_the_ready_line),
        FIXTURE_TEST(peers_init__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
