// SPDX-License-Identifier: BSD-2-Clause
// A progress bar.
#include "tools/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WIDTH     30
#define REDRAW_NS (100 * ALB_NS_PER_MS)

static alb_time now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * ALB_NS_PER_S + (uint64_t)time.tv_nsec;
}

static double in_unit(uint64_t bytes, const char **unit)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t i = 0;
    for (; value >= 1024 && i + 1 < ALB_COUNT(units); i++)
        value /= 1024;
    *unit = units[i];
    return value;
}

static void draw(const struct progress *progress)
{
    char bar[WIDTH + 1];
    const char *done_unit, *rate_unit;
    double part = progress->total ? (double)progress->done / (double)progress->total : 1;
    int filled = (int)(part * WIDTH);
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[WIDTH] = '\0';
    alb_time span = progress->shown - progress->begun;
    uint64_t moved = progress->done - progress->skipped;
    double seconds = (double)(span ? span : 1) / (double)ALB_NS_PER_S;
    double done = in_unit(progress->done, &done_unit);
    double rate = in_unit((uint64_t)((double)moved / seconds), &rate_unit);
    fprintf(stderr, "\r%s [%s] %3d%% %.1f %s, %.1f %s/s \033[K", progress->name, bar, (int)(part * 100), done,
            done_unit, rate, rate_unit);
    fflush(stderr);
}

void progress_begin(struct progress *progress, const char *name, uint64_t total)
{
    *progress = (struct progress){.name = name, .total = total, .begun = now(), .is_shown = isatty(STDERR_FILENO)};
}

void progress_add(struct progress *progress, uint64_t bytes, bool was_there)
{
    progress->done += bytes;
    progress->skipped += was_there ? bytes : 0;
    alb_time at = progress->is_shown ? now() : 0;
    if (!progress->is_shown || at - progress->shown < REDRAW_NS)
        return;
    progress->shown = at;
    draw(progress);
}

void progress_end(struct progress *progress)
{
    if (progress->is_shown && progress->shown)
        fputs("\r\033[K", stderr);
    progress->is_shown = false;
}
