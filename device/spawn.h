// SPDX-License-Identifier: BSD-2-Clause
// Threads of ours in a program's process. They handle none of its signals, which are for its own threads, except faults
// that they cause themselves: touching memory of the program's may be one.
#pragma once

#include <pthread.h>

// name: at most 15 characters, seen by ps(1) and debuggers. Those of ours need little stack; what a program with much
// thread-local memory (__thread) needs besides is added. Errors: those of pthread_create(3).
int alb_spawn(pthread_t *thread, const char *name, void *(*run)(void *argument), void *argument);
// The same with the usual stack, for a thread that calls the program's functions.
int alb_spawn_for_program(pthread_t *thread, const char *name, void *(*run)(void *argument), void *argument);
