// SPDX-License-Identifier: BSD-2-Clause
// The devices of this machine, or those of them that ALBEDO_DEVICES names, in its order. They are static: a pointer
// stays good for the life of the process, whatever is freed.
#include "base/log.h"
#include "plugins/verbs/door.h"

#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define DEVICE(name_, number)                                        \
    {                                                                \
        .device = {                                                  \
            .node_type = IBV_NODE_CA,                                \
            .transport_type = IBV_TRANSPORT_IB,                      \
            .name = name_,                                           \
            .dev_name = "uverbs" number,                             \
            .dev_path = "/sys/class/infiniband_verbs/uverbs" number, \
            .ibdev_path = "/sys/class/infiniband/" name_,            \
        },                                                           \
    }

// In the order of alb_device_name.
static struct alb_door_device devices[ALB_DEVICE_NAMES] = {
    DEVICE("roce0", "0"),
    DEVICE("albedo0", "1"),
};

static void warn_of_variables(void)
{
    (void)alb_device_warn_of_variables(environ);
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    static pthread_once_t warned = PTHREAD_ONCE_INIT;
    struct alb_device_selection shown;
    char why[ALB_DEVICE_ERROR_MAX];
    struct ibv_device **list = calloc(ALB_DEVICE_NAMES + 1, sizeof(*list));
    if (num_devices)
        *num_devices = 0;
    if (!list)
        return alb_door_fail(ENOMEM);
    pthread_once(&warned, warn_of_variables);
    if (alb_device_selection_from_environment(&shown, why, sizeof(why))) {
        alb_log(ALB_LOG_ERROR, "%s", why);
        free(list);
        return alb_door_fail(EINVAL);
    }
    for (uint32_t i = 0; i < shown.count; i++)
        list[i] = &devices[shown.index[i]].device;
    if (num_devices)
        *num_devices = (int)shown.count;
    return list;
}

uint32_t alb_door_part_id(const struct ibv_device *device)
{
    return 1 + (uint32_t)(ALB_CONTAINER_OF(device, struct alb_door_device, device) - devices);
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device ? device->name : NULL;
}

// The kernel has no index for it.
int ibv_get_device_index(struct ibv_device *device)
{
    (void)device;
    return -1;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return device ? alb_door_device_guid(device) : 0;
}

// What tells this machine from others; the host name where there is no machine-id (containers).
static size_t machine_identity(char *text, size_t size)
{
    int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
    ssize_t length = -1;
    if (fd >= 0) {
        length = read(fd, text, size);
        close(fd);
    }
    if (length > 0)
        return (size_t)length;
    if (gethostname(text, size) != 0)
        return 0;
    text[size - 1] = '\0';
    return strlen(text);
}

// FNV-1a, 64 bits: the GUID needs to be stable and spread, not secret.
static uint64_t mix(uint64_t hash, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)bytes[i]) * 0x100000001b3ull;
    return hash;
}

// An EUI-64: the vendor's 24 locally administered bits, then 40 that follow from the machine and the device's name.
__be64 alb_door_device_guid(const struct ibv_device *device)
{
    char identity[256];
    uint64_t hash = mix(0xcbf29ce484222325ull, identity, machine_identity(identity, sizeof(identity)));
    hash = mix(hash, device->name, strlen(device->name));
    return htobe64((uint64_t)ALB_DOOR_VENDOR << 40 | hash >> 24);
}
