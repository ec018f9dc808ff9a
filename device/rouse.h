// SPDX-License-Identifier: BSD-2-Clause
// Programs that sleep in a poll(2) or epoll_wait(2) of their own, on the descriptor of a completion channel that they
// have made non-blocking. Two threads had to be woken for each of their messages: the device's by the packet, theirs by
// the event. Instead the sockets rouse the program itself, which drives the device when it polls its queue or asks for
// its event (docs/LESSONS.md, 155).
//
// The descriptor is readable then although there may be no event: what came was an acknowledgement, or was taken in by
// somebody else. Some programs take it for an error if there is none (libfabric's fi_cq_sread does), so one that asks
// is owed one if something was taken in since it last asked, and once it is not roused any more, if it has armed a
// queue meanwhile. One without a completion does no harm: programs have to bear that anyway, since the completion that
// raised an event may have been polled before.
//
// Only one file is roused at a time, and only while it is the only one that has events: others would wait for a program
// that is busy with its own.
#pragma once

#include "base/types.h"

#include <pthread.h>
#include <stdatomic.h>

struct alb_rouse {
    pthread_mutex_t lock; // taken before the token
    int fd;               // of the file that had an event last, or -1
    uint32_t rounds;      // in which its program had an event, and then asked until there was none, close to each other
    alb_time round_at;    // the last of them
    uint32_t vain;        // how often it has asked without getting one, less some for each that it got
    bool is_on;
    int refused_fd;           // of one that the kernel does not let watch the sockets; or -1
    alb_time barred_until;    // none is roused before that (alb_rouse_bar)
    _Atomic bool stirred;     // something was taken in since a program asked
    _Atomic alb_time came_at; // when the program that is roused last came by; 0: none is
};

// What is to be done after a program has asked.
enum alb_rouse_step {
    ALB_ROUSE_NOTHING,
    ALB_ROUSE_BEGIN, // rouse it from now on
    ALB_ROUSE_END,   // do not rouse any more
    ALB_ROUSE_LOOK,  // it is the one that is roused
};

void alb_rouse_init(struct alb_rouse *rouse);
void alb_rouse_fini(struct alb_rouse *rouse);

// [lock] A program found no event at the file; had_one: it has had one since it last found none.
enum alb_rouse_step alb_rouse_note(struct alb_rouse *rouse, int fd, bool had_one, alb_time now);

struct alb_device;
// It is not roused any more if it has not come by for a while.
void alb_rouse_review(struct alb_device *device, alb_time now);
// Another thread waits for events of its own: nobody is roused now, nor for a while.
void alb_rouse_bar(struct alb_device *device, alb_time now);
