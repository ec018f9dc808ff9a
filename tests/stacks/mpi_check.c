// SPDX-License-Identifier: BSD-2-Clause
// mpi_check: an MPI program that checks every byte and number it gets. It knows MPI only; what carries the messages is
// the caller's business. Built by run.py with each MPI's own compiler driver.
//
//   mpi_check [--max BYTES]     the largest point-to-point message (default: 64 MiB)
//
// Rank 0 prints a line for each part and "mpi_check: done" at the end; the first wrong byte ends the job with status 1.
#include <mpi.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB          1024
#define MIB          (KIB * KIB)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static int rank, ranks;
static long long max_bytes = 64LL * MIB;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "mpi_check: rank %d of %d: ", rank, ranks);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void part_begins(const char *name)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("mpi_check: %s\n", name);
        fflush(stdout);
    }
}

static uint8_t *get_memory(size_t bytes)
{
    uint8_t *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        fail("no memory for %zu bytes", bytes);
    return memory;
}

// ---- patterns -------------------------------------------------------------------------------------------------------

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

static uint64_t seed_of(int from, int to, int tag, size_t bytes)
{
    return mix(((uint64_t)from << 48) ^ ((uint64_t)to << 40) ^ ((uint64_t)tag << 32) ^ bytes);
}

// The byte at an offset depends on seed and offset, so shifted, stale and swapped bytes differ too.
static uint64_t word_at(uint64_t seed, size_t word)
{
    return (seed + word) * 0x9e3779b97f4a7c15u;
}

static void fill(uint8_t *memory, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = word_at(seed, i / 8);
        memcpy(memory + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

static void check(const uint8_t *memory, size_t bytes, uint64_t seed, const char *what)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = word_at(seed, i / 8);
        if (memcmp(memory + i, &word, bytes - i < 8 ? bytes - i : 8) != 0)
            fail("%s: %zu bytes: wrong at offset %zu", what, bytes, i);
    }
}

// ---- point to point -------------------------------------------------------------------------------------------------

// Sends to one neighbour while it receives from the other, from and to odd addresses, between guard bytes.
static void exchange(size_t bytes, int to, int from, int tag)
{
    const size_t shift = (size_t)tag % 13;
    uint8_t *out = get_memory(bytes + 16), *in = get_memory(bytes + 32);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int count;
    fill(out + shift, bytes, seed_of(rank, to, tag, bytes));
    memset(in, 0xa5, bytes + 32);
    MPI_Irecv(in + shift, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out + shift, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Get_count(&statuses[0], MPI_BYTE, &count);
    if ((size_t)count != bytes || statuses[0].MPI_SOURCE != from || statuses[0].MPI_TAG != tag)
        fail("exchange of %zu bytes: got %d bytes from %d, tag %d", bytes, count, statuses[0].MPI_SOURCE,
             statuses[0].MPI_TAG);
    check(in + shift, bytes, seed_of(from, rank, tag, bytes), "exchange");
    for (size_t i = 0; i < 16; i++) {
        if (in[shift + bytes + i] != 0xa5 || (i < shift && in[i] != 0xa5))
            fail("exchange of %zu bytes wrote outside its buffer", bytes);
    }
    free(out);
    free(in);
}

static void point_to_point(void)
{
    static const long long sizes[] = {0,       1,        7,        8,        63,        64,        65,      255,
                                      256,     1000,     1024,     4095,     4096,      4097,      8191,    8256,
                                      8257,    16 * KIB, 65535,    64 * KIB, 100001,    256 * KIB, MIB - 1, MIB,
                                      3000001, 4 * MIB,  16 * MIB, 33554433, 64LL * MIB};
    part_begins("point to point");
    for (size_t i = 0; i < COUNT(sizes); i++) {
        if (sizes[i] > max_bytes)
            break;
        // Large ones between two ranks only: eight would need gigabytes.
        if (sizes[i] <= 4 * MIB)
            exchange((size_t)sizes[i], (rank + 1) % ranks, (rank + ranks - 1) % ranks, (int)i);
        else if (rank < 2 && ranks > 1)
            exchange((size_t)sizes[i], 1 - rank, 1 - rank, (int)i);
    }
}

// ---- wildcard receives ----------------------------------------------------------------------------------------------

enum { WILD_MESSAGES = 60, WILD_BYTES = 200000 };

static size_t wild_bytes(int source, int number)
{
    uint64_t random = mix((uint64_t)source * 1000 + (uint64_t)number);
    return random % 5 == 0 ? random / 5 % WILD_BYTES : random / 5 % 300;
}

static void send_wild(int to)
{
    MPI_Request requests[WILD_MESSAGES];
    uint8_t *out[WILD_MESSAGES];
    for (int i = 0; i < WILD_MESSAGES; i++) {
        size_t bytes = wild_bytes(rank, i);
        out[i] = get_memory(bytes);
        fill(out[i], bytes, seed_of(rank, to, i, bytes));
        MPI_Isend(out[i], (int)bytes, MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WILD_MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WILD_MESSAGES; i++)
        free(out[i]);
}

// Every message once, and those of one source in the order in which they were sent.
static void receive_wild(void)
{
    int next[ranks];
    uint8_t *in = get_memory(WILD_BYTES);
    memset(next, 0, sizeof(next));
    for (int i = 0; i < WILD_MESSAGES * (ranks - 1); i++) {
        MPI_Status status;
        int count;
        if (i % 7 == 0) // now and then look first
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Recv(in, WILD_BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        int source = status.MPI_SOURCE;
        size_t bytes = wild_bytes(source, status.MPI_TAG);
        if (status.MPI_TAG != next[source]++)
            fail("wildcard: message %d of rank %d came as number %d", status.MPI_TAG, source, next[source] - 1);
        if ((size_t)count != bytes)
            fail("wildcard: %d bytes instead of %zu", count, bytes);
        check(in, bytes, seed_of(source, rank, status.MPI_TAG, bytes), "wildcard");
    }
    free(in);
}

static void wildcards(void)
{
    part_begins("receives from any source with any tag");
    for (int root = 0; root < ranks && root < 3; root++) {
        if (rank == root)
            receive_wild();
        else
            send_wild(root);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// ---- many at once ---------------------------------------------------------------------------------------------------

enum { CROWD = 400 };

// All ranks send many small messages to all ranks before any receives: queues run full, receivers are not ready.
static void crowd(void)
{
    static uint64_t out[CROWD], in[CROWD];
    static MPI_Request sends[CROWD], receives[CROWD];
    part_begins("many small messages at once");
    for (int i = 0; i < CROWD; i++) {
        int to = (rank + i) % ranks;
        out[i] = mix(seed_of(rank, to, i, 8));
        MPI_Isend(&out[i], 8, MPI_BYTE, to, i, MPI_COMM_WORLD, &sends[i]);
    }
    for (int i = CROWD - 1; i >= 0; i--)
        MPI_Irecv(&in[i], 8, MPI_BYTE, ((rank - i) % ranks + ranks) % ranks, i, MPI_COMM_WORLD, &receives[i]);
    MPI_Waitall(CROWD, receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(CROWD, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < CROWD; i++) {
        if (in[i] != mix(seed_of(((rank - i) % ranks + ranks) % ranks, rank, i, 8)))
            fail("message %d of many is wrong", i);
    }
}

// ---- collectives ----------------------------------------------------------------------------------------------------

static void allreduce_of(int count)
{
    int64_t *out = (int64_t *)get_memory((size_t)count * 8), *in = (int64_t *)get_memory((size_t)count * 8);
    for (int i = 0; i < count; i++)
        out[i] = (int64_t)(rank + 1) * (i + 3);
    MPI_Allreduce(out, in, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        if (in[i] != (int64_t)ranks * (ranks + 1) / 2 * (i + 3))
            fail("allreduce: sum of %d, element %d", count, i);
    }
    MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        if (out[i] != (int64_t)ranks * (i + 3))
            fail("allreduce: greatest of %d, element %d", count, i);
    }
    free(out);
    free(in);
}

static void alltoall_of(int bytes)
{
    size_t block = (size_t)bytes;
    uint8_t *out = get_memory(block * (size_t)ranks), *in = get_memory(block * (size_t)ranks);
    for (int to = 0; to < ranks; to++)
        fill(out + block * (size_t)to, block, seed_of(rank, to, 1, block));
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++)
        check(in + block * (size_t)from, block, seed_of(from, rank, 1, block), "alltoall");
    free(out);
    free(in);
}

static void broadcast_of(int bytes, int root)
{
    uint8_t *memory = get_memory((size_t)bytes);
    if (rank == root)
        fill(memory, (size_t)bytes, seed_of(root, 0, 2, (size_t)bytes));
    MPI_Bcast(memory, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    check(memory, (size_t)bytes, seed_of(root, 0, 2, (size_t)bytes), "broadcast");
    free(memory);
}

static void collectives(void)
{
    static const int counts[] = {1, 2, 7, 100, 1000, 4096, 100000, 500000};
    static const int blocks[] = {1, 8, 63, 1000, 4096, 8257, 65536, 300000};
    part_begins("allreduce");
    for (size_t i = 0; i < COUNT(counts); i++)
        allreduce_of(counts[i]);
    part_begins("alltoall");
    for (size_t i = 0; i < COUNT(blocks); i++)
        alltoall_of(blocks[i]);
    part_begins("broadcast and barrier");
    for (int i = 0; i < 50; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < COUNT(blocks); i++)
        broadcast_of(blocks[i], (int)i % ranks);
}

// ---- one-sided ------------------------------------------------------------------------------------------------------

enum { WINDOW_WORDS = 40000 };

static int64_t *window_memory;
static MPI_Win window;

static void open_window(void)
{
    MPI_Win_allocate(WINDOW_WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &window);
    memset(window_memory, 0, WINDOW_WORDS * 8);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Each rank fills a stripe of every rank's window, then reads all stripes of its neighbour's.
static void put_and_get(void)
{
    const int stripe = WINDOW_WORDS / ranks;
    int64_t *words = (int64_t *)get_memory(WINDOW_WORDS * 8);
    part_begins("one-sided: put and get between fences");
    open_window();
    MPI_Win_fence(0, window);
    for (int i = 0; i < stripe; i++)
        words[i] = (int64_t)rank * 1000003 + i;
    for (int to = 0; to < ranks; to++)
        MPI_Put(words, stripe, MPI_INT64_T, to, (MPI_Aint)rank * stripe, stripe, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < stripe * ranks; i++) {
        if (window_memory[i] != (int64_t)(i / stripe) * 1000003 + i % stripe)
            fail("put: word %d is %lld", i, (long long)window_memory[i]);
    }
    memset(words, 0, WINDOW_WORDS * 8);
    MPI_Win_fence(0, window);
    MPI_Get(words, stripe * ranks, MPI_INT64_T, (rank + 1) % ranks, 0, stripe * ranks, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < stripe * ranks; i++) {
        if (words[i] != (int64_t)(i / stripe) * 1000003 + i % stripe)
            fail("get: word %d is %lld", i, (long long)words[i]);
    }
    MPI_Win_free(&window);
    free(words);
}

enum { ADDS = 50, ADD_WORDS = 500 };

// All ranks add to rank 0's words under a lock, and count on two of them with single-word operations.
static void add_up(void)
{
    int64_t ones[ADD_WORDS], one = 1, before, last = -1, expected, wanted;
    for (int i = 0; i < ADD_WORDS; i++)
        ones[i] = i + rank;
    for (int i = 0; i < ADDS; i++) {
        MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Accumulate(ones, ADD_WORDS, MPI_INT64_T, 0, 0, ADD_WORDS, MPI_INT64_T, MPI_SUM, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < ADDS; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, ADD_WORDS, MPI_SUM, window);
        MPI_Win_flush(0, window);
        if (before <= last)
            fail("fetch and add: %lld after %lld", (long long)before, (long long)last);
        last = before;
        for (expected = 0;; expected = before) {
            wanted = expected + 1;
            MPI_Compare_and_swap(&wanted, &expected, &before, MPI_INT64_T, 0, ADD_WORDS + 1, window);
            MPI_Win_flush(0, window);
            if (before == expected)
                break;
        }
    }
    MPI_Win_unlock_all(window);
}

static void accumulate(void)
{
    part_begins("one-sided: accumulate, fetch and add, compare and swap under locks");
    open_window();
    add_up();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        for (int i = 0; i < ADD_WORDS; i++) {
            int64_t sum = (int64_t)ADDS * ((int64_t)ranks * i + (int64_t)ranks * (ranks - 1) / 2);
            if (window_memory[i] != sum)
                fail("accumulate: word %d is %lld instead of %lld", i, (long long)window_memory[i], (long long)sum);
        }
        for (int i = 0; i < 2; i++) {
            if (window_memory[ADD_WORDS + i] != (int64_t)ADDS * ranks)
                fail("counter %d is %lld", i, (long long)window_memory[ADD_WORDS + i]);
        }
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--max") == 0)
            max_bytes = atoll(argv[i + 1]);
    }
    if (ranks < 2)
        fail("it takes two");
    point_to_point();
    wildcards();
    crowd();
    collectives();
    put_and_get();
    accumulate();
    part_begins("done");
    MPI_Finalize();
    return 0;
}
