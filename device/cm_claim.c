// SPDX-License-Identifier: BSD-2-Clause
// Claims of services. The lock is one of the open file (F_OFD_SETLK): testing it takes no lock, so a lookup never
// blocks a claim. A file that is not locked means nothing: the next claim uses it again, or it is swept. Against that a
// claim takes the lock that all files of the folder have (flock), which is not tested by taking it when it is
// another's.
#include "device/cm_claim.h"

#include "device/cancel.h"
#include "device/descriptor.h"
#include "device/directory_file.h"
#include "device/file_limit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_MAX_BYTES = ALB_DIRECTORY_NAME_MAX - 1,
    ATTEMPTS = 1000, // each of which a sweeper may come between, and does where processors are few
};

#define MAGIC 0x416c6265646f436cull // "AlbedoCl"

struct content {
    uint64_t magic;
    uint8_t slot;
    uint8_t is_one_family;
    uint8_t is_listening;
    uint8_t reserved[5];
};

static const struct alb_addr any;
static const struct alb_addr any_ipv4 = {{[10] = 0xff, [11] = 0xff}};

// What the process holds.
static struct {
    pthread_mutex_t mutex;
    struct alb_list claims;
    bool has_hooks;
    bool has_complained;
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER, .claims = {&held.claims, &held.claims}};

static void before_fork(void)
{
    pthread_mutex_lock(&held.mutex);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&held.mutex);
}

// A lock of an open file lives as long as any of its descriptors: the child keeps none.
static void after_fork_in_child(void)
{
    struct alb_list *node;
    while ((node = alb_list_pop(&held.claims))) {
        struct alb_cm_claim *claim = ALB_LIST_ENTRY(node, struct alb_cm_claim, link);
        close(claim->fd);
        claim->fd = -1;
    }
    pthread_mutex_unlock(&held.mutex);
}

// Names begin with a dot: readers of the directory's boards pass them over.
static int write_prefix(char name[NAME_MAX_BYTES], uint8_t gsi_index, uint64_t service_id)
{
    return snprintf(name, NAME_MAX_BYTES, ".cm-%llu-%u-%016llx-", (unsigned long long)alb_board_net_namespace(),
                    gsi_index, (unsigned long long)service_id);
}

static void write_name(char name[NAME_MAX_BYTES], uint8_t gsi_index, uint64_t service_id, const struct alb_addr *addr)
{
    int at = write_prefix(name, gsi_index, service_id);
    for (unsigned i = 0; i < sizeof(addr->bytes); i++)
        at += snprintf(name + at, NAME_MAX_BYTES - (size_t)at, "%02x", addr->bytes[i]);
}

// The address in a name behind its prefix. False if it is none.
static bool read_name(const char *text, struct alb_addr *addr)
{
    if (strlen(text) != 2 * sizeof(addr->bytes))
        return false;
    for (unsigned i = 0; i < sizeof(addr->bytes); i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            return false;
        addr->bytes[i] = (uint8_t)byte;
    }
    return true;
}

static int read_locked(int fd, struct content *content, bool *is_living)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
        return errno;
    ssize_t got = lock.l_type == F_UNLCK ? 0 : pread(fd, content, sizeof(*content), 0);
    *is_living = got == (ssize_t)sizeof(*content) && content->magic == MAGIC;
    return got < 0 ? errno : 0;
}

// What a living claim holds. An error says that none can be told from a living one, as without a descriptor to look
// with; a file that is gone is no error.
static int read_claim(int folder, const char *name, struct content *content, bool *is_living)
{
    *is_living = false;
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    int error = read_locked(fd, content, is_living);
    close(fd);
    return error;
}

// What is looked for: the files that a service's claim may have, the one for the address itself first.
struct lookup {
    bool is_ipv4;
    char names[3][NAME_MAX_BYTES];
};

static void write_names(struct lookup *lookup, uint8_t gsi_index, uint64_t service_id, const struct alb_addr *local)
{
    lookup->is_ipv4 = alb_addr_is_ipv4(local);
    const struct alb_addr *const tries[] = {local, lookup->is_ipv4 ? &any_ipv4 : &any, &any};
    for (unsigned i = 0; i < ALB_COUNT(tries); i++)
        write_name(lookup->names[i], gsi_index, service_id, tries[i]);
}

static bool is_listener(const struct lookup *lookup, unsigned i, const struct content *content)
{
    bool is_of_ipv6 = content->is_one_family && i == ALB_COUNT(lookup->names) - 1;
    return content->is_listening && !(lookup->is_ipv4 && is_of_ipv6);
}

static bool has_run_out(int error)
{
    return error == EMFILE || error == ENFILE;
}

static int find(const struct lookup *lookup, uint8_t *slot)
{
    char path[ALB_DIRECTORY_FOLDER_MAX];
    int folder = alb_directory_open_folder((uint32_t)geteuid(), path, false);
    if (folder < 0)
        return has_run_out(errno) ? errno : ENOENT;
    int error = ENOENT;
    for (unsigned i = 0; i < ALB_COUNT(lookup->names) && error == ENOENT; i++) {
        struct content content;
        bool is_living;
        int why = read_claim(folder, lookup->names[i], &content, &is_living);
        if (has_run_out(why))
            error = why;
        if (!why && is_living && is_listener(lookup, i, &content)) {
            *slot = content.slot;
            error = 0;
        }
    }
    close(folder);
    return error;
}

// Of the claims that the process itself holds, whose files are open. A thread that forks may have the mutex, and wait
// for one that waits for the driver: who asks will ask again.
static bool find_held(const struct lookup *lookup, uint8_t *slot)
{
    bool is_found = false;
    if (pthread_mutex_trylock(&held.mutex) != 0)
        return false;
    for (unsigned i = 0; i < ALB_COUNT(lookup->names) && !is_found; i++) {
        ALB_LIST_FOR_EACH (&held.claims, node) {
            const struct alb_cm_claim *claim = ALB_LIST_ENTRY(node, struct alb_cm_claim, link);
            struct content content;
            if (strcmp(strrchr(claim->path, '/') + 1, lookup->names[i]) != 0 ||
                pread(claim->fd, &content, sizeof(content), 0) != (ssize_t)sizeof(content) ||
                !is_listener(lookup, i, &content))
                continue;
            *slot = content.slot;
            is_found = true;
        }
    }
    pthread_mutex_unlock(&held.mutex);
    return is_found;
}

// Called by the driver, perhaps a program's thread that holds the token.
int alb_cm_claim_find(uint8_t gsi_index, uint64_t service_id, const struct alb_addr *local, uint8_t *slot)
{
    struct lookup lookup;
    int cancel = alb_cancel_off();
    write_names(&lookup, gsi_index, service_id, local);
    int error = find(&lookup, slot);
    if (has_run_out(error) && find_held(&lookup, slot))
        error = 0;
    alb_cancel_back(cancel);
    return error;
}

// ---- claiming -------------------------------------------------------------------------------------------------------

// True if an address that the one stands for is also one that the other stands for; which differ.
static bool overlaps(const struct alb_addr *a, bool a_is_one_family, const struct alb_addr *b, bool b_is_one_family)
{
    if (alb_addr_equals(a, &any) || alb_addr_equals(b, &any)) {
        bool other_is_ipv4 = alb_addr_is_ipv4(alb_addr_equals(a, &any) ? b : a);
        return !(other_is_ipv4 && (alb_addr_equals(a, &any) ? a_is_one_family : b_is_one_family));
    }
    return (alb_addr_equals(a, &any_ipv4) || alb_addr_equals(b, &any_ipv4)) && alb_addr_is_ipv4(a) &&
           alb_addr_is_ipv4(b);
}

// EADDRINUSE: the file is a claim of another address that stands for this one too.
static int look_at(int folder, const char *name, const char *prefix, const struct alb_cm_place *place)
{
    struct alb_addr addr;
    struct content content;
    bool is_living;
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0 || !read_name(name + length, &addr) || alb_addr_equals(&addr, &place->addr))
        return 0;
    int error = read_claim(folder, name, &content, &is_living);
    if (!error && is_living && overlaps(&addr, content.is_one_family, &place->addr, place->is_one_family))
        return EADDRINUSE;
    return error;
}

// 0: no claim of another address stands for this one too. EADDRINUSE, or why that cannot be told.
static int look_around(int folder, const struct alb_cm_place *place)
{
    char prefix[NAME_MAX_BYTES];
    DIR *dir = alb_directory_open_names(folder);
    if (!dir)
        return errno;
    struct dirent *listed;
    int error;
    write_prefix(prefix, place->gsi_index, place->service_id);
    do {
        errno = 0;
        listed = readdir(dir);
        error = listed ? look_at(folder, listed->d_name, prefix, place) : errno;
    } while (listed && !error);
    closedir(dir);
    return error;
}

static int lock(int folder, const char *name, int fd)
{
    struct flock claim = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &claim) != 0)
        return errno == EAGAIN || errno == EACCES ? EADDRINUSE : errno;
    while (flock(fd, LOCK_EX) != 0) { // only one who sweeps has it now, for a moment
        if (errno == EINTR)
            continue;
        int error = errno;
        unlinkat(folder, name, 0); // where there is no such lock, nobody could tell that it is stale
        return error;
    }
    return 0;
}

// Creates and locks a file that was not removed in between. Returns -1 with errno.
static int create_locked(int folder, const char *name)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct stat status;
        int fd = alb_descriptor_aside(alb_directory_open_file(folder, name));
        if (fd < 0)
            return -1;
        int error = lock(folder, name, fd);
        if (!error && fstat(fd, &status) == 0 && status.st_nlink > 0)
            return fd;
        close(fd);
        if (error) {
            errno = error;
            return -1;
        }
    }
    errno = EADDRINUSE;
    return -1;
}

static int write_content(int fd, const struct alb_cm_place *place)
{
    const struct content content = {.magic = MAGIC, .slot = place->slot, .is_one_family = place->is_one_family};
    if (!alb_file_limit_allows(fd, sizeof(content)))
        return errno;
    ssize_t wrote = pwrite(fd, &content, sizeof(content), 0);
    return wrote == (ssize_t)sizeof(content) ? 0 : wrote < 0 ? errno : ENOSPC;
}

static int claim_file(struct alb_cm_claim *claim, const struct alb_cm_place *place)
{
    char folder_path[ALB_DIRECTORY_FOLDER_MAX], name[NAME_MAX_BYTES];
    int folder = alb_directory_open_folder((uint32_t)geteuid(), folder_path, true);
    if (folder < 0)
        return errno;
    write_name(name, place->gsi_index, place->service_id, &place->addr);
    int error = asprintf(&claim->path, "%s/%s", folder_path, name) < 0 ? ENOMEM : 0;
    if (!error) {
        claim->fd = create_locked(folder, name);
        error = claim->fd < 0 ? errno : 0;
    } else {
        claim->path = NULL;
    }
    // Locked first and looked around then: of two that claim at once what overlaps, at the most one is left.
    if (!error)
        error = write_content(claim->fd, place);
    if (!error)
        error = look_around(folder, place);
    if (!error)
        alb_directory_sweep_some(folder);
    close(folder);
    return error;
}

// With the mutex held.
static void give_up(struct alb_cm_claim *claim)
{
    if (!claim->path)
        return;
    if (claim->fd >= 0) {
        alb_list_remove(&claim->link);
        unlink(claim->path);
        close(claim->fd);
        claim->fd = -1;
    }
    free(claim->path);
    claim->path = NULL;
}

static int claim_or_nothing(struct alb_cm_claim *claim, const struct alb_cm_place *place)
{
    alb_list_init(&claim->link);
    int error = claim_file(claim, place);
    if (error)
        give_up(claim);
    return error;
}

// Once, with the mutex held: rdma_cm gives its caller a number, which does not tell what it is about.
static void complain(int error)
{
    if (!held.has_complained)
        alb_directory_complain(error, "rdma_cm can neither bind nor listen");
    held.has_complained = true;
}

int alb_cm_claim(struct alb_cm_claim *claim, const struct alb_cm_place *place)
{
    *claim = (struct alb_cm_claim){.fd = -1};
    int error = 0, cancel = alb_cancel_off();
    pthread_mutex_lock(&held.mutex);
    if (!held.has_hooks)
        error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    held.has_hooks = !error;
    if (!error)
        error = claim_or_nothing(claim, place);
    if (alb_directory_make_room(error))
        error = claim_or_nothing(claim, place);
    if (error && error != EADDRINUSE)
        complain(error);
    if (!error)
        alb_list_push_back(&held.claims, &claim->link);
    pthread_mutex_unlock(&held.mutex);
    alb_cancel_back(cancel);
    return error;
}

int alb_cm_claim_listen(struct alb_cm_claim *claim)
{
    const uint8_t yes = 1;
    int cancel = alb_cancel_off();
    ssize_t wrote = pwrite(claim->fd, &yes, sizeof(yes), offsetof(struct content, is_listening));
    int error = wrote == (ssize_t)sizeof(yes) ? 0 : wrote < 0 ? errno : ENOSPC;
    alb_cancel_back(cancel);
    return error;
}

// Without a claim the mutex is not taken: such ids may end with any lock held.
void alb_cm_claim_end(struct alb_cm_claim *claim)
{
    if (claim->fd < 0)
        return;
    int cancel = alb_cancel_off();
    pthread_mutex_lock(&held.mutex);
    give_up(claim);
    pthread_mutex_unlock(&held.mutex);
    alb_cancel_back(cancel);
}
