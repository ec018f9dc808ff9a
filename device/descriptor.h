// SPDX-License-Identifier: BSD-2-Clause
// Where our own descriptors are among those of the program.
#pragma once

// Moves a descriptor that a call has just returned to a high number and gives that: the program's own keep the small
// numbers that they have over a kernel driver, which uses none. Some programs refuse larger ones. Close-on-exec is set.
// Where the process may not have such a number, and for a negative one (a call that failed), nothing changes; errno
// stays.
int alb_descriptor_aside(int fd);
