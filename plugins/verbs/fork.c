// SPDX-License-Identifier: BSD-2-Clause
// ibv_fork_init(3) and friends. The device is memory of this process, not pages that hardware writes to: a fork copies
// it like anything else, nothing needs protection from copy-on-write, and the child simply never drives the copy
// (alb_device_is_forked).
#include "plugins/verbs/door.h"

int ibv_dontfork_range(void *base, size_t size); // exported, but in no public header
int ibv_dofork_range(void *base, size_t size);

// A child has nothing of what its parent's contexts share. Its mutexes may have been held by threads that it has not,
// so they begin anew.
static void after_fork_in_child(void)
{
    alb_door_domains_after_fork();
    alb_door_proposals_after_fork();
}

// Before any of them can be held. Its only error is ENOMEM, and then a child is as it would be without.
__attribute__((constructor)) static void install_hook(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

int ibv_fork_init(void)
{
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}
