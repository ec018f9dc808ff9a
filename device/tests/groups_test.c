// SPDX-License-Identifier: BSD-2-Clause
// Hearing multicast groups on the loopback interface, which takes neither route nor privilege over IPv4.
#include "device/groups.h"

#include "base/tests/test.h"
#include "wire/datagram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

struct context {
    struct alb_groups groups;
    int epoll_fd;
    struct alb_socket sender;
};

static struct alb_addr addr_of(const char *text)
{
    struct alb_addr addr;
    assert_true(alb_addr_parse(text, &addr));
    return addr;
}

static void open_context(struct context *c)
{
    const struct alb_addr local = addr_of("127.93.0.1");
    const struct alb_endpoint sender = {local, 0};
    uint32_t loopback = if_nametoindex("lo");
    *c = (struct context){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    assert_true(c->epoll_fd >= 0);
    alb_groups_add_interface(&c->groups, &local, loopback);
    alb_groups_add_interface(&c->groups, &local, loopback);
    assert_int_equal(alb_socket_open(&c->sender, &sender), 0);
    alb_socket_set_multicast_interface(&c->sender, loopback);
}

static void close_context(struct context *c)
{
    alb_groups_leave_all(&c->groups, c->epoll_fd);
    alb_socket_close(&c->sender);
    close(c->epoll_fd);
}

static void send_to(const struct context *c, const char *group, const char *text)
{
    const struct alb_endpoint to = {addr_of(group), ALB_ROCE_PORT};
    union alb_sockaddr address;
    socklen_t length = alb_sockaddr_encode(&to, &address);
    assert_int_equal(sendto(c->sender.fd, text, strlen(text), 0, &address.any, length), strlen(text));
}

// What one of the groups' sockets has; NULL: none has anything.
static const struct alb_socket *ready(const struct context *c)
{
    struct epoll_event event;
    return epoll_wait(c->epoll_fd, &event, 1, 0) == 1 ? event.data.ptr : NULL;
}

static void expect(const struct context *c, const char *group, const char *text)
{
    char bytes[64];
    const struct alb_addr addr = addr_of(group);
    const struct alb_socket *sock = ready(c);
    assert_non_null(sock);
    assert_true(sock->is_group);
    assert_true(alb_addr_equals(&sock->local.addr, &addr));
    assert_int_equal(sock->local.port, ALB_ROCE_PORT);
    assert_int_equal(recv(sock->fd, bytes, sizeof(bytes), 0), strlen(text));
    assert_memory_equal(bytes, text, strlen(text));
}

static void join(struct context *c, const char *group)
{
    const struct alb_addr addr = addr_of(group);
    assert_int_equal(alb_groups_join(&c->groups, &addr, c->epoll_fd), 0);
}

static void alb_groups_join__every_process_hears(void **state)
{
    struct context one, two;
    open_context(&one);
    open_context(&two);
    join(&one, "239.93.0.1");
    join(&two, "239.93.0.1");
    send_to(&one, "239.93.0.1", "hello");
    expect(&one, "239.93.0.1", "hello");
    expect(&two, "239.93.0.1", "hello");
    assert_null(ready(&one)); // an interface that was named twice is joined once
    close_context(&two);
    close_context(&one);
}

static void alb_groups_leave__hears_no_more(void **state)
{
    struct context c, other;
    const struct alb_addr group = addr_of("239.93.0.2");
    open_context(&c);
    open_context(&other);
    join(&c, "239.93.0.2");
    join(&c, "239.93.0.3");
    join(&other, "239.93.0.2");
    assert_true(alb_groups_leave(&c.groups, &group, c.epoll_fd));
    assert_false(alb_groups_leave(&c.groups, &group, c.epoll_fd));
    send_to(&c, "239.93.0.2", "gone");
    assert_null(ready(&c));
    expect(&other, "239.93.0.2", "gone");
    send_to(&c, "239.93.0.3", "there");
    expect(&c, "239.93.0.3", "there");
    close_context(&other);
    close_context(&c);
}

// What another process of the host has joined on the same interface is not ours.
static void alb_groups_join__hears_its_own_group_only(void **state)
{
    struct context c, other;
    open_context(&c);
    open_context(&other);
    join(&c, "239.93.0.4");
    join(&other, "239.93.0.5");
    send_to(&c, "239.93.0.5", "not ours");
    expect(&other, "239.93.0.5", "not ours");
    assert_null(ready(&c));
    close_context(&other);
    close_context(&c);
}

// The kernel forgets what was joined on an interface when that is deleted.
static void alb_groups_join_again__hears_as_before(void **state)
{
    struct context c;
    const struct alb_addr local = addr_of("127.93.0.1");
    struct ip_mreqn gone = {.imr_ifindex = (int)if_nametoindex("lo")};
    open_context(&c);
    join(&c, "239.93.0.7");
    send_to(&c, "239.93.0.7", "before");
    const struct alb_socket *sock = ready(&c);
    expect(&c, "239.93.0.7", "before");
    assert_int_equal(inet_pton(AF_INET, "239.93.0.7", &gone.imr_multiaddr), 1);
    assert_int_equal(setsockopt(sock->fd, IPPROTO_IP, IP_DROP_MEMBERSHIP, &gone, sizeof(gone)), 0);
    send_to(&c, "239.93.0.7", "unheard");
    assert_null(ready(&c));
    alb_groups_forget_interfaces(&c.groups);
    alb_groups_add_interface(&c.groups, &local, if_nametoindex("lo"));
    assert_int_equal(alb_groups_join_again(&c.groups, c.epoll_fd), 0);
    send_to(&c, "239.93.0.7", "after");
    expect(&c, "239.93.0.7", "after");
    assert_null(ready(&c));
    close_context(&c);
}

static void alb_groups_join__refusals(void **state)
{
    struct context c;
    struct alb_addr group = addr_of("ff0e::93");
    open_context(&c);
    assert_int_equal(alb_groups_join(&c.groups, &group, c.epoll_fd), ENETUNREACH);
    group = addr_of("239.94.0.0");
    for (int i = 0; i < ALB_GROUPS_MAX; i++, group.bytes[15]++)
        assert_int_equal(alb_groups_join(&c.groups, &group, c.epoll_fd), 0);
    group = addr_of("239.95.0.0");
    assert_int_equal(alb_groups_join(&c.groups, &group, c.epoll_fd), ENOMEM);
    alb_groups_leave_all(&c.groups, c.epoll_fd);
    assert_int_equal(alb_groups_join(&c.groups, &group, c.epoll_fd), 0);
    alb_groups_leave_all(&c.groups, c.epoll_fd);
    group = addr_of("10.0.0.1"); // the kernel's opinion: no address to bind, or none to join
    assert_int_not_equal(alb_groups_join(&c.groups, &group, c.epoll_fd), 0);
    assert_int_equal(c.groups.count, 0);
    close_context(&c);
}

// Whichever way the group is heard, it is descriptors that there are none of.
static void alb_groups_join__without_descriptors(void **state)
{
    const struct alb_addr loopback = addr_of("::1"), ipv4 = addr_of("239.93.0.6"), carried = addr_of("ff0e::93:6");
    struct rlimit before, none;
    struct context c;
    open_context(&c);
    alb_groups_add_interface(&c.groups, &loopback, if_nametoindex("lo"));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int ipv4_error = alb_groups_join(&c.groups, &ipv4, c.epoll_fd);
    int carried_error = alb_groups_join(&c.groups, &carried, c.epoll_fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(ipv4_error, EMFILE);
    assert_int_equal(carried_error, EMFILE);
    join(&c, "ff0e::93:6");
    close_context(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_groups_join__every_process_hears),
        cmocka_unit_test(alb_groups_leave__hears_no_more),
        cmocka_unit_test(alb_groups_join__hears_its_own_group_only),
        cmocka_unit_test(alb_groups_join__refusals),
        cmocka_unit_test(alb_groups_join__without_descriptors),
        cmocka_unit_test(alb_groups_join_again__hears_as_before),
    };
    return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
