// SPDX-License-Identifier: BSD-2-Clause
#include "tools/shim_gid.h"

#include "base/types.h"
#include "device/device.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLASS_FOLDER "/sys/class/infiniband/"
#define ATTRIBUTES   "/ports/1/gid_attrs/"
#define GID_TYPE     "RoCE v2"

enum kind { TYPES, NDEVS };

static const char *const devices[] = {"roce0", "albedo0"};
static const char *const kinds[] = {[TYPES] = "types/", [NDEVS] = "ndevs/"};

struct gid_file {
    const char *device;
    enum kind kind;
    uint32_t index;
};

// True if text begins with word, which *text is behind then.
static bool skip(const char **text, const char *word)
{
    size_t length = strlen(word);
    bool is_there = strncmp(*text, word, length) == 0;
    *text += is_there ? length : 0;
    return is_there;
}

// True if one of the words is next.
static bool skip_any(const char **text, const char *const *words, size_t count, size_t *found)
{
    for (*found = 0; *found < count; (*found)++)
        if (skip(text, words[*found]))
            return true;
    return false;
}

static bool parse(const char *path, struct gid_file *file)
{
    size_t device, kind;
    char *end;
    if (path == NULL || !skip(&path, CLASS_FOLDER) || !skip_any(&path, devices, ALB_COUNT(devices), &device) ||
        !skip(&path, ATTRIBUTES) || !skip_any(&path, kinds, ALB_COUNT(kinds), &kind) || !isdigit((unsigned char)*path))
        return false;
    unsigned long index = strtoul(path, &end, 10);
    *file = (struct gid_file){.device = devices[device], .kind = (enum kind)kind, .index = (uint32_t)index};
    return index < ALB_DEVICE_ADDRESSES_MAX && *end == '\0';
}

bool alb_shim_is_gid_file(const char *path, int flags)
{
    struct gid_file file;
    return (flags & O_ACCMODE) == O_RDONLY && parse(path, &file);
}

// The calls of the verbs library, which is preloaded before this one and knows what the table holds.
struct verbs {
    __typeof__(ibv_get_device_list) *get_device_list;
    __typeof__(ibv_free_device_list) *free_device_list;
    __typeof__(ibv_get_device_name) *get_device_name;
    __typeof__(ibv_open_device) *open_device;
    __typeof__(ibv_close_device) *close_device;
    __typeof__(_ibv_query_gid_ex) *query_gid_ex;
};

static bool find(const char *name, void *call)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(call, &found, sizeof(found));
    return found != NULL;
}

static bool find_verbs(struct verbs *verbs)
{
    return find("ibv_get_device_list", &verbs->get_device_list) &&
           find("ibv_free_device_list", &verbs->free_device_list) &&
           find("ibv_get_device_name", &verbs->get_device_name) && find("ibv_open_device", &verbs->open_device) &&
           find("ibv_close_device", &verbs->close_device) && find("_ibv_query_gid_ex", &verbs->query_gid_ex);
}

static struct ibv_context *open_device(const struct verbs *verbs, const char *name)
{
    struct ibv_context *context = NULL;
    struct ibv_device **list = verbs->get_device_list(NULL);
    for (struct ibv_device **device = list; list != NULL && *device != NULL && context == NULL; device++)
        if (strcmp(verbs->get_device_name(*device), name) == 0)
            context = verbs->open_device(*device);
    if (list != NULL)
        verbs->free_device_list(list);
    return context;
}

// The interface that has the GID's address. A device that the program has not opened is opened for as long as that
// takes. False and an errno, the kernel's where the entry is empty.
static bool find_interface(const struct gid_file *file, char name[IF_NAMESIZE])
{
    struct verbs verbs;
    struct ibv_gid_entry entry;
    struct ibv_context *context = find_verbs(&verbs) ? open_device(&verbs, file->device) : NULL;
    int error = ENOENT;
    if (context != NULL) {
        error = verbs.query_gid_ex(context, 1, file->index, &entry, 0, sizeof(entry)) ? EINVAL : 0;
        verbs.close_device(context);
    }
    if (error != 0) {
        errno = error;
        return false;
    }
    return if_indextoname(entry.ndev_ifindex, name) != NULL;
}

static int open_text(const char *text, int flags)
{
    int fd = memfd_create("gid_attr", (flags & O_CLOEXEC) ? MFD_CLOEXEC : 0);
    if (fd >= 0 && pwrite(fd, text, strlen(text), 0) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int alb_shim_open_gid_file(const char *path, int flags)
{
    struct gid_file file;
    char name[IF_NAMESIZE] = GID_TYPE, line[IF_NAMESIZE + 1];
    if (!parse(path, &file)) {
        errno = ENOENT;
        return -1;
    }
    if (file.kind == NDEVS && !find_interface(&file, name))
        return -1;
    snprintf(line, sizeof(line), "%s\n", name);
    return open_text(line, flags);
}
