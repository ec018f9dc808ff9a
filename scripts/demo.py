#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demo: Debian's own ib_write_bw and ib_send_lat, each as two processes over roce0, first clean and then with 1 % of the
datagrams lost, and the figures side by side. Fails if any program does."""

import argparse
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
from harness import Albedo, Place, describe, free_port  # noqa: E402

LOSSY = ["--faults", "loss=1%", "--seed", "7"]
PROGRAMS = [
    ("ib_write_bw", ["-s", "1048576", "-n", "2000"], ["-s", "1048576", "-n", "200"]),
    ("ib_send_lat", ["-s", "64", "-n", "10000"], ["-s", "64", "-n", "2000"]),
]
# What is shown of each run: label, where it comes from, unit.
COUNTERS = [
    ("datagrams sent", "counters", "sent_pkts"),
    ("lost on purpose", "edge", "fault_lost"),
    ("packets sent again", "counters", "retransmitted_pkts"),
    ("sequence NAKs received", "counters", "packet_seq_err"),
    ("answers missed", "counters", "implied_nak_seq_err"),
    ("transport timeouts", "counters", "local_ack_timeout_err"),
]


def run(albedo, program, arguments, options, folder):
    """Both sides; returns (output of the client, counters of both added up). Ends the demo when one fails."""
    place, port = Place("loopback"), free_port()
    command = [program, "-d", "roce0", "-F", "-p", str(port), *arguments]
    print("$ albedo run %s-- %s" % ("".join(o + " " for o in options), " ".join(command)), flush=True)
    print("$ albedo run %s-- %s 127.0.0.1" % ("".join(o + " " for o in options), " ".join(command)), flush=True)
    files = [os.path.join(folder, "%s-%d-%s.json" % (program, len(options), side)) for side in ("server", "client")]
    deadline = time.monotonic() + 60
    server = albedo.start(place, command, options + ["--stats", files[0]])
    client = None
    try:
        status = None
        if server.wait_listening(port, deadline):
            client = albedo.start(place, command + [place.ipv4], options + ["--stats", files[1]])
            status = client.wait(deadline)
        if status != 0 or server.wait(deadline) != 0:
            print(describe(*(side for side in (server, client) if side)))
            sys.exit("demo: %s failed" % program)
        return client.output(), totals(files)
    finally:
        server.end()
        if client:
            client.end()


def totals(files):
    """The counters of both sides, added."""
    sums = {}
    for name in files:
        with open(name, encoding="utf-8") as file:
            report = json.load(file)
        for _, group, counter in COUNTERS:
            sums[counter] = sums.get(counter, 0) + report[group][counter]
    return sums


def result_row(output):
    """The numbers of perftest's one row of results."""
    for line in reversed(output.splitlines()):
        fields = line.split()
        if len(fields) >= 4 and fields[0].isdigit() and fields[1].isdigit():
            return [float(field) for field in fields]
    sys.exit("demo: no figures in\n" + output)


def figures(program, output):
    """(label, text) of what perftest measured."""
    row = result_row(output)
    if program == "ib_write_bw":  # bytes, iterations, peak, average in MiB/s, message rate
        return [("bandwidth, 1 MiB writes", "%.0f MiB/s" % row[3])]
    # bytes, iterations, minimum, maximum, typical, average, deviation, 99 %, 99.9 % in us
    return [("latency, 64 B, median", "%.2f us" % row[4]), ("latency, 64 B, 99 %", "%.2f us" % row[7])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    albedo = Albedo(parser.parse_args().build)
    started = time.monotonic()
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for program, clean_arguments, lossy_arguments in PROGRAMS:
            clean, clean_counts = run(albedo, program, clean_arguments, [], folder)
            lossy, lossy_counts = run(albedo, program, lossy_arguments, LOSSY, folder)
            table.append((program, "clean", "1 % loss"))
            table += [(label, text, other) for (label, text), (_, other) in zip(figures(program, clean), figures(program, lossy))]
            table += [(label, "%d" % clean_counts[name], "%d" % lossy_counts[name]) for label, _, name in COUNTERS]
    print()
    for label, clean, lossy in table:
        is_head = clean == "clean"
        if is_head:
            print("%s%-28s %16s %16s" % ("" if label == table[0][0] else "\n", label, clean, lossy))
            print("-" * 62)
        else:
            print("%-28s %16s %16s" % (label, clean, lossy))
    print("\nA message lost alone waits for the timeout that ib_send_lat asks for (67 ms, -u 14): that is its 99 %.")
    print("both programs completed, clean and with loss, in %.0f s" % (time.monotonic() - started))


if __name__ == "__main__":
    main()
