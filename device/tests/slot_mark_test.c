// SPDX-License-Identifier: BSD-2-Clause
// Marks at addresses that no other test uses.
#include "device/slot_mark.h"

#include "base/tests/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct alb_slot_marks marks;
static alb_time now;

static struct alb_addr address(const char *text)
{
    struct alb_addr addr;
    assert_true(alb_addr_parse(text, &addr));
    return addr;
}

// When nothing that was seen counts any more.
static bool has(const struct alb_addr *addr, uint8_t slot)
{
    now += ALB_SLOT_MARK_SEEN_NS;
    return alb_slot_marks_has(&marks, addr, slot, now);
}

static void mark__is_of_a_slot_at_an_address(void **state)
{
    const struct alb_addr here = address("127.91.1.1"), there = address("127.91.1.2"), ipv6 = address("fd99::1:1");
    assert_false(has(&here, 3));
    int fd = alb_slot_mark_open(&here, 3), other = alb_slot_mark_open(&ipv6, 255);
    assert_true(fd >= 0 && other >= 0);
    assert_true(has(&here, 3));
    assert_true(has(&ipv6, 255));
    assert_false(has(&here, 4));
    assert_false(has(&there, 3));
    assert_int_equal(alb_slot_mark_open(&here, 3), -1);
    assert_int_equal(errno, EADDRINUSE);
    close(fd);
    close(other);
    assert_false(has(&here, 3));
}

static void mark__is_looked_for_now_and_then(void **state)
{
    const struct alb_addr here = address("127.91.1.1"), there = address("127.91.1.2");
    assert_false(has(&here, 3));
    int fd = alb_slot_mark_open(&here, 3);
    assert_false(alb_slot_marks_has(&marks, &here, 3, now + ALB_SLOT_MARK_SEEN_NS - 1));
    assert_true(alb_slot_marks_has(&marks, &here, 3, now + ALB_SLOT_MARK_SEEN_NS));
    assert_false(alb_slot_marks_has(&marks, &there, 3, now + ALB_SLOT_MARK_SEEN_NS)); // of what was asked
    close(fd);
}

static void mark__ends_with_its_process(void **state)
{
    const struct alb_addr here = address("127.91.1.3");
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (alb_slot_mark_open(&here, 3) < 0 || write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_true(has(&here, 3));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(has(&here, 3));
    close(ready[0]);
    close(ready[1]);
}

// What there is to pass on is passed on as long as nobody knows better.
static void mark__without_descriptors_to_look_with(void **state)
{
    const struct alb_addr here = address("127.91.1.4");
    struct rlimit usual, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool is_there = has(&here, 3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_true(is_there);
    assert_false(has(&here, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mark__is_of_a_slot_at_an_address),
        cmocka_unit_test(mark__is_looked_for_now_and_then),
        cmocka_unit_test(mark__ends_with_its_process),
        cmocka_unit_test(mark__without_descriptors_to_look_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
