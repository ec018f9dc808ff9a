// SPDX-License-Identifier: BSD-2-Clause
// cmocka with the headers that it wants before itself.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
