// SPDX-License-Identifier: BSD-2-Clause
// Writing boards as JSON.
#include "device/report.h"

#include "base/log.h"
#include "device/outfile.h"
#include "device/write_signals.h"
#include "engine/qp_state.h"
#include "wire/drop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UDP_BYTES = 8, IPV4_BYTES = 20, IPV6_BYTES = 40 }; // headers

const char *alb_report_qp_type(uint8_t type)
{
    switch (type) {
    case ALB_QPT_RC:
        return "RC";
    case ALB_QPT_UC:
        return "UC";
    case ALB_QPT_UD:
        return "UD";
    case ALB_QPT_XRC_SEND:
        return "XRC_SEND";
    case ALB_QPT_XRC_RECV:
        return "XRC_RECV";
    default:
        return "?";
    }
}

const char *alb_report_qp_state(uint8_t state)
{
    return state <= ALB_QPS_ERR ? alb_qp_state_name((enum alb_qp_state)state) : "?";
}

// A JSON string; the name of a program may hold any byte. What is not ASCII becomes "?".
static void write_text(const char *text, FILE *to)
{
    putc('"', to);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else
            putc(c >= 0x20 && c < 0x7f ? c : '?', to);
    }
    putc('"', to);
}

static void write_counters(const struct alb_stats *stats, FILE *to)
{
    for (unsigned i = 0; i < ALB_STAT_COUNT; i++)
        fprintf(to, "%s\"%s\": %" PRIu64, i > 0 ? ", " : "", alb_stat_name((enum alb_stat)i), stats->counter[i]);
}

static void write_dropped(const struct alb_qp_stats *qp, FILE *to)
{
    for (unsigned i = ALB_DROP_NONE + 1; i < ALB_DROP_COUNT; i++)
        fprintf(to, "%s\"%s\": %" PRIu32, i > ALB_DROP_NONE + 1 ? ", " : "", alb_drop_name((enum alb_drop)i),
                qp->dropped[i]);
}

static void write_qp(const struct alb_qp_stats *qp, FILE *to)
{
    char peer[ALB_ADDR_TEXT_MAX];
    struct alb_addr addr;
    memcpy(addr.bytes, qp->peer, sizeof(addr.bytes));
    fprintf(to,
            "{\"qpn\": %" PRIu32 ", \"type\": \"%s\", \"state\": \"%s\", \"path_mtu_bytes\": %u, \"dest_qpn\": %" PRIu32
            ", \"peer\": \"%s\", \"counters\": {",
            qp->qpn, alb_report_qp_type(qp->type), alb_report_qp_state(qp->state), qp->path_mtu_bytes, qp->dest_qpn,
            alb_addr_format(&addr, peer));
    write_counters(&qp->stats, to);
    fputs("}, \"dropped\": {", to);
    write_dropped(qp, to);
    fputs("}}", to);
}

// Each gap's histogram without the zeros behind its last operation: element i counts 2^i to 2^(i+1) - 1 ns.
static void write_gaps(const struct alb_device_stats *stats, FILE *to)
{
    for (uint32_t gap = 0; gap < ALB_STAGE_GAPS; gap++) {
        uint32_t past = 64;
        while (past > 0 && stats->stage_gaps[gap][past - 1] == 0)
            past--;
        fprintf(to, "%s\"%s\": [", gap > 0 ? ", " : "", alb_stage_gap_name(gap));
        for (uint32_t i = 0; i < past; i++)
            fprintf(to, "%s%" PRIu64, i > 0 ? ", " : "", stats->stage_gaps[gap][i]);
        putc(']', to);
    }
}

static void write_all_counters(const struct alb_board_header *header, FILE *to)
{
    fputs(", \"counters\": {", to);
    write_counters(&header->device_stats.sum, to);
    fputs("}, \"dropped\": {", to);
    for (unsigned i = ALB_DROP_NONE + 1; i < ALB_DROP_COUNT; i++)
        fprintf(to, "%s\"%s\": %" PRIu64, i > ALB_DROP_NONE + 1 ? ", " : "", alb_drop_name((enum alb_drop)i),
                header->device_stats.dropped[i]);
    fputs("}, \"edge\": {", to);
    for (unsigned i = 0; i < ALB_EDGE_COUNT; i++)
        fprintf(to, "%s\"%s\": %" PRIu64, i > 0 ? ", " : "", alb_edge_stat_name((enum alb_edge_stat)i),
                alb_edge_counted(&header->edge_stats, (enum alb_edge_stat)i));
    fputs("}, \"stage_gaps_log2_ns\": {", to);
    write_gaps(&header->device_stats, to);
    putc('}', to);
}

uint32_t alb_report_path_mtu(const struct alb_peer_stats *peer)
{
    struct alb_addr addr;
    memcpy(addr.bytes, peer->peer, sizeof(addr.bytes));
    return peer->payload_max + UDP_BYTES + (alb_addr_is_ipv4(&addr) ? IPV4_BYTES : IPV6_BYTES);
}

uint16_t alb_report_path_port(const struct alb_board_header *header, const struct alb_peer_stats *peer, uint32_t path)
{
    for (uint32_t i = 0; i < header->address_count; i++)
        if (memcmp(header->addresses[i].bytes, peer->local, sizeof(peer->local)) == 0)
            return header->path_ports[i][path];
    return 0;
}

// null: not measured, or no bound.
static void write_or_null(const char *name, uint64_t value, uint64_t null, FILE *to)
{
    if (value == null)
        fprintf(to, ", \"%s\": null", name);
    else
        fprintf(to, ", \"%s\": %" PRIu64, name, value);
}

static void write_path(const struct alb_board_header *header, const struct alb_peer_stats *peer, uint32_t i, FILE *to)
{
    const struct alb_path_stats *path = &peer->paths[i];
    fprintf(to, "{\"path\": %" PRIu32, i);
    write_or_null("port", alb_report_path_port(header, peer, i), 0, to);
    fprintf(to, ", \"state\": \"%s\"", alb_path_state_name(path->state));
    write_or_null("rtt_ns", path->rtt_ns, 0, to);
    write_or_null("rtt_min_ns", path->rtt_min_ns, 0, to);
    fprintf(to,
            ", \"inflight_bytes\": %" PRIu32 ", \"arrived_pkts\": %" PRIu32 ", \"marked_pkts\": %" PRIu32
            ", \"recent_pkts\": %u, \"recent_lost\": %u}",
            path->inflight_bytes, path->arrived_pkts, path->marked_pkts, path->recent_pkts, path->recent_lost);
}

static void write_peer(const struct alb_board_header *header, const struct alb_peer_stats *peer, FILE *to)
{
    char text[ALB_ADDR_TEXT_MAX], local_text[ALB_ADDR_TEXT_MAX];
    struct alb_addr addr, local;
    memcpy(addr.bytes, peer->peer, sizeof(addr.bytes));
    memcpy(local.bytes, peer->local, sizeof(local.bytes));
    fprintf(to,
            "{\"peer\": \"%s\", \"slot\": %u, \"local\": \"%s\", \"epoch\": %" PRIu32
            ", \"awake\": %s, \"path_mtu_bytes\": %" PRIu32 ", \"payload_max_bytes\": %" PRIu32,
            alb_addr_format(&addr, text), peer->slot, alb_addr_format(&local, local_text), peer->epoch,
            peer->is_awake ? "true" : "false", alb_report_path_mtu(peer), peer->payload_max);
    write_or_null("rtt_ns", peer->rtt_ns, 0, to);
    write_or_null("rtt_min_ns", peer->rtt_min_ns, 0, to);
    write_or_null("window_bytes", peer->window_bytes, UINT32_MAX, to);
    write_or_null("credit_bytes", peer->credit_bytes, UINT32_MAX, to);
    write_or_null("rate_bytes_per_s", peer->rate_bytes_per_s, 0, to);
    fprintf(to, ", \"inflight_bytes\": %" PRIu64 ", \"paths\": [", peer->inflight_bytes);
    for (uint32_t i = 0; i < ALB_MIN(peer->path_count, ALB_PATH_STATS_MAX); i++) {
        fputs(i > 0 ? ", " : "", to);
        write_path(header, peer, i, to);
    }
    fputs("]}", to);
}

static void write_peers(const struct alb_board_header *header, const struct alb_board_rows *rows, FILE *to)
{
    bool is_first = true;
    fputs(", \"peers\": [", to);
    for (uint32_t i = 0; i < rows->peer_count; i++) {
        if (!rows->peers[i].is_known)
            continue;
        fputs(is_first ? "" : ", ", to);
        write_peer(header, &rows->peers[i], to);
        is_first = false;
    }
    putc(']', to);
}

static void write_qps(const struct alb_board_rows *rows, FILE *to)
{
    bool is_first = true;
    fputs(", \"queue_pairs\": [", to);
    for (uint32_t i = 0; i < rows->qp_count; i++) {
        if (rows->qps[i].qpn == 0)
            continue;
        fputs(is_first ? "" : ", ", to);
        write_qp(&rows->qps[i], to);
        is_first = false;
    }
    putc(']', to);
}

void alb_report_write(const struct alb_board_header *header, const struct alb_board_rows *rows, FILE *to)
{
    char text[ALB_ADDR_TEXT_MAX];
    fprintf(to, "{\"pid\": %d, \"program\": ", header->pid);
    write_text(header->program, to);
    fputs(", \"device\": ", to);
    write_text(header->device, to);
    fprintf(to, ", \"slot\": %u, \"mtu_bytes\": %" PRIu32 ", \"started_ns\": %" PRIu64 ", \"addresses\": [",
            header->slot, header->mtu_bytes, header->started_ns);
    for (uint32_t i = 0; i < header->address_count; i++)
        fprintf(to, "%s\"%s\"", i > 0 ? ", " : "", alb_addr_format(&header->addresses[i], text));
    fputs("], \"faults\": ", to);
    write_text(header->faults, to);
    if (rows->qps) {
        write_all_counters(header, to);
        write_peers(header, rows, to);
    }
    write_qps(rows, to);
    fputs("}\n", to);
}

static void write_board(const struct alb_board *board, FILE *file)
{
    struct alb_board_rows rows;
    if (board->fd >= 0 && alb_board_rows_read(board->fd, board->bytes, board->header, &rows)) {
        alb_report_write(board->header, &rows, file);
        alb_board_rows_release(&rows);
        return;
    }
    rows = (struct alb_board_rows){.peers = board->peers,
                                   .peer_count = board->header->peer_max,
                                   .qps = board->qps,
                                   .qp_count = board->header->qp_max};
    alb_report_write(board->header, &rows, file);
}

// Writes and closes it. False, with errno, if some of it is missing.
static bool write_and_close(const struct alb_board *board, FILE *file)
{
    if (!file)
        return false;
    write_board(board, file);
    bool is_whole = fflush(file) == 0 && !ferror(file);
    return fclose(file) == 0 && is_whole;
}

// The program's own output may be a file: opened once more it would have another place to write at.
static int standard_stream(const char *name)
{
    return strcmp(name, "/dev/stdout") == 0 ? STDOUT_FILENO : strcmp(name, "/dev/stderr") == 0 ? STDERR_FILENO : -1;
}

// What is behind a descriptor of the process may be a plain file that the program writes, too.
static bool names_descriptor(const char *name)
{
    return strncmp(name, "/dev/fd/", 8) == 0 || strncmp(name, "/proc/", 6) == 0;
}

// Puts the name that a link leads to in its place, which may be that of nothing yet. False, with errno, if there is no
// end of links.
static bool follow_links(char *name, size_t size)
{
    enum { LINKS_MAX = 40 }; // as the kernel has it
    char target[4096];
    for (int i = 0; i < LINKS_MAX && !names_descriptor(name); i++) {
        struct stat status;
        if (stat(name, &status) != 0 && errno != ENOENT) // links of others, where the kernel protects from them
            return false;
        ssize_t length = readlink(name, target, sizeof(target));
        if (length < 0)
            return true;
        size_t folder = target[0] == '/' ? 0 : alb_outfile_folder_bytes(name);
        if (folder + (size_t)length >= size) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(name + folder, target, (size_t)length);
        name[folder + (size_t)length] = 0;
    }
    errno = ELOOP;
    return names_descriptor(name);
}

// True if it is, or will be, a file of that name. Else it is something that must stay: a device, a pipe, /dev/stdout.
static bool is_plain_file(const char *name)
{
    struct stat status;
    return !names_descriptor(name) && (lstat(name, &status) != 0 || S_ISREG(status.st_mode));
}

// A pipe without a reader is not waited for.
static int open_again(const char *name)
{
    int fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

static FILE *open_as_it_is(const char *name)
{
    int stream = standard_stream(name);
    int fd = stream >= 0 ? fcntl(stream, F_DUPFD_CLOEXEC, 0) : open_again(name);
    if (fd < 0)
        return NULL;
    FILE *file = fdopen(fd, "a");
    if (!file)
        close(fd);
    return file;
}

// A file of its own, also where another process of this number left one, or somebody else a link.
static FILE *create(const char *name)
{
    unlink(name);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

static bool replace(const struct alb_board *board, const char *name)
{
    char temporary[4096 + 16];
    snprintf(temporary, sizeof(temporary), "%s.%d", name, (int)getpid());
    if (write_and_close(board, create(temporary)) && rename(temporary, name) == 0)
        return true;
    int error = errno;
    unlink(temporary);
    errno = error;
    return false;
}

void alb_report_to_file(const struct alb_board *board, const char *path)
{
    char name[4096], file[4096];
    if (!alb_outfile_expand(path, name, sizeof(name))) {
        alb_log(ALB_LOG_WARNING, "counters: the name of the file is too long");
        return;
    }
    strcpy(file, name);
    sigset_t signals;
    alb_write_signals_hold(&signals);
    bool is_plain = follow_links(file, sizeof(file)) && is_plain_file(file);
    bool is_written = is_plain ? replace(board, file) : write_and_close(board, open_as_it_is(name));
    int error = errno;
    alb_write_signals_release(&signals);
    if (!is_written)
        alb_log(ALB_LOG_WARNING, "counters: %s: %s", name, strerror(error));
}
