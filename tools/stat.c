// SPDX-License-Identifier: BSD-2-Clause
// albedo-stat(1): the counters of running devices, from the host directory. Reading changes nothing in the devices.
#include "tools/command.h"

#include "base/text.h"
#include "device/directory_file.h"
#include "device/report.h"
#include "tools/environment.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct stat_options {
    bool is_json;
    bool show_zeros;
    int pid;                // 0: all
    uint64_t watch_seconds; // 0: once
};

static void print_usage(FILE *to)
{
    fputs("Usage: albedo stat [OPTIONS] [PID]\n"
          "Shows the counters of running devices, or of one process's.\n\n"
          "Options:\n"
          "  -a, --all            show counters that are zero, too\n"
          "  -j, --json           print JSON\n"
          "  -w, --watch SECONDS  print again every so many seconds\n"
          "  -h, --help           show this help\n",
          to);
}

static void print_counter(const char *indent, const char *name, uint64_t value, const char *text, bool show_zeros)
{
    if (value != 0 || show_zeros)
        printf("%s%-28s %15" PRIu64 "  %s\n", indent, name, value, text);
}

static void print_stats(const char *indent, const struct alb_stats *stats, bool show_zeros)
{
    for (unsigned i = 0; i < ALB_STAT_COUNT; i++)
        print_counter(indent, alb_stat_name((enum alb_stat)i), stats->counter[i], alb_stat_text((enum alb_stat)i),
                      show_zeros);
}

static void print_dropped(const char *indent, enum alb_drop reason, uint64_t count, bool show_zeros)
{
    char name[64];
    snprintf(name, sizeof(name), "dropped %s", alb_drop_name(reason));
    print_counter(indent, name, count, alb_drop_text(reason), show_zeros);
}

static void print_qp(const struct alb_qp_stats *qp, bool show_zeros)
{
    char text[ALB_ADDR_TEXT_MAX];
    struct alb_addr peer;
    memcpy(peer.bytes, qp->peer, sizeof(peer.bytes));
    printf("  queue pair 0x%06" PRIx32 " %s %s", qp->qpn, alb_report_qp_type(qp->type), alb_report_qp_state(qp->state));
    if (qp->dest_qpn != 0)
        printf(" -> %s 0x%06" PRIx32 ", path MTU %u", alb_addr_format(&peer, text), qp->dest_qpn, qp->path_mtu_bytes);
    puts("");
    print_stats("    ", &qp->stats, show_zeros);
    for (unsigned i = ALB_DROP_NONE + 1; i < ALB_DROP_COUNT; i++)
        print_dropped("    ", (enum alb_drop)i, qp->dropped[i], show_zeros);
}

static const char *microseconds(uint32_t ns, char text[16])
{
    if (ns == 0)
        return "-";
    snprintf(text, 16, "%.1f", ns / 1e3);
    return text;
}

static bool is_used(const struct alb_path_stats *path)
{
    return path->arrived_pkts != 0 || path->inflight_bytes != 0 || path->recent_pkts != 0;
}

static void print_path(const struct alb_board_header *header, const struct alb_peer_stats *peer, uint32_t i)
{
    const struct alb_path_stats *path = &peer->paths[i];
    char rtt[16], least[16];
    printf("    %4" PRIu32 " %6u  %-6s %9s %9s %11" PRIu32 " %10" PRIu32 " %10" PRIu32 "  %u of %u\n", i,
           alb_report_path_port(header, peer, i), alb_path_state_name(path->state), microseconds(path->rtt_ns, rtt),
           microseconds(path->rtt_min_ns, least), path->inflight_bytes, path->arrived_pkts, path->marked_pkts,
           path->recent_lost, path->recent_pkts);
}

static void print_paths(const struct alb_board_header *header, const struct alb_peer_stats *peer, bool show_unused)
{
    bool has_title = false;
    for (uint32_t i = 0; i < ALB_MIN(peer->path_count, ALB_PATH_STATS_MAX); i++) {
        if (!show_unused && !is_used(&peer->paths[i]))
            continue;
        if (!has_title)
            printf("    %4s %6s  %-6s %9s %9s %11s %10s %10s  %s\n", "path", "port", "state", "rtt us", "least us",
                   "B in flight", "arrived", "marked", "lost of the last");
        has_title = true;
        print_path(header, peer, i);
    }
}

static void print_bound(const char *name, uint32_t bytes)
{
    if (bytes != UINT32_MAX)
        printf(", %s %" PRIu32 " B", name, bytes);
}

static void print_peer(const struct alb_board_header *header, const struct alb_peer_stats *peer, bool show_zeros)
{
    char text[ALB_ADDR_TEXT_MAX], rtt[16], least[16];
    struct alb_addr addr;
    memcpy(addr.bytes, peer->peer, sizeof(addr.bytes));
    printf("  peer %s slot %u, %s, path MTU %" PRIu32, alb_addr_format(&addr, text), peer->slot,
           peer->is_awake ? "awake" : "at rest", alb_report_path_mtu(peer));
    if (peer->path_count == 0) { // nothing has come or gone yet, or so little that it was not seen
        puts("");
        return;
    }
    if (peer->rtt_ns != 0)
        printf(", rtt %s us (least %s)", microseconds(peer->rtt_ns, rtt), microseconds(peer->rtt_min_ns, least));
    print_bound("window", peer->window_bytes);
    print_bound("credit", peer->credit_bytes);
    if (peer->rate_bytes_per_s != 0)
        printf(", rate %.1f MB/s", (double)peer->rate_bytes_per_s / 1e6);
    printf(", in flight %" PRIu64 " B\n", peer->inflight_bytes);
    print_paths(header, peer, show_zeros);
}

// The upper end of the power of two that holds that share of the operations.
static uint64_t gap_percentile_ns(const uint64_t counts[64], uint64_t total, uint32_t per_cent)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < 63; i++) {
        seen += counts[i];
        if (seen * 100 >= total * per_cent)
            return (2ull << i) - 1;
    }
    return UINT64_MAX;
}

// How long operations that were asked for their stages took from one to the next.
static void print_gaps(const struct alb_device_stats *stats)
{
    for (uint32_t gap = 0; gap < ALB_STAGE_GAPS; gap++) {
        const uint64_t *counts = stats->stage_gaps[gap];
        uint64_t total = 0;
        for (uint32_t i = 0; i < 64; i++)
            total += counts[i];
        if (total > 0)
            printf("  stage %-26s %11" PRIu64 "  operations; ns at most: half of them %" PRIu64 ", 99 %% %" PRIu64
                   ", all %" PRIu64 "\n",
                   alb_stage_gap_name(gap), total, gap_percentile_ns(counts, total, 50),
                   gap_percentile_ns(counts, total, 99), gap_percentile_ns(counts, total, 100));
    }
}

static void print_board(const struct alb_directory_board *board, bool show_zeros)
{
    const struct alb_board_header *header = &board->header;
    char text[ALB_ADDR_TEXT_MAX];
    printf("%s of %s (process %d), slot %u, MTU %" PRIu32 ", addresses", header->device, header->program, header->pid,
           header->slot, header->mtu_bytes);
    for (uint32_t i = 0; i < header->address_count; i++)
        printf(" %s", alb_addr_format(&header->addresses[i], text));
    if (strcmp(header->faults, "none") != 0 && header->faults[0] != '\0')
        printf(", faults %s", header->faults);
    puts("");
    if (board->rows.qps == NULL) {
        puts("  another version of Albedo: its counters cannot be read");
        return;
    }
    print_stats("  ", &board->live->device_stats.sum, show_zeros);
    for (unsigned i = ALB_DROP_NONE + 1; i < ALB_DROP_COUNT; i++)
        print_dropped("  ", (enum alb_drop)i, board->live->device_stats.dropped[i], show_zeros);
    for (unsigned i = 0; i < ALB_EDGE_COUNT; i++)
        print_counter("  ", alb_edge_stat_name((enum alb_edge_stat)i),
                      alb_edge_counted(&board->live->edge_stats, (enum alb_edge_stat)i),
                      alb_edge_stat_text((enum alb_edge_stat)i), show_zeros);
    print_gaps(&board->live->device_stats);
    for (uint32_t i = 0; i < board->rows.peer_count; i++) {
        if (board->rows.peers[i].is_known)
            print_peer(header, &board->rows.peers[i], show_zeros);
    }
    for (uint32_t i = 0; i < board->rows.qp_count; i++) {
        if (board->rows.qps[i].qpn != 0)
            print_qp(&board->rows.qps[i], show_zeros);
    }
}

// The checked copy of the header with the counters as they are now.
static void print_board_json(const struct alb_directory_board *board)
{
    struct alb_board_header header = board->header;
    if (board->rows.qps != NULL) {
        header.device_stats = board->live->device_stats;
        header.edge_stats = board->live->edge_stats;
    }
    char *line = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&line, &size);
    if (memory == NULL)
        return;
    alb_report_write(&header, &board->rows, memory);
    fclose(memory);
    if (size > 0)
        fwrite(line, 1, size - 1, stdout); // without its newline
    free(line);
}

#define WHY_UNREADABLE "in another PID or user namespace, or of another version of Albedo"

// What comes after all boards.
static void print_end(const struct stat_options *options, int count, int unreadable)
{
    if (options->is_json)
        printf("], \"unreadable\": %d}\n", unreadable);
    else if (options->pid == 0 && unreadable > 0)
        printf("%s%d device%s open that cannot be read from here: " WHY_UNREADABLE "\n", count > 0 ? "\n" : "",
               unreadable, unreadable == 1 ? " is" : "s are");
    else if (options->pid == 0 && count == 0)
        puts("no device is open");
}

// Prints all boards, or those of one process. Returns how many, or -errno; and how many more there are that cannot be
// read.
static int print_all(const struct stat_options *options, int *unreadable)
{
    struct alb_directory directory;
    struct alb_directory_board board;
    int count = 0;
    int error = alb_directory_open(&directory, geteuid());
    if (error != 0)
        return -error;
    if (options->is_json)
        fputs("{\"devices\": [", stdout);
    while (alb_directory_next(&directory, &board)) {
        if (options->pid == 0 || options->pid == board.header.pid) {
            if (options->is_json) {
                fputs(count > 0 ? ", " : "", stdout);
                print_board_json(&board);
            } else {
                fputs(count > 0 ? "\n" : "", stdout);
                print_board(&board, options->show_zeros);
            }
            count++;
        }
        alb_directory_unmap(&board);
    }
    *unreadable = directory.unreadable;
    print_end(options, count, directory.unreadable);
    alb_directory_close(&directory);
    return count;
}

static int take_options(int argc, char **argv, struct stat_options *taken, bool *is_done)
{
    static const struct option options[] = {
        {"all", no_argument, NULL, 'a'},
        {"json", no_argument, NULL, 'j'},
        {"watch", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    char error[ALB_TEXT_ERROR_MAX];
    uint64_t pid;
    int option;
    while ((option = getopt_long(argc, argv, "ajw:h", options, NULL)) != -1) {
        switch (option) {
        case 'a':
            taken->show_zeros = true;
            break;
        case 'j':
            taken->is_json = true;
            break;
        case 'w':
            if (!alb_text_parse_u64(optarg, 1, 86400, &taken->watch_seconds, error, sizeof(error)))
                return command_error(COMMAND_USAGE, "stat", "--watch: %s", error);
            break;
        case 'h':
            print_usage(stdout);
            *is_done = true;
            return COMMAND_OK;
        default:
            fputs("Try `albedo stat --help`.\n", stderr);
            return COMMAND_USAGE;
        }
    }
    if (optind == argc)
        return COMMAND_OK;
    if (optind + 1 < argc)
        return command_error(COMMAND_USAGE, "stat", "give one process id, or none for all");
    if (!alb_text_parse_u64(argv[optind], 1, INT_MAX, &pid, error, sizeof(error)))
        return command_error(COMMAND_USAGE, "stat", "process id: %s", error);
    taken->pid = (int)pid;
    return COMMAND_OK;
}

static int complain_of_directory(int error)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX];
    alb_directory_folder((uint32_t)geteuid(), folder);
    return command_error(
        COMMAND_FAILED, "stat",
        "host directory %s: %s; it is to be a folder of this user that no other user may write to, and "
        "ALBEDO_DIRECTORY names another place",
        folder, strerror(error));
}

// Devices make the folder of their user, but not the place that it is in: where that is missing it may be the wrong
// one, and devices are open at another.
static int check_place(void)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX];
    if (!alb_directory_folder((uint32_t)geteuid(), folder))
        return COMMAND_OK; // which alb_directory_open says
    *strrchr(folder, '/') = '\0';
    if (access(folder[0] ? folder : "/", F_OK) == 0)
        return COMMAND_OK;
    return command_error(COMMAND_FAILED, "stat", "host directory %s: %s; ALBEDO_DIRECTORY names another place", folder,
                         strerror(errno));
}

static int complain_of_process(int pid, int unreadable)
{
    if (unreadable == 0)
        return command_error(COMMAND_FAILED, "stat",
                             "process %d has no device open; without a number all are shown that have", pid);
    return command_error(COMMAND_FAILED, "stat",
                         "process %d has no device open that can be read from here; %d cannot: " WHY_UNREADABLE, pid,
                         unreadable);
}

int command_stat(int argc, char **argv)
{
    struct stat_options options = {0};
    bool is_done = false;
    int status = take_options(argc, argv, &options, &is_done);
    if (status != COMMAND_OK || is_done)
        return status;
    status = environment_check_directory("stat");
    if (status == COMMAND_OK)
        status = check_place();
    if (status != COMMAND_OK)
        return status;
    for (;;) {
        int unreadable = 0;
        int count = print_all(&options, &unreadable);
        if (count < 0)
            return complain_of_directory(-count);
        if (count == 0 && options.pid != 0)
            return complain_of_process(options.pid, unreadable);
        if (options.watch_seconds == 0)
            return COMMAND_OK;
        if (!options.is_json)
            puts("");
        if (command_flush() != 0)
            return COMMAND_FAILED;
        struct timespec pause = {.tv_sec = (time_t)options.watch_seconds};
        nanosleep(&pause, NULL);
    }
}
