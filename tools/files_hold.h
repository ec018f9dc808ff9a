// SPDX-License-Identifier: BSD-2-Clause
// Who has a file in the making: one copy at a time, of all processes. That it is open as a durable region does not say
// so for long enough: its copy goes on without it, to the file's name.
#pragma once

// Opens the file of that name, or makes it for its owner only, for as long as the descriptor is open. -1 and an errno:
// those of open(2); EBUSY: another one has it. Nobody else renames or removes it meanwhile.
int files_hold(int folder, const char *name);
