// SPDX-License-Identifier: BSD-2-Clause
// A progress bar.
#include "tools/progress.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define WIDTH      30
#define COLUMNS    80 // of a terminal that does not say
#define LINE_BYTES 512
#define REDRAW_NS  (100 * ALB_NS_PER_MS)

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

static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS;
}

// To so many bytes at most, without a part of a character. No character of UTF-8 is wider than its bytes are many.
static void cut(char *text, size_t bytes)
{
    if (strlen(text) <= bytes)
        return;
    while (bytes > 0 && ((uint8_t)text[bytes] & 0xc0) == 0x80)
        bytes--;
    text[bytes] = '\0';
}

// All but the name.
static void format_state(const struct progress *progress, char text[LINE_BYTES])
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
    snprintf(text, LINE_BYTES, "[%s] %3d%% %.1f %s, %.1f %s/s", bar, (int)(part * 100), done, done_unit, rate,
             rate_unit);
}

// One line of the terminal, whose last column stays free: what is written beyond it could not be removed. The name has
// what the state leaves, if that is more than the dots of a name that is cut.
static void draw(const struct progress *progress)
{
    static const char dots[] = "...";
    char name[LINE_BYTES], state[LINE_BYTES];
    size_t room = terminal_columns() - 1;
    format_state(progress, state);
    cut(state, room);
    room -= strlen(state);
    snprintf(name, sizeof(name), "%s", progress->name);
    alb_text_disarm(name);
    bool is_whole = strlen(name) < room; // a space follows it
    if (!is_whole)
        cut(name, room > sizeof(dots) ? room - sizeof(dots) : 0);
    bool is_named = name[0] != '\0';
    fprintf(stderr, "\r%s%s%s%s\033[K", name, is_named && !is_whole ? dots : "", is_named ? " " : "", state);
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
