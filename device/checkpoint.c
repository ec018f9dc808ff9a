// SPDX-License-Identifier: BSD-2-Clause
// Replacing a journal by one that has only what still matters. The new file is complete and safe before it takes the
// old one's name (journal_name.c), so that a crash leaves one of the two.
#include "device/descriptor.h"
#include "device/journal.h"
#include "device/journal_file.h"
#include "device/journal_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (256u << 10)

// The file in the making.
struct copy {
    const struct alb_journal *from;
    int fd;
    struct alb_file_id file;
    uint64_t end;
    uint64_t sequence;
    uint8_t *buffer; // COPY_BYTES
};

static int write_bytes(struct copy *copy, const void *bytes, uint64_t length)
{
    struct iovec vector = {.iov_base = (void *)bytes, .iov_len = length};
    int error = alb_file_write(copy->fd, &vector, 1, copy->end);
    copy->end += error ? 0 : length;
    return error;
}

static int write_record(struct copy *copy, struct alb_record *record)
{
    uint8_t bytes[ALB_JOURNAL_RECORD_BYTES];
    record->sequence = ++copy->sequence;
    record->synced = record->sequence - 1;
    alb_record_encode(record, copy->from->header.keeper, bytes);
    return write_bytes(copy, bytes, sizeof(bytes));
}

static int write_mark(struct copy *copy, const struct alb_ledger_initiator *initiator)
{
    struct alb_record record = {
        .length = ALB_JOURNAL_RECORD_BYTES,
        .kind = ALB_RECORD_MARK,
        .id = {.initiator = initiator->name},
        .low_water = initiator->low_water,
        .body = alb_digest_of("", 0),
    };
    return write_record(copy, &record);
}

static int write_plain(struct copy *copy, const struct alb_ledger_entry *entry, enum alb_record_kind kind)
{
    struct alb_record record = {
        .length = ALB_JOURNAL_RECORD_BYTES,
        .kind = kind,
        .id = entry->id,
        .digest = entry->digest,
        .body = alb_digest_of("", 0),
    };
    return write_record(copy, &record);
}

// Damage to the old file since then is copied with its checksum, and is found when it is read.
static int copy_body(struct copy *copy, uint64_t at, uint64_t length)
{
    int error = 0;
    while (length > 0 && !error) {
        uint64_t part = ALB_MIN(length, (uint64_t)COPY_BYTES);
        error = alb_file_read(copy->from->fd, copy->buffer, part, at);
        if (!error)
            error = write_bytes(copy, copy->buffer, part);
        at += part;
        length -= part;
    }
    return error;
}

// *at is where it stands in the new file.
static int copy_prepared(struct copy *copy, const struct alb_ledger_entry *entry, uint64_t *at)
{
    uint8_t bytes[ALB_JOURNAL_RECORD_BYTES];
    struct alb_record record;
    int error = alb_file_read(copy->from->fd, bytes, sizeof(bytes), entry->at);
    if (!error && (alb_record_decode(bytes, copy->from->header.keeper, &record) || record.kind != ALB_RECORD_PREPARE))
        error = EIO;
    *at = copy->end;
    if (!error)
        error = write_record(copy, &record);
    if (!error)
        error = copy_body(copy, entry->at + sizeof(bytes), record.length - sizeof(bytes));
    return error;
}

static int write_entry(struct copy *copy, const struct alb_ledger_entry *entry, uint64_t *at)
{
    if (entry->is_committed && entry->is_placed)
        return write_plain(copy, entry, ALB_RECORD_OUTCOME);
    int error = copy_prepared(copy, entry, at);
    if (!error && entry->is_committed)
        error = write_plain(copy, entry, ALB_RECORD_COMMIT);
    return error;
}

// Fills places with where each entry stands now.
static int write_all(struct copy *copy, struct alb_ledger *ledger, uint64_t *places)
{
    uint8_t header[ALB_JOURNAL_HEADER_BYTES];
    uint32_t i = 0;
    alb_journal_header_encode(&copy->from->header, header);
    int error = write_bytes(copy, header, sizeof(header));
    for (uint32_t k = 0; k < alb_ledger_initiator_count(ledger) && !error; k++)
        error = write_mark(copy, alb_ledger_initiator_at(ledger, k));
    ALB_LIST_FOR_EACH (&ledger->entries, node) {
        if (error)
            break;
        error = write_entry(copy, ALB_LIST_ENTRY(node, struct alb_ledger_entry, link), &places[i++]);
    }
    // Space for the decisions that are still to come, as alb_journal_append keeps it.
    off_t decisions = (off_t)ledger->bound_count * ALB_JOURNAL_RECORD_BYTES;
    if (!error && decisions > 0 && fallocate(copy->fd, FALLOC_FL_KEEP_SIZE, (off_t)copy->end, decisions) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS)
        error = errno;
    if (!error && fsync(copy->fd) != 0)
        error = errno;
    return error;
}

static void take_over(struct alb_journal *journal, const struct copy *copy, struct alb_ledger *ledger,
                      const uint64_t *places)
{
    uint32_t i = 0;
    ALB_LIST_FOR_EACH (&ledger->entries, node)
        ALB_LIST_ENTRY(node, struct alb_ledger_entry, link)->at = places[i++];
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = copy->fd;
    journal->file = copy->file;
    journal->end = journal->synced_end = journal->checkpoint_end = copy->end;
    journal->reserved = copy->end + (uint64_t)ledger->bound_count * ALB_JOURNAL_RECORD_BYTES;
    journal->sequence = journal->synced = copy->sequence;
}

// Who may read the region's file may read what is written to it, and nobody else may. Where that cannot be said it
// stays the owner's.
static void give_mode(const struct alb_journal *journal, int fd)
{
    struct stat region, own;
    if (journal->region_fd < 0 || fstat(journal->region_fd, &region) != 0 || fstat(fd, &own) != 0)
        return;
    mode_t mode = (region.st_mode & 0777) | S_IRUSR | S_IWUSR;
    // What a group may do is of that group.
    if (own.st_gid != region.st_gid && fchown(fd, (uid_t)-1, region.st_gid) != 0)
        mode &= ~(mode_t)S_IRWXG;
    fchmod(fd, mode);
}

// What an end of a process left there is removed. What somebody has locked, as a durable region of its own, stays:
// EBUSY.
static int clear_place(const struct alb_journal *journal)
{
    const char *name = alb_file_name(journal->new_path);
    int fd = alb_descriptor_aside(openat(journal->folder_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno != ELOOP && errno != ENXIO && errno != EISDIR) // a link, a pipe or the like: not a region's
        return errno;
    int error = fd >= 0 && alb_file_lock(fd) == EBUSY ? EBUSY : 0;
    if (!error && unlinkat(journal->folder_fd, name, 0) != 0 && errno != ENOENT)
        error = errno;
    if (fd >= 0)
        close(fd);
    return error;
}

// A file that nobody else has, whoever has opened what an end of a process left there. It is locked as a region's file
// is: what comes to it by the network would be believed the next time it is read.
static int make_file(const struct alb_journal *journal, int *out)
{
    const char *name = alb_file_name(journal->new_path);
    *out = -1;
    int error = clear_place(journal);
    if (error)
        return error;
    int fd = openat(journal->folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    fd = alb_descriptor_aside(fd);
    error = fd < 0 ? errno : alb_file_lock(fd);
    if (!error)
        give_mode(journal, fd);
    if (error && fd >= 0)
        close(fd);
    *out = error ? -1 : fd;
    return error;
}

int alb_journal_checkpoint(struct alb_journal *journal, struct alb_ledger *ledger)
{
    struct copy copy = {.from = journal, .fd = -1};
    uint64_t *places = calloc(alb_ledger_count(ledger) + 1, sizeof(*places));
    copy.buffer = malloc(COPY_BYTES);
    int error = alb_journal_check_name(journal);
    if (!error)
        error = make_file(journal, &copy.fd);
    if (!error)
        error = alb_file_identify(copy.fd, &copy.file);
    if (!error && (!places || !copy.buffer))
        error = ENOMEM;
    if (!error)
        error = write_all(&copy, ledger, places);
    if (!error)
        error = alb_journal_give_name(journal, &copy.file);
    if (!error) {
        take_over(journal, &copy, ledger, places);
        // Until its name is safe, a machine that goes down may come back with the old file: nothing may rely on this
        // one.
        journal->is_broken = fsync(journal->folder_fd) != 0;
        error = journal->is_broken ? EIO : 0;
    } else if (copy.fd >= 0) {
        alb_journal_remove_new(journal, &copy.file); // while it is locked
        close(copy.fd);
    }
    free(copy.buffer);
    free(places);
    return error;
}
