// SPDX-License-Identifier: BSD-2-Clause
// Sockets of paths: opened when needed, at most as many as allowed, deaf, and done without when there is none.
#include "device/path_sockets.h"

#include "base/tests/test.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

static struct alb_addr address(const char *text)
{
    struct alb_addr addr;
    assert_true(alb_addr_parse(text, &addr));
    return addr;
}

static void path_sockets__opened_once(void **state)
{
    struct alb_path_sockets paths = {.limit = 3};
    struct alb_addr local = address("127.0.0.1"), other = address("127.0.0.2");
    struct alb_socket *first = alb_path_sockets_get(&paths, 0, &local, 1, 5);
    assert_non_null(first);
    assert_ptr_equal(alb_path_sockets_get(&paths, 0, &local, 1, 6), first);
    assert_true(alb_addr_equals(&first->local.addr, &local));
    struct alb_socket *second = alb_path_sockets_get(&paths, 0, &local, 2, 6);
    struct alb_socket *elsewhere = alb_path_sockets_get(&paths, ALB_DEVICE_ADDRESSES_MAX - 1, &other, 1, 6);
    assert_true(second && elsewhere && second != first && elsewhere != first);
    assert_int_not_equal(first->local.port, second->local.port);
    assert_true(alb_addr_equals(&elsewhere->local.addr, &other));
    assert_null(alb_path_sockets_get(&paths, 0, &local, 3, 6));
    assert_null(alb_path_sockets_get(&paths, 0, &local, UINT16_MAX, 6));
    alb_path_sockets_close(&paths);
    alb_path_sockets_close(&paths); // harmless
}

static void path_sockets__unused_cost_nothing(void **state)
{
    struct alb_path_sockets paths = {.limit = 64}, none = {0};
    struct alb_addr local = address("127.0.0.1");
    assert_null(alb_path_sockets_get(&none, 0, &local, 1, 5));
    alb_path_sockets_close(&paths);
    alb_path_sockets_close(&none);
    assert_null(paths.sockets);
}

static void path_sockets__hear_nothing(void **state)
{
    struct alb_path_sockets paths = {.limit = 2};
    struct alb_addr local = address("127.0.0.1");
    struct alb_socket *socket = alb_path_sockets_get(&paths, 0, &local, 1, 5);
    union alb_sockaddr name;
    socklen_t length = alb_sockaddr_encode(&socket->local, &name);
    char bytes[8] = "anybody";
    assert_int_equal(sendto(socket->fd, bytes, sizeof(bytes), 0, &name.any, length), sizeof(bytes));
    assert_int_equal(recv(socket->fd, bytes, sizeof(bytes), 0), -1);
    assert_int_equal(errno, EAGAIN);
    alb_path_sockets_close(&paths);
}

// Without descriptors there is no path, and it is not tried again at once.
static void path_sockets__no_descriptors(void **state)
{
    struct alb_path_sockets paths = {.limit = 4};
    struct alb_addr local = address("127.0.0.1");
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct alb_socket *socket = alb_path_sockets_get(&paths, 0, &local, 1, 1000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_null(socket);
    assert_null(alb_path_sockets_get(&paths, 0, &local, 1, 1000 + ALB_NS_PER_S - 1));
    assert_null(alb_path_sockets_get(&paths, 0, &local, 2, 1000 + ALB_NS_PER_S - 1));
    assert_non_null(alb_path_sockets_get(&paths, 0, &local, 1, 1000 + ALB_NS_PER_S));
    alb_path_sockets_close(&paths);
}

// The last descriptors are the program's.
static void path_sockets__leave_descriptors_to_the_program(void **state)
{
    enum { LIMIT = 40, RESERVE = LIMIT / 2 };
    struct alb_path_sockets paths = {.limit = 128};
    struct alb_addr local = address("127.0.0.1");
    struct rlimit before, few;
    int own[RESERVE];
    uint16_t path = 1;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = LIMIT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (alb_path_sockets_get(&paths, 0, &local, path, 1000))
        path++;
    for (uint32_t i = 0; i < RESERVE; i++)
        own[i] = dup(0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_in_range(path, 2, LIMIT);
    assert_true(paths.is_complained);
    for (uint32_t i = 0; i < RESERVE; i++) {
        assert_true(own[i] >= 0);
        close(own[i]);
    }
    alb_path_sockets_close(&paths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_sockets__opened_once),
        cmocka_unit_test(path_sockets__unused_cost_nothing),
        cmocka_unit_test(path_sockets__hear_nothing),
        cmocka_unit_test(path_sockets__no_descriptors),
        cmocka_unit_test(path_sockets__leave_descriptors_to_the_program),
    };
    return cmocka_run_group_tests_name("path_sockets", tests, NULL, NULL);
}
