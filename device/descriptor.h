// SPDX-License-Identifier: BSD-2-Clause
// Where our own descriptors are among those of the program.
#pragma once

#include <stdbool.h>

// Moves a descriptor that a call has just returned to a high number and gives that: the program's own keep the small
// numbers that they have over a kernel driver, which uses none. Some programs refuse larger ones. Close-on-exec is set.
// Where the process may not have such a number it stays, but for 0 to 2: to these, where the program has closed them,
// log lines are written, by us and by it. For a negative one (a call that failed) nothing changes. errno stays.
int alb_descriptor_aside(int fd);
// True if one that we could do without leaves the program too few: it is among the last numbers that the process may
// have.
bool alb_descriptor_is_scarce(int fd);
