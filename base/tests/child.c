// SPDX-License-Identifier: BSD-2-Clause
#include "base/tests/child.h"

#include "base/tests/test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int child_run(void (*body)(void *argument), void *argument, char *text, size_t size)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit none = {0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        body(argument);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while (used < size - 1 && (got = read(ends[0], text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}
