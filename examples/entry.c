// SPDX-License-Identifier: BSD-2-Clause
// An entry of a hash table, 304 bytes: version, key, value, status. One writer updates it from another host (here: by
// the loop), others read it, in the host where it is and from afar, all the time. Three ways:
//
//     raw          RDMA WRITE, and a reader sees what is there: parts of two updates. (Read from afar it is whole here:
//                  Albedo's engine answers a READ of one packet between two writes. A network card does not promise
//                  that, nor do two packets.)
//     versioned    a version in every cache line, as FaRM has it: a reader compares them and reads again. That relies
//                  on a network card which writes each line at once. Albedo stores by a processor, and promises that
//                  of 8 bytes, so a local reader is deceived now and then (some in 100,000 reads: "torn")
//     transaction  albdv_txn(3), albdv_region(3): a reader sees one update or the next, never both
//
// With --faults packet=0.1% an entry that is read from afar may have a wrong bit: of what a READ brings nothing is
// checked but the packet. These are counted apart.
//
//     cc entry.c $(pkg-config --cflags --libs albedodv) -lpthread -o entry
//     albedo run --device albedo0 -- ./entry [READS [raw|versioned|transaction [local|remote]]]
#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    KEY_BYTES = 32,
    VALUE_BYTES = 256,
    LINE = 64,
    LINES = 6,   // that hold an entry beside a version each
    BATCH = 16,  // READs that are posted, and looked at, together
    BATCHES = 3, // that are under way
    COPIES = BATCH * BATCHES,
};
_Static_assert((int)COPIES <= (int)LOOP_DEPTH, "the send queue has a place for each READ");

struct entry {
    uint64_t version;
    uint8_t key[KEY_BYTES];
    uint8_t value[VALUE_BYTES];
    uint64_t status;
};
_Static_assert(sizeof(struct entry) == 304, "the size that hash tables of this kind have");

struct line {
    uint64_t version;
    uint8_t bytes[LINE - 8];
};

// What is written: one of the two.
union place {
    struct entry entry;
    struct line lines[LINES];
};

enum way { RAW, VERSIONED, TRANSACTION, WAYS };
static const char *const way_names[WAYS] = {"raw", "versioned", "transaction"};

struct table {
    struct loop loop;
    enum way way;
    union place *place; // at the target
    struct ibv_mr *mr;
    struct albdv_region *region; // TRANSACTION
    atomic_bool stop;
    _Atomic uint64_t updates;
};

struct count {
    uint64_t reads, torn, flipped, retries;
};

// ---- what an entry looks like ---------------------------------------------------------------------------------------

// Two of them differ in two bits or more, and so do parts of two updates: one wrong bit is not taken for that.
static uint64_t version_of(uint64_t update)
{
    return update << 1 | (uint64_t)__builtin_parityll(update);
}

static void make_entry(struct entry *entry, uint64_t update)
{
    uint64_t version = version_of(update);
    entry->version = entry->status = version;
    memset(entry->key, 'k', KEY_BYTES);
    memset(entry->value, (int)(version & 0xff), VALUE_BYTES);
}

// Of one update: what its parts say is the same.
static bool is_whole(const struct entry *entry)
{
    if (entry->version != entry->status)
        return false;
    for (int i = 0; i < VALUE_BYTES; i++)
        if (entry->value[i] != (uint8_t)entry->version)
            return false;
    return true;
}

// All of it but one bit is of the update with this version.
static bool has_wrong_bit(const struct entry *entry, uint64_t version)
{
    int bits = __builtin_popcountll(entry->version ^ version) + __builtin_popcountll(entry->status ^ version);
    for (int i = 0; i < VALUE_BYTES; i++)
        bits += __builtin_popcount(entry->value[i] ^ (uint8_t)version);
    return bits == 1;
}

static void to_lines(const struct entry *entry, struct line *lines)
{
    const uint8_t *from = (const uint8_t *)entry;
    size_t left = sizeof(*entry);
    for (int i = 0; i < LINES; i++) {
        size_t part = left < sizeof(lines[i].bytes) ? left : sizeof(lines[i].bytes);
        lines[i].version = entry->version;
        memcpy(lines[i].bytes, from, part);
        from += part;
        left -= part;
    }
}

// False: the lines are of several updates, as far as their versions tell.
static bool from_lines(const struct line *lines, struct entry *entry)
{
    uint8_t *to = (uint8_t *)entry;
    size_t left = sizeof(*entry);
    for (int i = 0; i < LINES; i++) {
        size_t part = left < sizeof(lines[i].bytes) ? left : sizeof(lines[i].bytes);
        if (lines[i].version != lines[0].version)
            return false;
        memcpy(to, lines[i].bytes, part);
        to += part;
        left -= part;
    }
    return true;
}

// ---- the writer -----------------------------------------------------------------------------------------------------

static void *write_updates(void *argument)
{
    struct table *table = argument;
    struct pair pair;
    union place *from = aligned_alloc(LINE, sizeof(*from) + LINE);
    check(from != NULL, "memory");
    memset(from, 0, sizeof(*from));
    loop_connect(&table->loop, &pair);
    struct ibv_mr *mr = loop_register(&table->loop, from, sizeof(*from));
    struct albdv_qp_ex *qp = table->way == TRANSACTION ? albdv_extend_qp(pair.near, NULL) : NULL;
    check(table->way != TRANSACTION || qp, "albdv_extend_qp");
    for (uint64_t version = 2; !atomic_load(&table->stop); version++) {
        struct entry entry;
        make_entry(&entry, version);
        if (table->way == VERSIONED)
            to_lines(&entry, from->lines);
        else
            from->entry = entry;
        uint32_t bytes = table->way == VERSIONED ? sizeof(from->lines) : sizeof(from->entry);
        const struct piece piece = {mr, from, bytes, table->mr, table->place};
        if (qp) {
            do
                loop_commit(qp, &piece, 1, 0);
            while (!loop_wait_commit(pair.cq));
        } else {
            loop_post(pair.near, IBV_WR_RDMA_WRITE, mr, from, bytes, table->mr, table->place);
            loop_wait_success(pair.cq);
        }
        atomic_fetch_add(&table->updates, 1);
    }
    loop_disconnect(&pair);
    ibv_dereg_mr(mr);
    free(from);
    return NULL;
}

// ---- readers --------------------------------------------------------------------------------------------------------

// Looks at one copy of what was in the place.
static void judge(const struct table *table, const union place *copy, struct count *count)
{
    struct entry entry = copy->entry;
    if (table->way == VERSIONED && !from_lines(copy->lines, &entry)) {
        count->retries++;
        return;
    }
    bool is_flipped = has_wrong_bit(&entry, entry.version) || has_wrong_bit(&entry, entry.status);
    count->reads++;
    count->flipped += is_flipped;
    count->torn += !is_flipped && !is_whole(&entry);
}

static void read_local(struct table *table, uint64_t reads, struct count *count)
{
    while (count->reads < reads) {
        struct albdv_read read;
        union place copy;
        if (table->way == TRANSACTION) {
            if (albdv_read_begin(table->region, table->place, sizeof(struct entry), &read)) {
                check(!albdv_region_is_poisoned(table->region), "the region is poisoned");
                count->retries++;
                continue;
            }
            memcpy(&copy, table->place, sizeof(struct entry));
            if (albdv_read_retry(&read)) {
                count->retries++;
                continue;
            }
        } else {
            memcpy(&copy, table->place, sizeof(copy));
            __asm__ volatile("" ::: "memory"); // the next one is another one
        }
        judge(table, &copy, count);
    }
}

// What a batch of READs needs, made once: all of them read the same place, each into a copy of its own.
struct batch {
    struct ibv_sge sges[BATCH];
    struct ibv_send_wr wrs[BATCH];
};

static void make_batch(struct batch *batch, const struct table *table, struct ibv_mr *mr, union place *copies)
{
    uint32_t bytes = table->way == VERSIONED ? sizeof(copies->lines) : sizeof(copies->entry);
    for (int i = 0; i < BATCH; i++) {
        batch->sges[i] = (struct ibv_sge){.addr = (uintptr_t)&copies[i], .length = bytes, .lkey = mr->lkey};
        batch->wrs[i] = (struct ibv_send_wr){
            .next = i < BATCH - 1 ? &batch->wrs[i + 1] : NULL,
            .sg_list = &batch->sges[i],
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_READ,
            .send_flags = i == BATCH - 1 ? IBV_SEND_SIGNALED : 0,
            .wr.rdma = {.remote_addr = (uintptr_t)table->place, .rkey = table->mr->rkey},
        };
    }
}

static void post_batch(struct batch *batch, struct ibv_qp *qp)
{
    struct ibv_send_wr *bad;
    check_error(ibv_post_send(qp, batch->wrs, &bad), "ibv_post_send");
}

// A batch completes as one, by its last READ: what is posted to a queue pair is done in its order.
static void read_remote(struct table *table, uint64_t reads, struct count *count)
{
    struct pair pair;
    struct batch batches[BATCHES];
    union place *copies = aligned_alloc(LINE, COPIES * sizeof(*copies));
    check(copies != NULL, "memory");
    loop_connect(&table->loop, &pair);
    struct ibv_mr *mr = loop_register(&table->loop, copies, COPIES * sizeof(*copies));
    for (int i = 0; i < BATCHES; i++) {
        make_batch(&batches[i], table, mr, &copies[i * BATCH]);
        post_batch(&batches[i], pair.near);
    }
    for (int i = 0; count->reads < reads; i = (i + 1) % BATCHES) {
        loop_wait_success(pair.cq);
        for (int copy = i * BATCH; copy < (i + 1) * BATCH; copy++)
            judge(table, &copies[copy], count);
        post_batch(&batches[i], pair.near);
    }
    for (int i = 0; i < BATCHES; i++)
        loop_wait_success(pair.cq);
    loop_disconnect(&pair);
    ibv_dereg_mr(mr);
    free(copies);
}

// ---- one way --------------------------------------------------------------------------------------------------------

// Reads the entry while it is written. True unless a transaction was seen in part.
static bool run(struct table *table, bool is_local, uint64_t reads)
{
    struct count count = {0};
    pthread_t writer;
    table->place = aligned_alloc(4096, 4096);
    check(table->place != NULL, "memory");
    memset(table->place, 0, 4096);
    if (table->way == VERSIONED) {
        struct entry entry;
        make_entry(&entry, 1);
        to_lines(&entry, table->place->lines);
    } else {
        make_entry(&table->place->entry, 1);
    }
    table->mr = loop_register(&table->loop, table->place, 4096);
    const struct albdv_region_attr attr = {.stride = 512};
    table->region = table->way == TRANSACTION ? albdv_create_region(table->mr, &attr) : NULL;
    check(table->way != TRANSACTION || table->region,
          "albdv_create_region, which only albedo0 has: start this by `albedo run --device albedo0 --`");
    atomic_store(&table->stop, false);
    atomic_store(&table->updates, 0);
    check_error(pthread_create(&writer, NULL, write_updates, table), "pthread_create");
    while (atomic_load(&table->updates) == 0)
        ;
    if (is_local)
        read_local(table, reads, &count);
    else
        read_remote(table, reads, &count);
    atomic_store(&table->stop, true);
    pthread_join(writer, NULL);
    printf("%-11s %-6s %12llu reads, %llu torn, %llu with a wrong bit, %llu retries, %llu updates\n",
           way_names[table->way], is_local ? "local" : "remote", (unsigned long long)count.reads,
           (unsigned long long)count.torn, (unsigned long long)count.flipped, (unsigned long long)count.retries,
           (unsigned long long)atomic_load(&table->updates));
    fflush(stdout);
    ibv_dereg_mr(table->mr);
    free(table->place);
    return table->way != TRANSACTION || count.torn == 0;
}

static bool is_one_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    static const char usage[] = "[READS [raw|versioned|transaction [local|remote]]]";
    static const char *const places[] = {"local", "remote"};
    static struct table table;
    uint64_t reads = number_argument(argc, argv, 3, 100000, usage);
    bool is_good = true;
    if ((argc > 2 && !is_one_of(argv[2], way_names, WAYS)) || (argc > 3 && !is_one_of(argv[3], places, 2)))
        refuse_arguments(argv[0], usage);
    loop_open(&table.loop);
    for (int way = RAW; way < WAYS; way++) {
        if (argc > 2 && strcmp(argv[2], way_names[way]) != 0)
            continue;
        table.way = (enum way)way;
        if (argc <= 3 || strcmp(argv[3], "local") == 0)
            is_good &= run(&table, true, reads);
        if (argc <= 3 || strcmp(argv[3], "remote") == 0)
            is_good &= run(&table, false, argc > 3 ? reads : (reads + 9) / 10);
    }
    loop_close(&table.loop);
    return is_good ? 0 : 1;
}
