# SPDX-License-Identifier: BSD-2-Clause
"""The Ultra Ethernet Consortium's reference simulator (htsim_uec, built separately) beside ours, in turn: the same permutation of 1,024 hosts on
the same fat-tree, 2 MB each, 128 paths. Both by processor time and memory of the whole program, building the network included.

Packet-hops are counted alike: any packet, reports too, that leaves one port. The reference says how many packets it sent of each kind, not where;
all flows are as long, so each kind takes the mean of their ways: 2 ports within a rack, 4 within a pod, 6 beyond, forth and back."""

import json
import os
import re
import statistics
import subprocess
import tempfile

CASE = "permutation-1024-reference"
GOAL_RATIO = 2 / 0.31  # 2 million a second where the reference did 0.31
K, BYTES, PATHS, WINDOW = 16, 2000000, 128, 250000
OURS = ["--k", str(K), "--bytes", str(BYTES), "--paths", str(PATHS), "--window", str(WINDOW)]
THEIRS = ["-sender_cc_only", "-end", "1000", "-paths", str(PATHS)]
THEIR_PACKETS = ("New", "Rtx", "RTS", "ACKs", "NACKs", "Pulls")


class Failed(Exception):
    pass


def ports_of_way(pair):
    rack, pod = K // 2, K * K // 4
    source, destination = pair
    return 2 if source // rack == destination // rack else 4 if source // pod == destination // pod else 6


def matrix_of(pairs):
    """As the reference reads it."""
    lines = ["Nodes %d" % len(pairs), "Connections %d" % len(pairs)]
    lines += ["%d->%d id %d start 0 size %d" % (source, destination, number, BYTES)
              for number, (source, destination) in enumerate(pairs, 1)]
    return "\n".join(lines) + "\n"


def measured(command, folder):
    """(what it printed, processor seconds, bytes of memory at most)."""
    with tempfile.TemporaryFile("w+", dir=folder) as output:
        program = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder)
        try:
            _, status, usage = os.wait4(program.pid, 0)
        except SystemExit:  # by a signal
            program.kill()
            raise
        program.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if program.returncode:
        raise Failed("%s ended with %d: %s" % (command[0], program.returncode, text[-200:]))
    return text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def our_round(program, folder):
    text, seconds, resident = measured([program] + OURS, folder)
    return json.loads(text.splitlines()[-1])["packet_hops"], seconds, resident


def their_round(program, matrix, ports, folder):
    command = [program, "-tm", matrix] + THEIRS + ["-o", os.path.join(folder, "log")]
    text, seconds, resident = measured(command, folder)
    sent = dict(re.findall(r"(\w+): (\d+)", next((line for line in text.splitlines() if line.startswith("New: ")), "")))
    if not sent:
        raise Failed("%s does not say how many packets it sent" % program)
    return round(sum(int(sent.get(kind, 0)) for kind in THEIR_PACKETS) * ports), seconds, resident


def figures(rounds):
    rates = [hops / seconds for hops, seconds, _ in rounds]
    return {"packet_hops": rounds[-1][0], "resident_bytes": rounds[-1][2], "seconds": statistics.median(r[1] for r in rounds),
            "packet_hops_per_s": {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}}


def run(build, reference, repeat):
    """One row: both, and the median of the rounds' own ratios."""
    row = {"section": "sim", "case": CASE}
    ours, theirs = [], []
    program = os.path.abspath(os.path.join(build, "bench", "alb_sim_scale"))
    with tempfile.TemporaryDirectory() as folder:
        try:
            listed = measured([program, "--pairs"] + OURS, folder)[0]
            pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
            matrix = os.path.join(folder, "matrix")
            with open(matrix, "w") as file:
                file.write(matrix_of(pairs))
            ports = sum(map(ports_of_way, pairs)) / len(pairs)
            for _ in range(repeat):
                ours.append(our_round(program, folder))
                theirs.append(their_round(os.path.abspath(reference), matrix, ports, folder))
        except (Failed, OSError) as failure:
            row["error"] = str(failure)
            return row
    row["albedo"], row["reference"] = figures(ours), figures(theirs)
    row["ratio"] = statistics.median((a[0] / a[1]) / (b[0] / b[1]) for a, b in zip(ours, theirs))
    row["goal_met"] = row["ratio"] >= GOAL_RATIO
    return row


def print_table(row):
    if "error" in row:
        print("%s failed: %s" % (row["case"], row["error"]))
        return
    print("\n%-26s %12s %12s %10s %12s" % ("whole programs, in turn", "M/s median", "min to max", "seconds", "resident MiB"))
    for name in ("albedo", "reference"):
        rate = row[name]["packet_hops_per_s"]
        print("%-26s %12.3f %12s %10.1f %12.0f" % (name, rate["median"] / 1e6, "%.2f-%.2f" % (rate["min"] / 1e6, rate["max"] / 1e6),
                                                  row[name]["seconds"], row[name]["resident_bytes"] / 2**20))
    print("%-26s %12.2f  goal %.2f: %s" % ("ratio", row["ratio"], GOAL_RATIO, "met" if row["goal_met"] else "NOT met"))
