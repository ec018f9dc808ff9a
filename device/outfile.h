// SPDX-License-Identifier: BSD-2-Clause
// Files the device writes while it runs (captures, traces): buffered, one writer at a time (the holder of the driver
// token).
#pragma once

#include "base/types.h"

#define ALB_OUTFILE_BUFFER_BYTES (256u << 10)

struct alb_outfile {
    int fd;         // -1: not open, everything added is forgotten
    bool continues; // behind what this process wrote before
    uint32_t used;
    uint8_t *buffer;
    char path[4096 + 16];
};

// Bytes of a path before the file's own name. %p and %d stand for something in that name only: those of folders may be
// ones that the user has not written.
size_t alb_outfile_folder_bytes(const char *path);

// A path as users write it: every %p of the file's name becomes the process id. False if that does not fit.
bool alb_outfile_expand(const char *path, char *out, size_t size);

// Creates or empties the file, or goes on behind what this process has written to it: a program may open and close a
// device many times. %p in the name becomes the process id. If another process is writing the file, ".<pid>" is
// appended to the name. One call at a time. Errors: those of open(2), ENAMETOOLONG.
int alb_outfile_open(struct alb_outfile *file, const char *path);
void alb_outfile_close(struct alb_outfile *file);

void alb_outfile_add(struct alb_outfile *file, const void *bytes, uint32_t length);
// Writes what is buffered if not so many bytes would fit behind it.
void alb_outfile_reserve(struct alb_outfile *file, uint32_t length);
// When writing fails, one warning is logged and the file is given up.
void alb_outfile_flush(struct alb_outfile *file);
