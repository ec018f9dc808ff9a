#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demo, in three parts, of which each ends it with an error if something fails: Debian's own ib_write_bw and ib_send_lat,
each as two processes over both devices, clean and with 1 % of the datagrams lost, their figures side by side; a KV cache
that a producer writes while its consumer reads, by WRITEs and by transactions; and a scenario of the simulator."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
from harness import TOP, Albedo, Place, describe, free_port  # noqa: E402

LOSSY = ["--faults", "loss=1%", "--seed", "7"]
PROGRAMS = [
    ("ib_write_bw", ["-s", "1048576", "-n", "2000"], ["-s", "1048576", "-n", "200"]),
    ("ib_send_lat", ["-s", "64", "-n", "10000"], ["-s", "64", "-n", "2000"]),
]
DEVICES = ["roce0", "albedo0"]
# What is shown of each run: label, where it comes from, names of which the counts are added.
COUNTERS = [
    ("datagrams sent", "counters", ["sent_pkts"]),
    ("lost on purpose", "edge", ["fault_lost"]),
    ("packets sent again", "counters", ["retransmitted_pkts"]),
    ("losses reported", "counters", ["packet_seq_err"]),
    ("asked what has come", "counters", ["tail_probes", "tail_asks"]),
    ("transport timeouts", "counters", ["local_ack_timeout_err"]),
]


def run(albedo, program, device, arguments, options, folder):
    """Both sides; returns (output of the client, counters of both added up). Ends the demo when one fails."""
    place, port = Place("loopback"), free_port()
    command = [program, "-d", device, "-F", "-p", str(port), *arguments]
    print("$ albedo run %s-- %s" % ("".join(o + " " for o in options), " ".join(command)), flush=True)
    print("$ albedo run %s-- %s 127.0.0.1" % ("".join(o + " " for o in options), " ".join(command)), flush=True)
    options = ["--device", device] + options  # or the report has both
    files = [os.path.join(folder, "%s-%s-%d-%s.json" % (program, device, len(options), side)) for side in ("server", "client")]
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
    """What COUNTERS names, of both sides, added."""
    sums = [0] * len(COUNTERS)
    for name in files:
        with open(name, encoding="utf-8") as file:
            report = json.load(file)
        for i, (_, group, names) in enumerate(COUNTERS):
            sums[i] += sum(report[group][counter] for counter in names)
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


def show(label, texts):
    print(("%-26s" % label + "".join("%15s" % text for text in texts)).rstrip())


def measure(albedo):
    """Every program on every device, clean and lossy; then a table with a column of each."""
    columns = {program: [] for program, _, _ in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        for program, clean, lossy in PROGRAMS:
            for device in DEVICES:
                columns[program].append(run(albedo, program, device, clean, [], folder))
                columns[program].append(run(albedo, program, device, lossy, LOSSY, folder))
    for program, column in columns.items():
        print()
        show("", [text for device in DEVICES for text in (device, "")])
        show(program, ["clean", "1 % lost"] * len(DEVICES))
        print("-" * 86)
        measured = [figures(program, output) for output, _ in column]
        for i, (label, _) in enumerate(measured[0]):
            show(label, [rows[i][1] for rows in measured])
        for i, (label, _, _) in enumerate(COUNTERS):
            show(label, [counts[i] for _, counts in column])
    print("\nOn roce0 a message lost alone waits for the timeout that ib_send_lat asks for (67 ms, -u 14), as on any RoCE device;\n"
          "on albedo0, whose peers report what they hold, for little more than a round trip.")


def follow(build, arguments, shown):
    """Runs albedo in the checkout and prints it as typed, and the lines of its output that shown says yes to."""
    print("\n$ albedo " + " ".join(arguments), flush=True)
    done = subprocess.run([os.path.join(build, "bin", "albedo")] + arguments, cwd=TOP, text=True, timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print("".join(line + "\n" for line in done.stdout.splitlines() if done.returncode or shown(line)), end="", flush=True)
    if done.returncode:
        sys.exit("demo: it ended with %d" % done.returncode)
    return done.stdout


def show_transactions(build):
    program = os.path.relpath(os.path.join(build, "examples", "kv_block"), TOP)
    output = follow(build, ["run", "--device", "albedo0", "--faults", "packet=1%", "--", program], lambda line: True)
    if " 0 of them mixed" not in next((line for line in output.splitlines() if line.startswith("transaction")), ""):
        sys.exit("demo: a transaction was seen in part")
    print("Raw, a block is three WRITEs: though each completion said success, readers have used blocks mixed of two. Where it\n"
          "is a transaction none is mixed: it becomes visible as a whole, and not at all if a byte of it is not what was sent.")


def simulate(build):
    follow(build, ["sim", "scenarios/uec-incast"], lambda line: line.startswith(("==", "hosts", "flows", "ok")))
    print("The same engine in a simulated network, in virtual time; scenarios/ has more, albedo sim --html draws them.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    build = os.path.abspath(parser.parse_args().build)
    started = time.monotonic()
    measure(Albedo(build))
    show_transactions(build)
    simulate(build)
    print("\nall programs completed, clean and with loss, in %.0f s" % (time.monotonic() - started))


if __name__ == "__main__":
    main()
