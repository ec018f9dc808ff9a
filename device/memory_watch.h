// SPDX-License-Identifier: BSD-2-Clause
// Programs that poll queues and then wait by looking at memory (flags, perftest's write latency): they are not looking
// after their sockets although they "have just polled". What the device thread knows of them: whether it has to watch
// the sockets beside the poller, and whether what it takes in for them will be answered (docs/LESSONS.md, 102).
#pragma once

#include "base/types.h"

struct alb_memory_watch {
    alb_time until;      // the sockets are watched until then
    alb_time length_ns;  // of the watch that began last
    alb_time written_at; // when the thread took in WRITEs
    alb_time answer_by;  // 0: no answer is awaited
};

bool alb_memory_watch_is_on(const struct alb_memory_watch *watch, alb_time now);

// One-sided requests had waited, although there was a poller. Begins a watch. Short ones, unless others have ended just
// before: a watcher takes the processor from the program, which may be quick enough without it.
void alb_memory_watch_begin(struct alb_memory_watch *watch, alb_time now);

// A program that has polled since the thread took in WRITEs for it is one that answers them.
bool alb_memory_watch_expects_answer(const struct alb_memory_watch *watch, alb_time polled_at);

// The thread has received something: WRITEs and nothing that the peer waits for, or other things. Returns how long what
// is to be sent should wait for the program's answer, to leave in one burst with it; 0 if it should not.
alb_time alb_memory_watch_took(struct alb_memory_watch *watch, bool only_writes, alb_time polled_at, alb_time now);

// The same for a thread that has received nothing.
alb_time alb_memory_watch_took_nothing(struct alb_memory_watch *watch, alb_time now);
