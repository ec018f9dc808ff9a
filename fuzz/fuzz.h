// SPDX-License-Identifier: BSD-2-Clause
// What libFuzzer and replay.c call in a fuzz target.
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
