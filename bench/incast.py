#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many senders to one receiver through a bottleneck of 1 Gb/s (tbf): whether goodput collapses, how fair the shares are, and what
memory the receiver needs. And the same with ECN marks.

Each sender is a host of its own (a namespace) and sleeps for its completions, so that the processor is not the limit. With --check
only completion, bounded memory, and that marks were seen, is asserted.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import topology  # noqa: E402
from flows import KIB, TCP, Runner, environment, our_ways, say, skip, take_options, write_rows  # noqa: E402
from measure import Failed  # noqa: E402
from harness import DEVICES, Count  # noqa: E402

GOAL_GOODPUT, GOAL_SHARES = 0.90, 0.8
BOTTLENECK = "outlet"


class Bench:
    def __init__(self, arguments):
        self.arguments, self.runner = arguments, Runner(arguments.build)
        self.senders, self.receiver, self.router = topology.star(arguments.senders, arguments.megabits)

    def memory_bound_kib(self):
        """The program's own memory, a window of messages a sender, twice over; and what a device's pools may take."""
        return 2 * self.arguments.senders * self.arguments.window * self.arguments.size // KIB + 32 * KIB

    def run(self, way, senders, marks=0.0):
        """What the receiver printed, and beside it what the bottleneck dropped and marked."""
        a = self.arguments
        options = ["--size", str(a.size), "--window", str(a.window), "--warm", str(a.warm), "--seconds", str(a.seconds), "--event"]
        topology.mark(self.router, BOTTLENECK, marks)
        before = self.router.queue(BOTTLENECK)
        received, _ = self.runner.run(way, self.receiver, self.senders[:senders], options, a.limit)
        after = self.router.queue(BOTTLENECK)
        seen, marked = topology.marks(self.router)
        return {"way": way.name, "senders": senders, "marks": marks, "bytes_per_s": received["bytes_per_s"],
                "least_share": min(received["senders"]) / max(1, max(received["senders"])), "shares": received["senders"],
                "receiver_kib": received["peak_kib"], "receiver_before_kib": received["peak_before_kib"],
                "bottleneck_drops": after["drops"] - before["drops"], "bottleneck_packets": after["packets"] - before["packets"],
                "ecn_capable": seen, "ecn_marked": marked, "marks_received": self.runner.total("ecn_marked_pkts"),
                "packets_sent_again": self.runner.total("retransmitted_pkts"), "cpu_s": received["cpu_s_all"]}


def runs_of(bench, way):
    """One sender, all of them, all of them with marks."""
    everyone = bench.arguments.senders
    alone = bench.run(way, 1)
    yield alone, None
    yield bench.run(way, everyone), alone
    yield bench.run(way, everyone, bench.arguments.marks / 100), alone


def print_table(rows):
    print("\n%-12s %8s %7s  %9s %8s  %11s %12s  %9s %9s %9s  %s" % ("way", "senders", "marks", "MB/s", "of one", "least share", "receiver KiB",
                                                              "packets", "dropped", "marked", "goals"))
    for row in rows:
        if "error" in row:
            print("%-12s failed: %s" % (row["way"], row["error"].splitlines()[0]))
            continue
        goals = []
        if "of_one" in row and row["way"] == "albedo0" and not row["marks"]:
            goals.append("of one >= %g: %s" % (GOAL_GOODPUT, "met" if row["of_one"] >= GOAL_GOODPUT else "NOT met"))
            goals.append("share >= %g: %s" % (GOAL_SHARES, "met" if row["least_share"] >= GOAL_SHARES else "NOT met"))
        print("%-12s %8d %6g%%  %9.1f %8s  %11.2f %12d  %9d %9d %9d  %s" % (
            row["way"], row["senders"], 100 * row["marks"], row["bytes_per_s"] / 1e6,
            "%.2f" % row["of_one"] if "of_one" in row else "-", row["least_share"], row["receiver_kib"] - row["receiver_before_kib"],
            row["bottleneck_packets"], row["bottleneck_drops"], row["ecn_marked"], ", ".join(goals)))


def check(bench, ways):
    count = Count()
    for way in ways:
        try:
            rows = [row for row, _ in runs_of(bench, way)]
        except Failed as failure:
            count.result("%s: all senders come to their end" % way.name, False, "", str(failure))
            continue
        count.result("%s: all senders come to their end" % way.name, all(row["bytes_per_s"] for row in rows))
        count.result("%s: each of %d senders got something" % (way.name, bench.arguments.senders), min(rows[1]["shares"]) > 0,
                     "%d bytes" % min(rows[1]["shares"]))
        memory = rows[1]["receiver_kib"] - rows[1]["receiver_before_kib"]
        count.result("%s: bounded memory at the receiver" % way.name, memory <= bench.memory_bound_kib(), "%d KiB" % memory)
        if way.name == "albedo0":
            count.result("albedo0: packets say that they may be marked", rows[2]["ecn_capable"] > 0, "%d" % rows[2]["ecn_capable"])
            count.result("albedo0: marks are made and counted", rows[2]["ecn_marked"] > 0 and rows[2]["marks_received"] > 0,
                         "%d made, %d counted" % (rows[2]["ecn_marked"], rows[2]["marks_received"]))
    count.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    take_options(parser, DEVICES)
    parser.add_argument("--tcp", action="store_true", help="TCP connections beside it")
    parser.add_argument("--senders", type=int, default=32)
    parser.add_argument("--megabits", type=float, default=1000)
    parser.add_argument("--size", type=int, default=64 * KIB, help="of a message (default: 65536)")
    parser.add_argument("--window", type=int, default=4, help="messages in flight of each sender (default: 4)")
    parser.add_argument("--warm", type=float, default=2.0, help="seconds that are not measured (default: 2)")
    parser.add_argument("--seconds", type=float, default=10.0, help="that are (default: 10)")
    parser.add_argument("--marks", type=float, default=1.0, help="percent of packets marked in the last run (default: 1)")
    arguments = parser.parse_args()
    if arguments.check:
        arguments.senders, arguments.megabits, arguments.warm, arguments.seconds = 8, 200, 0.2, 3.0
    contestants = our_ways(arguments, DEVICES)
    contestants += [TCP] if arguments.tcp else []
    try:
        bench = Bench(arguments)
    except topology.Missing as missing:
        skip(missing)
    if arguments.check:
        check(bench, contestants)
    say({"environment": environment()})
    rows = []
    for way in contestants:
        try:
            for row, alone in runs_of(bench, way):
                if alone:
                    row["of_one"] = row["bytes_per_s"] / alone["bytes_per_s"]
                rows.append(row)
                say(row)
        except Failed as failure:
            rows.append({"way": way.name, "error": str(failure)})
            say(rows[-1])
    write_rows(arguments.json, rows)
    print_table(rows)
    sys.exit(1 if any("error" in row for row in rows) else 0)


if __name__ == "__main__":
    main()
