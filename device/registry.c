// SPDX-License-Identifier: BSD-2-Clause
// Opening and closing by name; exit; fork.
#include "device/registry.h"

#include "device/drain.h"
#include "device/report.h"
#include "device/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Devices there can be; "albedo0" is reserved for the CSA transport.
static const char *const names[] = {"roce0"};

static struct {
    pthread_mutex_t mutex;
    bool has_hooks;
    struct alb_device *devices[ALB_COUNT(names)];
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// Programs exit right after their last completion: what must still be answered is drained, and files are finished.
// Other threads may still be running and using the device, so nothing is taken from under them.
static void at_exit(void)
{
    pthread_mutex_lock(&registry.mutex);
    for (size_t i = 0; i < ALB_COUNT(names); i++) {
        struct alb_device *device = registry.devices[i];
        if (!device)
            continue;
        alb_device_drain_all(device);
        alb_thread_stop(device);
        if (alb_token_lock_for(&device->token, ALB_NS_PER_S)) {
            if (device->has_capture)
                alb_outfile_flush(&device->capture.file);
            if (device->has_trace)
                alb_outfile_flush(&device->trace.file);
            if (device->stats_path[0])
                alb_report_to_file(&device->board, device->stats_path);
            alb_token_release(&device->token);
        }
        alb_directory_leave(&device->directory);
    }
    pthread_mutex_unlock(&registry.mutex);
}

static void before_fork(void)
{
    pthread_mutex_lock(&registry.mutex);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&registry.mutex);
}

// The child keeps nothing: an open socket would hold the slot after its parent's death, an open directory file would
// make the parent seem alive. It may open a device of its own.
static void after_fork_in_child(void)
{
    for (size_t i = 0; i < ALB_COUNT(names); i++) {
        struct alb_device *device = registry.devices[i];
        if (!device)
            continue;
        atomic_store(&device->is_forked, true);
        alb_port_close(&device->port);
        if (device->directory.fd >= 0)
            close(device->directory.fd);
        if (device->board.fd >= 0)
            close(device->board.fd);
        if (device->has_capture)
            close(device->capture.file.fd);
        if (device->has_trace)
            close(device->trace.file.fd);
        registry.devices[i] = NULL;
    }
    pthread_mutex_unlock(&registry.mutex);
}

static int install_hooks(void)
{
    if (registry.has_hooks)
        return 0;
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0 || atexit(at_exit) != 0)
        return ENOMEM;
    registry.has_hooks = true;
    return 0;
}

static struct alb_device **find_place(const char *name)
{
    for (size_t i = 0; i < ALB_COUNT(names); i++) {
        if (strcmp(names[i], name) == 0)
            return &registry.devices[i];
    }
    return NULL;
}

int alb_device_open(const char *name, const struct alb_device_options *options, struct alb_device **device)
{
    struct alb_device **place = find_place(name);
    if (!place)
        return ENODEV;
    pthread_mutex_lock(&registry.mutex);
    int error = install_hooks();
    if (!error && !*place)
        error = alb_device_create(name, options, place);
    if (!error) {
        (*place)->refs++;
        *device = *place;
    }
    pthread_mutex_unlock(&registry.mutex);
    return error;
}

void alb_device_close(struct alb_device *device)
{
    if (alb_device_is_forked(device))
        return;
    struct alb_device **place = find_place(device->name);
    pthread_mutex_lock(&registry.mutex);
    alb_assert(place && *place == device && device->refs > 0);
    if (--device->refs == 0) {
        *place = NULL;
        alb_device_destroy(device);
    }
    pthread_mutex_unlock(&registry.mutex);
}
