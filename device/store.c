// SPDX-License-Identifier: BSD-2-Clause
// A durable region's file: opened, locked, mapped, recovered, closed.
#include "device/store.h"

#include "device/descriptor.h"
#include "device/journal_file.h"
#include "device/shown_path.h"
#include "device/store_recover.h"
#include "device/write_signals.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

// It has its name still: a process that had it before may just have removed it, or renamed it, and its journal would
// then be of another file.
static bool is_in_place(const struct alb_store *store)
{
    struct alb_file_id file;
    return alb_file_identify(store->fd, &file) == 0 &&
           alb_file_check_name(store->journal.folder_fd, alb_file_name(store->path), &file) == 0;
}

static void complain(const char *path, int error)
{
    char text[ALB_SHOWN_PATH_MAX];
    const char *what = error == EBUSY
                           ? "is open already as a durable region or as the journal of one, by this or another process"
                           : strerror(error);
    alb_log(ALB_LOG_ERROR, "%s: %s", alb_shown_path(path, text), what);
}

// One opener at a time.
static int lock_file(const struct alb_store *store)
{
    int error = alb_file_lock(store->fd);
    if (error && error != EBUSY)
        return error;
    if (!error && is_in_place(store))
        return 0;
    return EBUSY;
}

static int size_file(struct alb_store *store, uint64_t length)
{
    struct stat status;
    char text[ALB_SHOWN_PATH_MAX];
    if (fstat(store->fd, &status) != 0)
        return errno;
    uint64_t has = (uint64_t)status.st_size;
    if (length == 0)
        length = has;
    if (!S_ISREG(status.st_mode) || length == 0 || has > length) {
        alb_log(ALB_LOG_ERROR, "%s: cannot be a durable region of %llu bytes: %s", alb_shown_path(store->path, text),
                (unsigned long long)length,
                !S_ISREG(status.st_mode) ? "it is not a file"
                : has > length           ? "the file is longer"
                                         : "say its length, it is empty");
        return EINVAL;
    }
    store->found_bytes = has;
    store->length = length;
    return 0;
}

// Every block is there from the beginning: a full disk would otherwise raise SIGBUS at a write to the mapping. Some
// file systems begin anew after a signal.
static int make_room(struct alb_store *store)
{
    int error;
    do
        error = posix_fallocate(store->fd, 0, (off_t)store->length);
    while (error == EINTR);
    return error;
}

static int map_file(struct alb_store *store)
{
    void *address = mmap(NULL, store->length, PROT_READ | PROT_WRITE, MAP_SHARED, store->fd, 0);
    if (address == MAP_FAILED)
        return errno;
    store->address = address;
    return 0;
}

// The journal stands beside what a symbolic link leads to: the file would otherwise have another one by each name. What
// it leads to may not be there yet.
static int follow_link(struct alb_store *store)
{
    struct stat status;
    char found[PATH_MAX];
    if (lstat(store->path, &status) != 0)
        return errno == ENOENT ? 0 : errno;
    if (!S_ISLNK(status.st_mode))
        return 0;
    if (stat(store->path, &status) != 0 && errno == ENOENT) {
        int fd = open(store->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
            return errno;
        close(fd);
    }
    if (!realpath(store->path, found))
        return errno;
    snprintf(store->path, sizeof(store->path), "%s", found);
    return 0;
}

// In the journal's folder: the two stay together.
static int open_in_folder(struct alb_store *store, bool *is_new)
{
    const char *name = alb_file_name(store->path);
    int folder = store->journal.folder_fd, flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    store->fd = alb_descriptor_aside(openat(folder, name, flags | O_EXCL, 0666));
    *is_new = store->fd >= 0;
    if (!*is_new && errno == EEXIST)
        store->fd = alb_descriptor_aside(openat(folder, name, flags, 0666));
    return store->fd < 0 ? errno : 0;
}

static int check_only_name(const struct alb_store *store)
{
    struct stat status;
    if (fstat(store->fd, &status) != 0)
        return errno;
    return status.st_nlink > 1 ? EMLINK : 0;
}

static int open_file(struct alb_store *store, const struct alb_store_init *init)
{
    bool is_new = false;
    int error = init->only_name ? 0 : follow_link(store);
    if (!error)
        error = alb_journal_init(&store->journal, store->path);
    if (!error)
        error = open_in_folder(store, &is_new);
    store->journal.region_fd = store->fd;
    if (!error)
        error = lock_file(store);
    store->is_new = is_new && !error;
    if (!error)
        error = init->only_name ? check_only_name(store) : 0;
    if (!error)
        error = size_file(store, init->length);
    if (error && error != EINVAL)
        complain(store->path, error);
    return error;
}

static int lengthen(struct alb_store *store)
{
    int error = make_room(store);
    if (!error)
        error = map_file(store);
    if (error)
        complain(store->path, error);
    return error;
}

static int open_journal(struct alb_store *store)
{
    int error = alb_store_open_journal(store);
    if (error && error != EBADMSG)
        complain(store->journal.path, error);
    return error;
}

static int recover(struct alb_store *store, bool page_cache)
{
    int error = alb_store_recover(store, page_cache);
    const struct alb_journal *journal = &store->journal;
    // The journal itself is ours: it is the new one's place that somebody has.
    if (error && error != EBADMSG)
        complain(error == EBUSY ? journal->new_path : journal->path, error);
    return error;
}

// While it is locked. A file that was lost must not be found as one of zeros next time, which its journal would fit.
static void give_back(const struct alb_store *store)
{
    if (store->is_new && is_in_place(store))
        unlinkat(store->journal.folder_fd, alb_file_name(store->path), 0);
    else if (!store->is_new && store->found_bytes < store->length &&
             ftruncate(store->fd, (off_t)store->found_bytes) != 0)
        complain(store->path, errno);
}

// While SIGXFSZ is held back.
static int open_files(struct alb_store *store, const struct alb_store_init *init)
{
    int error = alb_ledger_init(&store->ledger);
    if (!error && (size_t)snprintf(store->path, sizeof(store->path), "%s", init->path) >= sizeof(store->path))
        error = ENAMETOOLONG;
    if (!error)
        error = open_file(store, init);
    if (!error)
        error = open_journal(store);
    if (!error)
        error = lengthen(store);
    if (!error)
        error = recover(store, init->page_cache);
    if (error && !store->journal.is_broken) // else there is a journal of the file as it is now
        give_back(store);
    return error;
}

int alb_store_open(struct alb_store *store, const struct alb_store_init *init)
{
    sigset_t before;
    *store = (struct alb_store){.fd = -1};
    store->journal.fd = store->journal.folder_fd = -1;
    store->checkpoint_bytes = init->checkpoint_bytes ? init->checkpoint_bytes : ALB_STORE_CHECKPOINT_BYTES;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->wanted, NULL);
    alb_list_init(&store->requests);
    alb_list_init(&store->spares);
    alb_list_init(&store->ledger.entries);
    alb_write_signals_hold(&before);
    int error = open_files(store, init);
    alb_write_signals_release(&before);
    if (!error)
        error = alb_store_reserve(store, store->ledger.bound_count);
    if (error)
        alb_store_close(store, true);
    return error;
}

// Once this fails a second attempt may succeed without having written anything, and the pages may be gone.
int alb_store_write_back(struct alb_store *store)
{
    char text[ALB_SHOWN_PATH_MAX], journal[ALB_SHOWN_PATH_MAX];
    if (store->keeps_journal)
        return EIO;
    if (msync(store->address, store->length, MS_SYNC) == 0)
        return 0;
    int error = errno;
    store->keeps_journal = true;
    alb_log(
        ALB_LOG_ERROR,
        "%s: could not be written back: %s; %s is kept, and grows, until the file is registered again, which places "
        "everything once more",
        alb_shown_path(store->path, text), strerror(error), alb_shown_path(store->journal.path, journal));
    return error;
}

void alb_store_close(struct alb_store *store, bool leave_journal)
{
    sigset_t before;
    alb_write_signals_hold(&before);
    if (!leave_journal && alb_store_write_back(store) == 0)
        alb_journal_checkpoint(&store->journal, &store->ledger);
    alb_write_signals_release(&before);
    alb_store_unreserve(store);
    alb_journal_fini(&store->journal);
    alb_ledger_fini(&store->ledger);
    if (store->address)
        munmap(store->address, store->length);
    if (store->fd >= 0)
        close(store->fd);
    pthread_cond_destroy(&store->wanted);
    pthread_mutex_destroy(&store->mutex);
    store->address = NULL;
    store->fd = -1;
}

// Cuts the bytes behind the record into the parts that its table says. memory: the table, the parts, the payload.
static void read_parts(const uint8_t *body, const struct alb_record *record, struct alb_region *region,
                       struct alb_txn_part *parts)
{
    const uint8_t *payload = body + alb_record_tables_bytes(record->part_count, record->condition_count);
    for (uint32_t i = 0; i < record->part_count; i++) {
        struct alb_record_part part;
        alb_record_part_decode(body + (size_t)i * ALB_JOURNAL_PART_BYTES, &part);
        parts[i] = (struct alb_txn_part){
            .region = region,
            .offset = part.offset,
            .length = part.length,
            .va = part.va,
            .rkey = part.rkey,
            .bytes = payload,
        };
        payload += part.length;
    }
}

static void read_conditions(const uint8_t *body, const struct alb_record *record, struct alb_region *region,
                            struct alb_txn_condition *conditions)
{
    const uint8_t *table = body + alb_record_tables_bytes(record->part_count, 0);
    for (uint32_t i = 0; i < record->condition_count; i++) {
        alb_record_condition_decode(table + (size_t)i * ALB_JOURNAL_CONDITION_BYTES, &conditions[i]);
        conditions[i].region = region;
    }
}

int alb_store_recall(const struct alb_store *store, const struct alb_ledger_entry *entry, struct alb_region *region,
                     struct alb_journal_request *request, void **memory)
{
    uint8_t bytes[ALB_JOURNAL_RECORD_BYTES];
    struct alb_record record;
    *request = (struct alb_journal_request){
        .kind = entry->is_committed ? ALB_JOURNAL_COMMIT : ALB_JOURNAL_PREPARE,
        .id = entry->id,
        .digest = entry->digest,
        .lease_ns = entry->lease_ns,
    };
    *memory = NULL;
    if (entry->is_committed)
        return 0;
    int error = alb_file_read(store->journal.fd, bytes, sizeof(bytes), entry->at);
    if (!error && alb_record_decode(bytes, store->journal.header.keeper, &record))
        error = EIO;
    if (error)
        return error;
    uint64_t body_bytes = record.length - sizeof(bytes);
    size_t parts_bytes = record.part_count * sizeof(struct alb_txn_part);
    *memory = malloc(parts_bytes + body_bytes + 1);
    if (!*memory)
        return ENOMEM;
    uint8_t *body = (uint8_t *)*memory + parts_bytes;
    error = alb_file_read(store->journal.fd, body, body_bytes, entry->at + sizeof(bytes));
    if (error) {
        free(*memory);
        return error;
    }
    request->low_water = record.low_water;
    request->part_count = record.part_count;
    request->parts = *memory;
    request->condition_count = record.condition_count;
    request->imm_be = record.imm_be;
    request->notifies = record.notifies;
    request->is_solicited = record.is_solicited;
    read_parts(body, &record, region, *memory);
    read_conditions(body, &record, region, request->conditions);
    return 0;
}
