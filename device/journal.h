// SPDX-License-Identifier: BSD-2-Clause
// The journal file of a durable region: FILE.journal beside FILE. Records are appended, then made safe together;
// a checkpoint replaces the file by one with only what still matters. Not thread-safe: its store's thread has it.
// It is locked while it is open. It stays in the folder that it was opened in, wherever the process goes and the path
// leads to meanwhile.
//
// After a failure to make records safe, it is unknown whether they are. A journal is then broken: nothing is appended
// any more, and what is uncertain stays so until a checkpoint, which leaves out what was not confirmed, succeeds.
#pragma once

#include "device/journal_file.h"
#include "device/journal_record.h"
#include "device/ledger.h"

#include <limits.h>

#define ALB_JOURNAL_PATH_MAX 4096

struct alb_journal {
    struct alb_journal_header header;
    char path[ALB_JOURNAL_PATH_MAX]; // as it was at the opening, for people: it may lead elsewhere since
    char new_path[ALB_JOURNAL_PATH_MAX];
    char region_name[NAME_MAX + 1];
    int folder_fd;           // all are found by their names there
    int region_fd;           // of the file whose mode it gets; not owned. -1: the owner's only
    int fd;                  // -1: there is none yet
    struct alb_file_id file; // it, when it was opened
    uint64_t end;            // bytes
    uint64_t reserved;       // bytes that the disk has set aside
    uint64_t sequence;       // of the last record
    uint64_t synced;         // all up to this one are safe
    uint64_t synced_end;     // bytes, likewise
    uint64_t checkpoint_end; // bytes at the last checkpoint
    bool is_broken;
};

// Names the journal of that file, and opens its folder. It has no file yet. ENAMETOOLONG, those of open(2).
int alb_journal_init(struct alb_journal *journal, const char *region_path);
void alb_journal_fini(struct alb_journal *journal);

// Opens and locks the file that is there. ENOENT: there is none; EBUSY: it is another one's, who has it open; EPERM:
// another user's; those of open(2).
int alb_journal_open(struct alb_journal *journal);
// Reads the file into memory (*image is to be freed). Those of read(2); ENOMEM.
int alb_journal_read(const struct alb_journal *journal, uint8_t **image, uint64_t *image_bytes);
// Its header alone. EBADMSG: it is none; EIO: it is too short.
int alb_journal_read_header(const struct alb_journal *journal, struct alb_journal_header *header);
// Goes on with the file, behind end bytes and that record: what follows is cut off.
int alb_journal_resume(struct alb_journal *journal, uint64_t end, uint64_t sequence);

// Appends a record. request gives parts and their bytes of a PREPARE; record->digest and the like are the caller's,
// length, sequence, synced and body are set. *at is where it begins. Space for a COMMIT of each bound transaction is
// kept, so that the disk does not become full between a verdict and its decision. On an error (ENOSPC, EFBIG, EDQUOT,
// EIO, ...) nothing of it stays. EIO: broken.
int alb_journal_append(struct alb_journal *journal, struct alb_record *record,
                       const struct alb_journal_request *request, uint32_t bound_count, uint64_t *at);

// Makes all that was appended safe; with the page cache it is as safe as it gets already. On an error the journal goes
// back to where it was safe, or is broken. Either way what was appended since the last time has not been written.
int alb_journal_sync(struct alb_journal *journal);

// Its name may have been given to another file since: the journal of another region that is open, with its
// transactions. 0: the name is its own, or nobody's while the region still has its own. Else ESTALE.
int alb_journal_check_name(const struct alb_journal *journal);
// Replaces the file by one that has what the ledger has; everything in it is then safe. Bytes of transactions that are
// placed must be safe in the region's file before. The old file stays on an error. ESTALE: see
// alb_journal_check_name; nothing is done to what is there. EBUSY: somebody has the file that is in the new one's place
// open.
int alb_journal_checkpoint(struct alb_journal *journal, struct alb_ledger *ledger);
