// SPDX-License-Identifier: BSD-2-Clause
// What a journal still has to know.
#include "device/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

struct initiator {
    struct alb_list entries;
    uint64_t name;
    uint64_t low_water; // what lay below has been dropped
};

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

void alb_ledger_fini(struct alb_ledger *ledger)
{
    ALB_LIST_FOR_EACH (&ledger->entries, node)
        alb_ledger_drop(ledger, ALB_LIST_ENTRY(node, struct alb_ledger_entry, link));
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

static struct initiator *get_initiator(struct alb_ledger *ledger, uint64_t name)
{
    struct initiator *initiator = alb_map_find_pointer(&ledger->initiators, &name);
    if (initiator)
        return initiator;
    initiator = malloc(sizeof(*initiator));
    if (!initiator)
        return NULL;
    initiator->name = name;
    initiator->low_water = 0;
    alb_list_init(&initiator->entries);
    // It has an entry each, so that this map is full no sooner than the other one.
    alb_assert(alb_map_insert(&ledger->initiators, &name, (uintptr_t)initiator) == ALB_MAP_INSERTED);
    return initiator;
}

int alb_ledger_add(struct alb_ledger *ledger, const struct alb_txn_id *id, struct alb_ledger_entry **out)
{
    if (alb_ledger_find(ledger, id))
        return EEXIST;
    if (alb_ledger_count(ledger) == ALB_LEDGER_MAX)
        return ENOSPC;
    struct alb_ledger_entry *entry = calloc(1, sizeof(*entry));
    struct initiator *initiator = entry ? get_initiator(ledger, id->initiator) : NULL;
    if (!initiator) {
        free(entry);
        return ENOMEM;
    }
    entry->id = *id;
    alb_list_push_back(&ledger->entries, &entry->link);
    alb_list_push_back(&initiator->entries, &entry->of_initiator);
    alb_assert(alb_map_insert(&ledger->by_id, id, (uintptr_t)entry) == ALB_MAP_INSERTED);
    ledger->bound_count++;
    *out = entry;
    return 0;
}

static struct initiator *initiator_of(struct alb_ledger *ledger, const struct alb_ledger_entry *entry)
{
    return alb_map_find_pointer(&ledger->initiators, &entry->id.initiator);
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
    alb_list_push_back(&initiator_of(ledger, entry)->entries, &entry->of_initiator);
}

void alb_ledger_drop(struct alb_ledger *ledger, struct alb_ledger_entry *entry)
{
    struct initiator *initiator = initiator_of(ledger, entry);
    ledger->bound_count -= !entry->is_committed;
    alb_list_remove(&entry->link);
    alb_list_remove(&entry->of_initiator);
    alb_map_remove(&ledger->by_id, &entry->id, NULL);
    free(entry);
    if (alb_list_is_empty(&initiator->entries)) {
        alb_map_remove(&ledger->initiators, &initiator->name, NULL);
        free(initiator);
    }
}

static bool is_over(const struct alb_ledger_entry *entry)
{
    return entry->is_committed && entry->is_placed;
}

void alb_ledger_pass(struct alb_ledger *ledger, uint64_t name, uint64_t low_water)
{
    struct initiator *initiator = alb_map_find_pointer(&ledger->initiators, &name);
    if (!initiator || low_water <= initiator->low_water)
        return;
    initiator->low_water = low_water;
    struct alb_list *node = initiator->entries.next;
    for (bool is_last = false; !is_last;) {
        struct alb_ledger_entry *entry = ALB_LIST_ENTRY(node, struct alb_ledger_entry, of_initiator);
        is_last = node->next == &initiator->entries; // who goes with its last entry
        node = node->next;
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
        alb_ledger_drop(ledger, entry);
        dropped++;
    }
    return dropped;
}
