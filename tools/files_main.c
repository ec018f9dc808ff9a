// SPDX-License-Identifier: BSD-2-Clause
// The program behind `albedo cp` and `albedo serve`: options.
#include "tools/command.h"
#include "tools/files.h"
#include "tools/files_message.h"

#include "base/text.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_DEFAULT (1u << 20)
#define RETRY_DEFAULT 30
#define RETRY_MAX     86400
#define LIMIT_DEFAULT 64
#define LIMIT_MAX     4096

static void print_cp_usage(FILE *to)
{
    fputs(
        "Usage: albedo cp [OPTIONS] FILE HOST:PATH\n"
        "       albedo cp [OPTIONS] HOST:PATH FILE\n"
        "Copies a file to or from a host where `albedo serve` runs, by transactions; prints the digest (XXH3-128, as\n"
        "xxh128sum does) of what was committed, which both ends have computed from what they hold.\n\n"
        "Options:\n"
        "  -p, --port PORT      of the server (default: " FILES_PORT ")\n"
        "  -n, --net LIST       addresses or interfaces to use, as for albedo run\n"
        "  -f, --faults SPEC    as for albedo run\n"
        "      --seed NUMBER    of the faults (default: 1)\n"
        "  -c, --chunk BYTES    of a transaction, from 4096 to 16777216, K and M may follow (default: 1M)\n"
        "  -r, --retry SECONDS  how long to try again when the connection is lost (default: 30)\n"
        "  -s, --sync           from a host: makes each transaction safe on disk (fdatasync)\n"
        "  -h, --help           show this help\n",
        to);
}

static void print_serve_usage(FILE *to)
{
    fputs("Usage: albedo serve [OPTIONS] FOLDER\n"
          "Lets `albedo cp` write to and read from a folder. Clients are not authenticated: for networks that are "
          "trusted.\n\n"
          "Options:\n"
          "  -a, --address ADDRESS    to listen at (default: all)\n"
          "  -p, --port PORT          (default: " FILES_PORT ")\n"
          "  -n, --net LIST           addresses or interfaces to use, as for albedo run\n"
          "  -f, --faults SPEC        as for albedo run\n"
          "      --seed NUMBER        of the faults (default: 1)\n"
          "  -m, --memory NAME=BYTES  memory of that name, too, up to 16 times; K, M and G may follow\n"
          "  -l, --limit NUMBER       connections at a time, 1 to 4096 (default: 64)\n"
          "  -s, --sync               makes each transaction safe on disk (fdatasync)\n"
          "  -h, --help               show this help\n",
          to);
}

// Values of options. False: a line on stderr says what is wrong.
static bool take_chunk(uint32_t *bytes)
{
    char error[ALB_TEXT_ERROR_MAX];
    uint64_t value;
    if (!alb_text_parse_bytes(optarg, &value, error, sizeof(error)) || value < FILES_CHUNK_MIN ||
        value > FILES_CHUNK_MAX || value % FILES_CHUNK_MIN != 0) {
        command_error(COMMAND_USAGE, "cp", "--chunk: \"%s\" is not a multiple of 4096 from 4096 to 16M", optarg);
        return false;
    }
    *bytes = (uint32_t)value;
    return true;
}

static bool take_number(const char *command, const char *option, uint32_t min, uint32_t max, uint32_t *value)
{
    char error[ALB_TEXT_ERROR_MAX];
    uint64_t number;
    if (!alb_text_parse_u64(optarg, min, max, &number, error, sizeof(error))) {
        command_error(COMMAND_USAGE, command, "--%s: %s", option, error);
        return false;
    }
    *value = (uint32_t)number;
    return true;
}

#define PORT_TEXT_MAX 8

// As the resolver takes it, which knows no 0x4a39.
static bool take_port(const char *command, char text[PORT_TEXT_MAX], const char **port)
{
    uint32_t number;
    if (!take_number(command, "port", 1, UINT16_MAX, &number))
        return false;
    snprintf(text, PORT_TEXT_MAX, "%" PRIu32, number);
    *port = text;
    return true;
}

static const struct option long_options[] = FILES_OPTIONS;

static int misuse(const char *command, const char *what)
{
    return command_error(COMMAND_USAGE, command, "%s; try `albedo %s --help`", what, command);
}

// An option that only the other command has.
static int misplaced(const char *command, int option, const char *other)
{
    const struct option *named = long_options;
    while (named->val != option)
        named++;
    fprintf(stderr, "albedo %s: --%s is an option of `albedo %s`; try `albedo %s --help`\n", command, named->name,
            other, command);
    return COMMAND_USAGE;
}

// What is wrong getopt_long has said.
static int try_help(const char *command)
{
    fprintf(stderr, "Try `albedo %s --help`.\n", command);
    return COMMAND_USAGE;
}

static int run_cp(int argc, char **argv)
{
    struct files_cp_options options = {
        .port = FILES_PORT, .chunk_bytes = CHUNK_DEFAULT, .retry_seconds = RETRY_DEFAULT};
    char port[PORT_TEXT_MAX];
    int option;
    while ((option = getopt_long(argc, argv, FILES_CP_LETTERS, long_options, NULL)) != -1) {
        if (option == 'h') {
            print_cp_usage(stdout);
            return 0;
        }
        if (option == '?')
            return try_help("cp");
        if (strchr("aml", option))
            return misplaced("cp", option, "serve");
        if ((option == 'c' && !take_chunk(&options.chunk_bytes)) ||
            (option == 'p' && !take_port("cp", port, &options.port)) ||
            (option == 'r' && !take_number("cp", "retry", 0, RETRY_MAX, &options.retry_seconds)))
            return COMMAND_USAGE;
        options.makes_safe |= option == 's';
    }
    if (argc - optind != 2)
        return misuse("cp", "wants FILE HOST:PATH or HOST:PATH FILE");
    options.from = argv[optind];
    options.to = argv[optind + 1];
    return files_cp(&options);
}

static int run_serve(int argc, char **argv)
{
    struct files_serve_options options = {.port = FILES_PORT, .session_limit = LIMIT_DEFAULT};
    char port[PORT_TEXT_MAX];
    int option;
    while ((option = getopt_long(argc, argv, FILES_SERVE_LETTERS, long_options, NULL)) != -1) {
        if (option == 'h') {
            print_serve_usage(stdout);
            return 0;
        }
        if (option == '?')
            return try_help("serve");
        if (strchr("cr", option))
            return misplaced("serve", option, "cp");
        if ((option == 'p' && !take_port("serve", port, &options.port)) ||
            (option == 'l' && !take_number("serve", "limit", 1, LIMIT_MAX, &options.session_limit)))
            return COMMAND_USAGE;
        options.address = option == 'a' ? optarg : options.address;
        if (option == 'm' && options.memory_count == ALB_COUNT(options.memories))
            return misuse("serve", "--memory 16 times at most");
        if (option == 'm')
            options.memories[options.memory_count++] = optarg;
        options.makes_safe |= option == 's';
    }
    if (argc - optind != 1)
        return misuse("serve", "wants one FOLDER");
    options.folder = argv[optind];
    return files_serve(&options);
}

int main(int argc, char **argv)
{
    command_begin();
    // argv[1] is the command; `albedo` has looked at --net, --faults and --seed.
    const char *command = argc >= 2 ? argv[1] : "";
    char called[32];
    snprintf(called, sizeof(called), "albedo %s", command); // as getopt_long says it
    if (argc >= 2)
        argv[1] = called;
    if (strcmp(command, "cp") == 0)
        return command_end(run_cp(argc - 1, argv + 1));
    if (strcmp(command, "serve") == 0)
        return command_end(run_serve(argc - 1, argv + 1));
    fputs("This program is run by `albedo cp` and `albedo serve`.\n", stderr);
    return 2;
}
