// SPDX-License-Identifier: BSD-2-Clause
// A durable region's file over crashes at every byte of its journal, full disks, damage and restarts.
#include "device/tests/shelf.h"

#include "base/log.h"
#include "device/journal_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

static struct shelf shelf;
static uint8_t zeros[SHELF_REGION];

// The linker puts it before malloc (--wrap).
static _Thread_local bool has_no_memory;
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return has_no_memory ? NULL : __real_malloc(bytes);
}

// Likewise msync, which the store's thread calls.
static _Atomic int sync_errors; // so many calls are to fail
int __real_msync(void *address, size_t bytes, int flags);
int __wrap_msync(void *address, size_t bytes, int flags);

int __wrap_msync(void *address, size_t bytes, int flags)
{
    if (sync_errors == 0)
        return __real_msync(address, bytes, flags);
    sync_errors--;
    errno = EIO;
    return -1;
}

static const char *journal_path(void)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s.journal", shelf.path);
    return path;
}

static int setup(void **state)
{
    alb_log_set_level(ALB_LOG_ERROR); // warnings are expected, thousands of them
    shelf_make(&shelf, "/dev/shm");
    return 0;
}

static int teardown(void **state)
{
    shelf_remove(&shelf);
    return 0;
}

static bool has_bytes(uint64_t offset, uint32_t length, uint8_t byte)
{
    for (uint32_t i = 0; i < length; i++)
        if (shelf.store.address[offset + i] != byte)
            return false;
    return true;
}

static const struct alb_ledger_entry *entry_of(const struct shelf_txn *txn)
{
    return alb_ledger_find(&shelf.store.ledger, &txn->id);
}

static void alb_store__committed_survives(void **state)
{
    static struct shelf_txn one, two;
    shelf_fill(&one, 1, 1, 0, 100, 'a');
    shelf_fill(&two, 1, 2, 200, 100, 'b');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_PREPARE, 1), 0);
    assert_true(has_bytes(0, SHELF_REGION, 0));
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_COMMIT, 1), 0);
    assert_int_equal(entry_of(&two)->lease_ns, 1000); // at once as after a crash
    shelf_crash(&shelf);
    shelf_save(shelf.path, zeros, sizeof(zeros)); // nothing had been written back

    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(has_bytes(0, 100, 'a'));
    assert_true(has_bytes(200, 100, 0));
    assert_true(entry_of(&one)->is_committed);
    const struct alb_ledger_entry *bound = entry_of(&two);
    assert_non_null(bound);
    assert_false(bound->is_committed);
    assert_int_equal(bound->lease_ns, 1000);
    struct alb_journal_request request;
    void *memory;
    assert_int_equal(alb_store_recall(&shelf.store, bound, NULL, &request, &memory), 0);
    assert_int_equal(request.kind, ALB_JOURNAL_PREPARE);
    assert_int_equal(request.part_count, 1);
    assert_int_equal(request.parts[0].offset, 200);
    assert_int_equal(request.parts[0].length, 100);
    assert_memory_equal(request.parts[0].bytes, two.bytes[0], 100);
    assert_int_equal(request.digest.low, 2);
    free(memory);
    // Bound again, it can be committed.
    shelf.txns[shelf.txn_count++] = &two;
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_COMMIT, 1), 0);
    shelf_crash(&shelf);
    shelf_save(shelf.path, zeros, sizeof(zeros));
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(has_bytes(200, 100, 'b'));
    shelf_crash(&shelf);
}

static void alb_store__aborted_is_never_placed(void **state)
{
    static struct shelf_txn one, two;
    shelf_fill(&one, 1, 1, 0, 100, 'a');
    shelf_fill(&two, 2, 1, 50, 100, 'b');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_ABORT, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_COMMIT, 1), EINVAL);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(has_bytes(0, SHELF_REGION, 0));
    assert_null(entry_of(&one));
    assert_non_null(entry_of(&two));
    shelf_crash(&shelf);
}

static int ask_without_memory(struct shelf_txn *txn, enum alb_journal_kind kind)
{
    const struct alb_journal_request request = {.kind = kind, .id = txn->id};
    pthread_mutex_lock(&shelf.mutex);
    uint32_t before = shelf.answer_count;
    pthread_mutex_unlock(&shelf.mutex);
    has_no_memory = true;
    int error = alb_store_submit(&shelf.store, &request);
    has_no_memory = false;
    if (!error)
        shelf_wait(&shelf, before + 1);
    return error;
}

// What is bound can be given up whatever becomes of the process's memory: as often as it was bound, also before the
// last restart.
static void alb_store__aborting_needs_no_memory(void **state)
{
    static struct shelf_txn txns[6], unknown;
    shelf_fill(&unknown, 2, 1, 0, 100, 'x');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    for (uint32_t i = 0; i < ALB_COUNT(txns); i++) {
        shelf_fill(&txns[i], 1, i + 1, 100 * i, 100, 'a');
        assert_int_equal(shelf_ask(&shelf, &txns[i], ALB_JOURNAL_PREPARE, 1), 0);
    }
    assert_int_not_equal(shelf_ask(&shelf, &txns[0], ALB_JOURNAL_PREPARE, 1), 0); // twice
    assert_int_equal(shelf_ask(&shelf, &txns[0], ALB_JOURNAL_COMMIT, 1), 0);
    assert_int_equal(ask_without_memory(&txns[1], ALB_JOURNAL_COMMIT), ENOMEM);
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(ask_without_memory(&txns[i], ALB_JOURNAL_ABORT), 0);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    for (uint32_t i = 4; i < 6; i++)
        assert_int_equal(ask_without_memory(&txns[i], ALB_JOURNAL_ABORT), 0);
    assert_int_equal(ask_without_memory(&unknown, ALB_JOURNAL_ABORT), ENOMEM); // as many as there were
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(entry_of(&txns[0])->is_committed);
    for (uint32_t i = 1; i < 6; i++)
        assert_null(entry_of(&txns[i]));
    shelf_crash(&shelf);
}

static void alb_store__outcomes_until_the_low_water_mark(void **state)
{
    static struct shelf_txn one, two, other;
    shelf_fill(&one, 1, 1, 0, 100, 'a');
    shelf_fill(&two, 1, 2, 0, 100, 'b');
    shelf_fill(&other, 9, 1, 200, 100, 'c');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_COMMIT, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &other, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &other, ALB_JOURNAL_COMMIT, 1), 0);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_non_null(entry_of(&one)); // as an outcome, and still so after another restart
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(entry_of(&one)->is_committed);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_PREPARE, 2), 0);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_COMMIT, 2), 0);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_null(entry_of(&one));
    assert_non_null(entry_of(&two));
    assert_non_null(entry_of(&other));
    assert_true(has_bytes(0, 100, 'b'));
    shelf_crash(&shelf);
}

// Its region went, or was spoilt, between the journal's answer and the copy: closing makes the journal anew, and that
// has it still, though its initiator has passed it.
static void alb_store__what_is_not_placed_stays_in_the_journal(void **state)
{
    static struct shelf_txn one, two;
    shelf_fill(&one, 1, 1, 0, 100, 'a');
    shelf_fill(&two, 1, 2, 200, 100, 'b');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_COMMIT, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_PREPARE, 1), 0);
    shelf.places_nothing = true;
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_COMMIT, 3), 0);
    shelf.places_nothing = false;
    assert_true(has_bytes(0, 100, 0));
    alb_store_stop(&shelf.store);
    alb_store_close(&shelf.store, false);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(has_bytes(0, 100, 'a') && has_bytes(200, 100, 'b'));
    shelf_crash(&shelf);
}

static void alb_store__marks_survive(void **state)
{
    static struct shelf_txn one, two;
    shelf_fill(&one, 1, 6, 0, 100, 'a');
    shelf_fill(&two, 1, 7, 0, 100, 'b');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_PREPARE, 6), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_COMMIT, 6), 0);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_PREPARE, 7), 0);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_ABORT, 7), 0);
    for (int restart = 0; restart < 3; restart++) {
        shelf_crash(&shelf);
        assert_int_equal(shelf_open(&shelf, NULL), 0);
        assert_int_equal(alb_ledger_count(&shelf.store.ledger), 0);
        assert_int_equal(alb_ledger_initiator_count(&shelf.store.ledger), 1);
        assert_int_equal(alb_ledger_initiator_at(&shelf.store.ledger, 0)->name, 1);
        assert_int_equal(alb_ledger_initiator_at(&shelf.store.ledger, 0)->low_water, 7);
    }
    shelf_crash(&shelf);
}

// ---- crashes at every byte ------------------------------------------------------------------------------------------

#define STEPS 40

// Which transactions are committed, and which bound, when the journal ends there.
struct step {
    uint64_t end;
    uint8_t region[SHELF_REGION];
    uint32_t bound;
};

static struct step steps[STEPS + 1];
static struct shelf_txn history[STEPS];

// A history of transactions that overlap earlier ones, one journal record a step.
static uint32_t play_history(void)
{
    uint32_t count = 0, bound = 0, next = 0, decided = 0;
    steps[count++].end = shelf.store.journal.end;
    while (count <= STEPS) {
        bool prepares = next - decided < 3 && next < STEPS / 2 && (count % 3 != 0 || next == decided);
        struct shelf_txn *txn = prepares ? &history[next] : &history[decided];
        if (prepares) {
            shelf_fill(txn, 1 + next % 2, 1 + next, next % 4 * 64, 17 + next, (uint8_t)('A' + next));
            next++;
            bound++;
            assert_int_equal(shelf_ask(&shelf, txn, ALB_JOURNAL_PREPARE, 1), 0);
        } else if (decided == next) {
            break;
        } else {
            bool commits = decided++ % 4 != 3;
            bound--;
            assert_int_equal(shelf_ask(&shelf, txn, commits ? ALB_JOURNAL_COMMIT : ALB_JOURNAL_ABORT, 1), 0);
        }
        steps[count].end = shelf.store.journal.end;
        steps[count].bound = bound;
        memcpy(steps[count].region, shelf.store.address, SHELF_REGION);
        count++;
    }
    return count;
}

static void alb_store__crash_at_every_byte(void **state)
{
    size_t length;
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    uint32_t count = play_history();
    assert_true(count > 30);
    shelf_crash(&shelf);
    uint8_t *journal = shelf_load(journal_path(), &length);
    assert_int_equal(length, steps[count - 1].end);
    uint32_t step = 0;
    for (size_t end = steps[0].end; end <= length; end++) {
        shelf_save(shelf.path, zeros, sizeof(zeros));
        shelf_save(journal_path(), journal, end);
        while (step + 1 < count && steps[step + 1].end <= end)
            step++;
        assert_int_equal(shelf_open(&shelf, NULL), 0);
        assert_memory_equal(shelf.store.address, steps[step].region, SHELF_REGION);
        assert_int_equal(shelf.store.ledger.bound_count, steps[step].bound);
        shelf_crash(&shelf);
    }
    free(journal);
}

// The journal's header names the boot; another one there means that the machine went down in between.
static void pretend_reboot(uint8_t *journal)
{
    struct alb_journal_header header;
    assert_null(alb_journal_header_decode(journal, &header));
    header.boot[0] ^= 0xff;
    alb_journal_header_encode(&header, journal);
}

static void alb_store__unsafe_blocks_are_lost_with_the_machine(void **state)
{
    static struct shelf_txn one, two;
    size_t length;
    shelf_fill(&one, 1, 1, 0, 100, 'a');
    shelf_fill(&two, 1, 2, 200, 100, 'b');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_COMMIT, 1), 0);
    uint64_t safe = shelf.store.journal.end;
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_PREPARE, 1), 0);
    shelf_crash(&shelf);
    uint8_t *journal = shelf_load(journal_path(), &length);
    journal[safe + 150] ^= 1; // in the last record: it may never have been safe
    shelf_save(journal_path(), journal, length);
    assert_int_equal(shelf_open(&shelf, NULL), EBADMSG); // but not while the machine is up
    pretend_reboot(journal);
    shelf_save(journal_path(), journal, length);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(has_bytes(0, 100, 'a'));
    assert_null(entry_of(&two));
    shelf_crash(&shelf);
    journal[safe + 150] ^= 1;
    journal[safe - 150] ^= 1; // what a later record says was safe
    shelf_save(journal_path(), journal, length);
    assert_int_equal(shelf_open(&shelf, NULL), EBADMSG);
    free(journal);
}

// Left to the page cache no record is safe: behind a hole there may be more of them.
static void alb_store__a_hole_in_the_page_cache_is_no_damage(void **state)
{
    static struct shelf_txn one, two;
    const struct alb_store_init options = {.path = shelf.path, .length = SHELF_REGION, .page_cache = true};
    size_t length;
    shelf_fill(&one, 1, 1, 0, 100, 'a');
    shelf_fill(&two, 1, 2, 200, 100, 'b');
    assert_int_equal(shelf_open(&shelf, &options), 0);
    uint64_t first = shelf.store.journal.end;
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_PREPARE, 1), 0);
    shelf_crash(&shelf);
    uint8_t *journal = shelf_load(journal_path(), &length);
    memset(journal + first, 0, 100);
    pretend_reboot(journal);
    shelf_save(journal_path(), journal, length);
    assert_int_equal(shelf_open(&shelf, &options), 0);
    assert_null(entry_of(&one));
    assert_null(entry_of(&two));
    shelf_crash(&shelf);
    free(journal);
}

// ---- trouble with the disk ------------------------------------------------------------------------------------------

// Takes all space that is left on the file system of the folder, or gives it back.
static void fill_disk(const char *folder, bool is_full)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/filler", folder);
    if (!is_full) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof(zeros)) > 0)
        ;
    close(fd);
}

// Opens it by a descriptor of its folder, as a program may.
static int open_by_descriptor(struct shelf *opened)
{
    char path[160];
    const char *name = strrchr(opened->path, '/') + 1;
    int folder = open(opened->folder, O_RDONLY | O_DIRECTORY);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", folder, name);
    const struct alb_store_init init = {.path = path, .length = SHELF_REGION};
    assert_int_equal(shelf_open(opened, &init), 0);
    return folder;
}

// What is said of a full disk names the journal so that people find it.
static void alb_store__full_disk_is_named(void **state)
{
    static struct shelf_txn txns[64];
    static struct shelf full;
    char expected[160], line[1024] = "";
    if (mount("tmpfs", shelf.folder, "tmpfs", 0, "size=64k") != 0)
        skip();
    shelf_make(&full, shelf.folder);
    int folder = open_by_descriptor(&full);
    fill_disk(shelf.folder, true);
    int said = open("/dev/shm", O_TMPFILE | O_RDWR, 0600), kept = dup(STDERR_FILENO), error = 0;
    dup2(said, STDERR_FILENO);
    for (uint32_t i = 0; i < ALB_COUNT(txns) && !error; i++) {
        shelf_fill(&txns[i], 1, i + 1, 0, 500, 'a');
        error = shelf_ask(&full, &txns[i], ALB_JOURNAL_PREPARE, 1);
    }
    dup2(kept, STDERR_FILENO);
    assert_int_equal(error, ENOSPC);
    assert_true(pread(said, line, sizeof(line) - 1, 0) > 0);
    snprintf(expected, sizeof(expected), "albedo: error: %s.journal: No space left on device; ", full.path);
    assert_non_null(strstr(line, expected));
    close(said);
    close(kept);
    shelf_crash(&full);
    close(folder);
    fill_disk(shelf.folder, false);
    shelf_remove(&full);
    assert_int_equal(umount(shelf.folder), 0);
}

static void alb_store__full_disk(void **state)
{
    static struct shelf_txn txns[64], after;
    static struct shelf full;
    if (mount("tmpfs", shelf.folder, "tmpfs", 0, "size=64k") != 0)
        skip();
    shelf_make(&full, shelf.folder);
    assert_int_equal(shelf_open(&full, NULL), 0);
    uint32_t bound = 0;
    int error = 0;
    for (; bound < ALB_COUNT(txns) && !error; bound++) {
        shelf_fill(&txns[bound], 1, bound + 1, bound * 4, 500, (uint8_t)bound);
        error = shelf_ask(&full, &txns[bound], ALB_JOURNAL_PREPARE, 1);
        if (bound == 0)
            fill_disk(shelf.folder, true);
    }
    assert_int_equal(error, ENOSPC);
    // What was bound before can still be decided: space was kept for that.
    for (uint32_t i = 0; i + 1 < bound; i++)
        assert_int_equal(shelf_ask(&full, &txns[i], ALB_JOURNAL_COMMIT, 1), 0);
    fill_disk(shelf.folder, false);
    shelf_fill(&after, 2, 1, 3500, 100, 'z');
    assert_int_equal(shelf_ask(&full, &after, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&full, &after, ALB_JOURNAL_COMMIT, 1), 0);
    shelf_crash(&full);
    shelf_save(full.path, zeros, sizeof(zeros));
    assert_int_equal(shelf_open(&full, NULL), 0);
    assert_int_equal(alb_ledger_count(&full.store.ledger), bound - 1 + 1);
    assert_int_equal(full.store.address[3550], 'z');
    shelf_crash(&full);
    shelf_remove(&full);
    assert_int_equal(umount(shelf.folder), 0);
}

// A disk that has room for what is bound, though not for all that was ever committed, is enough.
static void alb_store__a_nearly_full_disk(void **state)
{
    static struct shelf_txn txns[400];
    static struct shelf small;
    if (mount("tmpfs", shelf.folder, "tmpfs", 0, "size=64k") != 0)
        skip();
    shelf_make(&small, shelf.folder);
    assert_int_equal(shelf_open(&small, NULL), 0);
    for (uint32_t i = 0; i < ALB_COUNT(txns); i += 4) {
        for (uint32_t k = i; k < i + 4; k++) {
            shelf_fill(&txns[k], 1, k + 1, k * 8, 500, (uint8_t)k);
            shelf_submit(&small, &txns[k], ALB_JOURNAL_PREPARE, i + 1);
        }
        shelf_wait(&small, 2 * i + 4);
        for (uint32_t k = i; k < i + 4; k++)
            shelf_submit(&small, &txns[k], ALB_JOURNAL_COMMIT, i + 1);
        shelf_wait(&small, 2 * i + 8);
    }
    for (uint32_t i = 0; i < small.answer_count; i++)
        assert_int_equal(small.answers[i].error, 0);
    shelf_crash(&small);
    assert_int_equal(shelf_open(&small, NULL), 0);
    assert_int_equal(small.store.address[8 * ALB_COUNT(txns)], (uint8_t)(ALB_COUNT(txns) - 1));
    shelf_crash(&small);
    shelf_remove(&small);
    assert_int_equal(umount(shelf.folder), 0);
}

static void alb_store__file_size_limit(void **state)
{
    static struct shelf_txn txns[64];
    struct rlimit before, limit;
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 3000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    uint32_t bound = 0;
    int error = 0;
    for (; bound < ALB_COUNT(txns) && !error; bound++) {
        shelf_fill(&txns[bound], 1, bound + 1, bound * 8, 200, (uint8_t)(1 + bound));
        error = shelf_ask(&shelf, &txns[bound], ALB_JOURNAL_PREPARE, 1);
    }
    assert_int_equal(error, EFBIG);
    for (uint32_t i = 0; i + 1 < bound; i++)
        assert_int_equal(shelf_ask(&shelf, &txns[i], ALB_JOURNAL_COMMIT, 1), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(alb_ledger_count(&shelf.store.ledger), bound - 1);
    shelf_crash(&shelf);
}

// The journal becomes a pipe, which can neither be written nor made safe nor cut.
static void alb_store__a_broken_journal_is_written_anew(void **state)
{
    static struct shelf_txn one, two, three;
    int ends[2];
    shelf_fill(&one, 1, 1, 0, 100, 'a');
    shelf_fill(&two, 1, 2, 200, 100, 'b');
    shelf_fill(&three, 1, 3, 400, 100, 'c');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &one, ALB_JOURNAL_COMMIT, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_ABORT, 1), 0); // of what was never there
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], shelf.store.journal.fd), shelf.store.journal.fd);
    close(ends[0]);
    close(ends[1]);
    assert_int_not_equal(shelf_ask(&shelf, &two, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &three, ALB_JOURNAL_PREPARE, 1), 0);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(entry_of(&one)->is_committed);
    assert_null(entry_of(&two));
    assert_false(entry_of(&three)->is_committed);
    shelf_crash(&shelf);
}

// Of what is asked for then nobody will say whether it was written.
static void alb_store_stop__gives_back_what_it_cannot_answer(void **state)
{
    static struct shelf_txn one, two;
    struct alb_txn_id id;
    shelf_fill(&one, 1, 1, 0, 100, 'a');
    shelf_fill(&two, 1, 2, 100, 100, 'b');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    shelf.store.keeps_journal = true; // it cannot be written anew
    shelf.store.journal.is_broken = true;
    shelf_submit(&shelf, &one, ALB_JOURNAL_PREPARE, 1);
    shelf_submit(&shelf, &two, ALB_JOURNAL_PREPARE, 1);
    alb_store_stop(&shelf.store);
    assert_true(alb_store_take_back(&shelf.store, &id));
    assert_int_equal(id.number, 1);
    assert_true(alb_store_take_back(&shelf.store, &id));
    assert_int_equal(id.number, 2);
    assert_false(alb_store_take_back(&shelf.store, &id));
    assert_int_equal(shelf.answer_count, 0);
    assert_false(shelf.store.has_thread); // nothing is left to wait for when it is stopped again
    shelf_crash(&shelf);
}

// When the file could not be written back once, a second attempt may succeed without having written anything: only the
// journal has the bytes for sure.
static void alb_store__a_file_that_was_not_written_back_needs_its_journal(void **state)
{
    static struct shelf_txn txns[20];
    assert_int_equal(shelf_open(&shelf, &(struct alb_store_init){.checkpoint_bytes = 1000}), 0);
    sync_errors = 1;
    for (uint32_t i = 0; i < ALB_COUNT(txns); i++) {
        shelf_fill(&txns[i], 1, i + 1, i * 100, 100, (uint8_t)(i + 1));
        assert_int_equal(shelf_ask(&shelf, &txns[i], ALB_JOURNAL_PREPARE, 1), 0);
        assert_int_equal(shelf_ask(&shelf, &txns[i], ALB_JOURNAL_COMMIT, 1), 0);
        shelf.store.checkpoint_after = 0; // no second passes
    }
    assert_int_equal(sync_errors, 0);
    alb_store_stop(&shelf.store);
    alb_store_close(&shelf.store, false);
    shelf_save(shelf.path, zeros, sizeof(zeros));
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    for (uint32_t i = 0; i < ALB_COUNT(txns); i++)
        assert_true(has_bytes(i * 100, 100, (uint8_t)(i + 1)));
    shelf_crash(&shelf);
}

// ---- size and load --------------------------------------------------------------------------------------------------

static void alb_store__size_is_bounded(void **state)
{
    static struct shelf_txn txns[200], bound;
    const struct alb_store_init options = {.checkpoint_bytes = 8192};
    assert_int_equal(shelf_open(&shelf, &options), 0);
    shelf_fill(&bound, 9, 1, 3000, 300, 'x');
    assert_int_equal(shelf_ask(&shelf, &bound, ALB_JOURNAL_PREPARE, 1), 0);
    for (uint32_t i = 0; i < ALB_COUNT(txns); i++) {
        shelf_fill(&txns[i], 1, i + 1, i, 400, (uint8_t)i);
        assert_int_equal(shelf_ask(&shelf, &txns[i], ALB_JOURNAL_PREPARE, i), 0);
        assert_int_equal(shelf_ask(&shelf, &txns[i], ALB_JOURNAL_COMMIT, i), 0);
        assert_true(shelf.store.journal.end < 10000);
    }
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, &options), 0);
    assert_int_equal(shelf.store.address[199], 199);
    assert_int_equal(shelf.store.ledger.bound_count, 1); // it went along with each checkpoint
    struct alb_journal_request request;
    void *memory;
    assert_int_equal(alb_store_recall(&shelf.store, entry_of(&bound), NULL, &request, &memory), 0);
    assert_memory_equal(request.parts[0].bytes, bound.bytes[0], 300);
    free(memory);
    shelf_crash(&shelf);
}

static void alb_store__many_requests_at_once(void **state)
{
    static struct shelf_txn txns[300];
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    for (uint32_t i = 0; i < ALB_COUNT(txns); i++) {
        shelf_fill(&txns[i], 1, i + 1, i * 8, 8, (uint8_t)(i | 1));
        shelf_submit(&shelf, &txns[i], ALB_JOURNAL_PREPARE, 1);
        shelf_submit(&shelf, &txns[i], ALB_JOURNAL_COMMIT, 1);
    }
    shelf_wait(&shelf, 2 * ALB_COUNT(txns));
    for (uint32_t i = 0; i < shelf.answer_count; i++) {
        assert_int_equal(shelf.answers[i].error, 0);
        assert_int_equal(shelf.answers[i].id.number, i / 2 + 1);
    }
    shelf_crash(&shelf);
    shelf_save(shelf.path, zeros, sizeof(zeros));
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    for (uint32_t i = 0; i < ALB_COUNT(txns); i++)
        assert_true(has_bytes(i * 8, 8, (uint8_t)(i | 1)));
    shelf_crash(&shelf);
}

static void alb_store_submit__of_the_same_twice(void **state)
{
    static struct shelf_txn txn;
    shelf_fill(&txn, 1, 1, 0, 8, 'a');
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_int_equal(shelf_ask(&shelf, &txn, ALB_JOURNAL_PREPARE, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &txn, ALB_JOURNAL_PREPARE, 1), EEXIST);
    assert_int_equal(shelf_ask(&shelf, &txn, ALB_JOURNAL_COMMIT, 1), 0);
    assert_int_equal(shelf_ask(&shelf, &txn, ALB_JOURNAL_COMMIT, 1), EINVAL);
    shelf_crash(&shelf);
    assert_int_equal(shelf_open(&shelf, NULL), 0);
    assert_true(entry_of(&txn)->is_committed);
    shelf_crash(&shelf);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(alb_store__committed_survives),
        TEST(alb_store__aborted_is_never_placed),
        TEST(alb_store__aborting_needs_no_memory),
        TEST(alb_store__outcomes_until_the_low_water_mark),
        TEST(alb_store__what_is_not_placed_stays_in_the_journal),
        TEST(alb_store__marks_survive),
        TEST(alb_store__crash_at_every_byte),
        TEST(alb_store__unsafe_blocks_are_lost_with_the_machine),
        TEST(alb_store__a_hole_in_the_page_cache_is_no_damage),
        TEST(alb_store__full_disk),
        TEST(alb_store__full_disk_is_named),
        TEST(alb_store__a_nearly_full_disk),
        TEST(alb_store__file_size_limit),
        TEST(alb_store__a_broken_journal_is_written_anew),
        TEST(alb_store_stop__gives_back_what_it_cannot_answer),
        TEST(alb_store__a_file_that_was_not_written_back_needs_its_journal),
        TEST(alb_store__size_is_bounded),
        TEST(alb_store__many_requests_at_once),
        TEST(alb_store_submit__of_the_same_twice),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
