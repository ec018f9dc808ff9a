// SPDX-License-Identifier: BSD-2-Clause
// The table of communication ids, and the maps by which messages find theirs. All memory is taken when the manager
// opens; an id that was never used costs nothing but address space.
#include "engine/cm_impl.h"

#include <errno.h>

enum {
    RING_MIN = 64,
    RING_MAX = 1024,
    KEPT_PART = 8, // of the table, one part in so many is kept from strangers
};

enum peer_kind {
    KIND_REMOTE_ID,
    KIND_QUESTION,
    KIND_QPN,
};

struct peer_key {
    struct alb_addr addr;
    uint32_t kind;
    uint32_t number;
};

struct listen_key {
    struct alb_addr addr;
    uint64_t service_id;
};

// Each id has a remote id and a queue pair number at the most.
static uint32_t peers_max(uint32_t ids_max)
{
    return 2 * ids_max;
}

static uint32_t ring_capacity(uint32_t ids_max)
{
    uint32_t capacity = RING_MIN;
    while (capacity < ids_max && capacity < RING_MAX)
        capacity *= 2;
    return capacity;
}

static void free_memory(struct alb_engine *engine, struct alb_cm *cm)
{
    alb_gsi_fini(&cm->gsi, engine);
    alb_engine_put_memory(engine, cm->peers_memory, alb_map_bytes(peers_max(cm->ids_max), sizeof(struct peer_key)));
    alb_engine_put_memory(engine, cm->listeners_memory, alb_map_bytes(cm->ids_max, sizeof(struct listen_key)));
    alb_engine_put_memory(engine, cm->ids, cm->ids_max * sizeof(*cm->ids));
    alb_engine_put_memory(engine, cm, sizeof(*cm));
}

static int get_memory(struct alb_engine *engine, struct alb_cm *cm)
{
    struct alb_siphash_key hash_key;
    uint32_t ids_max = cm->ids_max;
    cm->ids = alb_engine_get_memory(engine, ids_max * sizeof(*cm->ids));
    cm->peers_memory = alb_engine_get_memory(engine, alb_map_bytes(peers_max(ids_max), sizeof(struct peer_key)));
    cm->listeners_memory = alb_engine_get_memory(engine, alb_map_bytes(ids_max, sizeof(struct listen_key)));
    if (!cm->ids || !cm->peers_memory || !cm->listeners_memory)
        return ENOMEM;
    alb_rng_fill(&engine->rng, &hash_key, sizeof(hash_key));
    alb_map_init_zeroed(&cm->peers, peers_max(ids_max), sizeof(struct peer_key), cm->peers_memory, &hash_key);
    alb_rng_fill(&engine->rng, &hash_key, sizeof(hash_key));
    alb_map_init_zeroed(&cm->listeners, ids_max, sizeof(struct listen_key), cm->listeners_memory, &hash_key);
    return alb_gsi_init(&cm->gsi, engine, ring_capacity(ids_max));
}

int alb_cm_create(struct alb_engine *engine, uint32_t ids_max, void *user)
{
    if (ids_max == 0 || ids_max > 65536)
        return EINVAL;
    if (engine->cm)
        return EBUSY;
    struct alb_cm *cm = alb_engine_get_memory(engine, sizeof(*cm));
    if (!cm)
        return ENOMEM;
    cm->user = user;
    cm->ids_max = ids_max;
    cm->salt = (uint16_t)alb_rng_u32(&engine->rng);
    alb_event_node_init(&cm->event, ALB_EVENT_OF_CM);
    alb_list_init(&cm->free);
    alb_list_init(&cm->lingering);
    alb_list_init(&cm->events);
    int error = get_memory(engine, cm);
    if (error) {
        free_memory(engine, cm);
        return error;
    }
    engine->cm = cm;
    return 0;
}

void alb_cm_destroy(struct alb_engine *engine)
{
    struct alb_cm *cm = engine->cm;
    if (!cm)
        return;
    for (uint32_t i = 0; i < cm->ids_touched; i++) {
        alb_assert(!cm->ids[i].is_used || cm->ids[i].is_orphan);
        if (cm->ids[i].is_used)
            alb_cm_disarm(&cm->ids[i]);
    }
    alb_event_node_fini(&cm->event);
    engine->cm = NULL;
    free_memory(engine, cm);
}

void alb_cm_set_user(struct alb_engine *engine, void *user)
{
    engine->cm->user = user;
}

uint32_t alb_cm_id_count(const struct alb_engine *engine)
{
    return engine->cm ? engine->cm->used : 0;
}

// ---- taking and giving back -----------------------------------------------------------------------------------------

static struct alb_cm_id *find_free(struct alb_cm *cm)
{
    if (alb_list_is_empty(&cm->free) && cm->ids_touched < cm->ids_max)
        return &cm->ids[cm->ids_touched++];
    if (alb_list_is_empty(&cm->free) && !alb_list_is_empty(&cm->lingering))
        alb_cm_set_state(ALB_LIST_ENTRY(cm->lingering.next, struct alb_cm_id, link), ALB_CM_IDLE);
    struct alb_list *node = alb_list_pop(&cm->free);
    return node ? ALB_LIST_ENTRY(node, struct alb_cm_id, link) : NULL;
}

// The peers of those before keep their numbers for a while: one of a place comes back after 255 others, and the places
// are salted, so that a process does not begin with the numbers of the one before it in its slot. Never 0: that stands
// for a number that is not known.
static uint32_t next_number(struct alb_engine *engine, const struct alb_cm_id *id)
{
    uint32_t before = id->local_id >> 16 & 255;
    uint32_t generation = before ? before % 255 + 1 : alb_rng_below(&engine->rng, 255) + 1;
    uint32_t place = (uint32_t)(id - engine->cm->ids) ^ engine->cm->salt;
    return (uint32_t)engine->config.slot << 24 | generation << 16 | place;
}

struct alb_cm_id *alb_cm_take(struct alb_engine *engine)
{
    struct alb_cm *cm = engine->cm;
    struct alb_cm_id *id = find_free(cm);
    if (!id)
        return NULL;
    uint32_t number = next_number(engine, id);
    memset(id, 0, sizeof(*id));
    id->engine = engine;
    id->is_used = true;
    id->local_id = number;
    alb_list_init(&id->link);
    alb_list_init(&id->event_link);
    alb_list_init(&id->untaken);
    alb_list_init(&id->sibling);
    alb_cm_timer_init(id);
    cm->used++;
    return id;
}

bool alb_cm_has_room_for_strangers(const struct alb_cm *cm)
{
    return cm->used - cm->lingering_count < cm->ids_max - cm->ids_max / KEPT_PART;
}

void alb_cm_release(struct alb_cm_id *id)
{
    struct alb_cm *cm = id->engine->cm;
    alb_assert(id->is_used && id->state == ALB_CM_IDLE && !id->is_remote_known && !id->is_qpn_known);
    alb_cm_forget_events(id);
    alb_cm_leave_listener(id);
    if (alb_list_is_linked(&id->link))
        cm->lingering_count--;
    alb_list_remove(&id->link);
    id->is_used = false;
    alb_list_push_back(&cm->free, &id->link);
    cm->used--;
}

void alb_cm_note_lingering(struct alb_cm_id *id)
{
    bool lingers = id->state == ALB_CM_DREQ_SENT || id->state == ALB_CM_TIMEWAIT || id->state == ALB_CM_REJECTED ||
                   id->state == ALB_CM_SIDR_ANSWERED;
    if (!id->is_orphan || !lingers || alb_list_is_linked(&id->link))
        return;
    alb_list_push_back(&id->engine->cm->lingering, &id->link);
    id->engine->cm->lingering_count++;
}

// ---- finding --------------------------------------------------------------------------------------------------------

static struct alb_cm_id *find_peer(struct alb_engine *engine, const struct alb_addr *addr, enum peer_kind kind,
                                   uint32_t number)
{
    struct peer_key key = {.addr = *addr, .kind = kind, .number = number};
    return alb_map_find_pointer(&engine->cm->peers, &key);
}

static enum peer_kind remote_kind(const struct alb_cm_id *id)
{
    return id->is_question ? KIND_QUESTION : KIND_REMOTE_ID;
}

static bool insert_peer(struct alb_cm_id *id, enum peer_kind kind, uint32_t number)
{
    struct peer_key key = {.addr = id->av.peer, .kind = kind, .number = number};
    return alb_map_insert(&id->engine->cm->peers, &key, (uintptr_t)id) == ALB_MAP_INSERTED;
}

static void remove_peer(struct alb_cm_id *id, enum peer_kind kind, uint32_t number)
{
    struct peer_key key = {.addr = id->av.peer, .kind = kind, .number = number};
    alb_map_remove(&id->engine->cm->peers, &key, NULL);
}

bool alb_cm_learn_remote(struct alb_cm_id *id, uint32_t remote_id)
{
    id->remote_id = remote_id;
    id->is_remote_known = insert_peer(id, remote_kind(id), remote_id);
    return id->is_remote_known;
}

bool alb_cm_learn_qpn(struct alb_cm_id *id, alb_qpn qpn)
{
    id->remote_qpn = qpn;
    id->is_qpn_known = insert_peer(id, KIND_QPN, qpn);
    return id->is_qpn_known;
}

void alb_cm_forget_qpn(struct alb_cm_id *id)
{
    if (id->is_qpn_known)
        remove_peer(id, KIND_QPN, id->remote_qpn);
    id->is_qpn_known = false;
}

void alb_cm_forget_remote(struct alb_cm_id *id)
{
    if (id->is_remote_known)
        remove_peer(id, remote_kind(id), id->remote_id);
    id->is_remote_known = false;
}

void alb_cm_forget_peer(struct alb_cm_id *id)
{
    alb_cm_forget_remote(id);
    alb_cm_forget_qpn(id);
}

struct alb_cm_id *alb_cm_find_local(struct alb_engine *engine, uint32_t local_id, const struct alb_addr *peer)
{
    uint32_t index = (local_id ^ engine->cm->salt) & 0xffff;
    if (index >= engine->cm->ids_touched)
        return NULL;
    struct alb_cm_id *id = &engine->cm->ids[index];
    return id->is_used && id->local_id == local_id && alb_addr_equals(&id->av.peer, peer) ? id : NULL;
}

struct alb_cm_id *alb_cm_find_remote(struct alb_engine *engine, uint32_t remote_id, const struct alb_addr *peer)
{
    return find_peer(engine, peer, KIND_REMOTE_ID, remote_id);
}

struct alb_cm_id *alb_cm_find_question(struct alb_engine *engine, uint32_t request_id, const struct alb_addr *peer)
{
    return find_peer(engine, peer, KIND_QUESTION, request_id);
}

struct alb_cm_id *alb_cm_find_qpn(struct alb_engine *engine, alb_qpn qpn, const struct alb_addr *peer)
{
    return find_peer(engine, peer, KIND_QPN, qpn);
}

// ---- listeners ------------------------------------------------------------------------------------------------------

static const struct alb_addr any;
static const struct alb_addr any_ipv4 = {{[10] = 0xff, [11] = 0xff}};

// True if an address that the one stands for is also one that the other stands for.
static bool overlaps(const struct alb_cm_listen *a, const struct alb_cm_listen *b)
{
    if (alb_addr_equals(&a->addr, &b->addr))
        return true;
    for (int turn = 0; turn < 2; turn++) {
        const struct alb_cm_listen *wide = turn ? b : a, *other = turn ? a : b;
        bool is_ipv4 = alb_addr_is_ipv4(&other->addr);
        if (alb_addr_equals(&wide->addr, &any) && !(is_ipv4 && wide->is_one_family))
            return true;
        if (alb_addr_equals(&wide->addr, &any_ipv4) && is_ipv4)
            return true;
    }
    return false;
}

static bool is_in_use(const struct alb_cm *cm, const struct alb_cm_listen *listen)
{
    const void *key;
    for (uint32_t i = 0; i < alb_map_count(&cm->listeners); i++) {
        const struct alb_cm_id *other = (void *)(uintptr_t)alb_map_at(&cm->listeners, i, &key);
        if (other->listen.service_id == listen->service_id && overlaps(&other->listen, listen))
            return true;
    }
    return false;
}

static struct listen_key key_of(const struct alb_cm_listen *listen)
{
    return (struct listen_key){.addr = listen->addr, .service_id = listen->service_id};
}

int alb_cm_listen(struct alb_cm_id *id, const struct alb_cm_listen *listen)
{
    struct alb_cm *cm = id->engine->cm;
    struct listen_key key = key_of(listen);
    if (id->state != ALB_CM_IDLE || listen->backlog == 0)
        return EINVAL;
    if (is_in_use(cm, listen))
        return EADDRINUSE;
    enum alb_map_insert inserted = alb_map_insert(&cm->listeners, &key, (uintptr_t)id);
    alb_assert(inserted == ALB_MAP_INSERTED); // it has room for as many as there are ids
    id->listen = *listen;
    alb_cm_set_state(id, ALB_CM_LISTENING);
    return 0;
}

void alb_cm_unlisten(struct alb_cm_id *id)
{
    struct listen_key key = key_of(&id->listen);
    alb_map_remove(&id->engine->cm->listeners, &key, NULL);
    alb_cm_set_state(id, ALB_CM_IDLE);
}

struct alb_cm_id *alb_cm_find_listener(struct alb_engine *engine, uint64_t service_id, const struct alb_addr *local)
{
    const struct alb_map *listeners = &engine->cm->listeners;
    bool is_ipv4 = alb_addr_is_ipv4(local);
    struct listen_key key = {.addr = *local, .service_id = service_id};
    struct alb_cm_id *id = alb_map_find_pointer(listeners, &key);
    if (!id && is_ipv4) {
        key.addr = any_ipv4;
        id = alb_map_find_pointer(listeners, &key);
    }
    if (!id) {
        key.addr = any;
        id = alb_map_find_pointer(listeners, &key);
    }
    return id && is_ipv4 && id->listen.is_one_family && alb_addr_equals(&id->listen.addr, &any) ? NULL : id;
}
