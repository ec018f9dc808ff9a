// SPDX-License-Identifier: BSD-2-Clause
// The environment variables by which options of `albedo` reach the device, and their check before a program starts.
#pragma once

#include "base/types.h"

// Puts the value of an option (its long name) into the variable that carries it. 0, or an errno.
int environment_set(const char *option, const char *value);

// The same for a subcommand, which has a value that is empty refused. (Of faults it means that there are none.)
// COMMAND_OK, or the status to end with after a line that says why.
int environment_take(const char *command, const char *option, const char *value);

// What the host directory's variable is to be. Returns what environment_check does, which looks at this, too.
int environment_check_directory(const char *command);

// Checks everything that a device reads from the environment, whether this process has set it or its caller.
// COMMAND_OK, or COMMAND_USAGE after a line that names the option that was given, or else the variable.
int environment_check(const char *command);
