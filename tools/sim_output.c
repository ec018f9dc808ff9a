// SPDX-License-Identifier: BSD-2-Clause
#include "tools/sim_output.h"

#include "sim/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

// Files that are there only because of this process, and empty so far.
static const char *volatile empty[4];
static pid_t owner; // not one that it has forked

static void replace(const char *before, const char *after)
{
    for (size_t i = 0; i < ALB_COUNT(empty); i++)
        if (empty[i] == before) {
            empty[i] = after;
            return;
        }
}

// Ends the process as if it had no handler. A second signal may come before this, and finds the handler still.
static void remove_empty(int number)
{
    for (size_t i = 0; i < ALB_COUNT(empty) && getpid() == owner; i++)
        if (empty[i])
            unlink(empty[i]);
    signal(number, SIG_DFL);
    raise(number);
}

static void remove_when_interrupted(const char *path)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
    const struct sigaction action = {.sa_handler = remove_empty};
    owner = getpid();
    replace(NULL, path);
    for (size_t i = 0; i < ALB_COUNT(numbers); i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
    }
}

int sim_output_open(struct sim_output *output, const char *path)
{
    *output = (struct sim_output){.path = path};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    output->is_new = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    output->fd = fd;
    output->file = alb_sim_file_of(fd);
    if (!output->file)
        return errno;
    if (output->is_new)
        remove_when_interrupted(path);
    return 0;
}

FILE *sim_output_begin(struct sim_output *output)
{
    if (!output->has_begun && ftruncate(output->fd, 0) != 0)
        errno = 0; // a terminal, a pipe or /dev/null: nothing to empty
    output->has_begun = true;
    replace(output->path, NULL);
    return output->file;
}

int sim_output_close(struct sim_output *output)
{
    int error = fclose(output->file) == 0 ? 0 : errno;
    if (output->is_new && !output->has_begun)
        unlink(output->path);
    replace(output->path, NULL);
    return error;
}
