// SPDX-License-Identifier: BSD-2-Clause
// Ids, addresses and event channels.
#include "fixture.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void channel__says_whether_it_holds_something(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_event *event;
    assert_non_null(channel);
    struct pollfd poller = {.fd = channel->fd, .events = POLLIN | POLLOUT}; // a kernel's is never writable
    assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
    expect_errno(rdma_get_cm_event(channel, &event), EAGAIN);
    assert_int_equal(poll(&poller, 1, 0), 0);
    struct sockaddr_storage there = fixture_sockaddr(fixture_address, 9);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 100), 0);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    assert_int_equal(poll(&poller, 1, 0), 1);
    pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(poll(&poller, 1, 0), 1);
    pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_int_equal(poll(&poller, 1, 0), 0);
    expect_errno(rdma_get_cm_event(channel, &event), EAGAIN);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

// Events that were not taken end with their id.
static void channel__is_empty_when_its_ids_are_gone(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct pollfd poller = {.fd = channel->fd, .events = POLLIN};
    struct sockaddr_storage there = fixture_sockaddr(fixture_address, 9);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 100), 0);
    assert_int_equal(poll(&poller, 1, 0), 1);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(poll(&poller, 1, 0), 0);
    rdma_destroy_event_channel(channel);
}

static void *destroy(void *id)
{
    return rdma_destroy_id(id) ? id : NULL;
}

// Another thread destroys the id meanwhile, and waits for the acknowledgement.
static void destroy_id__while_a_handler_goes_on_with_it(void **state)
{
    static const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct pollfd poller = {.fd = channel->fd, .events = POLLIN};
    struct sockaddr_storage there = fixture_sockaddr(fixture_address, 9);
    struct rdma_conn_param param = {.qp_num = 5};
    for (int steps = 1; steps <= 2; steps++) {
        struct rdma_cm_id *id;
        struct rdma_cm_event *event;
        pthread_t thread;
        void *failed;
        assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
        assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 100), 0);
        if (steps == 2) {
            pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
            assert_int_equal(rdma_resolve_route(id, 100), 0);
        }
        assert_int_equal(rdma_get_cm_event(channel, &event), 0);
        assert_int_equal(pthread_create(&thread, NULL, destroy, id), 0);
        nanosleep(&pause, NULL);
        if (steps == 1)
            rdma_resolve_route(id, 100);
        else
            rdma_connect(id, &param);
        expect_errno(rdma_accept(event->id, NULL), EINVAL);
        rdma_ack_cm_event(event);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        assert_int_equal(poll(&poller, 1, 100), 0);
    }
    rdma_destroy_event_channel(channel);
}

static void ignore(int number)
{
}

static void *resolve_late(void *argument)
{
    static const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    struct sockaddr_storage there = fixture_sockaddr(fixture_address, 9);
    nanosleep(&pause, NULL);
    rdma_resolve_addr(argument, NULL, (struct sockaddr *)&there, 100);
    return NULL;
}

// A signal whose handler lets calls go on ends no wait, as with a kernel; any other does.
static void get_cm_event__and_signals(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    const struct itimerval often = {.it_interval = {.tv_usec = 5000}, .it_value = {.tv_usec = 5000}}, never = {0};
    struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART}, before;
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    pthread_t thread;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(pthread_create(&thread, NULL, resolve_late, id), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    action.sa_flags = 0;
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    expect_errno(rdma_get_cm_event(channel, &event), EINTR);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

static void bind__refuses_ports_in_use_and_foreign_addresses(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    uint16_t port;
    struct rdma_cm_id *listener = fixture_listener(channel, RDMA_PS_TCP, &port);
    struct sockaddr_storage taken = fixture_sockaddr(fixture_address, port), any = fixture_sockaddr("0.0.0.0", port);
    struct sockaddr_storage foreign = fixture_sockaddr("192.0.2.1", 0);
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&taken), EADDRINUSE);
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&any), EADDRINUSE);
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&foreign), EADDRNOTAVAIL);
    foreign = fixture_sockaddr("127.255.0.1", 0); // of the host, not of the device
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&foreign), ENODEV);
    foreign.ss_family = AF_UNIX;
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&foreign), EAFNOSUPPORT);
    assert_int_equal(rdma_destroy_id(listener), 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&taken), 0); // free at once
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&taken), EINVAL);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

// Ports may be shared until one listens.
static void bind__shares_ports_that_are_reusable(void **state)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    struct rdma_cm_id *ids[3];
    int one = 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rdma_create_id(NULL, &ids[i], NULL, RDMA_PS_TCP), 0);
        if (i < 2)
            assert_int_equal(rdma_set_option(ids[i], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)), 0);
    }
    assert_int_equal(rdma_bind_addr(ids[0], (struct sockaddr *)&here), 0);
    ((struct sockaddr_in *)&here)->sin_port = rdma_get_src_port(ids[0]);
    assert_int_equal(rdma_bind_addr(ids[1], (struct sockaddr *)&here), 0);
    assert_int_equal(rdma_listen(ids[0], 1), 0);
    expect_errno(rdma_listen(ids[1], 1), EADDRINUSE);
    expect_errno(rdma_bind_addr(ids[2], (struct sockaddr *)&here), EADDRINUSE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rdma_destroy_id(ids[i]), 0);
}

// As from the kernel: one that is bound already may still say so, and one that listens may not.
static void bind__is_made_reusable_afterwards(void **state)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    struct rdma_cm_id *ids[2];
    int one = 1, none = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rdma_create_id(NULL, &ids[i], NULL, RDMA_PS_TCP), 0);
        assert_int_equal(rdma_set_option(ids[i], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &i, sizeof(i)), 0);
    }
    assert_int_equal(rdma_bind_addr(ids[0], (struct sockaddr *)&here), 0);
    ((struct sockaddr_in *)&here)->sin_port = rdma_get_src_port(ids[0]);
    expect_errno(rdma_bind_addr(ids[1], (struct sockaddr *)&here), EADDRINUSE);
    assert_int_equal(rdma_set_option(ids[0], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)), 0);
    assert_int_equal(rdma_bind_addr(ids[1], (struct sockaddr *)&here), 0);
    expect_errno(rdma_set_option(ids[1], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &none, sizeof(none)), EINVAL);
    assert_int_equal(rdma_listen(ids[0], 1), 0);
    expect_errno(rdma_set_option(ids[0], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)), EINVAL);
    expect_errno(rdma_listen(ids[1], 1), EADDRINUSE);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rdma_destroy_id(ids[i]), 0);
}

// Its port is that of both families, or of IPv6 alone, as it says.
static void bind__is_given_one_family_afterwards(void **state)
{
    struct sockaddr_storage any = fixture_sockaddr("::", 0), ipv4 = fixture_sockaddr(fixture_address, 0);
    struct rdma_cm_id *both, *other;
    int one = 1, none = 0;
    if (!fixture_has_ipv6)
        skip();
    assert_int_equal(rdma_create_id(NULL, &both, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_create_id(NULL, &other, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(both, (struct sockaddr *)&any), 0);
    ((struct sockaddr_in *)&ipv4)->sin_port = rdma_get_src_port(both);
    expect_errno(rdma_bind_addr(other, (struct sockaddr *)&ipv4), EADDRINUSE);
    assert_int_equal(rdma_set_option(both, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)), 0);
    assert_int_equal(rdma_bind_addr(other, (struct sockaddr *)&ipv4), 0);
    expect_errno(rdma_set_option(both, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &none, sizeof(none)), EADDRINUSE);
    assert_int_equal(rdma_listen(both, 1), 0);
    expect_errno(rdma_set_option(both, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)), EINVAL);
    assert_int_equal(rdma_listen(other, 1), 0);
    assert_int_equal(rdma_destroy_id(both), 0);
    assert_int_equal(rdma_destroy_id(other), 0);
}

static void resolve__says_what_is_wrong(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_storage far = fixture_sockaddr("192.0.2.1", 9), foreign = far, odd = far;
    struct rdma_cm_id *id;
    odd.ss_family = 27; // AF_IB
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    expect_errno(rdma_resolve_addr(id, NULL, (struct sockaddr *)&odd, 100), EAFNOSUPPORT);
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&odd), EAFNOSUPPORT);
    expect_errno(rdma_resolve_addr(id, (struct sockaddr *)&foreign, (struct sockaddr *)&far, 100), EADDRNOTAVAIL);
    expect_errno(rdma_resolve_route(id, 100), EINVAL); // no address yet
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&far, 100), 0);
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR);
    assert_true(event->status < 0); // the device has no address to send from, or the host no route
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

// As with a kernel's rdma_cm: nothing could come of it, so that no event says so.
static void resolve__of_another_family_than_what_the_id_is_bound_to(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0), any = fixture_sockaddr("0.0.0.0", 0),
                            there = fixture_sockaddr("::1", 9), wrapped = fixture_sockaddr("::ffff:127.0.0.1", 9);
    struct rdma_cm_id *ids[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(ids[0], (struct sockaddr *)&here), 0);
    expect_errno(rdma_resolve_addr(ids[0], NULL, (struct sockaddr *)&there, 100), EINVAL);
    expect_errno(rdma_resolve_addr(ids[1], (struct sockaddr *)&here, (struct sockaddr *)&there, 100), EINVAL);
    expect_errno(rdma_resolve_addr(ids[2], (struct sockaddr *)&any, (struct sockaddr *)&there, 100), EINVAL);
    assert_int_equal(rdma_resolve_addr(ids[0], NULL, (struct sockaddr *)&wrapped, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rdma_destroy_id(ids[i]), 0);
    rdma_destroy_event_channel(channel);
}

// As with a kernel's rdma_cm, and with TCP.
static void resolve__any_address_is_this_host(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_storage any = fixture_sockaddr("0.0.0.0", 9), here = fixture_sockaddr(fixture_address, 9);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&any, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_memory_equal(rdma_get_peer_addr(id), &here, sizeof(struct sockaddr_in));
    assert_int_equal(((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr.s_addr,
                     ((struct sockaddr_in *)&here)->sin_addr.s_addr);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

// As with a kernel's rdma_cm: address, route and connection come once and in this order.
static void resolve__once_and_in_order(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_storage there = fixture_sockaddr(fixture_address, 9), here = fixture_sockaddr(fixture_address, 0);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    expect_errno(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 100), EINVAL);
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&here), EINVAL);
    expect_errno(rdma_listen(id, 1), EINVAL);
    expect_errno(rdma_connect(id, NULL), EINVAL);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    expect_errno(rdma_resolve_route(id, 100), EINVAL);
    expect_errno(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 100), EINVAL);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

// What could not be resolved may be tried again.
static void resolve__again_after_an_error(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_storage far = fixture_sockaddr("192.0.2.1", 9), there = fixture_sockaddr(fixture_address, 9);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&far, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_ERROR);
    expect_errno(rdma_resolve_route(id, 100), EINVAL);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
}

static void create_id__refuses_an_unknown_port_space(void **state)
{
    struct rdma_cm_id *id;
    expect_errno(rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)5), EINVAL);
}

static void set_option__checks_what_it_is_given(void **state)
{
    struct rdma_cm_id *id;
    uint8_t byte = 32;
    int one = 1;
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1), 0);
    expect_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &one, sizeof(one)), EINVAL);
    expect_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), EINVAL);
    byte = 14;
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), 0);
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)), 0);
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)), 0);
    expect_errno(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &one, sizeof(one)), EOPNOTSUPP);
    expect_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EFAULT);
    expect_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, NULL, 1), EFAULT);
    expect_errno(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, NULL, sizeof(one)), EFAULT);
    expect_errno(rdma_set_option(id, 99, 0, &one, sizeof(one)), ENOSYS);
    expect_errno(rdma_set_option(id, RDMA_OPTION_ID, 99, &one, sizeof(one)), ENOSYS);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static void migrate__takes_events_along(void **state)
{
    struct rdma_event_channel *from = rdma_create_event_channel(), *to = rdma_create_event_channel();
    struct sockaddr_storage there = fixture_sockaddr(fixture_address, 9);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(from, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 100), 0);
    assert_int_equal(rdma_migrate_id(id, to), 0);
    assert_ptr_equal(id->channel, to);
    rdma_destroy_event_channel(from);
    pass_event(to, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(to);
}

static void getaddrinfo__both_sides(void **state)
{
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *info;
    assert_int_equal(rdma_getaddrinfo(fixture_address, "7471", &hints, &info), 0);
    assert_int_equal(info->ai_qp_type, IBV_QPT_RC);
    assert_int_equal(info->ai_dst_len, sizeof(struct sockaddr_in));
    assert_null(info->ai_src_addr);
    rdma_freeaddrinfo(info);
    hints = (struct rdma_addrinfo){.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP};
    assert_int_equal(rdma_getaddrinfo(NULL, "7471", &hints, &info), 0);
    assert_int_equal(info->ai_qp_type, IBV_QPT_UD);
    assert_non_null(info->ai_src_addr);
    assert_null(info->ai_dst_addr);
    rdma_freeaddrinfo(info);
    hints.ai_flags = RAI_NUMERICHOST;
    assert_int_not_equal(rdma_getaddrinfo("no number", "7471", &hints, &info), 0);
    assert_int_not_equal(rdma_getaddrinfo(NULL, NULL, NULL, &info), 0);
}

static void getaddrinfo__kinds_that_do_not_go_together(void **state)
{
    static const struct {
        enum rdma_port_space space;
        enum ibv_qp_type type;
    } kinds[] = {{RDMA_PS_TCP, IBV_QPT_UD}, {RDMA_PS_UDP, IBV_QPT_RC}};
    struct rdma_addrinfo *info;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct rdma_addrinfo hints = {.ai_port_space = kinds[i].space, .ai_qp_type = kinds[i].type};
        assert_int_equal(rdma_getaddrinfo(fixture_address, "7471", &hints, &info), EAI_SOCKTYPE);
    }
    struct rdma_addrinfo unknown = {.ai_flags = 1 << 30, .ai_port_space = RDMA_PS_TCP};
    assert_int_equal(rdma_getaddrinfo(fixture_address, "7471", &unknown, &info), EAI_BADFLAGS);
}

static void get_devices__shows_the_one(void **state)
{
    int count;
    struct ibv_context **list = rdma_get_devices(&count);
    assert_int_equal(count, 1);
    assert_non_null(list[0]);
    assert_null(list[1]);
    rdma_free_devices(list);
}

static void event_str__has_one_for_every_type(void **state)
{
    for (int type = RDMA_CM_EVENT_ADDR_RESOLVED; type <= RDMA_CM_EVENT_TIMEWAIT_EXIT; type++)
        assert_non_null(strstr(rdma_event_str((enum rdma_cm_event_type)type), "RDMA_CM_EVENT_"));
    assert_string_equal(rdma_event_str((enum rdma_cm_event_type)99), "UNKNOWN EVENT");
}

// What the parent made is refused in a child and left alone, whatever threads the parent has.
static bool is_refused(struct rdma_event_channel *channel, struct rdma_cm_id *listener, struct rdma_cm_id *id)
{
    struct sockaddr_storage there = fixture_sockaddr(fixture_address, 9), group = fixture_sockaddr("224.0.0.9", 9);
    struct sockaddr *address = (struct sockaddr *)&there;
    struct rdma_conn_param param = {0};
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
    struct rdma_cm_event *event;
    struct rdma_cm_id *fresh;
    const struct {
        int result, error;
    } calls[] = {
        {rdma_get_cm_event(channel, &event), errno},
        {rdma_create_id(channel, &fresh, NULL, RDMA_PS_TCP), errno},
        {rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &(int){1}, sizeof(int)), errno},
        {rdma_bind_addr(id, address), errno},
        {rdma_listen(id, 1), errno},
        {rdma_resolve_addr(id, NULL, address, 100), errno},
        {rdma_resolve_route(id, 100), errno},
        {rdma_create_qp(id, NULL, &attr), errno},
        {rdma_connect(id, &param), errno},
        {rdma_accept(id, &param), errno},
        {rdma_reject(id, NULL, 0), errno},
        {rdma_disconnect(id), errno},
        {rdma_establish(id), errno},
        {rdma_notify(id, IBV_EVENT_COMM_EST), errno},
        {rdma_join_multicast(id, (struct sockaddr *)&group, NULL), errno},
        {rdma_leave_multicast(id, address), errno},
        {rdma_migrate_id(id, NULL), errno},
        {rdma_get_request(listener, &fresh), errno},
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (calls[i].result != -1 || calls[i].error != ENODEV) {
            print_error("call %zu: %d, errno %d\n", i, calls[i].result, calls[i].error);
            return false;
        }
    return rdma_destroy_id(listener) == 0 && rdma_destroy_id(id) == 0;
}

// It has a device of its own, by which it can talk to its parent.
static bool connects(uint16_t port)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_storage there = fixture_sockaddr(fixture_address, port);
    struct rdma_conn_param param = {.retry_count = 7};
    struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    struct rdma_cm_id *id;
    if (!channel || rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
        return false;
    bool is_done = rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 1000) == 0 &&
                   rdma_resolve_route(id, 1000) == 0 && rdma_create_qp(id, NULL, &attr) == 0 &&
                   rdma_connect(id, &param) == 0 && rdma_disconnect(id) == 0;
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    return is_done;
}

static void fork__child_has_its_own_device(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow such a child
#endif
    enum { HUNG_S = 30 };
    struct rdma_event_channel *channel = rdma_create_event_channel();
    uint16_t port;
    struct rdma_cm_id *listener = fixture_listener(channel, RDMA_PS_TCP, &port);
    struct rdma_cm_id *id = fixture_resolved(channel, RDMA_PS_TCP, port);
    pid_t child = fork();
    if (child == 0) {
        alarm(HUNG_S);
        bool is_right = is_refused(channel, listener, id);
        rdma_destroy_event_channel(channel);
        _exit(is_right && connects(port) ? 0 : 1);
    }
    struct rdma_conn_param param = {.retry_count = 7};
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(server);
    assert_int_equal(rdma_accept(server, &param), 0);
    pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    pass_event(channel, RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_qp(server);
    assert_int_equal(rdma_destroy_id(server), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
    rdma_destroy_event_channel(channel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channel__says_whether_it_holds_something),
        cmocka_unit_test(channel__is_empty_when_its_ids_are_gone),
        cmocka_unit_test(destroy_id__while_a_handler_goes_on_with_it),
        cmocka_unit_test(get_cm_event__and_signals),
        cmocka_unit_test(bind__refuses_ports_in_use_and_foreign_addresses),
        cmocka_unit_test(bind__shares_ports_that_are_reusable),
        cmocka_unit_test(bind__is_made_reusable_afterwards),
        cmocka_unit_test(bind__is_given_one_family_afterwards),
        cmocka_unit_test(resolve__says_what_is_wrong),
        cmocka_unit_test(resolve__of_another_family_than_what_the_id_is_bound_to),
        cmocka_unit_test(resolve__any_address_is_this_host),
        cmocka_unit_test(resolve__once_and_in_order),
        cmocka_unit_test(resolve__again_after_an_error),
        cmocka_unit_test(create_id__refuses_an_unknown_port_space),
        cmocka_unit_test(set_option__checks_what_it_is_given),
        cmocka_unit_test(migrate__takes_events_along),
        cmocka_unit_test(getaddrinfo__both_sides),
        cmocka_unit_test(getaddrinfo__kinds_that_do_not_go_together),
        cmocka_unit_test(get_devices__shows_the_one),
        cmocka_unit_test(event_str__has_one_for_every_type),
        cmocka_unit_test(fork__child_has_its_own_device),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
