// SPDX-License-Identifier: BSD-2-Clause
// The limit that a process has for the size of its files (RLIMIT_FSIZE, `ulimit -f`).
#pragma once

#include "base/types.h"

// Whether a file may become so many bytes longer. False, with EFBIG in errno: it may not, and to try it ends the
// program (SIGXFSZ), which did not ask for a file of ours.
bool alb_file_limit_allows(int fd, uint64_t bytes);
