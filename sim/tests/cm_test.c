// SPDX-License-Identifier: BSD-2-Clause
// Connections over a network that loses, repeats and swaps: whatever one message meets, both sides see the same story,
// and in the end nothing is left.
#include "base/tests/test.h"

#include "engine/cm.h"
#include "sim/pair.h"

#include <stdlib.h>
#include <string.h>

enum {
    A = ALB_SIM_A,
    B = ALB_SIM_B,
    IDS = 64,
    PORT = 18515,
    CODE = 12, // 16.8 ms: response and acknowledge timeout
    RETRIES = 7,
};

// One side's user: takes events as they come and does what follows from them.
struct user {
    struct alb_sim_host *host;
    struct alb_cm_id *listener;
    struct alb_cm_id *id;
    uint32_t seen[ALB_CM_EVENT_TYPES];
    bool parts; // disconnects once it is established
    bool is_dead;
};

struct net {
    struct alb_sim_pair pair;
    struct user users[ALB_SIM_SIDES];
};

static alb_time now_of(const struct user *user)
{
    return alb_sim_host_now(user->host);
}

static void on_request(struct user *user, const struct alb_cm_event *event)
{
    struct alb_cm_rep rep = {.qpn = 200, .starting_psn = 2};
    assert_null(user->id); // the same request twice would be a second one here
    user->id = event->id;
    alb_cm_id_set_user(event->id, user);
    assert_int_equal(event->message.req.qpn, 100);
    assert_int_equal(alb_cm_accept(event->id, &rep, NULL, now_of(user)), 0);
}

static void on_response(struct user *user, const struct alb_cm_event *event)
{
    assert_int_equal(event->message.rep.qpn, 200);
    assert_int_equal(alb_cm_establish(event->id, NULL, now_of(user)), 0);
    if (user->parts)
        assert_int_equal(alb_cm_disconnect(event->id, NULL, now_of(user)), 0);
}

static void after(struct alb_sim_host *host, alb_sim_time now)
{
    struct user *user = host->user;
    struct alb_cm_event event;
    bool has_acted = false;
    while (!user->is_dead && alb_cm_event(host->engine, &event)) {
        user->seen[event.type]++;
        has_acted = true;
        if (event.listener)
            alb_cm_request_taken(event.listener);
        if (event.type == ALB_CM_EVENT_REQUEST)
            on_request(user, &event);
        else if (event.type == ALB_CM_EVENT_RESPONSE)
            on_response(user, &event);
        else if (event.type == ALB_CM_EVENT_ESTABLISHED && user->parts)
            assert_int_equal(alb_cm_disconnect(event.id, NULL, now_of(user)), 0);
    }
    if (has_acted)
        alb_sim_host_poke(host);
}

static struct net *net_new(uint64_t seed)
{
    struct net *net = calloc(1, sizeof(*net));
    struct alb_sim_pair_config config;
    assert_non_null(net);
    alb_sim_pair_config_default(&config, seed & 1);
    config.seed = seed;
    assert_int_equal(alb_sim_pair_init(&net->pair, &config), 0);
    for (int side = 0; side < ALB_SIM_SIDES; side++) {
        struct alb_sim_host *host = &net->pair.host[side];
        net->users[side].host = host;
        assert_int_equal(alb_cm_create(host->engine, IDS, &net->users[side]), 0);
        host->user = &net->users[side];
        host->after = after;
    }
    struct alb_cm_listen listen = {.service_id = alb_cm_service_id(ALB_CM_PS_TCP, PORT), .backlog = 4};
    assert_int_equal(alb_cm_id_create(net->users[B].host->engine, NULL, &net->users[B].listener), 0);
    assert_int_equal(alb_cm_listen(net->users[B].listener, &listen), 0);
    return net;
}

static void destroy_id(struct alb_cm_id **id, alb_time now)
{
    if (*id)
        alb_cm_id_destroy(*id, now);
    *id = NULL;
}

// Ends what is left, waits until that is settled, and counts.
static void net_free(struct net *net)
{
    for (int side = 0; side < ALB_SIM_SIDES; side++) {
        struct user *user = &net->users[side];
        destroy_id(&user->id, now_of(user));
        destroy_id(&user->listener, now_of(user));
        alb_sim_host_poke(user->host);
    }
    assert_true(alb_sim_network_run_idle(&net->pair.network, alb_sim_network_now(&net->pair.network) + ALB_SIM_S(60)));
    for (int side = 0; side < ALB_SIM_SIDES; side++) {
        struct user *user = &net->users[side];
        assert_int_equal(alb_cm_id_count(user->host->engine), 0);
        assert_int_equal(user->host->memory.data_path_calls, 0);
        alb_cm_destroy(user->host->engine);
    }
    alb_sim_pair_fini(&net->pair);
    free(net);
}

static void connect_to_b(struct net *net)
{
    struct user *user = &net->users[A];
    struct alb_cm_target target = {
        .av = {.local = net->pair.host[A].addr, .peer = net->pair.host[B].addr},
        .gsi_qpn = ALB_GSI_QPN,
    };
    struct alb_cm_req req = {
        .service_id = alb_cm_service_id(ALB_CM_PS_TCP, PORT),
        .qpn = 100,
        .remote_response_timeout = CODE,
        .local_response_timeout = CODE,
        .max_cm_retries = RETRIES,
        .primary.ack_timeout = CODE,
    };
    assert_int_equal(alb_cm_id_create(user->host->engine, user, &user->id), 0);
    assert_int_equal(alb_cm_connect(user->id, &target, &req, NULL, now_of(user)), 0);
    alb_sim_host_poke(user->host);
}

static void run(struct net *net)
{
    assert_true(alb_sim_network_run_idle(&net->pair.network, alb_sim_network_now(&net->pair.network) + ALB_SIM_S(120)));
}

// The whole life of a connection, reported alike on both sides, each event once.
static void expect_whole_life(const struct net *net)
{
    assert_int_equal(net->users[A].seen[ALB_CM_EVENT_RESPONSE], 1);
    assert_int_equal(net->users[B].seen[ALB_CM_EVENT_REQUEST], 1);
    assert_int_equal(net->users[B].seen[ALB_CM_EVENT_ESTABLISHED], 1);
    for (int side = 0; side < ALB_SIM_SIDES; side++) {
        assert_int_equal(net->users[side].seen[ALB_CM_EVENT_DISCONNECTED], 1);
        assert_int_equal(net->users[side].seen[ALB_CM_EVENT_TIMEWAIT_OVER], 1);
        assert_int_equal(net->users[side].seen[ALB_CM_EVENT_REJECTED], 0);
        assert_int_equal(net->users[side].seen[ALB_CM_EVENT_TIMED_OUT], 0);
        assert_int_equal(alb_cm_id_state(net->users[side].id), ALB_CM_IDLE);
    }
}

static void rule(struct net *net, int side, uint32_t nth, uint32_t times, enum alb_sim_action action)
{
    struct alb_sim_rule rule = {.from = nth, .times = times, .action = action};
    alb_sim_script_add(alb_sim_link_script(&net->pair.out[side]), &rule);
}

// Each message of the exchange, on either way, meets each mishap, whichever side disconnects first.
static void life__whatever_one_message_meets(void **state)
{
    static const enum alb_sim_action actions[] = {ALB_SIM_DROP, ALB_SIM_DUPLICATE, ALB_SIM_CORRUPT};
    for (int parting = 0; parting < ALB_SIM_SIDES; parting++)
        for (int side = 0; side < ALB_SIM_SIDES; side++)
            for (uint32_t nth = 1; nth <= 4; nth++)
                for (unsigned action = 0; action < ALB_COUNT(actions); action++) {
                    struct net *net = net_new(1 + nth);
                    net->users[parting].parts = true;
                    rule(net, side, nth, 1, actions[action]);
                    connect_to_b(net);
                    run(net);
                    expect_whole_life(net);
                    net_free(net);
                }
}

// The first n messages of a side are lost, up to what its retries bear.
static void life__losses_in_a_row(void **state)
{
    for (int side = 0; side < ALB_SIM_SIDES; side++)
        for (uint32_t times = 1; times <= RETRIES; times++) {
            struct net *net = net_new(times);
            net->users[A].parts = true;
            rule(net, side, 1, times, ALB_SIM_DROP);
            connect_to_b(net);
            run(net);
            expect_whole_life(net);
            net_free(net);
        }
}

static void life__ready_to_use_and_disconnect_swapped(void **state)
{
    struct net *net = net_new(9);
    net->users[A].parts = true;
    rule(net, A, 2, 1, ALB_SIM_SWAP); // the DREQ comes before the RTU
    connect_to_b(net);
    run(net);
    expect_whole_life(net);
    net_free(net);
}

static void life__every_message_twice(void **state)
{
    struct net *net = net_new(4);
    net->users[B].parts = true;
    rule(net, A, 1, UINT32_MAX, ALB_SIM_DUPLICATE);
    rule(net, B, 1, UINT32_MAX, ALB_SIM_DUPLICATE);
    connect_to_b(net);
    run(net);
    expect_whole_life(net);
    net_free(net);
}

// A third of all messages is lost, others are repeated or come late. Only a run of losses longer than the retries may
// end otherwise, and then both sides still come to an end.
static void life__random_faults(void **state)
{
    const struct alb_faults_spec faults = {.loss = 300000000, .duplicate = 200000000, .reorder = 200000000};
    uint32_t whole = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct net *net = net_new(seed);
        net->users[seed / 2 % 2].parts = true;
        for (int side = 0; side < ALB_SIM_SIDES; side++)
            alb_sim_link_set_faults(&net->pair.out[side], &faults, seed * 2 + (uint64_t)side);
        connect_to_b(net);
        run(net);
        for (int side = 0; side < ALB_SIM_SIDES; side++) {
            enum alb_cm_state at = net->users[side].id ? alb_cm_id_state(net->users[side].id) : ALB_CM_IDLE;
            if (at != ALB_CM_IDLE && at != ALB_CM_ESTABLISHED)
                fail_msg("seed %llu: side %d ends in %s", (unsigned long long)seed, side, alb_cm_state_name(at));
        }
        whole += net->users[A].seen[ALB_CM_EVENT_DISCONNECTED] && net->users[B].seen[ALB_CM_EVENT_DISCONNECTED];
        net_free(net);
    }
    assert_in_range(whole, 195, 200);
}

// No listener: the time that the request says, to the nanosecond.
static void connect__to_a_dead_host(void **state)
{
    struct net *net = net_new(2);
    rule(net, A, 1, UINT32_MAX, ALB_SIM_DROP);
    connect_to_b(net);
    run(net);
    assert_int_equal(net->users[A].seen[ALB_CM_EVENT_TIMED_OUT], 1);
    assert_true(alb_sim_network_now(&net->pair.network) >= ALB_SIM_MS((RETRIES + 1) * 33));
    assert_true(alb_sim_network_now(&net->pair.network) < ALB_SIM_MS((RETRIES + 1) * 34));
    assert_int_equal(net->users[B].seen[ALB_CM_EVENT_REQUEST], 0);
    net_free(net);
}

// A dies after its request: B's response is never taken up.
static void accept__of_one_that_dies(void **state)
{
    struct net *net = net_new(2);
    rule(net, A, 2, UINT32_MAX, ALB_SIM_DROP);
    rule(net, B, 1, UINT32_MAX, ALB_SIM_DROP);
    connect_to_b(net);
    run(net);
    assert_int_equal(net->users[B].seen[ALB_CM_EVENT_REQUEST], 1);
    assert_int_equal(net->users[B].seen[ALB_CM_EVENT_TIMED_OUT], 1);
    assert_int_equal(net->users[B].seen[ALB_CM_EVENT_ESTABLISHED], 0);
    net_free(net);
}

// B dies when connected: parting takes as long as the retries, and comes to its end.
static void disconnect__from_one_that_died(void **state)
{
    struct net *net = net_new(2);
    connect_to_b(net);
    run(net);
    rule(net, B, 1, UINT32_MAX, ALB_SIM_DROP);
    assert_int_equal(alb_cm_disconnect(net->users[A].id, NULL, now_of(&net->users[A])), 0);
    alb_sim_host_poke(net->users[A].host);
    run(net);
    assert_int_equal(net->users[A].seen[ALB_CM_EVENT_DISCONNECT_TIMED_OUT], 1);
    assert_int_equal(net->users[A].seen[ALB_CM_EVENT_DISCONNECTED], 0);
    assert_int_equal(net->users[A].seen[ALB_CM_EVENT_TIMEWAIT_OVER], 1);
    net_free(net);
}

static void same_seed__same_story(void **state)
{
    uint64_t hashes[2];
    for (int turn = 0; turn < 2; turn++) {
        struct net *net = net_new(77);
        const struct alb_faults_spec faults = {.loss = 300000000};
        net->users[A].parts = true;
        for (int side = 0; side < ALB_SIM_SIDES; side++)
            alb_sim_link_set_faults(&net->pair.out[side], &faults, 5);
        connect_to_b(net);
        run(net);
        hashes[turn] = alb_sim_network_trace_hash(&net->pair.network);
        net_free(net);
    }
    assert_true(hashes[0] == hashes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(life__whatever_one_message_meets),
        cmocka_unit_test(life__losses_in_a_row),
        cmocka_unit_test(life__ready_to_use_and_disconnect_swapped),
        cmocka_unit_test(life__every_message_twice),
        cmocka_unit_test(life__random_faults),
        cmocka_unit_test(connect__to_a_dead_host),
        cmocka_unit_test(accept__of_one_that_dies),
        cmocka_unit_test(disconnect__from_one_that_died),
        cmocka_unit_test(same_seed__same_story),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
