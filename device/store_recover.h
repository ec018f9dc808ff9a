// SPDX-License-Identifier: BSD-2-Clause
// What opening a durable region makes of its journal.
#pragma once

#include "device/store.h"

// Checks the whole journal before anything is changed; then writes what was committed to the region once more, in its
// order, makes it safe, and begins a new journal with what is bound and what is remembered. Errors as in
// alb_store_open.
int alb_store_recover(struct alb_store *store, bool page_cache);
