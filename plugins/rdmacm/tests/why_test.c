// SPDX-License-Identifier: BSD-2-Clause
// A connection that does not come about: what is said, and that it is said once.
#include "fixture.h"

#include "device/tests/said.h"

#include <arpa/inet.h>
#include <string.h>

enum { SAID_MAX = 2048, PORT = 18777 };

static void assert_said(struct said *said, const char *first, const char *second)
{
    char text[SAID_MAX];
    said_end(said, text, sizeof(text));
    if (!strstr(text, first) || !strstr(text, second))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", text, first, second);
    assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n')); // one line
}

static void assert_silent(struct said *said)
{
    char text[SAID_MAX];
    said_end(said, text, sizeof(text));
    assert_string_equal(text, "");
}

static void resolve(struct rdma_event_channel *channel, const char *address)
{
    struct sockaddr_storage there = fixture_sockaddr(address, PORT);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_ERROR);
    assert_int_equal(rdma_destroy_id(id), 0);
}

// The host may have a way there, but from none of the device's addresses.
static void why__no_address(void **state)
{
    struct said said;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    said_begin(&said);
    resolve(channel, "192.0.2.9");
    assert_said(&said, "warning: rdma_cm: 192.0.2.9 port 18777: the device has no address to reach it from",
                "`albedo run --net` sets them");
    said_begin(&said);
    resolve(channel, "192.0.2.10");
    assert_silent(&said);
    rdma_destroy_event_channel(channel);
}

static void call(struct rdma_event_channel *channel, const char *address, enum rdma_cm_event_type expected)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0), there = fixture_sockaddr(address, PORT);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&here, (struct sockaddr *)&there, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    fixture_create_qp(id);
    assert_int_equal(rdma_connect(id, NULL), 0);
    pass_event(channel, expected);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static void why__nobody_listens(void **state)
{
    struct said said;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    said_begin(&said);
    call(channel, fixture_address, RDMA_CM_EVENT_REJECTED);
    assert_said(&said, " port 18777: nothing listens there by ",
                "`albedo run --device` chooses it. (Of several users of that host, or containers");
    said_begin(&said);
    call(channel, fixture_address, RDMA_CM_EVENT_REJECTED);
    assert_silent(&said);
    rdma_destroy_event_channel(channel);
}

// An address of this host where no process has a device.
static void why__no_answer(void **state)
{
    struct said said;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    said_begin(&said);
    call(channel, "127.254.253.251", RDMA_CM_EVENT_UNREACHABLE);
    assert_said(&said, "rdma_cm: 127.254.253.251 port 18777: no answer: is the host up", "`albedo run --net`?");
    rdma_destroy_event_channel(channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(why__no_address),
        cmocka_unit_test(why__nobody_listens),
        cmocka_unit_test(why__no_answer),
    };
    return cmocka_run_group_tests_name("why", tests, fixture_setup, NULL);
}
