#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Several routes between two hosts, one of which turns bad while traffic runs.

Two hosts, a router each, and routes between the routers that are chosen by address and port (ECMP), so that a source port is a path.
Every route is shaped (tbf). While a stream runs, the route that carries most loses 10 % of its packets, or drops to a tenth of its rate,
or swallows everything without a word, or its link goes down; later it heals. The receiver counts what arrives in each interval, and the routers' own counters show what took which route.
Printed: how long until the bad route was left, when goodput was back, and when the healed route was used again. With --check only
completion, and that several routes carried traffic, is asserted.
"""

import argparse
import os
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import topology  # noqa: E402
from flows import KIB, TCP, Runner, environment, our_ways, say, skip, take_options, write_rows  # noqa: E402
from measure import Failed  # noqa: E402
from harness import Count  # noqa: E402

INTERVAL_MS = 20
WINDOW_INTERVALS = 5  # over which a route's rate is looked at
GOAL_LEFT_MS, GOAL_GOODPUT = 100, 0.90
KINDS = ["loses", "slow", "dead", "down"]


class Sampler(threading.Thread):
    """What has left by each route, every few milliseconds."""

    def __init__(self, router, links):
        super().__init__(daemon=True)
        self.router, self.links, self.samples, self.is_over = router, links, [], False
        self.bad = None  # number of the route that is

    def run(self):
        while not self.is_over:
            sent = self.router.sent_bytes()
            self.samples.append((time.monotonic(), [sent[link] for link in self.links]))
            time.sleep(INTERVAL_MS / 1000 / 2)

    def stop(self):
        self.is_over = True
        self.join()

    def wait(self):
        """Until there are two samples, so that something can be said; a busy machine is slow to take them."""
        while len(self.samples) < 2 and self.is_alive():
            time.sleep(INTERVAL_MS / 1000)

    def busiest(self):
        totals = [last - first for first, last in zip(self.samples[0][1], self.samples[-1][1])]
        return totals.index(max(totals))

    def rate(self, link, since, until):
        """Bytes a second over one route between two moments; None: there were no samples to tell."""
        inside = [(moment, sent[link]) for moment, sent in self.samples if since <= moment <= until]
        if len(inside) < 2:
            return None
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

    def gap(self, since):
        """The longest time without a sample from a moment on."""
        moments = [moment for moment, _ in self.samples if moment >= since]
        return max((later - earlier for earlier, later in zip([since] + moments, moments)), default=0.0)


class Fault:
    """Turns a route bad and heals it, in the direction of the data."""

    def __init__(self, kind, routers, link, megabits):
        self.kind, self.routers, self.link, self.megabits = kind, routers, link, megabits

    def begin(self):
        if self.kind == "loses":
            topology.lose(self.routers[1], 0.10, self.link)
        elif self.kind == "slow":
            self.routers[0].run("tc", "qdisc", "change", "dev", self.link, "root", "tbf", "rate", "%gmbit" % (self.megabits / 10),
                                "burst", "65536", "latency", "8ms")
        elif self.kind == "dead":
            for router in self.routers:
                topology.lose(router, 1.0, self.link)
        else:
            # The other end's link: a router chooses another route by itself when its own is switched off.
            self.routers[1].run("ip", "link", "set", self.link, "down")

    def end(self):
        if self.kind == "slow":
            self.routers[0].shape(self.link, self.megabits)
        elif self.kind == "down":
            self.routers[1].run("ip", "link", "set", self.link, "up")
        for router in self.routers:
            router.nft("table inet lossy\ndelete table inet lossy\n")


def first_lasting(values, condition, times):
    """Index of the first value from which on `times` values in a row fulfil a condition; None if there is none."""
    for index in range(len(values) - times + 1):
        if all(condition(value) for value in values[index:index + times]):
            return index
    return None


class Measured:
    """One stream, its fault and its healing, by the numbers."""

    def __init__(self, received, sampler, fault_s, heal_s, capacity):
        start = received["start_ns"] / 1e9
        self.intervals = [b / (INTERVAL_MS / 1000) for b in received["intervals"]]
        self.fault_at = int((fault_s - start) * 1000 / INTERVAL_MS)
        self.heal_at = int((heal_s - start) * 1000 / INTERVAL_MS)
        self.before = statistics.mean(self.intervals[self.fault_at // 2:self.fault_at])
        self.sampler, self.fault_s, self.heal_s, self.capacity = sampler, fault_s, heal_s, capacity
        routes = len(sampler.links)
        self.others = capacity * (routes - 1) / routes
        self.shares = [sampler.rate(number, (start + fault_s) / 2, fault_s) for number in range(routes)]

    def back_ms(self):
        """From the fault until goodput is, for 5 intervals on the whole, what the others can carry, by the goal."""
        rates = self.intervals[self.fault_at + 1:self.heal_at]
        smooth = [statistics.mean(rates[i:i + 5]) for i in range(max(0, len(rates) - 4))]
        index = first_lasting(smooth, lambda rate: rate >= GOAL_GOODPUT * self.others, 1)
        return None if index is None else (index + 1) * INTERVAL_MS

    def goodput_during(self):
        """Of what the others can carry, over the second half of the bad time."""
        rates = self.intervals[(self.fault_at + self.heal_at) // 2:self.heal_at]
        return statistics.mean(rates) / self.others

    def left_ms(self):
        """From the fault until the route carries less than a tenth of what it did, in the mean of 5 intervals."""
        for moment, _, share in self.bad_shares(self.fault_s, self.heal_s):
            if share < 0.1:
                return (moment - self.fault_s) * 1000
        return None

    def again_ms(self):
        """From the healing until the route carries half of what it did again."""
        for _, end, share in self.bad_shares(self.heal_s, self.sampler.samples[-1][0]):
            if share > 0.5:
                return (end - self.heal_s) * 1000
        return None

    def bad_shares(self, since, until):
        """(from, to, what the bad route carried by what it did before) of each window; not of those without samples."""
        step, moment, before = INTERVAL_MS / 1000, since, self.shares[self.sampler.bad]
        while before and moment + WINDOW_INTERVALS * step < until:
            end = moment + WINDOW_INTERVALS * step
            rate = self.sampler.rate(self.sampler.bad, moment, end)
            if rate is not None:
                yield moment, end, rate / before
            moment += step

    def bad_route(self):
        """What the bad route carried in each interval of the first second; None: not known."""
        step = INTERVAL_MS / 1000
        rates = [self.sampler.rate(self.sampler.bad, self.fault_s + n * step, self.fault_s + (n + 1.5) * step)
                 for n in range(int(1 / step))]
        return [None if rate is None else round(rate) for rate in rates]

    def record(self):
        return {"before_bytes_per_s": self.before, "capacity_bytes_per_s": self.capacity, "routes_bytes_per_s": self.shares,
                "left_ms": self.left_ms(), "goodput_back_ms": self.back_ms(), "goodput_during": self.goodput_during(),
                "used_again_ms": self.again_ms(), "sample_gap_ms": self.sampler.gap(self.fault_s) * 1000,
                "bad_route_bytes_per_s": self.bad_route()}


class Bench:
    def __init__(self, arguments):
        self.arguments, self.runner = arguments, Runner(arguments.build)
        self.places, self.routers, self.links = topology.crossing(arguments.routes, arguments.megabits)

    def run(self, way, kind):
        """A stream with a fault; (what the receiver printed, sampler, moments of fault and healing)."""
        a = self.arguments
        seconds = a.warm + a.bad + a.healed
        options = ["--size", str(256 * KIB), "--window", str(a.window), "--warm", "0", "--seconds", str(seconds), "--event",
                   "--interval", str(INTERVAL_MS)]
        running = self.runner.start(way, self.places[1], [self.places[0]], options)
        sampler = Sampler(self.routers[0], self.links)
        sampler.start()
        try:
            time.sleep(a.warm)
            sampler.wait()
            fault = Fault(kind, self.routers, self.links[sampler.busiest()], a.megabits)
            sampler.bad = self.links.index(fault.link)
            fault_s = time.monotonic()
            fault.begin()
            time.sleep(a.bad)
            heal_s = time.monotonic()
            fault.end()
            received, _ = running.result(a.limit)
            return received, sampler, fault_s, heal_s
        finally:
            running.end()
            sampler.stop()


def print_table(rows):
    def cell(value, form="%.0f"):
        return "-" if value is None else form % value

    print("\n%-10s %-7s %11s %9s  %8s %11s %9s %11s  %s" % ("way", "route", "before MB/s", "of limit", "left ms", "back ms", "goodput",
                                                          "again ms", "goals"))
    for row in rows:
        if "error" in row:
            print("%-10s %-7s failed: %s" % (row["way"], row["kind"], row["error"].splitlines()[0]))
            continue
        goals = []
        left = row["left_ms"] is not None and row["left_ms"] <= GOAL_LEFT_MS
        goals.append("left within %d ms: %s" % (GOAL_LEFT_MS, "met" if left else "NOT met"))
        goals.append("goodput >= %g: %s" % (GOAL_GOODPUT, "met" if row["goodput_during"] >= GOAL_GOODPUT else "NOT met"))
        goals.append("used again: %s" % ("met" if row["used_again_ms"] is not None else "NOT met"))
        gap = row["sample_gap_ms"]
        # The machine was too busy to look: what happened meanwhile is not known to a window.
        blind = "; for %.0f ms nobody looked at the routes" % gap if gap > WINDOW_INTERVALS * INTERVAL_MS else ""
        print("%-10s %-7s %11.1f %9.2f  %8s %11s %9.2f %11s  %s" % (
            row["way"], row["kind"], row["before_bytes_per_s"] / 1e6, row["before_bytes_per_s"] / row["capacity_bytes_per_s"],
            cell(row["left_ms"]), cell(row["goodput_back_ms"]), row["goodput_during"], cell(row["used_again_ms"]),
            (", ".join(goals) if row["way"] == "albedo0" else "") + blind))


def check(bench, ways, kinds):
    count = Count()
    for way in ways:
        for kind in kinds:
            name = "%s, a route %s" % (way.name, kind)
            try:
                received, sampler, _, _ = bench.run(way, kind)
            except Failed as failure:
                count.result(name + ": the stream ends", False, "", str(failure))
                continue
            count.result(name + ": the stream ends", received["messages"] > 0, "%d messages" % received["messages"])
            if way.name == "albedo0":
                carried = [sampler.samples[-1][1][n] - sampler.samples[0][1][n] for n in range(len(bench.links))]
                # Not each of them: of 16 source ports hashed to four routes none goes by one of them in 4 of 100 runs.
                count.result(name + ": several routes carried data", sum(sent > 64 * KIB for sent in carried) > 1, str(carried))
    count.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    take_options(parser, ["albedo0"])
    parser.add_argument("--paths", type=int, default=16, help="source ports of albedo0 (default: 16)")
    parser.add_argument("--tcp", action="store_true", help="one TCP connection beside it")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these (may be repeated)")
    parser.add_argument("--routes", type=int, default=4)
    parser.add_argument("--megabits", type=float, default=400, help="rate of each route (default: 400)")
    parser.add_argument("--window", type=int, default=16, help="messages of 256 KiB in flight (default: 16)")
    parser.add_argument("--warm", type=float, default=1.5, help="seconds until a route turns bad (default: 1.5)")
    parser.add_argument("--bad", type=float, default=2.0, help="seconds until the route heals (default: 2)")
    parser.add_argument("--healed", type=float, default=3.0, help="seconds after that (default: 3)")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.check:
        arguments.megabits, arguments.warm, arguments.bad, arguments.healed = 100, 0.3, 0.4, 0.3
    contestants = our_ways(arguments, ["albedo0"], ["--paths", str(arguments.paths)])
    contestants += [TCP] if arguments.tcp else []
    kinds = arguments.kind or KINDS
    try:
        bench = Bench(arguments)
    except topology.Missing as missing:
        skip(missing)
    if arguments.check:
        check(bench, contestants, kinds)
    say({"environment": environment()})
    # What fits through all routes: a packet of 1500 bytes has a frame header in front, and headers of ours inside.
    capacity = arguments.routes * arguments.megabits * 1e6 / 8 * (1500 - 28 - 32) / 1514
    rows = []
    for _ in range(arguments.rounds):
        for way in contestants:
            for kind in kinds:
                row = {"way": way.name, "kind": kind}
                try:
                    row.update(Measured(*bench.run(way, kind), capacity).record())
                except Failed as failure:
                    row["error"] = str(failure)
                rows.append(row)
                say(row)
    write_rows(arguments.json, rows)
    print_table(rows)
    sys.exit(1 if any("error" in row for row in rows) else 0)


if __name__ == "__main__":
    main()
