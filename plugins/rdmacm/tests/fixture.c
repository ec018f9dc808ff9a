// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include "device/address.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RESOLVE_MS = 2000 };

char fixture_address[32];
bool fixture_has_ipv6;
static char base[64];
static pid_t owner; // of the folder: a forked child leaves it alone

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    return remove(path);
}

// The device lists the process until it ends: this runs after its own last words.
static void remove_base(void)
{
    if (getpid() == owner)
        nftw(base, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

int fixture_setup(void **state)
{
    snprintf(fixture_address, sizeof(fixture_address), "127.%d.%d.%d", 128 + getpid() / 65536 % 64,
             getpid() / 256 % 256, getpid() % 255 + 1);
    strcpy(base, "/tmp/albedo-rdmacm-XXXXXX");
    assert_non_null(mkdtemp(base));
    owner = getpid();
    atexit(remove_base);
    setenv("ALBEDO_DIRECTORY", base, 1);
    char net[64];
    struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
    struct alb_addr ipv6;
    struct alb_address_info info;
    memcpy(ipv6.bytes, &loopback, sizeof(ipv6.bytes));
    fixture_has_ipv6 = alb_address_find(&ipv6, &info) == 0;
    snprintf(net, sizeof(net), "%s%s", fixture_address, fixture_has_ipv6 ? ",::1" : "");
    setenv("ALBEDO_NET", net, 1);
    return 0;
}

struct sockaddr_storage fixture_sockaddr(const char *address, uint16_t port)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&storage;
    if (strchr(address, ':')) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        assert_int_equal(inet_pton(AF_INET6, address, &in6->sin6_addr), 1);
        return storage;
    }
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    assert_int_equal(inet_pton(AF_INET, address, &in->sin_addr), 1);
    return storage;
}

struct rdma_cm_event *expect_event_at(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
                                      const char *file, int line)
{
    struct rdma_cm_event *event;
    _assert_int_equal(rdma_get_cm_event(channel, &event), 0, file, line);
    _assert_string_equal(rdma_event_str(event->event), rdma_event_str(type), file, line);
    return event;
}

void pass_event_at(struct rdma_event_channel *channel, enum rdma_cm_event_type type, const char *file, int line)
{
    assert_int_equal(rdma_ack_cm_event(expect_event_at(channel, type, file, line)), 0);
}

struct rdma_cm_id *fixture_listener_at(struct rdma_event_channel *channel, enum rdma_port_space ps, const char *address,
                                       uint16_t *port)
{
    struct sockaddr_storage here = fixture_sockaddr(address, 0);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, (void *)7, ps), 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&here), 0);
    *port = ntohs(rdma_get_src_port(id));
    assert_int_not_equal(*port, 0);
    assert_int_equal(rdma_listen(id, 4), 0);
    return id;
}

struct rdma_cm_id *fixture_listener(struct rdma_event_channel *channel, enum rdma_port_space ps, uint16_t *port)
{
    return fixture_listener_at(channel, ps, fixture_address, port);
}

struct rdma_cm_id *fixture_resolved_at(struct rdma_event_channel *channel, enum rdma_port_space ps, const char *address,
                                       uint16_t port)
{
    struct sockaddr_storage there = fixture_sockaddr(address, port);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, ps), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, RESOLVE_MS), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, RESOLVE_MS), 0);
    pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_non_null(id->verbs);
    return id;
}

struct rdma_cm_id *fixture_resolved(struct rdma_event_channel *channel, enum rdma_port_space ps, uint16_t port)
{
    return fixture_resolved_at(channel, ps, fixture_address, port);
}

void fixture_create_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = id->qp_type,
        .sq_sig_all = 1,
    };
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    assert_non_null(id->qp);
    assert_non_null(id->send_cq);
}
