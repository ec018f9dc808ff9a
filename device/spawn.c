// SPDX-License-Identifier: BSD-2-Clause
#include "device/spawn.h"

#include "base/types.h"

#include <errno.h>
#include <signal.h>

#define STACK_BYTES (256 << 10)

// What a thread's own instructions raise. A program may have protected memory that it has registered, to learn who
// writes there (collectors of garbage, checkpoints), and its handler lets the writer go on. Blocked, they end the
// process.
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

static int create(pthread_t *thread, const pthread_attr_t *attributes, const char *name, void *(*run)(void *argument),
                  void *argument)
{
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < ALB_COUNT(faults); i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int error = pthread_create(thread, attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_setname_np(*thread, name);
    return error;
}

int alb_spawn_for_program(pthread_t *thread, const char *name, void *(*run)(void *argument), void *argument)
{
    return create(thread, NULL, name, run, argument);
}

// The C library takes a program's thread-local memory from the stack, and refuses one that it does not fit into.
int alb_spawn(pthread_t *thread, const char *name, void *(*run)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = create(thread, &attributes, name, run, argument);
    pthread_attr_destroy(&attributes);
    return error == EINVAL ? alb_spawn_for_program(thread, name, run, argument) : error;
}
