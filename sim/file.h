// SPDX-License-Identifier: BSD-2-Clause
// Files to be written with stdio, which on its own forgets with the buffer why one could not be.
#pragma once

#include <stdio.h>

// A new or emptied file. Closing it fails with the first error that writing has met; nothing is written behind that.
// NULL with errno: it cannot be opened.
FILE *alb_sim_file_open(const char *path);
// The same of a descriptor, which is the stream's from then on, and closed if there is none.
FILE *alb_sim_file_of(int fd);
