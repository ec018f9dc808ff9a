// SPDX-License-Identifier: BSD-2-Clause
// Paths in messages.
#pragma once

#define ALB_SHOWN_PATH_MAX (4096 + 256)

// The path as people know it: a folder that is named by one of our descriptors (/proc/self/fd/9/NAME) is given its own
// name. Returns path, or text.
const char *alb_shown_path(const char *path, char text[ALB_SHOWN_PATH_MAX]);
