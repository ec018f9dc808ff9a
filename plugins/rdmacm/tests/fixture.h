// SPDX-License-Identifier: BSD-2-Clause
// The library as a program uses it: an address and a host directory of the test's own, two ids of one process.
#pragma once

#include "base/tests/test.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>

extern char fixture_address[32];
extern bool fixture_has_ipv6; // the device has ::1, too

// Sets up the environment; before the first call of the library. For cmocka_run_group_tests.
int fixture_setup(void **state);

struct sockaddr_storage fixture_sockaddr(const char *address, uint16_t port);
// The next event of the channel, which must be of that type. To be acknowledged.
struct rdma_cm_event *expect_event_at(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
                                      const char *file, int line);
#define expect_event(channel, type) expect_event_at(channel, type, __FILE__, __LINE__)
// The same, acknowledged at once.
void pass_event_at(struct rdma_event_channel *channel, enum rdma_cm_event_type type, const char *file, int line);
#define pass_event(channel, type) pass_event_at(channel, type, __FILE__, __LINE__)

#define expect_errno(call, number)         \
    do {                                   \
        errno = 0;                         \
        assert_int_equal((call), -1);      \
        assert_int_equal(errno, (number)); \
    } while (0)

// A listener on any port of the test's address; its port is stored.
struct rdma_cm_id *fixture_listener(struct rdma_event_channel *channel, enum rdma_port_space ps, uint16_t *port);
struct rdma_cm_id *fixture_listener_at(struct rdma_event_channel *channel, enum rdma_port_space ps, const char *address,
                                       uint16_t *port);
// An id whose address and route to that port are resolved.
struct rdma_cm_id *fixture_resolved(struct rdma_event_channel *channel, enum rdma_port_space ps, uint16_t port);
struct rdma_cm_id *fixture_resolved_at(struct rdma_event_channel *channel, enum rdma_port_space ps, const char *address,
                                       uint16_t port);
void fixture_create_qp(struct rdma_cm_id *id);
