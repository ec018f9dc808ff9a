// SPDX-License-Identifier: BSD-2-Clause
// The sending half of a copy: chunks as transactions, several in flight, each with its digest, in the receiver's
// memory. What the receiver holds already, by its table of digests, is not sent again.
#pragma once

#include "tools/files_link.h"
#include "tools/progress.h"

// CHANGED, with why: there are bytes behind its end. Files of /proc have no size, and one that is being written may
// have been given a new time before it grew. To be asked before the receiver makes room, and asked again at the end.
enum files_result files_send_check_end(int fd, uint64_t size, char why[FILES_WHY_MAX]);

// Sends size bytes of the file; *digest: of all of them. why is set unless it is OK.
enum files_result files_send(struct files_link *link, int fd, uint64_t size, uint32_t chunk_bytes,
                             const struct files_place *place, struct progress *progress, struct alb_digest *digest,
                             char why[FILES_WHY_MAX]);
