#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs built with a sanitizer, and under valgrind: right ones pass without a report, wrong ones are reported."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import TOP, Albedo, Count, describe, devices_of, need, own_loopback  # noqa: E402

RIGHT = None
# Name, flags of the compiler, what stands before the program, argument, what is to be reported.
CASES = [
    ("address", ["-fsanitize=address"], [], [], RIGHT),
    ("address", ["-fsanitize=address"], [], ["freed"], "heap-use-after-free"),
    ("address", ["-fsanitize=address"], [], ["left"], RIGHT),
    ("undefined", ["-fsanitize=undefined"], [], [], RIGHT),
    ("thread", ["-fsanitize=thread"], [], [], RIGHT),
    ("thread", ["-fsanitize=thread"], [], ["race"], "ThreadSanitizer: data race"),
    ("valgrind", [], ["valgrind", "--error-exitcode=66", "--leak-check=full"], [], RIGHT),
    ("valgrind", [], ["valgrind", "--error-exitcode=66"], ["freed"], "Invalid write"),
]
# What makes a device hold memory of its own that may count as leaked if the program leaves the device open.
OPTIONS = {"left": ["--faults", "reorder=1%", "--pcap", "/dev/null", "--trace", "/dev/null"]}
REPORTS = ["AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error", "Invalid "]


def compile_program(build, folder, name, flags):
    """(path of the program, what the compiler said)"""
    program = os.path.join(folder, name)
    done = subprocess.run(["cc", "-g", "-O1", "-D_GNU_SOURCE", "-pthread", *flags, "-I" + os.path.join(TOP, "include"),
                           "-I" + os.path.join(TOP, "examples"), os.path.join(TOP, "tests", "e2e", "instrumented.c"), "-o", program,
                           "-L" + os.path.join(build, "lib"), "-lalbedodv", "-libverbs"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return program if done.returncode == 0 else None, done.stdout.decode(errors="replace")


def without_random_addresses():
    """ThreadSanitizer cannot place its shadow where a kernel randomises addresses widely."""
    command = ["setarch", "-R"]
    return command if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode == 0 else []


def judge(process, argument, report):
    """(ok, detail)"""
    status, output = process.wait(time.monotonic() + 120), process.output()
    if status is None:
        return False, "not done in 120 s"
    if report is RIGHT:
        found = [text for text in REPORTS if text in output]
        return status == 0 and "done" in output and not found, found[0] if found else "exit %d" % status
    return status != 0 and report in output, report if report in output else "not reported"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="build folder (default: %(default)s)")
    parser.add_argument("--device", default="all", choices=["roce0", "albedo0", "all"])
    arguments = parser.parse_args()
    need("cc", "setarch")
    count, place, build = Count(), own_loopback(), os.path.abspath(arguments.build)
    with tempfile.TemporaryDirectory(prefix="albedo-instrumented-") as folder:
        programs = {}
        for name, flags, before, argument, report in CASES:
            title = " ".join([name, *argument])
            if before and not shutil.which(before[0]):
                count.skip(title, "%s is not installed" % before[0])
                continue
            if name not in programs:
                programs[name] = compile_program(build, folder, name, flags)
            program, said = programs[name]
            if program is None:
                count.result(title, False, "does not compile", said)
                continue
            if name == "thread":
                before = without_random_addresses()
            for device in devices_of(arguments.device):
                options = OPTIONS.get(" ".join(argument), [])
                process = Albedo(build, options, device).start(place, [*before, program, *argument])
                ok, detail = judge(process, argument, report)
                count.result("%s@%s" % (title, device), ok, detail, describe(process))
                process.end()
    count.finish()


main()
