// SPDX-License-Identifier: BSD-2-Clause
// A block of a KV cache: keys, values, and the entry of the block table that says which tokens they are of. A producer
// (prefill) writes blocks into the memory of a consumer (decode), over and over, since blocks are used again.
//
//     raw          three RDMA WRITEs, the entry last; the consumer that believes the entry computes with keys of one
//                  request and values of another
//     transaction  the three as one (albdv_txn(3)), and a notification once they can be read; the consumer checks the
//                  version words of what it has read (albdv_region(3)). What arrived otherwise than it was posted was
//                  not exposed, and is posted again: try --faults packet=1%
//
//     cc kv_block.c $(pkg-config --cflags --libs albedodv) -lpthread -o kv_block
//     albedo run --device albedo0 -- ./kv_block [BLOCKS]
#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    TENSOR_BYTES = 64 * 1024,
    WORDS = TENSOR_BYTES / 8,
};

// What is in a block, each where its framework wants it.
struct block {
    uint64_t keys[WORDS];
    uint64_t values[WORDS];
    struct entry {
        uint64_t request;  // that the block belongs to
        uint64_t checksum; // of its keys and values
    } entry;
};

struct cache {
    struct loop loop;
    bool is_transaction;
    struct block *block; // the consumer's
    struct ibv_mr *keys, *values, *entry;
    struct albdv_region *regions[3]; // transaction
    struct pair pair;
    uint64_t blocks, posted_again;
    atomic_bool is_done;
    _Atomic uint64_t notified;
};

static uint64_t checksum(const uint64_t *keys, const uint64_t *values)
{
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum = (sum << 7 | sum >> 57) ^ (keys[i] + 3 * values[i]);
    return sum;
}

static void fill(struct block *block, uint64_t request)
{
    for (int i = 0; i < WORDS; i++) {
        block->keys[i] = request * 0x9e3779b97f4a7c15 + (uint64_t)i;
        block->values[i] = ~block->keys[i];
    }
    block->entry = (struct entry){.request = request, .checksum = checksum(block->keys, block->values)};
}

// ---- the producer ---------------------------------------------------------------------------------------------------

static void receive_notification(struct cache *cache)
{
    struct ibv_recv_wr wr = {0}, *bad;
    check_error(ibv_post_recv(cache->pair.far, &wr, &bad), "ibv_post_recv");
}

// Once. False: it arrived otherwise than it was posted, and is to be posted again.
static bool commit(struct cache *cache, struct albdv_qp_ex *qp, struct ibv_mr *from, const struct piece pieces[3],
                   const struct block *block)
{
    ibv_wr_start(qp->qp);
    qp->qp->wr_flags = IBV_SEND_SIGNALED;
    albdv_wr_txn(qp, ALBDV_COMMITTED, 0);
    for (int i = 0; i < 3; i++) {
        albdv_wr_txn_write(qp, pieces[i].remote->rkey, (uintptr_t)pieces[i].to);
        ibv_wr_set_sge(qp->qp, from->lkey, (uintptr_t)pieces[i].at, pieces[i].length);
    }
    albdv_wr_txn_notify(qp, (uint32_t)block->entry.request);
    albdv_wr_txn_end(qp);
    check_error(ibv_wr_complete(qp->qp), "transaction");
    return loop_wait_commit(cache->pair.cq);
}

static void write_block(struct cache *cache, struct albdv_qp_ex *qp, struct ibv_mr *from, struct block *block)
{
    const struct piece pieces[] = {
        {from, block->keys, sizeof(block->keys), cache->keys, cache->block->keys},
        {from, block->values, sizeof(block->values), cache->values, cache->block->values},
        {from, &block->entry, sizeof(block->entry), cache->entry, &cache->block->entry},
    };
    if (!qp) {
        for (int i = 0; i < 3; i++)
            loop_post(cache->pair.near, IBV_WR_RDMA_WRITE, from, (void *)pieces[i].at, pieces[i].length,
                      pieces[i].remote, pieces[i].to);
        for (int i = 0; i < 3; i++)
            loop_wait_success(cache->pair.cq);
        return;
    }
    receive_notification(cache);
    while (!commit(cache, qp, from, pieces, block))
        cache->posted_again++;
    struct ibv_wc wc = loop_wait(cache->pair.far_cq);
    check(wc.status == IBV_WC_SUCCESS && wc.imm_data == (uint32_t)block->entry.request, "notification");
    atomic_fetch_add(&cache->notified, 1);
}

static void *produce(void *argument)
{
    struct cache *cache = argument;
    struct block *block = malloc(sizeof(*block));
    check(block != NULL, "memory");
    struct ibv_mr *from = loop_register(&cache->loop, block, sizeof(*block));
    struct albdv_qp_ex *qp = cache->is_transaction ? albdv_extend_qp(cache->pair.near, NULL) : NULL;
    check(!cache->is_transaction || qp, "albdv_extend_qp");
    for (uint64_t request = 2; request < 2 + cache->blocks; request++) {
        fill(block, request);
        write_block(cache, qp, from, block);
    }
    atomic_store(&cache->is_done, true);
    ibv_dereg_mr(from);
    free(block);
    return NULL;
}

// ---- the consumer ---------------------------------------------------------------------------------------------------

// False: one of them is being written.
static bool begin_all(struct cache *cache, struct albdv_read reads[3])
{
    const struct block *block = cache->block;
    return !albdv_read_begin(cache->regions[0], block->keys, sizeof(block->keys), &reads[0]) &&
           !albdv_read_begin(cache->regions[1], block->values, sizeof(block->values), &reads[1]) &&
           !albdv_read_begin(cache->regions[2], &block->entry, sizeof(block->entry), &reads[2]);
}

// Copies the block. False: it has to be read again.
static bool copy_block(struct cache *cache, struct block *copy)
{
    struct albdv_read reads[3] = {0};
    if (cache->is_transaction && !begin_all(cache, reads))
        return false;
    copy->entry = cache->block->entry;
    memcpy(copy->keys, cache->block->keys, sizeof(copy->keys));
    memcpy(copy->values, cache->block->values, sizeof(copy->values));
    if (!cache->is_transaction)
        return true;
    return !(albdv_read_retry(&reads[0]) || albdv_read_retry(&reads[1]) || albdv_read_retry(&reads[2]));
}

// True unless blocks that are no block were seen though they came as transactions.
static bool consume(struct cache *cache)
{
    struct block *copy = malloc(sizeof(*copy));
    uint64_t used = 0, mixed = 0, again = 0;
    check(copy != NULL, "memory");
    while (!atomic_load(&cache->is_done)) {
        if (!copy_block(cache, copy)) {
            again++;
            continue;
        }
        used++;
        mixed += checksum(copy->keys, copy->values) != copy->entry.checksum;
    }
    free(copy);
    printf("%-11s %llu blocks written, %llu used, %llu of them mixed, %llu read again, %llu notifications, "
           "%llu posted again\n",
           cache->is_transaction ? "transaction" : "raw", (unsigned long long)cache->blocks, (unsigned long long)used,
           (unsigned long long)mixed, (unsigned long long)again, (unsigned long long)atomic_load(&cache->notified),
           (unsigned long long)cache->posted_again);
    return !cache->is_transaction || (mixed == 0 && atomic_load(&cache->notified) == cache->blocks);
}

static bool run(struct cache *cache)
{
    pthread_t producer;
    cache->block = aligned_alloc(4096, (sizeof(struct block) + 4095) / 4096 * 4096);
    check(cache->block != NULL, "memory");
    fill(cache->block, 1);
    cache->keys = loop_register(&cache->loop, cache->block->keys, sizeof(cache->block->keys));
    cache->values = loop_register(&cache->loop, cache->block->values, sizeof(cache->block->values));
    cache->entry = loop_register(&cache->loop, &cache->block->entry, sizeof(cache->block->entry));
    struct ibv_mr *parts[] = {cache->keys, cache->values, cache->entry};
    for (int i = 0; i < 3 && cache->is_transaction; i++) {
        cache->regions[i] = albdv_create_region(parts[i], NULL);
        check(cache->regions[i] != NULL,
              "albdv_create_region, which only albedo0 has: start this by `albedo run --device albedo0 --`");
    }
    loop_connect(&cache->loop, &cache->pair);
    atomic_store(&cache->is_done, false);
    check_error(pthread_create(&producer, NULL, produce, cache), "pthread_create");
    bool is_good = consume(cache);
    pthread_join(producer, NULL);
    loop_disconnect(&cache->pair);
    for (int i = 0; i < 3; i++)
        ibv_dereg_mr(parts[i]);
    free(cache->block);
    return is_good;
}

int main(int argc, char **argv)
{
    static struct cache cache;
    cache.blocks = number_argument(argc, argv, 1, 500, "[BLOCKS]");
    loop_open(&cache.loop);
    bool is_good = run(&cache);
    cache.is_transaction = true;
    is_good &= run(&cache);
    loop_close(&cache.loop);
    return is_good ? 0 : 1;
}
