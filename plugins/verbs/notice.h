// SPDX-License-Identifier: BSD-2-Clause
// Notices: what a program learns by reading a file descriptor. A completion channel and a context's asynchronous events
// are both a queue of them beside a file that counts what is queued, so that its descriptor can be polled, honours
// O_NONBLOCK, blocks otherwise, and ending the queue does not look like an end of file to a blocked reader.
#pragma once

#include "base/list.h"
#include "device/event_file.h"

#include <pthread.h>
#include <stdatomic.h>

struct alb_notices {
    pthread_mutex_t lock;
    struct alb_list pending;
    uint32_t lookers;        // threads between alb_notices_look and alb_notices_end_look
    _Atomic uint32_t handed; // of what is pending: it is for lookers, and the file does not count it; at most lookers
    struct alb_event_file file;
    _Atomic uint32_t readers; // threads in alb_notices_take, and lookers
};

// One thing that can be noticed again and again. It is embedded in its owner, so that raising it cannot fail.
struct alb_notice {
    struct alb_list link;
    void *owner;
    int kind;           // the owner's
    uint32_t pending;   // raised and not yet taken
    uint32_t delivered; // taken: each is owed an acknowledgement
};

// Errors: those of alb_event_file_open.
int alb_notices_init(struct alb_notices *notices);
// False if a thread waits in alb_notices_take, or looks. It waits for ever then (some programs leave a thread there on
// purpose), and the queue's memory and descriptor must be left to it.
bool alb_notices_fini(struct alb_notices *notices);

void alb_notice_init(struct alb_notice *notice, void *owner, int kind);
// Any thread; takes only the queue's own lock. The queue must not end, nor the notice be forgotten, before it returns.
void alb_notices_raise(struct alb_notices *notices, struct alb_notice *notice);
// Takes the oldest one, waiting for it if the descriptor blocks. NULL with the errno of alb_event_file_take.
struct alb_notice *alb_notices_take(struct alb_notices *notices);
// For a thread that would wait in alb_notices_take, and can do something meanwhile by which a notice may be raised: it
// is handed to it without a system call. False if there is one already, or the descriptor does not block.
bool alb_notices_look(struct alb_notices *notices);
// True if there is one for a thread that looks.
static inline bool alb_notices_found(struct alb_notices *notices)
{
    return atomic_load_explicit(&notices->handed, memory_order_relaxed) > 0;
}
// Ends a look, and takes the notice that was handed to it, or returns NULL.
struct alb_notice *alb_notices_end_look(struct alb_notices *notices);

// Forgets what is pending. Afterwards notice->delivered is final, if it is not raised any more.
void alb_notices_forget(struct alb_notices *notices, struct alb_notice *notice);
