// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include "device/device.h"
#include "plugins/verbs/bridge.h"

#include <string.h>

// What queue pairs of the device may have from now on, as that of a host with another interface: both sides of these
// tests are in one process.
static void set_mtu_of_device(struct ibv_context *context, uint32_t bytes)
{
    struct alb_device *device = albedo_bridge_device(context);
    alb_device_lock(device);
    struct alb_engine_config *config = (struct alb_engine_config *)alb_engine_configuration(alb_device_engine(device));
    config->mtu_max_bytes = bytes;
    alb_device_unlock(device);
}

static enum ibv_mtu path_mtu_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_PATH_MTU, &init), 0);
    return attr.path_mtu;
}

// The caller's interface has longer packets than the listener's. On roce0 both take the shorter ones, and the programs
// see nothing of how they came to it; the packets of albedo0 do not depend on what queue pairs are told.
static void connect__to_a_device_with_shorter_packets(void **state)
{
    struct rdma_event_channel *channels[2] = {rdma_create_event_channel(), rdma_create_event_channel()};
    uint16_t port;
    struct rdma_cm_id *listener = fixture_listener(channels[0], RDMA_PS_TCP, &port);
    struct rdma_cm_id *client = fixture_resolved(channels[1], RDMA_PS_TCP, port);
    struct rdma_conn_param param = {
        .private_data = "knock", .private_data_len = 6, .responder_resources = 1, .initiator_depth = 1};
    bool is_roce = strcmp(ibv_get_device_name(client->verbs->device), "roce0") == 0;
    fixture_create_qp(client);
    set_mtu_of_device(client->verbs, 1024);
    assert_int_equal(rdma_connect(client, &param), 0);
    struct rdma_cm_event *event = expect_event(channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *server = event->id;
    assert_string_equal(event->param.conn.private_data, "knock");
    assert_int_equal(rdma_ack_cm_event(event), 0);
    set_mtu_of_device(client->verbs, 4096);
    fixture_create_qp(server);
    assert_int_equal(rdma_accept(server, &param), 0);
    pass_event(channels[1], RDMA_CM_EVENT_ESTABLISHED);
    pass_event(channels[0], RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(path_mtu_of(client->qp), is_roce ? IBV_MTU_1024 : IBV_MTU_4096);
    assert_int_equal(path_mtu_of(server->qp), is_roce ? IBV_MTU_1024 : IBV_MTU_4096);
    assert_int_equal(client->route.path_rec->mtu, path_mtu_of(client->qp));
    struct rdma_cm_id *ids[] = {client, server};
    for (int i = 0; i < 2; i++) {
        rdma_destroy_qp(ids[i]);
        assert_int_equal(rdma_destroy_id(ids[i]), 0);
    }
    assert_int_equal(rdma_destroy_id(listener), 0);
    for (int i = 0; i < 2; i++)
        rdma_destroy_event_channel(channels[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connect__to_a_device_with_shorter_packets),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
