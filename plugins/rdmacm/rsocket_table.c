// SPDX-License-Identifier: BSD-2-Clause
// The rsockets of the process by their numbers, and the references that keep them while calls use them.
#include "device/mutex.h"
#include "plugins/rdmacm/rsocket.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    struct rsocket **entries;
    int count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct rsocket *rsocket_ref(struct rsocket *rs)
{
    atomic_fetch_add_explicit(&rs->references, 1, memory_order_relaxed);
    return rs;
}

void rsocket_put(struct rsocket *rs)
{
    if (atomic_fetch_sub_explicit(&rs->references, 1, memory_order_acq_rel) == 1)
        rs->ops->free(rs);
}

struct rsocket *rsocket_get(int fd)
{
    struct rsocket *rs = NULL;
    pthread_mutex_lock(&table.lock);
    if (fd >= 0 && fd < table.count && table.entries[fd])
        rs = rsocket_ref(table.entries[fd]);
    pthread_mutex_unlock(&table.lock);
    return rs;
}

static bool make_room(int fd)
{
    enum { STEP = 256 };
    if (fd < table.count)
        return true;
    int count = (fd / STEP + 1) * STEP;
    struct rsocket **entries = realloc(table.entries, (size_t)count * sizeof(struct rsocket *));
    if (!entries)
        return false;
    memset(entries + table.count, 0, (size_t)(count - table.count) * sizeof(struct rsocket *));
    table.entries = entries;
    table.count = count;
    return true;
}

int rsocket_table_add(struct rsocket *rs)
{
    pthread_mutex_lock(&table.lock);
    bool has_room = make_room(rs->fd);
    if (has_room) {
        alb_assert(!table.entries[rs->fd]);
        table.entries[rs->fd] = rs;
    }
    pthread_mutex_unlock(&table.lock);
    return has_room ? 0 : ENOMEM;
}

struct rsocket *rsocket_table_take(int fd)
{
    struct rsocket *rs = NULL;
    pthread_mutex_lock(&table.lock);
    if (fd >= 0 && fd < table.count) {
        rs = table.entries[fd];
        table.entries[fd] = NULL;
    }
    pthread_mutex_unlock(&table.lock);
    return rs;
}

// A free number for a descriptor: above those that programs usually have, and below those of alb_descriptor_aside. A
// process that may not have so many gets the lowest. Negative: errno.
static int renumbered(int fd)
{
    enum { FIRST_NUMBER = 256 };
    int fresh = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_NUMBER);
    return fresh >= 0 ? fresh : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

int rsocket_number(int fd)
{
    int fresh = fd < 0 ? -1 : renumbered(fd);
    if (fresh < 0)
        return fd;
    close(fd);
    return fresh;
}

bool rsocket_table_renumber(struct rsocket *rs)
{
    int old = rs->fd, fresh = renumbered(old);
    if (fresh < 0)
        return false;
    pthread_mutex_lock(&table.lock);
    bool has_room = make_room(fresh);
    if (has_room) {
        table.entries[old] = NULL;
        table.entries[fresh] = rs;
        rs->fd = fresh;
    }
    pthread_mutex_unlock(&table.lock);
    close(has_room ? old : fresh);
    return has_room;
}

struct rsocket *rsocket_table_next(int fd)
{
    struct rsocket *rs = NULL;
    pthread_mutex_lock(&table.lock);
    for (int i = ALB_MAX(fd, 0); i < table.count && !rs; i++)
        if (table.entries[i])
            rs = rsocket_ref(table.entries[i]);
    pthread_mutex_unlock(&table.lock);
    return rs;
}

bool rsocket_table_can_be_had(alb_time until)
{
    if (!alb_mutex_lock_until(&table.lock, until))
        return false;
    pthread_mutex_unlock(&table.lock);
    return true;
}

void rsocket_table_after_fork(void)
{
    table.entries = NULL;
    table.count = 0;
    pthread_mutex_init(&table.lock, NULL);
}
