// SPDX-License-Identifier: BSD-2-Clause
// What opening a durable region makes of its journal.
#pragma once

#include "device/store.h"

// Opens the journal, if there is one, before anything of it is believed. EBADMSG if it is of a larger file than was
// found (a line on stderr says so), before the file is lengthened: were that interrupted, the next opening would take
// it for a whole one of zeros. Those of alb_journal_open.
int alb_store_open_journal(struct alb_store *store);
// Checks the whole journal before anything is changed; then writes what was committed to the region once more, in its
// order, makes it safe, and begins a new journal with what is bound and what is remembered. Errors as in
// alb_store_open.
int alb_store_recover(struct alb_store *store, bool page_cache);
