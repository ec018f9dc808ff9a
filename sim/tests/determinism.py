#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The same seed gives the same trace with every compiler, in debug and in release: builds the simulator with each, runs the same clusters and the
same seeds of the search, and compares. Nothing is recorded, so nothing is to be regenerated when the protocol changes.

    sim/tests/determinism.py [--work FOLDER] [--jobs N]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPILERS = ["gcc", "clang", "clang-14"]
KINDS = ["Debug", "Release"]
RUNS = [
    ["bench/alb_sim_scale", "--k", "4"],
    ["bench/alb_sim_scale", "--k", "8", "--bytes", "300000", "--spread", "spray"],
    ["bench/alb_sim_scale", "--k", "4", "--transport", "rc", "--bytes", "500000"],
    ["bench/alb_sim_scale", "--k", "4", "--congestion", "dcqcn", "--poll-ns", "1000"],
    ["bin/alb_search", "--seed", "7"],
    ["bin/alb_search", "--transport", "csa", "--seed", "7"],
]


def build(folder, compiler, kind, jobs):
    options = ["-DCMAKE_C_COMPILER=" + compiler, "-DCMAKE_BUILD_TYPE=" + kind]
    if shutil.which("ccache"):
        options.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
    subprocess.run(["cmake", "-S", TOP, "-B", folder, "-G", "Ninja"] + options, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "-j%d" % jobs, "alb_sim_scale", "alb_search"], check=True, stdout=subprocess.DEVNULL)


def hash_of(folder, run):
    """The trace hash that the program prints, which stands in 16 hexadecimal digits."""
    done = subprocess.run([os.path.join(folder, run[0])] + run[1:], capture_output=True, text=True)
    found = re.findall(r"\b[0-9a-f]{16}\b", done.stdout)
    return found[-1] if found else "none (ended with %d)" % done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", default=os.path.join(TOP, "build", "determinism"), help="where to build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    compilers = [name for name in COMPILERS if shutil.which(name)]
    if len({name.split("-")[0] for name in compilers}) < 2:
        print("gcc and clang are needed")
        sys.exit(77)
    folders = []
    for compiler in compilers[:2]:
        for kind in KINDS:
            folders.append(os.path.join(arguments.work, compiler + "-" + kind.lower()))
            build(folders[-1], compiler, kind, arguments.jobs)
    differ = 0
    for run in RUNS:
        hashes = {os.path.basename(folder): hash_of(folder, run) for folder in folders}
        same = len(set(hashes.values())) == 1 and not any(value.startswith("none") for value in hashes.values())
        differ += not same
        print("%-70s %s" % (" ".join(run), "same: " + hashes.popitem()[1] if same else "DIFFERENT: %s" % hashes))
    print("%d passed, %d failed" % (len(RUNS) - differ, differ))
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
