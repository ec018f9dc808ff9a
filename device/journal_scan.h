// SPDX-License-Identifier: BSD-2-Clause
// Reading a journal that may have been cut off anywhere, or damaged. Two things look alike and must not be confused: a
// torn tail (what was being written when the process or the machine went down, and never reported) is cut off; damage
// to what had been safe is refused, because transactions that were reported as committed may be in it.
//
// What tells them apart: while the machine has not gone down, a file only ever ends early, so everything else is
// damage. After it has, blocks of the unsafe tail may be there in any selection; but each record says up to which
// record everything was safe, so a readable later one proves an unreadable earlier one damaged. What this cannot tell:
// damage to the last record of all, after the machine went down, from that record's never having been safe.
#pragma once

#include "device/journal_record.h"

enum alb_scan_result {
    ALB_SCAN_RECORD,
    ALB_SCAN_END,
    ALB_SCAN_TORN,    // from scan->at on: to be cut off
    ALB_SCAN_DAMAGED, // at scan->at
};

struct alb_journal_scan {
    const uint8_t *image;
    uint64_t image_bytes;
    struct alb_journal_header header;
    bool same_boot;      // the machine is still up that the file was made by
    uint64_t at;         // of the next record, or of the trouble
    uint64_t sequence;   // of the last record
    const char *trouble; // of TORN and DAMAGED: what is wrong there
};

// image stays the caller's. False: damaged at its beginning, with the trouble said. boot: the machine's now.
bool alb_journal_scan_begin(struct alb_journal_scan *scan, const uint8_t *image, uint64_t image_bytes,
                            const uint8_t boot[ALB_JOURNAL_BOOT_BYTES]);

// On RECORD *body points into the image and has been checked. The other results are final.
enum alb_scan_result alb_journal_scan_next(struct alb_journal_scan *scan, struct alb_record *record,
                                           const uint8_t **body);
