# SPDX-License-Identifier: BSD-2-Clause
"""The section "stacks" of bench.py: UCX and MPI over both devices beside what they do without them, on loopback, in one run.

UCX's and Open MPI's own TCP, and MPICH as it comes (shared memory within a host). Figures are medians over the rounds, and ratios
medians of the rounds' own ratios: a device's figure by the other's.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from measure import Failed, Timed, run_pair

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "stacks"))
from harness import Albedo, Place, describe, free_port  # noqa: E402
from programs import OPEN_MPI, TRANSPORTS, ucx_of  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
PROGRAMS = ["ucx_perftest", "mpirun.openmpi", "mpicc.openmpi", "mpiexec.mpich", "mpicc.mpich"]
DEVICES = ["roce0", "albedo0"]


class Way:
    """A contestant: a device or what the stack does without one (None), and its programs' environment and arguments."""

    def __init__(self, name, device, environment, arguments=()):
        self.name, self.device, self.arguments = name, device, list(arguments)
        over_device = {**ucx_of(device), "UCX_TLS": TRANSPORTS["rc"]} if device else {}
        self.environment = {**over_device, **environment}

    def command(self, build, argv):
        variables = ["env", *("%s=%s" % pair for pair in sorted(self.environment.items())), *argv]
        return Albedo(build, device=self.device).command(Place("loopback"), variables) if self.device else variables


def over_devices(environment, arguments=()):
    return [Way(device, device, environment, arguments) for device in DEVICES]


def open_mpi_ways(ranks):
    """As mpirun places the ranks itself: each on a core while there are enough, and anywhere, yielding, where there are not."""
    crowded = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    places = crowded if ranks > len(os.sched_getaffinity(0)) else ["--bind-to", "core"]
    by_ucx = ["--mca", "btl", "self", "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
    by_tcp = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
    return [*over_devices(OPEN_MPI, places + by_ucx), Way("tcp", None, OPEN_MPI, places + by_tcp)]


def mpich_ways(_ranks):
    return [*over_devices({"MPIR_CVAR_NOLOCAL": "1"}), Way("default", None, {})]


UCX_WAYS = [*over_devices({}), Way("tcp", None, {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"})]
MPI_WAYS = {"openmpi": open_mpi_ways, "mpich": mpich_ways}


class Case:
    """measure(bench, way) -> the figure; figure: us or bytes_per_s."""

    def __init__(self, name, size, figure, ways, measure):
        self.name, self.size, self.figure, self.ways, self.measure = name, size, figure, ways, measure

    def full_name(self):
        return "stacks/%s/%d" % (self.name, self.size)


def ucx(test, size, iterations, *options):
    def measure(bench, way):
        port = free_port()
        argv = ["ucx_perftest", "-p", str(port), "-t", test, "-s", str(size), "-n", str(iterations), "-w", str(iterations // 10),
                *options]
        output, _ = run_pair(way.command(bench.build, argv), way.command(bench.build, argv[:1] + ["127.0.0.1"] + argv[1:]),
                             port, 60)
        row = re.search(r"^Final: +\d+ +\S+ +\S+ +(\S+) +\S+ +(\S+)", output, re.M)
        if not row:
            raise Failed("no final result in the output\n" + output)
        return float(row.group(1)) if test.endswith("_lat") else float(row.group(2)) * MIB

    return measure


def mpi(kind, implementation, ranks, size, iterations):
    def measure(bench, way):
        launcher = "mpirun.openmpi" if implementation == "openmpi" else "mpiexec.mpich"
        argv = [launcher, *way.arguments, "-n", str(ranks), bench.programs[implementation], kind, str(size), str(iterations)]
        process = Timed(way.command(bench.build, argv))
        try:
            if process.wait(process.started + 60) != 0:
                raise Failed("failed or not finished\n" + describe(process))
            return json.loads(process.output().strip().splitlines()[-1])["us"]
        finally:
            process.end()

    return measure


def table(quick):
    for size in [8] if quick else [8, 4 * KIB]:
        yield Case("ucx/tag_lat", size, "us", UCX_WAYS, ucx("tag_lat", size, 5000))
    for size in [8] if quick else [8, 64 * KIB]:  # a program that sleeps in poll(2) until something comes
        yield Case("ucx/tag_lat/sleep", size, "us", UCX_WAYS, ucx("tag_lat", size, 20000, "-E", "sleep"))
    for size in [MIB] if quick else [4 * KIB, 64 * KIB, MIB]:
        yield Case("ucx/tag_bw", size, "bytes_per_s", UCX_WAYS, ucx("tag_bw", size, max(500, 20000 * 4096 // size)))
    for implementation, ways in MPI_WAYS.items():
        for size in [8, MIB] if quick else [8, 4 * KIB, 64 * KIB, MIB]:
            yield Case(implementation + "/pingpong", size, "us", ways(2),
                       mpi("pingpong", implementation, 2, size, 3000 if size < MIB else 200))
        for ranks in [2] if quick else [2, 4]:
            for size in [8, MIB]:
                yield Case("%s/allreduce-%d" % (implementation, ranks), size, "us", ways(ranks),
                           mpi("allreduce", implementation, ranks, size, 2000 if size < MIB else 100))


class Bench:
    def __init__(self, build, repeat):
        self.build, self.repeat = build, repeat
        self.folder = tempfile.TemporaryDirectory(prefix="albedo-bench-")
        self.programs = {name: self.compile(name) for name in MPI_WAYS}

    def compile(self, implementation):
        program = os.path.join(self.folder.name, "mpi_bench." + implementation)
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi_bench.c")
        subprocess.run(["mpicc." + implementation, "-O2", "-o", program, source], stdin=subprocess.DEVNULL, check=True)
        return program

    def run(self, case):
        row = {"section": "stacks", "case": case.name, "message_bytes": case.size, "figure": case.figure, "rounds": self.repeat}
        values = {way.name: [] for way in case.ways}
        try:
            for _ in range(self.repeat):
                for way in case.ways:
                    values[way.name].append(case.measure(self, way))
        except Failed as failure:
            row["error"] = str(failure)
            return row
        for name, measured in values.items():
            row[name] = {"median": statistics.median(measured), "least": min(measured), "most": max(measured)}
        row["beside"] = other = case.ways[-1].name
        for device in DEVICES:
            row[device]["ratio"] = statistics.median(a / b for a, b in zip(values[device], values[other]))
        return row


def missing():
    """What is not installed."""
    return [program for program in PROGRAMS if not shutil.which(program)]


def print_table(rows):
    print("\n%-22s %9s  %18s %18s  %s" % ("stacks: case", "bytes", *("%s (ratio)" % device for device in DEVICES), "beside"))
    for row in rows:
        scale, unit = (1e-9, "GB/s") if row["figure"] == "bytes_per_s" else (1, "us")
        start = "%-22s %9d" % (row["case"], row["message_bytes"])
        if "error" in row:
            print("%s  failed: %s" % (start, row["error"].splitlines()[0]))
            continue
        ours = ["%10.2f (%5.2f)" % (row[device]["median"] * scale, row[device]["ratio"]) for device in DEVICES]
        print("%s  %18s %18s  %s %.2f  %s" % (start, *ours, row["beside"], row[row["beside"]]["median"] * scale, unit))
