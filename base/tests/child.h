// SPDX-License-Identifier: BSD-2-Clause
// A function in a child process, for what ends the process or may happen once in one.
#pragma once

#include <stddef.h>

// Runs body in a child, whose stderr fills text. Returns its wait status: 0 if body has returned, SIGABRT after abort
// also where cmocka or a sanitizer takes that signal.
int child_run(void (*body)(void *argument), void *argument, char *text, size_t size);
