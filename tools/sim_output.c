// SPDX-License-Identifier: BSD-2-Clause
#include "tools/sim_output.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int sim_output_open(struct sim_output *output, const char *path)
{
    *output = (struct sim_output){.path = path};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    output->is_new = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    output->file = fdopen(fd, "w");
    if (output->file)
        return 0;
    int error = errno;
    close(fd);
    return error;
}

FILE *sim_output_begin(struct sim_output *output)
{
    if (!output->has_begun && ftruncate(fileno(output->file), 0) != 0)
        errno = 0; // a terminal, a pipe or /dev/null: nothing to empty
    output->has_begun = true;
    return output->file;
}

int sim_output_close(struct sim_output *output)
{
    int error = ferror(output->file) ? EIO : 0;
    if (fclose(output->file) != 0)
        error = errno;
    if (output->is_new && !output->has_begun)
        unlink(output->path);
    return error;
}
