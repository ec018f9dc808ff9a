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

void alb_report_write(const struct alb_board_header *header, const struct alb_qp_stats *qps, bool has_counters,
                      FILE *to)
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
    if (has_counters)
        write_all_counters(header, to);
    fputs(", \"queue_pairs\": [", to);
    bool is_first = true;
    for (uint32_t i = 0; qps != NULL && i < header->qp_max; i++) {
        if (qps[i].qpn == 0)
            continue;
        fputs(is_first ? "" : ", ", to);
        write_qp(&qps[i], to);
        is_first = false;
    }
    fputs("]}\n", to);
}

// True if that is a name of something that must stay: a device, a pipe, /dev/stdout (which is a link).
static bool is_no_plain_file(const char *name)
{
    struct stat status;
    return lstat(name, &status) == 0 && !S_ISREG(status.st_mode);
}

// Writes and closes it. False, with errno, if some of it is missing.
static bool write_and_close(const struct alb_board *board, FILE *file)
{
    if (!file)
        return false;
    alb_report_write(board->header, board->qps, true, file);
    bool is_whole = fflush(file) == 0 && !ferror(file);
    return fclose(file) == 0 && is_whole;
}

// A pipe without a reader is not waited for.
static FILE *open_as_it_is(const char *name)
{
    int fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    fcntl(fd, F_SETFL, O_APPEND);
    FILE *file = fdopen(fd, "a");
    if (!file)
        close(fd);
    return file;
}

static bool replace(const struct alb_board *board, const char *name)
{
    char temporary[4096 + 16];
    snprintf(temporary, sizeof(temporary), "%s.%d", name, (int)getpid());
    if (write_and_close(board, fopen(temporary, "we")) && rename(temporary, name) == 0)
        return true;
    int error = errno;
    unlink(temporary);
    errno = error;
    return false;
}

void alb_report_to_file(const struct alb_board *board, const char *path)
{
    char name[4096];
    if (!alb_outfile_expand(path, name, sizeof(name))) {
        alb_log(ALB_LOG_WARNING, "counters: the name of the file is too long");
        return;
    }
    sigset_t signals;
    alb_write_signals_hold(&signals);
    bool is_written = is_no_plain_file(name) ? write_and_close(board, open_as_it_is(name)) : replace(board, name);
    int error = errno;
    alb_write_signals_release(&signals);
    if (!is_written)
        alb_log(ALB_LOG_WARNING, "counters: %s: %s", name, strerror(error));
}
