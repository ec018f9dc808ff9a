// SPDX-License-Identifier: BSD-2-Clause
// Hears that links or addresses of this network namespace have changed, by rtnetlink(7). What has changed is for the
// listener to look up: messages are lost where there are too many.
#pragma once

#include <stdbool.h>

struct alb_links {
    int fd; // readable while there is news; -1: nothing is heard
};

// Where a sandbox has no such sockets, or descriptors are scarce, nothing is heard.
void alb_links_open(struct alb_links *links);
void alb_links_close(struct alb_links *links);

// Whether something has changed since this was last asked.
bool alb_links_took_news(struct alb_links *links);
