// SPDX-License-Identifier: BSD-2-Clause
// Sockets: forms of addresses, exclusive claims, options, bursts there and back.
#include "device/socket.h"

#include "base/tests/test.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>

#define PORT 14791 // below the kernel's ephemeral ports

static struct alb_endpoint endpoint(const char *text, uint16_t port)
{
    struct alb_endpoint result = {.port = port};
    assert_true(alb_addr_parse(text, &result.addr));
    return result;
}

static void alb_sockaddr__round_trip(void **state)
{
    static const char *const texts[] = {"127.0.0.1", "255.1.2.3", "::1", "fd99::1234"};
    for (size_t i = 0; i < ALB_COUNT(texts); i++) {
        struct alb_endpoint before = endpoint(texts[i], 4791), after;
        union alb_sockaddr sockaddr;
        socklen_t length = alb_sockaddr_encode(&before, &sockaddr);
        assert_int_equal(length, i < 2 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        assert_true(alb_sockaddr_decode(&sockaddr, &after));
        assert_true(alb_endpoint_equals(&before, &after));
    }
    union alb_sockaddr unix_address = {.any.sa_family = AF_UNIX};
    struct alb_endpoint unused;
    assert_false(alb_sockaddr_decode(&unix_address, &unused));
}

static void alb_socket_open__is_a_claim(void **state)
{
    struct alb_endpoint local = endpoint("127.99.0.1", PORT), other = endpoint("127.99.0.2", PORT);
    struct alb_socket first, second;
    assert_int_equal(alb_socket_open(&first, &local), 0);
    assert_int_equal(alb_socket_open(&second, &local), EADDRINUSE);
    assert_int_equal(alb_socket_open(&second, &other), 0);
    alb_socket_close(&second);
    alb_socket_close(&first);
    alb_socket_close(&first); // harmless
    assert_int_equal(alb_socket_open(&second, &local), 0);
    alb_socket_close(&second);
}

static void alb_socket_open__address_not_local(void **state)
{
    struct alb_endpoint local = endpoint("203.0.113.77", PORT);
    struct alb_socket sock;
    assert_int_equal(alb_socket_open(&sock, &local), EADDRNOTAVAIL);
    assert_int_equal(alb_socket_open_absent(&sock, &local), 0);
    alb_socket_close(&sock);
    local = endpoint("2001:db8::77", PORT);
    int error = alb_socket_open_absent(&sock, &local);
    assert_true(error == 0 || error == EAFNOSUPPORT); // a kernel without IPv6
    if (!error)
        alb_socket_close(&sock);
}

static int option(const struct alb_socket *sock, int level, int name)
{
    int value = -1;
    socklen_t length = sizeof(value);
    assert_int_equal(getsockopt(sock->fd, level, name, &value, &length), 0);
    return value;
}

static void alb_socket_open__options(void **state)
{
    struct alb_endpoint local = endpoint("127.99.0.1", PORT);
    struct alb_socket sock;
    assert_int_equal(alb_socket_open(&sock, &local), 0);
    assert_int_equal(option(&sock, IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_DO);
    assert_int_equal(option(&sock, IPPROTO_UDP, UDP_GRO), 1);
    assert_int_equal(option(&sock, SOL_SOCKET, SO_REUSEADDR), 0);
    assert_int_equal(option(&sock, SOL_SOCKET, SO_REUSEPORT), 0);
    assert_true(option(&sock, SOL_SOCKET, SO_RCVBUF) >= 212992);
    alb_socket_close(&sock);

    local = endpoint("::1", PORT);
    int error = alb_socket_open(&sock, &local);
    if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL)
        skip(); // a host without IPv6
    assert_int_equal(error, 0);
    assert_int_equal(option(&sock, IPPROTO_IPV6, IPV6_V6ONLY), 1);
    assert_int_equal(option(&sock, IPPROTO_UDP, UDP_NO_CHECK6_RX), 1);
    alb_socket_close(&sock);
}

static void alb_socket__does_not_block(void **state)
{
    struct alb_endpoint local = endpoint("127.99.0.1", PORT);
    struct alb_socket sock;
    char byte;
    assert_int_equal(alb_socket_open(&sock, &local), 0);
    assert_int_equal(recv(sock.fd, &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    alb_socket_close(&sock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_sockaddr__round_trip),           cmocka_unit_test(alb_socket_open__is_a_claim),
        cmocka_unit_test(alb_socket_open__address_not_local), cmocka_unit_test(alb_socket_open__options),
        cmocka_unit_test(alb_socket__does_not_block),
    };
    return cmocka_run_group_tests_name("socket", tests, NULL, NULL);
}
