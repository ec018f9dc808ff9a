// SPDX-License-Identifier: BSD-2-Clause
// How much memory there is to be had: the system would let a process take more, and kill it, or another one, when that
// is used.
#pragma once

#include "base/types.h"

// Without anything else being moved out, in this container.
uint64_t free_memory_bytes(void);
