#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What random loss does to goodput and to times, over a device of ours and over what it is compared with.

Two namespaces on a veth pair, segmentation offload off, so that each packet is lost by itself (nftables counts what it sees and what it
drops: both are checked). For every share of loss: goodput of 1 MiB messages, and one-way times of 64 KiB messages, one after the other.
A last row loses whole bursts: offload on. Medians over rounds; each round runs the contestants one after the other. With --check it only
asks that everything arrives and that packets were lost, in any time.
"""

import argparse
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import topology  # noqa: E402
from flows import KIB, MIB, RXD, RXM, TCP, Runner, environment, our_ways, say, skip, take_options, write_rows  # noqa: E402
from measure import Failed  # noqa: E402
from harness import DEVICES, Count  # noqa: E402

SHARES = [0, 0.0001, 0.001, 0.01, 0.05]
GOODPUT_GOALS = {0.001: 0.95, 0.01: 0.80}  # of the goodput without loss
TIME_GOALS = {0.01: 2.0}  # times the P99 without loss
MTU = 1500


class Row:
    """One share of loss, packets or bursts, for one contestant."""

    def __init__(self, way, share, bursts):
        self.way, self.share, self.bursts = way, share, bursts
        self.goodput, self.p50, self.p99 = [], [], []
        self.carried_bytes, self.seen, self.lost, self.sent_again = 0, 0, 0, 0
        self.errors = []

    def name(self):
        return "%g %%%s" % (100 * self.share, " of bursts" if self.bursts else "")

    def is_by_packet(self):
        """Whether nftables saw as many packets as the payload that arrived needs: a burst that counted as one would carry more."""
        return self.seen >= self.carried_bytes / MTU

    def record(self):
        row = {"way": self.way.name, "share": self.share, "bursts": self.bursts, "packets_seen": self.seen, "packets_lost": self.lost,
               "packets_sent_again": self.sent_again}
        for name in ("goodput", "p50", "p99"):
            values = getattr(self, name)
            if values:
                unit = "bytes_per_s" if name == "goodput" else "us"
                row["%s_%s" % (name, unit)] = {"median": statistics.median(values), "least": min(values), "most": max(values)}
        if self.errors:
            row["errors"] = self.errors
        return row


class Bench:
    def __init__(self, arguments):
        self.arguments, self.runner = arguments, Runner(arguments.build)
        self.places, self.nodes = topology.pair(MTU)

    def offload(self, on):
        for node in self.nodes:
            topology.set_offload(node, "alb0", on)

    def measure(self, row):
        a = self.arguments
        here, there = self.places
        try:
            for node in self.nodes:
                topology.lose(node, row.share)
            stream = ["--size", str(MIB), "--window", "4", "--seconds", str(a.seconds), "--warm", "0.3"]
            received, _ = self.runner.run(row.way, here, [there], stream, a.limit)
            row.goodput.append(received["bytes_per_s"])
            row.carried_bytes += received["messages"] * MIB
            row.sent_again += self.runner.total("retransmitted_pkts")
            # Of a check all messages are wanted, however long that takes.
            exchange = ["--size", str(64 * KIB), "--exchange", str(a.messages), "--seconds", str(a.limit / 2 if a.check else 3 * a.seconds)]
            exchange += ["--verify"] if a.check else []
            received, _ = self.runner.run(row.way, here, [there], exchange, a.limit)
            row.carried_bytes += received["messages"] * 64 * KIB
            row.sent_again += self.runner.total("retransmitted_pkts")
            row.p50.append(received["one_way"]["p50_us"])
            row.p99.append(received["one_way"]["p99_us"])
        except (Failed, KeyError) as failure:
            row.errors.append(str(failure))
        for node in self.nodes:
            seen, lost = topology.losses(node)
            row.seen += seen
            row.lost += lost
        if not row.bursts and not row.errors and not row.is_by_packet():
            row.errors.append("nftables saw %d packets for %d bytes: bursts were counted as one" % (row.seen, row.carried_bytes))

    def check_offload(self):
        for node in self.nodes:
            features = node.run("ethtool", "-k", "alb0")
            for name in ("tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload", "tx-udp-segmentation"):
                if "%s: off" % name not in features:
                    raise topology.Missing("%s cannot be switched off" % name)


def rows_of(contestants, shares):
    return [Row(way, share, False) for share in shares for way in contestants] + [Row(way, 0.01, True) for way in contestants]


def verdicts(rows):
    """Row -> [(what, ratio, bound, met)]."""
    base = {row.way.name: row for row in rows if not row.share}
    found = {}
    for row in rows:
        clean = base.get(row.way.name)
        if row.bursts or not row.share or not clean or not clean.goodput or not row.goodput:
            continue
        found[row] = []
        ratio = statistics.median(row.goodput) / statistics.median(clean.goodput)
        bound = GOODPUT_GOALS.get(row.share)
        found[row].append(("goodput", ratio, bound, bound is None or ratio >= bound))
        if row.p99 and clean.p99:
            ratio, bound = statistics.median(row.p99) / statistics.median(clean.p99), TIME_GOALS.get(row.share)
            found[row].append(("P99", ratio, bound, bound is None or ratio <= bound))
    return found


def print_table(rows):
    judged = verdicts(rows)
    print("\n%-14s %-12s %10s %8s  %9s %9s %8s  %10s %9s %9s  %s" % ("loss", "way", "1 MiB MB/s", "of clean", "P50 us", "P99 us", "of clean",
                                                                "seen", "lost", "again", "goals"))
    for row in rows:
        if row.errors and not row.goodput:
            print("%-14s %-12s failed: %s" % (row.name(), row.way.name, row.errors[0].splitlines()[0]))
            continue
        ratios = {what: "%.2f" % ratio for what, ratio, _, _ in judged.get(row, [])}
        goals = ["%s %s %g: %s" % (what, ">=" if what == "goodput" else "<=", bound, "met" if met else "NOT met")
                 for what, _, bound, met in judged.get(row, []) if bound is not None and row.way.is_ours()]
        if row.errors:
            goals.append("%d failed" % len(row.errors))
        p50, p99 = (("%.0f" % statistics.median(values) if values else "-") for values in (row.p50, row.p99))
        print("%-14s %-12s %10.1f %8s  %9s %9s %8s  %10d %9d %9s  %s" % (
            row.name(), row.way.name, statistics.median(row.goodput) / 1e6, ratios.get("goodput", "-"), p50, p99,
            ratios.get("P99", "-"), row.seen, row.lost, row.sent_again if row.way.is_ours() else "", ", ".join(goals)))


def run_rounds(bench, rows, rounds):
    for _ in range(rounds):
        for bursts in (False, True):
            bench.offload(bursts)
            if not bursts:
                bench.check_offload()
            for row in rows:
                if row.bursts == bursts:
                    bench.measure(row)
                    say(row.record())


def check(bench, rows):
    """Completion and counters alone."""
    count = Count()
    for row in rows:
        bench.offload(row.bursts)
        bench.measure(row)
        name = "%s, %s lost" % (row.way.name, row.name())
        count.result(name + ": everything arrives", not row.errors and row.p99, "", "\n".join(row.errors))
        if row.share:
            count.result(name + ": packets were lost", row.lost > 0, "%d of %d" % (row.lost, row.seen))
        if row.goodput and not row.bursts:
            count.result(name + ": packets were counted one by one", row.is_by_packet(),
                         "%d packets, %d bytes arrived" % (row.seen, row.carried_bytes))
    count.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    take_options(parser, DEVICES)
    parser.add_argument("--way", action="append", help="only these of the devices, tcp, udp;ofi_rxd and tcp;ofi_rxm (may be repeated)")
    parser.add_argument("--loss", type=float, action="append", help="shares in percent (default: 0, 0.01, 0.1, 1, 5; 0 is always there)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of goodput; three times this for times (default: 1)")
    parser.add_argument("--messages", type=int, default=10000, help="of 64 KiB (default: 10000, or what the time holds)")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.check:
        arguments.seconds, arguments.messages = 0.2, 400
    contestants = our_ways(arguments, DEVICES) + ([] if arguments.check else [TCP, RXD, RXM])
    contestants = [way for way in contestants if not arguments.way or way.name in arguments.way]
    shares = sorted({0, *(share / 100 for share in arguments.loss)}) if arguments.loss else [0, 0.01] if arguments.check else SHARES
    try:
        bench = Bench(arguments)
    except topology.Missing as missing:
        skip(missing)
    rows = rows_of(contestants, shares)
    if arguments.check:
        check(bench, rows)
    say({"environment": environment()})
    run_rounds(bench, rows, arguments.rounds)
    write_rows(arguments.json, [row.record() for row in rows])
    print_table(rows)
    sys.exit(1 if any(row.errors for row in rows if row.way.is_ours()) else 0)


if __name__ == "__main__":
    main()
