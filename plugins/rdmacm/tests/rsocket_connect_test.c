// SPDX-License-Identifier: BSD-2-Clause
// A listener that cannot take what comes.
#include "fixture.h"

#include "base/log.h"
#include "device/tests/said.h"

#include <fcntl.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HUNG_S = 30 };

static int listen_here(struct sockaddr_storage *here)
{
    socklen_t length = sizeof(*here);
    int listener = rsocket(AF_INET, SOCK_STREAM, 0);
    *here = fixture_sockaddr(fixture_address, 0);
    assert_int_equal(rbind(listener, (struct sockaddr *)here, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(rlisten(listener, 4), 0);
    assert_int_equal(rgetsockname(listener, (struct sockaddr *)here, &length), 0);
    return listener;
}

// Calls twice when it is told to. Its exit status: how often it was refused.
static pid_t begin_caller(const struct sockaddr_storage *here, int go)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child != 0)
        return child;
    char byte;
    int refused = 0;
    alarm(HUNG_S);
    if (read(go, &byte, 1) != 1)
        _exit(100);
    for (int i = 0; i < 2; i++) {
        int fd = rsocket(AF_INET, SOCK_STREAM, 0);
        refused +=
            rconnect(fd, (const struct sockaddr *)here, sizeof(struct sockaddr_in)) != 0 && errno == ECONNREFUSED;
        rclose(fd);
    }
    _exit(refused);
}

static void listener__says_once_that_there_are_no_descriptors(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow such a child
#endif
    struct sockaddr_storage here;
    struct rlimit usual, none;
    struct said said;
    char text[ALB_LOG_LINE_MAX];
    int go[2], status, listener = listen_here(&here);
    assert_int_equal(pipe(go), 0);
    pid_t child = begin_caller(&here, go[0]);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    said_begin(&said);
    int lowest = dup(go[0]); // all below it are taken
    close(lowest);
    none = (struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(write(go[1], "", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    said_end(&said, text, sizeof(text));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    char *told = strstr(text, "listens, and must refuse a connection: Too many open files; `ulimit -n` bounds");
    assert_non_null(told);
    assert_null(strstr(strchr(told, '\n'), "must refuse"));
    close(go[0]);
    close(go[1]);
    assert_int_equal(rclose(listener), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listener__says_once_that_there_are_no_descriptors),
    };
    return cmocka_run_group_tests_name("rsocket_connect", tests, fixture_setup, NULL);
}
