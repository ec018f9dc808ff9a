// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "device/journal.h"

// The file in the making, which has new_path, gets the journal's name; what had it is removed. ESTALE: the name is
// another's, or the region has lost its own, and nothing has changed; those of renameat2(2) and fstatat(2).
int alb_journal_give_name(const struct alb_journal *journal, const struct alb_file_id *file);
// Removes new_path while it is that file's.
void alb_journal_remove_new(const struct alb_journal *journal, const struct alb_file_id *file);
