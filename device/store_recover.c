// SPDX-License-Identifier: BSD-2-Clause
// Recovery from a journal.
#include "device/store_recover.h"

#include "device/journal_scan.h"
#include "device/shown_path.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static void read_boot(uint8_t boot[ALB_JOURNAL_BOOT_BYTES])
{
    char text[64] = "";
    uint32_t digits = 0;
    memset(boot, 0, ALB_JOURNAL_BOOT_BYTES);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    for (ssize_t i = 0; i < got && digits < 2 * ALB_JOURNAL_BOOT_BYTES; i++) {
        const char *digit = strchr("0123456789abcdef", text[i]);
        if (!digit || !*digit)
            continue;
        boot[digits / 2] |= (uint8_t)((digit - "0123456789abcdef") << (digits % 2 ? 0 : 4));
        digits++;
    }
    if (fd >= 0)
        close(fd);
    // Not known: no two openings are then of one boot.
    if (digits == 0 && getrandom(boot, ALB_JOURNAL_BOOT_BYTES, 0) < 0)
        boot[0] = (uint8_t)getpid();
}

static int report_damage(const struct alb_store *store, const struct alb_journal_scan *scan)
{
    char text[ALB_SHOWN_PATH_MAX], journal[ALB_SHOWN_PATH_MAX];
    alb_log(ALB_LOG_ERROR,
            "%s: damaged at byte %llu: %s. %s is not opened, since transactions that were reported as committed may be "
            "lost: restore both files from a copy, or remove the journal and accept the file as it is",
            alb_shown_path(store->journal.path, journal), (unsigned long long)scan->at, scan->trouble,
            alb_shown_path(store->path, text));
    return EBADMSG;
}

static void place(struct alb_store *store, const uint8_t *image, const struct alb_ledger_entry *entry)
{
    const uint8_t *body = image + entry->at + ALB_JOURNAL_RECORD_BYTES;
    const uint8_t *payload = body + alb_record_tables_bytes(entry->part_count, entry->condition_count);
    for (uint32_t i = 0; i < entry->part_count; i++) {
        struct alb_record_part part;
        alb_record_part_decode(body + (size_t)i * ALB_JOURNAL_PART_BYTES, &part);
        memcpy(store->address + part.offset, payload, part.length);
        payload += part.length;
    }
}

static int add(struct alb_store *store, const struct alb_record *record, uint64_t at)
{
    struct alb_ledger_entry *entry;
    int error = alb_ledger_add(&store->ledger, &record->id, &entry);
    if (error)
        return error;
    entry->digest = record->digest;
    entry->lease_ns = record->lease_ns;
    entry->part_count = record->part_count;
    entry->condition_count = record->condition_count;
    entry->at = at;
    if (record->kind == ALB_RECORD_OUTCOME) {
        alb_ledger_commit(&store->ledger, entry);
        entry->is_placed = true;
    }
    return 0;
}

// image: NULL if nothing is to be placed yet. NULL in *trouble, or what about a sound record contradicts those before
// it.
static int replay(struct alb_store *store, const struct alb_record *record, const uint8_t *image, uint64_t at,
                  const char **trouble)
{
    struct alb_ledger_entry *entry = alb_ledger_find(&store->ledger, &record->id);
    int error = 0;
    *trouble = NULL;
    alb_ledger_pass(&store->ledger, record->id.initiator, record->low_water); // as when it was written: it makes room
    switch (record->kind) {
    case ALB_RECORD_PREPARE:
    case ALB_RECORD_OUTCOME:
        if (entry)
            *trouble = "a transaction begins twice";
        else
            error = add(store, record, at);
        break;
    case ALB_RECORD_COMMIT:
        if (!entry || entry->is_committed) {
            *trouble = "a transaction is committed that is not bound";
            break;
        }
        alb_ledger_commit(&store->ledger, entry);
        if (image)
            place(store, image, entry);
        entry->is_placed = true;
        break;
    case ALB_RECORD_MARK:
        error = alb_ledger_know(&store->ledger, record->id.initiator, record->low_water);
        break;
    case ALB_RECORD_ABORT:
        if (!entry || entry->is_committed)
            *trouble = "a transaction is aborted that is not bound";
        else
            alb_ledger_drop(&store->ledger, entry);
        break;
    }
    if (error == ENOSPC)
        *trouble = "it has more transactions or initiators than a journal ever has";
    if (!error && !*trouble)
        alb_ledger_pass(&store->ledger, record->id.initiator, record->low_water);
    return error;
}

// Goes through the journal and leaves scan->at where it ends, or is in trouble.
static int replay_all(struct alb_store *store, struct alb_journal_scan *scan, bool places)
{
    struct alb_record record;
    const uint8_t *body;
    int error = 0;
    for (uint64_t at = scan->at; !error; at = scan->at) {
        const char *trouble = NULL;
        enum alb_scan_result result = alb_journal_scan_next(scan, &record, &body);
        if (result == ALB_SCAN_END || result == ALB_SCAN_TORN)
            return 0;
        if (result == ALB_SCAN_RECORD)
            error = replay(store, &record, places ? scan->image : NULL, at, &trouble);
        if (trouble)
            scan->trouble = trouble;
        if (trouble || result == ALB_SCAN_DAMAGED) {
            scan->at = at;
            return report_damage(store, scan);
        }
    }
    return error;
}

static int recover_from(struct alb_store *store, const uint8_t *image, uint64_t image_bytes,
                        const uint8_t boot[ALB_JOURNAL_BOOT_BYTES])
{
    struct alb_journal_scan scan;
    if (!alb_journal_scan_begin(&scan, image, image_bytes, boot))
        return report_damage(store, &scan);
    int error = replay_all(store, &scan, false);
    if (error)
        return error;
    char text[ALB_SHOWN_PATH_MAX];
    uint64_t end = scan.at;
    if (end < image_bytes)
        alb_log(ALB_LOG_WARNING,
                "%s: the last %llu bytes were not written completely, and never acknowledged: "
                "cut off",
                alb_shown_path(store->journal.path, text), (unsigned long long)(image_bytes - end));
    alb_ledger_fini(&store->ledger);
    error = alb_ledger_init(&store->ledger);
    if (error)
        return error;
    alb_journal_scan_begin(&scan, image, end, boot);
    store->journal.header = scan.header;
    error = replay_all(store, &scan, true);
    return error ? error : alb_journal_resume(&store->journal, end, scan.sequence);
}

static uint64_t draw_keeper(void)
{
    uint64_t keeper = 0;
    while (keeper == 0)
        if (getrandom(&keeper, sizeof(keeper), 0) != sizeof(keeper))
            return 0;
    return keeper;
}

int alb_store_open_journal(struct alb_store *store)
{
    struct alb_journal_scan scan = {0};
    int error = alb_journal_open(&store->journal);
    if (error)
        return error == ENOENT ? 0 : error;
    if (alb_journal_read_header(&store->journal, &scan.header) != 0) // is found again when all of it is read
        return 0;
    if (scan.header.region_bytes <= store->found_bytes)
        return 0;
    scan.trouble = "it is of a larger file: that one was removed or cut";
    return report_damage(store, &scan);
}

int alb_store_recover(struct alb_store *store, bool page_cache)
{
    uint8_t boot[ALB_JOURNAL_BOOT_BYTES], *image;
    uint64_t image_bytes;
    int error = 0;
    read_boot(boot);
    if (store->journal.fd < 0) {
        store->journal.header.keeper = draw_keeper();
        error = store->journal.header.keeper ? 0 : EIO;
    } else {
        error = alb_journal_read(&store->journal, &image, &image_bytes);
        if (!error) {
            error = recover_from(store, image, image_bytes, boot);
            free(image);
        }
    }
    if (error)
        return error;
    store->journal.header.region_bytes = store->length;
    store->journal.header.page_cache = page_cache;
    memcpy(store->journal.header.boot, boot, sizeof(boot));
    if (msync(store->address, store->length, MS_SYNC) != 0)
        return errno;
    return alb_journal_checkpoint(&store->journal, &store->ledger);
}
