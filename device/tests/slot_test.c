// SPDX-License-Identifier: BSD-2-Clause
// Process slots on addresses that no other test uses.
#include "device/slot.h"

#include "base/tests/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct alb_addr address(const char *text)
{
    struct alb_addr addr;
    assert_true(alb_addr_parse(text, &addr));
    return addr;
}

static void alb_slot_claim__lowest_free_on_all(void **state)
{
    const struct alb_addr both[] = {address("127.91.0.1"), address("127.91.0.2")};
    struct alb_socket a[2], b[2], c[1], d[2];
    uint8_t slot;
    assert_int_equal(alb_slot_claim(both, 2, a, &slot), 0);
    assert_int_equal(slot, 0);
    assert_int_equal(a[0].local.port, 4791);
    assert_int_equal(a[1].local.port, 4791);
    assert_int_equal(alb_slot_claim(both, 2, b, &slot), 0);
    assert_int_equal(slot, 1);
    assert_int_equal(alb_slot_claim(both + 1, 1, c, &slot), 0); // slot 2 is now free on the first address only
    assert_int_equal(slot, 2);
    assert_int_equal(alb_slot_claim(both, 2, d, &slot), 0);
    assert_int_equal(slot, 3);
    alb_socket_close(&a[0]);
    alb_socket_close(&d[0]);
    alb_socket_close(&d[1]);
    assert_int_equal(alb_slot_claim(both, 2, d, &slot), 0); // slot 0 is taken on one of them still
    assert_int_equal(slot, 3);
    alb_socket_close(&a[1]);
    assert_int_equal(alb_slot_claim(both, 2, a, &slot), 0);
    assert_int_equal(slot, 0);
    for (int i = 0; i < 2; i++) {
        alb_socket_close(&a[i]);
        alb_socket_close(&b[i]);
        alb_socket_close(&d[i]);
    }
    alb_socket_close(&c[0]);
}

static void alb_slot_claim__all_taken(void **state)
{
    const struct alb_addr addr = address("127.91.0.3");
    static struct alb_socket sockets[ALB_SLOTS + 1];
    uint8_t slot;
    for (uint32_t i = 0; i < ALB_SLOTS; i++) {
        assert_int_equal(alb_slot_claim(&addr, 1, &sockets[i], &slot), 0);
        assert_int_equal(slot, i);
    }
    assert_int_equal(alb_slot_claim(&addr, 1, &sockets[ALB_SLOTS], &slot), EADDRINUSE);
    alb_socket_close(&sockets[200]);
    assert_int_equal(alb_slot_claim(&addr, 1, &sockets[200], &slot), 0);
    assert_int_equal(slot, 200);
    for (uint32_t i = 0; i < ALB_SLOTS; i++)
        alb_socket_close(&sockets[i]);
}

static void alb_slot_claim__error_leaves_nothing_open(void **state)
{
    const struct alb_addr addresses[] = {address("127.91.0.4"), address("203.0.113.77"), address("127.91.0.4")};
    struct alb_socket sockets[3] = {0};
    uint8_t slot;
    assert_int_equal(alb_slot_claim(addresses, 3, sockets, &slot), EADDRNOTAVAIL);
    for (size_t i = 0; i < ALB_COUNT(sockets); i++)
        assert_int_equal(sockets[i].fd, -1);
}

static void alb_slot_claim__freed_by_kill(void **state)
{
    const struct alb_addr addr = address("127.91.0.5");
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct alb_socket sock;
        uint8_t slot = 255;
        if (alb_slot_claim(&addr, 1, &sock, &slot) != 0 || write(ready[1], &slot, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    uint8_t slot;
    assert_int_equal(read(ready[0], &slot, 1), 1);
    assert_int_equal(slot, 0);
    struct alb_socket sock;
    assert_int_equal(alb_slot_claim(&addr, 1, &sock, &slot), 0);
    assert_int_equal(slot, 1);
    alb_socket_close(&sock);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(alb_slot_claim(&addr, 1, &sock, &slot), 0);
    assert_int_equal(slot, 0);
    alb_socket_close(&sock);
    close(ready[0]);
    close(ready[1]);
}

static void alb_slot_of_qpn__high_bits(void **state)
{
    assert_int_equal(alb_slot_of_qpn(0x000011), 0);
    assert_int_equal(alb_slot_of_qpn(0x03ffff), 3);
    assert_int_equal(alb_slot_of_qpn(0xff0010), 255);
    assert_int_equal(alb_slot_port(255), 5046);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_slot_claim__lowest_free_on_all),
        cmocka_unit_test(alb_slot_claim__all_taken),
        cmocka_unit_test(alb_slot_claim__error_leaves_nothing_open),
        cmocka_unit_test(alb_slot_claim__freed_by_kill),
        cmocka_unit_test(alb_slot_of_qpn__high_bits),
    };
    return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
