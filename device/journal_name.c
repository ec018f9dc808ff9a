// SPDX-License-Identifier: BSD-2-Clause
// Whose a journal's name is. It may have been moved, removed or given to another file since it was opened, as may be
// its region's: then a new journal does not take it.
#include "device/journal_name.h"

#include "device/journal_file.h"
#include "device/shown_path.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool region_has_its_name(const struct alb_journal *journal)
{
    struct alb_file_id region;
    if (journal->region_fd < 0)
        return true;
    return alb_file_identify(journal->region_fd, &region) == 0 &&
           alb_file_check_name(journal->folder_fd, journal->region_name, &region) == 0;
}

// It has not just been moved, and is somebody's by another name.
static bool is_removed(const struct alb_journal *journal)
{
    struct stat status;
    return journal->fd < 0 || (fstat(journal->fd, &status) == 0 && status.st_nlink == 0);
}

// 0: its own; ENOENT: nobody's, and it may be made there; ESTALE; those of fstatat(2).
static int check_name(const struct alb_journal *journal)
{
    int error = alb_file_check_name(journal->folder_fd, alb_file_name(journal->path), &journal->file);
    return error != ENOENT || (is_removed(journal) && region_has_its_name(journal)) ? error : ESTALE;
}

int alb_journal_check_name(const struct alb_journal *journal)
{
    int error = check_name(journal);
    return error == ENOENT ? 0 : error;
}

// Removes the name of the file in the making only while it is that file's.
static void remove_named(const struct alb_journal *journal, const char *path, const struct alb_file_id *file)
{
    if (alb_file_check_name(journal->folder_fd, alb_file_name(path), file) == 0)
        unlinkat(journal->folder_fd, alb_file_name(path), 0);
}

// Where the file system does not know the flag, what was looked at just before has to do, and *is_known is false.
static int rename_new(const struct alb_journal *journal, unsigned flag, bool *is_known)
{
    const char *from = alb_file_name(journal->new_path), *to = alb_file_name(journal->path);
    int folder = journal->folder_fd;
    *is_known = true;
    if (renameat2(folder, from, folder, to, flag) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    *is_known = false;
    return renameat(folder, from, folder, to) == 0 ? 0 : errno;
}

// The name may become another file's after the look: what had it stays, by the other name, until it is known.
static int replace(const struct alb_journal *journal)
{
    const char *name = alb_file_name(journal->path), *new_name = alb_file_name(journal->new_path);
    bool is_exchanged;
    int error = rename_new(journal, RENAME_EXCHANGE, &is_exchanged);
    if (error || !is_exchanged)
        return error == ENOENT ? ESTALE : error;
    if (alb_file_check_name(journal->folder_fd, new_name, &journal->file) == ESTALE) {
        error = renameat2(journal->folder_fd, name, journal->folder_fd, new_name, RENAME_EXCHANGE) == 0 ? 0 : errno;
        char text[ALB_SHOWN_PATH_MAX], place[ALB_SHOWN_PATH_MAX];
        if (error)
            alb_log(ALB_LOG_ERROR, "%s: another file came there, is called %s now, and cannot be put back: %s",
                    alb_shown_path(journal->path, text), alb_shown_path(journal->new_path, place), strerror(error));
        return ESTALE;
    }
    remove_named(journal, journal->new_path, &journal->file);
    return 0;
}

// The region's name may have been taken away, too, since the look: nobody else's may find a journal there.
static int give_free_name(const struct alb_journal *journal, const struct alb_file_id *file)
{
    bool is_known;
    int error = rename_new(journal, RENAME_NOREPLACE, &is_known);
    if (error)
        return error == EEXIST ? ESTALE : error;
    if (region_has_its_name(journal))
        return 0;
    remove_named(journal, journal->path, file);
    return ESTALE;
}

int alb_journal_give_name(const struct alb_journal *journal, const struct alb_file_id *file)
{
    int error = check_name(journal);
    return error == 0 ? replace(journal) : error == ENOENT ? give_free_name(journal, file) : error;
}

void alb_journal_remove_new(const struct alb_journal *journal, const struct alb_file_id *file)
{
    remove_named(journal, journal->new_path, file);
}
