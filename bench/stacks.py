# SPDX-License-Identifier: BSD-2-Clause
"""The section "stacks" of bench.py: UCX and MPI over Albedo beside what they do without it, on loopback, in one run.

UCX's and Open MPI's own TCP, and MPICH as it comes (shared memory within a host). Figures are medians over the rounds, and ratios
medians of the rounds' own ratios: Albedo's figure by the other's.
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
from harness import Place, describe, free_port  # noqa: E402
from programs import OPEN_MPI, TRANSPORTS, ucx_of  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
PROGRAMS = ["ucx_perftest", "mpirun.openmpi", "mpicc.openmpi", "mpiexec.mpich", "mpicc.mpich"]
OVER_ALBEDO = {**ucx_of("roce0"), "UCX_TLS": TRANSPORTS["rc"]}


class Way:
    """A contestant: by Albedo or without it, and its programs' arguments."""

    def __init__(self, name, over_albedo, environment, arguments=()):
        self.name, self.over_albedo, self.environment, self.arguments = name, over_albedo, environment, list(arguments)

    def command(self, albedo, argv):
        variables = ["env", *("%s=%s" % pair for pair in sorted(self.environment.items())), *argv]
        return albedo.command(Place("loopback"), variables) if self.over_albedo else variables


UCX_WAYS = [Way("albedo", True, OVER_ALBEDO), Way("tcp", False, {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"})]
OPEN_MPI_ARGUMENTS = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
MPI_WAYS = {
    "openmpi": [
        Way("albedo", True, {**OVER_ALBEDO, **OPEN_MPI},
            OPEN_MPI_ARGUMENTS + ["--mca", "btl", "self", "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any",
                                  "--mca", "pml_ucx_devices", "any"]),
        Way("tcp", False, OPEN_MPI, OPEN_MPI_ARGUMENTS + ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
                                                          "--mca", "btl_tcp_if_include", "lo"]),
    ],
    "mpich": [Way("albedo", True, {**OVER_ALBEDO, "MPIR_CVAR_NOLOCAL": "1"}), Way("default", False, {})],
}


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
        output, _ = run_pair(way.command(bench.albedo, argv), way.command(bench.albedo, argv[:1] + ["127.0.0.1"] + argv[1:]),
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
        process = Timed(way.command(bench.albedo, argv))
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
            yield Case(implementation + "/pingpong", size, "us", ways,
                       mpi("pingpong", implementation, 2, size, 3000 if size < MIB else 200))
        for ranks in [2] if quick else [2, 4]:
            for size in [8, MIB]:
                yield Case("%s/allreduce-%d" % (implementation, ranks), size, "us", ways,
                           mpi("allreduce", implementation, ranks, size, 2000 if size < MIB else 100))


class Bench:
    def __init__(self, albedo, repeat):
        self.albedo, self.repeat = albedo, repeat
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
        other = case.ways[1].name
        row["beside"] = other
        row["ratio"] = statistics.median(a / b for a, b in zip(values["albedo"], values[other]))
        return row


def missing():
    """What is not installed."""
    return [program for program in PROGRAMS if not shutil.which(program)]


def print_table(rows):
    print("\n%-22s %9s  %10s %10s  %-8s %7s  %s" % ("stacks: case", "bytes", "albedo", "beside it", "", "ratio", ""))
    for row in rows:
        scale, unit = (1e-9, "GB/s") if row["figure"] == "bytes_per_s" else (1, "us")
        if "error" in row:
            print("%-22s %9d  failed: %s" % (row["case"], row["message_bytes"], row["error"].splitlines()[0]))
            continue
        other = row["beside"]
        print("%-22s %9d  %10.2f %10.2f  %-8s %7.2f  %s" % (row["case"], row["message_bytes"], row["albedo"]["median"] * scale,
                                                          row[other]["median"] * scale, other, row["ratio"], unit))
