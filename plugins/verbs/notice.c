// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/verbs/notice.h"

#include <errno.h>

// Every count was written behind its notice: a reader that has read a count finds a notice, or finds that it was
// forgotten and reads again.

int alb_notices_init(struct alb_notices *notices)
{
    int error = alb_event_file_open(&notices->file);
    if (error)
        return error;
    pthread_mutex_init(&notices->lock, NULL);
    alb_list_init(&notices->pending);
    notices->lookers = 0;
    atomic_init(&notices->handed, 0);
    atomic_init(&notices->readers, 0);
    return 0;
}

bool alb_notices_fini(struct alb_notices *notices)
{
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

// [lock] True if there was a looker for one more.
static bool hand(struct alb_notices *notices)
{
    uint32_t handed = atomic_load_explicit(&notices->handed, memory_order_relaxed);
    if (handed == notices->lookers)
        return false;
    atomic_store_explicit(&notices->handed, handed + 1, memory_order_relaxed);
    return true;
}

// [lock] True if one was handed, which is not any more.
static bool take_back(struct alb_notices *notices)
{
    uint32_t handed = atomic_load_explicit(&notices->handed, memory_order_relaxed);
    if (handed == 0)
        return false;
    atomic_store_explicit(&notices->handed, handed - 1, memory_order_relaxed);
    return true;
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
    if (--notice->pending > 0)
        alb_list_push_back(&notices->pending, &notice->link);
    return notice;
}

static struct alb_notice *take(struct alb_notices *notices)
{
    for (;;) {
        int error = alb_event_file_take(&notices->file);
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

static void leave(void *argument)
{
    struct alb_notices *notices = argument;
    atomic_fetch_sub_explicit(&notices->readers, 1, memory_order_release);
}

// Programs cancel threads that wait here (rping does).
struct alb_notice *alb_notices_take(struct alb_notices *notices)
{
    struct alb_notice *notice;
    atomic_fetch_add_explicit(&notices->readers, 1, memory_order_relaxed);
    pthread_cleanup_push(leave, notices);
    notice = take(notices);
    pthread_cleanup_pop(1);
    return notice;
}

bool alb_notices_look(struct alb_notices *notices)
{
    pthread_mutex_lock(&notices->lock);
    bool looks = alb_list_is_empty(&notices->pending) && alb_event_file_blocks(&notices->file);
    if (looks) {
        notices->lookers++;
        atomic_fetch_add_explicit(&notices->readers, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&notices->lock);
    return looks;
}

struct alb_notice *alb_notices_end_look(struct alb_notices *notices)
{
    pthread_mutex_lock(&notices->lock);
    notices->lookers--;
    struct alb_notice *notice = take_back(notices) ? pop(notices) : NULL;
    pthread_mutex_unlock(&notices->lock);
    leave(notices);
    return notice;
}

// A count that is missing was read already: its reader will find nothing and read again; one that cannot be read here
// has the same effect. One that is still to be written would stay without its notice.
void alb_notices_forget(struct alb_notices *notices, struct alb_notice *notice)
{
    pthread_mutex_lock(&notices->lock);
    alb_list_remove(&notice->link);
    for (; notice->pending > 0; notice->pending--) {
        if (!take_back(notices))
            alb_event_file_drop(&notices->file);
    }
    pthread_mutex_unlock(&notices->lock);
}
