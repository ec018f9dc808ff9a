// SPDX-License-Identifier: BSD-2-Clause
// Tests that hold whatever transport carries a queue pair's messages. Each function runs a group of them and returns
// how many failed.
#pragma once

#include "world.h"

int run_verbs_cases(const char *transport);
int run_error_cases(const char *transport);
