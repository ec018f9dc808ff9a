// SPDX-License-Identifier: BSD-2-Clause
// The sending half of a copy: chunks as transactions, several in flight, each with its digest, in the receiver's
// memory. What the receiver holds already, by its table of digests, is not sent again.
#pragma once

#include "tools/files_link.h"
#include "tools/progress.h"

// Sends size bytes of the file; *digest: of all of them. why is set unless it is OK.
enum files_result files_send(struct files_link *link, int fd, uint64_t size, uint32_t chunk_bytes,
                             const struct files_place *place, struct progress *progress, struct alb_digest *digest,
                             char why[FILES_WHY_MAX]);
