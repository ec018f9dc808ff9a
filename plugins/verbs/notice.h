// SPDX-License-Identifier: BSD-2-Clause
// Notices: what a program learns by reading a file descriptor. A completion channel and a context's asynchronous events
// are both a queue of them beside a file that counts what is queued, so that its descriptor can be polled, honours
// O_NONBLOCK, blocks otherwise, and ending the queue does not look like an end of file to a blocked reader.
#pragma once

#include "base/list.h"
#include "device/device.h"
#include "device/event_file.h"

#include <pthread.h>
#include <stdatomic.h>

// What a thread that wants a notice can do by which one may be raised.
struct alb_notices_driver {
    void *context;
    // Does it while that is worth while, and ends as soon as is_raised says so. For one that waits; no other in the
    // process does that meanwhile.
    void (*await)(void *context, bool (*is_raised)(void *notices), void *notices);
    // The thread goes to sleep.
    void (*leave)(void *context);
    // Does it once, if that is worth while, for a thread that does not wait, and may make the descriptor readable when
    // it should be called again. had_one: the program has had a notice since the last time.
    enum alb_roused (*ask)(void *context, int fd, bool had_one);
    // The descriptor will be closed.
    void (*forget)(void *context, int fd);
};

struct alb_notices {
    pthread_mutex_t lock;
    struct alb_list pending;
    bool has_looker;             // a thread is in driver.await or driver.ask
    bool had_one;                // a notice was taken since driver.ask
    _Atomic bool is_roused;      // driver.ask makes the descriptor readable
    struct alb_notice *expected; // by alb_notices_expect, and none was given instead since; or NULL
    _Atomic bool is_handed;      // one notice is for it, and the file does not count that
    struct alb_event_file file;
    struct alb_notices_driver driver; // await NULL: none
    _Atomic uint32_t drivers;         // threads that are in its functions, or about to be
    _Atomic bool has_ended;           // no thread may go into them any more
    _Atomic uint32_t readers;         // threads in alb_notices_take
};

// One thing that can be noticed again and again. It is embedded in its owner, so that raising it cannot fail.
struct alb_notice {
    struct alb_list link;
    void *owner;
    int kind;           // the owner's
    uint32_t pending;   // raised and not yet taken
    uint32_t delivered; // taken: each is owed an acknowledgement
};

// driver may be NULL. Errors: those of alb_event_file_open.
int alb_notices_init(struct alb_notices *notices, const struct alb_notices_driver *driver);
// Waits for a thread that is in the driver's functions. False if one waits in alb_notices_take. It waits for ever then
// (some programs leave a thread there on purpose), and the queue's memory and descriptor must be left to it.
bool alb_notices_fini(struct alb_notices *notices);

void alb_notice_init(struct alb_notice *notice, void *owner, int kind);
// Any thread; takes only the queue's own lock. The queue must not end, nor the notice be forgotten, before it returns.
void alb_notices_raise(struct alb_notices *notices, struct alb_notice *notice);
// The program is about to wait for this one. If the descriptor is readable for the driver's sake, and nothing is
// raised, it is given this one, once: for more it must expect it again.
void alb_notices_expect(struct alb_notices *notices, struct alb_notice *notice);
// Takes the oldest one, waiting for it if the descriptor blocks. NULL with the errno of alb_event_file_take.
struct alb_notice *alb_notices_take(struct alb_notices *notices);
// Forgets what is pending. Afterwards notice->delivered is final, if it is not raised any more.
void alb_notices_forget(struct alb_notices *notices, struct alb_notice *notice);
