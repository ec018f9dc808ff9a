// SPDX-License-Identifier: BSD-2-Clause
// Durable regions: between the engine and their files.
#include "device/durable.h"

#include "device/cancel.h"
#include "device/shown_path.h"
#include "device/store.h"
#include "engine/region.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct alb_durable {
    struct alb_list link;
    struct alb_device *device;
    struct alb_region *region;
    struct alb_store store;
};

// All of the process's.
static pthread_mutex_t durables_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct alb_list durables = {.next = &durables, .prev = &durables};
// Held by readers while they open or close files, which may take long: a child of a fork must find all that are open in
// the list. The fork is the writer, and is not kept waiting by those that come after it.
#define FORK_LOCK PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
static pthread_rwlock_t fork_lock = FORK_LOCK;

static void push(struct alb_durable *durable)
{
    pthread_mutex_lock(&durables_mutex);
    alb_list_push_back(&durables, &durable->link);
    pthread_mutex_unlock(&durables_mutex);
}

static void take_out(struct alb_durable *durable)
{
    pthread_mutex_lock(&durables_mutex);
    alb_list_remove(&durable->link);
    pthread_mutex_unlock(&durables_mutex);
}

static void take_answers(void *context, struct alb_store_answer *answers, uint32_t count)
{
    struct alb_durable *durable = context;
    struct alb_engine *engine = alb_device_engine(durable->device);
    alb_device_lock(durable->device);
    for (uint32_t i = 0; i < count; i++)
        answers[i].is_placed =
            alb_engine_journaled(engine, &answers[i].id, answers[i].kind, answers[i].error, alb_device_now());
    alb_device_unlock(durable->device);
}

void alb_durables_take_requests(struct alb_engine *engine)
{
    struct alb_journal_request request;
    while (alb_engine_journal(engine, &request)) {
        struct alb_durable *durable = request.store;
        int error = alb_store_submit(&durable->store, &request);
        alb_assert(!error || request.kind != ALB_JOURNAL_ABORT); // what is bound can always be given up
        if (error)
            alb_engine_journaled(engine, &request.id, request.kind, error, alb_device_now());
    }
}

static int restore_entry(struct alb_durable *durable, const struct alb_ledger_entry *entry)
{
    struct alb_store *store = &durable->store;
    struct alb_journal_request request;
    void *memory;
    int error = alb_store_recall(store, entry, durable->region, &request, &memory);
    if (error)
        return error;
    request.store = durable;
    error = alb_engine_restore(alb_device_engine(durable->device), &request, entry->is_committed,
                               store->journal.header.keeper, alb_device_now());
    free(memory);
    // The region was open in this process before: the engine remembers.
    return entry->is_committed && (error == EEXIST || error == EBUSY) ? 0 : error;
}

static int restore(struct alb_durable *durable)
{
    struct alb_engine *engine = alb_device_engine(durable->device);
    const struct alb_ledger *ledger = &durable->store.ledger;
    char text[ALB_SHOWN_PATH_MAX];
    int error = 0;
    ALB_LIST_FOR_EACH (&ledger->entries, node)
        if (!error)
            error = restore_entry(durable, ALB_LIST_ENTRY(node, struct alb_ledger_entry, link));
    for (uint32_t i = 0; i < alb_ledger_initiator_count(ledger) && !error; i++) {
        const struct alb_ledger_initiator *initiator = alb_ledger_initiator_at(ledger, i);
        error = alb_engine_restore_initiator(engine, initiator->name, initiator->low_water,
                                             durable->store.journal.header.keeper);
        if (error == EBUSY) // connected, so that it is known
            error = 0;
    }
    if (error)
        alb_log(ALB_LOG_ERROR, "%s: what its journal has bound cannot be bound again: %s",
                alb_shown_path(durable->store.path, text), strerror(error));
    return error;
}

static int enter_region(struct alb_durable *durable, struct alb_pd *pd, uint32_t access)
{
    struct alb_store *store = &durable->store;
    int error = alb_mr_create(pd, store->address, store->length, (uintptr_t)store->address, access, &durable->region);
    if (error)
        return error;
    error = alb_mr_set_store(durable->region, durable, store->journal.header.keeper);
    if (!error)
        error = restore(durable);
    if (error)
        alb_assert(alb_mr_destroy(durable->region) == 0);
    return error;
}

static void take_back(struct alb_durable *durable)
{
    struct alb_txn_id id;
    alb_device_lock(durable->device);
    while (alb_store_take_back(&durable->store, &id))
        alb_engine_journal_unknown(alb_device_engine(durable->device), &id, alb_device_now());
    alb_device_unlock(durable->device);
}

static void close_store(struct alb_durable *durable, bool leave_journal)
{
    alb_store_stop(&durable->store);
    take_back(durable);
    pthread_rwlock_rdlock(&fork_lock);
    take_out(durable);
    alb_store_close(&durable->store, leave_journal);
    pthread_rwlock_unlock(&fork_lock);
    free(durable);
}

static int create(struct alb_device *device, struct alb_pd *pd, const struct alb_durable_init *init,
                  struct alb_durable **out)
{
    struct alb_durable *durable = calloc(1, sizeof(*durable));
    const struct alb_store_init store_init = {
        .path = init->path, .length = init->length, .page_cache = init->page_cache, .only_name = init->only_name};
    const struct alb_store_taker taker = {.context = durable, .answers = take_answers};
    if (!durable)
        return ENOMEM;
    durable->device = device;
    pthread_rwlock_rdlock(&fork_lock);
    int error = alb_store_open(&durable->store, &store_init);
    if (!error)
        push(durable);
    pthread_rwlock_unlock(&fork_lock);
    if (error) {
        free(durable);
        return error;
    }
    alb_device_lock(device);
    error = enter_region(durable, pd, init->access);
    alb_device_unlock(device);
    if (!error) {
        error = alb_store_start(&durable->store, &taker);
        if (error) {
            alb_device_lock(device);
            alb_assert(alb_mr_destroy(durable->region) == 0);
            alb_device_unlock(device);
        }
    }
    if (error) {
        close_store(durable, true);
        return error;
    }
    *out = durable;
    return 0;
}

int alb_durable_create(struct alb_device *device, struct alb_pd *pd, const struct alb_durable_init *init,
                       struct alb_durable **out)
{
    int cancel = alb_cancel_off(), error = create(device, pd, init, out);
    alb_cancel_back(cancel);
    return error;
}

int alb_durable_destroy(struct alb_durable *durable)
{
    int cancel = alb_cancel_off();
    alb_device_lock(durable->device);
    bool is_poisoned = alb_region_is_poisoned(durable->region);
    int error = alb_mr_destroy(durable->region);
    alb_device_unlock(durable->device);
    if (!error)
        close_store(durable, is_poisoned);
    alb_cancel_back(cancel);
    return error;
}

struct alb_region *alb_durable_region(const struct alb_durable *durable)
{
    return durable->region;
}

void *alb_durable_address(const struct alb_durable *durable)
{
    return durable->store.address;
}

uint64_t alb_durable_length(const struct alb_durable *durable)
{
    return durable->store.length;
}

void alb_durables_before_fork(void)
{
    pthread_rwlock_wrlock(&fork_lock);
}

void alb_durables_after_fork_in_parent(void)
{
    pthread_rwlock_unlock(&fork_lock);
}

// The mapping stays, as other memory does.
void alb_durables_after_fork_in_child(void)
{
    static const pthread_rwlock_t unlocked = FORK_LOCK;
    ALB_LIST_FOR_EACH (&durables, node) {
        struct alb_store *store = &ALB_LIST_ENTRY(node, struct alb_durable, link)->store;
        alb_journal_fini(&store->journal);
        close(store->fd);
        store->fd = -1;
    }
    fork_lock = unlocked; // its holder is of another process
}
