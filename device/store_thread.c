// SPDX-License-Identifier: BSD-2-Clause
// The thread that writes a durable region's journal. It takes whatever has been asked for since it last looked, appends
// it, makes all of it safe at once, and answers.
#include "device/store.h"

#include "device/clock.h"
#include "device/crash.h"
#include "device/shown_path.h"
#include "device/spawn.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BATCH_MAX 256

// How often a journal is tried again that could not be repaired, or written anew.
#define REPAIR_SECONDS 1

// How often it is said that there is no room.
#define COMPLAINT_SECONDS 10

struct pending {
    struct alb_list link;
    struct alb_journal_request request;
    bool is_new; // its PREPARE is in the ledger, though not safe yet
    int error;
};

struct batch {
    struct pending *requests[BATCH_MAX];
    uint32_t count;
};

// ---- memory for what must not fail ----------------------------------------------------------------------------------

// A transaction in the journal has a spare request for its ABORT: first that of its PREPARE.

static void put_spare(struct alb_store *store, struct pending *pending)
{
    pthread_mutex_lock(&store->mutex);
    alb_list_push_back(&store->spares, &pending->link);
    pthread_mutex_unlock(&store->mutex);
}

static struct pending *take_spare(struct alb_store *store)
{
    pthread_mutex_lock(&store->mutex);
    struct alb_list *node = alb_list_pop(&store->spares);
    pthread_mutex_unlock(&store->mutex);
    return node ? ALB_LIST_ENTRY(node, struct pending, link) : NULL;
}

int alb_store_reserve(struct alb_store *store, uint32_t count)
{
    for (; count > 0; count--) {
        struct pending *pending = malloc(sizeof(*pending));
        if (!pending)
            return ENOMEM;
        put_spare(store, pending);
    }
    return 0;
}

void alb_store_unreserve(struct alb_store *store)
{
    struct pending *pending;
    while ((pending = take_spare(store)))
        free(pending);
}

static void release(struct alb_store *store, struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct pending *pending = batch->requests[i];
        if (!pending->error && pending->request.kind == ALB_JOURNAL_PREPARE) {
            put_spare(store, pending);
            continue;
        }
        if (!pending->error && pending->request.kind == ALB_JOURNAL_COMMIT)
            free(take_spare(store));
        free(pending);
    }
}

// ---- requests -------------------------------------------------------------------------------------------------------

int alb_store_submit(struct alb_store *store, const struct alb_journal_request *request)
{
    struct pending *pending = request->kind == ALB_JOURNAL_ABORT ? take_spare(store) : NULL;
    if (!pending)
        pending = malloc(sizeof(*pending));
    if (!pending)
        return ENOMEM;
    *pending = (struct pending){.request = *request};
    pthread_mutex_lock(&store->mutex);
    alb_list_push_back(&store->requests, &pending->link);
    pthread_mutex_unlock(&store->mutex);
    pthread_cond_signal(&store->wanted);
    return 0;
}

// It stays so until somebody puts it back: said once.
static void complain_of_name(struct alb_store *store)
{
    char text[ALB_SHOWN_PATH_MAX], journal[ALB_SHOWN_PATH_MAX];
    if (!store->is_displaced)
        alb_log(ALB_LOG_ERROR,
                "%s: has been moved, removed or replaced, as may be %s: the journal goes on where it is, grows, and "
                "refuses transactions once it is full, until it has its name again, or the region ends; what has those "
                "names now is left alone",
                alb_shown_path(store->journal.path, journal), alb_shown_path(store->path, text));
    store->is_displaced = true;
}

static int checkpoint(struct alb_store *store)
{
    int error = alb_journal_check_name(&store->journal);
    if (!error)
        error = alb_store_write_back(store);
    if (!error)
        error = alb_journal_checkpoint(&store->journal, &store->ledger);
    if (error == ESTALE)
        complain_of_name(store);
    else if (!error)
        store->is_displaced = false;
    return error;
}

static void look_after_journal(struct alb_store *store)
{
    const struct alb_journal *journal = &store->journal;
    char text[ALB_SHOWN_PATH_MAX];
    uint32_t forgotten = 0;
    // What is forgotten has to go from the journal, too. Where that cannot be, what there is no room for is refused.
    bool is_full = alb_ledger_count(&store->ledger) + BATCH_MAX > ALB_LEDGER_MAX;
    if (is_full && alb_journal_check_name(journal) == ESTALE)
        complain_of_name(store);
    else if (is_full)
        forgotten = alb_ledger_forget(&store->ledger);
    if (forgotten > 0)
        alb_log(ALB_LOG_WARNING, "%s: forgets the outcome of %u transactions whose initiators never came back",
                alb_shown_path(journal->path, text), forgotten);
    // Twice what had to stay the last time, so that large transactions that are bound do not cause one each time.
    uint64_t limit = ALB_MAX(store->checkpoint_bytes, 2 * journal->checkpoint_end);
    // A full ledger could not be read back from a journal that still has what was forgotten.
    bool is_due = (journal->end >= limit || store->wants_room) && alb_clock_now() >= store->checkpoint_after &&
                  !store->keeps_journal;
    if (!is_due && !journal->is_broken && !forgotten)
        return;
    int error = checkpoint(store);
    store->checkpoint_after = error ? alb_clock_now() + REPAIR_SECONDS * ALB_NS_PER_S : 0;
    if (error && error != ESTALE)
        alb_log(ALB_LOG_WARNING, "%s: cannot be written anew: %s",
                alb_shown_path(error == EBUSY ? journal->new_path : journal->path, text), strerror(error));
    store->journal.is_broken |= error && forgotten;
}

static struct alb_record record_of(const struct alb_journal_request *request, enum alb_record_kind kind)
{
    return (struct alb_record){
        .kind = kind,
        .id = request->id,
        .digest = request->digest,
        .low_water = request->low_water,
        .lease_ns = request->lease_ns,
    };
}

static int write_prepare(struct alb_store *store, struct pending *pending)
{
    const struct alb_journal_request *request = &pending->request;
    struct alb_record record = record_of(request, ALB_RECORD_PREPARE);
    struct alb_ledger_entry *entry;
    int error = alb_ledger_add(&store->ledger, &request->id, &entry);
    if (error)
        return error;
    entry->digest = request->digest;
    entry->lease_ns = request->lease_ns;
    entry->part_count = request->part_count;
    entry->condition_count = request->condition_count;
    alb_crash_at_journal(ALB_CRASH_APPEND, request->kind);
    error = alb_journal_append(&store->journal, &record, request, store->ledger.bound_count, &entry->at);
    pending->is_new = !error;
    if (error)
        alb_ledger_drop(&store->ledger, entry);
    return error;
}

static int write_decision(struct alb_store *store, struct pending *pending)
{
    const struct alb_journal_request *request = &pending->request;
    bool commits = request->kind == ALB_JOURNAL_COMMIT;
    struct alb_record record = record_of(request, commits ? ALB_RECORD_COMMIT : ALB_RECORD_ABORT);
    const struct alb_ledger_entry *entry = alb_ledger_find(&store->ledger, &request->id);
    uint64_t at;
    if (!entry && !commits)
        return 0; // it is not there, and never was
    if (!entry || entry->is_committed)
        return EINVAL;
    alb_crash_at_journal(ALB_CRASH_APPEND, request->kind);
    return alb_journal_append(&store->journal, &record, request, store->ledger.bound_count, &at);
}

// It is unknown what of it is in the journal, and until that is certain no answer would be true: it is written anew.
// False: it is to stop meanwhile.
static bool wait_for_certainty(struct alb_store *store)
{
    char text[ALB_SHOWN_PATH_MAX];
    bool stops = false;
    if (!store->journal.is_broken)
        return true;
    alb_log(ALB_LOG_ERROR, "%s: cannot be made safe any more; transactions wait until it can be written anew",
            alb_shown_path(store->journal.path, text));
    while (!stops && checkpoint(store) != 0) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += REPAIR_SECONDS;
        pthread_mutex_lock(&store->mutex);
        if (!store->stops)
            pthread_cond_clockwait(&store->wanted, &store->mutex, CLOCK_MONOTONIC, &until);
        stops = store->stops;
        pthread_mutex_unlock(&store->mutex);
    }
    return !store->journal.is_broken;
}

// What is safe is so in the ledger, what failed is not there; and what is aborted is not, whether that is written or
// not.
static void book(struct alb_store *store, const struct pending *pending)
{
    struct alb_ledger_entry *entry = alb_ledger_find(&store->ledger, &pending->request.id);
    enum alb_journal_kind kind = pending->request.kind;
    bool is_undone = kind == ALB_JOURNAL_PREPARE && pending->is_new && pending->error;
    bool is_aborted = kind == ALB_JOURNAL_ABORT && pending->error != EINVAL;
    if (entry && (is_undone || is_aborted))
        alb_ledger_drop(&store->ledger, entry);
    else if (entry && kind == ALB_JOURNAL_COMMIT && !pending->error)
        alb_ledger_commit(&store->ledger, entry);
}

static void crash_at(enum alb_crash_place place, const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count && alb_crash_is_armed(place); i++)
        if (!batch->requests[i]->error)
            alb_crash_at_journal(place, batch->requests[i]->request.kind);
}

// Puts back what has not been written, before what has been asked for since.
static void put_back(struct alb_store *store, struct batch *batch, uint32_t from)
{
    pthread_mutex_lock(&store->mutex);
    for (uint32_t i = batch->count; i > from; i--)
        alb_list_push_front(&store->requests, &batch->requests[i - 1]->link);
    pthread_mutex_unlock(&store->mutex);
    batch->count = from;
}

static bool is_for_want_of_room(const struct pending *pending)
{
    bool is_it = pending->error == ENOSPC || pending->error == EDQUOT || pending->error == EFBIG;
    return is_it && pending->request.kind == ALB_JOURNAL_PREPARE;
}

static void complain_of_room(struct alb_store *store, int error)
{
    char text[ALB_SHOWN_PATH_MAX];
    if (alb_clock_now() < store->complain_after)
        return;
    store->complain_after = alb_clock_now() + COMPLAINT_SECONDS * ALB_NS_PER_S;
    alb_log(ALB_LOG_ERROR, "%s: %s; transactions abort until there is room", alb_shown_path(store->journal.path, text),
            strerror(error));
}

// Appends them, or only those before one that there is no room for: that one comes again when the journal has been
// written anew, which may make room.
static void append_batch(struct alb_store *store, struct batch *batch)
{
    bool has_tried = store->wants_room;
    store->wants_room = false;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct pending *pending = batch->requests[i];
        const struct alb_journal_request *request = &pending->request;
        alb_ledger_pass(&store->ledger, request->id.initiator, request->low_water);
        bool prepares = request->kind == ALB_JOURNAL_PREPARE;
        pending->error = prepares ? write_prepare(store, pending) : write_decision(store, pending);
        if (!is_for_want_of_room(pending))
            continue;
        store->wants_room = !has_tried && store->journal.end > store->journal.checkpoint_end;
        if (store->wants_room)
            put_back(store, batch, i);
        else
            complain_of_room(store, pending->error);
    }
}

// Writes, makes safe and books them. True: what became of each is certain.
static bool write_batch(struct alb_store *store, struct batch *batch)
{
    char text[ALB_SHOWN_PATH_MAX];
    append_batch(store, batch);
    crash_at(ALB_CRASH_WRITTEN, batch);
    int error = alb_journal_sync(&store->journal);
    crash_at(ALB_CRASH_SAFE, batch);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct pending *pending = batch->requests[i];
        if (!pending->error)
            pending->error = error;
        // What is aborted must not come back, and the journal still has it.
        bool is_left = pending->request.kind == ALB_JOURNAL_ABORT && pending->error && pending->error != EINVAL;
        store->journal.is_broken |= is_left;
        book(store, pending);
    }
    if (error)
        alb_log(ALB_LOG_ERROR, "%s: %s; transactions abort", alb_shown_path(store->journal.path, text),
                strerror(error));
    return wait_for_certainty(store);
}

// The batch is gone afterwards: what is answered may be decided at once.
static void answer(struct alb_store *store, struct batch *batch)
{
    struct alb_store_answer answers[BATCH_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct pending *pending = batch->requests[i];
        bool aborts = pending->request.kind == ALB_JOURNAL_ABORT;
        answers[count++] = (struct alb_store_answer){
            .id = pending->request.id, .kind = pending->request.kind, .error = aborts ? 0 : pending->error};
    }
    release(store, batch);
    store->taker.answers(store->taker.context, answers, count);
    for (uint32_t i = 0; i < count; i++) {
        struct alb_ledger_entry *entry = alb_ledger_find(&store->ledger, &answers[i].id);
        if (entry && answers[i].is_placed)
            entry->is_placed = true;
    }
}

// False: there is nothing any more, and it is to stop.
static bool take(struct alb_store *store, struct batch *batch)
{
    batch->count = 0;
    pthread_mutex_lock(&store->mutex);
    while (alb_list_is_empty(&store->requests) && !store->stops)
        pthread_cond_wait(&store->wanted, &store->mutex);
    while (batch->count < BATCH_MAX && !alb_list_is_empty(&store->requests))
        batch->requests[batch->count++] = ALB_LIST_ENTRY(alb_list_pop(&store->requests), struct pending, link);
    pthread_mutex_unlock(&store->mutex);
    return batch->count > 0;
}

static void *run(void *argument)
{
    struct alb_store *store = argument;
    struct batch batch;
    while (take(store, &batch)) {
        look_after_journal(store);
        if (!write_batch(store, &batch)) {
            put_back(store, &batch, 0);
            break;
        }
        answer(store, &batch);
    }
    return NULL;
}

int alb_store_start(struct alb_store *store, const struct alb_store_taker *taker)
{
    store->taker = *taker;
    int error = alb_spawn(&store->thread, "albedo/journal", run, store); // SIGXFSZ is blocked here, too
    store->has_thread = error == 0;
    return error;
}

void alb_store_stop(struct alb_store *store)
{
    if (!store->has_thread)
        return;
    pthread_mutex_lock(&store->mutex);
    store->stops = true;
    pthread_mutex_unlock(&store->mutex);
    pthread_cond_signal(&store->wanted);
    pthread_join(store->thread, NULL);
    store->has_thread = false;
}

bool alb_store_take_back(struct alb_store *store, struct alb_txn_id *id)
{
    struct alb_list *node = alb_list_pop(&store->requests);
    if (!node)
        return false;
    struct pending *pending = ALB_LIST_ENTRY(node, struct pending, link);
    *id = pending->request.id;
    free(pending);
    return true;
}
