// SPDX-License-Identifier: BSD-2-Clause
// A descriptor that is readable while something is there to be taken, and never writable, like those of a kernel's
// completion and event channels: a program that asks for both is not told of the other. An eventfd, which counts, would
// always be writable, so the program gets an epoll instance that watches it. The program may poll it and make it
// non-blocking.
#pragma once

#include <stdbool.h>

struct alb_event_file {
    int fd;       // the program's
    int count_fd; // our own
};

// 0, or the errno of eventfd(2), epoll_create(2) or epoll_ctl(2).
int alb_event_file_open(struct alb_event_file *file);
void alb_event_file_close(const struct alb_event_file *file);

// One more is there. 2^64 of them never are.
void alb_event_file_add(const struct alb_event_file *file);
// One less. False: none is there.
bool alb_event_file_drop(const struct alb_event_file *file);

enum alb_event_file_mode {
    ALB_EVENT_FILE_BLOCKS,
    ALB_EVENT_FILE_DOES_NOT_BLOCK,
    ALB_EVENT_FILE_IS_CLOSED,
};
// What the program has made of the descriptor.
enum alb_event_file_mode alb_event_file_mode(const struct alb_event_file *file);
// Takes one and waits for it, unless the program has made the descriptor non-blocking. 0, EAGAIN, EINTR, or EBADF where
// the program has closed it. Like read(2) of a kernel's descriptor, and unlike poll(2), it goes on after a signal whose
// handler says so (SA_RESTART), and is a point of cancellation.
int alb_event_file_take(const struct alb_event_file *file);
