#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs unmodified verbs programs over a device, two processes on this host and in two network namespaces, and prints a table.

The last line is "N passed, N failed"; the exit status is 0 only if nothing failed.
"""

import argparse
import itertools
import json
import os
import re
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cases import table  # noqa: E402
from cm_cases import cm_table  # noqa: E402
from harness import (Albedo, Claims, Count, NO_CLOCK, Place, Process, describe, devices_of, free_port, namespaces, with_retries,  # noqa: E402
                     reason, wait_pair)
from rsocket_cases import rsocket_table  # noqa: E402


def iterations(case, arguments):
    """-n for a program that has none in its options: few where messages are large or much is lost."""
    if "-n" in case.options:
        return []
    if case.kind() == "pingpong":
        return ["-n", "100" if arguments.faults else "500"]
    if case.rows:
        count = 10 if arguments.faults or arguments.quick else 40
    else:
        count = 96 if arguments.faults else 480  # a multiple of every -l
    return ["-n", str(count)]


def sides(case, device, here, there, port, arguments):
    """Command lines of server and client."""
    options = case.options + ["-d", device, "-p", str(port)]
    index = "1" if case.ipv6 else "0"
    if case.kind() == "pingpong":
        options += ["-g", index]
    else:
        options += ["-F", "-x", index]
        if not arguments.faults:  # nothing waits for a timeout there, and a peer that gets no processor for seconds is not dead
            options += ["-u", "17"]
    options += iterations(case, arguments)
    return [case.program, *options], [case.program, *options, here.ipv4]


def figure(case, output):
    """What the program measured, in its own words, short."""
    if case.program == "ibv_xsrq_pingpong":  # measures nothing
        return "success" if re.search(r"^success$", output, re.M) else ""
    if case.kind() == "pingpong":
        match = re.search(r"= ([\d.]+) usec/iter", output)
        return "%s us/iteration" % match.group(1) if match else ""
    rows = result_rows(output)
    if not rows:
        return ""
    size, numbers = rows[-1]
    if case.program.endswith("_lat"):
        return "%s B: %s us" % (size, numbers[2] if len(numbers) > 2 else numbers[0])
    return "%s B: %s MiB/s" % (size, numbers[1] if len(numbers) > 1 else numbers[0])


def result_rows(output):
    """(size, figures) of perftest's rows of results: bytes, iterations, figures. On a busy machine perftest cannot tell the
    CPU's clock rate, and complains of it on stderr in the middle of a row."""
    rows = []
    for line in re.sub(r"Correlation coefficient r\^2: \S+ < \S+", "", output).splitlines():
        fields = line.split()
        if len(fields) >= 3 and all(re.fullmatch(r"\d+", f) for f in fields[:2]) and all(
                re.fullmatch(r"[\d.]+|-?nan", f) for f in fields[2:]):
            rows.append((int(fields[0]), fields[2:]))
    return rows


def missing_rows(case, output):
    rows = {size for size, _ in result_rows(output)}
    return [size for size in case.rows if size not in rows]


def run_single(case, albedo, place):
    """A program without a peer. ibv_asyncwatch runs for ever: it must say that it watches, and bear being ended."""
    process = albedo.start(place, ["stdbuf", "-oL", case.program, *(option.format(device=albedo.device) for option in case.options)])
    try:
        deadline = time.monotonic() + 60
        if case.program == "ibv_asyncwatch":
            while "async event FD" not in process.output() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            ok = "%s: async event FD" % albedo.device in process.output() and process.poll() is None
            process.signal(signal.SIGTERM)
            ended = process.wait(deadline)
            return ok and ended == -signal.SIGTERM, "", describe(process)
        status = process.wait(deadline)
        return status == 0 and albedo.device in process.output(), "", describe(process)
    finally:
        process.end()


def run_refused(case, albedo, here, there, arguments):
    """Both sides, started as usual, must end by themselves with the case's message and a status other than 0."""
    port = free_port()
    server_argv, client_argv = sides(case, albedo.device, here, there, port, arguments)
    server = albedo.start(here, server_argv)
    client = None
    try:
        deadline = time.monotonic() + 60
        if server.wait_listening(port, deadline):
            client = albedo.start(there, client_argv)
        ended = [side.wait(deadline) for side in (server, client) if side]
        spoke = all(case.refused in side.output() for side in (server, client) if side)
        ok = spoke and all(status is not None and status > 0 for status in ended)
        return ok, "", describe(*(side for side in (server, client) if side))
    finally:
        for side in (server, client):
            if side:
                side.end()


def run_pair(case, albedo, here, there, arguments):
    """Server and client; both must end with status 0, and the client must have printed what it measured."""
    port = free_port()
    server_argv, client_argv = sides(case, albedo.device, here, there, port, arguments)
    deadline = time.monotonic() + case.seconds * (arguments.patience if arguments.faults else 1)
    server = albedo.start(here, server_argv)
    client = None
    try:
        if not server.wait_listening(port, deadline):
            return False, "the server does not listen", describe(server)
        client = albedo.start(there, client_argv)
        status, server_status = wait_pair(client, server, deadline)
        output = client.output()
        if status is None or (status == 0 and server_status is None):
            counters = Process([albedo.program, "stat"])
            counters.wait(time.monotonic() + 5)
            text = describe(server, client) + "\n" + describe(counters)
            counters.end()
            return False, reason("not finished in time", client, server), text
        if status != 0 or server_status != 0:
            return False, reason("exit %s and %s" % (server_status, status), client, server), describe(server, client)
        lost = missing_rows(case, output)
        if lost:
            why = NO_CLOCK if NO_CLOCK in output else "no result for size %s" % lost
            return False, why, describe(server, client)
        measured = figure(case, output)
        if not measured:
            return False, "no figure in the client's output", describe(server, client)
        return True, measured, ""
    finally:
        server.end()
        if client:
            client.end()


def run_cm(case, albedo, here, there, arguments):
    """Server and client of rdma_cm: the client must end with status 0 and have said what it must; so must the server, if it ends."""
    port = case.port or free_port()
    server_argv, client_argv = case.commands(here, port)
    deadline = time.monotonic() + case.seconds * (arguments.patience if arguments.faults else 1)
    claims = Claims()
    server = albedo.start(here, server_argv, environment=claims.environment)
    client = None
    try:
        if not case.wait_ready(claims, server, port, deadline):
            return False, "the server does not listen", describe(server)
        client = albedo.start(there, client_argv, environment=claims.environment)
        if case.stays:
            status = client.wait(deadline)
            server.signal(signal.SIGTERM)
            server_status = server.wait(time.monotonic() + 30)
        else:
            status, server_status = wait_pair(client, server, deadline)
        if status is None or server_status is None:
            return False, reason("not finished in time", client, server), describe(server, client)
        if status != 0 or server_status not in ((0, -signal.SIGTERM) if case.stays else (0,)):
            return False, reason("exit %s and %s" % (server_status, status), client, server), describe(server, client)
        said = case.spoke(client.output())
        return bool(said), " ".join(said.split())[:40], describe(server, client)
    finally:
        for side in (server, client):
            if side:
                side.end()
        claims.end()


def run(case, albedo, here, there, arguments):
    if case.kind() == "cm":
        return with_retries(lambda: run_cm(case, albedo, here, there, arguments))
    if case.kind() == "single":
        return run_single(case, albedo, here)
    if case.refused:
        return run_refused(case, albedo, here, there, arguments)
    return with_retries(lambda: run_pair(case, albedo, here, there, arguments))


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="build folder (default: build)")
    parser.add_argument("--device", default="roce0", help="roce0, albedo0 or all (default: roce0)")
    parser.add_argument("--place", choices=["loopback", "veth", "both"], default="both", help="where the two sides run")
    parser.add_argument("--quick", action="store_true", help="the short subset that make check runs")
    parser.add_argument("--only", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("--faults", metavar="SPEC", help="faults on both sides, as albedo run --faults takes them (RC cases only)")
    parser.add_argument("--seed", default="1", help="seed of the faults (default: 1)")
    parser.add_argument("--patience", type=int, default=3, help="with faults, time limits are this much longer (default: 3)")
    parser.add_argument("--repeat", type=int, default=1, help="run the selection this often (default: 1)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and end")
    return parser.parse_args(argv)


def whole_table():
    cases = table() + cm_table() + rsocket_table()
    names = [case.name() for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        sys.exit("cases of one name cannot be told apart: %s" % ", ".join(sorted(twice)))
    return cases


def measures_long(case):
    """Latencies of all sizes: perftest looks for the processor's clock rate at each, on both sides, for 11 s in all."""
    return bool(case.rows) and case.program.endswith("_lat")


def select(arguments, place):
    """The cases for a place; a quick run takes every second one of the quick cases in namespaces."""
    cases = [case for case in whole_table() if not arguments.only or re.search(arguments.only, case.name())]
    if arguments.quick:
        cases = [case for case in cases if case.quick]
        if place == "veth":
            cases = [case for number, case in enumerate(cases) if number % 2 and not measures_long(case)]
    if arguments.faults:
        cases = [case for case in cases if case.lossy and not case.refused and case.kind() != "single"]
    return cases


def faults_in(folder):
    """(packets sent, faults that happened to them), by the devices of all processes that ended by themselves."""
    sent = happened = 0
    for name in os.listdir(folder):
        try:
            with open(os.path.join(folder, name)) as file:
                stats = json.load(file)
        except ValueError:  # of a process that was killed while it wrote
            continue
        sent += stats["counters"]["sent_pkts"]
        happened += sum(number for counter, number in stats["edge"].items() if counter.startswith("fault_"))
    return sent, happened


def main():
    arguments = arguments_of(sys.argv[1:])
    places = []
    if arguments.place in ("loopback", "both"):
        places.append(("loopback", (Place("loopback"), Place("loopback"))))
    count = Count()
    if arguments.list:
        for case in select(arguments, "loopback"):
            print(case.name())
        return
    folder = tempfile.TemporaryDirectory(prefix="albedo-table-")
    options = []
    if arguments.faults:
        options = ["--faults", arguments.faults, "--seed", arguments.seed, "--stats", os.path.join(folder.name, "%p.json")]
    devices = [Albedo(arguments.build, options, name) for name in devices_of(arguments.device)]
    if arguments.place in ("veth", "both"):
        pair, reason = namespaces()
        if pair:
            places.append(("veth", tuple(pair)))
        else:
            count.skip("two network namespaces", reason)
    for _ in range(arguments.repeat):
        for albedo, (name, (here, there)) in itertools.product(devices, places):
            for case in select(arguments, name):
                started = time.monotonic()
                ok, detail, text = run(case, albedo, here, there, arguments)
                took = "%5.1f s  %s" % (time.monotonic() - started, detail)
                count.result("%-7s  %-8s  %s" % (albedo.device, name, case.name()), ok, took, text)
    if arguments.faults and count.passed:
        sent, happened = faults_in(folder.name)
        count.result("the faults that were asked for have happened", happened > 0 or 0 < sent < 5000, "%d, %d packets" % (happened, sent))
    folder.cleanup()
    count.finish()


if __name__ == "__main__":
    main()
