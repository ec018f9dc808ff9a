// SPDX-License-Identifier: BSD-2-Clause
// Paths that come from others: they stay within a folder, and follow no symbolic link.
#pragma once

#include "base/types.h"

#include <limits.h>

// Opens the folder that holds path's last part, below the folder root, and writes that part to name. Every part is a
// plain name: no "..", no ".", no empty one; none is a symbolic link. Folders are made where makes_folders. Returns the
// descriptor, or -1 with errno (EINVAL: it is not such a path; ELOOP: a symbolic link; ENOTDIR: a file in the place of
// a folder; those of open(2)).
int files_path_open_folder(int root, const char *path, bool makes_folders, char name[NAME_MAX + 1]);

// One such name.
bool files_path_is_plain(const char *name);

// What is wrong with a path, from the errno of files_path_open_folder, or of open(2) with what it returned (ENXIO: what
// is there is neither a file nor a folder).
const char *files_path_trouble(int error);
