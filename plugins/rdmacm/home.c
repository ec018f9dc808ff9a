// SPDX-License-Identifier: BSD-2-Clause
// What a process has once: the device, and the handler by which its connection manager speaks.
#include "device/cancel.h"
#include "device/drain.h"
#include "plugins/rdmacm/door.h"
#include "plugins/rdmacm/rsocket.h"
#include "plugins/verbs/bridge.h"
#include "wire/aeth.h"

#include <stdatomic.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t mutex;
    struct ibv_context *_Atomic context; // set last, and never again
    struct alb_device *device;
    struct ibv_pd *pd;
} home = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// A child begins anew: what it has inherited knows its device, and is refused (rdmacm_is_forked). Its mutexes may have
// been held by threads that it has not, so they begin anew, too.
static void after_fork_in_child(void)
{
    home.context = NULL;
    home.device = NULL;
    home.pd = NULL;
    pthread_mutex_init(&home.mutex, NULL);
    rdmacm_xrcd_after_fork();
    rsocket_service_after_fork();
    rsocket_table_after_fork();
}

// Before any of them can be held. Its only error is ENOMEM, and then a child is as it would be without.
__attribute__((constructor)) static void install_hook(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

// In whichever thread drives: one of the program's may be cancelled.
static void on_cm(void *user)
{
    struct alb_cm_event event;
    int cancel = alb_cancel_off();
    while (alb_cm_event(user, &event))
        rdmacm_on_engine_event(&event);
    alb_cancel_back(cancel);
}

static struct ibv_context *open_first(void)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *context = list && count > 0 ? ibv_open_device(list[0]) : NULL;
    int error = context ? 0 : list && count == 0 ? ENODEV : errno;
    if (list)
        ibv_free_device_list(list);
    errno = error;
    return context;
}

// A kernel disconnects what a process leaves connected. What the process has sent comes first, since a peer that is
// told may take no more; the device's own destructor, which comes after this one, waits for the answers.
__attribute__((destructor)) static void at_exit(void)
{
    if (!atomic_load(&home.context))
        return; // a forked child
    if (!alb_device_can_drain(home.device))
        return;
    rsocket_close_all();
    alb_device_drain(home.device);
    rdmacm_lock();
    alb_cm_disconnect_all(rdmacm_engine(), alb_device_now());
    rdmacm_unlock();
}

// Everything that events will need is there before the first of them can come.
static struct ibv_context *open_home(void)
{
    struct ibv_context *context = open_first();
    if (!context)
        return NULL;
    home.pd = ibv_alloc_pd(context);
    if (!home.pd) {
        int error = errno;
        ibv_close_device(context);
        errno = error;
        return NULL;
    }
    home.device = albedo_bridge_device(context);
    albedo_bridge_set_cm_handler(on_cm);
    struct alb_engine *engine = alb_device_engine(home.device);
    alb_device_lock(home.device);
    alb_cm_set_user(engine, engine);
    alb_device_unlock(home.device);
    // If there is no memory for it, calls for events of a channel that is gone end with EBADF while the process ends.
    atexit(rdmacm_begin_to_end);
    return context;
}

struct ibv_context *rdmacm_context(void)
{
    struct ibv_context *context = atomic_load(&home.context);
    if (context)
        return context;
    int cancel = alb_cancel_off();
    pthread_mutex_lock(&home.mutex);
    context = atomic_load(&home.context);
    if (!context && (context = open_home()))
        atomic_store(&home.context, context);
    pthread_mutex_unlock(&home.mutex);
    alb_cancel_back(cancel);
    return context;
}

struct ibv_pd *rdmacm_default_pd(void)
{
    return home.pd;
}

struct alb_device *rdmacm_device(void)
{
    return home.device;
}

struct alb_engine *rdmacm_engine(void)
{
    return alb_device_engine(home.device);
}

void rdmacm_lock(void)
{
    alb_device_lock(home.device);
}

void rdmacm_unlock(void)
{
    alb_device_unlock(home.device);
}

uint8_t rdmacm_mtu_code(void)
{
    return (uint8_t)alb_mtu_code(alb_device_mtu_bytes(rdmacm_device()));
}
