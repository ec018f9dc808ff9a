#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the scenarios of scenarios/ and checks each against its expected result, in virtual time.

usage: scripts/scenarios.py [--build DIR] [--stage ci|nightly|all] [--jobs N] [--table FILE] [NAME...]

Prints a line for each with its time, and what did not come out as expected; --table writes a Markdown table with the
figures. Fails if a scenario does.
"""
import argparse
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent


def keys(path):
    """Of the section [scenario]."""
    found, section = {}, ""
    for line in path.read_text().splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[scenario]" and "=" in line:
            key, value = line.split("=", 1)
            found[key.strip()] = value.split(" #")[0].strip()
    return found


running, starting = set(), threading.Lock()


def on_signal(number, frame):
    """At once: to leave main() would wait for all the scenarios that are still to be run."""
    starting.acquire()  # for good: no other one begins
    for process in running:
        process.kill()
    os._exit(128 + number)


def run(albedo, path, limit):
    begun = time.monotonic()
    command = [albedo, "sim", "--check", "--quiet", str(path)]
    with starting:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   universal_newlines=True)
        running.add(process)
    try:
        output, _ = process.communicate(timeout=limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        status, output = 1, "FAIL took more than %d s" % limit
    with starting:
        running.discard(process)
    return path, status, output.splitlines(), time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(TOP / "build"))
    parser.add_argument("--stage", default="ci", choices=["ci", "nightly", "all"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=int, default=1800, help="seconds for one scenario")
    parser.add_argument("--table")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, on_signal)
    albedo = os.path.join(arguments.build, "bin", "albedo")
    paths = [p for p in sorted((TOP / "scenarios").iterdir()) if p.is_file()]
    if arguments.names:
        unknown = set(arguments.names) - {p.name for p in paths}
        if unknown:
            sys.exit("there is no scenario %s" % ", ".join(sorted(unknown)))
        paths = [p for p in paths if p.name in arguments.names]
    elif arguments.stage != "all":
        paths = [p for p in paths if keys(p).get("stage", "ci") == arguments.stage]
    failed, rows = 0, []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for path, status, lines, seconds in pool.map(lambda p: run(albedo, p, arguments.limit), paths):
            failed += status != 0
            print("%-5s %-24s %6.1f s" % ("ok" if status == 0 else "FAIL", path.name, seconds), flush=True)
            for line in lines:
                if not line.startswith("ok") or arguments.names:
                    print("      " + line, flush=True)
            figures = "; ".join(line[5:] for line in lines if line[:4] in ("ok  ", "FAIL"))
            rows.append("| %s | %s | %s | %s |" % (path.name, keys(path).get("title", ""), figures,
                                                   "yes" if status == 0 else "**no**"))
    if arguments.table:
        pathlib.Path(arguments.table).write_text("\n".join(rows) + "\n")
    print("%d passed, %d failed" % (len(paths) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
