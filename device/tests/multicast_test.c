// SPDX-License-Identifier: BSD-2-Clause
// Multicast between whole devices over loopback: slots of one address, and other addresses of the same interface.
#include "device/impl.h"

#include "device/tests/pair.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    QKEY = 0x22222222,
    BYTES = 256,
    SIDES = 3,
};

struct context {
    struct side sides[SIDES]; // slots 0 and 1 of one address, and another address
    struct alb_addr group;
};

static void to_rts(struct side *side)
{
    struct alb_qp_attr attr = {.state = ALB_QPS_INIT, .port = 1, .qkey = QKEY};
    alb_device_lock(side->device);
    assert_int_equal(
        alb_qp_modify(side->qp, &attr, ALB_QP_STATE | ALB_QP_PORT | ALB_QP_PKEY_INDEX | ALB_QP_QKEY, alb_device_now()),
        0);
    attr.state = ALB_QPS_RTR;
    assert_int_equal(alb_qp_modify(side->qp, &attr, ALB_QP_STATE, alb_device_now()), 0);
    attr.state = ALB_QPS_RTS;
    assert_int_equal(alb_qp_modify(side->qp, &attr, ALB_QP_STATE | ALB_QP_SQ_PSN, alb_device_now()), 0);
    alb_device_unlock(side->device);
}

static int setup_with(void **state, const char *const addresses[SIDES], const char *group,
                      const struct alb_faults_spec *faults)
{
    struct context *c = calloc(1, sizeof(*c));
    for (int i = 0; i < SIDES; i++) {
        struct alb_device_options *options = pair_options(addresses[i]);
        options->faults = *faults;
        side_open(&c->sides[i], options, ALB_QPT_UD);
        to_rts(&c->sides[i]);
        free(options);
    }
    assert_true(alb_addr_parse(group, &c->group));
    *state = c;
    return 0;
}

static int setup(void **state)
{
    static const char *const addresses[SIDES] = {"127.97.0.1", "127.97.0.1", "127.97.0.2"};
    static const struct alb_faults_spec none;
    return setup_with(state, addresses, "239.97.0.2", &none);
}

static const char *const ipv6_addresses[SIDES] = {"::1", "::1", "::1"};

static int setup_ipv6(void **state)
{
    static const struct alb_faults_spec none;
    return setup_with(state, ipv6_addresses, "ff0e::97:102", &none);
}

static int setup_ipv6_faulty(void **state)
{
    const struct alb_faults_spec delay = {.delay_ns_min = ALB_NS_PER_MS, .delay_ns_max = ALB_NS_PER_MS};
    return setup_with(state, ipv6_addresses, "ff0e::97:103", &delay);
}

static int teardown(void **state)
{
    struct context *c = *state;
    for (int i = 0; i < SIDES; i++) {
        alb_device_detach_all(c->sides[i].device, c->sides[i].qp);
        side_close(&c->sides[i]);
    }
    free(c);
    return 0;
}

static void attach(struct context *c, int side)
{
    assert_int_equal(alb_device_attach(c->sides[side].device, c->sides[side].qp, &c->group), 0);
}

static void send_to(struct side *from, const struct alb_addr *peer, alb_qpn qpn)
{
    const struct alb_sge sge = {(uintptr_t)from->memory, BYTES, alb_region_key(from->mr)};
    struct alb_av av = {0};
    struct alb_ah *ah;
    assert_int_equal(alb_device_resolve(from->device, 0, peer, &av), 0);
    alb_device_lock(from->device);
    assert_int_equal(alb_ah_create(from->pd, &av, &ah), 0);
    alb_device_unlock(from->device);
    const struct alb_send_wr wr = {.opcode = ALB_WR_SEND,
                                   .wr_id = 77,
                                   .sge = &sge,
                                   .sge_count = 1,
                                   .ah = ah,
                                   .remote_qpn = qpn,
                                   .remote_qkey = QKEY};
    assert_int_equal(alb_qp_send_stage(from->qp, &wr), 0);
    alb_qp_send_commit(from->qp);
    alb_device_kick(from->device, from->qp);
    alb_device_lock(from->device);
    assert_int_equal(alb_ah_destroy(ah), 0);
    alb_device_unlock(from->device);
}

static void expect_sent(struct side *from)
{
    struct alb_wc wc = side_wait(from);
    assert_int_equal(wc.wr_id, 77);
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
}

static void expect_copy(struct context *c, int side)
{
    struct side *at = &c->sides[side];
    struct alb_wc wc = side_wait(at);
    assert_int_equal(wc.wr_id, 4096);
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    assert_int_equal(wc.byte_len, ALB_GRH_BYTES + BYTES);
    assert_int_equal(wc.src_qpn, alb_qp_number(c->sides[0].qp));
    if (alb_addr_is_ipv4(&c->group)) {
        assert_memory_equal(at->memory + 4096 + 20 + 12, ((uint8_t[]){127, 97, 0, 1, 239, 97, 0, 2}), 8);
    } else {
        assert_int_equal(at->memory[4096 + 8 + 15], 1); // ::1
        assert_memory_equal(at->memory + 4096 + 24, c->group.bytes, 16);
    }
    assert_memory_equal(at->memory + 4096 + ALB_GRH_BYTES, c->sides[0].memory, BYTES);
}

// Counters have one writer, the token's holder.
static uint64_t dropped(const struct side *side, enum alb_drop reason)
{
    alb_device_lock(side->device);
    uint64_t count = side->device->board.header->device_stats.dropped[reason];
    alb_device_unlock(side->device);
    return count;
}

static uint64_t counted(const struct side *side, enum alb_edge_stat stat)
{
    return alb_edge_counted(&side->device->board.header->edge_stats, stat);
}

static void alb_device_attach__members_of_all_slots_and_the_sender(void **state)
{
    struct context *c = *state;
    memset(c->sides[0].memory, 0x5a, BYTES);
    for (int i = 0; i < SIDES; i++) {
        attach(c, i);
        side_receive(&c->sides[i], 4096, ALB_GRH_BYTES + BYTES);
    }
    send_to(&c->sides[0], &c->group, ALB_MULTICAST_QPN);
    expect_sent(&c->sides[0]);
    for (int i = 0; i < SIDES; i++)
        expect_copy(c, i);
    for (int i = 0; i < SIDES; i++)
        assert_int_equal(dropped(&c->sides[i], ALB_DROP_NO_RECEIVE), 0); // one copy each
}

static void alb_device_attach__who_is_not_attached_gets_nothing(void **state)
{
    struct context *c = *state;
    attach(c, 1);
    side_receive(&c->sides[1], 4096, ALB_GRH_BYTES + BYTES);
    side_receive(&c->sides[2], 4096, ALB_GRH_BYTES + BYTES);
    uint64_t before = counted(&c->sides[2], ALB_EDGE_rx_datagrams);
    send_to(&c->sides[0], &c->group, ALB_MULTICAST_QPN);
    expect_sent(&c->sides[0]);
    expect_copy(c, 1);
    assert_int_equal(counted(&c->sides[2], ALB_EDGE_rx_datagrams), before);
    assert_true(alb_cq_is_empty(c->sides[2].cq));
}

static void alb_device_detach__gets_no_more(void **state)
{
    struct context *c = *state;
    for (int i = 1; i < SIDES; i++) {
        attach(c, i);
        side_receive(&c->sides[i], 4096, ALB_GRH_BYTES + BYTES);
    }
    assert_int_equal(alb_device_detach(c->sides[1].device, c->sides[1].qp, &c->group), 0);
    assert_int_equal(alb_device_detach(c->sides[1].device, c->sides[1].qp, &c->group), EINVAL);
    assert_int_equal(c->sides[1].device->port.groups.count, 0);
    send_to(&c->sides[0], &c->group, ALB_MULTICAST_QPN);
    expect_sent(&c->sides[0]);
    expect_copy(c, 2);
    assert_true(alb_cq_is_empty(c->sides[1].cq));
    attach(c, 1); // again
    side_receive(&c->sides[2], 4096, ALB_GRH_BYTES + BYTES);
    send_to(&c->sides[0], &c->group, ALB_MULTICAST_QPN);
    expect_sent(&c->sides[0]);
    expect_copy(c, 1);
    expect_copy(c, 2);
}

static void expect_drop(struct side *side, enum alb_drop reason)
{
    for (int i = 0; i < 10000 && dropped(side, reason) == 0; i++)
        usleep(1000);
    assert_int_equal(dropped(side, reason), 1);
}

// The number of all groups, sent to the front's address by a foreign peer: no queue pair's, and not to be relayed to
// slot 255.
static void alb_rx__multicast_number_to_a_host(void **state)
{
    struct context *c = *state;
    const struct alb_endpoint front = {*alb_device_gid(c->sides[0].device, 0), ALB_ROCE_PORT};
    struct alb_endpoint stranger = {.port = 0};
    struct alb_roce roce = {.opcode = ALB_UD_SEND_ONLY, .dest_qpn = ALB_MULTICAST_QPN};
    uint8_t bytes[ALB_ROCE_HEADER_MAX + ALB_ICRC_BYTES] = {0};
    uint32_t length = alb_roce_encode(&roce, bytes) + ALB_ICRC_BYTES;
    struct alb_socket sock;
    union alb_sockaddr address;
    socklen_t address_length = alb_sockaddr_encode(&front, &address);
    attach(c, 0);
    assert_true(alb_addr_parse("127.97.0.9", &stranger.addr));
    assert_int_equal(alb_socket_open(&sock, &stranger), 0);
    assert_int_equal(sendto(sock.fd, bytes, length, 0, &address.any, address_length), length);
    expect_drop(&c->sides[0], ALB_DROP_BAD_ICRC); // so it was looked at here
    assert_int_equal(counted(&c->sides[0], ALB_EDGE_relay_out), 0);
    alb_socket_close(&sock);
}

// Another queue pair's number, sent to a group.
static void alb_rx__queue_pair_number_to_a_group(void **state)
{
    struct context *c = *state;
    attach(c, 1);
    side_receive(&c->sides[1], 4096, ALB_GRH_BYTES + BYTES);
    send_to(&c->sides[0], &c->group, alb_qp_number(c->sides[1].qp));
    expect_sent(&c->sides[0]);
    expect_drop(&c->sides[1], ALB_DROP_WRONG_LOCAL);
    assert_true(alb_cq_is_empty(c->sides[1].cq));
}

static void alb_device_attach__refusals(void **state)
{
    struct context *c = *state;
    struct side *side = &c->sides[0];
    struct alb_addr other;
    assert_true(alb_addr_parse("ff0e::97", &other));
    assert_int_equal(alb_device_attach(side->device, side->qp, &other), ENETUNREACH); // no address of that family
    assert_false(alb_engine_has_group(side->device->engine, &other));
    assert_true(alb_addr_parse("127.97.0.1", &other));
    assert_int_equal(alb_device_attach(side->device, side->qp, &other), EINVAL);
    assert_int_equal(side->device->port.groups.count, 0);
}

// A child lets go of its own copies of what it inherits; its parent goes on hearing.
static void fork__leaves_the_parents_groups_alone(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow the child
#endif
    struct context c = {0};
    struct side *side = &c.sides[0];
    struct alb_device_options *options = pair_options("127.97.0.3");
    struct alb_wc wc;
    assert_true(alb_addr_parse("239.97.0.4", &c.group));
    side_open_shared(side, options, ALB_QPT_UD);
    free(options);
    to_rts(side);
    attach(&c, 0);
    side_receive(side, 4096, ALB_GRH_BYTES + BYTES);
    while (atomic_load(&side->device->armed_until) == 0) // a device thread at rest allocates nothing
        sched_yield();
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    send_to(side, &c.group, ALB_MULTICAST_QPN);
    expect_sent(side);
    wc = side_wait(side);
    assert_int_equal(wc.wr_id, 4096);
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    alb_device_detach_all(side->device, side->qp);
    side_close_shared(side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_device_attach__members_of_all_slots_and_the_sender, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_device_attach__members_of_all_slots_and_the_sender, setup_ipv6, teardown),
        cmocka_unit_test_setup_teardown(alb_device_attach__members_of_all_slots_and_the_sender, setup_ipv6_faulty,
                                        teardown),
        cmocka_unit_test_setup_teardown(alb_device_attach__who_is_not_attached_gets_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_device_detach__gets_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_rx__multicast_number_to_a_host, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_rx__queue_pair_number_to_a_group, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_device_attach__refusals, setup, teardown),
        cmocka_unit_test(fork__leaves_the_parents_groups_alone),
    };
    return cmocka_run_group_tests_name("multicast", tests, NULL, NULL);
}
