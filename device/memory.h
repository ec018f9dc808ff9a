// SPDX-License-Identifier: BSD-2-Clause
// Memory for engines: small pieces from malloc, large ones from mmap, which costs nothing until it is touched.
#pragma once

#include "engine/engine.h"

struct alb_memory alb_device_memory(void);
