// SPDX-License-Identifier: BSD-2-Clause
#include "device/path_sockets.h"

#include "base/log.h"
#include "device/cancel.h"
#include "device/descriptor.h"

#include <errno.h>
#include <sys/mman.h>

#define RETRY_NS ALB_NS_PER_S

static uint32_t socket_count(const struct alb_path_sockets *paths)
{
    return ALB_DEVICE_ADDRESSES_MAX * paths->limit;
}

static size_t table_bytes(const struct alb_path_sockets *paths)
{
    return socket_count(paths) * sizeof(paths->sockets[0]);
}

// Pages, as all memory of a device: a program may leave it open when it ends.
static int open_table(struct alb_path_sockets *paths)
{
    void *table = mmap(NULL, table_bytes(paths), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        return ENOMEM;
    struct alb_socket *sockets = table;
    for (uint32_t i = 0; i < socket_count(paths); i++)
        sockets[i].fd = -1;
    paths->sockets = sockets; // as it is now, a forked child may close it
    return 0;
}

static void complain(struct alb_path_sockets *paths)
{
    if (paths->is_complained)
        return;
    paths->is_complained = true;
    alb_log(
        ALB_LOG_WARNING,
        "not every path has a socket of its own: the process may have too few descriptors (ulimit -n), or use fewer "
        "paths (albedo run --paths)");
}

static int open_one(struct alb_path_sockets *paths, uint32_t i, const struct alb_addr *local)
{
    int cancel = alb_cancel_off(), error = paths->sockets ? 0 : open_table(paths);
    if (!error && (error = alb_socket_open_sender(&paths->sockets[i], local)))
        paths->sockets[i].fd = -1;
    if (!error && alb_descriptor_is_scarce(paths->sockets[i].fd)) {
        alb_socket_close(&paths->sockets[i]);
        error = EMFILE;
    }
    if (error == EMFILE)
        complain(paths);
    alb_cancel_back(cancel);
    if (!error && paths->ports)
        paths->ports[i / paths->limit][i % paths->limit] = paths->sockets[i].local.port;
    return error;
}

struct alb_socket *alb_path_sockets_get(struct alb_path_sockets *paths, uint32_t address_index,
                                        const struct alb_addr *local, uint16_t path, alb_time now)
{
    uint32_t i = address_index * paths->limit + path;
    if (path >= paths->limit)
        return NULL;
    if (paths->sockets && paths->sockets[i].fd >= 0)
        return &paths->sockets[i];
    if (now < paths->retry_at)
        return NULL;
    if (open_one(paths, i, local) == 0)
        return &paths->sockets[i];
    paths->retry_at = now + RETRY_NS;
    return NULL;
}

void alb_path_sockets_close(struct alb_path_sockets *paths)
{
    if (!paths->sockets)
        return;
    for (uint32_t i = 0; i < socket_count(paths); i++)
        alb_socket_close(&paths->sockets[i]);
    munmap(paths->sockets, table_bytes(paths));
    paths->sockets = NULL;
}
