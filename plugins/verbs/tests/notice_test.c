// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/verbs/notice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

static bool is_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1;
}

static void set_nonblocking(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

static void take__oldest_first_and_counted(void **state)
{
    struct alb_notices notices;
    struct alb_notice a, b;
    assert_int_equal(alb_notices_init(&notices), 0);
    alb_notice_init(&a, &a, 1);
    alb_notice_init(&b, &b, 2);
    set_nonblocking(notices.file.fd);

    alb_notices_raise(&notices, &a);
    alb_notices_raise(&notices, &b);
    alb_notices_raise(&notices, &a);
    assert_true(is_readable(notices.file.fd));
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_ptr_equal(alb_notices_take(&notices), &b);
    assert_true(is_readable(notices.file.fd));
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_int_equal(a.delivered, 2);
    assert_int_equal(b.delivered, 1);
    assert_false(is_readable(notices.file.fd));
    assert_true(alb_notices_fini(&notices));
}

static void *take_one(void *argument)
{
    return alb_notices_take(argument);
}

static void take__cancelled(void **state)
{
#ifdef __SANITIZE_ADDRESS__
    skip(); // it does not see a cancelled thread leave its functions, and takes their variables for still there
#endif
    struct alb_notices notices;
    pthread_t thread;
    void *result;
    assert_int_equal(alb_notices_init(&notices), 0);
    assert_int_equal(pthread_create(&thread, NULL, take_one, &notices), 0);
    while (atomic_load(&notices.readers) == 0)
        sched_yield();
    assert_false(alb_notices_fini(&notices));
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_true(alb_notices_fini(&notices));
}

static void take__nonblocking_and_empty(void **state)
{
    struct alb_notices notices;
    assert_int_equal(alb_notices_init(&notices), 0);
    set_nonblocking(notices.file.fd);
    errno = 0;
    assert_null(alb_notices_take(&notices));
    assert_int_equal(errno, EAGAIN);
    assert_true(alb_notices_fini(&notices));
}

// The descriptor may block: forgetting must leave it unreadable and wait for nothing.
static void forget__empties_the_descriptor(void **state)
{
    struct alb_notices notices;
    struct alb_notice a, b;
    assert_int_equal(alb_notices_init(&notices), 0);
    alb_notice_init(&a, &a, 1);
    alb_notice_init(&b, &b, 2);
    alb_notices_raise(&notices, &a);
    alb_notices_raise(&notices, &a);
    alb_notices_raise(&notices, &b);
    alb_notices_forget(&notices, &a);
    assert_int_equal(a.pending, 0);
    assert_int_equal(a.delivered, 0);
    assert_true(is_readable(notices.file.fd));
    assert_ptr_equal(alb_notices_take(&notices), &b);
    assert_false(is_readable(notices.file.fd));
    alb_notices_forget(&notices, &a);
    assert_true(alb_notices_fini(&notices));
}

// A thread that looks is handed what is raised, the file does not count it, and another reader is not told of it.
static void look__is_handed_one(void **state)
{
    struct alb_notices notices;
    struct alb_notice a;
    assert_int_equal(alb_notices_init(&notices), 0);
    alb_notice_init(&a, &a, 1);
    assert_true(alb_notices_look(&notices));
    assert_false(alb_notices_fini(&notices));
    assert_false(alb_notices_found(&notices));
    alb_notices_raise(&notices, &a);
    assert_true(alb_notices_found(&notices));
    assert_false(is_readable(notices.file.fd));
    alb_notices_raise(&notices, &a); // one is handed to each
    assert_true(is_readable(notices.file.fd));
    assert_ptr_equal(alb_notices_end_look(&notices), &a);
    assert_false(alb_notices_found(&notices));
    assert_int_equal(a.delivered, 1);
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_false(is_readable(notices.file.fd));
    assert_true(alb_notices_fini(&notices));
}

static void look__ends_without_one(void **state)
{
    struct alb_notices notices;
    struct alb_notice a;
    assert_int_equal(alb_notices_init(&notices), 0);
    alb_notice_init(&a, &a, 1);
    assert_true(alb_notices_look(&notices));
    assert_null(alb_notices_end_look(&notices));
    alb_notices_raise(&notices, &a);
    assert_true(is_readable(notices.file.fd));
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_true(alb_notices_fini(&notices));
}

static void look__not_where_one_is_there_or_none_is_waited_for(void **state)
{
    struct alb_notices notices;
    struct alb_notice a;
    assert_int_equal(alb_notices_init(&notices), 0);
    alb_notice_init(&a, &a, 1);
    alb_notices_raise(&notices, &a);
    assert_false(alb_notices_look(&notices));
    assert_ptr_equal(alb_notices_take(&notices), &a);
    set_nonblocking(notices.file.fd);
    assert_false(alb_notices_look(&notices));
    assert_true(alb_notices_fini(&notices));
}

static void forget__of_what_was_handed(void **state)
{
    struct alb_notices notices;
    struct alb_notice a, b;
    assert_int_equal(alb_notices_init(&notices), 0);
    alb_notice_init(&a, &a, 1);
    alb_notice_init(&b, &b, 2);
    assert_true(alb_notices_look(&notices));
    alb_notices_raise(&notices, &a);
    alb_notices_raise(&notices, &a);
    alb_notices_forget(&notices, &a);
    assert_false(alb_notices_found(&notices));
    assert_false(is_readable(notices.file.fd));
    alb_notices_raise(&notices, &b);
    assert_ptr_equal(alb_notices_end_look(&notices), &b);
    assert_false(is_readable(notices.file.fd));
    assert_true(alb_notices_fini(&notices));
}

struct waiter {
    struct alb_notices *notices;
    struct alb_notice *taken;
};

static void *wait_for_one(void *argument)
{
    struct waiter *waiter = argument;
    waiter->taken = alb_notices_take(waiter->notices);
    return NULL;
}

static void take__waits(void **state)
{
    struct alb_notices notices;
    struct alb_notice a;
    struct waiter waiter = {.notices = &notices};
    pthread_t thread;
    assert_int_equal(alb_notices_init(&notices), 0);
    alb_notice_init(&a, &a, 1);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &waiter), 0);
    alb_notices_raise(&notices, &a);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ptr_equal(waiter.taken, &a);
    assert_true(alb_notices_fini(&notices));
}

// The queue may end under a reader that waits for ever: the reader returns, and what it uses stays.
static void fini__under_a_reader(void **state)
{
    static struct alb_notices notices;
    static struct waiter waiter = {.notices = &notices};
    pthread_t thread;
    assert_int_equal(alb_notices_init(&notices), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &waiter), 0);
    assert_int_equal(pthread_detach(thread), 0);
    while (notices.readers == 0)
        sched_yield();
    assert_false(alb_notices_fini(&notices));
    assert_true(fcntl(notices.file.fd, F_GETFD) >= 0);
    assert_null(waiter.taken);
}

static void *take_many(void *argument)
{
    struct alb_notices *notices = argument;
    for (int i = 0; i < 1000; i++)
        alb_notices_take(notices);
    return NULL;
}

static void *look_and_take_many(void *argument)
{
    struct alb_notices *notices = argument;
    for (int i = 0; i < 1000; i++) {
        struct alb_notice *notice = NULL;
        if (alb_notices_look(notices)) {
            for (int looks = 0; looks < i % 20 && !alb_notices_found(notices); looks++)
                sched_yield();
            notice = alb_notices_end_look(notices);
        }
        if (!notice)
            alb_notices_take(notices);
    }
    return NULL;
}

// Two readers, of which one waits at once, notices raised and forgotten under them: each that stays is taken exactly
// once.
static void take__races_with_forget(void **state)
{
    struct alb_notices notices;
    struct alb_notice kept, dropped;
    pthread_t threads[2];
    assert_int_equal(alb_notices_init(&notices), 0);
    alb_notice_init(&kept, &kept, 1);
    assert_int_equal(pthread_create(&threads[0], NULL, take_many, &notices), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, look_and_take_many, &notices), 0);
    uint32_t taken_of_dropped = 0;
    for (uint32_t raised = 0; raised + taken_of_dropped < 2000; raised++) {
        alb_notice_init(&dropped, &dropped, 2);
        alb_notices_raise(&notices, &dropped);
        alb_notices_forget(&notices, &dropped);
        taken_of_dropped += dropped.delivered;
        if (raised + taken_of_dropped < 2000)
            alb_notices_raise(&notices, &kept);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(kept.delivered + taken_of_dropped, 2000);
    assert_true(alb_notices_fini(&notices));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take__oldest_first_and_counted),
        cmocka_unit_test(take__cancelled),
        cmocka_unit_test(take__nonblocking_and_empty),
        cmocka_unit_test(forget__empties_the_descriptor),
        cmocka_unit_test(look__is_handed_one),
        cmocka_unit_test(look__ends_without_one),
        cmocka_unit_test(look__not_where_one_is_there_or_none_is_waited_for),
        cmocka_unit_test(forget__of_what_was_handed),
        cmocka_unit_test(take__waits),
        cmocka_unit_test(fini__under_a_reader),
        cmocka_unit_test(take__races_with_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
