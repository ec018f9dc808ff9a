// SPDX-License-Identifier: BSD-2-Clause
// Leveled lines on stderr.
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
    [ALB_LOG_ERROR] = "error",
    [ALB_LOG_WARNING] = "warning",
    [ALB_LOG_INFO] = "info",
    [ALB_LOG_DEBUG] = "debug",
};

enum { UNKNOWN = -1 };

static _Atomic int shown = UNKNOWN; // the least urgent level that is shown

bool alb_log_level_parse(const char *text, enum alb_log_level *level)
{
    for (size_t i = 0; i < ALB_COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *level = (enum alb_log_level)i;
            return true;
        }
    }
    return false;
}

static int level_from_environment(void)
{
    const char *text = getenv("ALBEDO_LOG");
    enum alb_log_level level = ALB_LOG_WARNING;
    return text == NULL || *text == '\0' || alb_log_level_parse(text, &level) ? (int)level : UNKNOWN;
}

static int shown_level(void)
{
    int level = atomic_load_explicit(&shown, memory_order_relaxed);
    if (alb_likely(level != UNKNOWN))
        return level;
    level = level_from_environment();
    bool is_wrong = level == UNKNOWN;
    if (is_wrong)
        level = ALB_LOG_WARNING;
    int expected = UNKNOWN;
    if (!atomic_compare_exchange_strong(&shown, &expected, level))
        return expected; // another thread was first, and has complained if there was reason to
    if (is_wrong)
        alb_log(ALB_LOG_WARNING, "ALBEDO_LOG is \"%s\", not error, warning, info or debug: showing warnings",
                getenv("ALBEDO_LOG"));
    return level;
}

bool alb_log_is_shown(enum alb_log_level level)
{
    return (int)level <= shown_level();
}

void alb_log_set_level(enum alb_log_level level)
{
    atomic_store_explicit(&shown, (int)level, memory_order_relaxed);
}

void alb_log(enum alb_log_level level, const char *format, ...)
{
    char line[ALB_LOG_LINE_MAX + 1];
    int errno_before = errno;
    if (!alb_log_is_shown(level))
        return;

    size_t length = (size_t)snprintf(line, sizeof(line), "albedo: %s: ", names[level]);
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(line + length, sizeof(line) - length, format, arguments);
    va_end(arguments);
    if (written > 0)
        length += (size_t)written;
    if (length >= ALB_LOG_LINE_MAX) {
        length = ALB_LOG_LINE_MAX - 1;
        memcpy(line + length - 3, "...", 3);
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = ' ';
    }
    line[length++] = '\n';
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); // the caller may hold a lock
    ssize_t unused = write(STDERR_FILENO, line, length);     // a log that cannot be written is no error
    (void)unused;
    pthread_setcancelstate(cancel, NULL);
    errno = errno_before;
}
