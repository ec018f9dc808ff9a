// SPDX-License-Identifier: BSD-2-Clause
// A durable region's file and journal, and the thread that writes the journal: many requests, one fdatasync. Knows
// nothing of engines or devices (device/durable.h does).
//
// What a crash leaves. Transactions that were answered COMMIT survive the process, and with fdatasync the machine;
// opening the file again writes their bytes once more, in their order. With the page cache, the process's end costs
// nothing, but that of the machine costs what the system had not written back. What a program writes to the region
// beside transactions is written back when the system likes, and may be overwritten by that repetition.
#pragma once

#include "device/journal.h"

#include <pthread.h>
#include <stdatomic.h>

// A journal that has grown by so much since the last checkpoint gets one.
#define ALB_STORE_CHECKPOINT_BYTES (64ull << 20)

struct alb_store_answer {
    struct alb_txn_id id;
    enum alb_journal_kind kind;
    int error;
    bool is_placed; // the taker's word: it is committed, and the region has its bytes
};

// Called by the store's thread without any lock. What is committed and not placed stays in the journal, and the next
// opening places it.
struct alb_store_taker {
    void *context;
    void (*answers)(void *context, struct alb_store_answer *answers, uint32_t count);
};

struct alb_store_init {
    const char *path;
    uint64_t length;           // 0: the file's own
    uint64_t checkpoint_bytes; // 0: ALB_STORE_CHECKPOINT_BYTES
    bool page_cache;
    bool only_name; // a symbolic link is ELOOP, a file with other hard links EMLINK
};

struct alb_store {
    char path[ALB_JOURNAL_PATH_MAX]; // for people, as that of the journal, in whose folder it is
    struct alb_store_taker taker;
    int fd;
    uint8_t *address;
    uint64_t length;
    uint64_t found_bytes; // what the file had before it was opened
    bool is_new;          // there was no file
    uint64_t checkpoint_bytes;
    struct alb_journal journal;
    struct alb_ledger ledger;
    bool keeps_journal;        // the file could not be written back: only the journal has the bytes for sure
    bool is_displaced;         // it was said that the journal has lost its name
    bool wants_room;           // the next request had none, and the journal is to be written anew before it
    alb_time checkpoint_after; // one has failed, and is not tried again before
    alb_time complain_after;

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t wanted;
    struct alb_list requests;
    struct alb_list spares; // for the ABORT of each transaction that is bound
    bool stops;
};

// Opens, creates, lengthens and allocates the file, and locks it; recovers from its journal: what was committed is in
// the region, what is bound is in the ledger. EBUSY: it is open in this or another process, or is the journal of one
// that is; EBADMSG: the journal is damaged, or of another file (a line on stderr says where, and what to do); EINVAL:
// the file is longer than length, or empty and length is 0; ENOSPC, those of open(2) and mmap(2). After an error the
// file is as long as it was, or not there.
int alb_store_open(struct alb_store *store, const struct alb_store_init *init);
// Starts the thread. Those of pthread_create.
int alb_store_start(struct alb_store *store, const struct alb_store_taker *taker);
// Answers what was submitted, ends the thread. Nothing is submitted after that. What there is no true answer to, since
// the journal could not be written for sure (or the thread has never been started), is then to be taken back: whether
// it is in the journal is known at the next opening.
void alb_store_stop(struct alb_store *store);
// False: there is nothing.
bool alb_store_take_back(struct alb_store *store, struct alb_txn_id *id);
// leave_journal: the bytes that were committed are written once more at the next opening, for the region may not have
// them (it is poisoned). Otherwise it is left clean.
void alb_store_close(struct alb_store *store, bool leave_journal);

// Any thread. It is answered later, in order. An error says that it is not in the journal, and will not be found there
// after a crash either; where that is not certain there is no answer, until the disk works again. ABORT is never
// answered with an error. ENOMEM: not submitted, but for the ABORT of what is bound, which needs no memory.
int alb_store_submit(struct alb_store *store, const struct alb_journal_request *request);
// Memory for so many ABORTs. ENOMEM.
int alb_store_reserve(struct alb_store *store, uint32_t count);
void alb_store_unreserve(struct alb_store *store);

// Writes the file back, so that the journal is not needed for what is placed there. After an error it is needed until
// the next opening, which places everything again; each call then fails.
int alb_store_write_back(struct alb_store *store);

// Before the thread is started: a transaction that was bound, with its bytes as they are in the journal (the answer's
// memory is to be freed as one), or one that is committed (no parts). region: of the parts.
int alb_store_recall(const struct alb_store *store, const struct alb_ledger_entry *entry, struct alb_region *region,
                     struct alb_journal_request *request, void **memory);
