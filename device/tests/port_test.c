// SPDX-License-Identifier: BSD-2-Clause
// Which sockets are looked at, and how, on addresses that no other test uses.
#include "device/port.h"

#include "base/tests/test.h"
#include "device/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TIMES_ENOUGH 64
#define LONG_NS      (20 * ALB_NS_PER_S)

struct context {
    struct alb_port port;
    struct alb_socket sender;
};

static void open_context(struct context *c)
{
    struct alb_addr addresses[2];
    struct alb_endpoint from = {.port = 0};
    assert_true(alb_addr_parse("127.90.0.1", &addresses[0]));
    assert_true(alb_addr_parse("127.90.0.2", &addresses[1]));
    assert_true(alb_addr_parse("127.90.0.3", &from.addr));
    assert_int_equal(alb_port_open(&c->port, addresses, 2), 0);
    assert_int_equal(alb_socket_open(&c->sender, &from), 0);
}

static void close_context(struct context *c)
{
    alb_socket_close(&c->sender);
    alb_port_close(&c->port);
}

static void send_to(struct context *c, const struct alb_socket *sock)
{
    union alb_sockaddr name;
    socklen_t length = alb_sockaddr_encode(&sock->local, &name);
    assert_int_equal(sendto(c->sender.fd, "x", 1, 0, (const struct sockaddr *)&name, length), 1);
}

static void take_from(const struct alb_socket *sock)
{
    char byte;
    assert_int_equal(recv(sock->fd, &byte, 1, MSG_DONTWAIT), 1);
}

static void find_often(struct context *c, struct alb_socket *sock)
{
    for (int i = 0; i < TIMES_ENOUGH; i++)
        alb_port_note_found(&c->port, sock);
}

static bool is_ready_by(struct context *c, const struct alb_port_news *news, const struct alb_socket *sock)
{
    struct alb_socket *ready[2 * ALB_DEVICE_ADDRESSES_MAX];
    uint32_t count = alb_port_ready(&c->port, news, ready, ALB_COUNT(ready));
    for (uint32_t i = 0; i < count; i++) {
        if (ready[i] == sock)
            return true;
    }
    return false;
}

static bool is_ready(struct context *c, const struct alb_socket *sock)
{
    return is_ready_by(c, NULL, sock);
}

// Takes back what woke the last sleep without a datagram.
static void forget_wakes(struct context *c)
{
    alb_port_sleep(&c->port, alb_clock_now(), false);
}

static bool sleeps_through(struct context *c)
{
    alb_time until = alb_clock_now() + 20 * ALB_NS_PER_MS;
    alb_port_sleep(&c->port, until, false);
    return alb_clock_now() >= until;
}

static void alb_port_note_found__busy_socket_is_seen_and_wakes(void **state)
{
    struct context c;
    open_context(&c);
    find_often(&c, &c.port.own[0]);
    assert_ptr_equal(c.port.unwatched, &c.port.own[0]);
    forget_wakes(&c);
    assert_true(sleeps_through(&c));
    send_to(&c, &c.port.own[0]);
    assert_true(is_ready(&c, &c.port.own[0]));
    assert_false(is_ready(&c, &c.port.own[1]));
    assert_false(sleeps_through(&c));
    send_to(&c, &c.port.own[1]);
    assert_true(is_ready(&c, &c.port.own[1]));
    take_from(&c.port.own[0]);
    assert_false(sleeps_through(&c));
    close_context(&c);
}

static void alb_port_note_found__another_takes_its_place(void **state)
{
    struct context c;
    open_context(&c);
    find_often(&c, &c.port.own[0]);
    find_often(&c, &c.port.own[1]);
    assert_ptr_equal(c.port.unwatched, &c.port.own[1]);
    forget_wakes(&c);
    for (int i = 0; i < 2; i++) {
        send_to(&c, &c.port.own[i]);
        assert_true(is_ready(&c, &c.port.own[i]));
        assert_false(sleeps_through(&c));
        take_from(&c.port.own[i]);
        assert_true(sleeps_through(&c));
    }
    close_context(&c);
}

static void alb_port_note_found__turns_change_nothing(void **state)
{
    struct context c;
    open_context(&c);
    for (int i = 0; i < 4 * TIMES_ENOUGH; i++)
        alb_port_note_found(&c.port, &c.port.own[i % 2]);
    assert_null(c.port.unwatched);
    close_context(&c);
}

static struct alb_port_news look_by_sleep(struct context *c)
{
    struct alb_port_news news = alb_port_sleep(&c->port, alb_clock_now(), false);
    assert_true(news.is_known);
    return news;
}

static void alb_port_sleep__tells_where_something_is(void **state)
{
    struct context c;
    open_context(&c);
    find_often(&c, &c.port.own[0]);
    forget_wakes(&c);
    struct alb_port_news news = look_by_sleep(&c);
    assert_ptr_equal(news.unwatched, &c.port.own[0]);
    assert_false(news.of_unwatched || news.of_watched);
    send_to(&c, &c.port.own[0]);
    news = look_by_sleep(&c);
    assert_true(news.of_unwatched && !news.of_watched);
    take_from(&c.port.own[0]);
    send_to(&c, &c.port.own[1]);
    news = look_by_sleep(&c);
    assert_true(news.of_watched && !news.of_unwatched);
    close_context(&c);
}

static void alb_port_ready__does_not_ask_what_a_sleep_has_told(void **state)
{
    struct context c;
    open_context(&c);
    find_often(&c, &c.port.own[0]);
    forget_wakes(&c);
    struct alb_port_news news = look_by_sleep(&c);
    c.port.own[0].rx_was_full = true;
    send_to(&c, &c.port.own[0]);
    send_to(&c, &c.port.own[1]);
    assert_false(is_ready_by(&c, &news, &c.port.own[0]));
    assert_false(is_ready_by(&c, &news, &c.port.own[1]));
    assert_false(c.port.own[0].rx_was_full); // it was empty, and so nothing in it is from before
    assert_int_equal(c.port.own[0].empty_at, news.looked_at);
    news.of_watched = true;
    assert_true(is_ready_by(&c, &news, &c.port.own[1]));
    news.of_watched = false;
    news.unwatched = NULL; // another one by now: the sleep did not look at it
    assert_true(is_ready_by(&c, &news, &c.port.own[0]));
    assert_true(is_ready_by(&c, &news, &c.port.own[1]));
    news.is_known = false;
    assert_true(is_ready_by(&c, &news, &c.port.own[0]));
    close_context(&c);
}

static void *sleep_long(void *context)
{
    alb_port_sleep(&((struct context *)context)->port, alb_clock_now() + LONG_NS, false);
    return NULL;
}

// A nap is for when others look at the sockets.
static void alb_port_nap__ends_by_a_wake_alone(void **state)
{
    struct context c;
    open_context(&c);
    send_to(&c, &c.port.own[0]);
    alb_time start = alb_clock_now();
    alb_port_nap(&c.port, start + 20 * ALB_NS_PER_MS);
    assert_true(alb_clock_now() - start >= 20 * ALB_NS_PER_MS);
    alb_port_wake(&c.port);
    start = alb_clock_now();
    alb_port_nap(&c.port, start + LONG_NS);
    assert_true(alb_clock_now() - start < LONG_NS);
    start = alb_clock_now();
    alb_port_nap(&c.port, start + 20 * ALB_NS_PER_MS); // the wake was for the one before
    assert_true(alb_clock_now() - start >= 20 * ALB_NS_PER_MS);
    close_context(&c);
}

// Who slept before the change does not know of it.
static void alb_port_note_found__ends_a_sleep(void **state)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    struct context c;
    pthread_t thread;
    open_context(&c);
    alb_time start = alb_clock_now();
    assert_int_equal(pthread_create(&thread, NULL, sleep_long, &c), 0);
    nanosleep(&pause, NULL);
    find_often(&c, &c.port.own[0]);
    pthread_join(thread, NULL);
    assert_true(alb_clock_now() - start < LONG_NS);
    close_context(&c);
}

// ::1 takes one more socket, to carry its multicast.
static void alb_port_set_interfaces__without_descriptors(void **state)
{
    const uint32_t loopback = if_nametoindex("lo"), ifindexes[] = {loopback, loopback};
    struct rlimit before, none;
    struct context c;
    open_context(&c);
    assert_true(alb_addr_parse("::1", &c.port.addresses[1]));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int error = alb_port_set_interfaces(&c.port, ifindexes);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(error, EMFILE);
    assert_int_equal(alb_port_set_interfaces(&c.port, ifindexes), 0);
    close_context(&c);
}

static bool is_readable(int fd)
{
    struct pollfd file = {.fd = fd, .events = POLLIN};
    return poll(&file, 1, 0) == 1;
}

// By any socket, that which the port's own epoll instance did not watch included.
static void alb_port_rouse__makes_the_programs_file_readable(void **state)
{
    struct context c;
    open_context(&c);
    int fd = epoll_create1(EPOLL_CLOEXEC);
    find_often(&c, &c.port.own[0]);
    assert_ptr_equal(c.port.unwatched, &c.port.own[0]);
    assert_int_equal(alb_port_rouse(&c.port, fd), 0);
    assert_int_equal(alb_port_rouse(&c.port, fd), EBUSY);
    for (size_t i = 0; i < 2; i++) {
        find_often(&c, &c.port.own[0]);
        assert_null(c.port.unwatched);
        assert_false(is_readable(fd));
        send_to(&c, &c.port.own[i]);
        assert_true(is_readable(fd));
        assert_true(is_ready(&c, &c.port.own[i]));
        take_from(&c.port.own[i]);
        assert_false(is_readable(fd));
    }
    alb_port_rouse_end(&c.port);
    send_to(&c, &c.port.own[0]);
    assert_false(is_readable(fd));
    find_often(&c, &c.port.own[0]);
    assert_ptr_equal(c.port.unwatched, &c.port.own[0]);
    alb_port_rouse_end(&c.port); // of nobody
    close(fd);
    close_context(&c);
}

static void alb_port_rouse__refused_by_the_kernel(void **state)
{
    struct context c;
    open_context(&c);
    assert_int_equal(alb_port_rouse(&c.port, c.sender.fd), EINVAL); // no epoll instance
    assert_int_equal(alb_port_rouse(&c.port, -1), EBADF);
    int fd = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(alb_port_rouse(&c.port, fd), 0);
    close(fd);
    close_context(&c);
}

static void *take_front(void *port)
{
    alb_port_take_front(port);
    return NULL;
}

// What the child would find half open, it could not close.
static void alb_port_take_front__waits_for_a_fork(void **state)
{
    struct alb_addr address;
    struct alb_port owner, other;
    pthread_t thread;
    assert_true(alb_addr_parse("127.90.0.4", &address));
    assert_int_equal(alb_port_open(&owner, &address, 1), 0);
    assert_int_equal(alb_port_open(&other, &address, 1), 0);
    assert_int_equal(other.slot, 1);
    alb_port_close(&owner);
    alb_ports_before_fork();
    assert_int_equal(pthread_create(&thread, NULL, take_front, &other), 0);
    usleep(20000);
    struct alb_socket free_one;
    assert_int_equal(alb_slot_bind_front(&address, 1, &free_one), 0);
    alb_socket_close(&free_one);
    alb_ports_after_fork();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(alb_port_is_front(&other));
    alb_port_close(&other);
}

// A daemon that puts /dev/null in the place of everything, say.
static void alb_port_sleep__of_a_program_that_has_another_file_there(void **state)
{
    enum { MANY = 50 };
    struct context c;
    open_context(&c);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[1]); // nobody writes
    const int others[] = {open("/dev/null", O_RDWR | O_CLOEXEC), open(".", O_RDONLY | O_CLOEXEC), ends[0]};
    for (size_t i = 0; i < ALB_COUNT(others); i++) {
        int sleeps = 0;
        c.port.is_closed = false;
        assert_true(dup2(others[i], c.port.wake_fd) >= 0);
        alb_time until = alb_clock_now() + 100 * ALB_NS_PER_MS;
        do
            alb_port_sleep(&c.port, until, false);
        while (++sleeps < MANY && alb_clock_now() < until);
        assert_true(sleeps < MANY);
        assert_true(c.port.is_closed);
        close(others[i]);
    }
    close_context(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_port_rouse__makes_the_programs_file_readable),
        cmocka_unit_test(alb_port_rouse__refused_by_the_kernel),
        cmocka_unit_test(alb_port_note_found__busy_socket_is_seen_and_wakes),
        cmocka_unit_test(alb_port_note_found__another_takes_its_place),
        cmocka_unit_test(alb_port_note_found__turns_change_nothing),
        cmocka_unit_test(alb_port_sleep__tells_where_something_is),
        cmocka_unit_test(alb_port_ready__does_not_ask_what_a_sleep_has_told),
        cmocka_unit_test(alb_port_sleep__of_a_program_that_has_another_file_there),
        cmocka_unit_test(alb_port_nap__ends_by_a_wake_alone),
        cmocka_unit_test(alb_port_note_found__ends_a_sleep),
        cmocka_unit_test(alb_port_set_interfaces__without_descriptors),
        cmocka_unit_test(alb_port_take_front__waits_for_a_fork),
    };
    return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
