# SPDX-License-Identifier: BSD-2-Clause
"""The section "reflect" of bench.py: what completions that mean more than an acknowledgement cost. Latency of each level in units of the
device's own 8-byte `delivered`, throughput of committed transactions beside delivered writes of the same size and window, and the
processor time of both.

Every round runs the levels one after the other; a ratio is the median of the rounds' own ratios to `delivered`.
"""

import json
import os
import statistics

import topology
from measure import Failed, run_pair
from harness import Albedo, Place, free_port

KIB, MIB = 1 << 10, 1 << 20
DELAY = ["--faults", "delay=500us"]
# Links of 1 GB/s, and of a rate that a busy machine can fill as well.
SHAPED_MEGABITS = {"shaped": 8000, "shaped-slow": 1600}
UNITS = {"p50_us": ("us", 1, "%.2f"), "bytes_per_s": ("MB/s", 1e-6, "%.1f"), "cpu_s_per_gb": ("s/GB", 1, "%.3f")}
IN_PLACE = "committed-in-place"


class Case:
    """levels: the first is what the others are compared with. goals: level -> (better, bound of its ratio)."""

    def __init__(self, name, size, window, figure, levels, goals=(), options=(), sleeps=False):
        self.name, self.size, self.window, self.figure, self.levels = name, size, window, figure, levels
        self.goals, self.options, self.sleeps = dict(goals), list(options), sleeps

    def full_name(self, network):
        return "reflect/%s/%s/%d" % (network, self.name, self.size)


def latency(name, options, goals):
    return Case(name, 8, 1, "p50_us", ["delivered", "visible", "reflected", "committed", IN_PLACE], goals, options)


def throughput(share):
    goals = {level: (">=", share) for level in ("committed", IN_PLACE)}
    return [Case("throughput", size, window, "bytes_per_s", ["delivered", "committed", IN_PLACE], goals if size >= 64 * KIB else {})
            for size, window in ((4 * KIB, 64), (64 * KIB, 64), (MIB, 16))]


def cases_of(network):
    if network in SHAPED_MEGABITS:
        return throughput(0.95)
    cases = throughput(0.85)
    if network == "loopback":
        goals = {"reflected": ("<=", 1.1), "committed": ("<=", 2.2), IN_PLACE: ("<=", 2.2)}
        cases += [latency("latency", [], {}), latency("latency-far", DELAY, goals)]
        cases += [Case("cpu", size, window, "cpu_s_per_gb", ["delivered", "visible", "committed", IN_PLACE], sleeps=True)
                  for size, window in ((64 * KIB, 64), (MIB, 16))]
    return cases


def networks():
    """([(name, places)], reasons why some are missing)."""
    found = [("loopback", [Place("loopback")] * 2)]
    try:
        found.append(("veth", topology.pair(9000, True)[0]))
        for name, megabits in SHAPED_MEGABITS.items():
            places, nodes = topology.pair(9000, True)
            for node in nodes:
                node.shape("alb0", megabits)
            found.append((name, places))
    except topology.Missing as missing:
        return found, ["reflect: %s" % missing]
    return found, []


class Bench:
    def __init__(self, build, repeat, quick):
        self.repeat, self.milliseconds = repeat, 300 if quick else 800
        self.program = os.path.join(os.path.abspath(build), "bench", "levels")
        self.albedo = Albedo(build, device="albedo0")

    def measure(self, level, places, case):
        here, there = places
        port = free_port()
        argv = [self.program, "--port", str(port), "--level", level, "--bytes", str(case.size), "--window", str(case.window),
                "--ms", str(self.milliseconds), *(["--sleep"] if case.sleeps else [])]
        output, cpu_s = run_pair(self.albedo.command(here, argv + ["--local", here.ipv4], case.options),
                                 self.albedo.command(there, argv + ["--local", there.ipv4, "--peer", here.ipv4], case.options), port, 60)
        result = json.loads(output.splitlines()[-1])
        return {"bytes_per_s": result["bytes_per_s"], "p50_us": result["time"]["p50_us"],
                "cpu_s_per_gb": cpu_s / (result["bytes_in_all"] * 1e-9)}[case.figure]

    def run(self, network, places, case):
        row = {"section": "reflect", "network": network, "case": case.name, "message_bytes": case.size, "window": case.window,
               "figure": case.figure, "rounds": self.repeat}
        values = {level: [] for level in case.levels}
        try:
            for _ in range(self.repeat):
                for level in case.levels:
                    values[level].append(self.measure(level, places, case))
        except Failed as failure:
            row["error"] = str(failure)
            return row
        for level, measured in values.items():
            row[level] = {"median": statistics.median(measured), "least": min(measured), "most": max(measured)}
            row[level]["ratio"] = statistics.median(a / b for a, b in zip(measured, values[case.levels[0]]))
            if level in case.goals:
                better, bound = case.goals[level]
                met = row[level]["ratio"] >= bound if better == ">=" else row[level]["ratio"] <= bound
                row[level].update({"goal": "%s %g" % case.goals[level], "met": met})
        return row


def print_table(rows):
    print("\n%-11s %-12s %8s %6s %5s  %-18s %10s %7s  %s" % ("reflect", "case", "bytes", "window", "", "level", "figure", "ratio", "goal"))
    for row in rows:
        unit, scale, form = UNITS[row["figure"]]
        start = "%-11s %-12s %8d %6d %5s" % (row["network"], row["case"], row["message_bytes"], row["window"], unit)
        if "error" in row:
            print("%s  failed: %s" % (start, row["error"].splitlines()[0]))
            continue
        for level, result in row.items():
            if isinstance(result, dict):
                goal = "%s %s" % (result["goal"], "met" if result["met"] else "NOT met") if "goal" in result else ""
                print("%s  %-18s %10s %7.2f  %s" % (start, level, form % (result["median"] * scale), result["ratio"], goal))
