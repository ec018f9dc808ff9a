// SPDX-License-Identifier: BSD-2-Clause
// Writing may raise signals: SIGXFSZ beyond the limit of a file's size, SIGPIPE where a pipe's reader has gone. They
// end a program that did not ask for a file of ours.
#pragma once

#include <signal.h>

// Between the two, in the same thread, a write that would raise one fails with EFBIG or EPIPE, and nothing more
// happens.
void alb_write_signals_hold(sigset_t *before);
void alb_write_signals_release(const sigset_t *before);
