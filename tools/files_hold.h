// SPDX-License-Identifier: BSD-2-Clause
// Who has a file in the making: one copy at a time, of all processes. That it is open as a durable region does not say
// so for long enough: its copy goes on without it, to the file's name.
//
// In a folder where others may write they may put something in its place at any moment, so what was done by its name is
// looked at afterwards.
#pragma once

#include <stdbool.h>

// Opens the file of that name, or makes it for its owner only, for as long as the descriptor is open. -1 and an errno:
// those of open(2); EBUSY: another copy has it; EPERM: another user has made it, or it has other names. No other copy
// renames or removes it meanwhile.
int files_hold(int folder, const char *name);
// True if it is what has that name in the folder.
bool files_hold_is_in_place(int folder, const char *name, int fd);
// True if it is open as a durable region, which has its first byte locked: nobody else can have locked what its owner
// alone may open.
bool files_hold_is_region(int fd);
