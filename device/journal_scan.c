// SPDX-License-Identifier: BSD-2-Clause
// Reading a journal.
#include "device/journal_scan.h"

#include <string.h>

bool alb_journal_scan_begin(struct alb_journal_scan *scan, const uint8_t *image, uint64_t image_bytes,
                            const uint8_t boot[ALB_JOURNAL_BOOT_BYTES])
{
    *scan = (struct alb_journal_scan){.image = image, .image_bytes = image_bytes};
    // A journal appears under its name when it is complete, so that even a short one is damaged.
    scan->trouble = image_bytes < ALB_JOURNAL_HEADER_BYTES ? "it is shorter than a header"
                                                           : alb_journal_header_decode(image, &scan->header);
    if (scan->trouble)
        return false;
    scan->same_boot = memcmp(boot, scan->header.boot, ALB_JOURNAL_BOOT_BYTES) == 0;
    scan->at = ALB_JOURNAL_HEADER_BYTES;
    return true;
}

// True if some record behind this place was written when the one that should be here was safe.
static bool was_safe(const struct alb_journal_scan *scan)
{
    uint64_t expected = scan->sequence + 1;
    for (uint64_t at = scan->at + 8; at + ALB_JOURNAL_RECORD_BYTES <= scan->image_bytes; at += 8) {
        struct alb_record later;
        if (!alb_record_decode(scan->image + at, scan->header.keeper, &later) && later.sequence > expected &&
            later.synced >= expected)
            return true;
    }
    return false;
}

static enum alb_scan_result judge(struct alb_journal_scan *scan, const char *trouble)
{
    scan->trouble = trouble;
    return scan->same_boot || was_safe(scan) ? ALB_SCAN_DAMAGED : ALB_SCAN_TORN;
}

static enum alb_scan_result tear(struct alb_journal_scan *scan)
{
    scan->trouble = "it ends within a record";
    return ALB_SCAN_TORN;
}

enum alb_scan_result alb_journal_scan_next(struct alb_journal_scan *scan, struct alb_record *record,
                                           const uint8_t **body)
{
    uint64_t left = scan->image_bytes - scan->at;
    const uint8_t *bytes = scan->image + scan->at;
    if (left == 0)
        return ALB_SCAN_END;
    if (left < ALB_JOURNAL_RECORD_BYTES)
        return tear(scan);
    const char *trouble = alb_record_decode(bytes, scan->header.keeper, record);
    if (!trouble && record->sequence != scan->sequence + 1)
        trouble = "a record is missing before this one";
    if (trouble)
        return judge(scan, trouble);
    if (record->length > left)
        return tear(scan);
    *body = bytes + ALB_JOURNAL_RECORD_BYTES;
    trouble = alb_record_check_body(record, *body, scan->header.region_bytes);
    if (trouble)
        return judge(scan, trouble);
    scan->sequence = record->sequence;
    scan->at += record->length;
    return ALB_SCAN_RECORD;
}
