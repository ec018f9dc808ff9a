// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/verbs/notice.h"

#include "device/cancel.h"

#include <errno.h>
#include <time.h>

// Every count was written behind its notice: a reader that has read a count finds a notice, or finds that it was
// forgotten and reads again.

// Threads of this process that wait for notices which they can raise themselves. (In a forked child it may stay too
// large: then none of its threads does.)
static _Atomic uint32_t waiting;

int alb_notices_init(struct alb_notices *notices, const struct alb_notices_driver *driver)
{
    int error = alb_event_file_open(&notices->file);
    if (error)
        return error;
    pthread_mutex_init(&notices->lock, NULL);
    alb_list_init(&notices->pending);
    notices->has_looker = notices->had_one = false;
    notices->expected = NULL;
    atomic_init(&notices->is_handed, false);
    atomic_init(&notices->is_roused, false);
    notices->driver = driver ? *driver : (struct alb_notices_driver){0};
    atomic_init(&notices->drivers, 0);
    atomic_init(&notices->has_ended, false);
    atomic_init(&notices->readers, 0);
    return 0;
}

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = 20000};
    nanosleep(&pause, NULL);
}

bool alb_notices_fini(struct alb_notices *notices)
{
    int cancel = alb_cancel_off();
    atomic_store(&notices->has_ended, true);
    while (atomic_load(&notices->drivers) > 0)
        pause_shortly();
    alb_cancel_back(cancel);
    if (notices->driver.forget)
        notices->driver.forget(notices->driver.context, notices->file.fd);
    if (atomic_load_explicit(&notices->readers, memory_order_acquire) > 0)
        return false;
    alb_event_file_close(&notices->file);
    pthread_mutex_destroy(&notices->lock);
    return true;
}

void alb_notice_init(struct alb_notice *notice, void *owner, int kind)
{
    alb_list_init(&notice->link);
    notice->owner = owner;
    notice->kind = kind;
    notice->pending = 0;
    notice->delivered = 0;
}

// [lock] True if a thread looks, and has none yet.
static bool hand(struct alb_notices *notices)
{
    return notices->has_looker && !atomic_exchange_explicit(&notices->is_handed, true, memory_order_relaxed);
}

// [lock] True if one was handed, which is not any more.
static bool take_back(struct alb_notices *notices)
{
    return atomic_exchange_explicit(&notices->is_handed, false, memory_order_relaxed);
}

void alb_notices_raise(struct alb_notices *notices, struct alb_notice *notice)
{
    pthread_mutex_lock(&notices->lock);
    if (notice->pending++ == 0)
        alb_list_push_back(&notices->pending, &notice->link);
    bool is_handed = hand(notices);
    pthread_mutex_unlock(&notices->lock);
    // Who waits is woken by this, and wants the lock at once.
    if (!is_handed)
        alb_event_file_add(&notices->file);
}

// [lock] The oldest one, or NULL.
static struct alb_notice *pop(struct alb_notices *notices)
{
    struct alb_list *link = alb_list_pop(&notices->pending);
    if (!link)
        return NULL;
    struct alb_notice *notice = ALB_LIST_ENTRY(link, struct alb_notice, link);
    notice->delivered++;
    notices->had_one = true;
    if (--notice->pending > 0)
        alb_list_push_back(&notices->pending, &notice->link);
    return notice;
}

static bool has_company(void)
{
    return atomic_load(&waiting) > 1;
}

static bool is_over(void *notices)
{
    return atomic_load_explicit(&((struct alb_notices *)notices)->is_handed, memory_order_relaxed) || has_company();
}

// False if there is something already, or another looks.
static bool set_looker(struct alb_notices *notices)
{
    pthread_mutex_lock(&notices->lock);
    bool is_first = alb_list_is_empty(&notices->pending) && !notices->has_looker;
    notices->has_looker |= is_first;
    pthread_mutex_unlock(&notices->lock);
    return is_first;
}

// What was handed to it, or NULL.
static struct alb_notice *unset_looker(struct alb_notices *notices)
{
    pthread_mutex_lock(&notices->lock);
    notices->has_looker = false;
    struct alb_notice *notice = take_back(notices) ? pop(notices) : NULL;
    pthread_mutex_unlock(&notices->lock);
    return notice;
}

static bool is_empty(struct alb_notices *notices)
{
    pthread_mutex_lock(&notices->lock);
    bool is = alb_list_is_empty(&notices->pending);
    pthread_mutex_unlock(&notices->lock);
    return is;
}

static bool take_had_one(struct alb_notices *notices)
{
    pthread_mutex_lock(&notices->lock);
    bool had_one = notices->had_one;
    notices->had_one = false;
    pthread_mutex_unlock(&notices->lock);
    return had_one;
}

// True if the descriptor may have been readable for that reason.
static bool note_roused(struct alb_notices *notices, enum alb_roused roused)
{
    bool was_roused = atomic_exchange(&notices->is_roused, roused != ALB_ROUSED_NOT);
    return roused == ALB_ROUSED_STIRRED || (was_roused && roused == ALB_ROUSED_NOT);
}

void alb_notices_expect(struct alb_notices *notices, struct alb_notice *notice)
{
    pthread_mutex_lock(&notices->lock);
    notices->expected = notice;
    pthread_mutex_unlock(&notices->lock);
}

// The program is owed a notice, and none was raised. NULL if it expects none, or one has come meanwhile.
static struct alb_notice *give_expected(struct alb_notices *notices)
{
    pthread_mutex_lock(&notices->lock);
    struct alb_notice *notice = alb_list_is_empty(&notices->pending) ? notices->expected : NULL;
    if (notice) {
        notice->delivered++;
        notices->expected = NULL;
    }
    pthread_mutex_unlock(&notices->lock);
    return notice;
}

// Does what the driver can before the program is told that there is nothing.
static struct alb_notice *ask(struct alb_notices *notices)
{
    const struct alb_notices_driver *driver = &notices->driver;
    if (!set_looker(notices))
        return NULL;
    enum alb_roused roused = driver->ask(driver->context, notices->file.fd, take_had_one(notices));
    struct alb_notice *notice = unset_looker(notices);
    return note_roused(notices, roused) && !notice ? give_expected(notices) : notice;
}

// Does what the driver can before the thread sleeps. Of several that wait none does: while one would be busy with what
// it waited for, nobody would drive for the others.
static struct alb_notice *look(struct alb_notices *notices, bool is_alone)
{
    const struct alb_notices_driver *driver = &notices->driver;
    struct alb_notice *notice = NULL;
    if (is_alone && set_looker(notices)) {
        driver->await(driver->context, is_over, notices);
        notice = unset_looker(notices);
    }
    if (!notice || has_company())
        driver->leave(driver->context);
    // It may have been told that there is one while it did not block.
    return !notice && note_roused(notices, ALB_ROUSED_NOT) ? give_expected(notices) : notice;
}

static struct alb_notice *take_counted(struct alb_notices *notices)
{
    for (;;) {
        int error = alb_event_file_take(&notices->file);
        if (error == EAGAIN && !is_empty(notices)) {
            pause_shortly(); // it is about to be counted, and the program may have been told by the sockets already
            continue;
        }
        if (error) {
            errno = error;
            return NULL;
        }
        pthread_mutex_lock(&notices->lock);
        struct alb_notice *notice = pop(notices);
        pthread_mutex_unlock(&notices->lock);
        if (notice)
            return notice;
    }
}

static struct alb_notice *take_from_driver(struct alb_notices *notices, bool waits, bool is_alone)
{
    struct alb_notice *notice = NULL;
    atomic_fetch_add(&notices->drivers, 1);
    if (!atomic_load(&notices->has_ended))
        notice = waits ? look(notices, is_alone) : ask(notices);
    atomic_fetch_sub(&notices->drivers, 1);
    return notice;
}

static struct alb_notice *take(struct alb_notices *notices, bool is_alone)
{
    if (!notices->driver.await || !is_empty(notices))
        return take_counted(notices);
    enum alb_event_file_mode mode = alb_event_file_mode(&notices->file);
    if (mode == ALB_EVENT_FILE_IS_CLOSED)
        return take_counted(notices);
    struct alb_notice *notice = take_from_driver(notices, mode == ALB_EVENT_FILE_BLOCKS, is_alone);
    if (notice)
        return notice;
    if (mode == ALB_EVENT_FILE_BLOCKS || !is_empty(notices))
        return take_counted(notices);
    errno = EAGAIN; // where nothing is pending nothing is counted either
    return NULL;
}

static void end_wait(void *argument)
{
    struct alb_notices *notices = argument;
    if (notices->driver.await)
        atomic_fetch_sub(&waiting, 1);
    atomic_fetch_sub_explicit(&notices->readers, 1, memory_order_release);
}

// Programs cancel threads that wait here (rping does).
struct alb_notice *alb_notices_take(struct alb_notices *notices)
{
    struct alb_notice *notice;
    bool is_alone = notices->driver.await && atomic_fetch_add(&waiting, 1) == 0;
    atomic_fetch_add_explicit(&notices->readers, 1, memory_order_relaxed);
    pthread_cleanup_push(end_wait, notices);
    notice = take(notices, is_alone);
    pthread_cleanup_pop(1);
    return notice;
}

// A count that is missing was read already: its reader will find nothing and read again. One that is still to be
// written would stay without its notice.
void alb_notices_forget(struct alb_notices *notices, struct alb_notice *notice)
{
    pthread_mutex_lock(&notices->lock);
    alb_list_remove(&notice->link);
    if (notices->expected == notice)
        notices->expected = NULL;
    for (; notice->pending > 0; notice->pending--) {
        if (!take_back(notices))
            alb_event_file_drop(&notices->file);
    }
    pthread_mutex_unlock(&notices->lock);
}
