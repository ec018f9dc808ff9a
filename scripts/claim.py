#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the grid of CSA's claim (docs/CLAIM.md) and writes it as tables.

usage: scripts/claim.py [--build DIR] [--runs FILE] [--table FILE] [--budget SECONDS] [--flows N] [--seeds N]
                        [--workloads LIST] [--loads LIST] [--losses LIST] [--schemes LIST] [--jobs N]

Every combination of workload, load, loss, scheme and seed is a run of scenarios/csa-web-search or csa-all-to-all. Runs
are kept in a file of JSON lines, one for each; those that are in it are not run again, so that the grid can be run in
pieces (--budget; 0 only writes the tables). Seeds come last: a grid that is cut short has its cells with fewer of them.

A table has a line for each load and loss: P99 of flow completion time with csa, and csa's P99 by that of each other
scheme; each is the median over the seeds that both have, and behind it stands how many they are.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
WORKLOADS = {"web": ("csa-web-search", "WebSearch"), "all": ("csa-all-to-all", "1 MB all-to-all")}
PUBLISHED = ["gbn", "irn", "fixed", "sleek"]
SAME = ["same-gbn", "same-irn", "same-irn-8", "same-fixed", "same-sleek"]


def run(build, cell):
    """Its figures: those of all flows and of the network."""
    workload, load, loss, scheme, seed, flows = cell
    command = [os.path.join(build, "bin", "albedo"), "sim", "--quiet", "--json", "/dev/stdout", "--variant", scheme]
    for setting in ("scenario.seed=%d" % seed, "workload.flows=%d" % flows, "workload.load=%s%%" % load,
                    "fault.loss.value=%s" % loss):
        command += ["--set", setting]
    command.append(str(TOP / "scenarios" / WORKLOADS[workload][0]))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          stdin=subprocess.DEVNULL, universal_newlines=True)
    figures = {"cell": cell}
    for line in done.stdout.splitlines():
        record = json.loads(line) if line.startswith("{") else {}
        if record.get("record") == "network" or (record.get("record") == "part" and record["work"] == "all"):
            figures.update(record)
    if done.returncode != 0 or "fct_p99" not in figures:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stderr[-500:]))
    return figures


def read(path):
    """What is there: the last line may have been cut when a run was ended."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        path.write_text("".join(lines))
    return {tuple(figures["cell"]): figures for figures in map(json.loads, lines)}


def fill(arguments, cells, runs):
    """Runs what is missing, until the budget is used up."""
    until = time.monotonic() + arguments.budget
    missing = [cell for cell in cells if cell not in runs]

    def go(cell):
        return run(arguments.build, cell) if time.monotonic() < until else None

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, arguments.runs.open("a") as file:
        for figures in pool.map(go, missing):
            if figures:
                runs[tuple(figures["cell"])] = figures
                print(json.dumps(figures), file=file, flush=True)


def entry(runs, flows, place, scheme, seeds):
    """csa's P99 by that of the scheme, or csa's own."""
    values = []
    for seed in seeds:
        csa = runs.get(place + ("csa", seed, flows))
        other = runs.get(place + (scheme, seed, flows))
        if csa and other:
            values.append(csa["fct_p99"] / (1e3 if scheme == "csa" else other["fct_p99"]))
    if not values:
        return "-"
    return ("%.0f (%d)" if scheme == "csa" else "%.2f (%d)") % (statistics.median(values), len(values))


def table(arguments, runs, workload, schemes):
    titles = ["csa, us" if scheme == "csa" else "by %s" % scheme for scheme in schemes]
    lines = ["| %s: load, loss | %s |" % (WORKLOADS[workload][1], " | ".join(titles)), "|---|" + "---|" * len(schemes)]
    for load, loss in itertools.product(arguments.loads, arguments.losses):
        place = (workload, load, loss)
        row = [entry(runs, arguments.flows, place, scheme, range(1, arguments.seeds + 1)) for scheme in schemes]
        lines.append("| %s %%, %s | %s |" % (load, loss, " | ".join(row)))
    return "\n".join(lines) + "\n"


def words(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(TOP / "build"))
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("claim.jsonl"))
    parser.add_argument("--table", type=pathlib.Path, help="Markdown; else to standard output")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds after which no run is begun")
    parser.add_argument("--flows", type=int, default=6000, help="of each run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workloads", type=words, default=list(WORKLOADS))
    parser.add_argument("--loads", type=words, default=["80", "70", "50"])
    parser.add_argument("--losses", type=words, default=["0", "1e-5", "1e-4", "1e-3"])
    parser.add_argument("--schemes", type=words, default=["csa"] + PUBLISHED + SAME)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    for workload in set(arguments.workloads) - set(WORKLOADS):
        parser.error("there is no workload %s: %s" % (workload, ", ".join(WORKLOADS)))
    runs = read(arguments.runs)
    cells = [(workload, load, loss, scheme, seed, arguments.flows)
             for seed, load, loss, workload, scheme in itertools.product(
                 range(1, arguments.seeds + 1), arguments.loads, arguments.losses, arguments.workloads,
                 arguments.schemes)]
    try:
        fill(arguments, cells, runs)
    except RuntimeError as error:
        sys.exit(str(error))
    text = "%d of %d runs, %d flows each\n" % (sum(cell in runs for cell in cells), len(cells), arguments.flows)
    for workload in arguments.workloads:
        text += "\n" + table(arguments, runs, workload, ["csa"] + PUBLISHED)
        text += "\n" + table(arguments, runs, workload, ["csa"] + SAME)
    if arguments.table:
        arguments.table.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
