// SPDX-License-Identifier: BSD-2-Clause
// Joining and leaving multicast groups: what the event says, which queue pair is attached, what is refused.
#include "fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#define GROUP "239.97.1.1"

enum { BYTES = 64 };

static const uint8_t group_gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 97, [14] = 1, [15] = 1};

static struct rdma_cm_id *bound_id(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, ps), 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&here), 0);
    return id;
}

static int join(struct rdma_cm_id *id, const char *group, void *context)
{
    struct sockaddr_storage addr = fixture_sockaddr(group, 0);
    return rdma_join_multicast(id, (struct sockaddr *)&addr, context);
}

static int join_as(struct rdma_cm_id *id, uint32_t flags)
{
    struct sockaddr_storage addr = fixture_sockaddr(GROUP, 0);
    struct rdma_cm_join_mc_attr_ex attr = {
        .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
        .join_flags = flags,
        .addr = (struct sockaddr *)&addr,
    };
    return rdma_join_multicast_ex(id, &attr, NULL);
}

static int leave(struct rdma_cm_id *id, const char *group)
{
    struct sockaddr_storage addr = fixture_sockaddr(group, 0);
    return rdma_leave_multicast(id, (struct sockaddr *)&addr);
}

// True if the id's queue pair is attached to the group: then, and only then, it can be detached.
static bool was_attached(struct rdma_cm_id *id)
{
    union ibv_gid gid;
    memcpy(gid.raw, group_gid, sizeof(gid.raw));
    return ibv_detach_mcast(id->qp, &gid, 0) == 0;
}

static void send_to_group(struct rdma_cm_id *id, const struct rdma_ud_param *to, struct ibv_mr *mr)
{
    struct ibv_ah_attr attr = to->ah_attr;
    struct ibv_ah *ah = ibv_create_ah(id->pd, &attr);
    struct ibv_wc wc;
    assert_non_null(ah);
    assert_int_equal(rdma_post_ud_send(id, NULL, mr->addr, BYTES, mr, IBV_SEND_SIGNALED, ah, to->qp_num), 0);
    assert_int_equal(rdma_get_send_comp(id, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void join__says_how_to_send_and_attaches(void **state)
{
    static uint8_t memory[2][256];
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *sender = bound_id(channel, RDMA_PS_UDP), *member = bound_id(channel, RDMA_PS_UDP);
    struct ibv_mr *mr[2];
    struct ibv_wc wc;
    int context;
    fixture_create_qp(sender);
    fixture_create_qp(member);
    mr[0] = rdma_reg_msgs(sender, memory[0], 256);
    mr[1] = rdma_reg_msgs(member, memory[1], 256);
    memset(memory[0], 0x3c, BYTES);
    assert_int_equal(rdma_post_recv(member, NULL, memory[1], 40 + BYTES, mr[1]), 0);
    assert_int_equal(join(member, GROUP, &context), 0);
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    struct rdma_ud_param to = event->param.ud;
    assert_ptr_equal(event->id, member);
    assert_int_equal(event->status, 0);
    assert_ptr_equal(to.private_data, &context);
    assert_int_equal(to.qp_num, 0xffffff);
    assert_int_equal(to.qkey, RDMA_UDP_QKEY);
    assert_int_equal(to.ah_attr.is_global, 1);
    assert_int_equal(to.ah_attr.port_num, 1);
    assert_memory_equal(to.ah_attr.grh.dgid.raw, group_gid, 16);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    send_to_group(sender, &to, mr[0]);
    assert_int_equal(rdma_get_recv_comp(member, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 40 + BYTES);
    assert_memory_equal(memory[1] + 40, memory[0], BYTES);
    assert_int_equal(leave(member, GROUP), 0);
    assert_false(was_attached(member));
    assert_int_equal(rdma_dereg_mr(mr[0]), 0);
    assert_int_equal(rdma_dereg_mr(mr[1]), 0);
    rdma_destroy_qp(member);
    rdma_destroy_qp(sender);
    assert_int_equal(rdma_destroy_id(member), 0);
    assert_int_equal(rdma_destroy_id(sender), 0);
    rdma_destroy_event_channel(channel);
}

static void join__attaches_when_the_event_is_taken(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = bound_id(channel, RDMA_PS_UDP);
    fixture_create_qp(id);
    assert_int_equal(join_as(id, RDMA_MC_JOIN_FLAG_FULLMEMBER), 0);
    assert_false(was_attached(id));
    pass_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    assert_true(was_attached(id));
    assert_int_equal(leave(id, GROUP), 0); // although the program has detached it itself
    assert_int_equal(join_as(id, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER), 0);
    pass_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    assert_false(was_attached(id));
    assert_int_equal(leave(id, GROUP), 0);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

static void join__without_a_queue_pair(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = bound_id(channel, RDMA_PS_UDP);
    assert_int_equal(join(id, GROUP, NULL), 0);
    pass_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    assert_int_equal(leave(id, GROUP), 0);
    expect_errno(leave(id, GROUP), EADDRNOTAVAIL);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

// A group can't be attached: the event says so.
static void join__error_event(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = bound_id(channel, RDMA_PS_UDP);
    struct ibv_device_attr limits;
    union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 98}};
    fixture_create_qp(id);
    assert_int_equal(ibv_query_device(id->verbs, &limits), 0);
    for (int i = 0; i < limits.max_mcast_grp; i++, gid.raw[15] = (uint8_t)i, gid.raw[14] = (uint8_t)(i >> 8))
        assert_int_equal(ibv_attach_mcast(id->qp, &gid, 0), 0);
    assert_int_equal(join(id, GROUP, (void *)9), 0);
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_MULTICAST_ERROR);
    assert_int_equal(event->status, -ENOMEM);
    assert_ptr_equal(event->param.ud.private_data, (void *)9);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(leave(id, GROUP), 0);
    for (int i = limits.max_mcast_grp; i-- > 0;) {
        gid.raw[15] = (uint8_t)i, gid.raw[14] = (uint8_t)(i >> 8);
        assert_int_equal(ibv_detach_mcast(id->qp, &gid, 0), 0);
    }
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

static void join__refusals(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = bound_id(channel, RDMA_PS_UDP), *tcp = bound_id(channel, RDMA_PS_TCP), *unbound;
    struct sockaddr_storage addr = fixture_sockaddr(GROUP, 0);
    struct rdma_cm_join_mc_attr_ex attr = {.addr = (struct sockaddr *)&addr};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_addr = {.s6_addr = {0xff, 0x0e, [15] = 1}}};
    assert_int_equal(rdma_create_id(channel, &unbound, NULL, RDMA_PS_UDP), 0);
    expect_errno(join(id, "0.0.0.0", NULL), EINVAL); // no administrator chooses a group
    expect_errno(join(id, "127.0.0.1", NULL), EINVAL);
    expect_errno(rdma_join_multicast(id, NULL, NULL), EINVAL);
    expect_errno(rdma_join_multicast(id, (struct sockaddr *)&ipv6, NULL), ENETUNREACH);
    expect_errno(join(tcp, GROUP, NULL), EINVAL);
    expect_errno(join(unbound, GROUP, NULL), EINVAL);
    expect_errno(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
    attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
    expect_errno(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
    attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
    expect_errno(rdma_join_multicast_ex(id, &attr, NULL), ENOTSUP);
    expect_errno(join_as(id, RDMA_MC_JOIN_FLAG_RESERVED), EINVAL);
    addr.ss_family = AF_UNIX;
    expect_errno(rdma_join_multicast(id, (struct sockaddr *)&addr, NULL), EINVAL);
    expect_errno(rdma_leave_multicast(id, (struct sockaddr *)&addr), EINVAL);
    struct pollfd poller = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&poller, 1, 0), 0);
    assert_int_equal(rdma_destroy_id(unbound), 0);
    assert_int_equal(rdma_destroy_id(tcp), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

// A group given as the GID that it is.
static void join__unmapped_address(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = bound_id(channel, RDMA_PS_UDP);
    struct sockaddr_ib addr = {.sib_family = AF_IB};
    expect_errno(rdma_join_multicast(id, (struct sockaddr *)&addr, NULL), EINVAL); // zero
    memcpy(&addr.sib_addr, group_gid, 16);
    assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&addr, NULL), 0);
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    assert_memory_equal(event->param.ud.ah_attr.grh.dgid.raw, group_gid, 16);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&addr), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

static void leave__takes_back_an_event_not_taken(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct pollfd poller = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_id *id = bound_id(channel, RDMA_PS_UDP);
    fixture_create_qp(id);
    assert_int_equal(join(id, GROUP, NULL), 0);
    assert_int_equal(join(id, "239.97.1.2", NULL), 0);
    assert_int_equal(leave(id, GROUP), 0);
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN); // the other's
    assert_int_equal(event->param.ud.ah_attr.grh.dgid.raw[15], 2);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(poll(&poller, 1, 0), 0);
    assert_false(was_attached(id));
    rdma_destroy_qp(id); // which leaves the group, or it would stay for ever
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

// Nobody will take the event any more: leaving must not wait for that.
static void leave__whose_channel_has_gone(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = bound_id(channel, RDMA_PS_UDP);
    fixture_create_qp(id);
    assert_int_equal(join(id, GROUP, NULL), 0);
    rdma_destroy_event_channel(channel);
    assert_int_equal(leave(id, GROUP), 0);
    expect_errno(join(id, GROUP, NULL), EBADF);
    expect_errno(leave(id, GROUP), EADDRNOTAVAIL);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static void leave__joined_twice(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = bound_id(channel, RDMA_PS_UDP);
    fixture_create_qp(id);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(join(id, GROUP, NULL), 0);
        pass_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    }
    assert_int_equal(leave(id, GROUP), 0);
    union ibv_gid gid;
    memcpy(gid.raw, group_gid, sizeof(gid.raw));
    assert_int_equal(ibv_destroy_qp(id->qp), EBUSY); // still a member
    assert_int_equal(leave(id, GROUP), 0);
    assert_false(was_attached(id));
    expect_errno(leave(id, GROUP), EADDRNOTAVAIL);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

static void destroy_id__leaves_its_groups(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = bound_id(channel, RDMA_PS_UDP);
    fixture_create_qp(id);
    assert_int_equal(join(id, GROUP, NULL), 0);
    pass_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    assert_int_equal(join(id, "239.97.1.2", NULL), 0); // and one whose event is not taken
    struct ibv_qp *qp = id->qp;
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rdma_destroy_event_channel(channel);
}

static void join__waits_when_synchronous(void **state)
{
    struct rdma_cm_id *id = bound_id(NULL, RDMA_PS_UDP);
    fixture_create_qp(id);
    assert_int_equal(join(id, GROUP, NULL), 0);
    assert_non_null(id->event);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
    assert_int_equal(id->event->param.ud.qp_num, 0xffffff);
    assert_int_equal(leave(id, GROUP), 0);
    assert_false(was_attached(id));
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join__says_how_to_send_and_attaches),
        cmocka_unit_test(join__attaches_when_the_event_is_taken),
        cmocka_unit_test(join__without_a_queue_pair),
        cmocka_unit_test(join__error_event),
        cmocka_unit_test(join__refusals),
        cmocka_unit_test(join__unmapped_address),
        cmocka_unit_test(leave__takes_back_an_event_not_taken),
        cmocka_unit_test(leave__whose_channel_has_gone),
        cmocka_unit_test(leave__joined_twice),
        cmocka_unit_test(destroy_id__leaves_its_groups),
        cmocka_unit_test(join__waits_when_synchronous),
    };
    return cmocka_run_group_tests_name("multicast", tests, fixture_setup, NULL);
}
