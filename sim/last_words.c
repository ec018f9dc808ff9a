// SPDX-License-Identifier: BSD-2-Clause
#include "sim/last_words.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

enum {
    NUMBERS = sizeof(numbers) / sizeof(numbers[0]),
};

static struct sigaction before[NUMBERS]; // a sanitizer's, that has more to say
static const char *name;
static uint64_t current;

static void say(const char *text, size_t length)
{
    if (write(STDERR_FILENO, text, length) < 0)
        return; // nowhere left to say it
}

// Nothing but write may be called here, and memory may be anything.
static void on_end(int number)
{
    char digits[20];
    size_t at = sizeof(digits);
    uint64_t rest = current;
    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    say(name, strlen(name));
    say(": seed ", 7);
    say(digits + at, sizeof(digits) - at);
    say(" has ended the search\n", 22);
    for (size_t i = 0; i < NUMBERS; i++)
        sigaction(numbers[i], &before[i], NULL);
    if (number == SIGABRT)
        raise(number); // what else was done wrong is done again on return, as it is without us
}

void alb_last_words_begin(const char *program)
{
    const struct sigaction action = {.sa_handler = on_end};
    name = program;
    for (size_t i = 0; i < NUMBERS; i++)
        sigaction(numbers[i], &action, &before[i]);
}

void alb_last_words_seed(uint64_t seed)
{
    current = seed;
}
