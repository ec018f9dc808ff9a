// SPDX-License-Identifier: BSD-2-Clause
// Opening and closing by name; exit; fork.
#include "device/registry.h"

#include "device/cancel.h"
#include "device/drain.h"
#include "device/durable.h"
#include "device/kind.h"
#include "device/mutex.h"
#include "device/report.h"
#include "device/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex;
    bool has_hooks;
    const char *first; // name of the device that was opened first, ever
    struct alb_device *devices[ALB_DEVICE_NAMES];
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// What opens or closes a device takes no longer, unless it has been interrupted for good.
#define EXIT_WAIT_NS (3 * ALB_NS_PER_S)

static _Thread_local volatile bool holds_registry;

static void lock(void)
{
    pthread_mutex_lock(&registry.mutex);
    holds_registry = true;
}

static void unlock(void)
{
    holds_registry = false;
    pthread_mutex_unlock(&registry.mutex);
}

// Programs exit right after their last completion: what must still be answered is drained, and files are finished.
// Other threads may still be running and using the device, so nothing is taken from under them. A destructor of the
// library, since handlers of the program (atexit(3), objects of C++) may still say good-bye and wait for an answer.
// Where librdmacm's is in the same program, and not in a library that needs this one, the priority puts that in front.
//
// A handler of a signal may exit while its thread opens or closes a device: that call will not end.
__attribute__((destructor(1000))) static void at_exit(void)
{
    if (holds_registry || !alb_mutex_lock_until(&registry.mutex, alb_clock_now() + EXIT_WAIT_NS))
        return;
    for (size_t i = 0; i < ALB_DEVICE_NAMES; i++) {
        struct alb_device *device = registry.devices[i];
        if (!device)
            continue;
        if (alb_device_drain(device))
            alb_thread_stop(device);
        if (alb_token_lock_for(&device->token, ALB_NS_PER_S)) {
            if (device->has_capture)
                alb_outfile_flush(&device->capture.file);
            if (device->has_trace)
                alb_outfile_flush(&device->trace.file);
            if (device->options.stats_path[0])
                alb_report_to_file(&device->board, device->options.stats_path);
            alb_token_release(&device->token);
        }
        alb_directory_leave(&device->directory);
    }
    pthread_mutex_unlock(&registry.mutex);
}

static void before_fork(void)
{
    lock();
    alb_durables_before_fork();
    alb_ports_before_fork();
}

static void after_fork_in_parent(void)
{
    alb_ports_after_fork();
    alb_durables_after_fork_in_parent();
    unlock();
}

static void let_go(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

// The child keeps nothing: an open socket would hold the slot after its parent's death, an open directory file would
// make the parent seem alive. It may open a device of its own; and what gets these numbers then is its own, too.
static void after_fork_in_child(void)
{
    for (size_t i = 0; i < ALB_DEVICE_NAMES; i++) {
        struct alb_device *device = registry.devices[i];
        if (!device)
            continue;
        atomic_store(&device->is_forked, true);
        atomic_store(&device->token.state, 1); // no thread's: what posts or polls in the child drives nothing
        alb_port_close(&device->port);
        let_go(&device->directory.fd);
        let_go(&device->board.fd);
        let_go(&device->cores.loadavg_fd);
        if (device->has_capture)
            let_go(&device->capture.file.fd);
        if (device->has_trace)
            let_go(&device->trace.file.fd);
        registry.devices[i] = NULL;
    }
    registry.first = NULL;
    alb_ports_after_fork();
    alb_durables_after_fork_in_child();
    unlock();
}

static int install_hooks(void)
{
    if (registry.has_hooks)
        return 0;
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return ENOMEM;
    registry.has_hooks = true;
    return 0;
}

static struct alb_device **find_place(const char *name)
{
    for (uint32_t i = 0; i < ALB_DEVICE_NAMES; i++) {
        if (strcmp(alb_device_name(i), name) == 0)
            return &registry.devices[i];
    }
    return NULL;
}

// False if it does not fit. What is no plain file has room for both.
static bool append_name(char *path, size_t size, const char *name)
{
    size_t length = strlen(path);
    struct stat status;
    if (length == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode)))
        return true;
    int wrote = snprintf(path + length, size - length, ".%s", name);
    return wrote > 0 && (size_t)wrote < size - length;
}

// Each %d of the file's name becomes the device's. False if it does not fit.
static bool put_name(char *path, size_t size, const char *name)
{
    size_t length = strlen(name);
    for (char *at = path + alb_outfile_folder_bytes(path); (at = strstr(at, "%d")) != NULL; at += length) {
        size_t rest = strlen(at + 2) + 1;
        if ((size_t)(at - path) + length + rest > size)
            return false;
        memmove(at + length, at + 2, rest);
        memcpy(at, name, length);
    }
    return true;
}

// Two devices of a process must not write one file.
static bool name_file(char *path, size_t size, const char *name, bool is_first)
{
    if (strstr(path + alb_outfile_folder_bytes(path), "%d"))
        return put_name(path, size, name);
    return is_first || append_name(path, size, name);
}

static int create(const char *name, const struct alb_device_options *options, struct alb_device **device)
{
    bool is_first = !registry.first || strcmp(registry.first, name) == 0;
    struct alb_device_options *own = malloc(sizeof(*own));
    if (!own)
        return ENOMEM;
    *own = *options;
    bool fits = name_file(own->pcap_path, sizeof(own->pcap_path), name, is_first) &&
                name_file(own->trace_path, sizeof(own->trace_path), name, is_first) &&
                name_file(own->stats_path, sizeof(own->stats_path), name, is_first);
    int error = fits ? alb_device_create(name, own, device) : ENAMETOOLONG;
    free(own);
    if (!error && is_first)
        registry.first = (*device)->kind->name;
    return error;
}

int alb_device_open(const char *name, const struct alb_device_options *options, struct alb_device **device)
{
    struct alb_device **place = find_place(name);
    if (!place)
        return ENODEV;
    int cancel = alb_cancel_off();
    lock();
    int error = install_hooks();
    if (!error && !*place)
        error = create(name, options, place);
    if (!error) {
        (*place)->refs++;
        *device = *place;
    }
    unlock();
    alb_cancel_back(cancel);
    return error;
}

void alb_device_close(struct alb_device *device)
{
    if (alb_device_is_forked(device))
        return;
    struct alb_device **place = find_place(device->name);
    int cancel = alb_cancel_off();
    lock();
    alb_assert(place && *place == device && device->refs > 0);
    if (--device->refs == 0) {
        *place = NULL;
        alb_device_destroy(device);
    }
    unlock();
    alb_cancel_back(cancel);
}
