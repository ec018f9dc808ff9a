// SPDX-License-Identifier: BSD-2-Clause
// What a journal still has to know.
#include "device/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

static size_t map_bytes(uint32_t key_bytes)
{
    return (alb_map_bytes(ALB_LEDGER_MAX, key_bytes) + 63) / 64 * 64;
}

static size_t memory_bytes(void)
{
    return map_bytes(sizeof(struct alb_txn_id)) + map_bytes(sizeof(uint64_t));
}

int alb_ledger_init(struct alb_ledger *ledger)
{
    struct alb_siphash_key key;
    *ledger = (struct alb_ledger){0};
    alb_list_init(&ledger->entries);
    alb_list_init(&ledger->idle);
    if (getrandom(&key, sizeof(key), 0) != sizeof(key))
        return ENOMEM;
    uint8_t *memory =
        mmap(NULL, memory_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return ENOMEM;
    ledger->memory = memory;
    alb_map_init_zeroed(&ledger->by_id, ALB_LEDGER_MAX, sizeof(struct alb_txn_id), memory, &key);
    alb_map_init_zeroed(&ledger->initiators, ALB_LEDGER_MAX, sizeof(uint64_t),
                        memory + map_bytes(sizeof(struct alb_txn_id)), &key);
    return 0;
}

static void forget_initiator(struct alb_ledger *ledger, struct alb_ledger_initiator *initiator)
{
    alb_list_remove(&initiator->link);
    alb_map_remove(&ledger->initiators, &initiator->name, NULL);
    free(initiator);
}

void alb_ledger_fini(struct alb_ledger *ledger)
{
    ALB_LIST_FOR_EACH (&ledger->entries, node)
        alb_ledger_drop(ledger, ALB_LIST_ENTRY(node, struct alb_ledger_entry, link));
    ALB_LIST_FOR_EACH (&ledger->idle, node)
        forget_initiator(ledger, ALB_LIST_ENTRY(node, struct alb_ledger_initiator, link));
    if (ledger->memory)
        munmap(ledger->memory, memory_bytes());
    ledger->memory = NULL;
}

uint32_t alb_ledger_count(const struct alb_ledger *ledger)
{
    return alb_map_count(&ledger->by_id);
}

struct alb_ledger_entry *alb_ledger_find(struct alb_ledger *ledger, const struct alb_txn_id *id)
{
    return alb_map_find_pointer(&ledger->by_id, id);
}

static struct alb_ledger_initiator *find_initiator(const struct alb_ledger *ledger, uint64_t name)
{
    return alb_map_find_pointer(&ledger->initiators, &name);
}

// ENOSPC: none can be forgotten for it, since all have entries; ENOMEM.
static int get_initiator(struct alb_ledger *ledger, uint64_t name, struct alb_ledger_initiator **out)
{
    *out = find_initiator(ledger, name);
    if (*out)
        return 0;
    if (alb_map_count(&ledger->initiators) == ALB_LEDGER_MAX) {
        if (alb_list_is_empty(&ledger->idle))
            return ENOSPC;
        forget_initiator(ledger, ALB_LIST_ENTRY(ledger->idle.next, struct alb_ledger_initiator, link));
    }
    struct alb_ledger_initiator *initiator = calloc(1, sizeof(*initiator));
    if (!initiator)
        return ENOMEM;
    initiator->name = name;
    alb_list_init(&initiator->entries);
    alb_list_push_back(&ledger->idle, &initiator->link);
    alb_assert(alb_map_insert(&ledger->initiators, &name, (uintptr_t)initiator) == ALB_MAP_INSERTED);
    *out = initiator;
    return 0;
}

int alb_ledger_know(struct alb_ledger *ledger, uint64_t name, uint64_t low_water)
{
    struct alb_ledger_initiator *initiator;
    int error = get_initiator(ledger, name, &initiator);
    if (error)
        return error;
    initiator->low_water = ALB_MAX(initiator->low_water, low_water);
    return 0;
}

uint32_t alb_ledger_initiator_count(const struct alb_ledger *ledger)
{
    return alb_map_count(&ledger->initiators);
}

const struct alb_ledger_initiator *alb_ledger_initiator_at(const struct alb_ledger *ledger, uint32_t index)
{
    const void *name;
    return (const struct alb_ledger_initiator *)(uintptr_t)alb_map_at(&ledger->initiators, index, &name);
}

int alb_ledger_add(struct alb_ledger *ledger, const struct alb_txn_id *id, struct alb_ledger_entry **out)
{
    if (alb_ledger_find(ledger, id))
        return EEXIST;
    if (alb_ledger_count(ledger) == ALB_LEDGER_MAX)
        return ENOSPC;
    struct alb_ledger_entry *entry = calloc(1, sizeof(*entry));
    struct alb_ledger_initiator *initiator;
    int error = entry ? get_initiator(ledger, id->initiator, &initiator) : ENOMEM;
    if (error) {
        free(entry);
        return error;
    }
    entry->id = *id;
    alb_list_push_back(&ledger->entries, &entry->link);
    alb_list_remove(&initiator->link);
    alb_list_push_back(&initiator->entries, &entry->of_initiator);
    alb_assert(alb_map_insert(&ledger->by_id, id, (uintptr_t)entry) == ALB_MAP_INSERTED);
    ledger->bound_count++;
    *out = entry;
    return 0;
}

void alb_ledger_commit(struct alb_ledger *ledger, struct alb_ledger_entry *entry)
{
    if (entry->is_committed)
        return;
    entry->is_committed = true;
    ledger->bound_count--;
    alb_list_remove(&entry->link);
    alb_list_push_back(&ledger->entries, &entry->link);
    alb_list_remove(&entry->of_initiator);
    alb_list_push_back(&find_initiator(ledger, entry->id.initiator)->entries, &entry->of_initiator);
}

void alb_ledger_drop(struct alb_ledger *ledger, struct alb_ledger_entry *entry)
{
    struct alb_ledger_initiator *initiator = find_initiator(ledger, entry->id.initiator);
    ledger->bound_count -= !entry->is_committed;
    alb_list_remove(&entry->link);
    alb_list_remove(&entry->of_initiator);
    alb_map_remove(&ledger->by_id, &entry->id, NULL);
    free(entry);
    if (alb_list_is_empty(&initiator->entries))
        alb_list_push_back(&ledger->idle, &initiator->link);
}

static bool is_over(const struct alb_ledger_entry *entry)
{
    return entry->is_committed && entry->is_placed;
}

void alb_ledger_pass(struct alb_ledger *ledger, uint64_t name, uint64_t low_water)
{
    struct alb_ledger_initiator *initiator = find_initiator(ledger, name);
    if (!initiator || low_water <= initiator->low_water)
        return;
    initiator->low_water = low_water;
    ALB_LIST_FOR_EACH (&initiator->entries, node) {
        struct alb_ledger_entry *entry = ALB_LIST_ENTRY(node, struct alb_ledger_entry, of_initiator);
        if (entry->id.number < low_water && is_over(entry))
            alb_ledger_drop(ledger, entry);
    }
}

uint32_t alb_ledger_forget(struct alb_ledger *ledger)
{
    uint32_t over = 0, dropped = 0;
    ALB_LIST_FOR_EACH (&ledger->entries, node)
        over += is_over(ALB_LIST_ENTRY(node, struct alb_ledger_entry, link));
    ALB_LIST_FOR_EACH (&ledger->entries, node) {
        struct alb_ledger_entry *entry = ALB_LIST_ENTRY(node, struct alb_ledger_entry, link);
        if (!is_over(entry) || dropped == (over + 1) / 2)
            continue;
        struct alb_ledger_initiator *initiator = find_initiator(ledger, entry->id.initiator);
        initiator->low_water = ALB_MAX(initiator->low_water, entry->id.number + 1);
        alb_ledger_drop(ledger, entry);
        dropped++;
    }
    return dropped;
}
