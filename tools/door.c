// SPDX-License-Identifier: BSD-2-Clause
// Loads libibverbs.so.1 and librdmacm.so.1 from the private directory and asks them what a program would ask.
#include "tools/door.h"

#include "tools/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The public functions used here, by the names they have in the library.
#define DOOR_FUNCTIONS(X) \
    X(get_device_list)    \
    X(free_device_list)   \
    X(get_device_name)    \
    X(open_device)        \
    X(close_device)       \
    X(query_device)       \
    X(query_gid)

struct door {
    void *library, *cm_library;
    struct ibv_device **devices;
    int device_count;
#define X(name) __typeof__(ibv_##name) *name;
    DOOR_FUNCTIONS(X)
#undef X
    // The real symbol, not the macro: it fills the attributes as they were in the first version of the interface.
    int (*query_port)(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attributes);
};

static bool resolve(struct door *door, char *error, size_t error_size)
{
#define X(name)                                                              \
    *(void **)&door->name = dlsym(door->library, "ibv_" #name);              \
    if (door->name == NULL) {                                                \
        snprintf(error, error_size, "%s has no ibv_" #name, LIBRARIES_DOOR); \
        return false;                                                        \
    }
    DOOR_FUNCTIONS(X)
    X(query_port)
#undef X
    return true;
}

static void *load(const char *directory, const char *library, char *error, size_t error_size)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", directory, library);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        snprintf(error, error_size, "%s", strerror(ENAMETOOLONG));
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        snprintf(error, error_size, "%s", dlerror());
    return handle;
}

static bool fill(struct door *door, const char *directory, char *error, size_t error_size)
{
    door->library = load(directory, LIBRARIES_DOOR, error, error_size);
    if (door->library == NULL || !resolve(door, error, error_size))
        return false;
    door->cm_library = load(directory, LIBRARIES_CM_DOOR, error, error_size);
    if (door->cm_library == NULL)
        return false;
    door->devices = door->get_device_list(&door->device_count);
    if (door->devices == NULL)
        snprintf(error, error_size, "no device list: %s", strerror(errno));
    return door->devices != NULL;
}

struct door *door_open(const char *directory, char *error, size_t error_size)
{
    struct door *door = calloc(1, sizeof(*door));
    if (door == NULL) {
        snprintf(error, error_size, "%s", strerror(ENOMEM));
        return NULL;
    }
    if (!fill(door, directory, error, error_size)) {
        door_close(door);
        return NULL;
    }
    return door;
}

void door_close(struct door *door)
{
    if (door->devices != NULL)
        door->free_device_list(door->devices);
    if (door->cm_library != NULL)
        dlclose(door->cm_library);
    if (door->library != NULL)
        dlclose(door->library);
    free(door);
}

const char *door_interface(const struct door *door)
{
    // A name that each version of the interface brought, newest first.
    static const char *const versions[][2] = {
        {"IBVERBS_1.18", "ibv_create_comp_cntr"},
        {"IBVERBS_1.17", "ibv_alloc_buf"},
        {"IBVERBS_1.16", "ibv_query_port_speed"},
        {"IBVERBS_1.15", "ibv_alloc_dmah"},
        {"IBVERBS_1.14", "ibv_query_qp_data_in_order"},
        {"IBVERBS_1.13", "ibv_is_fork_initialized"},
        {"IBVERBS_1.12", "ibv_reg_dmabuf_mr"},
        {"IBVERBS_1.11", "_ibv_query_gid_ex"},
        {"IBVERBS_1.10", "ibv_import_device"},
        {"IBVERBS_1.9", "ibv_get_device_index"},
        {"IBVERBS_1.8", "ibv_reg_mr_iova2"},
        {"IBVERBS_1.1", "ibv_open_device"},
    };
    for (size_t i = 0; i < ALB_COUNT(versions); i++) {
        if (dlvsym(door->library, versions[i][1], versions[i][0]) != NULL)
            return versions[i][0];
    }
    return "unknown";
}

const char *door_cm_interface(const struct door *door)
{
    static const char *const versions[][2] = {
        {"RDMACM_1.5", "repoll_create"},       {"RDMACM_1.4", "rdma_resolve_addrinfo"},
        {"RDMACM_1.3", "rdma_get_remote_ece"}, {"RDMACM_1.2", "rdma_establish"},
        {"RDMACM_1.0", "rdma_connect"},
    };
    for (size_t i = 0; i < ALB_COUNT(versions); i++) {
        if (dlvsym(door->cm_library, versions[i][1], versions[i][0]) != NULL)
            return versions[i][0];
    }
    return "unknown";
}

const char *door_private_interface(const struct door *door, uint32_t *position)
{
    static const char *const versions[] = {"IBVERBS_PRIVATE_34", "IBVERBS_PRIVATE_57", "IBVERBS_PRIVATE_59",
                                           "IBVERBS_PRIVATE_64", "IBVERBS_PRIVATE_65"};
    while (*position < ALB_COUNT(versions)) {
        const char *version = versions[(*position)++];
        if (dlvsym(door->library, "ibv_query_gid_type", version) != NULL)
            return version;
    }
    return NULL;
}

uint32_t door_device_count(const struct door *door)
{
    return (uint32_t)door->device_count;
}

static bool query(const struct door *door, struct ibv_context *context, struct door_device *device)
{
    struct ibv_port_attr port = {0};
    errno = door->query_device(context, &device->attributes);
    if (errno != 0)
        return false;
    errno = door->query_port(context, 1, (struct _compat_ibv_port_attr *)&port);
    if (errno != 0)
        return false;
    device->is_active = port.state == IBV_PORT_ACTIVE;
    device->active_mtu_bytes = port.active_mtu >= IBV_MTU_256 ? 128u << port.active_mtu : 0;
    device->max_message_bytes = port.max_msg_sz;
    device->gid_count = 0;
    for (int i = 0; i < port.gid_tbl_len && i < DOOR_GIDS_MAX; i++) {
        static const union ibv_gid unused;
        union ibv_gid gid;
        if (door->query_gid(context, 1, i, &gid) != 0 || memcmp(&gid, &unused, sizeof(gid)) == 0)
            break;
        device->gids[device->gid_count++] = gid;
    }
    return true;
}

bool door_device_query(const struct door *door, uint32_t index, struct door_device *device, char *error,
                       size_t error_size)
{
    struct ibv_device *entry = door->devices[index];
    *device = (struct door_device){0};
    snprintf(device->name, sizeof(device->name), "%s", door->get_device_name(entry));
    struct ibv_context *context = door->open_device(entry);
    if (context == NULL) {
        snprintf(error, error_size, "%s does not open: %s", device->name, strerror(errno));
        return false;
    }
    bool ok = query(door, context, device);
    if (!ok)
        snprintf(error, error_size, "%s does not answer: %s", device->name, strerror(errno));
    door->close_device(context);
    return ok;
}
