// SPDX-License-Identifier: BSD-2-Clause
// A host directory of a test's own.
#pragma once

// Where ALBEDO_DIRECTORY points.
extern char own_directory[64];

int own_directory_setup(void **state);
// Fails if anything but the empty folder of the user is left in it.
int own_directory_teardown(void **state);
