// SPDX-License-Identifier: BSD-2-Clause
// A bounded search for broken promises of reflection; alb_search --transactions --seeds tries more. A failure names its
// seed, which does it again.
#include "sim/search.h"

#include "base/tests/test.h"

#include <inttypes.h>

enum {
    SEEDS = TEST_SOME(1500),
    SEEDS_DURABLE = 40,
    SEEDS_TWICE = 50,
};

static void add(struct alb_search_txn_result *sum, const struct alb_search_txn_result *result)
{
    sum->transactions += result->transactions;
    sum->committed += result->committed;
    sum->aborted += result->aborted;
    sum->corrupt += result->corrupt;
    sum->doubts += result->doubts;
    sum->questions += result->questions;
    sum->plain += result->plain;
    sum->reads += result->reads;
    sum->restarts += result->restarts;
    sum->breaks += result->breaks;
    sum->lost += result->lost;
    sum->renewals += result->renewals;
    sum->unplaced += result->unplaced;
    sum->gone_back += result->gone_back;
    sum->journal_errors += result->journal_errors;
    sum->redone += result->redone;
    sum->bound_again += result->bound_again;
}

static void run(uint64_t seed, bool is_durable, struct alb_search_txn_result *sum)
{
    const struct alb_search_options options = {.is_durable = is_durable};
    struct alb_search_txn_result result;
    if (!alb_search_txn_run(seed, &options, &result))
        fail_msg("seed %" PRIu64 "%s: %s", seed, is_durable ? ", durable" : "", result.failure);
    add(sum, &result);
}

// It has tried something of each kind.
static void run__keeps_every_promise(void **state)
{
    struct alb_search_txn_result sum = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        run(seed, false, &sum);
    assert_true(sum.transactions > SEEDS * 20);
    assert_true(sum.committed > SEEDS * 10);
    assert_true(sum.aborted > SEEDS);
    assert_true(sum.corrupt > 0);
    assert_true(sum.doubts > 0);
    assert_true(sum.questions > SEEDS / 4);
    assert_true(sum.plain > SEEDS);
    assert_true(sum.reads > SEEDS);
    assert_true(sum.restarts > SEEDS / 20);
    assert_true(sum.breaks > SEEDS / 4);
    assert_true(sum.lost > SEEDS);
}

static void run__durable_keeps_every_promise(void **state)
{
    struct alb_search_txn_result sum = {0};
    for (uint64_t seed = 0; seed < SEEDS_DURABLE; seed++)
        run(seed, true, &sum);
    assert_true(sum.committed > SEEDS_DURABLE * 10);
    assert_true(sum.aborted > SEEDS_DURABLE);
    assert_true(sum.corrupt > 0);
    assert_true(sum.questions > SEEDS_DURABLE / 4);
    assert_true(sum.restarts > SEEDS_DURABLE);
    assert_true(sum.journal_errors > 0);
    assert_true(sum.redone > SEEDS_DURABLE);
    assert_true(sum.bound_again > SEEDS_DURABLE / 4);
    assert_true(sum.plain > SEEDS_DURABLE);
    assert_true(sum.reads > SEEDS_DURABLE);
    assert_true(sum.renewals > SEEDS_DURABLE / 4);
    assert_true(sum.gone_back > 0);
}

// They did break one.
static void run__seeds_that_found_something(void **state)
{
    struct alb_search_txn_result sum = {0};
    run(2002422, false, &sum);
    run(100011417, false, &sum); // the model: what readers never saw in part was covered by what came after it
    run(200000595, false, &sum); // the same: what came before it or after it
    run(900020, false, &sum);    // the model: a plain WRITE that was gone at once was taken to stand behind others
    run(6008496, false, &sum);   // the model: what was committed behind others was there when its target died
    run(6025512, false, &sum);   // the model: the same, with a plain WRITE over a part of it
    run(9770143, false, &sum);   // the model: what one behind others compared had changed when it was seen
    run(9773191, false, &sum);   // the model: a plain WRITE came over a transaction before anybody looked
    run(9780385, false, &sum);   // the model: a transaction came over a part of one that was committed behind others
    run(9788903, false, &sum); // the model: a READ saw what was covered before anybody looked, and came to light later
    run(10101266, true,
        &sum);             // the model: a lease of 8 ms ended behind PINGs of 64 KB, so that the last write was refused
    run(8275, true, &sum); // the model: what was committed in spoilt memory is there after a recovery
    run(101374, true, &sum); // the model: a flushed request whose reason is COPY was committed, and is corrupt
}

static void run__same_seed_same_trace(void **state)
{
    const struct alb_search_options options = {0};
    struct alb_search_txn_result first, second;
    for (uint64_t seed = 0; seed < SEEDS_TWICE; seed++) {
        assert_true(alb_search_txn_run(seed, &options, &first));
        assert_true(alb_search_txn_run(seed, &options, &second));
        assert_true(first.trace_hash == second.trace_hash);
        assert_true(first.committed == second.committed && first.aborted == second.aborted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__keeps_every_promise),
        cmocka_unit_test(run__durable_keeps_every_promise),
        cmocka_unit_test(run__seeds_that_found_something),
        cmocka_unit_test(run__same_seed_same_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
