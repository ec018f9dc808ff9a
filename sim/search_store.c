// SPDX-License-Identifier: BSD-2-Clause
#include "sim/search_store.h"

#include "sim/search_txn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARKS_MAX = 1024, // initiators of one journal
};

// What becomes of a journal's transactions, as they are found by reading it.
struct mark {
    uint64_t initiator, low_water;
};

struct ledger {
    const struct alb_search_store_record **open; // what is bound or committed and above the low-water mark
    bool *is_committed;
    uint32_t open_count;
    struct mark marks[MARKS_MAX];
    uint32_t mark_count;
};

static struct alb_sim_host *host_of(const struct alb_search_store *store)
{
    return store->search->base.sides[store->side].host;
}

static uint64_t *words_of(const struct alb_search_store *store)
{
    return store->search->sides[store->side].words;
}

// ---- requests -------------------------------------------------------------------------------------------------------

static struct alb_search_store_record *append(struct alb_search_store *store)
{
    if (store->count == store->capacity) {
        store->capacity = store->capacity ? 2 * store->capacity : 256;
        store->records = realloc(store->records, store->capacity * sizeof(*store->records));
        alb_assert(store->records);
    }
    struct alb_search_store_record *record = &store->records[store->count++];
    *record = (struct alb_search_store_record){0};
    return record;
}

static void keep_parts(struct alb_search_store_record *record)
{
    struct alb_journal_request *request = &record->request;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < request->part_count; i++)
        bytes += request->parts[i].length;
    record->parts = calloc(request->part_count + 1, sizeof(*record->parts));
    record->bytes = malloc(bytes + 1);
    alb_assert(record->parts && record->bytes);
    uint8_t *to = record->bytes;
    for (uint32_t i = 0; i < request->part_count; i++) {
        record->parts[i] = request->parts[i];
        record->parts[i].bytes = memcpy(to, request->parts[i].bytes, request->parts[i].length);
        record->parts[i].region = NULL;
        to += request->parts[i].length;
    }
    request->parts = NULL;
}

// Now and then a disk takes as long as if it had stopped.
static alb_sim_time draw_delay(struct alb_search_store *store)
{
    struct alb_search *base = &store->search->base;
    bool is_stuck = store->is_bad && alb_search_percent(base, 6);
    return ALB_SIM_NS(1000) << alb_search_below(base, is_stuck ? 20 : 10);
}

static void schedule(struct alb_search_store *store)
{
    struct alb_sim_queue *queue = &store->search->base.pair.network.queue;
    alb_sim_time at = store->answered < store->count ? store->records[store->answered].due : ALB_SIM_NEVER;
    alb_sim_queue_schedule(queue, &store->event, at);
}

void alb_search_store_look(struct alb_search_store *store)
{
    struct alb_journal_request request;
    uint32_t before = store->count;
    if (!store->is_open)
        return;
    alb_sim_time now = alb_sim_network_now(&store->search->base.pair.network);
    while (alb_engine_journal(host_of(store)->engine, &request)) {
        alb_sim_time last = store->answered < store->count ? store->records[store->count - 1].due : now;
        struct alb_search_store_record *record = append(store);
        record->request = request;
        record->due = ALB_MAX(last, now + draw_delay(store));
        keep_parts(record);
    }
    if (store->count != before)
        schedule(store);
}

// ---- answers --------------------------------------------------------------------------------------------------------

static void checkpoint(struct alb_search_store *store)
{
    memcpy(store->checkpoint, words_of(store), SEARCH_TXN_WORDS * sizeof(uint64_t));
    store->checkpointed = store->answered;
}

static void answer(struct alb_search_store *store, struct alb_search_store_record *record)
{
    struct alb_search *base = &store->search->base;
    struct alb_sim_host *host = host_of(store);
    const struct alb_journal_request *request = &record->request;
    record->is_void = store->is_bad && request->kind != ALB_JOURNAL_ABORT && alb_search_percent(base, 15);
    store->answered++;
    store->search->result->journaled++;
    store->search->result->journal_errors += record->is_void;
    bool is_placed = alb_engine_journaled(host->engine, &request->id, request->kind, record->is_void ? EIO : 0,
                                          alb_sim_host_now(host));
    record->is_unplaced = request->kind == ALB_JOURNAL_COMMIT && !record->is_void && !is_placed;
    store->is_spoilt |= record->is_unplaced;
    store->search->result->unplaced += record->is_unplaced;
    alb_model_txn_observe(&store->search->model, store->side); // others may come over it before the engine runs
}

static void on_due(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_search_store *store = ALB_CONTAINER_OF(event, struct alb_search_store, event);
    while (store->answered < store->count && store->records[store->answered].due <= now)
        answer(store, &store->records[store->answered]);
    if (alb_search_percent(&store->search->base, 5) && !store->is_spoilt)
        checkpoint(store);
    alb_search_store_look(store);
    schedule(store);
    alb_sim_host_poke(host_of(store));
}

void alb_search_store_close(struct alb_search_store *store)
{
    alb_search_store_look(store);
    while (store->answered < store->count) {
        answer(store, &store->records[store->answered]);
        alb_search_store_look(store);
    }
    alb_sim_queue_cancel(&store->search->base.pair.network.queue, &store->event);
    if (!store->is_spoilt)
        checkpoint(store);
    store->is_open = false;
}

bool alb_search_store_was_unplaced(const struct alb_search_store *store, const struct alb_txn_id *id)
{
    for (uint32_t i = 0; i < store->answered; i++) {
        const struct alb_search_store_record *record = &store->records[i];
        if (record->is_unplaced && record->request.id.initiator == id->initiator &&
            record->request.id.number == id->number)
            return true;
    }
    return false;
}

// ---- crashes --------------------------------------------------------------------------------------------------------

static void drop_records(struct alb_search_store *store, uint32_t from)
{
    for (uint32_t i = from; i < store->count; i++) {
        free(store->records[i].parts);
        free(store->records[i].bytes);
    }
    store->count = ALB_MIN(store->count, from);
}

void alb_search_store_crash(struct alb_search_store *store)
{
    struct alb_search *base = &store->search->base;
    uint64_t *words = words_of(store);
    alb_sim_queue_cancel(&base->pair.network.queue, &store->event);
    store->is_open = false;
    drop_records(store, store->answered + alb_search_below(base, store->count - store->answered + 1));
    store->answered = store->count;
    if (alb_search_percent(base, 50)) // of the process alone
        return;
    for (uint32_t at = 0; at < SEARCH_TXN_WORDS; at++)
        if (alb_search_percent(base, 50))
            words[at] = store->checkpoint[at];
}

// ---- recovery -------------------------------------------------------------------------------------------------------

static uint32_t find(const struct ledger *ledger, const struct alb_txn_id *id)
{
    uint32_t i = 0;
    while (i < ledger->open_count &&
           (ledger->open[i]->request.id.initiator != id->initiator || ledger->open[i]->request.id.number != id->number))
        i++;
    return i;
}

static void drop(struct ledger *ledger, uint32_t i)
{
    ledger->open_count--;
    ledger->open[i] = ledger->open[ledger->open_count];
    ledger->is_committed[i] = ledger->is_committed[ledger->open_count];
}

static void pass(struct ledger *ledger, uint64_t initiator, uint64_t low_water)
{
    uint32_t m = 0;
    while (m < ledger->mark_count && ledger->marks[m].initiator != initiator)
        m++;
    if (m == ledger->mark_count) {
        alb_assert(m < MARKS_MAX);
        ledger->marks[ledger->mark_count++] = (struct mark){initiator, 0};
    }
    ledger->marks[m].low_water = ALB_MAX(ledger->marks[m].low_water, low_water);
    for (uint32_t i = ledger->open_count; i > 0; i--) {
        const struct alb_txn_id *id = &ledger->open[i - 1]->request.id;
        if (ledger->is_committed[i - 1] && id->initiator == initiator && id->number < ledger->marks[m].low_water)
            drop(ledger, i - 1);
    }
}

static void place(struct alb_search_store *store, const struct alb_search_store_record *prepared)
{
    for (uint32_t i = 0; i < prepared->request.part_count; i++)
        memcpy((uint8_t *)words_of(store) + prepared->parts[i].offset, prepared->parts[i].bytes,
               prepared->parts[i].length);
    store->search->result->redone++;
}

static void replay(struct alb_search_store *store, struct ledger *ledger, uint32_t index)
{
    const struct alb_search_store_record *record = &store->records[index];
    if (record->is_void)
        return;
    uint32_t i = find(ledger, &record->request.id);
    alb_assert((i == ledger->open_count) == (record->request.kind == ALB_JOURNAL_PREPARE)); // else the engine errs
    switch (record->request.kind) {
    case ALB_JOURNAL_PREPARE:
        ledger->is_committed[i] = false;
        ledger->open[ledger->open_count++] = record;
        break;
    case ALB_JOURNAL_COMMIT:
        alb_assert(!ledger->is_committed[i]);
        ledger->is_committed[i] = true;
        if (index >= store->checkpointed)
            place(store, ledger->open[i]);
        break;
    case ALB_JOURNAL_ABORT:
        alb_assert(!ledger->is_committed[i]);
        drop(ledger, i);
        break;
    }
    pass(ledger, record->request.id.initiator, record->request.low_water);
}

// One transaction of the journal, as the region is now.
static int restore_one(struct alb_search_store *store, const struct alb_search_store_record *prepared,
                       bool is_committed)
{
    struct alb_sim_host *host = host_of(store);
    struct alb_region *region = store->search->sides[store->side].mr;
    struct alb_journal_request request = prepared->request;
    struct alb_txn_part parts[ALB_TXN_WRITES_MAX];
    for (uint32_t i = 0; i < request.part_count; i++) {
        parts[i] = prepared->parts[i];
        parts[i].region = region;
    }
    for (uint32_t i = 0; i < request.condition_count; i++)
        request.conditions[i].region = region;
    request.parts = parts;
    request.store = store;
    int error = alb_engine_restore(host->engine, &request, is_committed, store->keeper, alb_sim_host_now(host));
    // The region was open in this life before: the engine remembers.
    return is_committed && (error == EEXIST || error == EBUSY) ? 0 : error;
}

static void restore(struct alb_search_store *store, struct ledger *ledger)
{
    struct alb_engine *engine = host_of(store)->engine;
    int error = 0;
    for (uint32_t i = 0; i < ledger->open_count && !error; i++) {
        store->search->result->bound_again += !ledger->is_committed[i];
        error = restore_one(store, ledger->open[i], ledger->is_committed[i]);
    }
    for (uint32_t m = 0; m < ledger->mark_count && !error; m++) {
        error =
            alb_engine_restore_initiator(engine, ledger->marks[m].initiator, ledger->marks[m].low_water, store->keeper);
        if (error == EBUSY) // connected, so that it is known
            error = 0;
    }
    if (error)
        alb_model_txn_fail(&store->search->model, "side %u: what its journal has cannot be restored: errno %d",
                           store->side, error);
}

void alb_search_store_open(struct alb_search_store *store)
{
    struct ledger *ledger = calloc(1, sizeof(*ledger));
    alb_assert(ledger);
    ledger->open = calloc(store->count + 1, sizeof(struct alb_search_store_record *));
    ledger->is_committed = calloc(store->count + 1, sizeof(bool));
    alb_assert(ledger->open && ledger->is_committed);
    alb_assert(alb_mr_set_store(store->search->sides[store->side].mr, store, store->keeper) == 0);
    for (uint32_t i = 0; i < store->count; i++)
        replay(store, ledger, i);
    alb_model_txn_recover(&store->search->model, store->side);
    restore(store, ledger);
    checkpoint(store);
    store->is_spoilt = false;
    store->is_open = true;
    alb_sim_host_poke(host_of(store)); // what is bound, and cannot stay so, is given up
    free(ledger->open);
    free(ledger->is_committed);
    free(ledger);
}

// ---- life -----------------------------------------------------------------------------------------------------------

void alb_search_store_init(struct alb_search_store *store, struct alb_search_txn *search, uint32_t side)
{
    *store = (struct alb_search_store){.search = search, .side = side, .keeper = 0x1000 + side};
    alb_sim_event_init(&store->event, on_due);
    store->checkpoint = calloc(SEARCH_TXN_WORDS, sizeof(uint64_t));
    alb_assert(store->checkpoint);
    memcpy(store->checkpoint, words_of(store), SEARCH_TXN_WORDS * sizeof(uint64_t));
}

void alb_search_store_fini(struct alb_search_store *store)
{
    alb_sim_queue_cancel(&store->search->base.pair.network.queue, &store->event);
    drop_records(store, 0);
    free(store->records);
    free(store->checkpoint);
}
