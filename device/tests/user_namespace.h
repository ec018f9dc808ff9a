// SPDX-License-Identifier: BSD-2-Clause
// A user namespace for a test's child.
#pragma once

#include <stdbool.h>

// From here on the process is root in a user namespace of its own, and in others that the flags of unshare(2) name.
// False if the host gives none.
bool user_namespace_enter(int flags);
