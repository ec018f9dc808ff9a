// SPDX-License-Identifier: BSD-2-Clause
// What a target keeps: a record of each transaction, and for each initiator the number below which it keeps none. For
// what is not kept any more the answer is "unknown": forgetting never makes an answer wrong.
#include "engine/impl.h"

#include <errno.h>

// One that waits asks every 100 ms: who has been silent for so long knows how all that has ended did.
#define SILENT_NS (10 * ALB_NS_PER_S)

#define VOUCHERS_OF_EACH 4 // on average, for which there is room

// ---- the engine's part ----------------------------------------------------------------------------------------------

static struct alb_map *create_map(struct alb_engine *engine, uint32_t key_bytes)
{
    uint32_t capacity = engine->config.txn_record_max;
    struct alb_siphash_key hash_key;
    alb_rng_fill(&engine->rng, &hash_key, sizeof(hash_key));
    struct alb_map *map = alb_engine_get_memory(engine, sizeof(*map) + alb_map_bytes(capacity, key_bytes));
    if (map)
        alb_map_init_zeroed(map, capacity, key_bytes, map + 1, &hash_key);
    return map;
}

static void destroy_map(struct alb_engine *engine, struct alb_map *map)
{
    if (map)
        alb_engine_put_memory(engine, map, sizeof(*map) + alb_map_bytes(map->capacity, map->key_bytes));
}

static int create_arena(struct alb_engine *engine, struct alb_reflect_arena *arena, size_t bytes)
{
    arena->bytes = bytes;
    arena->memory = alb_engine_get_memory(engine, bytes);
    arena->bookkeeping = alb_engine_get_memory(engine, alb_buddy_bookkeeping_bytes(bytes));
    if (!arena->memory || !arena->bookkeeping)
        return ENOMEM;
    alb_buddy_init(&arena->buddy, arena->memory, bytes, arena->bookkeeping);
    return 0;
}

static void destroy_arena(struct alb_engine *engine, struct alb_reflect_arena *arena)
{
    if (arena->bytes == 0)
        return;
    alb_engine_put_memory(engine, arena->bookkeeping, alb_buddy_bookkeeping_bytes(arena->bytes));
    alb_engine_put_memory(engine, arena->memory, arena->bytes);
}

static size_t table_bytes(const struct alb_engine_config *config)
{
    return config->txn_record_max *
           (alb_buddy_block_bytes(sizeof(struct alb_txn_in)) + alb_buddy_block_bytes(sizeof(struct alb_txn_initiator)) +
            VOUCHERS_OF_EACH * alb_buddy_block_bytes(sizeof(struct alb_txn_voucher)));
}

int alb_reflect_engine_create(struct alb_engine *engine)
{
    const struct alb_engine_config *config = &engine->config;
    struct alb_reflect_engine *reflect = alb_engine_get_memory(engine, sizeof(*reflect));
    if (!reflect)
        return ENOMEM;
    engine->reflect = reflect;
    alb_list_init(&reflect->orphans);
    alb_list_init(&reflect->connected);
    alb_list_init(&reflect->proposals);
    alb_list_init(&reflect->journal);
    alb_event_node_init(&reflect->event, ALB_EVENT_OF_REFLECT);
    do
        reflect->keeper = alb_rng_u64(&engine->rng);
    while (reflect->keeper == 0);
    if (config->txn_staging_bytes == 0)
        return 0;
    reflect->records = create_map(engine, sizeof(struct alb_txn_id));
    reflect->initiators = create_map(engine, sizeof(uint64_t));
    if (!reflect->records || !reflect->initiators)
        return ENOMEM;
    int error = create_arena(engine, &reflect->staging, config->txn_staging_bytes);
    return error ? error : create_arena(engine, &reflect->table, table_bytes(config));
}

void alb_reflect_engine_destroy(struct alb_engine *engine)
{
    struct alb_reflect_engine *reflect = engine->reflect;
    if (!reflect)
        return;
    alb_event_node_fini(&reflect->event);
    destroy_map(engine, reflect->records);
    destroy_map(engine, reflect->initiators);
    destroy_map(engine, reflect->journals);
    destroy_arena(engine, &reflect->staging);
    destroy_arena(engine, &reflect->table);
    alb_engine_put_memory(engine, reflect, sizeof(*reflect));
    engine->reflect = NULL;
}

static void *get(struct alb_reflect_arena *arena, size_t bytes)
{
    return arena->memory ? alb_buddy_get(&arena->buddy, bytes) : NULL;
}

static void put(struct alb_reflect_arena *arena, void *memory, size_t bytes)
{
    alb_buddy_put(&arena->buddy, memory, bytes);
}

// ---- initiators -----------------------------------------------------------------------------------------------------

struct alb_txn_initiator *alb_txn_initiator_find(struct alb_engine *engine, uint64_t id)
{
    return engine->reflect->initiators ? alb_map_find_pointer(engine->reflect->initiators, &id) : NULL;
}

static void forget(struct alb_engine *engine, struct alb_txn_initiator *initiator)
{
    ALB_LIST_FOR_EACH (&initiator->records, node)
        alb_txn_in_destroy(ALB_LIST_ENTRY(node, struct alb_txn_in, of_initiator));
    ALB_LIST_FOR_EACH (&initiator->vouchers, node)
        put(&engine->reflect->table, ALB_LIST_ENTRY(node, struct alb_txn_voucher, link),
            sizeof(struct alb_txn_voucher));
    alb_list_remove(&initiator->line);
    alb_map_remove(engine->reflect->initiators, &initiator->id, NULL);
    put(&engine->reflect->table, initiator, sizeof(*initiator));
}

static bool is_over(const struct alb_txn_in *txn)
{
    return alb_txn_state_is_end(txn->state) && !txn->is_taken && txn->state != ALB_TXN_UNKNOWN;
}

// NULL: each is over.
static const struct alb_txn_in *first_open(const struct alb_txn_initiator *initiator)
{
    ALB_LIST_FOR_EACH (&initiator->records, node) {
        const struct alb_txn_in *txn = ALB_LIST_ENTRY(node, struct alb_txn_in, of_initiator);
        if (!is_over(txn))
            return txn;
    }
    return NULL;
}

// Of the one that has been gone for longest. False: each has something open.
static bool forget_orphan(struct alb_engine *engine, const struct alb_txn_initiator *keep)
{
    ALB_LIST_FOR_EACH (&engine->reflect->orphans, node) {
        struct alb_txn_initiator *initiator = ALB_LIST_ENTRY(node, struct alb_txn_initiator, line);
        if (initiator != keep && !first_open(initiator)) {
            forget(engine, initiator);
            return true;
        }
    }
    return false;
}

// False: there was none.
static bool drop_below(struct alb_txn_initiator *initiator, uint64_t low_water)
{
    bool has_dropped = false;
    initiator->low_water = ALB_MAX(initiator->low_water, low_water);
    ALB_LIST_FOR_EACH (&initiator->records, node) {
        struct alb_txn_in *txn = ALB_LIST_ENTRY(node, struct alb_txn_in, of_initiator);
        if (txn->id.number >= low_water)
            break;
        if (!is_over(txn))
            continue;
        alb_txn_in_destroy(txn);
        has_dropped = true;
    }
    return has_dropped;
}

// What is over of one that is connected, but silent: as if it had said so. Some of it may be what was not over when it
// did say so. False: nothing is.
static bool forget_outcomes(struct alb_engine *engine, const struct alb_txn_initiator *keep)
{
    ALB_LIST_FOR_EACH (&engine->reflect->connected, node) {
        struct alb_txn_initiator *initiator = ALB_LIST_ENTRY(node, struct alb_txn_initiator, line);
        if (engine->now < initiator->heard_at + SILENT_NS)
            break;
        const struct alb_txn_in *open = first_open(initiator);
        if (initiator != keep && drop_below(initiator, open ? open->id.number : initiator->next))
            return true;
    }
    return false;
}

// Makes room in the table, not at the cost of keep (or NULL). False: there is nothing that may be forgotten.
static bool forget_one(struct alb_engine *engine, const struct alb_txn_initiator *keep)
{
    return forget_orphan(engine, keep) || forget_outcomes(engine, keep);
}

static void *get_or_forget_but(struct alb_engine *engine, size_t bytes, const struct alb_txn_initiator *keep)
{
    void *memory;
    while (!(memory = get(&engine->reflect->table, bytes)) && forget_one(engine, keep))
        ;
    return memory;
}

static void *get_or_forget(struct alb_engine *engine, size_t bytes)
{
    return get_or_forget_but(engine, bytes, NULL);
}

struct alb_txn_initiator *alb_txn_initiator_get(struct alb_engine *engine, uint64_t id, struct alb_reflect_in *in)
{
    struct alb_reflect_engine *reflect = engine->reflect;
    struct alb_txn_initiator *initiator = alb_txn_initiator_find(engine, id);
    if (initiator)
        return initiator->in == in ? initiator : NULL;
    initiator = get_or_forget(engine, sizeof(*initiator));
    if (!initiator)
        return NULL;
    *initiator = (struct alb_txn_initiator){.id = id, .low_water = 1, .next = 1, .in = in, .is_restored = !in};
    alb_list_init(&initiator->line);
    alb_list_init(&initiator->records);
    alb_list_init(&initiator->vouchers);
    while (alb_map_insert(reflect->initiators, &id, (uint64_t)(uintptr_t)initiator) == ALB_MAP_FULL) {
        if (forget_orphan(engine, NULL))
            continue;
        put(&reflect->table, initiator, sizeof(*initiator));
        return NULL;
    }
    alb_list_push_back(in ? &reflect->connected : &reflect->orphans, &initiator->line);
    initiator->heard_at = engine->now;
    return initiator;
}

void alb_txn_initiator_heard(struct alb_engine *engine, struct alb_txn_initiator *initiator)
{
    if (!initiator->in)
        return;
    initiator->heard_at = engine->now;
    alb_list_remove(&initiator->line);
    alb_list_push_back(&engine->reflect->connected, &initiator->line);
}

// Of what is below, the initiator knows the outcome, and will not ask.
void alb_txn_initiator_pass(struct alb_txn_initiator *initiator, uint64_t low_water)
{
    if (low_water > initiator->low_water && low_water <= initiator->next)
        drop_below(initiator, low_water);
}

bool alb_txn_initiator_is_vouched(const struct alb_txn_initiator *initiator, uint64_t keeper)
{
    ALB_LIST_FOR_EACH (&initiator->vouchers, node)
        if (ALB_LIST_ENTRY(node, const struct alb_txn_voucher, link)->keeper == keeper)
            return true;
    return false;
}

int alb_txn_initiator_vouch(struct alb_txn_initiator *initiator, struct alb_engine *engine, uint64_t keeper)
{
    if (alb_txn_initiator_is_vouched(initiator, keeper))
        return 0;
    struct alb_txn_voucher *voucher = get_or_forget_but(engine, sizeof(*voucher), initiator);
    if (!voucher)
        return ENOMEM;
    voucher->keeper = keeper;
    alb_list_push_back(&initiator->vouchers, &voucher->link);
    return 0;
}

void alb_txn_initiator_orphan(struct alb_engine *engine, struct alb_txn_initiator *initiator)
{
    initiator->in = NULL;
    alb_list_remove(&initiator->line);
    alb_list_push_back(&engine->reflect->orphans, &initiator->line);
}

// ---- records --------------------------------------------------------------------------------------------------------

struct alb_txn_in *alb_txn_in_find(struct alb_engine *engine, const struct alb_txn_id *id)
{
    return engine->reflect->records ? alb_map_find_pointer(engine->reflect->records, id) : NULL;
}

struct alb_txn_in *alb_txn_in_create(struct alb_engine *engine)
{
    struct alb_txn_in *txn = get_or_forget(engine, sizeof(*txn));
    if (!txn)
        return NULL;
    *txn = (struct alb_txn_in){.engine = engine, .state = ALB_TXN_TENTATIVE, .keeper = engine->reflect->keeper};
    alb_list_init(&txn->of_initiator);
    alb_list_init(&txn->due);
    alb_list_init(&txn->queue);
    alb_list_init(&txn->ranges);
    alb_deadline_init(&txn->lease, alb_txn_in_on_lease);
    return txn;
}

// Behind those with lower numbers: mostly the last one.
static void line_up(struct alb_txn_initiator *initiator, struct alb_txn_in *txn)
{
    struct alb_list *before = initiator->records.prev;
    while (before != &initiator->records &&
           ALB_LIST_ENTRY(before, struct alb_txn_in, of_initiator)->id.number > txn->id.number)
        before = before->prev;
    alb_list_push_front(before, &txn->of_initiator);
}

// ALB_TXN_MALFORMED: there is one of that number.
static enum alb_txn_reason enter(struct alb_txn_in *txn, struct alb_txn_initiator *initiator, uint64_t number)
{
    struct alb_engine *engine = txn->engine;
    txn->id = (struct alb_txn_id){.initiator = initiator->id, .number = number};
    enum alb_map_insert inserted;
    while ((inserted = alb_map_insert(engine->reflect->records, &txn->id, (uint64_t)(uintptr_t)txn)) == ALB_MAP_FULL)
        if (!forget_one(engine, initiator))
            return ALB_TXN_NO_MEMORY;
    if (inserted != ALB_MAP_INSERTED)
        return ALB_TXN_MALFORMED;
    initiator->next = ALB_MAX(initiator->next, number + 1);
    alb_txn_initiator_heard(engine, initiator);
    txn->initiator = initiator;
    txn->in = NULL;
    line_up(initiator, txn);
    return ALB_TXN_OK;
}

enum alb_txn_reason alb_txn_in_name(struct alb_txn_in *txn, struct alb_txn_initiator *initiator, uint64_t number)
{
    if (number < initiator->next || number == UINT64_MAX) // behind the last one there is no next
        return ALB_TXN_MALFORMED;
    return enter(txn, initiator, number);
}

int alb_txn_in_name_again(struct alb_txn_in *txn, struct alb_txn_initiator *initiator, uint64_t number)
{
    enum alb_txn_reason reason = enter(txn, initiator, number);
    if (reason == ALB_TXN_OK)
        return 0;
    return reason == ALB_TXN_MALFORMED ? EEXIST : ENOMEM;
}

void alb_txn_in_destroy(struct alb_txn_in *txn)
{
    struct alb_engine *engine = txn->engine;
    alb_txn_in_release(txn);
    alb_wheel_disarm(&engine->wheel, &txn->lease.timer);
    alb_list_remove(&txn->of_initiator);
    alb_list_remove(&txn->due);
    alb_list_remove(&txn->queue);
    if (txn->initiator)
        alb_map_remove(engine->reflect->records, &txn->id, NULL);
    put(&engine->reflect->table, txn, sizeof(*txn));
}

// ---- ranges ---------------------------------------------------------------------------------------------------------

static void on_gone(struct alb_claim *claim)
{
    struct alb_txn_range *range = ALB_CONTAINER_OF(claim, struct alb_txn_range, claim);
    range->is_claimed = false;
    // A window is the right to begin. Were the range free from here on, the next opening of the journal would write
    // this transaction over what has come since.
    if (range->txn->state != ALB_TXN_COMMITTING || !alb_txn_range_claim_root(range))
        alb_txn_in_lost_region(range->txn);
}

struct alb_txn_range *alb_txn_range_create(struct alb_txn_in *txn, uint64_t length)
{
    struct alb_txn_range *range = get(&txn->engine->reflect->staging, sizeof(*range) + length);
    if (!range)
        return NULL;
    *range = (struct alb_txn_range){.txn = txn, .staged_bytes = length};
    alb_claim_init(&range->claim, txn, on_gone);
    alb_list_push_back(&txn->ranges, &range->link);
    return range;
}

// Memory and claims go back; what the driver looks at stays until it has answered.
void alb_txn_in_release(struct alb_txn_in *txn)
{
    struct alb_reflect_arena *staging = &txn->engine->reflect->staging;
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        alb_region_unclaim(&range->claim);
        range->is_claimed = false;
        if (txn->is_taken)
            continue;
        alb_list_remove(&range->link);
        put(staging, range, sizeof(*range) + range->staged_bytes);
    }
    if (txn->parts && !txn->is_taken) {
        put(staging, txn->parts, txn->part_count * sizeof(*txn->parts));
        txn->parts = NULL;
    }
}

bool alb_txn_in_list_parts(struct alb_txn_in *txn)
{
    if (txn->parts)
        return true;
    txn->parts = get(&txn->engine->reflect->staging, txn->part_count * sizeof(*txn->parts));
    if (!txn->parts)
        return false;
    uint32_t i = 0;
    ALB_LIST_FOR_EACH (&txn->ranges, node) {
        const struct alb_txn_range *range = ALB_LIST_ENTRY(node, struct alb_txn_range, link);
        if (!range->is_compare)
            txn->parts[i++] = (struct alb_txn_part){
                .region = range->length ? alb_region_root(range->region) : NULL,
                .offset = range->length ? (uint64_t)(range->host - alb_region_root(range->region)->host) : 0,
                .length = range->length,
                .va = range->va,
                .rkey = range->rkey,
                .bytes = txn->is_in_place ? range->host : range->bytes,
            };
    }
    return true;
}

int alb_reflect_in_reserve(struct alb_csa *csa)
{
    struct alb_engine *engine = csa->qp->engine;
    if (csa->qp->type != ALB_QPT_RC || engine->config.txn_staging_bytes == 0)
        return 0;
    csa->reflect_room = alb_engine_get_memory(engine, sizeof(*csa->reflect_room));
    return csa->reflect_room ? 0 : ENOMEM;
}

struct alb_reflect_in *alb_reflect_in_get(struct alb_csa *csa)
{
    struct alb_reflect_in *in = csa->reflect_room;
    if (csa->reflect_in || !in)
        return csa->reflect_in;
    memset(in, 0, sizeof(*in));
    in->csa = csa;
    in->source.add = alb_reflect_in_add;
    alb_list_init(&in->source.link);
    alb_list_init(&in->due);
    alb_deadline_init(&in->notice_timer, alb_reflect_in_on_notice_timer);
    csa->reflect_in = in;
    return in;
}
