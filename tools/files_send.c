// SPDX-License-Identifier: BSD-2-Clause
// Sending chunks as transactions.
#include "tools/files_send.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TABLE_ENTRIES 4096u // of the receiver's table that are read at a time
#define ENTRY_BYTES   16u
#define TRIES_MAX     20 // of a transaction that was refused for a reason that passes
#define WAIT_MS       100
#define LOOKS_MAX     50
#define TICK_NS       20000000 // more than one of a kernel of 100 Hz, by which files are given their times
// What the receiver is bound for: more than a round trip, which it has to be told the decision in. As long as this is
// enough what a dead sender leaves there is soon free again.
#define LEASE_NS_MIN ALB_NS_PER_S
#define LEASE_NS_MAX (60 * ALB_NS_PER_S)

struct slot {
    uint64_t chunk;
    uint32_t length;
    uint32_t tries;
    uint64_t lease_ns;
    bool is_busy;
};

struct sending {
    struct files_link *link;
    const struct files_place *place;
    int fd;
    uint64_t size, chunks;
    uint32_t chunk_bytes;
    struct progress *progress;
    char *why;
    struct slot slots[FILES_IN_FLIGHT];
    uint32_t busy_count; // of slots, and the READ of a piece of the table
    uint64_t lease_ns;
    // Registered: each slot's chunk and table entry, then a piece of the receiver's table.
    uint8_t *memory;
    struct ibv_mr *mr;
    uint64_t table_first; // of the piece; UINT64_MAX: none yet
};

static size_t slot_bytes(const struct sending *sending)
{
    return (size_t)sending->chunk_bytes + 64;
}

static uint8_t *slot_memory(const struct sending *sending, uint32_t index)
{
    return sending->memory + index * slot_bytes(sending);
}

static uint8_t *table_memory(const struct sending *sending)
{
    return sending->memory + FILES_IN_FLIGHT * slot_bytes(sending);
}

static void set_sge(struct sending *sending, const void *bytes, uint32_t length)
{
    ibv_wr_set_sge(sending->link->qp->qp, sending->mr->lkey, (uintptr_t)bytes, length);
}

static enum files_result post(struct sending *sending, uint32_t index)
{
    struct slot *slot = &sending->slots[index];
    const struct files_place *place = sending->place;
    struct albdv_qp_ex *qp = sending->link->qp;
    uint8_t *memory = slot_memory(sending, index);
    ibv_wr_start(qp->qp);
    qp->qp->wr_id = index;
    qp->qp->wr_flags = IBV_SEND_SIGNALED;
    albdv_wr_txn(qp, ALBDV_COMMITTED, 0);
    albdv_wr_txn_write(qp, place->rkey, place->address + slot->chunk * sending->chunk_bytes);
    set_sge(sending, memory, slot->length);
    albdv_wr_txn_write(qp, place->table_rkey, place->table + slot->chunk * ENTRY_BYTES);
    set_sge(sending, memory + sending->chunk_bytes, ENTRY_BYTES);
    albdv_wr_txn_lease(qp, slot->lease_ns = sending->lease_ns);
    albdv_wr_txn_end(qp);
    int error = ibv_wr_complete(qp->qp);
    if (error) {
        snprintf(sending->why, FILES_WHY_MAX, "a transaction cannot be posted: %s", strerror(error));
        return error == EINVAL ? FILES_FAILED : FILES_LOST;
    }
    slot->is_busy = true;
    sending->busy_count++;
    return FILES_OK;
}

static enum files_result change(const struct sending *sending)
{
    snprintf(sending->why, FILES_WHY_MAX, "it changed while it was copied; copy it again when it is at rest");
    return FILES_CHANGED;
}

static enum files_result read_chunk(struct sending *sending, uint8_t *memory, uint64_t chunk, uint32_t length)
{
    for (uint32_t done = 0; done < length;) {
        ssize_t got = pread(sending->fd, memory + done, length - done, (off_t)(chunk * sending->chunk_bytes + done));
        if (got == 0)
            return change(sending); // it is shorter now
        if (got < 0 && errno != EINTR) {
            snprintf(sending->why, FILES_WHY_MAX, "cannot be read: %s", strerror(errno));
            return FILES_FAILED;
        }
        done += got > 0 ? (uint32_t)got : 0;
    }
    return FILES_OK;
}

// The slot's chunk with its table entry, from the file.
static enum files_result fill(struct sending *sending, uint32_t index, struct alb_digest *digest)
{
    const struct slot *slot = &sending->slots[index];
    uint8_t *memory = slot_memory(sending, index);
    enum files_result result = read_chunk(sending, memory, slot->chunk, slot->length);
    if (result != FILES_OK)
        return result;
    *digest = alb_digest_of(memory, slot->length);
    memcpy(memory + sending->chunk_bytes, digest, ENTRY_BYTES);
    return FILES_OK;
}

// A full journal has room again once what is under way has ended, if it was that which filled it.
static bool may_pass(const struct sending *sending, enum albdv_reason reason)
{
    return reason == ALBDV_DIGEST || reason == ALBDV_BUSY || reason == ALBDV_NO_MEMORY || reason == ALBDV_LEASE ||
           (reason == ALBDV_JOURNAL && sending->busy_count > 0);
}

// What a new connection repairs, or time: it finds what was committed, and sends the rest. What stands otherwise than
// it was agreed to is not read again before it has been replaced. Who shares the receiver's memory will be done some
// time.
static bool may_begin_anew(enum albdv_reason reason)
{
    return reason == ALBDV_PEER_GONE || reason == ALBDV_LOST || reason == ALBDV_REGION_GONE || reason == ALBDV_COPY ||
           reason == ALBDV_NO_MEMORY;
}

// No more than the reason comes over the wire: the receiver's device has said which error of its disk it was.
static const char *advice(enum albdv_reason reason)
{
    return reason == ALBDV_JOURNAL ? "; is its disk full? Make room there and copy it again, and it goes on from here; "
                                     "a smaller --chunk needs less, and begins anew"
           : reason == ALBDV_ACCESS ? "; has another copy to this name begun?"
                                    : "";
}

static enum files_result lose(const struct sending *sending)
{
    snprintf(sending->why, FILES_WHY_MAX, "the connection was lost");
    return FILES_LOST;
}

static enum files_result complete(struct sending *sending, const struct ibv_wc *wc)
{
    struct slot *slot = &sending->slots[wc->wr_id];
    enum albdv_reason reason = albdv_wc_reason(wc);
    slot->is_busy = false;
    sending->busy_count--;
    if (wc->status == IBV_WC_SUCCESS) {
        progress_add(sending->progress, slot->length, false);
        return FILES_OK;
    }
    if (wc->status != IBV_WC_REM_ABORT_ERR && wc->status != IBV_WC_REM_OP_ERR)
        return lose(sending);  // the queue pair's own error, or the outcome is unknown
    if (reason == ALBDV_LEASE) // of all that were under way with the same one the first to end doubles it
        sending->lease_ns = ALB_MAX(sending->lease_ns, ALB_MIN(2 * slot->lease_ns, (uint64_t)LEASE_NS_MAX));
    if (may_pass(sending, reason) && ++slot->tries < TRIES_MAX) {
        struct alb_digest digest;
        usleep(1000u << ALB_MIN(slot->tries, 7u));
        // If it arrived otherwise than it was posted, the memory here may have changed in between.
        enum files_result result = reason == ALBDV_DIGEST ? fill(sending, (uint32_t)wc->wr_id, &digest) : FILES_OK;
        return result != FILES_OK ? result : post(sending, (uint32_t)wc->wr_id);
    }
    snprintf(sending->why, FILES_WHY_MAX, "the receiver did not commit bytes %llu to %llu: %s%s",
             (unsigned long long)slot->chunk * sending->chunk_bytes,
             (unsigned long long)slot->chunk * sending->chunk_bytes + slot->length, albdv_reason_str(reason),
             advice(reason));
    return may_begin_anew(reason) ? FILES_LOST : FILES_FAILED;
}

// Waits for one completion.
static enum files_result advance(struct sending *sending)
{
    struct ibv_wc wc;
    int got;
    while ((got = files_link_wait(sending->link, &wc, WAIT_MS)) == 0 && sending->link->inbox_count == 0)
        ;
    // The receiver says nothing while it is sent to, unless it gives up; then it goes, which may be seen first.
    if (got <= 0 && sending->link->inbox_count > 0) {
        files_link_quote(sending->link, &sending->link->inbox[0], sending->why);
        return FILES_FAILED;
    }
    if (got < 0)
        return lose(sending);
    if (wc.wr_id == FILES_WR_READ) {
        sending->busy_count--;
        return wc.status == IBV_WC_SUCCESS ? FILES_OK : lose(sending);
    }
    return complete(sending, &wc);
}

static enum files_result drain(struct sending *sending)
{
    enum files_result result = FILES_OK;
    while (result == FILES_OK && sending->busy_count > 0)
        result = advance(sending);
    return result;
}

// Reads the piece of the receiver's table that has this chunk.
static enum files_result read_table(struct sending *sending, uint64_t chunk)
{
    uint64_t first = chunk / TABLE_ENTRIES * TABLE_ENTRIES;
    if (first == sending->table_first)
        return FILES_OK;
    enum files_result result = drain(sending); // whatever completes then is the READ
    if (result != FILES_OK)
        return result;
    struct ibv_qp_ex *qp = sending->link->qp->qp;
    uint32_t count = (uint32_t)ALB_MIN((uint64_t)TABLE_ENTRIES, sending->chunks - first);
    ibv_wr_start(qp);
    qp->wr_id = FILES_WR_READ;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(qp, sending->place->table_rkey, sending->place->table + first * ENTRY_BYTES);
    set_sge(sending, table_memory(sending), count * ENTRY_BYTES);
    if (ibv_wr_complete(qp) != 0)
        return lose(sending);
    sending->busy_count++;
    sending->table_first = first;
    return advance(sending);
}

static uint32_t free_slot(const struct sending *sending)
{
    uint32_t index = 0;
    while (sending->slots[index].is_busy)
        index++;
    return index;
}

static enum files_result send_chunk(struct sending *sending, uint64_t chunk, struct alb_digest_state *whole)
{
    enum files_result result = read_table(sending, chunk);
    while (result == FILES_OK && sending->busy_count == FILES_IN_FLIGHT)
        result = advance(sending);
    if (result != FILES_OK)
        return result;
    uint32_t index = free_slot(sending);
    uint8_t *memory = slot_memory(sending, index);
    uint32_t length = (uint32_t)ALB_MIN((uint64_t)sending->chunk_bytes, sending->size - chunk * sending->chunk_bytes);
    struct alb_digest digest;
    sending->slots[index] = (struct slot){.chunk = chunk, .length = length};
    result = fill(sending, index, &digest);
    if (result != FILES_OK)
        return result;
    alb_digest_add(whole, memory, length);
    const uint8_t *entry = table_memory(sending) + (chunk - sending->table_first) * ENTRY_BYTES;
    if (memcmp(entry, &digest, ENTRY_BYTES) == 0) {
        progress_add(sending->progress, length, true);
        return FILES_OK;
    }
    return post(sending, index);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

// A change within a tick of the clock leaves the time as it is: what has just been written is looked at again when the
// next change will have a time of its own. False: it does not come to rest.
static bool stat_at_rest(int fd, struct stat *status)
{
    for (uint32_t looks = 0; looks < LOOKS_MAX; looks++) {
        struct timespec now;
        if (fstat(fd, status) != 0)
            return false;
        clock_gettime(CLOCK_REALTIME, &now);
        int64_t age =
            (now.tv_sec - status->st_mtim.tv_sec) * (int64_t)ALB_NS_PER_S + now.tv_nsec - status->st_mtim.tv_nsec;
        if (age < 0 || age > TICK_NS) // of the future: by another host's clock, or by hand
            return true;
        usleep(TICK_NS / 1000);
    }
    return false;
}

enum files_result files_send_check_end(int fd, uint64_t size, char why[FILES_WHY_MAX])
{
    uint8_t more;
    ssize_t got = pread(fd, &more, sizeof(more), (off_t)size);
    if (got <= 0)
        return FILES_OK;
    snprintf(why, FILES_WHY_MAX,
             "it has more than the %llu bytes that its size says: it grows, or is no plain file; copy one that is at "
             "rest",
             (unsigned long long)size);
    return FILES_CHANGED;
}

static enum files_result send_all(struct sending *sending, struct alb_digest *digest)
{
    struct alb_digest_state whole;
    struct stat before, after;
    enum files_result result = FILES_OK;
    alb_digest_begin(&whole);
    if (!stat_at_rest(sending->fd, &before) || (uint64_t)before.st_size != sending->size)
        return change(sending);
    for (uint64_t chunk = 0; chunk < sending->chunks && result == FILES_OK; chunk++)
        result = send_chunk(sending, chunk, &whole);
    if (result == FILES_OK)
        result = drain(sending);
    if (result != FILES_OK)
        return result;
    *digest = alb_digest_end(&whole);
    if (fstat(sending->fd, &after) != 0 || !is_same(&before, &after))
        return change(sending);
    return files_send_check_end(sending->fd, sending->size, sending->why);
}

// Waits for what is under way on a connection that still works, so that the other side can be told why it is given up:
// the queue pair would fail over memory that is taken from it.
static void settle(const struct sending *sending)
{
    struct ibv_wc wc;
    uint32_t left = sending->busy_count;
    int got = 0;
    while (left > 0 && got >= 0) {
        got = files_link_wait(sending->link, &wc, WAIT_MS);
        left -= got > 0;
    }
}

enum files_result files_send(struct files_link *link, int fd, uint64_t size, uint32_t chunk_bytes,
                             const struct files_place *place, struct progress *progress, struct alb_digest *digest,
                             char why[FILES_WHY_MAX])
{
    struct sending sending = {
        .link = link,
        .place = place,
        .fd = fd,
        .size = size,
        .chunks = files_chunks(size, chunk_bytes),
        .chunk_bytes = chunk_bytes,
        .progress = progress,
        .why = why,
        .lease_ns = LEASE_NS_MIN,
        .table_first = UINT64_MAX,
    };
    size_t bytes = FILES_IN_FLIGHT * slot_bytes(&sending) + (size_t)TABLE_ENTRIES * ENTRY_BYTES;
    sending.memory = malloc(bytes);
    if (sending.memory)
        sending.mr = ibv_reg_mr(link->pd, sending.memory, bytes, IBV_ACCESS_LOCAL_WRITE);
    enum files_result result = FILES_FAILED;
    if (sending.mr)
        result = send_all(&sending, digest);
    else
        snprintf(why, FILES_WHY_MAX, "no memory for %zu bytes of buffers: use a smaller --chunk", bytes);
    bool is_cancelled = atomic_load(&link->is_cancelled);
    if (is_cancelled)
        files_link_part(link); // the caller has something to say about it
    if (result != FILES_OK)
        settle(&sending);
    if (result == FILES_LOST && !is_cancelled)
        link->is_lost = true; // also where it is not, and the other side is to come again
    // A queue pair that was lost may still be at work on it; what it sends then is ignored.
    if (sending.mr)
        ibv_dereg_mr(sending.mr);
    free(sending.memory);
    return result;
}
