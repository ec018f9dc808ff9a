# SPDX-License-Identifier: BSD-2-Clause
"""Speed and memory of the simulator (sim_scale.c): packets that leave a port, of a host or a switch, per second of processor time on one core, in
a permutation on a fat-tree; memory of a host; the event queue by itself, which is the limit."""

import json
import os
import statistics
import subprocess

GOAL_HOPS_PER_S = 2e6
GOAL_RESIDENT_BYTES = 4 << 30

# What bench.py lists and measures: name, options of the program, rounds at most.
CASES = [
    ("event-queue", ["--queue", "20000000"], 5),
    ("permutation-128", ["--k", "8"], 5),
    ("permutation-1024", ["--k", "16"], 5),
    ("permutation-1024-polling", ["--k", "16", "--poll-ns", "1000"], 5),
    ("memory-8192", ["--k", "32", "--bytes", "400000"], 1),
]
QUICK = {"event-queue", "permutation-128"}


def cases(quick):
    return [case for case in CASES if not quick or case[0] in QUICK]


def run(build, case, repeat):
    """One row: the median of the rounds, and how far they were apart."""
    name, options, rounds_max = case
    row = {"section": "sim", "case": name}
    results = []
    for _ in range(min(repeat, rounds_max)):
        done = subprocess.run([os.path.join(build, "bench", "alb_sim_scale")] + options, capture_output=True, text=True)
        if done.returncode:
            row["error"] = done.stderr.strip() or "ended with %d" % done.returncode
            return row
        results.append(json.loads(done.stdout.splitlines()[-1]))
    figure = "events_per_s" if name == "event-queue" else "packet_hops_per_s"
    figures = [result[figure] for result in results]
    row.update({key: value for key, value in results[-1].items() if key not in ("case", "seconds", figure)})
    row[figure] = {"median": statistics.median(figures), "min": min(figures), "max": max(figures)}
    if name.startswith("permutation-1024"):
        row["goal_met"] = row[figure]["median"] >= GOAL_HOPS_PER_S
    if name == "memory-8192":
        row["goal_met"] = row["resident_bytes"] <= GOAL_RESIDENT_BYTES
    if len({result.get("trace_hash") for result in results}) > 1:
        row["error"] = "the same run twice, and the traces differ"
    return row


def print_table(rows):
    print("\n%-26s %12s %12s %10s %12s  %s" % ("simulator", "M/s median", "min to max", "KiB/host", "resident MiB", "goal"))
    for row in rows:
        if "error" in row:
            print("%-26s failed: %s" % (row["case"], row["error"]))
            continue
        figure = row.get("events_per_s") or row["packet_hops_per_s"]
        host = "%.0f" % (row["bytes_per_host"] / 1024) if "bytes_per_host" in row else ""
        resident = "%.0f" % (row["resident_bytes"] / 2**20) if "resident_bytes" in row else ""
        goal = {None: "", True: "met", False: "NOT met"}[row.get("goal_met")]
        print("%-26s %12.2f %12s %10s %12s  %s" % (row["case"], figure["median"] / 1e6, "%.2f-%.2f" % (figure["min"] / 1e6, figure["max"] / 1e6),
                                                 host, resident, goal))
