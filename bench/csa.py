# SPDX-License-Identifier: BSD-2-Clause
"""The section "csa" of bench.py: albedo0 beside raw UDP with the same payload in a datagram, one TCP stream, libfabric over TCP and over
UDP, UCX over TCP, and roce0, on the same sizes in one run, with the goals of the comparison.

Every round runs the contestants one after the other. Figures are medians over the rounds; a goal is judged by the median of the rounds'
own ratios.
"""

import re
import shutil
import statistics

from flows import Runner, Way
from measure import Failed, best_window, perftest, perftest_cpu, raw, run_pair, tcp, tcp_cpu
from harness import Albedo, free_port

KIB, MIB = 1 << 10, 1 << 20
# IPv4 and UDP; BTH, DETH, the header and a WRITE segment's frame (docs/PROTOCOL.md); ICRC.
PACKET_OVERHEAD = 20 + 8 + 12 + 8 + 20 + 32 + 4
FABRIC = {"libfabric tcp": "tcp;ofi_rxm", "libfabric rxd": "udp;ofi_rxd"}
UNITS = {"bytes_per_s": ("MB/s", 1e-6, "%.1f"), "half_rtt_us": ("us", 1, "%.2f"), "messages_per_s": ("M/s", 1e-6, "%.3f"),
         "cpu_s_per_gb": ("s/GB", 1, "%.3f")}


class Goal:
    """ratio: albedo0's figure by the other's; better: >= or <=."""

    def __init__(self, other, better, bound):
        self.other, self.better, self.bound = other, better, bound

    def is_met(self, ratio):
        return ratio >= self.bound if self.better == ">=" else ratio <= self.bound


class Case:
    def __init__(self, name, size, figure, contestants, goals):
        self.name, self.size, self.figure, self.contestants, self.goals = name, size, figure, contestants, goals


CASES = [
    Case("write", MIB, "bytes_per_s", ["albedo0", "raw UDP", "tcp", "libfabric tcp", "libfabric rxd", "UCX tcp", "roce0"],
         [Goal("raw UDP", ">=", 0.9), Goal("tcp", ">=", 1.5), Goal("libfabric tcp", ">=", 2.5)]),
    # With MTU 1500 some packets a message.
    Case("write-4k", 4 * KIB, "bytes_per_s", ["albedo0", "raw UDP", "libfabric tcp", "roce0"], []),
    # Several queue pairs, as MPI's and NCCL's peers have them.
    Case("write-4qp", MIB, "bytes_per_s", ["albedo0", "raw UDP", "roce0"], []),
    Case("write-16qp", 64 * KIB, "bytes_per_s", ["albedo0", "raw UDP", "roce0"], []),
    Case("latency", 8, "half_rtt_us", ["albedo0", "raw UDP", "libfabric tcp", "libfabric rxd", "UCX tcp", "roce0"],
         [Goal("raw UDP", "<=", 1.25), Goal("libfabric tcp", "<=", 1 / 2.5)]),
    Case("rate", 64, "messages_per_s", ["albedo0", "raw datagrams", "raw UDP", "libfabric tcp", "libfabric rxd", "UCX tcp", "roce0"],
         [Goal("libfabric tcp", ">=", 10), Goal("raw datagrams", ">=", 3)]),
    # Sleeping for completions, as a TCP program does. perftest has no completion events for writes.
    Case("cpu", MIB, "cpu_s_per_gb", ["albedo0", "raw UDP", "tcp", "roce0"], [Goal("tcp", "<=", 1.0)]),
    Case("cpu-polling", MIB, "cpu_s_per_gb", ["albedo0", "raw UDP", "roce0"], []),
]


def beside(network):
    """The network with albedo0's payload in a datagram: what fits, in whole words."""
    return type(network)(network.name, network.places, network.path_mtu, network.link_mtu,
                         (network.link_mtu - PACKET_OVERHEAD) // 4 * 4)


def summary(measured):
    """Of one contestant's figures; None: a round that failed."""
    good = [value for value in measured if value is not None]
    return {"median": statistics.median(good), "least": min(good), "most": max(good), "rounds_failed": len(measured) - len(good)}


class Bench:
    def __init__(self, build, repeat, quick):
        self.repeat, self.seconds = repeat, 0.3 if quick else 0.7
        self.runner = Runner(build)
        self.raw_program = self.runner.program.replace("flow", "raw_udp")
        self.devices = {name: Albedo(build, device=name) for name in ("albedo0", "roce0")}
        self.windows = {}

    def missing(self):
        return ["csa: %s is missing (scripts/setup.sh stacks bench)" % program for program in ("iperf3", "ucx_perftest")
                if not shutil.which(program)]

    def window(self, network, case, wait, gso):
        """Raw UDP gets its best window for this very case."""
        key = (network.name, case.name, gso)
        if key not in self.windows:
            self.windows[key] = best_window(self.raw_program, network, case.size, wait, gso=gso)
        return self.windows[key]

    def device(self, name, network, case):
        program, options, iterations = "ib_write_bw", [], None
        queue_pairs = re.fullmatch(r"write-(\d+)qp", case.name)
        if queue_pairs:
            options = ["-q", queue_pairs.group(1)]
        elif case.name == "latency":
            program, iterations = "ib_send_lat", 5000
        elif case.name == "rate":
            options = ["-l", "64", "-t", "1024"]  # posted by the list, 1024 outstanding
        elif case.name == "cpu":
            program, options, iterations = "ib_send_bw", ["-e"], 3000
        measure = perftest_cpu if case.figure == "cpu_s_per_gb" else perftest
        return measure(self.devices[name], network, program, case.size, options, 1, iterations)

    def raw(self, network, case, gso):
        wait = "block" if case.name == "cpu" else "spin"
        if case.name == "latency":
            return raw(self.raw_program, network, "latency", case.size, wait)
        return raw(self.raw_program, network, "bandwidth", case.size, wait, self.window(network, case, wait, gso), self.seconds, gso=gso)

    def fabric(self, provider, network, case):
        way, (here, there) = Way(provider, "fabric", provider), network.places
        if case.name == "latency":
            _, sent = self.runner.run(way, here, [there], ["--size", str(case.size), "--exchange", "5000", "--seconds", "10"])
            return {"half_rtt_us": sent[0]["round_trip"]["p50_us"] / 2}
        window = ["--window", "4" if case.size >= MIB else "128"]
        if case.name == "rate":
            window = ["--window", "1024", "--list", "64"]  # as the device's: plain writes, and one of a list reported
        options = ["--size", str(case.size), *window, "--seconds", str(self.seconds)]
        received, _ = self.runner.run(way, here, [there], options)
        return received

    def ucx(self, network, case):
        here, there = network.places
        port, interface = free_port(), "lo" if network.name == "loopback" else "alb0"
        test, iterations = ("ucp_put_lat", 5000) if case.name == "latency" else ("ucp_put_bw", 3000 if case.size >= MIB else 200000)
        # UCX looks for interfaces in sysfs, which shows those of the namespace that mounted it.
        own_sysfs = ["unshare", "-m", "sh", "-c", 'mount -t sysfs none /sys && exec "$@"', "sh"] if here.enter else []
        variables = [*own_sysfs, "env", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=" + interface, "UCX_LOG_LEVEL=error"]
        argv = ["ucx_perftest", "-p", str(port), "-t", test, "-s", str(case.size), "-n", str(iterations), "-w", str(iterations // 10)]
        output, _ = run_pair(here.enter + variables + argv, there.enter + variables + argv[:1] + [here.ipv4] + argv[1:], port, 60)
        row = re.search(r"^Final: +\d+ +\S+ +\S+ +(\S+) +\S+ +(\S+) +\S+ +(\S+)", output, re.M)
        if not row:
            raise Failed("no final result in the output\n" + output)
        return {"half_rtt_us": float(row.group(1)), "bytes_per_s": float(row.group(2)) * MIB, "messages_per_s": float(row.group(3))}

    def measure(self, name, network, case):
        if name in self.devices:
            return self.device(name, network, case)
        if name.startswith("raw"):
            return self.raw(network, case, name != "raw datagrams")
        if name in FABRIC:
            return self.fabric(FABRIC[name], network, case)
        if name == "UCX tcp":
            return self.ucx(network, case)
        return (tcp_cpu if case.figure == "cpu_s_per_gb" else tcp)(network, 1)

    def run(self, network, case):
        row = {"section": "csa", "network": network.name, "case": case.name, "message_bytes": case.size,
               "datagram_payload_bytes": network.payload, "figure": case.figure, "rounds": self.repeat}
        values, errors = {name: [] for name in case.contestants}, {}
        for _ in range(self.repeat):
            for name in case.contestants:
                try:
                    value = self.measure(name, network, case)[case.figure]
                except (Failed, OSError) as failure:  # a program that is not installed, or an opponent that fails
                    value, errors[name] = None, str(failure)
                values[name].append(value)  # None keeps its place: a ratio is of two figures of one round
        row.update((name, summary(measured)) for name, measured in values.items() if any(value is not None for value in measured))
        row["goals"] = [self.judge(goal, values) for goal in case.goals]
        if errors:
            row["failed"] = errors
        if "albedo0" in errors:
            row["error"] = errors["albedo0"]
        return row

    def judge(self, goal, values):
        rounds = [pair for pair in zip(values["albedo0"], values[goal.other]) if None not in pair]
        ratio = statistics.median(a / b for a, b in rounds) if rounds else None
        return {"beside": goal.other, "ratio": ratio, "goal": "%s %g" % (goal.better, goal.bound),
                "met": ratio is not None and goal.is_met(ratio)}


def print_table(rows):
    print("\n%-11s %-11s %8s %5s  %-14s %11s %8s  %s" % ("csa", "case", "bytes", "", "", "figure", "ratio", "goal"))
    for row in rows:
        unit, scale, form = UNITS[row["figure"]]
        case = next(case for case in CASES if case.name == row["case"])
        goals = {goal["beside"]: goal for goal in row["goals"]}
        for name in case.contestants:
            if name not in row:
                print("%-11s %-11s %8d %5s  %-14s %11s" % (row["network"], row["case"], row["message_bytes"], unit, name, "failed"))
                continue
            ours = row.get("albedo0", {}).get("median")
            ratio = "%.2f" % (ours / row[name]["median"]) if ours and name != "albedo0" else ""
            verdict = ""
            if name in goals and goals[name]["ratio"] is not None:
                ratio = "%.2f" % goals[name]["ratio"]
                verdict = "%s %s" % (goals[name]["goal"], "met" if goals[name]["met"] else "NOT met")
            if row[name]["rounds_failed"]:
                verdict += " (%d of %d rounds failed)" % (row[name]["rounds_failed"], row["rounds"])
            print("%-11s %-11s %8d %5s  %-14s %11s %8s  %s" % (row["network"], row["case"], row["message_bytes"], unit, name,
                                                             form % (row[name]["median"] * scale), ratio, verdict.strip()))
