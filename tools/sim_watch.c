// SPDX-License-Identifier: BSD-2-Clause
// What one simulated host sends and receives, and what its engine says of itself, in the files that `albedo run` makes
// of a real one.
#include "tools/command.h"
#include "tools/sim.h"

#include "sim/file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int open_files(struct sim_watch *watch, const struct sim_options *options)
{
    int error = options->pcap ? alb_sim_capture_open(&watch->capture, options->pcap) : 0;
    if (error)
        return command_error(COMMAND_FAILED, "sim", "--pcap: %s: %s", options->pcap, strerror(error));
    watch->trace = options->trace ? alb_sim_file_open(options->trace) : NULL;
    if (watch->trace || !options->trace)
        return COMMAND_OK;
    error = errno;
    if (watch->capture.file)
        alb_sim_capture_close(&watch->capture);
    return command_error(COMMAND_FAILED, "sim", "--trace: %s: %s", options->trace, strerror(error));
}

int sim_watch_open(struct sim_watch *watch, const struct sim_options *options, struct alb_run *run)
{
    *watch = (struct sim_watch){0};
    if (!options->pcap && !options->trace)
        return COMMAND_OK;
    if (options->host >= run->topology.host_count)
        return command_error(COMMAND_USAGE, "sim", "--host: %" PRIu32 " is none of the hosts 0 to %" PRIu32,
                             options->host, run->topology.host_count - 1);
    int status = open_files(watch, options);
    if (status == COMMAND_OK)
        alb_cluster_watch(run->cluster, options->host, options->pcap ? &watch->capture : NULL, watch->trace);
    return status;
}

int sim_watch_close(struct sim_watch *watch, const struct sim_options *options)
{
    int capture = watch->capture.file ? alb_sim_capture_close(&watch->capture) : 0;
    int trace = watch->trace && fclose(watch->trace) != 0 ? errno : 0;
    if (capture)
        return command_error(COMMAND_FAILED, "sim", "--pcap: %s: %s", options->pcap, strerror(capture));
    if (trace)
        return command_error(COMMAND_FAILED, "sim", "--trace: %s: %s", options->trace, strerror(trace));
    return COMMAND_OK;
}
