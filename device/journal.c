// SPDX-License-Identifier: BSD-2-Clause
// The journal file: opened, appended to, made safe.
#include "device/journal.h"

#include "device/descriptor.h"
#include "device/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

// The disk is asked for space in pieces of this size.
#define RESERVE_BYTES (1u << 20)

// What is left of the disk for a new journal beside this one, on top of what the last one had at its beginning.
#define LEFT_BYTES (16u << 10)

static int open_folder(const char *region_path)
{
    char folder[ALB_JOURNAL_PATH_MAX];
    const char *slash = strrchr(region_path, '/');
    size_t length = slash ? (size_t)(slash - region_path) : 0;
    snprintf(folder, sizeof(folder), "%.*s", (int)length, region_path);
    if (!slash)
        snprintf(folder, sizeof(folder), ".");
    else if (length == 0)
        snprintf(folder, sizeof(folder), "/");
    return alb_descriptor_aside(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

int alb_journal_init(struct alb_journal *journal, const char *region_path)
{
    *journal = (struct alb_journal){.fd = -1, .folder_fd = -1, .region_fd = -1};
    size_t room = sizeof(journal->path);
    if ((size_t)snprintf(journal->path, room, "%s.journal", region_path) >= room ||
        (size_t)snprintf(journal->new_path, room, "%s.journal.new", region_path) >= room)
        return ENAMETOOLONG;
    if (strlen(alb_file_name(journal->new_path)) > NAME_MAX) // the longest of the three
        return ENAMETOOLONG;
    strcpy(journal->region_name, alb_file_name(region_path));
    journal->folder_fd = open_folder(region_path);
    return journal->folder_fd < 0 ? errno : 0;
}

void alb_journal_fini(struct alb_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    if (journal->folder_fd >= 0)
        close(journal->folder_fd);
    journal->fd = journal->folder_fd = journal->region_fd = -1;
}

// In a folder where others may write, another user's would have us write what he likes into the region.
static int check_ours(const struct alb_journal *journal, const struct stat *status)
{
    struct stat region;
    if (!S_ISREG(status->st_mode))
        return S_ISDIR(status->st_mode) ? EISDIR : EINVAL;
    if (status->st_uid == geteuid() || status->st_uid == 0)
        return 0;
    return fstat(journal->region_fd, &region) == 0 && region.st_uid == status->st_uid ? 0 : EPERM;
}

static int open_ours(const struct alb_journal *journal, int *fd)
{
    struct stat status;
    int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    *fd = alb_descriptor_aside(openat(journal->folder_fd, alb_file_name(journal->path), flags));
    if (*fd < 0)
        return errno;
    int error = fstat(*fd, &status) == 0 ? check_ours(journal, &status) : errno;
    if (error)
        close(*fd);
    return error;
}

int alb_journal_open(struct alb_journal *journal)
{
    int fd;
    int error = open_ours(journal, &fd);
    if (error)
        return error;
    // As a durable region of its own it would go on without its name, and what it commits be lost.
    error = alb_file_lock(fd);
    if (!error)
        error = alb_file_identify(fd, &journal->file);
    // Who had it before the lock has written it anew.
    if (!error && alb_file_check_name(journal->folder_fd, alb_file_name(journal->path), &journal->file) != 0)
        error = EBUSY;
    if (error)
        close(fd);
    else
        journal->fd = fd;
    return error;
}

int alb_journal_read(const struct alb_journal *journal, uint8_t **image, uint64_t *image_bytes)
{
    struct stat status;
    if (fstat(journal->fd, &status) != 0)
        return errno;
    *image_bytes = (uint64_t)status.st_size;
    *image = malloc(*image_bytes + 1);
    int error = *image ? alb_file_read(journal->fd, *image, *image_bytes, 0) : ENOMEM;
    if (error)
        free(*image);
    return error;
}

int alb_journal_read_header(const struct alb_journal *journal, struct alb_journal_header *header)
{
    uint8_t image[ALB_JOURNAL_HEADER_BYTES];
    int error = alb_file_read(journal->fd, image, sizeof(image), 0);
    return error ? error : alb_journal_header_decode(image, header) ? EBADMSG : 0;
}

int alb_journal_resume(struct alb_journal *journal, uint64_t end, uint64_t sequence)
{
    if (ftruncate(journal->fd, (off_t)end) != 0 || fsync(journal->fd) != 0)
        return errno;
    journal->end = journal->reserved = journal->synced_end = end;
    journal->sequence = journal->synced = sequence;
    return 0;
}

// Bytes of the disk that may be taken. Where the last of them are taken the journal cannot be written anew, which would
// free what it has grown by.
static uint64_t room_of(const struct alb_journal *journal)
{
    struct statvfs status;
    uint64_t left = journal->checkpoint_end + LEFT_BYTES;
    if (fstatvfs(journal->fd, &status) != 0 || status.f_blocks == 0)
        return UINT64_MAX; // not known
    uint64_t room = (geteuid() == 0 ? status.f_bfree : status.f_bavail) * status.f_frsize;
    return room > left ? room - left : 0;
}

static int set_aside(struct alb_journal *journal, uint64_t end)
{
    off_t from = (off_t)journal->end, length = (off_t)(end - journal->end);
    if (fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, from, length) != 0)
        return errno;
    journal->reserved = end;
    return 0;
}

// Sees to it that so many bytes behind the end can be written. File systems that cannot promise that are not held to
// it.
static int reserve(struct alb_journal *journal, uint64_t bytes)
{
    uint64_t wanted = journal->end + bytes;
    if (wanted <= journal->reserved)
        return 0;
    uint64_t generous = (wanted + RESERVE_BYTES - 1) / RESERVE_BYTES * RESERVE_BYTES, room = room_of(journal);
    if (wanted - journal->reserved > room)
        return ENOSPC;
    bool is_tight = generous - journal->reserved > room;
    int error = set_aside(journal, is_tight ? wanted : generous);
    if (error == EOPNOTSUPP || error == ENOSYS)
        error = 0;
    return error && !is_tight ? set_aside(journal, wanted) : error;
}

// The vectors of a record: its own bytes, the tables of its parts and conditions, the parts' bytes, and zeros up to a
// multiple of 8.
struct vectors {
    uint8_t header[ALB_JOURNAL_RECORD_BYTES];
    uint8_t tables[ALB_TXN_WRITES_MAX * ALB_JOURNAL_PART_BYTES + ALB_TXN_COMPARES_MAX * ALB_JOURNAL_CONDITION_BYTES];
    struct iovec list[3 + ALB_TXN_WRITES_MAX];
    uint32_t count;
};

static void add_vector(struct vectors *vectors, const void *bytes, uint64_t length, struct alb_digest_state *body)
{
    vectors->list[vectors->count++] = (struct iovec){.iov_base = (void *)bytes, .iov_len = length};
    if (body && length > 0)
        alb_digest_add(body, bytes, length);
}

static void collect(struct vectors *vectors, struct alb_record *record, const struct alb_journal_request *request)
{
    static const uint8_t zeros[8];
    struct alb_digest_state body;
    uint64_t payload = 0;
    vectors->count = 0;
    alb_digest_begin(&body);
    add_vector(vectors, vectors->header, sizeof(vectors->header), NULL);
    for (uint32_t i = 0; i < record->part_count; i++) {
        const struct alb_txn_part *from = &request->parts[i];
        const struct alb_record_part part = {
            .offset = from->offset, .length = from->length, .va = from->va, .rkey = from->rkey};
        alb_record_part_encode(&part, vectors->tables + (size_t)i * ALB_JOURNAL_PART_BYTES);
    }
    uint8_t *conditions = vectors->tables + alb_record_tables_bytes(record->part_count, 0);
    for (uint32_t i = 0; i < record->condition_count; i++)
        alb_record_condition_encode(&request->conditions[i], conditions + (size_t)i * ALB_JOURNAL_CONDITION_BYTES);
    add_vector(vectors, vectors->tables, alb_record_tables_bytes(record->part_count, record->condition_count), &body);
    for (uint32_t i = 0; i < record->part_count; i++) {
        add_vector(vectors, request->parts[i].bytes, request->parts[i].length, &body);
        payload += request->parts[i].length;
    }
    add_vector(vectors, zeros, (8 - payload % 8) % 8, &body);
    record->length = alb_record_bytes(record->part_count, record->condition_count, payload);
    record->body = alb_digest_end(&body);
}

static bool cut(struct alb_journal *journal, uint64_t end)
{
    journal->end = journal->reserved = end; // it takes away what was reserved, too
    return ftruncate(journal->fd, (off_t)end) == 0;
}

int alb_journal_append(struct alb_journal *journal, struct alb_record *record,
                       const struct alb_journal_request *request, uint32_t bound_count, uint64_t *at)
{
    struct vectors vectors;
    if (journal->is_broken)
        return EIO;
    if (record->kind == ALB_RECORD_PREPARE) {
        record->part_count = request->part_count;
        record->condition_count = request->condition_count;
        record->imm_be = request->imm_be;
        record->notifies = request->notifies;
        record->is_solicited = request->is_solicited;
    }
    collect(&vectors, record, request);
    record->sequence = journal->sequence + 1;
    record->synced = journal->synced;
    alb_record_encode(record, journal->header.keeper, vectors.header);
    int error = 0;
    if (record->kind == ALB_RECORD_PREPARE)
        error = reserve(journal, record->length + (uint64_t)(bound_count + 1) * ALB_JOURNAL_RECORD_BYTES);
    if (error)
        return error;
    error = alb_file_write(journal->fd, vectors.list, vectors.count, journal->end);
    if (error) {
        // Less than a record cannot be taken for one; but nothing may stand behind it.
        journal->is_broken = !cut(journal, journal->end);
        return error;
    }
    *at = journal->end;
    journal->end += record->length;
    journal->reserved = ALB_MAX(journal->reserved, journal->end);
    journal->sequence++;
    return 0;
}

int alb_journal_sync(struct alb_journal *journal)
{
    if (journal->is_broken)
        return EIO;
    if (journal->header.page_cache) // nothing is made safe, and no record behind may say so
        return 0;
    int error = journal->sequence == journal->synced || fdatasync(journal->fd) == 0 ? 0 : errno;
    if (error) {
        // Once this fails a second attempt may succeed without having written anything: only what is cut off for sure
        // is known.
        journal->is_broken = !cut(journal, journal->synced_end) || fsync(journal->fd) != 0;
        journal->sequence = journal->synced;
        return error;
    }
    journal->synced = journal->sequence;
    journal->synced_end = journal->end;
    return 0;
}
