// SPDX-License-Identifier: BSD-2-Clause
// shmem_check: an OpenSHMEM program that checks every word it gets: one-sided calls on the symmetric heap, ordered by
// barriers, fences, flags and locks. Built by run.py with Open MPI's oshcc.
//
// Processing element 0 prints a line for each part and "shmem_check: done" at the end; the first wrong word ends the
// job with status 1.
#include <shmem.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS  (128 * 1024) // of the largest transfer
#define ROUNDS 50

static int me, elements;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "shmem_check: element %d of %d: ", me, elements);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    shmem_global_exit(1);
}

static void part_begins(const char *name)
{
    shmem_barrier_all();
    if (me == 0) {
        printf("shmem_check: %s\n", name);
        fflush(stdout);
    }
}

// Zeroes, at the same place of every element's heap.
static long *symmetric(size_t words)
{
    long *memory = shmem_malloc(words * sizeof(long));
    if (!memory)
        fail("no symmetric memory for %zu words", words);
    for (size_t i = 0; i < words; i++)
        memory[i] = 0;
    shmem_barrier_all();
    return memory;
}

static long word_of(int from, int round, size_t index)
{
    return (long)((index + 1) * 0x9e3779b97f4a7c15u) ^ ((long)from << 40) ^ ((long)round << 20);
}

static void fill(long *words, size_t count, int from, int round)
{
    for (size_t i = 0; i < count; i++)
        words[i] = word_of(from, round, i);
}

static void check(const long *words, size_t count, int from, int round, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (words[i] != word_of(from, round, i))
            fail("%s of %zu words from %d: wrong at word %zu", what, count, from, i);
}

static int next(void)
{
    return (me + 1) % elements;
}

static int previous(void)
{
    return (me + elements - 1) % elements;
}

// ---- puts and gets --------------------------------------------------------------------------------------------------

static void put_and_get(void)
{
    static const size_t counts[] = {1, 7, 1000, 1025, WORDS};
    long *theirs = symmetric(WORDS), *mine = symmetric(WORDS), *got = malloc(WORDS * sizeof(long));
    if (!got)
        fail("no memory");
    part_begins("put and get");
    for (int round = 0; round < (int)(sizeof(counts) / sizeof(*counts)); round++) {
        size_t count = counts[round];
        fill(mine, count, me, round);
        shmem_barrier_all();
        shmem_long_put(theirs, mine, count, next());
        shmem_barrier_all();
        check(theirs, count, previous(), round, "put");
        shmem_long_get(got, mine, count, previous());
        check(got, count, previous(), round, "get");
        shmem_barrier_all();
    }
    free(got);
    shmem_free(mine);
    shmem_free(theirs);
}

// A put that does not wait, a fence, and a flag: a PE that sees the flag must see what was put before it.
static void flags(void)
{
    enum { COUNT = 3000 };
    long *theirs = symmetric(COUNT), *mine = symmetric(COUNT), *flag = symmetric(1), *taken = symmetric(1);
    part_begins("flags");
    for (int round = 1; round <= ROUNDS; round++) {
        fill(mine, COUNT, me, round);
        shmem_long_wait_until(taken, SHMEM_CMP_EQ, round - 1);
        shmem_long_put_nbi(theirs, mine, COUNT, next());
        shmem_fence();
        shmem_long_p(flag, round, next());
        shmem_quiet();
        shmem_long_wait_until(flag, SHMEM_CMP_EQ, round);
        check(theirs, COUNT, previous(), round, "put before a flag");
        shmem_long_p(taken, round, previous());
    }
    shmem_barrier_all();
    shmem_free(taken);
    shmem_free(flag);
    shmem_free(mine);
    shmem_free(theirs);
}

static void strided(void)
{
    enum { ROWS = 40, COLUMNS = 16 };
    long *table = symmetric((size_t)ROWS * COLUMNS), column[ROWS];
    part_begins("strided");
    fill(column, ROWS, me, 0);
    shmem_long_iput(table + me % COLUMNS, column, COLUMNS, 1, ROWS, next());
    shmem_barrier_all();
    for (int row = 0; row < ROWS; row++)
        column[row] = table[row * COLUMNS + previous() % COLUMNS];
    check(column, ROWS, previous(), 0, "strided put");
    shmem_free(table);
}

// ---- atomics and locks ----------------------------------------------------------------------------------------------

static void atomics(void)
{
    long *counter = symmetric(1), *swapped = symmetric(1), *tickets = symmetric((size_t)ROUNDS * elements);
    part_begins("atomics");
    for (int round = 0; round < ROUNDS; round++) {
        long ticket = shmem_long_atomic_fetch_add(counter, 1, 0);
        if (ticket < 0 || ticket >= (long)ROUNDS * elements)
            fail("ticket %ld", ticket);
        shmem_long_atomic_add(tickets + ticket, 1, 0);
        long seen = 0, before;
        while ((before = shmem_long_atomic_compare_swap(swapped, seen, seen + 1, elements - 1)) != seen)
            seen = before;
    }
    shmem_barrier_all();
    if (me == elements - 1 && *swapped != (long)ROUNDS * elements)
        fail("compare and swap counted to %ld", *swapped);
    for (int i = 0; me == 0 && i < ROUNDS * elements; i++)
        if (tickets[i] != 1)
            fail("ticket %d was given %ld times", i, tickets[i]);
    shmem_free(tickets);
    shmem_free(swapped);
    shmem_free(counter);
}

static void locks(void)
{
    long *lock = symmetric(1), *count = symmetric(1);
    part_begins("locks");
    for (int round = 0; round < ROUNDS / 5; round++) {
        shmem_set_lock(lock);
        shmem_long_p(count, shmem_long_g(count, 0) + 1, 0);
        shmem_quiet();
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    if (me == 0 && *count != (long)(ROUNDS / 5) * elements)
        fail("%ld times in the lock", *count);
    shmem_free(count);
    shmem_free(lock);
}

// ---- collectives ----------------------------------------------------------------------------------------------------

static void collectives(void)
{
    enum { COUNT = 500 };
    static long sync[SHMEM_REDUCE_SYNC_SIZE], work[COUNT / 2 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];
    long *mine = symmetric(COUNT), *sum = symmetric(COUNT);
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        sync[i] = SHMEM_SYNC_VALUE;
    part_begins("collectives");
    for (int i = 0; i < COUNT; i++)
        mine[i] = (long)me * COUNT + i;
    shmem_barrier_all();
    shmem_long_sum_to_all(sum, mine, COUNT, 0, 0, elements, work, sync);
    for (long i = 0; i < COUNT; i++)
        if (sum[i] != elements * i + (long)COUNT * elements * (elements - 1) / 2)
            fail("sum %ld is %ld", i, sum[i]);
    shmem_barrier_all();
    shmem_free(sum);
    shmem_free(mine);
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    elements = shmem_n_pes();
    put_and_get();
    flags();
    strided();
    atomics();
    locks();
    collectives();
    part_begins("done");
    shmem_finalize();
    return 0;
}
