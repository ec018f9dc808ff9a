// SPDX-License-Identifier: BSD-2-Clause
// Corruption at every place where it really happens: what a completion of each level is worth then. Side 0 writes,
// side 1 has the memory; every attempt begins from fresh bytes of the program's. With a number as argument: so many
// messages and transactions of each kind, and a table of what became of them.
#include "engine/tests/reflect_pair.h"

#include "base/corruption.h"
#include "base/prng.h"

#include <stdlib.h>
#include <string.h>

enum {
    LENGTH = 3000, // three packets
    OFFSET = 4096,
    CHANCE = 100000000, // one use in ten
};

static uint32_t attempts = 400;
static bool tells;

struct bench {
    struct csa_pair *c;
    enum alb_corrupt place;
    int side; // whose engine it strikes in
    struct alb_corruption corruption;
    uint64_t counts[ALB_CORRUPT_PLACES];
    struct alb_prng prng;
    uint8_t meant[LENGTH];
    uint32_t delivered_wrong;
    uint32_t visible_wrong;
    uint32_t committed, committed_wrong, refused, corrupt, repaired; // transactions
};

static void begin(struct bench *b, struct csa_pair *c, enum alb_corrupt place)
{
    struct alb_corruption_spec spec = {{0}};
    *b = (struct bench){.c = c, .place = place, .side = place > ALB_CORRUPT_READ};
    spec.chance[place] = CHANCE;
    alb_corruption_init(&b->corruption, &spec, place, b->counts);
    alb_prng_init(&b->prng, place);
}

// The program's bytes, other ones each time.
static void write_down(struct bench *b)
{
    for (uint32_t i = 0; i < LENGTH; i += 4) {
        uint32_t word = (uint32_t)alb_prng_u64(&b->prng);
        memcpy(b->meant + i, &word, 4);
    }
}

static uint8_t *memory_of(struct bench *b, int side)
{
    return b->c->pair->hosts[side].memory + OFFSET;
}

static void run(struct bench *b)
{
    b->c->engines[b->side]->config.corruption = &b->corruption;
    for (uint32_t i = 0; i < 3; i++) {
        pair_settle(b->c->pair);
        pair_pass(b->c->pair, ALB_NS_PER_MS);
    }
    b->c->engines[b->side]->config.corruption = NULL;
}

static bool is_right(struct bench *b)
{
    return memcmp(memory_of(b, 1), b->meant, LENGTH) == 0;
}

// An ordinary WRITE whose completion is of that level; false: it failed.
static bool write(struct bench *b, enum alb_level level)
{
    struct alb_sge sge = pair_sge(b->c->pair, 0, OFFSET, LENGTH);
    const struct alb_send_wr wr = {
        .wr_id = 7,
        .opcode = ALB_WR_RDMA_WRITE,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(b->c->pair, 1, OFFSET),
        .rkey = alb_region_key(b->c->pair->hosts[1].mr),
        .level = level,
        .submitted = b->c->pair->now,
    };
    struct alb_wc wc;
    write_down(b);
    memcpy(memory_of(b, 0), b->meant, LENGTH);
    assert_int_equal(pair_post(b->c->pair, b->c->qps[0], &wr), 0);
    run(b);
    assert_true(pair_poll(b->c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 7);
    assert_int_equal(alb_qp_current_state(b->c->qps[0]), ALB_QPS_RTS);
    assert_int_equal(wc.vendor_err, wc.status == ALB_WC_SUCCESS ? ALB_TXN_OK : ALB_TXN_DIGEST);
    return wc.status == ALB_WC_SUCCESS;
}

static void deliver(struct bench *b)
{
    assert_true(write(b, ALB_LEVEL_DELIVERED));
    b->delivered_wrong += !is_right(b);
    bool claims_success = write(b, ALB_LEVEL_VISIBLE);
    assert_int_equal(claims_success, is_right(b));
    b->visible_wrong += !is_right(b);
}

// A region that was poisoned is registered anew, as its program would.
static void heal(struct bench *b)
{
    struct pair_host *host = &b->c->pair->hosts[1];
    assert_true(alb_region_is_poisoned(host->mr));
    assert_int_equal(alb_mr_destroy(host->mr), 0);
    assert_int_equal(
        alb_mr_create(host->pd, host->memory, PAIR_MEMORY_BYTES, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &host->mr),
        0);
}

// One attempt to commit what is written down; true if it claims success.
static bool commit(struct bench *b, bool in_place)
{
    uint8_t before[LENGTH];
    struct reflect_made made;
    struct alb_wc wc;
    memcpy(memory_of(b, 0), b->meant, LENGTH);
    memcpy(before, memory_of(b, 1), LENGTH);
    reflect_pair_make(b->c, &made, 9, OFFSET, LENGTH);
    made.wr.in_place = in_place;
    reflect_pair_post(b->c, &made);
    run(b);
    assert_true(pair_poll(b->c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 9);
    assert_int_equal(alb_qp_current_state(b->c->qps[0]), ALB_QPS_RTS);
    if (wc.status == ALB_WC_SUCCESS) {
        b->committed++;
        b->committed_wrong += !is_right(b);
        return true;
    }
    if (wc.vendor_err == ALB_TXN_COPY) {
        b->corrupt++;
        heal(b);
        return false;
    }
    assert_int_equal(wc.vendor_err, ALB_TXN_DIGEST);
    assert_memory_equal(memory_of(b, 1), before, LENGTH); // nothing of it is exposed
    b->refused++;
    return false;
}

// Until it is there.
static void commit_and_repair(struct bench *b, bool in_place)
{
    write_down(b);
    for (uint32_t attempt = 0; !commit(b, in_place); attempt++) {
        assert_true(attempt < 100);
        b->repaired += attempt == 0;
    }
}

static void print_row(const struct bench *b, bool in_place, bool is_of_messages, uint32_t again)
{
    static const char *const names[] = {"source", "read", "packet", "stage", "copy", "misplace", "stale"};
    print_message("%-8s %-8s WRITEs of %5u: %4u wrong and delivered, %4u wrong and not visible; transactions: %u "
                  "committed, %u of them wrong; %u refused, %u "
                  "corrupt, %u copied again, %u repaired by sending again\n",
                  names[b->place], in_place ? "in place" : "staged", is_of_messages ? attempts : 0, b->delivered_wrong,
                  b->visible_wrong, b->committed, b->committed_wrong, b->refused, b->corrupt, again, b->repaired);
}

static void judge(struct csa_pair *c, enum alb_corrupt place, bool in_place)
{
    static struct bench b;
    begin(&b, c, place);
    bool is_of_messages = place != ALB_CORRUPT_STAGE && place != ALB_CORRUPT_COPY;
    for (uint32_t i = 0; is_of_messages && i < attempts; i++)
        deliver(&b);
    uint64_t struck_messages = b.counts[place], again = csa_pair_stat(c, 1, ALB_STAT_txn_copied_again);
    for (uint32_t i = 0; i < attempts; i++)
        commit_and_repair(&b, in_place);
    again = csa_pair_stat(c, 1, ALB_STAT_txn_copied_again) - again;
    if (tells)
        print_row(&b, in_place, is_of_messages, (uint32_t)again);
    if (is_of_messages)
        assert_true(b.delivered_wrong > attempts / 20 && b.visible_wrong > attempts / 20 && struck_messages > 0);
    assert_int_equal(b.committed, attempts);
    assert_int_equal(b.committed_wrong, 0);
    assert_true(b.counts[place] > struck_messages);
    assert_true(b.refused + b.corrupt + again > 0);
}

static void corruption__is_never_committed(void **state)
{
    for (enum alb_corrupt place = ALB_CORRUPT_SOURCE; place < ALB_CORRUPT_PLACES; place++)
        judge(*state, place, false);
}

static void corruption__is_never_committed_in_place(void **state)
{
    for (enum alb_corrupt place = ALB_CORRUPT_SOURCE; place < ALB_CORRUPT_PLACES; place++)
        if (place != ALB_CORRUPT_COPY) // there is none
            judge(*state, place, true);
}

int main(int argc, char **argv)
{
    tells = argc > 1;
    if (tells)
        attempts = (uint32_t)strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(corruption__is_never_committed),
        REFLECT_PAIR_TEST(corruption__is_never_committed_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
