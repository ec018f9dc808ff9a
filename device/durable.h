// SPDX-License-Identifier: BSD-2-Clause
// Durable regions: memory regions that are files with a journal (device/store.h), so that transactions on them outlive
// the process, and with fdatasync the machine (docs/REFLECTION.md).
#pragma once

#include "device/device.h"
#include "engine/transaction.h"

struct alb_durable;

struct alb_durable_init {
    const char *path;
    uint64_t length; // 0: the file's own
    uint32_t access; // enum alb_access
    bool page_cache; // without fdatasync: survives the process, not the machine
    bool only_name;  // of the file: it is no symbolic link, and has no other hard link
};

// Opens the file, and registers it at the address where it is mapped; what its journal has bound is bound again. To be
// called without the token. Errors: those of alb_store_open, alb_mr_create, alb_mr_set_store and alb_engine_restore.
int alb_durable_create(struct alb_device *device, struct alb_pd *pd, const struct alb_durable_init *init,
                       struct alb_durable **durable);
// Deregisters it and closes the file. To be called without the token. EBUSY: windows are bound to it, nothing has
// changed.
int alb_durable_destroy(struct alb_durable *durable);

struct alb_region *alb_durable_region(const struct alb_durable *durable);
void *alb_durable_address(const struct alb_durable *durable);
uint64_t alb_durable_length(const struct alb_durable *durable);

// [token] Passes on what the engine wants written.
void alb_durables_take_requests(struct alb_engine *engine);

// Around fork: a child must not hold the files' locks.
void alb_durables_before_fork(void);
void alb_durables_after_fork_in_parent(void);
void alb_durables_after_fork_in_child(void);
