// SPDX-License-Identifier: BSD-2-Clause
// Threads of ours in a program that makes it hard for them.
#include "device/spawn.h"

#include "base/tests/test.h"
#include "base/types.h"

#include <signal.h>
#include <string.h>

// More than our threads' stack: what some programs have for scratch memory.
static _Thread_local char scratch[1 << 20];

struct seen {
    bool is_blocked, hears_faults;
    char name[16];
};

static void *look(void *argument)
{
    struct seen *seen = argument;
    sigset_t blocked;
    memset(scratch, 1, sizeof(scratch));
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    seen->is_blocked = sigismember(&blocked, SIGUSR1) && sigismember(&blocked, SIGINT);
    seen->hears_faults = !sigismember(&blocked, SIGSEGV) && !sigismember(&blocked, SIGBUS);
    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    return scratch;
}

static void spawn_and_look(int (*spawn)(pthread_t *, const char *, void *(*)(void *), void *))
{
    struct seen seen = {0};
    pthread_t thread;
    void *result;
    sigset_t mine;
    assert_int_equal(spawn(&thread, "albedo/test", look, &seen), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_not_equal(result, scratch);
    assert_true(seen.is_blocked);
    assert_true(seen.hears_faults);
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_false(sigismember(&mine, SIGUSR1));
}

static void alb_spawn__beside_much_thread_local_memory(void **state)
{
    spawn_and_look(alb_spawn);
    spawn_and_look(alb_spawn_for_program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_spawn__beside_much_thread_local_memory),
    };
    return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
