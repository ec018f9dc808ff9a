#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs what stands on verbs, unmodified, over a device: UCX, libfabric, Open MPI, MPICH, mpi4py, qperf, fio, DAPL, QEMU. Prints a table.

A case passes only if its programs say that all is well and the devices' own counters show that the data went through them. Cases whose
programs are not installed are skipped (scripts/setup.sh stacks). The last line is "N passed, N failed"; the exit status is 0 only if
nothing failed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from jobs import Stacks  # noqa: E402
from programs import table  # noqa: E402
from services import services  # noqa: E402
from harness import TOP, Count, Place, devices_of, namespaces  # noqa: E402


class Skip(Exception):
    pass


class Bench:
    """What the cases run on: one device."""

    def __init__(self, arguments, device):
        self.device = device
        self.faults = bool(arguments.faults)
        self.patience = arguments.patience if arguments.faults else 1
        options = ["--faults", arguments.faults, "--seed", arguments.seed] if arguments.faults else []
        self.stacks = Stacks(arguments.build, options, device)
        self.here = self.there = Place("loopback")
        self.source, self.build = arguments.mpi4py, arguments.build
        self.named = None

    def named_place(self):
        """A network with an address that is not a loopback one: libfabric's verbs provider passes over loopback interfaces."""
        if not self.named:
            places, reason = namespaces()
            if not places:
                raise Skip("no network namespace: " + reason)
            self.named = places[0]
        return self.named

    def mpi4py_folder(self):
        """The source of the very version that is installed."""
        python = subprocess.run(["/usr/bin/python3", "-c", "import mpi4py; print(mpi4py.__version__)"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if python.returncode:
            raise Skip("python3-mpi4py is not installed")
        version = python.stdout.decode().strip()
        if not self.source:
            fetch = os.path.join(TOP, "tests", "conformance", "fetch-source.sh")
            done = subprocess.run([fetch, "mpi4py", os.path.join(os.path.abspath(self.build), "stacks")], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.returncode:
                raise Skip((done.stderr.decode().strip().splitlines() or ["no source"])[-1] + " (give a copy: --mpi4py FOLDER)")
            self.source = done.stdout.decode().strip()
        with open(os.path.join(self.source, "src", "mpi4py", "__init__.py")) as file:
            if "'%s'" % version not in file.read():
                raise Skip("%s is not the source of the mpi4py %s that is installed" % (self.source, version))
        return self.source


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="build folder (default: build)")
    parser.add_argument("--device", default="roce0", help="roce0, albedo0 or all (default: roce0)")
    parser.add_argument("--quick", action="store_true", help="a selection that takes about a minute")
    parser.add_argument("--only", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("--section", action="append", choices=["ucx", "fabric", "mpi", "mpi4py", "apps"], help="only these (may be repeated)")
    parser.add_argument("--faults", metavar="SPEC", help="faults in every process, as albedo run --faults takes them")
    parser.add_argument("--seed", default="1", help="seed of the faults (default: 1)")
    parser.add_argument("--patience", type=int, default=4, help="with faults, time limits are this much longer (default: 4)")
    parser.add_argument("--mpi4py", metavar="FOLDER", help="source of mpi4py (default: Debian's source package is fetched)")
    parser.add_argument("--repeat", type=int, default=1, help="run the selection this often (default: 1)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and end")
    return parser.parse_args(argv)


def select(arguments):
    for case in [*table(), *services()]:
        if arguments.only and not re.search(arguments.only, case.name):
            continue
        if arguments.section and case.section not in arguments.section:
            continue
        if (case.quick or not arguments.quick) and (case.lossy or not arguments.faults):
            yield case


def run(case, bench, count):
    started, name = time.monotonic(), "%-7s  %s" % (bench.device, case.name)
    if not shutil.which(case.needs()):
        count.skip(name, "%s is missing (scripts/setup.sh stacks)" % case.needs())
        return
    try:
        reason, detail, text = case.run(bench)
    except Skip as skip:
        count.skip(name, str(skip))
        return
    took = "%5.1f s  %s" % (time.monotonic() - started, "; ".join(part for part in (reason, detail) if part))
    count.result(name, not reason, took, text)


def main():
    arguments = arguments_of(sys.argv[1:])
    if arguments.list:
        for case in select(arguments):
            print(case.name)
        return
    count = Count()
    for device in devices_of(arguments.device):
        bench = Bench(arguments, device)
        try:
            for _ in range(arguments.repeat):
                for case in select(arguments):
                    run(case, bench, count)
        finally:
            bench.stacks.close()
    count.finish()


if __name__ == "__main__":
    main()
