// SPDX-License-Identifier: BSD-2-Clause
// Multicast groups: which queue pairs are attached, which get a copy, and what is dropped.
#include "engine/tests/pair.h"

#include "base/tests/test.h"

#include <stdlib.h>

enum {
    QKEY = 0x11111111,
    GROUPS = 4,
    MEMBERS = 3,
};

struct context {
    struct pair *pair;
    struct alb_qp *sender;
    struct alb_qp *members[MEMBERS + 1]; // of side 1
    struct alb_ah *ah;
    struct alb_addr group;
};

static void shrink(struct alb_engine_config *config)
{
    config->group_max = GROUPS;
    config->group_qp_max = MEMBERS;
}

static struct alb_qp *ready_qp(struct pair *pair, int side)
{
    struct alb_qp *qp = pair_qp(pair, side, ALB_QPT_UD);
    struct alb_qp_attr attr = pair_attr(pair, side, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    return qp;
}

static void aim(struct context *c, const char *group)
{
    assert_true(alb_addr_parse(group, &c->group));
    struct alb_av av = {.local = c->pair->hosts[0].addr, .peer = c->group};
    if (c->ah)
        alb_ah_destroy(c->ah);
    assert_int_equal(alb_ah_create(c->pair->hosts[0].pd, &av, &c->ah), 0);
}

static int setup(void **state)
{
    struct context *c = calloc(1, sizeof(*c));
    c->pair = pair_new(shrink);
    pair_fill(c->pair);
    c->sender = ready_qp(c->pair, 0);
    for (int i = 0; i <= MEMBERS; i++)
        c->members[i] = ready_qp(c->pair, 1);
    aim(c, "239.1.2.3");
    *state = c;
    return 0;
}

static void leave_all(struct alb_qp *qp)
{
    struct alb_addr group;
    while (alb_qp_group(qp, &group))
        assert_int_equal(alb_qp_detach(qp, &group), 0);
}

static int teardown(void **state)
{
    struct context *c = *state;
    for (int i = 0; i <= MEMBERS; i++)
        leave_all(c->members[i]);
    leave_all(c->sender);
    assert_int_equal(alb_ah_destroy(c->ah), 0);
    pair_free(c->pair);
    free(c);
    return 0;
}

static void send_to(struct context *c, alb_qpn qpn, uint32_t qkey)
{
    struct alb_sge sge = pair_sge(c->pair, 0, 0, 100);
    struct alb_send_wr wr = {
        .opcode = ALB_WR_SEND,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .ah = c->ah,
        .remote_qpn = qpn,
        .remote_qkey = qkey,
    };
    assert_int_equal(pair_post(c->pair, c->sender, &wr), 0);
    pair_settle(c->pair);
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
}

static void receive_at(struct context *c, int member)
{
    assert_int_equal(pair_receive(c->pair, c->members[member], (uint64_t)member, 1000u * (uint32_t)member, 140), 0);
}

// What member i received: completions of other members are not expected to stand before it.
static void expect_copy(struct context *c, int member)
{
    struct alb_wc wc;
    const uint8_t *memory = c->pair->hosts[1].memory + 1000 * member;
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.wr_id, member);
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 140);
    assert_int_equal(wc.src_qpn, alb_qp_number(c->sender));
    assert_memory_equal(memory + 40, c->pair->hosts[0].memory, 100);
}

static void expect_nothing(struct context *c)
{
    struct alb_wc wc;
    assert_false(pair_poll(c->pair, 1, &wc));
}

static uint64_t dropped(const struct context *c, enum alb_drop reason)
{
    return c->pair->hosts[1].stats.dropped[reason];
}

static void alb_engine_rx__copies_to_every_member(void **state)
{
    struct context *c = *state;
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(alb_qp_attach(c->members[i], &c->group), 0);
        receive_at(c, i);
    }
    receive_at(c, MEMBERS); // attached to nothing
    send_to(c, ALB_MULTICAST_QPN, QKEY);
    for (int i = 0; i < MEMBERS; i++)
        expect_copy(c, i);
    expect_nothing(c);
}

// The header in front names the group as the destination.
static void alb_engine_rx__header_names_the_group(void **state)
{
    struct context *c = *state;
    assert_int_equal(alb_qp_attach(c->members[0], &c->group), 0);
    receive_at(c, 0);
    send_to(c, ALB_MULTICAST_QPN, QKEY);
    expect_copy(c, 0);
    assert_memory_equal(c->pair->hosts[1].memory + 20 + 16, ((uint8_t[]){239, 1, 2, 3}), 4);
    aim(c, "ff0e::77");
    assert_int_equal(alb_qp_attach(c->members[0], &c->group), 0);
    struct alb_roce roce = {
        .opcode = ALB_UD_SEND_ONLY, .pkey = ALB_PKEY_DEFAULT, .dest_qpn = ALB_MULTICAST_QPN, .qkey = QKEY};
    uint8_t bytes[ALB_ROCE_HEADER_MAX];
    struct alb_datagram datagram = {
        .local = {c->group, ALB_ROCE_PORT}, .bytes = bytes, .length = alb_roce_encode(&roce, bytes)};
    assert_true(alb_addr_parse("fd00::7", &datagram.peer.addr));
    receive_at(c, 0);
    alb_engine_rx(c->pair->hosts[1].engine, &datagram, 1, c->pair->now);
    assert_memory_equal(c->pair->hosts[1].memory + 24, c->group.bytes, 16);
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 1, &wc));
    assert_int_equal(wc.byte_len, 40);
}

static void alb_engine_rx__a_member_in_trouble_keeps_no_other_waiting(void **state)
{
    struct context *c = *state;
    struct alb_qp_attr attr = {.qkey = QKEY + 1};
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(alb_qp_attach(c->members[i], &c->group), 0);
    assert_int_equal(alb_qp_modify(c->members[0], &attr, ALB_QP_QKEY, 0), 0);
    receive_at(c, 0);
    receive_at(c, 2); // and member 1 has none
    send_to(c, ALB_MULTICAST_QPN, QKEY);
    expect_copy(c, 2);
    expect_nothing(c);
    assert_int_equal(dropped(c, ALB_DROP_BAD_QKEY), 1);
    assert_int_equal(dropped(c, ALB_DROP_NO_RECEIVE), 1);
}

static void alb_engine_rx__to_nobody(void **state)
{
    struct context *c = *state;
    send_to(c, ALB_MULTICAST_QPN, QKEY); // no group at all
    assert_int_equal(dropped(c, ALB_DROP_NO_MEMBER), 1);
    assert_int_equal(alb_qp_attach(c->members[0], &c->group), 0);
    receive_at(c, 0);
    aim(c, "239.1.2.4");
    send_to(c, ALB_MULTICAST_QPN, QKEY);
    assert_int_equal(dropped(c, ALB_DROP_NO_MEMBER), 2);
    expect_nothing(c);
}

// A group has one queue pair number, and that number belongs to groups.
static void alb_engine_rx__number_and_address_belong_together(void **state)
{
    struct context *c = *state;
    assert_int_equal(alb_qp_attach(c->members[0], &c->group), 0);
    receive_at(c, 0);
    send_to(c, alb_qp_number(c->members[0]), QKEY);
    assert_int_equal(dropped(c, ALB_DROP_WRONG_LOCAL), 1);
    send_to(c, 0x12345, QKEY);
    assert_int_equal(dropped(c, ALB_DROP_WRONG_LOCAL), 2);
    send_to(c, 1, QKEY);
    assert_int_equal(dropped(c, ALB_DROP_WRONG_LOCAL), 3);
    struct alb_av av = {.local = c->pair->hosts[0].addr, .peer = c->pair->hosts[1].addr};
    alb_ah_destroy(c->ah);
    assert_int_equal(alb_ah_create(c->pair->hosts[0].pd, &av, &c->ah), 0);
    send_to(c, ALB_MULTICAST_QPN, QKEY);
    assert_int_equal(dropped(c, ALB_DROP_UNKNOWN_QP), 1);
    expect_nothing(c);
}

static void alb_qp_attach__twice_is_once(void **state)
{
    struct context *c = *state;
    assert_int_equal(alb_qp_attach(c->members[0], &c->group), 0);
    assert_int_equal(alb_qp_attach(c->members[0], &c->group), 0);
    receive_at(c, 0);
    receive_at(c, 0);
    send_to(c, ALB_MULTICAST_QPN, QKEY);
    expect_copy(c, 0);
    expect_nothing(c);
    assert_int_equal(alb_qp_detach(c->members[0], &c->group), 0);
    assert_int_equal(alb_qp_detach(c->members[0], &c->group), EINVAL);
    assert_false(alb_engine_has_group(c->pair->hosts[1].engine, &c->group));
}

static void alb_qp_attach__refusals(void **state)
{
    struct context *c = *state;
    struct alb_addr unicast;
    assert_true(alb_addr_parse("10.0.0.2", &unicast));
    assert_int_equal(alb_qp_attach(c->members[0], &unicast), EINVAL);
    struct alb_qp *rc = pair_qp(c->pair, 1, ALB_QPT_RC);
    assert_int_equal(alb_qp_attach(rc, &c->group), EINVAL);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(alb_qp_attach(c->members[i], &c->group), 0);
    assert_int_equal(alb_qp_attach(c->members[MEMBERS], &c->group), ENOMEM);
    for (int i = 1; i < GROUPS; i++) {
        c->group.bytes[15]++;
        assert_int_equal(alb_qp_attach(c->members[0], &c->group), 0);
    }
    c->group.bytes[15]++;
    assert_int_equal(alb_qp_attach(c->members[0], &c->group), ENOMEM);
    assert_false(alb_engine_has_group(c->pair->hosts[1].engine, &c->group));
    leave_all(c->members[0]);
    assert_int_equal(alb_qp_attach(c->members[0], &c->group), 0); // there is room again
}

static void alb_qp_attach__out_of_memory(void **state)
{
    struct context *c = *state;
    size_t held = c->pair->hosts[1].bytes_held;
    for (uint64_t nth = 1; nth <= 3; nth++) { // table, group, membership
        c->pair->hosts[1].refused_from = nth;
        assert_int_equal(alb_qp_attach(c->members[0], &c->group), ENOMEM);
        c->pair->hosts[1].refused_from = 0;
        assert_false(alb_engine_has_group(c->pair->hosts[1].engine, &c->group));
        assert_int_equal(c->pair->hosts[1].bytes_held, held);
    }
    assert_int_equal(alb_qp_attach(c->members[0], &c->group), 0);
    assert_int_equal(alb_qp_detach(c->members[0], &c->group), 0);
    assert_int_equal(c->pair->hosts[1].bytes_held, held);
}

static void alb_qp_destroy__waits_until_it_has_left(void **state)
{
    struct context *c = *state;
    struct alb_qp *qp = ready_qp(c->pair, 1);
    assert_int_equal(alb_qp_attach(qp, &c->group), 0);
    assert_int_equal(alb_qp_destroy(qp), EBUSY);
    leave_all(qp);
    assert_int_equal(alb_qp_destroy(qp), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_engine_rx__copies_to_every_member, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__header_names_the_group, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__a_member_in_trouble_keeps_no_other_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__to_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_engine_rx__number_and_address_belong_together, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_attach__twice_is_once, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_attach__refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_attach__out_of_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_destroy__waits_until_it_has_left, setup, teardown),
    };
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
