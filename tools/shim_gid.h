// SPDX-License-Identifier: BSD-2-Clause
// The files that the kernel has in sysfs for each entry of a device's GID table (gid_attrs).
#ifndef ALBEDO_TOOLS_SHIM_GID_H
#define ALBEDO_TOOLS_SHIM_GID_H

#include <stdbool.h>

// Whether it is one of these files that is to be read.
bool alb_shim_is_gid_file(const char *path, int flags);
// A descriptor that reads as that file does; -1 and an errno.
int alb_shim_open_gid_file(const char *path, int flags);

#endif
