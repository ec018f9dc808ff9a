// SPDX-License-Identifier: BSD-2-Clause
// Binding to loopback addresses that the device does not have.
#include "fixture.h"

#include <stdlib.h>

// A device with a loopback address of one family only.
static int setup(void **state)
{
    fixture_setup(state);
    if (fixture_has_ipv6)
        setenv("ALBEDO_NET", "::1", 1);
    return 0;
}

static void bind__takes_loopback_for_any_where_the_device_has_none(void **state)
{
    struct sockaddr_storage ipv4 = fixture_sockaddr("127.0.0.1", 0);
    struct rdma_cm_id *id, *other;
    if (!fixture_has_ipv6)
        skip();
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_create_id(NULL, &other, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&ipv4), 0);
    assert_null(id->verbs); // bound to no device yet
    assert_int_not_equal(rdma_get_src_port(id), 0);
    assert_int_equal(rdma_listen(id, 1), 0);
    ((struct sockaddr_in *)&ipv4)->sin_port = rdma_get_src_port(id);
    expect_errno(rdma_bind_addr(other, (struct sockaddr *)&ipv4), EADDRINUSE);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(other), 0);
}

static void bind__to_a_loopback_address_of_the_device(void **state)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_has_ipv6 ? "::1" : fixture_address, 0);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&here), 0);
    assert_non_null(id->verbs);
    assert_int_equal(rdma_destroy_id(id), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bind__takes_loopback_for_any_where_the_device_has_none),
        cmocka_unit_test(bind__to_a_loopback_address_of_the_device),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
