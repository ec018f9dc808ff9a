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
    assert_int_equal(alb_notices_init(&notices, NULL), 0);
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
    assert_int_equal(alb_notices_init(&notices, NULL), 0);
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
    assert_int_equal(alb_notices_init(&notices, NULL), 0);
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
    assert_int_equal(alb_notices_init(&notices, NULL), 0);
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

// A driver that raises what its script says, and forgets some of it again.
struct script {
    struct alb_notices *notices;
    struct alb_notice *raises[2], *forgets;
    uint32_t awaited, asked, had_one, forgotten;
    _Atomic uint32_t left;
    bool was_readable, was_raised;
    enum alb_roused roused;
};

static void raise_all(struct script *script)
{
    for (size_t i = 0; i < 2; i++) {
        if (script->raises[i])
            alb_notices_raise(script->notices, script->raises[i]);
    }
    script->was_readable = is_readable(script->notices->file.fd);
}

static void follow_script(void *context, bool (*is_raised)(void *notices), void *notices)
{
    struct script *script = context;
    script->awaited++;
    assert_false(is_raised(notices));
    raise_all(script);
    script->was_raised = is_raised(notices);
    if (script->forgets)
        alb_notices_forget(script->notices, script->forgets);
}

static void note_that_it_sleeps(void *context)
{
    struct script *script = context;
    script->left++;
    assert_true(atomic_load(&script->notices->drivers) > 0); // fini waits for it
}

static enum alb_roused follow_script_once(void *context, int fd, bool had_one)
{
    struct script *script = context;
    assert_int_equal(fd, script->notices->file.fd);
    script->asked++;
    script->had_one += had_one;
    raise_all(script);
    if (script->forgets)
        alb_notices_forget(script->notices, script->forgets);
    return script->roused;
}

static void note_that_it_ends(void *context, int fd)
{
    struct script *script = context;
    assert_int_equal(fd, script->notices->file.fd);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    script->forgotten++;
}

static void init_with_script(struct alb_notices *notices, struct script *script)
{
    const struct alb_notices_driver driver = {
        .context = script,
        .await = follow_script,
        .leave = note_that_it_sleeps,
        .ask = follow_script_once,
        .forget = note_that_it_ends,
    };
    script->notices = notices;
    assert_int_equal(alb_notices_init(notices, &driver), 0);
}

// What a thread raises for itself is not counted by the file; what is raised besides is.
static void take__of_what_the_thread_raised_itself(void **state)
{
    struct alb_notices notices;
    struct alb_notice a, b;
    struct script script = {.raises = {&a}};
    init_with_script(&notices, &script);
    alb_notice_init(&a, &a, 1);
    alb_notice_init(&b, &b, 2);
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_true(script.was_raised);
    assert_false(script.was_readable);
    assert_int_equal(a.delivered, 1);
    script.raises[1] = &b;
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_true(script.was_readable);
    assert_ptr_equal(alb_notices_take(&notices), &b);
    assert_false(is_readable(notices.file.fd));
    assert_int_equal(script.awaited, 2);
    assert_int_equal(script.left, 0);
    assert_true(alb_notices_fini(&notices));
}

// A thread that comes while the queue ends waits for ever, but does not go into what ends with it.
static void take__drives_nothing_that_has_ended(void **state)
{
    static struct alb_notices notices;
    static struct script script;
    static struct waiter waiter = {.notices = &notices};
    pthread_t thread;
    init_with_script(&notices, &script);
    atomic_store(&notices.has_ended, true);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &waiter), 0);
    struct alb_notice a;
    alb_notice_init(&a, &a, 1);
    usleep(20000); // it waits, as a rule
    alb_notices_raise(&notices, &a);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ptr_equal(waiter.taken, &a);
    assert_int_equal(script.awaited, 0);
    assert_int_equal(script.left, 0);
    set_nonblocking(notices.file.fd);
    assert_null(alb_notices_take(&notices));
    assert_int_equal(script.asked, 0);
    assert_true(alb_notices_fini(&notices));
}

static void take__drives_nothing_if_it_need_not_wait(void **state)
{
    struct alb_notices notices;
    struct alb_notice a;
    struct script script = {.raises = {0}};
    init_with_script(&notices, &script);
    alb_notice_init(&a, &a, 1);
    alb_notices_raise(&notices, &a);
    assert_ptr_equal(alb_notices_take(&notices), &a);
    set_nonblocking(notices.file.fd);
    alb_notices_raise(&notices, &a);
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_int_equal(script.awaited, 0);
    assert_int_equal(script.asked, 0);
    assert_int_equal(script.left, 0);
    assert_int_equal(script.forgotten, 0);
    assert_true(alb_notices_fini(&notices));
    assert_int_equal(script.forgotten, 1);
}

static void take__asks_before_it_says_that_nothing_is_there(void **state)
{
    struct alb_notices notices;
    struct alb_notice a, b;
    struct script script = {.raises = {0}};
    init_with_script(&notices, &script);
    alb_notice_init(&a, &a, 1);
    alb_notice_init(&b, &b, 2);
    set_nonblocking(notices.file.fd);
    assert_null(alb_notices_take(&notices));
    assert_int_equal(errno, EAGAIN);
    script.raises[0] = &a;
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_false(script.was_readable); // a system call less to count it, and one to take that back
    assert_int_equal(script.had_one, 0);
    script.raises[1] = &b;
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_true(script.was_readable);
    assert_int_equal(script.had_one, 1);
    assert_ptr_equal(alb_notices_take(&notices), &b);
    script.forgets = &a;
    script.raises[1] = NULL;
    assert_null(alb_notices_take(&notices));
    assert_int_equal(errno, EAGAIN);
    assert_false(is_readable(notices.file.fd));
    assert_int_equal(script.had_one, 2);
    assert_int_equal(script.asked, 4);
    assert_int_equal(script.awaited, 0);
    assert_int_equal(script.left, 0);
    assert_true(alb_notices_fini(&notices));
}

// While one of them would be busy with what it raised, nobody would drive for the other.
static void take__drives_for_one_thread_alone(void **state)
{
    struct alb_notices notices;
    struct alb_notice a;
    struct script script = {.raises = {0}};
    struct waiter waiters[] = {{.notices = &notices}, {.notices = &notices}};
    pthread_t threads[2];
    init_with_script(&notices, &script);
    alb_notice_init(&a, &a, 1);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_one, &waiters[i]), 0);
        while (atomic_load(&script.left) == i)
            sched_yield();
    }
    assert_int_equal(script.awaited, 1);
    for (uint32_t i = 0; i < 2; i++)
        alb_notices_raise(&notices, &a);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    script.raises[0] = &a;
    assert_ptr_equal(alb_notices_take(&notices), &a); // alone again
    assert_int_equal(script.awaited, 2);
    assert_true(alb_notices_fini(&notices));
}

static void take_vainly(struct alb_notices *notices)
{
    errno = 0;
    assert_null(alb_notices_take(notices));
    assert_int_equal(errno, EAGAIN);
}

// A program that has found the descriptor readable is not told that nothing is there.
static void take__gives_what_is_expected_when_one_is_owed(void **state)
{
    struct alb_notices notices;
    struct alb_notice a;
    struct script script = {.roused = ALB_ROUSED_STIRRED};
    init_with_script(&notices, &script);
    alb_notice_init(&a, &a, 1);
    set_nonblocking(notices.file.fd);
    take_vainly(&notices); // it expects none
    alb_notices_raise(&notices, &a);
    assert_ptr_equal(alb_notices_take(&notices), &a);
    take_vainly(&notices);
    alb_notices_expect(&notices, &a);
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_int_equal(a.delivered, 2); // to be acknowledged, too
    take_vainly(&notices);            // once: a program that takes all must come to an end
    alb_notices_expect(&notices, &a);
    script.roused = ALB_ROUSED_QUIET;
    take_vainly(&notices);
    script.roused = ALB_ROUSED_NOT; // not any more: it may have been readable until now
    assert_ptr_equal(alb_notices_take(&notices), &a);
    alb_notices_expect(&notices, &a);
    take_vainly(&notices);
    script.roused = ALB_ROUSED_STIRRED;
    alb_notices_forget(&notices, &a);
    take_vainly(&notices);
    assert_int_equal(a.delivered, 3);
    assert_int_equal(script.had_one, 1); // what is given instead does not count
    assert_true(alb_notices_fini(&notices));
}

// Nor does one wait that did not block when it was told.
static void take__gives_what_is_owed_to_one_that_blocks_since(void **state)
{
    struct alb_notices notices;
    struct alb_notice a;
    struct script script = {.roused = ALB_ROUSED_QUIET};
    init_with_script(&notices, &script);
    alb_notice_init(&a, &a, 1);
    int flags = fcntl(notices.file.fd, F_GETFL);
    set_nonblocking(notices.file.fd);
    alb_notices_expect(&notices, &a);
    take_vainly(&notices);
    assert_int_equal(fcntl(notices.file.fd, F_SETFL, flags), 0);
    assert_ptr_equal(alb_notices_take(&notices), &a);
    assert_int_equal(a.delivered, 1);
    assert_true(alb_notices_fini(&notices));
}

static void forget__of_what_was_handed(void **state)
{
    struct alb_notices notices;
    struct alb_notice a, b;
    struct script script = {.raises = {&a, &a}, .forgets = &a};
    struct waiter waiter = {.notices = &notices};
    pthread_t thread;
    init_with_script(&notices, &script);
    alb_notice_init(&a, &a, 1);
    alb_notice_init(&b, &b, 2);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &waiter), 0);
    while (atomic_load(&script.left) == 0)
        sched_yield();
    alb_notices_raise(&notices, &b);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ptr_equal(waiter.taken, &b);
    assert_int_equal(a.delivered, 0);
    assert_false(is_readable(notices.file.fd));
    assert_int_equal(script.left, 1);
    assert_true(alb_notices_fini(&notices));
}

static void take__waits(void **state)
{
    struct alb_notices notices;
    struct alb_notice a;
    struct waiter waiter = {.notices = &notices};
    pthread_t thread;
    assert_int_equal(alb_notices_init(&notices, NULL), 0);
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
    assert_int_equal(alb_notices_init(&notices, NULL), 0);
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

static void yield_some_times(void *context, bool (*is_raised)(void *notices), void *notices)
{
    for (int i = 0; i < 20 && !is_raised(notices); i++)
        sched_yield();
}

static void do_nothing(void *context)
{
}

static enum alb_roused ask_nothing(void *context, int fd, bool had_one)
{
    return ALB_ROUSED_NOT;
}

static void forget_nothing(void *context, int fd)
{
}

// Two readers, of which the first to come looks before it waits, notices raised and forgotten under them: each that
// stays is taken exactly once.
static void take__races_with_forget(void **state)
{
    struct alb_notices notices;
    struct alb_notice kept, dropped;
    pthread_t threads[2];
    const struct alb_notices_driver driver = {
        .await = yield_some_times,
        .leave = do_nothing,
        .ask = ask_nothing,
        .forget = forget_nothing,
    };
    assert_int_equal(alb_notices_init(&notices, &driver), 0);
    alb_notice_init(&kept, &kept, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, &notices), 0);
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
        cmocka_unit_test(take__of_what_the_thread_raised_itself),
        cmocka_unit_test(take__drives_nothing_if_it_need_not_wait),
        cmocka_unit_test(take__gives_what_is_expected_when_one_is_owed),
        cmocka_unit_test(take__gives_what_is_owed_to_one_that_blocks_since),
        cmocka_unit_test(take__asks_before_it_says_that_nothing_is_there),
        cmocka_unit_test(take__drives_nothing_that_has_ended),
        cmocka_unit_test(take__drives_for_one_thread_alone),
        cmocka_unit_test(forget__of_what_was_handed),
        cmocka_unit_test(take__waits),
        cmocka_unit_test(fini__under_a_reader),
        cmocka_unit_test(take__races_with_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
