// SPDX-License-Identifier: BSD-2-Clause
// Receiving a file.
#include "tools/files_part.h"

#include "tools/files_hold.h"
#include "tools/files_talk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_SUFFIX        ".albedo-part"
#define JOURNAL_SUFFIX     PART_SUFFIX ".journal"
#define NEW_JOURNAL_SUFFIX JOURNAL_SUFFIX ".new" // that takes the journal's place (device/journal.c)
#define NAME_BYTES_MAX     ((int)(NAME_MAX - (sizeof(NEW_JOURNAL_SUFFIX) - 1)))

#define PAGE        4096u
#define ENTRY_BYTES 16u

// Stands between data and table, and says what both are of.
struct head {
    char magic[8];
    uint64_t size;
    uint64_t chunk_bytes;
    uint64_t reserved[5];
};

static const char magic[8] = {'a', 'l', 'b', 'p', 'a', 'r', 't', '1'};

static uint64_t data_bytes(const struct files_part *part)
{
    return (part->sink.size + PAGE - 1) / PAGE * PAGE;
}

static uint64_t table_at(const struct files_part *part)
{
    return data_bytes(part) + sizeof(struct head);
}

static uint64_t whole_bytes(const struct files_part *part)
{
    uint64_t bytes = table_at(part) + files_chunks(part->sink.size, part->sink.chunk_bytes) * ENTRY_BYTES;
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool is_shared(const struct files_part *part, const char *name)
{
    struct stat status;
    return fstatat(part->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (status.st_uid != geteuid() || status.st_nlink != 1);
}

// Both files_hold and albdv_reg_durable(3) refuse what others can write, by the error that a kernel has for attributes.
static const char *advice_on_permission(const struct files_part *part)
{
    return is_shared(part, part->part) || is_shared(part, part->journal)
               ? "; the part beside it, or its journal, is not this user's alone: remove it"
               : "; an attribute of its folder, or of a file there, forbids it (lsattr(1)), or a sandbox does";
}

static bool say(struct files_part *part, char why[FILES_WHY_MAX], const char *what, int error)
{
    const char *advice = error == ENOSPC || error == EDQUOT ? "; make room and copy it again"
                         : error == EBUSY                   ? "; is another copy to it under way?"
                         : error == EPERM                   ? advice_on_permission(part)
                         : error == ESTALE                  ? "; another one has put something in its part's place"
                                                            : "";
    snprintf(why, FILES_WHY_MAX, "%s %.300s: %s%s", what, part->name, strerror(error), advice);
    part->may_pass = files_may_pass(error);
    return false;
}

// Whether a file can be made there, or is there.
static bool check_place(const struct files_part *part, const char *name, char why[FILES_WHY_MAX])
{
    struct stat status;
    if (fstatat(part->folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(status.st_mode))
        return true;
    snprintf(why, FILES_WHY_MAX,
             "cannot use what stands in the place of %.300s: it is no file; remove it, or choose another name", name);
    return false;
}

// Nobody else has it from here on.
static bool hold(struct files_part *part, char why[FILES_WHY_MAX])
{
    if (!check_place(part, part->part, why) || !check_place(part, part->journal, why) ||
        !check_place(part, part->new_journal, why))
        return false;
    part->fd = files_hold(part->folder, part->part);
    return part->fd >= 0 || say(part, why, "cannot make room for", errno);
}

// 0: it is new, or nothing came of it.
static uint64_t has_bytes(const struct files_part *part)
{
    struct stat status;
    return fstat(part->fd, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static struct files_part *part_of(struct files_sink *sink)
{
    return ALB_CONTAINER_OF(sink, struct files_part, sink);
}

static void place(const struct files_sink *sink, struct files_place *place)
{
    const struct files_part *part = part_of((struct files_sink *)sink);
    place->address = (uintptr_t)part->mr->addr;
    place->table = place->address + table_at(part);
    place->rkey = place->table_rkey = part->mr->rkey;
}

// Chunks come about in order, so those before the first that is not there tell how far it is.
static uint64_t count(struct files_sink *sink)
{
    static const uint8_t nothing[ENTRY_BYTES];
    struct files_part *part = part_of(sink);
    const uint8_t *table = (const uint8_t *)part->mr->addr + table_at(part);
    uint64_t chunks = files_chunks(sink->size, sink->chunk_bytes);
    while (part->counted < chunks && memcmp(table + part->counted * ENTRY_BYTES, nothing, ENTRY_BYTES) != 0)
        part->counted++;
    return ALB_MIN(part->counted * sink->chunk_bytes, sink->size);
}

static void close_region(struct files_part *part)
{
    if (part->mr)
        ibv_dereg_mr(part->mr);
    part->mr = NULL;
}

static bool read_all(int fd, uint8_t *bytes, uint64_t length, uint64_t at)
{
    while (length > 0) {
        ssize_t got = pread(fd, bytes, length, (off_t)at);
        if (got <= 0)
            return false;
        bytes += got;
        at += (uint64_t)got;
        length -= (uint64_t)got;
    }
    return true;
}

// Whether a chunk is there, also behind a gap. What cannot be read may be one.
static bool has_chunk(const struct files_part *part)
{
    uint8_t entries[PAGE];
    uint64_t left = files_chunks(part->sink.size, part->sink.chunk_bytes) * ENTRY_BYTES;
    for (uint64_t at = table_at(part); left > 0;) {
        uint64_t length = ALB_MIN(left, (uint64_t)sizeof(entries));
        if (!read_all(part->fd, entries, length, at))
            return true;
        for (uint64_t i = 0; i < length; i++)
            if (entries[i])
                return true;
        at += length;
        left -= length;
    }
    return false;
}

static void remove_names(const struct files_part *part)
{
    unlinkat(part->folder, part->part, 0);
    unlinkat(part->folder, part->journal, 0);
}

static void close_part(struct files_sink *sink)
{
    struct files_part *part = part_of(sink);
    bool is_unfinished = part->mr != NULL;
    close_region(part); // it cannot be changed from here on
    if (is_unfinished && !has_chunk(part))
        remove_names(part); // it would save nothing, and stay if the copy can never succeed
    if (part->fd >= 0)
        close(part->fd);
    part->fd = -1;
}

static void remove_part(struct files_part *part)
{
    close_region(part);
    remove_names(part);
    close_part(&part->sink);
}

// ESTALE: another file had its name meanwhile.
static int enter(struct files_part *part, struct ibv_pd *pd, bool makes_safe)
{
    char path[64 + NAME_MAX];
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    uint32_t flags = ALBDV_DURABLE_ONLY_NAME | (makes_safe ? 0 : ALBDV_DURABLE_PAGE_CACHE);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", part->folder, part->part);
    part->mr = albdv_reg_durable(pd, path, whole_bytes(part), access, flags);
    if (!part->mr)
        return errno == ELOOP || errno == EMLINK ? ESTALE : errno;
    if (files_hold_is_region(part->fd))
        return 0;
    close_region(part);
    return ESTALE;
}

// True if the part is of this file. A new one is made to be.
static bool is_of_this(struct files_part *part)
{
    static const struct head nothing;
    struct head *head = (struct head *)((uint8_t *)part->mr->addr + data_bytes(part));
    struct head mine = {.size = part->sink.size, .chunk_bytes = part->sink.chunk_bytes};
    memcpy(mine.magic, magic, sizeof(magic));
    if (memcmp(head, &nothing, sizeof(nothing)) == 0)
        *head = mine;
    return memcmp(head, &mine, sizeof(mine)) == 0;
}

static bool check_destination(struct files_part *part, char why[FILES_WHY_MAX])
{
    struct stat status;
    if (fstatat(part->folder, part->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || say(part, why, "cannot look at", errno);
    if (S_ISDIR(status.st_mode))
        snprintf(why, FILES_WHY_MAX, "cannot replace %.300s: %s; end its name with \"/\" to copy into it", part->name,
                 strerror(EISDIR));
    else if (!S_ISREG(status.st_mode))
        snprintf(why, FILES_WHY_MAX, "cannot replace %.300s: it is %s, not a file; remove it, or choose another name",
                 part->name, S_ISLNK(status.st_mode) ? "a symbolic link" : "a pipe, a socket or a device");
    return S_ISREG(status.st_mode);
}

// Counts the chunks that are not what the table says, and takes them out of it.
static bool check_chunks(const struct files_part *part, struct alb_digest *digest, uint64_t *wrong)
{
    static const uint8_t nothing[ENTRY_BYTES];
    struct alb_digest_state whole;
    uint8_t *room = malloc(part->sink.chunk_bytes);
    bool is_good = room != NULL;
    alb_digest_begin(&whole);
    *wrong = 0;
    for (uint64_t at = 0; at < part->sink.size && is_good; at += part->sink.chunk_bytes) {
        uint64_t length = ALB_MIN((uint64_t)part->sink.chunk_bytes, part->sink.size - at);
        uint64_t entry_at = table_at(part) + at / part->sink.chunk_bytes * ENTRY_BYTES;
        struct alb_digest entry;
        is_good =
            read_all(part->fd, room, length, at) && read_all(part->fd, (uint8_t *)&entry, sizeof(entry), entry_at);
        struct alb_digest has = is_good ? alb_digest_of(room, length) : (struct alb_digest){0};
        if (is_good && !alb_digest_is_equal(&entry, &has)) {
            *wrong += 1;
            is_good = pwrite(part->fd, nothing, sizeof(nothing), (off_t)entry_at) == sizeof(nothing);
        }
        if (is_good)
            alb_digest_add(&whole, room, length);
    }
    *digest = alb_digest_end(&whole);
    free(room);
    return is_good;
}

static bool set_mode(const struct files_part *part, mode_t mode)
{
    return fchmod(part->fd, mode) == 0 && fsync(part->fd) == 0;
}

static bool give_name(struct files_part *part, char why[FILES_WHY_MAX])
{
    // The table goes with the end of the file: from here on an interrupted copy begins anew, for which its owner has to
    // open the part, whatever the file's mode is.
    mode_t openable = part->mode | S_IRUSR;
    if ((unlinkat(part->folder, part->journal, 0) != 0 && errno != ENOENT) ||
        ftruncate(part->fd, (off_t)part->sink.size) != 0 || !set_mode(part, openable) ||
        renameat(part->folder, part->part, part->folder, part->name) != 0 ||
        (openable != part->mode && !set_mode(part, part->mode)) || fsync(part->folder) != 0)
        return say(part, why, "cannot finish", errno);
    return files_hold_is_in_place(part->folder, part->name, part->fd) || say(part, why, "cannot finish", ESTALE);
}

static bool finish(struct files_sink *sink, const struct alb_digest *expected, char why[FILES_WHY_MAX])
{
    struct files_part *part = part_of(sink);
    struct alb_digest digest;
    uint64_t wrong;
    close_region(part); // it cannot be changed from here on
    bool is_good = check_chunks(part, &digest, &wrong) || say(part, why, "cannot read back", EIO);
    if (is_good && (wrong > 0 || !alb_digest_is_equal(&digest, expected))) {
        char text[FILES_DIGEST_TEXT], other[FILES_DIGEST_TEXT];
        snprintf(why, FILES_WHY_MAX, "%llu chunks are not what was agreed (digest %s, not %s); copy it again",
                 (unsigned long long)wrong, files_digest_format(&digest, text), files_digest_format(expected, other));
        is_good = false;
    }
    return is_good && give_name(part, why);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

bool files_part_is_unfinished(const char *path, char why[FILES_WHY_MAX])
{
    if (!ends_with(path, PART_SUFFIX) && !ends_with(path, JOURNAL_SUFFIX) && !ends_with(path, NEW_JOURNAL_SUFFIX))
        return false;
    snprintf(why, FILES_WHY_MAX, "this is the name of a copy that is not finished; choose another");
    return true;
}

bool files_part_check_name(const char *path, char why[FILES_WHY_MAX])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strlen(name) <= (size_t)NAME_BYTES_MAX)
        return !files_part_is_unfinished(path, why);
    snprintf(why, FILES_WHY_MAX, "the name is too long: it may have %d bytes", NAME_BYTES_MAX);
    return false;
}

bool files_part_open(struct files_part *part, struct ibv_pd *pd, int folder, const char *name,
                     const struct files_message *offer, bool makes_safe, char why[FILES_WHY_MAX])
{
    *part = (struct files_part){.folder = folder, .mode = offer->mode & 0777, .fd = -1};
    part->sink = (struct files_sink){.size = offer->size,
                                     .chunk_bytes = offer->chunk_bytes,
                                     .place = place,
                                     .count = count,
                                     .finish = finish,
                                     .close = close_part};
    if (!files_part_check_name(name, why))
        return false;
    snprintf(part->name, sizeof(part->name), "%s", name);
    snprintf(part->part, sizeof(part->part), "%.*s" PART_SUFFIX, NAME_BYTES_MAX, name);
    snprintf(part->journal, sizeof(part->journal), "%.*s" JOURNAL_SUFFIX, NAME_BYTES_MAX, name);
    snprintf(part->new_journal, sizeof(part->new_journal), "%.*s" NEW_JOURNAL_SUFFIX, NAME_BYTES_MAX, name);
    if (!check_destination(part, why) || !hold(part, why))
        return false;
    bool may_be_of_this = has_bytes(part) == 0 || has_bytes(part) == whole_bytes(part);
    int error = may_be_of_this ? enter(part, pd, makes_safe) : EBADMSG;
    if (error == EBADMSG || (!error && !is_of_this(part))) {
        remove_part(part);
        if (!hold(part, why))
            return false;
        error = enter(part, pd, makes_safe);
        if (!error)
            is_of_this(part);
    }
    if (!error)
        return true;
    say(part, why, "cannot make room for", error); // by what is there
    if (has_bytes(part) == 0)
        remove_part(part);
    return false;
}
