// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

static void wc_status_str__every_status_and_none(void **state)
{
    for (int status = IBV_WC_SUCCESS; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++)
        assert_string_not_equal(ibv_wc_status_str(status), "unknown");
    assert_string_equal(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
    assert_string_equal(ibv_wc_status_str(IBV_WC_TM_RNDV_INCOMPLETE + 1), "unknown");
    assert_string_equal(ibv_wc_status_str((enum ibv_wc_status) - 1), "unknown");
}

static void event_type_str__every_type_and_none(void **state)
{
    for (int type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_WQ_FATAL; type++)
        assert_string_not_equal(ibv_event_type_str(type), "unknown");
    assert_string_equal(ibv_event_type_str(IBV_EVENT_WQ_FATAL + 1), "unknown");
    assert_string_equal(ibv_event_type_str((enum ibv_event_type) - 1), "unknown");
}

static void node_type_str__range(void **state)
{
    assert_string_equal(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
    assert_string_equal(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
    assert_string_equal(ibv_node_type_str((enum ibv_node_type)0), "unknown");
    assert_string_equal(ibv_node_type_str(IBV_NODE_UNSPECIFIED + 1), "unknown");
}

static void port_state_str__range(void **state)
{
    assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
    assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE_DEFER + 1), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wc_status_str__every_status_and_none),
        cmocka_unit_test(event_type_str__every_type_and_none),
        cmocka_unit_test(node_type_str__range),
        cmocka_unit_test(port_state_str__range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
